//! A server over all its starts: it is started when it is needed, and again on its next use if it has
//! gone (rules.md 11.3).

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use folkmoot_core::{
    call::{Answer, FailureKind, Fault},
    check,
    mcp::Pinned,
    team::Sandbox,
};
use serde_json::{Map, Value};
use tokio::{
    sync::Mutex,
    time::{Instant, sleep_until, timeout_at},
};

use super::{
    Result,
    connection::{Call, Connection},
    listing, results,
};
use crate::Secrets;

/// How long after a start the next one is, if the server has gone once, and at the most.
const FIRST_WAIT: Duration = Duration::from_millis(250);
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Where a server that is a program runs.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) folder: Arc<str>,
    pub(super) sandbox: Sandbox,
}

/// A server.
pub(super) struct Server {
    name: Arc<str>,
    definition: check::Server,
    ours: Arc<BTreeMap<String, String>>,
    secrets: Secrets,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    connection: Option<Arc<Connection>>,
    /// When it was started last.
    started: Option<Instant>,
    /// How often it has gone in a row, or could not be started.
    gone: u32,
    /// What it has, as far as it was asked since it was started.
    tools: Vec<Pinned>,
    /// What is wrong with others that it has.
    left_out: Vec<Arc<str>>,
    /// Whether its present tools were compared with those that are pinned.
    is_compared: bool,
}

impl Server {
    pub(super) fn new(
        name: &str,
        definition: check::Server,
        ours: Arc<BTreeMap<String, String>>,
        secrets: Secrets,
    ) -> Server {
        Server { name: name.into(), definition, ours, secrets, state: Mutex::default() }
    }

    /// What it has, and what is odd about it.
    pub(super) async fn list(&self, place: &Place) -> Result<(Vec<Pinned>, Vec<Arc<str>>)> {
        let mut state = self.state.lock().await;
        let connection = self.connected(&mut state, place).await?;
        state.is_compared = true;
        let odd = state.left_out.iter().cloned().chain(self.noise(&connection));
        Ok((state.tools.clone(), odd.collect()))
    }

    /// Uses a tool, and tells how what it has differs from what is pinned.
    pub(super) async fn call(
        &self,
        place: &Place,
        tool: &str,
        arguments: &Value,
        attempt: u32,
        pinned: &[Pinned],
    ) -> Result<Answer> {
        let arguments = match arguments {
            Value::Object(fields) => fields.clone(),
            Value::Null => Map::new(),
            other => {
                let text = format!("bad_arguments: an object is expected; got {other}");
                return Err(Fault::failed(FailureKind::Other, text));
            }
        };
        let (connection, changes) = {
            let mut state = self.state.lock().await;
            let connection = self.connected(&mut state, place).await?;
            let changes = self.changes(&mut state, &connection, pinned).await;
            (connection, changes)
        };
        let call = Call { tool, arguments, attempt, times: self.definition.times };
        let result = connection.call(call).await?;
        self.state.lock().await.gone = 0;
        let text = results::text(&result);
        let text = self.secrets.mask(&text);
        if result.is_error == Some(true) {
            return Err(Fault::failed(FailureKind::Other, text));
        }
        let warnings = changes.into_iter().chain(self.noise(&connection)).collect();
        Ok(Answer { warnings, ..Answer::text(text) })
    }

    /// The server as it runs; it is started if it does not.
    async fn connected(&self, state: &mut State, place: &Place) -> Result<Arc<Connection>> {
        if let Some(connection) = state.connection.take() {
            if connection.is_open() {
                state.connection = Some(connection.clone());
                return Ok(connection);
            }
            connection.close().await;
            state.gone += 1;
        }
        if let Some(started) = state.started.filter(|_| state.gone > 0) {
            let wait = FIRST_WAIT.saturating_mul(1 << (state.gone - 1).min(16));
            sleep_until(started + wait.min(LONGEST_WAIT)).await;
        }
        state.started = Some(Instant::now());
        // Whoever gives up waiting has ended it.
        state.gone += 1;
        let until = self.definition.times.start.map(|time| Instant::now() + time.into());
        let opening =
            Connection::open(&self.name, &self.definition.via, place, &self.ours, &self.secrets);
        let connection = match until {
            Some(until) => timeout_at(until, opening).await.unwrap_or_else(|_| Err(self.slow())),
            None => opening.await,
        };
        let connection = Arc::new(connection?);
        let tools = match connection.tools(until).await {
            Ok(tools) => tools,
            Err(fault) => {
                connection.close().await;
                return Err(fault);
            }
        };
        (state.tools, state.left_out) = listing::pinned(&self.name, tools);
        state.gone -= 1;
        state.is_compared = false;
        state.connection = Some(connection.clone());
        Ok(connection)
    }

    /// How what it has differs from what is pinned, once for each list that it gives.
    async fn changes(
        &self,
        state: &mut State,
        connection: &Connection,
        pinned: &[Pinned],
    ) -> Option<Arc<str>> {
        if connection.has_changed() {
            let until = self.definition.times.start.map(|time| Instant::now() + time.into());
            // What it does not tell is not known to have changed.
            let tools = connection.tools(until).await.ok()?;
            (state.tools, state.left_out) = listing::pinned(&self.name, tools);
            state.is_compared = false;
        }
        if std::mem::replace(&mut state.is_compared, true) {
            return None;
        }
        listing::changes(&self.name, pinned, &state.tools)
    }

    fn noise(&self, connection: &Connection) -> Option<Arc<str>> {
        let lines = connection.noise();
        let told =
            || format!("MCP server {}: {lines} lines of its output are no messages", self.name);
        (lines > 0).then(|| told().into())
    }

    fn slow(&self) -> Fault {
        let time = self.definition.times.start.unwrap_or_default();
        let text = format!("MCP server {} has not started within {time}", self.name);
        Fault::failed(FailureKind::Timeout, text)
    }

    /// Ends it.
    pub(super) async fn close(&self) {
        if let Some(connection) = self.state.lock().await.connection.take() {
            connection.close().await;
        }
    }
}
