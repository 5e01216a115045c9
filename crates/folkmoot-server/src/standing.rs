//! How runs stand, and what people say to them.

use folkmoot_core::{
    refusal::Refusal,
    view::{self, Status},
};
use folkmoot_runtime::{
    engine::{EngineError, RunId},
    questions, told,
};
use serde_json::{Map, Value, json};

use crate::hall::{EngineRefusal, Hall, Underway};

/// After how many seconds it is worth asking again how a run stands.
pub const POLL_AFTER_S: u64 = 2;

/// What is told of a run that goes on.
pub fn working(id: &RunId) -> Value {
    json!({ "run_id": id.as_str(), "state": "WORKING", "poll_after_s": POLL_AFTER_S })
}

/// What is told of a run beside its result.
#[derive(Clone, Copy, Debug)]
pub struct Include {
    /// Its calls.
    pub calls: bool,
    /// Its events.
    pub events: bool,
    /// Events behind this one only, calls behind so many only.
    pub after: u64,
    /// The most of each.
    pub limit: usize,
}

/// What a person says to a run.
#[derive(Clone, Debug)]
pub struct Given {
    /// The run.
    pub run: String,
    /// The question that is meant; the only one unless given.
    pub key: Option<String>,
    /// What the person says.
    pub text: String,
}

/// What came of an answer.
pub enum Standing {
    /// The run goes on here.
    Underway(Underway),
    /// The run stands so: others drive it, or it has ended meanwhile.
    Stands(Value),
}

impl Hall {
    /// How a run stands: its result so far, its state, and what else is wanted.
    pub async fn status(&self, given: &str, include: Include) -> Result<Value, Refusal> {
        let engine = self.office().engine();
        let exact = RunId::parse(given);
        let id = match engine.find(given).await {
            Err(EngineError::NoSuchRun(_)) if self.underway(&exact).is_some() => {
                let mut queued = working(&exact);
                queued["queued"] = true.into();
                return Ok(queued);
            }
            found => found?,
        };
        let loaded = engine.load(&id).await?;
        let outcome = view::outcome(id.as_str(), &loaded.spec, &loaded.run, loaded.is_alive());
        let status = outcome.status;
        let mut told = json!(outcome);
        let object = told.as_object_mut().map(std::mem::take).unwrap_or_default();
        let mut told = stated(object, status);
        if status == Status::Running {
            told["poll_after_s"] = POLL_AFTER_S.into();
        }
        if include.calls {
            let calls = view::calls(&loaded.spec, &loaded.run);
            let behind = calls.iter().skip(include.after as usize).take(include.limit);
            told["calls"] = behind.map(told::call).collect();
        }
        if include.events {
            let behind = loaded.records.iter().filter(|it| it.seq > include.after);
            told["events"] = json!(behind.take(include.limit).collect::<Vec<_>>());
        }
        Ok(told)
    }

    /// The runs there are, newest first, and how many of them stand how.
    pub async fn runs(&self, limit: usize) -> Result<Value, Refusal> {
        let runs = self.office().engine().list(None, limit).await?;
        let runs: Vec<Value> = runs.iter().map(told::listed).collect();
        let mut by_status: Map<String, Value> = Map::new();
        for run in &runs {
            let status = run["status"].as_str().unwrap_or_default().to_owned();
            let count = by_status.get(&status).and_then(Value::as_u64).unwrap_or_default();
            by_status.insert(status, (count + 1).into());
        }
        let summary = json!({ "total": runs.len(), "by_status": by_status });
        Ok(json!({ "runs": runs, "summary": summary }))
    }

    /// Answers a question of a run, and goes on with it.
    pub async fn answer(&self, given: &Given) -> Result<Standing, Refusal> {
        if given.text.trim().is_empty() {
            return Err(Refusal::new("empty_answer", "the answer is empty"));
        }
        let engine = self.office().engine();
        let id = engine.find(&given.run).await?;
        let loaded = engine.load(&id).await?;
        let key = questions::meant(loaded.run.known(), id.as_str(), given.key.as_deref())?;
        self.office().engine_for(&loaded)?;
        if !engine.answer(&id, &key, given.text.as_str().into()).await? {
            return Err(questions::no_question(id.as_str()));
        }
        match self.resume(&id).await {
            Ok(underway) => Ok(Standing::Underway(underway)),
            Err(EngineRefusal::Engine(EngineError::Owned { .. } | EngineError::Ended(_))) => {
                let include = Include { calls: false, events: false, after: 0, limit: 0 };
                Ok(Standing::Stands(self.status(id.as_str(), include).await?))
            }
            Err(refused) => Err(refused.into()),
        }
    }

    /// Cancels a run, whoever drives it.
    pub async fn cancel(&self, given: &str) -> Result<Value, Refusal> {
        let engine = self.office().engine();
        let id = engine.find(given).await?;
        let cancelled = engine.cancel(&id).await?;
        let loaded = engine.load(&id).await?;
        let (status, _) = view::status(&loaded.run, loaded.is_alive());
        Ok(json!({
            "run_id": id.as_str(),
            "state": status.state(),
            "status": status,
            "cancelled": cancelled,
        }))
    }
}

/// The result of a run with its state, unless its program tells that itself.
fn stated(mut told: Map<String, Value>, status: Status) -> Value {
    told.entry("state").or_insert_with(|| status.state().into());
    Value::Object(told)
}
