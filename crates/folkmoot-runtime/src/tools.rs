//! The port through which agents use tools.

use std::sync::Arc;

use async_trait::async_trait;
use folkmoot_core::{
    call::{FailureKind, Fault, ToolCall, Usage},
    key::Key,
    team::Agent,
};

use crate::{backend::Response, place::Place};

/// A tool call that was granted.
#[derive(Clone, Debug)]
pub struct ToolRequest {
    /// The run.
    pub run: Arc<str>,
    /// The call.
    pub key: Key,
    /// The attempt, from 1; above 1 after a crash left the outcome of an earlier one unknown.
    pub attempt: u32,
    /// On whose behalf.
    pub agent: Arc<Agent>,
    /// What is wanted.
    pub call: ToolCall,
    /// Where it is to work.
    pub place: Place,
}

/// The tools of a run. Dropping the future cancels the call.
#[async_trait]
pub trait Toolbox: Send + Sync {
    /// Uses a tool. Failures are answers too: they come back as faults.
    async fn call(&self, request: ToolRequest) -> Response;
}

/// A box without tools.
#[derive(Clone, Copy, Debug)]
pub struct NoTools;

#[async_trait]
impl Toolbox for NoTools {
    async fn call(&self, request: ToolRequest) -> Response {
        let text = format!("there is no tool {}", request.call.name);
        let outcome = Err(Fault::failed(FailureKind::NotFound, text));
        Response { outcome, usage: Usage::default() }
    }
}
