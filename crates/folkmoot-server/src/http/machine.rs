//! The port to what the server over HTTP needs of this machine beside what every server needs.

use std::{borrow::Cow, sync::Arc};

use async_trait::async_trait;
use folkmoot_core::{file::overrides::Override, refusal::Refusal, request::Request, spec::Spec};
use folkmoot_runtime::{
    driver::Driver,
    engine::{Engine, Loaded},
};
use serde_json::Value;

use crate::office::Office;

/// Hides what no output may show (rules.md 14.6).
pub trait Masks: Send + Sync {
    /// A text without it.
    fn mask<'a>(&self, text: &'a str) -> Cow<'a, str>;

    /// Appends to `masked` what of `held` and `text` may be shown by now. The rest, which may be the
    /// beginning of a secret, is `held`.
    fn push(&self, held: &mut String, text: &str, masked: &mut String);
}

/// What requests mean by names, and what is told of teams before anybody is asked.
#[async_trait]
pub trait Machine: Office {
    /// What no answer may show.
    fn masks(&self) -> Arc<dyn Masks>;

    /// The most that agents may do here.
    fn sandbox(&self) -> &'static str;

    /// The teams that requests may name, in the order of their names.
    fn teams(&self) -> Vec<Value>;

    /// What a request says that means the team of this name: its file, or the team itself.
    fn team(&self, name: &str) -> Result<Value, Refusal>;

    /// What `check --json` tells.
    fn check(&self, request: &Request) -> Result<Value, Refusal>;

    /// What `plan --json` tells.
    fn plan(&self, request: &Request) -> Result<Value, Refusal>;

    /// What `simulate --json` tells, of the run that this seed gives.
    async fn simulate(&self, request: &Request, rehearsal: &Rehearsal) -> Result<Value, Refusal>;

    /// The team of a run with values changed, and the engine for it. Nothing is allowed by it that was
    /// not before.
    fn changed(
        &self,
        origin: &Loaded,
        changes: Vec<Override>,
    ) -> Result<(Arc<Spec>, Engine), Refusal>;

    /// Puts the files of the workspace back that calls may have changed which are asked again.
    async fn put_back(&self, origin: &Loaded, driver: &Driver) -> Result<(), Refusal>;
}

/// How a team is rehearsed.
#[derive(Clone, Debug, Default)]
pub struct Rehearsal {
    /// What shuffles events and chooses faults.
    pub seed: u64,
    /// The faults that may come, as a list; nothing for none.
    pub faults: Option<String>,
}
