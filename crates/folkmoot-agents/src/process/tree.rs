//! A child with all that it has started, ended as a whole (rules.md 12.10).

use std::{fmt, io};

use tokio::process::Child;

/// All processes of a child: its group, and those that have left it, by their mark. Dropping it ends
/// them.
pub(super) struct Tree {
    group: Option<u32>,
    mark: String,
}

impl Tree {
    /// Starts the leader of a process group, whose environment holds `mark`; gives the tree below it.
    pub(super) fn start(
        mark: &str,
        spawn: impl FnOnce() -> io::Result<Child>,
    ) -> io::Result<(Child, Tree)> {
        let child = system::begin(spawn)?;
        let tree = Tree { group: child.id(), mark: mark.to_owned() };
        Ok((child, tree))
    }

    /// Asks the group of the child to end.
    pub(super) fn ask_to_end(&self) {
        #[cfg(unix)]
        if let Some(group) = self.group.and_then(pid) {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::TERM);
        }
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        system::kill(self.group, &self.mark);
    }
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tree").field("group", &self.group).finish_non_exhaustive()
    }
}

/// Makes orphans of children our own, so that they can be found.
pub(super) fn adopt_orphans() {
    system::adopt_orphans();
}

#[cfg(unix)]
pub(super) fn pid(number: u32) -> Option<rustix::process::Pid> {
    rustix::process::Pid::from_raw(i32::try_from(number).ok()?)
}

#[cfg(target_os = "linux")]
mod system {
    use std::{
        collections::BTreeSet,
        io, process,
        sync::{Mutex, MutexGuard, PoisonError},
    };

    use rustix::process::{
        Signal, WaitOptions, kill_process, kill_process_group, set_child_subreaper, waitpid,
    };

    use tokio::process::Child;

    use super::{
        super::proc::{Marked, Status, mark_of, processes},
        pid,
    };

    /// How often the processes are looked through: whoever is killed may just have started another.
    const ROUNDS: u32 = 16;

    /// The groups of children that are under way.
    static UNDER_WAY: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

    /// A child that is just being started has neither its mark nor its group yet, so nobody looks for
    /// strays meanwhile.
    pub(super) fn begin(spawn: impl FnOnce() -> io::Result<Child>) -> io::Result<Child> {
        let mut under_way = under_way();
        let child = spawn()?;
        under_way.extend(child.id());
        Ok(child)
    }

    fn under_way() -> MutexGuard<'static, BTreeSet<u32>> {
        UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn adopt_orphans() {
        // Where it is refused, only orphans that hide their mark are missed.
        let _ = set_child_subreaper(pid(process::id()));
    }

    pub(super) fn kill(group: Option<u32>, mark: &str) {
        if let Some(group) = group {
            under_way().remove(&group);
        }
        if let Some(group) = group.and_then(pid) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        for _ in 0..ROUNDS {
            let strays: Vec<_> = processes().filter(|number| is_stray(*number, mark)).collect();
            if strays.is_empty() {
                return;
            }
            for stray in strays.into_iter().filter_map(pid) {
                let _ = kill_process(stray, Signal::KILL);
                let _ = waitpid(Some(stray), WaitOptions::NOHANG);
            }
        }
    }

    /// Whether a process belongs to the tree: by its mark, or as a confined orphan that hides whose
    /// it is.
    fn is_stray(number: u32, mark: &str) -> bool {
        match mark_of(number) {
            Marked::Unseen => false,
            Marked::With(value) => value == mark,
            Marked::Without => is_confined_orphan(number),
        }
    }

    /// Whether a child of ours has given up more rights than we have, which only what we confine does,
    /// and is in the group of none that is under way.
    fn is_confined_orphan(number: u32) -> bool {
        let under_way = under_way();
        let (theirs, ours) = (Status::of(&number.to_string()), Status::of("self"));
        theirs.parent == process::id()
            && theirs.is_alive
            && theirs.filters > ours.filters
            && !under_way.contains(&theirs.group)
    }
}

#[cfg(all(unix, not(target_os = "linux")))]
mod system {
    use std::io;

    use rustix::process::{Signal, kill_process_group};
    use tokio::process::Child;

    pub(super) fn adopt_orphans() {}

    pub(super) fn begin(spawn: impl FnOnce() -> io::Result<Child>) -> io::Result<Child> {
        spawn()
    }

    pub(super) fn kill(group: Option<u32>, _: &str) {
        if let Some(group) = group.and_then(super::pid) {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

#[cfg(not(unix))]
mod system {
    use std::io;

    use tokio::process::Child;

    pub(super) fn adopt_orphans() {}

    pub(super) fn begin(spawn: impl FnOnce() -> io::Result<Child>) -> io::Result<Child> {
        spawn()
    }

    pub(super) fn kill(_: Option<u32>, _: &str) {}
}
