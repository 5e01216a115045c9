//! What agents that work by themselves get of this machine, and how they are asked again.

use std::{collections::BTreeMap, fmt, path::PathBuf, sync::Arc};

use folkmoot_core::call::Answer;
use folkmoot_runtime::backend::{Delta, OnDelta, Request, Response};

use crate::{
    gate::Gates,
    reported::Reported,
    retry::{Backoff, Failure, Persisted, Terms},
};

/// What it takes to ask one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Machine<'a> {
    /// The environment of this process.
    pub(crate) ours: &'a BTreeMap<String, String>,
    /// Files that no agent may touch.
    pub(crate) closed: &'a [PathBuf],
    /// The gates of agents, by name.
    pub(crate) gates: &'a Gates,
    /// The waits before further attempts.
    pub(crate) backoff: &'a Backoff,
}

/// What one was asked is done.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) answer: Answer,
    /// What it tells of what it used.
    pub(crate) used: Reported,
}

impl Machine<'_> {
    /// Asks `agent` by `attempt`, as often as the retries of the request's agent allow; it is told
    /// `read` bytes. What it does not report to have used is estimated.
    pub(crate) async fn persist<Attempt>(
        self,
        agent: &(dyn fmt::Display + Sync),
        request: &Request,
        read: usize,
        on_delta: OnDelta<'_>,
        attempt: impl Fn() -> Attempt + Send + Sync,
    ) -> Response
    where
        Attempt: Future<Output = Result<Done, Failure>> + Send,
    {
        let gate = self.gates.of(&agent.to_string());
        let retries = request.agent.retries;
        let is_metered = request.max_output_tokens.is_some();
        let terms = Terms { retries, is_metered, gate: &gate, backoff: self.backoff };
        let tell = |text: &str| on_delta(Delta::Retry(text));
        let Persisted { outcome, wasted } = terms.persist(tell, attempt).await;
        match outcome {
            Ok(Done { answer, used }) => {
                let used = used.usage(read, answer.text.len());
                Response { outcome: Ok(Arc::new(answer)), usage: wasted + used }
            }
            Err(fault) => Response { outcome: Err(fault), usage: wasted },
        }
    }
}
