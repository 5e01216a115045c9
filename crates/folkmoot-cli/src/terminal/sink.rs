//! The one place where output leaves the process.

use std::{
    io::{self, BufWriter, Write},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread::{self, JoinHandle},
};

use folkmoot_agents::Secrets;

/// How many bytes may wait before what can be had elsewhere is left out.
const BACKLOG: usize = 1 << 20;

/// Standard output or standard error, written to by a thread of its own: a reader that is slow, or
/// does not read at all, never holds up the run.
///
/// Once nobody reads any longer, what is written is dropped and nobody is told; any other failure
/// is [`Sink::close`]'s to report. Known secrets are masked.
#[derive(Debug)]
pub(crate) struct Sink {
    secrets: Secrets,
    queue: Mutex<Option<Queue>>,
    waiting: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct Queue {
    texts: mpsc::Sender<String>,
    writer: JoinHandle<io::Result<()>>,
}

impl Sink {
    /// Writes to standard output.
    pub(crate) fn stdout(secrets: Secrets) -> Sink {
        Sink::new(io::stdout(), secrets)
    }

    /// Writes to standard error.
    pub(crate) fn stderr(secrets: Secrets) -> Sink {
        Sink::new(io::stderr(), secrets)
    }

    /// Writes to `to`.
    pub(crate) fn new(to: impl Write + Send + 'static, secrets: Secrets) -> Sink {
        let (texts, queue) = mpsc::channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let written = waiting.clone();
        let writer = thread::spawn(move || write(&queue, BufWriter::new(to), &written));
        Sink { secrets, queue: Mutex::new(Some(Queue { texts, writer })), waiting }
    }

    /// What is masked.
    pub(crate) fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// Writes a text, with a line feed behind it unless it ends in one; nothing is written for none.
    pub(crate) fn put(&self, text: &str) {
        if text.is_empty() {
            return;
        }
        let mut text = self.secrets.mask(text).into_owned();
        if !text.ends_with('\n') {
            text.push('\n');
        }
        self.waiting.fetch_add(text.len(), Ordering::Relaxed);
        if let Some(queue) = &*self.queue.lock().unwrap_or_else(PoisonError::into_inner) {
            // The writer is gone when there is nothing to write to; `close` says why.
            let _ = queue.texts.send(text);
        }
    }

    /// Whether so much waits to be written that what can be had elsewhere should be left out.
    pub(crate) fn is_behind(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > BACKLOG
    }

    /// Waits until everything is written. Fails if some of it could not be, unless that was because
    /// nobody reads any longer.
    pub(crate) fn close(&self) -> io::Result<()> {
        match self.end() {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            ended => ended,
        }
    }

    /// The same, but fails too if nobody reads any longer.
    pub(crate) fn end(&self) -> io::Result<()> {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Queue { texts, writer }) = queue else { return Ok(()) };
        drop(texts);
        let panicked = || Err(io::Error::other("the thread that writes output panicked"));
        writer.join().unwrap_or_else(|_| panicked())
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        // Who cares whether it worked calls `close`.
        let _ = self.close();
    }
}

fn write(
    texts: &mpsc::Receiver<String>,
    mut to: impl Write,
    waiting: &AtomicUsize,
) -> io::Result<()> {
    while let Ok(first) = texts.recv() {
        for text in [first].into_iter().chain(texts.try_iter()) {
            to.write_all(text.as_bytes())?;
            waiting.fetch_sub(text.len(), Ordering::Relaxed);
        }
        to.flush()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::testing::Written;

    /// A writer that takes no more than a few bytes.
    struct Full(io::ErrorKind, usize);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let Full(error, room) = self;
            if *room == 0 {
                return Err((*error).into());
            }
            let taken = bytes.len().min(*room);
            *room -= taken;
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn everything_is_written_in_order_and_secrets_are_not() {
        let written = Written::default();
        let sink = Sink::new(written.clone(), Secrets::new(["sk-secret"]));
        sink.put("one");
        sink.put("");
        sink.put("two sk-secret\n");
        sink.close().expect("memory takes everything");
        sink.put("too late");
        assert_eq!(written.text(), "one\ntwo ***\n");
    }

    #[test]
    fn a_reader_that_is_gone_is_no_failure_and_a_full_disk_is() {
        let gone = Sink::new(Full(io::ErrorKind::BrokenPipe, 5), Secrets::default());
        let full = Sink::new(Full(io::ErrorKind::StorageFull, 5), Secrets::default());
        for n in 0..100 {
            gone.put(&format!("line {n}"));
            full.put(&format!("line {n}"));
        }
        gone.close().expect("nobody wants to read it");
        let error = full.close().expect_err("somebody wanted to read it");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn a_reader_that_does_not_read_holds_nobody_up() {
        let (reader, writer) = io::pipe().expect("a pipe");
        let sink = Sink::new(writer, Secrets::default());
        let line = "x".repeat(4096);
        for _ in 0..1024 {
            sink.put(&line);
        }
        assert!(sink.is_behind());
        drop(reader);
        sink.close().expect("nobody wants to read it");
    }
}
