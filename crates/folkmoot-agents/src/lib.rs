//! Who answers: models behind APIs, coding agents, scripts, the offline demo; and the tools they use.
//!
//! One door, [`Agents`], leads to all of them. Deliberately absent: the environment, which only the
//! CLI reads; deciding what a call may cost or how long it may take, which is the kernel's matter.

mod a2a;
mod acp;
mod api;
mod cli;
mod controller;
mod demo;
mod evidence;
mod gate;
mod http;
mod known;
mod machine;
mod mcp;
mod parting;
mod patience;
mod process;
mod provider;
mod rehearsal;
mod reported;
mod repository;
mod retry;
mod script;
mod secret;
mod snapshots;
pub mod sse;
#[cfg(test)]
mod testing;
mod tools;
mod usage;

use std::{collections::BTreeMap, path::PathBuf};

use async_trait::async_trait;
use folkmoot_core::{
    call::{FailureKind, Fault, Usage},
    team::{Model, Target},
};
use folkmoot_runtime::backend::{Backend, OnDelta, Request, Response};

use self::{api::Api, gate::Gates, http::Http, machine::Machine, retry::Backoff};
pub use folkmoot_runtime::secrets::Secrets;

pub use self::{
    api::Recorded,
    cli::installed::{Installed, installed},
    controller::Starter,
    evidence::Inspector,
    mcp::Clients,
    parting::parted,
    patience::Patience,
    process::{end_orphans, unenforceable},
    provider::{Protocol, ProviderConfig, ProviderStatus, Providers, Unusable},
    rehearsal::Rehearsal,
    repository::{GitError, Merge, Repository, Worktree},
    snapshots::{Archive, Changes, Kept, NotPutBack, PutBack, Putting},
    tools::{Reach, Workbench},
};

/// Everybody who can be asked.
///
/// Making it costs next to nothing: connections, certificates and the like come with the first call
/// that needs them.
#[derive(Debug)]
pub struct Agents {
    providers: Providers,
    patience: Patience,
    http: Http,
    backoff: Backoff,
    /// The gates of programs.
    gates: Gates,
    /// The environment of this process, of which programs get what they may have.
    environment: BTreeMap<String, String>,
    /// Files that no agent may touch, such as Folkmoot's own.
    closed: Vec<PathBuf>,
}

impl Agents {
    /// Agents whose models are served by `providers`.
    pub fn new(providers: Providers) -> Agents {
        Agents::with_patience(providers, Patience::default())
    }

    /// The same with other waiting times.
    pub fn with_patience(providers: Providers, patience: Patience) -> Agents {
        let backoff = Backoff::new(&patience, fastrand::Rng::new());
        let (http, gates) = (Http::new(&patience), Gates::default());
        let (environment, closed) = (BTreeMap::new(), Vec::new());
        Agents { providers, patience, http, backoff, gates, environment, closed }
    }

    /// The same where programs get what they may have of `ours`, the environment of this process.
    #[must_use]
    pub fn with_environment(self, ours: impl IntoIterator<Item = (String, String)>) -> Agents {
        Agents { environment: ours.into_iter().collect(), ..self }
    }

    /// The same where those that let us read and write for them get none of the files in `closed`.
    #[must_use]
    pub fn with_closed(self, closed: Vec<PathBuf>) -> Agents {
        Agents { closed, ..self }
    }

    /// The providers they were made with.
    pub fn providers(&self) -> &Providers {
        &self.providers
    }

    fn machine(&self) -> Machine<'_> {
        let Agents { environment: ours, closed, gates, backoff, .. } = self;
        Machine { ours, closed, gates, backoff }
    }

    /// Asks a provider which models it has, which costs nothing; tells why it cannot be used, if so.
    ///
    /// Servers without such a list count as well: they answer.
    pub async fn probe(&self, provider: &str) -> Result<(), String> {
        let provider = self.providers.find(provider).map_err(|unusable| unusable.to_string())?;
        let Agents { http, patience, backoff, .. } = self;
        let answer = Api { http, patience, backoff }.probe(provider).await;
        answer.map_err(|failure| provider.masked(&failure.text))
    }

    async fn ask_model(&self, model: &Model, request: &Request, on_delta: OnDelta<'_>) -> Response {
        match self.providers.find(&model.provider) {
            Ok(provider) => {
                let Agents { http, patience, backoff, .. } = self;
                Api { http, patience, backoff }.perform(provider, model, request, on_delta).await
            }
            Err(unusable) => {
                Response { outcome: Err(Fault::from(&unusable)), usage: Usage::default() }
            }
        }
    }
}

#[async_trait]
impl Backend for Agents {
    async fn perform(&self, request: Request, on_delta: OnDelta<'_>) -> Response {
        match &request.agent.target {
            Target::Model(model) => self.ask_model(model, &request, on_delta).await,
            Target::Script(script) => script::perform(script, &request, on_delta).await,
            Target::Demo => demo::perform(&request, on_delta),
            Target::Cli(cli) => cli::perform(cli, self.machine(), &request, on_delta).await,
            Target::Acp(acp) => acp::perform(acp, self.machine(), &request, on_delta).await,
            Target::A2a(a2a) => {
                let Agents { http, patience, .. } = self;
                let world = a2a::World { http, patience, machine: self.machine() };
                a2a::perform(a2a, world, &request, on_delta).await
            }
            // The kernel follows its program instead.
            Target::Team(_) => Response {
                outcome: Err(Fault::failed(FailureKind::Unsupported, "a team is no back-end")),
                usage: Usage::default(),
            },
        }
    }
}
