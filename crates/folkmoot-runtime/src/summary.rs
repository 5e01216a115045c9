//! What a list shows of a run; of one that has ended, without folding its log.

use folkmoot_core::{
    run::Run,
    spec::Spec,
    text::shorten,
    view::{self, OriginView, Status, UsageReport},
    words::Language,
};
use serde::{Deserialize, Serialize};

/// A cache of a fold, kept beside a run's stream; the log is the truth.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Summary {
    /// How the run ended, or that it waits for a person; nothing while it can go on.
    pub status: Option<Status>,
    /// Why it ended.
    pub reason: Option<String>,
    /// The strategy it follows.
    pub strategy: String,
    /// The team's name.
    pub team: String,
    /// The task; of a long one head and tail.
    pub prompt: String,
    /// The wall clock at its start, in microseconds since 1970.
    pub started_at: u64,
    /// And at its end.
    pub ended_at: Option<u64>,
    /// What it used.
    pub usage: UsageReport,
    /// The run it goes on from.
    #[serde(default)]
    pub origin: Option<OriginView>,
}

/// How much of a task a list shows, in characters.
const PROMPT: usize = 500;

impl Summary {
    /// Folds a run into its summary.
    pub fn of(spec: &Spec, run: &Run) -> Summary {
        let outcome = view::outcome("", spec, run, true);
        let ended = run.ending().is_some();
        Summary {
            status: Some(outcome.status).filter(|status| *status != Status::Running),
            reason: outcome.reason,
            strategy: outcome.strategy,
            team: spec.team.name.to_string(),
            prompt: shorten(&spec.task, PROMPT, Language::of(&spec.task)).into_owned(),
            started_at: run.wall_at(folkmoot_core::time::Time::default()),
            ended_at: ended.then(|| run.wall_at(run.at())),
            usage: outcome.meta.usage,
            origin: outcome.origin,
        }
    }

    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a summary is plain data")
    }
}
