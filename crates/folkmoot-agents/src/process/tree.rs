//! A child with all that it has started, ended as a whole (rules.md 12.10).

use std::{fmt, io};

use tokio::process::Child;

/// All processes of a child: its group, and those that have left it, by their mark. Dropping it kills
/// them, and waits until they have ended; a system that takes longer than a second to end what was
/// killed is not waited for. Whoever waits for the child reaps it.
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
        io,
        os::fd::OwnedFd,
        process,
        sync::{Mutex, MutexGuard, PoisonError},
        time::{Duration, Instant},
    };

    use rustix::{
        event::{PollFd, PollFlags, poll},
        process::{
            PidfdFlags, Signal, WaitOptions, getpgrp, kill_process, kill_process_group, pidfd_open,
            set_child_subreaper, waitpid,
        },
        time::Timespec,
    };
    use tokio::process::Child;

    use super::{
        super::proc::{Marked, Status, mark_of, processes},
        pid,
    };

    /// How often the processes are looked through: whoever is killed may just have started another.
    const ROUNDS: u32 = 16;

    /// How long the system may take to end what was killed; then it is left to it.
    const ENDING: Duration = Duration::from_secs(1);

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
        let until = Instant::now() + ENDING;
        let mut over = Vec::new();
        for round in 0..ROUNDS {
            let of_group = group.filter(|_| round == 0);
            let mut strays = Vec::new();
            for number in processes() {
                match standing(number, of_group, mark) {
                    Standing::Stranger => {}
                    Standing::Stray => strays.extend(pid(number)),
                    Standing::Ended => over.extend(pid(number)),
                }
            }
            // Held before they are killed, so that their end is not taken for that of others.
            let held = strays.iter().filter_map(|it| pidfd_open(*it, PidfdFlags::empty()).ok());
            let held: Vec<OwnedFd> = held.collect();
            if let Some(group) = of_group.and_then(pid) {
                let _ = kill_process_group(group, Signal::KILL);
            }
            for stray in &strays {
                let _ = kill_process(*stray, Signal::KILL);
            }
            if strays.is_empty() || !have_ended(&held, until) {
                break;
            }
            over.extend(strays);
        }
        // The child itself is reaped by whoever waits for it; its orphans have become our children, and
        // nobody waits for them.
        for orphan in over.into_iter().filter(|it| Some(*it) != group.and_then(pid)) {
            let _ = waitpid(Some(orphan), WaitOptions::NOHANG);
        }
    }

    /// Whether all of them have ended by then; a process that has ended can be read.
    fn have_ended(held: &[OwnedFd], until: Instant) -> bool {
        held.iter().all(|it| {
            let left = Timespec::try_from(until.saturating_duration_since(Instant::now())).ok();
            poll(&mut [PollFd::new(it, PollFlags::IN)], left.as_ref()) != Ok(0)
        })
    }

    /// What a process is to a tree.
    enum Standing {
        Stranger,
        /// It belongs to it: by its group, by its mark, or as a confined orphan that hides whose it is.
        Stray,
        /// It was an orphan of any tree, and nobody has reaped it.
        Ended,
    }

    fn standing(number: u32, group: Option<u32>, mark: &str) -> Standing {
        let marked = mark_of(number);
        if let Marked::With(value) = &marked {
            return if value == mark { Standing::Stray } else { Standing::Stranger };
        }
        let theirs = Status::of(&number.to_string());
        match marked {
            // What has ended shows no environment.
            _ if !theirs.is_alive && is_orphan(&theirs) => Standing::Ended,
            Marked::Without if group == Some(theirs.group) => Standing::Stray,
            Marked::Without if theirs.is_alive && is_confined_orphan(&theirs) => Standing::Stray,
            Marked::With(_) | Marked::Without | Marked::Unseen => Standing::Stranger,
        }
    }

    /// Whether it is an orphan that has given up more rights than we have, which only what we confine
    /// does.
    fn is_confined_orphan(theirs: &Status) -> bool {
        theirs.filters > Status::of("self").filters && is_orphan(theirs)
    }

    /// Whether a child of ours is in the group of none that is under way, and not in ours, where programs
    /// are that are no agents'.
    fn is_orphan(theirs: &Status) -> bool {
        theirs.parent == process::id()
            && pid(theirs.group) != Some(getpgrp())
            && !under_way().contains(&theirs.group)
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
