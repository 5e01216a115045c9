//! A program under way whose pipes somebody holds.

use std::{
    io,
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tempfile::TempDir;
use tokio::{
    process::{ChildStdin, ChildStdout},
    sync::watch,
    task::JoinHandle,
    time::timeout,
};

use super::{
    Exit, Process, TRAILING, exit,
    output::{Excerpt, read},
    tree::Tree,
};

/// How long a program may take to end after its input has, and again after it was asked to.
const GRACE: Duration = Duration::from_millis(500);

/// A program under way. Dropping it ends it with all that it has started.
#[derive(Debug)]
pub(crate) struct Running {
    tree: Tree,
    ended: watch::Receiver<Option<Exit>>,
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
        let (tell, ended) = watch::channel(None);
        // It is waited for as long as it runs, so that its end is known at once and it is reaped.
        tokio::spawn(async move {
            let status = child.wait().await;
            tell.send_replace(Some(status.map_or(Exit::Killed(None), exit)));
        });
        Ok((Running { tree, ended, stderr, reading, _scratch: scratch }, stdin, stdout))
    }

    /// Tells how it ended, once it has.
    pub(crate) fn ended(&self) -> watch::Receiver<Option<Exit>> {
        self.ended.clone()
    }

    /// How it ended, if it does so within this time.
    pub(crate) async fn ended_within(&self, time: Duration) -> Option<Exit> {
        let mut ended = self.ended();
        let ended = timeout(time, ended.wait_for(Option::is_some)).await;
        ended.ok()?.ok().and_then(|exit| *exit)
    }

    /// How it ended, now that its output has.
    pub(super) async fn end(&self) -> Exit {
        self.ended_within(TRAILING).await.unwrap_or(Exit::Killed(None))
    }

    /// What it wrote on its error output.
    pub(crate) fn errors(&self) -> String {
        self.stderr.lock().unwrap_or_else(PoisonError::into_inner).text()
    }

    /// Ends it; gives what it wrote on its error output.
    pub(crate) async fn stop(self) -> String {
        let Running { tree, stderr, mut reading, .. } = self;
        drop(tree);
        let _ = timeout(TRAILING, &mut reading).await;
        stderr.lock().unwrap_or_else(PoisonError::into_inner).text()
    }

    /// Ends it, now that nobody writes to it any longer: it is let end by itself, then asked to, then
    /// killed with whatever is left of all that it has started (rules.md 6.8).
    pub(crate) async fn wind_down(self) {
        if self.ended_within(GRACE).await.is_none() {
            self.tree.ask_to_end();
            self.ended_within(GRACE).await;
        }
        let mut ended = self.ended();
        self.stop().await;
        let _ = timeout(TRAILING, ended.wait_for(Option::is_some)).await;
    }
}
