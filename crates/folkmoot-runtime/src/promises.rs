//! What was promised to a caller and must be kept whatever happens to the process: the run that a
//! repeated request means, and the runs that somebody has to go on with.
//!
//! Both are streams beside those of the runs. A run is promised before it begins, so that a crash in
//! between leaves a promise without a run, and never a run that nobody knows of.

use serde::{Deserialize, Serialize};

use crate::{
    engine::{Engine, EngineError, RunId},
    store::{Append, StoreError, StreamId},
};

/// Streams of keys of requests begin with this.
const ONCE: &str = "once/";

/// Streams of runs that are owed begin with this.
const OWED: &str = "owed/";

/// How many runs that are owed are looked at.
const MOST_OWED: usize = 10_000;

/// What the key of a request stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Promise {
    /// Nothing yet; from now on for this run, which is to be made.
    New(RunId),
    /// This run, which may not have been made.
    Made(RunId),
    /// Another request.
    Taken,
}

/// The only row of a stream of a key.
#[derive(Serialize, Deserialize)]
struct Kept {
    /// The hash of the request.
    request: String,
    run: String,
}

impl Engine {
    /// What a caller's `key` stands for, and from now on does, so that a `request` that is sent again
    /// makes no second run. `caller` tells apart whose key it is.
    pub async fn promise(
        &self,
        caller: &str,
        key: &str,
        request: &str,
    ) -> Result<Promise, EngineError> {
        let run = RunId::random();
        let kept = Kept { request: hash(request), run: run.to_string() };
        let body = serde_json::to_string(&kept).expect("it is plain data").into();
        match self.store().append(Append::new(&once(caller, key), 0, vec![body])).await {
            Ok(_) => Ok(Promise::New(run)),
            Err(StoreError::Conflict { .. }) => {
                Ok(self.promised(caller, key, request).await?.unwrap_or(Promise::Taken))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// What a caller's `key` stands for by now.
    pub async fn promised(
        &self,
        caller: &str,
        key: &str,
        request: &str,
    ) -> Result<Option<Promise>, EngineError> {
        let rows = self.store().read(&once(caller, key), 0, 1).await?;
        let kept = rows.first().map(|row| serde_json::from_str::<Kept>(&row.body));
        Ok(kept.map(|kept| match kept {
            Ok(kept) if kept.request == hash(request) => Promise::Made(RunId::parse(&kept.run)),
            Ok(_) | Err(_) => Promise::Taken,
        }))
    }

    /// Notes that somebody has to go on with a run until it ends or asks a person.
    pub async fn owe(&self, id: &RunId) -> Result<(), EngineError> {
        match self.store().append(Append::new(&owed(id), 0, vec!["{}".into()])).await {
            Ok(_) | Err(StoreError::Conflict { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Notes that a run is owed no longer.
    pub async fn settle(&self, id: &RunId) -> Result<(), EngineError> {
        match self.store().remove(&owed(id)).await {
            Ok(()) | Err(StoreError::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The runs that are owed, those first that were promised first.
    pub async fn owed(&self) -> Result<Vec<RunId>, EngineError> {
        let entries = self.store().list(OWED, None, MOST_OWED).await?;
        let runs = entries.iter().rev().filter_map(|it| it.stream.as_str().strip_prefix(OWED));
        Ok(runs.map(RunId::parse).collect())
    }
}

fn once(caller: &str, key: &str) -> StreamId {
    format!("{ONCE}{}", hash(&format!("{caller}\n{key}"))).into()
}

fn hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

fn owed(id: &RunId) -> StreamId {
    format!("{OWED}{id}").into()
}
