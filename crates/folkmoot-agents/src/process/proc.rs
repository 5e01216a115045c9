//! What Linux tells of running processes.

use std::fs;

use super::mark::MARK;

/// The ids of all processes.
pub(super) fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// What the environment of a process tells of its mark.
pub(super) enum Marked {
    /// It has this one.
    With(String),
    /// It has none, or has hidden it.
    Without,
    /// It cannot be looked at.
    Unseen,
}

/// Looks for the mark of a process.
pub(super) fn mark_of(process: u32) -> Marked {
    let Ok(environment) = fs::read(format!("/proc/{process}/environ")) else {
        return Marked::Unseen;
    };
    let value = environment.split(|byte| *byte == 0).find_map(|variable| {
        variable.strip_prefix(MARK.as_bytes()).and_then(|rest| rest.strip_prefix(b"="))
    });
    value.map_or(Marked::Without, |it| Marked::With(String::from_utf8_lossy(it).into_owned()))
}

/// What `/proc` tells of a process.
pub(super) struct Status {
    pub(super) parent: u32,
    pub(super) group: u32,
    /// What has ended has no memory.
    pub(super) is_alive: bool,
    /// Filters of system calls.
    pub(super) filters: u32,
}

impl Status {
    pub(super) fn of(process: &str) -> Status {
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().parse().ok()
        };
        Status {
            parent: field("PPid:").unwrap_or_default(),
            group: field("NSpgid:").unwrap_or_default(),
            is_alive: status.contains("\nVmSize:"),
            filters: field("Seccomp_filters:").unwrap_or_default(),
        }
    }
}
