//! The one thread that writes, and the group commit.

use std::{
    path::Path,
    sync::Arc,
    thread::{self, JoinHandle},
};

use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::{mpsc, oneshot};

use super::{
    error::{Stop, patiently},
    files::Files,
    read,
};
use crate::store::{
    StoreError, StreamId,
    watch::{Hub, Tip},
};

/// How much work may wait, and how much one commit takes.
const QUEUE: usize = 1_024;

/// A handle to the writing thread.
#[derive(Debug)]
pub(super) struct Writer {
    /// `None` only while the store is dropped.
    orders: Option<mpsc::Sender<Order>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread.
    pub(super) fn start(
        connection: Connection,
        path: Arc<Path>,
        files: Arc<Files>,
        hub: Arc<Hub>,
    ) -> Result<Writer, StoreError> {
        let (orders, queue) = mpsc::channel(QUEUE);
        let place = path.to_path_buf();
        let pen = Pen { connection, path, files, hub, seen: None };
        let thread = thread::Builder::new()
            .name("folkmoot-store".to_owned())
            .spawn(move || pen.write(queue))
            .map_err(|source| StoreError::Io { path: place, source: Arc::new(source) })?;
        Ok(Writer { orders: Some(orders), thread: Some(thread) })
    }

    /// Lets its holder have the thread look at what others wrote; it does not keep the thread alive.
    pub(super) fn looks(&self) -> Looks {
        Looks(self.orders().downgrade())
    }

    fn orders(&self) -> &mpsc::Sender<Order> {
        self.orders.as_ref().expect("the store is not being dropped while it is used")
    }

    /// Has `work` done in a transaction, perhaps together with that of others, and returns when it
    /// is durable. It may be done more than once if the transaction fails; only the last counts.
    pub(super) async fn commit<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnMut(&mut Batch<'_>) -> Result<T, Stop> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let job = Box::new(Task { work, result: None, reply });
        self.orders().send(Order::Write(job)).await.map_err(|_| StoreError::Closed)?;
        answer.await.map_err(|_| StoreError::Closed)?
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            // If it panicked, those who waited were told.
            let _ = thread.join();
        }
    }
}

/// What the thread is told to do.
enum Order {
    Write(Box<dyn Job>),
    /// See whether another connection wrote. The connection that writes is the one to ask: its own
    /// commits are no news to it.
    Look,
}

/// Has the writing thread look at what other connections wrote.
#[derive(Debug)]
pub(super) struct Looks(mpsc::WeakSender<Order>);

impl Looks {
    /// Asks for a look, unless so much waits that one more look would only add to it.
    pub(super) fn ask_for_one(&self) {
        if let Some(orders) = self.0.upgrade() {
            let _ = orders.try_send(Order::Look);
        }
    }
}

/// A transaction under way.
pub(super) struct Batch<'a> {
    /// Where to write.
    pub(super) connection: &'a Connection,
    news: Vec<(StreamId, Tip)>,
}

impl Batch<'_> {
    /// Tells those who watch the stream, once this is durable.
    pub(super) fn tell(&mut self, stream: &StreamId, tip: Tip) {
        self.news.push((stream.clone(), tip));
    }
}

/// Work whose type of result is not known.
trait Job: Send {
    /// Does it and keeps the result; fails only if the whole transaction must be given up.
    fn run(&mut self, batch: &mut Batch<'_>) -> Result<(), Stop>;

    /// Sends off the result, or why there is none.
    fn reply(self: Box<Self>, failure: Option<StoreError>);
}

struct Task<T, F> {
    work: F,
    result: Option<Result<T, StoreError>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> Job for Task<T, F>
where
    T: Send,
    F: FnMut(&mut Batch<'_>) -> Result<T, Stop> + Send,
{
    fn run(&mut self, batch: &mut Batch<'_>) -> Result<(), Stop> {
        self.result = Some(match (self.work)(batch) {
            Ok(value) => Ok(value),
            Err(Stop::Refused(error)) => Err(error),
            Err(failed) => return Err(failed),
        });
        Ok(())
    }

    fn reply(self: Box<Self>, failure: Option<StoreError>) {
        let result = match failure {
            Some(error) => Err(error),
            None => self.result.expect("a transaction is committed after all of its work"),
        };
        // Who asked may have stopped waiting.
        let _ = self.reply.send(result);
    }
}

/// What the thread has.
struct Pen {
    connection: Connection,
    path: Arc<Path>,
    files: Arc<Files>,
    hub: Arc<Hub>,
    /// The version of the file at the last look.
    seen: Option<i64>,
}

impl Pen {
    fn write(mut self, mut queue: mpsc::Receiver<Order>) {
        let mut orders = Vec::new();
        while queue.blocking_recv_many(&mut orders, QUEUE) > 0 {
            let (mut jobs, mut looks) = (Vec::with_capacity(orders.len()), false);
            for order in orders.drain(..) {
                match order {
                    Order::Write(job) => jobs.push(job),
                    Order::Look => looks = true,
                }
            }
            if !jobs.is_empty() {
                self.commit(jobs);
            }
            if looks {
                // A failure is not lost: the version stays unseen, and whoever waits for the stream
                // long enough will read, and meet it.
                let _ = self.look();
            }
        }
    }

    /// Publishes how far every stream has come that is watched, if another connection committed.
    fn look(&mut self) -> rusqlite::Result<()> {
        let mut version = self.connection.prepare_cached("PRAGMA data_version")?;
        let version = version.query_row([], |row| row.get(0))?;
        if self.seen != Some(version) {
            for stream in self.hub.watched() {
                self.hub.publish(&stream, read::tip(&self.connection, &stream)?);
            }
            self.seen = Some(version);
        }
        Ok(())
    }

    /// Commits all jobs together; if that fails, each by itself, so that none suffers for another.
    fn commit(&self, mut jobs: Vec<Box<dyn Job>>) {
        match patiently(|| self.attempt(&mut jobs)).map_err(|stop| stop.at(&self.path)) {
            Ok(news) => {
                for (stream, tip) in news {
                    self.hub.publish(&stream, tip);
                }
                for job in jobs {
                    job.reply(None);
                }
            }
            Err(error) if jobs.len() == 1 || concerns_all(&error) => {
                for job in jobs {
                    job.reply(Some(error.clone()));
                }
            }
            Err(_) => {
                for job in jobs {
                    self.commit(vec![job]);
                }
            }
        }
    }

    fn attempt(&self, jobs: &mut [Box<dyn Job>]) -> Result<Vec<(StreamId, Tip)>, Stop> {
        let transaction =
            Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)?;
        let mut batch = Batch { connection: &transaction, news: Vec::new() };
        for job in jobs {
            job.run(&mut batch)?;
        }
        let news = batch.news;
        transaction.commit()?;
        self.files.must_be_there(&self.connection)?;
        Ok(news)
    }
}

/// Whether no job of a batch would have done better alone.
fn concerns_all(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::Busy { .. } | StoreError::ReadOnly { .. } | StoreError::Moved { .. }
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{
        Append,
        sqlite::{open, write},
    };

    fn append(
        name: &str,
        bytes: usize,
    ) -> (Box<dyn Job>, oneshot::Receiver<Result<u64, StoreError>>) {
        let append = Append::new(&name.into(), 0, vec!["x".repeat(bytes).into()]);
        let work = move |batch: &mut Batch<'_>| Ok(write::append(batch, &append)?.seq);
        let (reply, answer) = oneshot::channel();
        (Box::new(Task { work, result: None, reply }), answer)
    }

    /// What becomes of writes that are committed together, on a database that `pragma` restricts.
    fn commit(
        (pragma, value): (&str, u32),
        writes: &[(&str, usize)],
    ) -> Vec<Result<u64, StoreError>> {
        let folder = tempfile::tempdir().expect("there is a temporary folder");
        let path: Arc<Path> = folder.path().join("folkmoot.db").into();
        let connection = open::open(&path).expect("the store opens");
        connection.pragma_update(None, pragma, value).expect("it is a known pragma");
        let files = Files::of(&path).into();
        let pen = Pen { connection, path, files, hub: Arc::default(), seen: None };

        let (jobs, answers): (_, Vec<_>) =
            writes.iter().map(|(name, bytes)| append(name, *bytes)).unzip();
        pen.commit(jobs);
        let answer = |answer: oneshot::Receiver<_>| answer.blocking_recv();
        answers.into_iter().map(|it| answer(it).expect("every job is answered")).collect()
    }

    #[test]
    fn a_write_for_which_there_is_no_room_does_not_fail_those_beside_it() {
        let writes = [("run/1", 10), ("run/2", 1_000_000), ("run/3", 10), ("run/1", 10)];
        let answers = commit(("max_page_count", 100), &writes);

        assert!(matches!(answers[0], Ok(1)), "{answers:?}");
        assert!(matches!(answers[1], Err(StoreError::Full { .. })), "{answers:?}");
        assert!(matches!(answers[2], Ok(1)), "{answers:?}");
        assert!(matches!(answers[3], Err(StoreError::Conflict { .. })), "{answers:?}");
    }

    #[test]
    fn a_file_that_may_not_be_written_says_so_to_all() {
        let answers = commit(("query_only", 1), &[("run/1", 10), ("run/2", 10)]);

        assert_eq!(answers.len(), 2);
        for answer in answers {
            assert!(matches!(answer, Err(StoreError::ReadOnly { .. })), "{answer:?}");
        }
    }

    #[test]
    fn a_file_that_another_program_never_lets_go_is_busy_for_all() {
        let folder = tempfile::tempdir().expect("there is a temporary folder");
        let path: Arc<Path> = folder.path().join("folkmoot.db").into();
        let connection = open::open(&path).expect("the store opens");
        let other = Connection::open(&path).expect("it is a database");
        other.execute_batch("BEGIN IMMEDIATE").expect("nobody writes");
        let files = Files::of(&path).into();
        let pen = Pen { connection, path, files, hub: Arc::default(), seen: None };

        let (jobs, answers): (_, Vec<_>) =
            [append("run/1", 10), append("run/2", 10)].into_iter().unzip();
        pen.commit(jobs);
        for answer in answers {
            let answer = answer.blocking_recv().expect("every job is answered");
            let error = answer.expect_err("there is no room beside the other").to_string();
            assert!(error.contains("has kept it locked for too long"), "{error}");
        }
    }
}
