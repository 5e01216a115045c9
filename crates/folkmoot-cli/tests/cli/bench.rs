//! A scratch folder in which the real binary is called, with a home and a database of its own.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{BufRead, BufReader, Read},
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread,
    time::{Duration, Instant},
};

use folkmoot_stub::{Seen, Stub};
use serde_json::Value;
use tempfile::TempDir;

use crate::matching::Mismatch;

/// A time after which a test has failed; never reached by one that passes.
const PATIENCE: Duration = Duration::from_mins(1);

/// A scratch folder.
pub(crate) struct Bench {
    folder: TempDir,
    variables: Vec<(&'static str, OsString)>,
}

impl Bench {
    /// An empty folder.
    pub(crate) fn new() -> Bench {
        let folder = tempfile::tempdir().expect("a scratch folder can be made");
        Bench { folder, variables: Vec::new() }
    }

    /// A folder that holds a team file, `team.yaml`.
    pub(crate) fn with_team(team: &str) -> Bench {
        let bench = Bench::new();
        bench.write("team.yaml", team);
        bench
    }

    /// A folder that holds a team file whose models of `openai` are served by `stub`.
    pub(crate) fn with_models(team: &str, stub: &Stub) -> Bench {
        Bench::with_team(team).with("OPENAI_BASE_URL", stub.base_url())
    }

    /// Sets a variable of the environment.
    pub(crate) fn with(mut self, variable: &'static str, value: impl Into<OsString>) -> Bench {
        self.variables.push((variable, value.into()));
        self
    }

    /// A copy of the folder as it is now, in the same environment.
    pub(crate) fn copy(&self) -> Bench {
        let copy = Bench { variables: self.variables.clone(), ..Bench::new() };
        let files = fs::read_dir(self.folder.path()).expect("the folder can be read");
        for file in files {
            let file = file.expect("the folder can be read");
            if file.file_type().expect("it is there").is_file() {
                let to = copy.path(file.file_name());
                fs::copy(file.path(), to).expect("files can be copied");
            }
        }
        copy
    }

    /// A path in the folder.
    pub(crate) fn path(&self, name: impl Into<PathBuf>) -> PathBuf {
        self.folder.path().join(name.into())
    }

    /// Writes a file.
    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("the folder can be written");
    }

    /// Writes files, and the folders that they are in.
    pub(crate) fn write_all(&self, files: &[(&str, &str)]) {
        for (name, text) in files {
            let folder = self.path(*name).parent().expect("it is in a folder").to_owned();
            fs::create_dir_all(folder).expect("folders can be made");
            self.write(name, text);
        }
    }

    /// The bytes of all files in the folder that hold state.
    pub(crate) fn stored(&self) -> Vec<u8> {
        let files = ["runs.db", "runs.db-wal"].map(|name| fs::read(self.path(name)));
        files.into_iter().flatten().flatten().collect()
    }

    /// A command that sees nothing of the machine but its programs.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.folder.path()).env_clear().stdin(Stdio::null());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.folder.path());
        command.env("FOLKMOOT_DB", self.path("runs.db"));
        command.env("NO_COLOR", "1");
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// The binary with these arguments.
    pub(crate) fn folkmoot<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_folkmoot"));
        command.args(arguments);
        command
    }

    /// Calls the binary and waits for its end.
    pub(crate) fn call<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Called {
        Called::of(&mut self.folkmoot(arguments))
    }

    /// Calls the binary with a text on standard input.
    pub(crate) fn call_on<'a>(
        &self,
        input: &str,
        arguments: impl IntoIterator<Item = &'a str>,
    ) -> Called {
        self.write("input", input);
        let input = File::open(self.path("input")).expect("it was just written");
        Called::of(self.folkmoot(arguments).stdin(input))
    }

    /// Starts the binary.
    pub(crate) fn start<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Process {
        Process::start(&mut self.folkmoot(arguments))
    }

    /// The runs in the database as `runs --json` lists them, the newest first.
    pub(crate) fn runs(&self) -> Vec<Value> {
        let runs = self.call(["runs", "--json", "--limit", "1000"]).must_be(0).json();
        runs.as_array().expect("it is a list").clone()
    }

    /// What `show --json` tells of the newest run.
    pub(crate) fn last(&self) -> Value {
        self.call(["show", "last", "--json", "--events"]).must_be(0).json()
    }
}

/// What one call of the binary gave.
#[derive(Debug)]
pub(crate) struct Called {
    /// Its exit code; -1 if a signal ended it.
    pub(crate) exit: i32,
    /// What it wrote.
    pub(crate) stdout: String,
    /// What it told.
    pub(crate) stderr: String,
    /// How long it took.
    pub(crate) wall_ms: f64,
}

impl Called {
    /// Waits for the end of a command.
    pub(crate) fn of(command: &mut Command) -> Called {
        let began = Instant::now();
        let output = command.output().expect("the binary can be started");
        Called {
            exit: code(output.status),
            stdout: String::from_utf8(output.stdout).expect("stdout is UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("stderr is UTF-8"),
            wall_ms: began.elapsed().as_secs_f64() * 1000.0,
        }
    }

    /// The same, if this was its exit code.
    #[track_caller]
    pub(crate) fn must_be(self, exit: i32) -> Called {
        assert_eq!(self.exit, exit, "{}", self.shown());
        self
    }

    /// Its JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        self.try_json().unwrap_or_else(|Mismatch(why)| panic!("{why}"))
    }

    /// Its JSON, if that is what it wrote.
    pub(crate) fn try_json(&self) -> Result<Value, Mismatch> {
        let parsed = serde_json::from_str(&self.stdout);
        parsed.map_err(|error| Mismatch(format!("stdout is not JSON ({error}): {}", self.shown())))
    }

    /// Its lines of JSON.
    #[track_caller]
    pub(crate) fn json_lines(&self) -> Vec<Value> {
        let parse = |line| serde_json::from_str(line).expect("each line is JSON");
        self.stdout.lines().map(parse).collect()
    }

    /// All of it, for the message of a test that fails.
    pub(crate) fn shown(&self) -> String {
        format!("exit {}, stdout {:?}, stderr {:?}", self.exit, self.stdout, self.stderr)
    }
}

fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or(-1)
}

/// The binary under way; killed if it is dropped before its end.
pub(crate) struct Process {
    child: Child,
    began: Instant,
    stdout: Lines,
    stderr: Lines,
}

impl Process {
    /// Starts a command.
    pub(crate) fn start(command: &mut Command) -> Process {
        Process::start_into(command, Stdio::piped())
    }

    /// Starts a command that writes to `stdout`.
    pub(crate) fn start_into(command: &mut Command, stdout: impl Into<Stdio>) -> Process {
        let began = Instant::now();
        let child = command.stdout(stdout).stderr(Stdio::piped()).spawn();
        let mut child = child.expect("the binary can be started");
        // The command would keep the other end of a pipe open.
        command.stdout(Stdio::null());
        Process {
            stdout: child.stdout.take().map_or_else(Lines::none, Lines::of),
            stderr: Lines::of(child.stderr.take().expect("it is piped")),
            child,
            began,
        }
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it has told a line with this in it.
    #[track_caller]
    pub(crate) fn must_tell(&mut self, part: &str) {
        self.stderr.must_come(part);
    }

    /// Waits until it has written a line with this in it.
    #[track_caller]
    pub(crate) fn must_write(&mut self, part: &str) {
        self.stdout.must_come(part);
    }

    /// Sends it a signal.
    #[cfg(unix)]
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let id = rustix::process::Pid::from_child(&self.child);
        let sent = rustix::process::kill_process(id, signal);
        sent.expect("it was not waited for, so its id is still its own");
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn finish(mut self) -> Called {
        let (stdout, stderr) = (self.stdout.rest(), self.stderr.rest());
        let status = self.child.wait().expect("it can be waited for");
        let wall_ms = self.began.elapsed().as_secs_f64() * 1000.0;
        Called { exit: code(status), stdout, stderr, wall_ms }
    }

    /// Kills it in the middle of what it does.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it was not waited for");
        self.child.wait().expect("it can be waited for");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It has ended already, unless the test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a process writes, line by line.
struct Lines {
    coming: Receiver<String>,
    seen: String,
}

impl Lines {
    fn of(stream: impl Read + Send + 'static) -> Lines {
        let (sender, coming) = channel();
        thread::spawn(move || {
            let lines = BufReader::new(stream).lines().map_while(Result::ok);
            // A test that wants no more of them is over.
            lines.map(|line| sender.send(line + "\n")).all(|sent| sent.is_ok())
        });
        Lines { coming, seen: String::new() }
    }

    /// Nothing, as it is written to somewhere else.
    fn none() -> Lines {
        Lines { coming: channel().1, seen: String::new() }
    }

    fn next(&mut self) -> Option<String> {
        match self.coming.recv_timeout(PATIENCE) {
            Ok(line) => {
                self.seen.push_str(&line);
                Some(line)
            }
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("nothing more comes after: {}", self.seen),
        }
    }

    #[track_caller]
    fn must_come(&mut self, part: &str) {
        while let Some(line) = self.next() {
            if line.contains(part) {
                return;
            }
        }
        panic!("{part:?} does not come in: {}", self.seen);
    }

    fn rest(&mut self) -> String {
        while self.next().is_some() {}
        std::mem::take(&mut self.seen)
    }
}

/// Waits until what the stub has seen is so.
#[track_caller]
pub(crate) fn until(stub: &Stub, is_so: impl FnMut(&Seen) -> bool) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let waited = runtime
        .expect("a runtime needs next to nothing")
        .block_on(async { tokio::time::timeout(PATIENCE, stub.until(is_so)).await });
    assert!(waited.is_ok(), "it does not come to it: {:?}", stub.seen());
}
