//! The port to whoever knows the config of this machine.

use async_trait::async_trait;
use folkmoot_core::{
    refusal::Refusal,
    request::{Form, Request},
    spec::Spec,
};
use folkmoot_runtime::engine::{Engine, Loaded};
use serde_json::{Map, Value};

/// Makes of requests what is to be run, and says what is allowed.
#[async_trait]
pub trait Office: Send + Sync {
    /// The engine over the store in which runs are kept.
    fn engine(&self) -> &Engine;

    /// Whose mailboxes, boards and cards are meant.
    fn owner(&self) -> &str;

    /// Judges a request and the team that it makes. Nothing is started by it, and a request that passes
    /// what this server allows is refused.
    fn ready(&self, request: &Request) -> Result<Ready, Refusal>;

    /// Carries out an action of orchestrate.md for `actor`; gives what is told of it.
    async fn orchestrate(&self, actor: &str, fields: Map<String, Value>) -> Result<Value, Refusal>;

    /// The engine for a run that goes on with the team that it began with.
    fn engine_for(&self, run: &Loaded) -> Result<Engine, Refusal>;
}

/// What is to be run.
pub struct Ready {
    /// All that the run depends on.
    pub spec: Spec,
    /// The engine, with what a run of it needs of this machine.
    pub engine: Engine,
    /// What is told of it.
    pub form: Form,
    /// How many turns it takes at most, if that is known.
    pub turns: Option<u64>,
}
