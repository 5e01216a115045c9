//! Programs of a Folkmoot that was killed (rules.md 6.10).
//!
//! Each program is known by its mark, which names the process that has started it. Whoever finds that
//! one ended ends the program with all that it has started; what belongs to a process that lives, or
//! of which that cannot be told, is left alone. A program that has hidden its mark is found only as
//! long as it is in the group of one that has not, or below it. Linux only: elsewhere nobody can look.

/// Ends what is left of processes that were killed, so that nothing of it goes on beside what is
/// started next. Gives how many programs there were.
pub async fn end_orphans() -> usize {
    system::end().await
}

#[cfg(target_os = "linux")]
mod system {
    use std::{
        collections::{BTreeMap, BTreeSet},
        fs,
        os::unix::fs::MetadataExt,
        process,
        time::Duration,
    };

    use folkmoot_runtime::store::Owner;
    use rustix::process::{
        Pid, PidfdFlags, Signal, geteuid, getpgrp, kill_process_group, pidfd_open,
        pidfd_send_signal,
    };
    use tokio::time::{Instant, sleep};

    use super::super::{
        mark,
        proc::{Marked, Status, mark_of, processes},
        tree::pid,
    };

    /// How long they may take to end by themselves once they are asked to.
    const GRACE: Duration = Duration::from_secs(2);

    /// How long is waited for those that were killed.
    const REAPED: Duration = Duration::from_secs(2);

    /// How often it is looked who is left.
    const LOOK: Duration = Duration::from_millis(20);

    pub(super) async fn end() -> usize {
        let found = Orphans::find();
        let count = found.marked.len();
        if count > 0 && !found.are_gone_after(Signal::TERM, GRACE).await {
            Orphans::find().are_gone_after(Signal::KILL, REAPED).await;
        }
        count
    }

    /// Processes without an owner.
    struct Orphans {
        marked: BTreeSet<u32>,
        /// Those that descend from marked ones, without a mark of their own.
        below: BTreeSet<u32>,
        /// Groups that are led by marked ones.
        groups: BTreeSet<u32>,
    }

    impl Orphans {
        fn find() -> Orphans {
            let (parents, ours) = (parents(), process::id());
            let own: BTreeSet<u32> = lineage(&parents, ours).collect();
            let mut ended = BTreeMap::new();
            let mut is_orphan = |number: u32| {
                let Marked::With(mark) = mark_of(number) else { return None };
                let owner = mark::owner(&mark)?;
                let name = (owner.process, owner.started);
                let has_ended = *ended.entry(name).or_insert_with(|| Owner::has_ended(&owner));
                let is_ours = is_of_this_user(number) && !own.contains(&number);
                (has_ended && is_ours).then_some(number)
            };
            let marked: BTreeSet<u32> = parents.keys().filter_map(|it| is_orphan(*it)).collect();
            let is_below = |number: &u32| {
                !own.contains(number)
                    && matches!(mark_of(*number), Marked::Without)
                    && lineage(&parents, *number).any(|it| marked.contains(&it))
            };
            let below = parents.keys().copied().filter(is_below).collect();
            let group = |number: &u32| Status::of(&number.to_string()).group;
            let ours = pid_number(getpgrp());
            let groups = marked.iter().copied().filter(|it| group(it) == *it && *it != ours);
            Orphans { groups: groups.collect(), below, marked }
        }

        /// Whether they have ended some time after this signal.
        async fn are_gone_after(&self, signal: Signal, time: Duration) -> bool {
            for group in self.groups.iter().copied().filter_map(pid) {
                let _ = kill_process_group(group, signal);
            }
            for number in self.marked.union(&self.below) {
                self.send(*number, signal);
            }
            let until = Instant::now() + time;
            loop {
                let left = Orphans::find();
                if left.marked.is_empty() && left.below.is_empty() {
                    return true;
                }
                if Instant::now() > until {
                    return false;
                }
                sleep(LOOK).await;
            }
        }

        /// The process that has this id is the one that was meant: it is held, and looked at again.
        fn send(&self, number: u32, signal: Signal) {
            let Some(held) = pid(number).and_then(|it| pidfd_open(it, PidfdFlags::empty()).ok())
            else {
                return;
            };
            let is_marked = matches!(mark_of(number), Marked::With(_));
            if is_marked == self.marked.contains(&number) {
                let _ = pidfd_send_signal(&held, signal);
            }
        }
    }

    /// An administrator could look at those of others too.
    fn is_of_this_user(number: u32) -> bool {
        let user = fs::metadata(format!("/proc/{number}")).map(|it| it.uid());
        user.is_ok_and(|user| user == geteuid().as_raw())
    }

    fn pid_number(pid: Pid) -> u32 {
        pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Each process that has not ended, and its parent.
    fn parents() -> BTreeMap<u32, u32> {
        let look = |number: u32| {
            let status = Status::of(&number.to_string());
            status.is_alive.then_some((number, status.parent))
        };
        processes().filter_map(look).collect()
    }

    /// A process, its parent, and so on.
    fn lineage(parents: &BTreeMap<u32, u32>, from: u32) -> impl Iterator<Item = u32> {
        std::iter::successors(Some(from), |it| parents.get(it).copied()).take(parents.len() + 1)
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    pub(super) async fn end() -> usize {
        0
    }
}
