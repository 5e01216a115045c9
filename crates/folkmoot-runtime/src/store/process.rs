//! Whether another process is alive, and the same one as before.

use std::sync::{Arc, OnceLock};

/// What is known of a process id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux is asked"))]
pub(super) enum Presence {
    /// No process has it, or only one that has ended and was not yet collected.
    Gone,
    /// A process has it that started at this time, in clock ticks since boot.
    Started(u64),
    /// It cannot be told.
    Unknown,
}

/// Looks a process id up.
pub(super) fn presence(process: u32) -> Presence {
    system::presence(process)
}

/// Names this boot and the space of process ids that this process lives in; empty if unknown.
pub(super) fn boot() -> Arc<str> {
    static BOOT: OnceLock<Arc<str>> = OnceLock::new();
    BOOT.get_or_init(|| system::boot().unwrap_or_default().into()).clone()
}

/// Names this machine.
pub(super) fn host() -> Arc<str> {
    static HOST: OnceLock<Arc<str>> = OnceLock::new();
    HOST.get_or_init(|| system_name().into()).clone()
}

#[cfg(unix)]
fn system_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn system_name() -> String {
    "this machine".to_owned()
}

#[cfg(target_os = "linux")]
mod system {
    use std::{fs, io};

    use rustix::process::{Pid, test_kill_process};

    use super::Presence;

    pub(super) fn presence(process: u32) -> Presence {
        match fs::read_to_string(format!("/proc/{process}/stat")) {
            Ok(stat) => parse(&stat).unwrap_or(Presence::Unknown),
            Err(error) if error.kind() == io::ErrorKind::NotFound => hidden(process),
            Err(_) => Presence::Unknown,
        }
    }

    /// Where `/proc` hides what belongs to other users, a signal still finds them.
    fn hidden(process: u32) -> Presence {
        let Some(pid) = i32::try_from(process).ok().and_then(Pid::from_raw) else {
            return Presence::Gone;
        };
        match test_kill_process(pid) {
            Err(rustix::io::Errno::SRCH) => Presence::Gone,
            Ok(()) | Err(_) => Presence::Unknown,
        }
    }

    /// Reads the state and the 22nd field. The second, the command, may hold blanks and brackets.
    pub(super) fn parse(stat: &str) -> Option<Presence> {
        let (_, rest) = stat.rsplit_once(')')?;
        let mut fields = rest.split_ascii_whitespace();
        if matches!(fields.next()?, "Z" | "X" | "x") {
            return Some(Presence::Gone);
        }
        Some(Presence::Started(fields.nth(18)?.parse().ok()?))
    }

    /// The boot alone is not enough: containers on one machine share it, and count processes anew.
    pub(super) fn boot() -> Option<String> {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let space = fs::read_link("/proc/self/ns/pid").ok()?;
        Some(format!("{} {}", boot.trim(), space.display()))
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use super::Presence;

    pub(super) fn presence(_process: u32) -> Presence {
        Presence::Unknown
    }

    pub(super) fn boot() -> Option<String> {
        None
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::{Command, Stdio};

    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

    use super::{Presence, presence, system::parse};

    #[test]
    fn a_command_may_hold_brackets_blanks_and_numbers() {
        let stat = "12 (a) R 1 (b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 21";

        assert_eq!(parse(stat), Some(Presence::Started(4711)));
        assert_eq!(parse("12 (a) S 1 2"), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn a_process_that_ended_is_gone_before_and_after_it_is_collected() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().expect("cat is there");
        let id = child.id();
        assert!(matches!(presence(id), Presence::Started(1..)));

        drop(child.stdin.take());
        let pid = Pid::from_raw(i32::try_from(id).expect("ids are small")).expect("and not 0");
        waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).expect("it ends");
        assert_eq!(presence(id), Presence::Gone);

        child.wait().expect("it has ended");
        assert_eq!(presence(id), Presence::Gone);
    }

    #[test]
    fn ids_that_no_process_can_have_are_gone() {
        assert_eq!(presence(0), Presence::Gone);
        assert_eq!(presence(u32::MAX), Presence::Gone);
    }
}
