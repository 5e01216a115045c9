//! The port through which the world is asked.

use std::sync::Arc;

use async_trait::async_trait;
use folkmoot_core::{
    call::{Outcome, Tool, Usage},
    key::Key,
    render::Message,
    team::Agent,
};

use crate::place::Place;

/// What a back-end is asked to do.
#[derive(Clone, Debug)]
pub struct Request {
    /// The run.
    pub run: Arc<str>,
    /// The call.
    pub key: Key,
    /// The attempt, from 1; above 1 after a crash left the outcome of an earlier one unknown.
    pub attempt: u32,
    /// The number of this call among its agent's in the run, from 1.
    pub nth: u64,
    /// Who is asked.
    pub agent: Arc<Agent>,
    /// The conversation, ending with what is asked.
    pub messages: Vec<Message>,
    /// The tools that it may ask for.
    pub tools: Vec<Tool>,
    /// Whether it may ask for none of them this time.
    pub without_tools: bool,
    /// The most tokens the reply may have, if its size is bounded.
    pub max_output_tokens: Option<u64>,
    /// Where it works, if it is a program.
    pub place: Place,
}

/// What a back-end gives back.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    /// The answer, or why there is none.
    pub outcome: Outcome,
    /// What it used; estimated, never nothing, where the other side did not say.
    pub usage: Usage,
}

/// What comes in while a call is under way; shown to people, never read by a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delta<'a> {
    /// A piece of the answer.
    Text(&'a str),
    /// A piece of the reasoning.
    Reasoning(&'a str),
    /// The back-end tries again, and why; what came before is void.
    Retry(&'a str),
}

/// To whom a call shows what comes in.
pub type OnDelta<'a> = &'a (dyn Fn(Delta<'_>) + Send + Sync);

/// Something that answers calls.
///
/// Dropping the future cancels the call: the connection is closed or the process ended, and nothing
/// it wanted later happens.
#[async_trait]
pub trait Backend: Send + Sync {
    /// Carries out one call. Failures are answers too: they come back as faults.
    async fn perform(&self, request: Request, on_delta: OnDelta<'_>) -> Response;
}
