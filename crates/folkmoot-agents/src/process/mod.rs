//! Programs that are run on behalf of agents: bounded in time and output, confined by the operating
//! system, and gone with all they have started when they are over (rules.md §12).

mod environment;
mod mark;
mod orphans;
mod output;
#[cfg(target_os = "linux")]
mod proc;
mod running;
mod sandbox;
mod talk;
mod tree;

use std::{
    collections::BTreeMap,
    fmt, io,
    path::{Path, PathBuf},
    process::Stdio,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use folkmoot_core::{
    call::{FailureKind, Fault},
    team::Sandbox,
};
use futures_util::{FutureExt, future::FusedFuture};
use tokio::{
    io::AsyncWriteExt,
    process::{Child, ChildStdin, Command},
    time::{sleep, timeout},
};

pub(crate) use self::environment::environment;
pub use self::{orphans::end_orphans, sandbox::unenforceable};
pub(crate) use self::{
    output::Excerpt,
    running::Running,
    talk::{Silence, Talk},
};
use self::{
    output::read,
    sandbox::Confinement,
    tree::{Tree, adopt_orphans},
};

/// How long the last output of a child is waited for when the child is over.
pub(crate) const TRAILING: Duration = Duration::from_millis(500);

/// How often a program is started that somebody is still writing, and the wait between (rules.md 12.9).
const STARTS: u32 = 5;
const BUSY: Duration = Duration::from_millis(40);

/// A line for the shell of this system, as a program and its arguments.
pub(crate) fn shell(command: &str) -> Vec<String> {
    let shell = if cfg!(unix) { ["/bin/sh", "-c"] } else { ["cmd", "/C"] };
    shell.into_iter().chain([command]).map(str::to_owned).collect()
}

/// A program to be run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process<'a> {
    /// The program and its arguments; no shell reads them.
    pub(crate) argv: &'a [String],
    /// Where it runs.
    pub(crate) dir: &'a Path,
    /// All variables that it gets, but for the folder of its temporary files below `full`.
    pub(crate) environment: &'a BTreeMap<String, String>,
    /// What it reads on its standard input, which is then closed.
    pub(crate) stdin: &'a [u8],
    /// What it may do.
    pub(crate) sandbox: Sandbox,
    /// And what beyond that, which its level does not give.
    pub(crate) beyond: Beyond<'a>,
    /// The folder that it may write to at level `write`.
    pub(crate) workspace: &'a Path,
    /// How long it may take.
    pub(crate) time: Duration,
    /// How many bytes of the beginning and of the end of each of its outputs are kept.
    pub(crate) kept: (usize, usize),
    /// Whether what it writes on its error output stands in its output, as it comes.
    pub(crate) merged: bool,
}

/// What a program needs to be of use at all, at any level.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Beyond<'a> {
    /// Whether it reaches the network.
    pub(crate) online: bool,
    /// Files and folders of its own that it writes to.
    pub(crate) writable: &'a [PathBuf],
}

/// A program that has run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ran {
    /// How it ended.
    pub(crate) exit: Exit,
    /// What it wrote.
    pub(crate) stdout: String,
    /// What it wrote on its error output, unless that stands in `stdout`.
    pub(crate) stderr: String,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// Something ended it, a signal with this number as a rule.
    Killed(Option<i32>),
    /// It took too long.
    TimedOut,
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exit::Code(code) => write!(f, "exit code {code}"),
            Exit::Killed(Some(signal)) => write!(f, "killed by signal {signal}"),
            Exit::Killed(None) => f.write_str("killed"),
            Exit::TimedOut => f.write_str("timed out"),
        }
    }
}

/// Why `what` could not be started.
pub(crate) fn unstarted(what: impl fmt::Display, error: &io::Error) -> Fault {
    if error.kind() == io::ErrorKind::Unsupported {
        return Fault::failed(FailureKind::Unsupported, format!("sandbox_unavailable: {error}"));
    }
    Fault::failed(FailureKind::Spawn, format!("{what} cannot be run: {error}"))
}

impl Process<'_> {
    /// Runs it to its end. Dropping the future ends it with all that it has started.
    ///
    /// # Errors
    /// It cannot be started; with the kind `Unsupported` because its level cannot be enforced here.
    pub(crate) async fn run(&self) -> io::Result<Ran> {
        let written = [(); 2].map(|()| Mutex::new(Excerpt::new(self.kept.0, self.kept.1)));
        let exit = self.run_into(written.each_ref()).await?;
        let [stdout, stderr] =
            written.map(|it| it.into_inner().unwrap_or_else(PoisonError::into_inner).text());
        Ok(Ran { exit, stdout, stderr })
    }

    /// The same where others see what it writes as it comes, on its output and its error output.
    pub(crate) async fn run_into(&self, written: [&Mutex<Excerpt>; 2]) -> io::Result<Exit> {
        let scratch = tempfile::tempdir()?;
        let stdin = if self.stdin.is_empty() { Stdio::null } else { Stdio::piped };
        let (child, tree) = self.start(scratch.path(), stdin).await?;
        self.attend(child, tree, written).await
    }

    /// Reads what a child writes until it is over.
    async fn attend(
        &self,
        mut child: Child,
        tree: Tree,
        [stdout, stderr]: [&Mutex<Excerpt>; 2],
    ) -> io::Result<Exit> {
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let stderr = if self.merged { stdout } else { stderr };
        // Whoever stops reading early has not failed by that.
        let writing = write(child.stdin.take(), self.stdin);
        let reading = async { tokio::join!(read(out, stdout), read(err, stderr), writing) }.fuse();
        tokio::pin!(reading);
        let ended = timeout(self.time, async {
            // Whoever inherited the pipes may hold them open after the child's end.
            tokio::select! {
                status = child.wait() => status,
                _ = &mut reading => child.wait().await,
            }
        });
        let exit = match ended.await {
            Ok(status) => exit(status?),
            Err(_) => Exit::TimedOut,
        };
        drop(tree);
        let _ = child.wait().await;
        if !reading.is_terminated() {
            let _ = timeout(TRAILING, reading).await;
        }
        Ok(exit)
    }

    async fn start(&self, scratch: &Path, stdin: fn() -> Stdio) -> io::Result<(Child, Tree)> {
        adopt_orphans();
        let mark = mark::new();
        let mut command = self.command(scratch, &mark)?;
        command.stdin(stdin());
        let Process { sandbox: level, workspace, beyond, .. } = *self;
        let confinement = Confinement { level, workspace, scratch, beyond };
        let mut starts = 1;
        loop {
            match Tree::start(&mark, || confinement.spawn(&mut command)) {
                Ok(started) => return Ok(started),
                Err(error)
                    if error.kind() == io::ErrorKind::ExecutableFileBusy && starts < STARTS =>
                {
                    starts += 1;
                    sleep(BUSY).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn command(&self, scratch: &Path, mark: &str) -> io::Result<Command> {
        let [program, arguments @ ..] = self.argv else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "there is no program to run"));
        };
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.dir).env_clear().envs(self.environment);
        match self.sandbox {
            Sandbox::ReadOnly | Sandbox::Write => {
                for name in ["TMPDIR", "TMP", "TEMP"] {
                    command.env(name, scratch);
                }
            }
            Sandbox::Full => {}
        }
        command.env(mark::MARK, mark).kill_on_drop(true);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        #[cfg(unix)]
        command.process_group(0);
        Ok(command)
    }
}

/// Writes to a program and then closes its standard input, if it has one.
async fn write(stdin: Option<ChildStdin>, text: &[u8]) {
    if let Some(mut stdin) = stdin {
        let _ = stdin.write_all(text).await;
    }
}

#[cfg(unix)]
fn exit(status: std::process::ExitStatus) -> Exit {
    use std::os::unix::process::ExitStatusExt;
    status.code().map_or(Exit::Killed(status.signal()), Exit::Code)
}

#[cfg(not(unix))]
fn exit(status: std::process::ExitStatus) -> Exit {
    status.code().map_or(Exit::Killed(None), Exit::Code)
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
