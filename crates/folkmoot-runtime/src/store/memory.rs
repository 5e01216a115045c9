//! A store that is gone with its process, for tests and rehearsals.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;

use super::{
    Append, Claim, Entry, Head, Owner, Post, Row, Store, StoreError, StreamId, Watch,
    claim::Tenure,
    post,
    watch::{Hub, Tip},
};

/// Streams in memory, with the rules of those on disk.
#[derive(Debug, Default)]
pub struct MemoryStore {
    streams: Mutex<Streams>,
    hub: Arc<Hub>,
}

#[derive(Debug, Default)]
struct Streams {
    created: u64,
    by_name: BTreeMap<StreamId, Stream>,
}

#[derive(Debug)]
struct Stream {
    number: u64,
    head: Head,
    rows: Vec<Row>,
    summary: Option<Arc<str>>,
    tenure: Tenure,
    posts: Vec<Post>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> MemoryStore {
        MemoryStore::default()
    }

    fn lock(&self) -> MutexGuard<'_, Streams> {
        // What can panic comes before the first change, so a panic leaves the streams whole.
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn append(&self, append: Append) -> Result<Head, StoreError> {
        let mut streams = self.lock();
        let found = streams.by_name.get(&append.stream);
        let head = found.map_or_else(|| Head::origin(&append.stream), |found| found.head);
        let tenure = append.admit(head, &streams.tenure(&append.stream))?;

        let stream = streams.open(&append.stream);
        stream.tenure = tenure;
        stream.push(&append);
        self.hub.publish(&append.stream, stream.tip());
        Ok(stream.head)
    }

    async fn read(
        &self,
        stream: &StreamId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Row>, StoreError> {
        let streams = self.lock();
        let rows = streams.by_name.get(stream).map_or(&[][..], |stream| &stream.rows);
        let after = usize::try_from(after).unwrap_or(usize::MAX);
        Ok(rows.iter().skip(after).take(limit).cloned().collect())
    }

    async fn entry(&self, stream: &StreamId) -> Result<Option<Entry>, StoreError> {
        let streams = self.lock();
        let found = streams.by_name.get_key_value(stream);
        Ok(found.filter(|(_, stream)| stream.head.seq > 0).map(entry))
    }

    async fn list(
        &self,
        prefix: &str,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        let streams = self.lock();
        let mut found: Vec<_> = streams
            .by_name
            .range(StreamId::from(prefix)..)
            .take_while(|(name, _)| name.as_str().starts_with(prefix))
            .filter(|(_, stream)| stream.head.seq > 0)
            .filter(|(_, stream)| before.is_none_or(|before| stream.number < before))
            .collect();
        found.sort_by_key(|(_, stream)| std::cmp::Reverse(stream.number));
        Ok(found.into_iter().take(limit).map(entry).collect())
    }

    async fn watch(&self, stream: &StreamId) -> Result<Watch, StoreError> {
        let streams = self.lock();
        let watch = self.hub.subscribe(stream);
        if let Some(found) = streams.by_name.get(stream) {
            self.hub.publish(stream, found.tip());
        }
        Ok(watch.since_now())
    }

    async fn remove(&self, stream: &StreamId) -> Result<(), StoreError> {
        let mut streams = self.lock();
        if let Some(found) = streams.by_name.get(stream) {
            found.tenure.vacate(stream)?;
            streams.by_name.remove(stream);
        }
        Ok(())
    }

    async fn claim(
        &self,
        stream: &StreamId,
        owner: Owner,
        ttl: Duration,
    ) -> Result<Claim, StoreError> {
        let mut streams = self.lock();
        let (tenure, claim) = streams.tenure(stream).claim(stream, &owner, ttl)?;
        streams.open(stream).tenure = tenure;
        Ok(claim)
    }

    async fn renew(&self, claim: &Claim) -> Result<(), StoreError> {
        let mut streams = self.lock();
        let tenure = streams.tenure(&claim.stream).renew(&claim.stream, claim.fence)?;
        streams.open(&claim.stream).tenure = tenure;
        Ok(())
    }

    async fn release(&self, claim: Claim) -> Result<(), StoreError> {
        if let Some(found) = self.lock().by_name.get_mut(&claim.stream) {
            found.tenure.release(claim.fence);
        }
        Ok(())
    }

    async fn post(&self, stream: &StreamId, id: &str, body: &str) -> Result<Post, StoreError> {
        let mut streams = self.lock();
        let found = streams.by_name.get_mut(stream).filter(|stream| stream.head.seq > 0);
        let found = found.ok_or_else(|| StoreError::NotFound { stream: stream.clone() })?;
        if let Some(post) = found.posts.iter().find(|post| &*post.id == id) {
            return post.clone().again(stream, body);
        }
        let tip = found.tip();
        post::admit(stream, body, tip)?;

        let number = tip.posted + 1;
        let post = Post { number, id: id.into(), body: body.into(), outcome: None };
        found.posts.push(post.clone());
        self.hub.publish(stream, found.tip());
        Ok(post)
    }

    async fn pending(&self, stream: &StreamId) -> Result<Vec<Post>, StoreError> {
        let streams = self.lock();
        let posts = streams.by_name.get(stream).map_or(&[][..], |stream| &stream.posts);
        Ok(posts.iter().filter(|post| post.outcome.is_none()).cloned().collect())
    }
}

impl Streams {
    fn tenure(&self, stream: &StreamId) -> Tenure {
        self.by_name.get(stream).map(|found| found.tenure.clone()).unwrap_or_default()
    }

    /// The stream of that name, created if there is none.
    fn open(&mut self, stream: &StreamId) -> &mut Stream {
        self.by_name.entry(stream.clone()).or_insert_with(|| {
            self.created += 1;
            Stream {
                number: self.created,
                head: Head::origin(stream),
                rows: Vec::new(),
                summary: None,
                tenure: Tenure::default(),
                posts: Vec::new(),
            }
        })
    }
}

impl Stream {
    fn push(&mut self, append: &Append) {
        for body in &append.bodies {
            self.head = self.head.next(body);
            let Head { seq, hash } = self.head;
            self.rows.push(Row { seq, body: body.clone(), hash });
        }
        if append.summary.is_some() {
            self.summary.clone_from(&append.summary);
        }
        for (id, outcome) in &append.done {
            let waiting = self.posts.iter_mut().find(|post| post.id == *id);
            if let Some(post) = waiting.filter(|post| post.outcome.is_none()) {
                post.outcome = Some(outcome.clone());
            }
        }
    }

    fn tip(&self) -> Tip {
        let done = self.posts.iter().filter(|post| post.outcome.is_some()).count();
        Tip { seq: self.head.seq, posted: self.posts.len() as u64, done: done as u64 }
    }
}

fn entry((name, stream): (&StreamId, &Stream)) -> Entry {
    Entry {
        number: stream.number,
        stream: name.clone(),
        head: stream.head,
        summary: stream.summary.clone(),
        owner: stream.tenure.owner(),
    }
}
