//! The port through which what edges of graphs require is looked at.

use std::sync::Arc;

use async_trait::async_trait;
use folkmoot_core::{
    call::{Answer, FailureKind, Fault, Usage},
    gate::{Evidence, Gate, Workspace},
    key::Key,
};

use crate::backend::Response;

/// Something that is to be looked at.
#[derive(Clone, Debug)]
pub struct GateRequest {
    /// The run.
    pub run: Arc<str>,
    /// The call.
    pub key: Key,
    /// The attempt, from 1; above 1 after a crash left the outcome of an earlier one unknown.
    pub attempt: u32,
    /// What is looked at.
    pub gate: Gate,
    /// What comes of it, where that was written beforehand.
    pub scripted: Option<bool>,
    /// The reply that the work came with.
    pub reply: Option<Arc<Answer>>,
    /// Where it is looked at.
    pub workspace: Option<Workspace>,
}

/// Whoever looks. Dropping the future ends whatever was begun for it.
#[async_trait]
pub trait Gates: Send + Sync {
    /// Looks at a gate. That it is shut is an answer; a fault tells that nobody could look.
    async fn look(&self, request: GateRequest) -> Response;
}

/// Nobody who looks: what is written beforehand is known all the same.
#[derive(Clone, Copy, Debug)]
pub struct NoGates;

#[async_trait]
impl Gates for NoGates {
    async fn look(&self, request: GateRequest) -> Response {
        let told = request.scripted.map(|passed| Evidence::of(passed).answer().into());
        let nobody = || {
            let text = format!("nobody can look at {}", request.gate);
            Fault::failed(FailureKind::Unsupported, text)
        };
        Response { outcome: told.ok_or_else(nobody), usage: Usage::default() }
    }
}
