//! A program under way whose pipes somebody holds.

use std::{
    io,
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tempfile::TempDir;
use tokio::{
    process::{Child, ChildStdin, ChildStdout},
    task::JoinHandle,
    time::timeout,
};

use super::{
    Exit, Process, TRAILING, exit,
    output::{Excerpt, read},
    tree::Tree,
};

/// A program under way. Dropping it ends it with all that it has started.
#[derive(Debug)]
pub(crate) struct Running {
    _tree: Tree,
    child: Child,
    stderr: Arc<Mutex<Excerpt>>,
    reading: JoinHandle<()>,
    _scratch: TempDir,
}

impl Running {
    /// Starts a program; gives it with its pipes. Its `time` is not looked at; of its error output the
    /// end is kept.
    ///
    /// # Errors
    /// It cannot be started; with the kind `Unsupported` because its level cannot be enforced here.
    pub(crate) async fn begin(
        process: &Process<'_>,
    ) -> io::Result<(Running, ChildStdin, ChildStdout)> {
        let scratch = tempfile::tempdir()?;
        let (mut child, tree) = process.start(scratch.path(), Stdio::piped).await?;
        let pipes = (child.stdin.take(), child.stdout.take());
        let (Some(stdin), Some(stdout)) = pipes else {
            return Err(io::Error::other("it has no pipes"));
        };
        let stderr = Arc::new(Mutex::new(Excerpt::new(process.kept.0, process.kept.1)));
        let (errors, into) = (child.stderr.take(), stderr.clone());
        let reading = tokio::spawn(async move { read(errors, &into).await });
        let running = Running { _tree: tree, child, stderr, reading, _scratch: scratch };
        Ok((running, stdin, stdout))
    }

    /// How it ended, if it does so within this time.
    pub(crate) async fn ended_within(&mut self, time: Duration) -> Option<Exit> {
        let status = timeout(time, self.child.wait()).await.ok()?;
        Some(status.map_or(Exit::Killed(None), exit))
    }

    /// How it ended, now that its output has.
    pub(super) async fn end(&mut self) -> Exit {
        self.ended_within(TRAILING).await.unwrap_or(Exit::Killed(None))
    }

    /// Ends it; gives what it wrote on its error output.
    pub(crate) async fn stop(self) -> String {
        let Running { _tree: tree, stderr, mut reading, .. } = self;
        drop(tree);
        let _ = timeout(TRAILING, &mut reading).await;
        stderr.lock().unwrap_or_else(PoisonError::into_inner).text()
    }
}
