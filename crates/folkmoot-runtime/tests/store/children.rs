//! Processes that do a part in a test.
//!
//! A child is this test binary again, told to run one test only; the test looks at its part first.

use std::{
    io::{BufRead, BufReader, Lines, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio},
};

const PART: &str = "FOLKMOOT_TEST_PART";
const STORE: &str = "FOLKMOOT_TEST_STORE";

/// Marks what a child says among what the test harness prints.
const MARK: &str = "> ";

/// What this process is to do, if it is a child.
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) store: PathBuf,
}

impl Part {
    pub(crate) fn of_this_process() -> Option<Part> {
        Some(Part { name: std::env::var(PART).ok()?, store: std::env::var_os(STORE)?.into() })
    }
}

/// Says one line to the parent.
pub(crate) fn say(line: impl std::fmt::Display) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n{MARK}{line}").and_then(|()| out.flush()).expect("the parent listens");
}

/// Waits for one line from the parent.
pub(crate) fn hear() -> String {
    std::io::stdin().lines().next().expect("the parent speaks").expect("it speaks UTF-8")
}

/// A child that is killed if it is forgotten.
pub(crate) struct Process {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Process {
    /// Starts a child that does `part` of the test `test` with the store at `store`.
    pub(crate) fn start(test: &str, part: &str, store: &Path) -> Process {
        let mut child = Command::new(std::env::current_exe().expect("this is a program"))
            .args(["--exact", test, "--nocapture"])
            .env(PART, part)
            .env(STORE, store)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts a second time");
        let input = child.stdin.take().expect("it was asked for");
        let output = BufReader::new(child.stdout.take().expect("it was asked for")).lines();
        Process { child, input, output }
    }

    /// The next line that the child says; `None` when it has ended.
    pub(crate) fn says(&mut self) -> Option<String> {
        self.output
            .by_ref()
            .map(|line| line.expect("it speaks UTF-8"))
            .find_map(|line| line.strip_prefix(MARK).map(str::to_owned))
    }

    /// Tells the child one line.
    pub(crate) fn tell(&mut self, line: &str) {
        writeln!(self.input, "{line}").expect("it listens");
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it is ours");
        self.child.wait().expect("it was killed");
    }

    pub(crate) fn wait(mut self) -> ExitStatus {
        self.child.wait().expect("it ends")
    }

    #[cfg(unix)]
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let id = i32::try_from(self.child.id()).expect("ids are small");
        let id = rustix::process::Pid::from_raw(id).expect("and not 0");
        rustix::process::kill_process(id, signal).expect("it is ours");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended long ago.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
