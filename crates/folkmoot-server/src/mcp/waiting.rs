//! How a request waits for a run: it tells progress to who asked for it, and puts questions to the
//! person behind a client that can ask one.

use std::time::Duration;

use folkmoot_core::refusal::Refusal;
use rmcp::{
    RoleServer,
    model::{
        ElicitRequestParams, ElicitationAction, ElicitationSchema, ProgressNotificationParam,
        ProgressToken,
    },
    service::RequestContext,
};
use serde_json::Value;
use tokio::time::{Instant, sleep_until};

use crate::{
    hall::{Hall, Stage, Underway},
    standing::{Given, Standing},
};

/// The least time between two notes of progress.
const BETWEEN: Duration = Duration::from_millis(250);

/// One request that waits.
pub(super) struct Waiting<'a> {
    pub(super) hall: &'a Hall,
    pub(super) context: &'a RequestContext<RoleServer>,
}

impl Waiting<'_> {
    /// What comes of a run, if that is known in time and the caller still wants to know.
    pub(super) async fn end_of(
        &self,
        mut underway: Underway,
        wait: Duration,
    ) -> Result<Option<Value>, Refusal> {
        let until = Instant::now() + wait;
        loop {
            let Some(end) = self.watch(&underway, until).await else { return Ok(None) };
            let told = end?;
            let Some(answer) = self.asked(&told).await else { return Ok(Some(told)) };
            match self.hall.answer(&answer).await? {
                Standing::Underway(next) => underway = next,
                Standing::Stands(told) => return Ok(Some(told)),
            }
        }
    }

    /// Waits for the end and tells progress meanwhile, so often at most; what came last is always told.
    async fn watch(&self, underway: &Underway, until: Instant) -> Option<Result<Value, Refusal>> {
        let token = self.context.meta.get_progress_token();
        let mut stages = underway.stages();
        let (mut next, mut untold) = (Instant::now(), None);
        loop {
            let stage = stages.borrow_and_update().clone();
            if stage.turns > 0 || stage.now.is_some() {
                untold = Some(stage.clone());
            }
            if let Some(end) = stage.end {
                self.tell(token.as_ref(), untold).await;
                return Some(end.map(|told| Value::clone(&told)));
            }
            if untold.is_some() && Instant::now() >= next {
                self.tell(token.as_ref(), untold.take()).await;
                next = Instant::now() + BETWEEN;
            }
            let due = if untold.is_some() { next.min(until) } else { until };
            tokio::select! {
                () = self.context.ct.cancelled() => return None,
                () = sleep_until(due) => {
                    if Instant::now() >= until {
                        self.tell(token.as_ref(), untold).await;
                        return None;
                    }
                }
                changed = stages.changed() => changed.ok()?,
            }
        }
    }

    async fn tell(&self, token: Option<&ProgressToken>, stage: Option<Stage>) {
        let (Some(token), Some(stage)) = (token, stage) else { return };
        let mut note = ProgressNotificationParam::new(token.clone(), stage.turns as f64);
        // A bound that was passed is none.
        note.total = stage.ceiling.filter(|most| *most >= stage.turns).map(|most| most as f64);
        note.message = stage.now.map(|name| format!("{name} speaks"));
        // A client that is gone wants no progress.
        let _ = self.context.peer.notify_progress(note).await;
    }

    /// What the person says to the question of a run, if their client can ask and they answer.
    async fn asked(&self, told: &Value) -> Option<Given> {
        let (run, question) = (told["run_id"].as_str()?, told.get("question")?);
        let (key, text) = (question["key"].as_str()?, question["text"].as_str()?);
        let capabilities = self.context.client_capabilities()?;
        if capabilities.elicitation.is_none() || self.context.meta.protocol_version().is_some() {
            return None;
        }
        let schema = ElicitationSchema::builder().required_string("answer").build().ok()?;
        let params = ElicitRequestParams::FormElicitationParams {
            meta: None,
            message: text.to_owned(),
            requested_schema: schema,
        };
        let said = tokio::select! {
            said = self.context.peer.create_elicitation(params) => said.ok()?,
            () = self.context.ct.cancelled() => return None,
        };
        let answer = match said.action {
            ElicitationAction::Accept => said.content?["answer"].as_str()?.to_owned(),
            // Declined, cancelled, or whatever else is no answer.
            _ => return None,
        };
        Some(Given { run: run.to_owned(), key: Some(key.to_owned()), text: answer })
    }
}
