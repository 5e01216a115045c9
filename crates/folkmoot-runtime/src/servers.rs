//! The port through which agents use the tools of MCP servers (agents.md §6).

use std::sync::Arc;

use async_trait::async_trait;
use folkmoot_core::{
    call::{FailureKind, Fault, Usage},
    key::Key,
    mcp::Pinned,
    team::Agent,
};

use crate::{backend::Response, place::Place, tools::ToolRequest};

/// The question to a server which tools it has.
#[derive(Clone, Debug)]
pub struct ListRequest {
    /// The run.
    pub run: Arc<str>,
    /// The call.
    pub key: Key,
    /// The server.
    pub server: Arc<str>,
    /// The agent that first needs it.
    pub agent: Arc<Agent>,
    /// Where it is to work, if it is a program.
    pub place: Place,
}

/// A granted call of a tool that its server had at first sight.
#[derive(Clone, Debug)]
pub struct ServerRequest {
    /// The call; its tool is named with its server.
    pub tool: ToolRequest,
    /// What the server had at first sight.
    pub pinned: Vec<Pinned>,
}

/// Whoever reaches servers.
pub trait Servers: Send + Sync {
    /// Begins to reach the servers of a run. None is started before it is needed.
    fn meet(&self) -> Arc<dyn Reached>;
}

/// The servers of one run. Dropping it ends those that were started.
#[async_trait]
pub trait Reached: Send + Sync {
    /// Asks a server what it has; its answer is a list of [`Pinned`]. Dropping the future gives that up.
    async fn list(&self, request: ListRequest) -> Response;

    /// Uses a tool. Dropping the future cancels the call, and leaves the server as it is.
    async fn call(&self, request: ServerRequest) -> Response;

    /// Ends the servers that were started, in peace as far as they let themselves.
    async fn close(&self);
}

/// Nobody who reaches any.
#[derive(Clone, Copy, Debug)]
pub struct NoServers;

impl Servers for NoServers {
    fn meet(&self) -> Arc<dyn Reached> {
        Arc::new(NoServers)
    }
}

#[async_trait]
impl Reached for NoServers {
    async fn list(&self, request: ListRequest) -> Response {
        nobody(&request.server)
    }

    async fn call(&self, request: ServerRequest) -> Response {
        nobody(&request.tool.call.name)
    }

    async fn close(&self) {}
}

fn nobody(what: &str) -> Response {
    let fault = Fault::failed(FailureKind::Unsupported, format!("nobody can reach {what}"));
    Response { outcome: Err(fault), usage: Usage::default() }
}
