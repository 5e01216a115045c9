//! A program that serves until it is told to end: somebody else speaks with it.

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

/// A program that serves. Dropping it ends it with all that it has started.
#[derive(Debug)]
pub(crate) struct Serving {
    tree: Tree,
    ended: watch::Receiver<Option<Exit>>,
    stderr: Arc<Mutex<Excerpt>>,
    reading: JoinHandle<()>,
    _scratch: TempDir,
}

impl Serving {
    /// Starts a program; gives what speaks with it too. Its `time` is not looked at; of its error output
    /// the end is kept.
    ///
    /// # Errors
    /// It cannot be started; with the kind `Unsupported` because its level cannot be enforced here.
    pub(crate) async fn begin(
        process: &Process<'_>,
    ) -> io::Result<(Serving, ChildStdin, ChildStdout)> {
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
        Ok((Serving { tree, ended, stderr, reading, _scratch: scratch }, stdin, stdout))
    }

    /// Tells how it ended, once it has.
    pub(crate) fn ended(&self) -> watch::Receiver<Option<Exit>> {
        self.ended.clone()
    }

    /// What it wrote on its error output.
    pub(crate) fn errors(&self) -> String {
        self.stderr.lock().unwrap_or_else(PoisonError::into_inner).text()
    }

    /// Ends it, now that nobody writes to it any longer: it is let end by itself, then asked to, then
    /// killed with whatever is left of all that it has started (rules.md 6.8).
    pub(crate) async fn end(mut self) {
        if !self.is_over_within(GRACE).await {
            self.tree.ask_to_end();
            self.is_over_within(GRACE).await;
        }
        let Serving { tree, mut ended, mut reading, .. } = self;
        drop(tree);
        let _ = timeout(TRAILING, ended.wait_for(Option::is_some)).await;
        let _ = timeout(TRAILING, &mut reading).await;
    }

    async fn is_over_within(&mut self, time: Duration) -> bool {
        timeout(time, self.ended.wait_for(Option::is_some)).await.is_ok()
    }
}
