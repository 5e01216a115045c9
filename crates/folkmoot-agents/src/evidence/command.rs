//! Runs one command of the shell, bounded in time and output, and ends all that it has started.

use std::{
    collections::BTreeMap,
    io,
    path::Path,
    process::Stdio,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use folkmoot_core::gate::OUTPUT;
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    process::{Child, Command},
    time::timeout,
};

/// How long what a command wrote last is waited for when it is over (convergence.md §2).
const TRAILING: Duration = Duration::from_millis(500);

/// Variables that every child gets if we have them (agents.md §4).
const BASELINE: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TERM",
    "TZ",
    "TMPDIR",
    // Their kin on Windows.
    "APPDATA",
    "COMSPEC",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "PATHEXT",
    "PROGRAMDATA",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "USERNAME",
    "USERPROFILE",
    "WINDIR",
];

/// What of our environment a command gets, so that keys, addresses and proxies do not leak.
pub(super) fn baseline(
    ours: impl IntoIterator<Item = (String, String)>,
) -> BTreeMap<String, String> {
    let is_passed = |name: &str| BASELINE.contains(&name) || name.starts_with("LC_");
    ours.into_iter().filter(|(name, _)| is_passed(name)).collect()
}

/// A command that has run.
#[derive(Debug)]
pub(super) struct Ran {
    /// How it ended by itself; none if something ended it.
    pub(super) exit_code: Option<i32>,
    /// Whether it took too long.
    pub(super) timed_out: bool,
    /// The end of what it wrote, on both of its outputs as it came.
    pub(super) output: String,
}

/// Runs a command line in a folder with these variables and no others. Dropping the future ends it with
/// all that it has started.
///
/// Nothing confines it: a caller that may not allow that must not come here.
pub(super) async fn run_command(
    command: &str,
    folder: &Path,
    most: Duration,
    environment: &BTreeMap<String, String>,
) -> io::Result<Ran> {
    let mut child = shell(command)
        .current_dir(folder)
        .env_clear()
        .envs(environment)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let group = Group::of(&child);
    let written = Mutex::new(Vec::new());
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let mut reading = Box::pin(async { tokio::join!(keep(out, &written), keep(err, &written)) });
    let mut is_read = false;
    let ended = timeout(most, async {
        // Whoever has inherited the pipes may hold them open after the end of the command itself.
        tokio::select! {
            status = child.wait() => status,
            _ = &mut reading => {
                is_read = true;
                child.wait().await
            }
        }
    })
    .await;
    drop(group);
    let timed_out = ended.is_err();
    let exit_code = if let Ok(status) = ended {
        status?.code()
    } else {
        let _ = child.kill().await;
        None
    };
    if !is_read {
        let _ = timeout(TRAILING, &mut reading).await;
    }
    drop(reading);
    let output = super::tail(&written.into_inner().unwrap_or_else(PoisonError::into_inner));
    Ok(Ran { exit_code, timed_out, output })
}

#[cfg(unix)]
fn shell(command: &str) -> Command {
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(command).process_group(0);
    shell
}

#[cfg(not(unix))]
fn shell(command: &str) -> Command {
    let mut shell = Command::new("cmd");
    shell.arg("/C").arg(command);
    shell
}

/// Keeps the end of what comes.
async fn keep(from: Option<impl AsyncRead + Unpin>, written: &Mutex<Vec<u8>>) {
    let Some(mut from) = from else { return };
    let mut chunk = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut chunk).await {
        let mut written = written.lock().unwrap_or_else(PoisonError::into_inner);
        written.extend_from_slice(&chunk[..count]);
        if written.len() > 8 * OUTPUT {
            let surplus = written.len() - 2 * OUTPUT;
            written.drain(..surplus);
        }
    }
}

/// A process group that ends with this value.
struct Group {
    #[cfg(unix)]
    leader: Option<rustix::process::Pid>,
}

impl Group {
    #[cfg(unix)]
    fn of(child: &Child) -> Group {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Group { leader: id.and_then(rustix::process::Pid::from_raw) }
    }

    #[cfg(not(unix))]
    fn of(_: &Child) -> Group {
        Group {}
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Some(leader) = self.leader {
            let _ = rustix::process::kill_process_group(leader, rustix::process::Signal::KILL);
        }
    }
}
