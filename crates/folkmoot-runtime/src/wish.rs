//! What people want of a run, whoever drives it: carried out here if nobody does, else left for the
//! driver, who takes it once.

use std::{sync::Arc, time::Duration};

use folkmoot_core::{
    call::{Answer, Usage},
    event::{Event, Record, Settled},
    key::Key,
    run::Run,
    spec::Spec,
};
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use crate::{
    engine::{Engine, EngineError, Loaded, RunId},
    store::{Append, Claim},
    summary::Summary,
};

/// How long a driver is waited for before the run is claimed in its place.
const ANSWER: Duration = Duration::from_millis(500);

/// What someone else wants of a run that this or another process drives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "wish")]
pub(crate) enum Wish {
    Cancel,
    /// Another text in place of the answer to a call.
    Amend {
        key: Key,
        text: Arc<str>,
    },
    /// What a person says to a question.
    Answer {
        key: Key,
        text: Arc<str>,
    },
}

impl Wish {
    /// Reads a wish; what a newer program posted and this one does not know changes nothing.
    pub(crate) fn read(body: &str) -> Option<Wish> {
        serde_json::from_str(body).ok()
    }

    /// What it means for a run that has come so far; nothing if it comes too late.
    pub(crate) fn events(self, spec: &Spec, run: &Run) -> Vec<Event> {
        if run.ending().is_some() {
            return Vec::new();
        }
        match self {
            Wish::Cancel => vec![Event::CancelRequested],
            Wish::Amend { key, text } if run.known().get(key.as_str()).is_some() => {
                run.amendment(spec, &key, text)
            }
            Wish::Amend { .. } => Vec::new(),
            Wish::Answer { key, text } => {
                let open = run.known().questions().find(|(it, _)| **it == key);
                let answered = open.map(|(_, entry)| Event::Answered {
                    key,
                    attempt: entry.attempt,
                    settled: Settled::Answer(Answer::text(text).into()),
                    usage: Usage::default(),
                });
                answered.into_iter().collect()
            }
        }
    }
}

/// What became of a wish.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Granted {
    /// Whether it led to anything.
    pub(crate) taken: bool,
}

impl Granted {
    pub(crate) fn to_json(self) -> String {
        serde_json::to_string(&self).expect("it is plain data")
    }

    fn read(outcome: &str) -> Granted {
        serde_json::from_str(outcome).unwrap_or(Granted { taken: false })
    }
}

impl Engine {
    /// Cancels a run, whoever drives it; gives false if it had ended already.
    pub async fn cancel(&self, id: &RunId) -> Result<bool, EngineError> {
        self.grant(id, &Wish::Cancel).await
    }

    /// Answers the open question `key` of a run, whoever drives it; what follows is asked at once, or when
    /// the run is resumed. Gives false if it is not open any longer.
    pub async fn answer(&self, id: &RunId, key: &Key, text: Arc<str>) -> Result<bool, EngineError> {
        self.grant(id, &Wish::Answer { key: key.clone(), text }).await
    }

    /// Puts `text` in place of the answer to `key` of a run that has not ended, whoever drives it.
    /// Gives the calls that were made from the answer: they are asked again, if they are still
    /// wanted, at once or when the run is resumed.
    pub async fn amend(
        &self,
        id: &RunId,
        key: &Key,
        text: Arc<str>,
    ) -> Result<Vec<Key>, EngineError> {
        let loaded = self.load(id).await?;
        loaded.call(key.as_str())?;
        let wish = Wish::Amend { key: key.clone(), text };
        if loaded.run.ending().is_some() || !self.grant(id, &wish).await? {
            return Err(EngineError::Ended(id.clone()));
        }
        let records = self.load(id).await?.records;
        let is_it = |it: &Record| matches!(&it.event, Event::Amended { key: amended, .. } if amended == key);
        let until = records.iter().rposition(is_it).map_or(records.len(), |at| at + 1);
        let run = Run::fold(&records[..until]);
        Ok(run.known().made_from(key).into_iter().cloned().collect())
    }

    /// Has a wish carried out, by whoever drives the run or here; false if it came too late.
    async fn grant(&self, id: &RunId, wish: &Wish) -> Result<bool, EngineError> {
        let name = RunId::random();
        loop {
            match self.claim(id).await {
                Ok(claim) => {
                    let granted = self.grant_here(id, &claim, name.as_str(), wish).await;
                    self.store().release(claim).await?;
                    return granted;
                }
                Err(EngineError::Owned { .. }) => {
                    // The driver may leave without taking it, and then the claim can be had.
                    let granted = self.ask_driver(id, name.as_str(), wish);
                    if let Ok(granted) = timeout(ANSWER, granted).await {
                        return granted;
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Nobody drives the run: it ends in a single append, or is left as it is to be resumed.
    async fn grant_here(
        &self,
        id: &RunId,
        claim: &Claim,
        name: &str,
        wish: &Wish,
    ) -> Result<bool, EngineError> {
        let Loaded { spec, mut run, .. } = self.load(id).await?;
        let (after, at) = (run.seq(), run.at());
        let events = wish.clone().events(&spec, &run);
        let granted = Granted { taken: !events.is_empty() };
        let records = match wish {
            Wish::Cancel => run.step(spec.program(), &spec, events, at).records,
            // What follows is asked by whoever resumes it, and by nobody before.
            Wish::Amend { .. } | Wish::Answer { .. } => run.note(events),
        };
        let bodies = records.iter().map(|record| record.to_json().into()).collect();
        // It may have been left for a driver that went away.
        let mut append = Append::under(claim, after, bodies).done(name, granted.to_json());
        if run.ending().is_some() {
            append = append.summary(Summary::of(&spec, &run).to_json());
        }
        self.store().append(append).await?;
        Ok(granted.taken)
    }

    /// Leaves a wish for the process that drives the run, and waits until it has taken it. However
    /// often it is left under the same name, it is taken once.
    async fn ask_driver(&self, id: &RunId, name: &str, wish: &Wish) -> Result<bool, EngineError> {
        let stream = id.stream();
        let body = serde_json::to_string(wish).expect("a wish is plain data");
        let mut watch = self.store().watch(&stream).await?;
        loop {
            if let Some(outcome) = self.store().post(&stream, name, &body).await?.outcome {
                return Ok(Granted::read(&outcome).taken);
            }
            watch.changed().await;
        }
    }
}
