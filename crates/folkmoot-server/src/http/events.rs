//! A run's log as server-sent events: each record once and in order, whoever drives the run
//! (server.md §2, rules.md 9.1, 9.2).

use std::{collections::VecDeque, convert::Infallible, sync::Arc, time::Duration};

use axum::{
    extract::{Path, State},
    http::{HeaderMap, HeaderName},
    response::{IntoResponse, Response, Sse, sse},
};
use folkmoot_core::{
    event::{Event, Record},
    refusal::Refusal,
    view,
};
use folkmoot_runtime::{
    engine::{Engine, RunId, Watcher},
    stream::Line,
};
use futures_util::stream;
use serde::Deserialize;
use tokio::sync::broadcast::{
    self,
    error::{RecvError, TryRecvError},
};
use utoipa::IntoParams;

use super::{Masks, Server, feed::Scrap, problem::Problem, reading::Asked};

/// How often something is said, so that nobody in between takes the connection for dead.
const BEAT: Duration = Duration::from_secs(15);

/// What a client that comes back says it has seen.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Behind which event the stream begins.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Behind {
    /// The number of the last event that was seen; the header `Last-Event-ID` wins over it
    after: Option<u64>,
}

/// The events of a run: its records, each with its number as `id`, what its calls say meanwhile, and
/// last its result.
#[utoipa::path(
    get,
    path = "/v1/runs/{id}/events",
    tag = "runs",
    params(("id" = String, Path, description = "The run"), Behind),
    responses((status = 200, content_type = "text/event-stream", description = "The lines of `stream-json`"))
)]
pub(super) async fn events(
    State(server): State<Server>,
    Path(id): Path<String>,
    Asked(behind): Asked<Behind>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let after = match headers.get(LAST_EVENT_ID).map(|id| id.to_str().map(str::parse)) {
        None => behind.after.unwrap_or_default(),
        Some(Ok(Ok(id))) => id,
        Some(_) => {
            let message = "Last-Event-ID is no number of an event";
            return Err(Refusal::new("unknown_event", message).into());
        }
    };
    let engine = server.hall.office().engine().clone();
    let id = engine.find(&id).await.map_err(Refusal::from)?;
    let follower = Follower::begin(&server, engine, id, after).await?;
    let events = stream::unfold(follower, async |mut follower| {
        let event = follower.next().await?;
        Some((Ok::<_, Infallible>(event), follower))
    });
    Ok(Sse::new(events).keep_alive(sse::KeepAlive::new().interval(BEAT)).into_response())
}

/// Somebody who follows a run. However slowly it reads, it holds a page of records and a bounded number
/// of pieces.
struct Follower {
    engine: Engine,
    id: RunId,
    masks: Arc<dyn Masks>,
    watcher: Watcher,
    scraps: broadcast::Receiver<Scrap>,
    /// Of calls that were asked before this record pieces are missing, so no more of them are told.
    whole_since: u64,
    /// The number of the last record that was told.
    told: u64,
    /// Whether that may have been the last one of all.
    may_have_ended: bool,
    waiting: VecDeque<sse::Event>,
    is_over: bool,
}

impl Follower {
    async fn begin(
        server: &Server,
        engine: Engine,
        id: RunId,
        after: u64,
    ) -> Result<Follower, Refusal> {
        let scraps = server.feeds.follow(&id);
        let watcher = engine.watch(&id, after).await?;
        let run = engine.load(&id).await?.run;
        if after > run.seq() {
            let message = format!("run {id} has no event {after}; its last is {}", run.seq());
            return Err(Refusal::new("unknown_event", message));
        }
        Ok(Follower {
            engine,
            id,
            masks: server.masks.clone(),
            watcher,
            scraps,
            whole_since: 0,
            told: after,
            may_have_ended: run.ending().is_some() && after == run.seq(),
            waiting: VecDeque::new(),
            is_over: false,
        })
    }

    /// The next event; nothing behind the last.
    async fn next(&mut self) -> Option<sse::Event> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Some(event);
            }
            if self.is_over {
                return None;
            }
            // What cannot be read any longer ends the stream: whoever comes back is told why.
            self.go_on().await.ok()?;
        }
    }

    async fn go_on(&mut self) -> Result<(), Refusal> {
        if std::mem::take(&mut self.may_have_ended) && self.ended().await? {
            return Ok(());
        }
        tokio::select! {
            biased;
            records = self.watcher.next() => {
                let records = records?;
                // All that the calls said before they were answered is there by now.
                self.merge(records);
            }
            scrap = self.scraps.recv() => match scrap {
                // Its call is recorded already, but not told yet: the records come first.
                Ok(scrap) if scrap.asked > self.told => {
                    let records = self.watcher.next().await?;
                    self.merge_with(records, Some(scrap));
                }
                Ok(scrap) => self.say(&scrap),
                Err(RecvError::Lagged(_)) => self.whole_since = u64::MAX,
                Err(RecvError::Closed) => self.is_over = true,
            },
        }
        Ok(())
    }

    /// Tells records, and between them what was said meanwhile: the pieces of a call stand behind the
    /// record that asked it and before the one that answered it.
    fn merge(&mut self, records: Vec<Record>) {
        self.merge_with(records, None);
    }

    fn merge_with(&mut self, records: Vec<Record>, first: Option<Scrap>) {
        let mut records = records.into_iter().peekable();
        let mut scrap = first;
        loop {
            let next = match scrap.take() {
                Some(scrap) => Ok(scrap),
                None => self.scraps.try_recv(),
            };
            match next {
                Ok(scrap) => {
                    while let Some(record) = records.next_if(|record| record.seq <= scrap.asked) {
                        self.tell(&record);
                    }
                    self.say(&scrap);
                }
                Err(TryRecvError::Lagged(_)) => self.whole_since = u64::MAX,
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
        for record in records {
            self.tell(&record);
        }
        if self.whole_since == u64::MAX {
            self.whole_since = self.told + 1;
        }
    }

    fn tell(&mut self, record: &Record) {
        let line = Line::record(self.id.as_str(), record).to_json();
        let event = self.event("record", &line).id(record.seq.to_string());
        self.waiting.push_back(event);
        self.told = record.seq;
        self.may_have_ended = matches!(record.event, Event::Ended { .. });
    }

    fn say(&mut self, scrap: &Scrap) {
        if scrap.asked > self.told {
            // Far behind: the record of its call comes later than its pieces do.
            self.whole_since = self.whole_since.max(scrap.asked.saturating_add(1));
        } else if scrap.asked >= self.whole_since {
            let event = sse::Event::default().event("delta").data(&*scrap.line);
            self.waiting.push_back(event);
        }
    }

    /// Tells the result if the run has ended.
    async fn ended(&mut self) -> Result<bool, Refusal> {
        let loaded = self.engine.load(&self.id).await?;
        if loaded.run.ending().is_none() || loaded.run.seq() > self.told {
            return Ok(false);
        }
        let outcome = view::outcome(self.id.as_str(), &loaded.spec, &loaded.run, false);
        let event = self.event("result", &Line::Result(&outcome).to_json());
        self.waiting.push_back(event);
        self.is_over = true;
        Ok(true)
    }

    fn event(&self, kind: &str, line: &str) -> sse::Event {
        sse::Event::default().event(kind).data(&*self.masks.mask(line))
    }
}
