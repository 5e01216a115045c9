//! A program that goes on running and is talked to in lines: one is said to it, one comes back.

use std::io;

use futures_util::{FutureExt, future::FusedFuture};
use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::{ChildStdin, ChildStdout},
    time::{Instant, timeout_at},
};

use super::{Exit, Process, Running};

/// The longest line, in bytes.
pub(crate) const LONGEST_LINE: usize = 1 << 20;

/// A program under way. Dropping it ends it with all that it has started.
#[derive(Debug)]
pub(crate) struct Talk {
    running: Running,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    has_been_asked: bool,
    /// Whether it has read all that it was told.
    has_listened: bool,
}

/// Why no line came back.
#[derive(Debug)]
pub(crate) enum Silence {
    /// It has ended.
    Ended(Exit),
    /// It takes too long.
    TooSlow,
    /// Its line is too long.
    TooLong,
    /// Its line is no UTF-8.
    NoText,
    /// It said something without being asked, or more than one line.
    Unasked,
}

impl Talk {
    /// Starts a program. Its `time` is not looked at; of its error output the end is kept.
    ///
    /// # Errors
    /// It cannot be started; with the kind `Unsupported` because its level cannot be enforced here.
    pub(crate) async fn begin(process: &Process<'_>) -> io::Result<Talk> {
        let (running, stdin, stdout) = Running::begin(process).await?;
        let stdout = BufReader::new(stdout);
        Ok(Talk { running, stdin, stdout, has_been_asked: false, has_listened: true })
    }

    /// Says a line, and waits until then for the one that comes back.
    pub(crate) async fn say(&mut self, line: &str, until: Instant) -> Result<String, Silence> {
        // One that was just started may have begun to answer what it is bound to be asked.
        if std::mem::replace(&mut self.has_been_asked, true) {
            match self.stdout.fill_buf().now_or_never() {
                None => {}
                Some(Ok(unasked)) if !unasked.is_empty() => return Err(Silence::Unasked),
                Some(Ok(_) | Err(_)) => return Err(Silence::Ended(self.running.end().await)),
            }
        }
        let line = format!("{line}\n");
        let heard = {
            // Whoever reads nothing may answer all the same, so what is said is not waited for.
            let writing = self.stdin.write_all(line.as_bytes()).fuse();
            let hearing = hear(&mut self.stdout);
            tokio::pin!(writing, hearing);
            let heard = timeout_at(until, async {
                tokio::select! {
                    biased;
                    heard = &mut hearing => heard,
                    _ = &mut writing => hearing.await,
                }
            });
            let heard = heard.await.unwrap_or(Heard::Nothing);
            if !writing.is_terminated() {
                let _ = writing.as_mut().now_or_never();
            }
            self.has_listened = writing.is_terminated();
            heard
        };
        match heard {
            Heard::Line(line) => String::from_utf8(line).map_err(|_| Silence::NoText),
            Heard::TooLong => Err(Silence::TooLong),
            Heard::Nothing => Err(Silence::TooSlow),
            Heard::End => Err(Silence::Ended(self.running.end().await)),
        }
    }

    /// Whether it can be told more: what it did not read of what it was told would stand in the way.
    pub(crate) fn has_listened(&self) -> bool {
        self.has_listened
    }

    /// Ends it; gives what it wrote on its error output.
    pub(crate) async fn stop(self) -> String {
        self.running.stop().await
    }
}

/// What comes of waiting for a line.
enum Heard {
    Line(Vec<u8>),
    TooLong,
    /// Not yet.
    Nothing,
    End,
}

/// Reads a line without its end; one that the end of the stream cuts off counts too.
async fn hear(stream: &mut (impl AsyncBufRead + Unpin)) -> Heard {
    let mut line = Vec::new();
    loop {
        let Ok(buffer) = stream.fill_buf().await else { return Heard::End };
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let count = end.unwrap_or(buffer.len());
        if line.len() + count > LONGEST_LINE {
            return Heard::TooLong;
        }
        let is_over = buffer.is_empty();
        line.extend_from_slice(&buffer[..count]);
        stream.consume(count + usize::from(end.is_some()));
        if end.is_some() || (is_over && !line.is_empty()) {
            return Heard::Line(line);
        }
        if is_over {
            return Heard::End;
        }
    }
}
