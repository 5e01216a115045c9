//! MCP servers as a client of theirs (agents.md §6, rules.md §11).
//!
//! A server is started when an agent first needs it, once for each sandbox level at which it is needed,
//! and ends with its run. Deliberately absent: what an agent is offered, which the log tells; asking a
//! server for anything but its tools.

mod connection;
mod lines;
mod listing;
mod remote;
mod results;
mod server;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use folkmoot_core::{
    call::{Answer, FailureKind, Fault, Usage},
    check::{self, server_name},
    mcp::{self, Pinned},
    team::{Agent, Sandbox},
};
use folkmoot_runtime::{
    backend::Response,
    servers::{ListRequest, Reached, ServerRequest, Servers},
};
use futures_util::future::join_all;

use self::server::{Place, Server};
use crate::Secrets;

/// What came of a server: what the model reads.
type Result<T> = std::result::Result<T, Fault>;

/// The MCP servers that are set up on this machine.
#[derive(Clone, Debug)]
pub struct Clients {
    ours: Arc<BTreeMap<String, String>>,
    known: Arc<BTreeMap<Arc<str>, check::Server>>,
    secrets: Secrets,
}

impl Clients {
    /// These servers, which get what they need of `ours`, the environment of this process. What they say
    /// is shown and kept without `secrets`.
    pub fn new(
        ours: impl IntoIterator<Item = (String, String)>,
        known: BTreeMap<Arc<str>, check::Server>,
        secrets: Secrets,
    ) -> Clients {
        Clients { ours: Arc::new(ours.into_iter().collect()), known: Arc::new(known), secrets }
    }
}

impl Servers for Clients {
    fn meet(&self) -> Arc<dyn Reached> {
        Arc::new(OfRun { clients: self.clone(), servers: Mutex::default() })
    }
}

/// The servers of one run, by name and by what they may do.
struct OfRun {
    clients: Clients,
    servers: Mutex<BTreeMap<Started, Arc<Server>>>,
}

/// What tells the servers of a run apart: their names, with their teams, and their levels.
type Started = (Arc<str>, Sandbox);

impl fmt::Debug for OfRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OfRun").field("clients", &self.clients).finish_non_exhaustive()
    }
}

impl OfRun {
    fn server(&self, of: &Agent, name: &str) -> Result<Arc<Server>> {
        let started = (server_name(of.id.team(), name), of.sandbox);
        let Clients { ours, known, secrets } = &self.clients;
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = servers.get(&started) {
            return Ok(server.clone());
        }
        let definition = known.get(&started.0).cloned().ok_or_else(|| {
            let text = format!("MCP server {name} is not set up here: a team file that holds values of its variables or headers is not kept with a run");
            Fault::failed(FailureKind::Config, text)
        })?;
        let server = Server::new(name, definition, ours.clone(), secrets.clone());
        let server = Arc::new(server);
        servers.insert(started, server.clone());
        Ok(server)
    }

    async fn listed(&self, request: ListRequest) -> Result<Answer> {
        let sandbox = request.agent.sandbox;
        let server = self.server(&request.agent, &request.server)?;
        let place = Place { folder: request.place.workspace.folder, sandbox };
        let (tools, warnings) = server.list(&place).await?;
        let json = Some(Pinned::listed(&tools));
        Ok(Answer { json, warnings, ..Answer::text(format!("{} tools", tools.len())) })
    }

    async fn called(&self, request: ServerRequest) -> Result<Answer> {
        let ServerRequest { tool: request, pinned } = request;
        let name = &*request.call.name;
        let (of, tool) = mcp::parts(name).unwrap_or_default();
        let is_there = pinned.iter().any(|pinned| *pinned.name == *tool);
        if !is_there || !request.agent.is_granted(name) {
            return Err(Fault::failed(FailureKind::Denied, format!("denied: {name}")));
        }
        let sandbox = request.agent.sandbox;
        let server = self.server(&request.agent, of)?;
        let place = Place { folder: request.place.workspace.folder, sandbox };
        server.call(&place, tool, &request.call.arguments, request.attempt, &pinned).await
    }
}

#[async_trait]
impl Reached for OfRun {
    async fn list(&self, request: ListRequest) -> Response {
        let outcome = self.listed(request).await.map(Arc::new);
        Response { outcome, usage: Usage::default() }
    }

    async fn call(&self, request: ServerRequest) -> Response {
        let outcome = self.called(request).await.map(Arc::new);
        Response { outcome, usage: Usage::default() }
    }

    async fn close(&self) {
        let servers = {
            let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *servers)
        };
        join_all(servers.values().map(|server| server.close())).await;
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
