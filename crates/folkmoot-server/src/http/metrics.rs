//! What a server has done since it started, as Prometheus reads it.

use std::{
    collections::BTreeMap,
    fmt::Write,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use axum::{
    extract::State,
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
};
use folkmoot_core::{
    event::{Event, Record},
    key::Key,
    run::Run,
    spec::Spec,
    view,
};
use folkmoot_runtime::{backend::Delta, driver::Observer};

use super::Server;

/// How this server is doing, as text for Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "server", responses((status = 200, content_type = "text/plain", description = "Counts and gauges")))]
pub(super) async fn metrics(State(server): State<Server>) -> Response {
    let load = server.hall.load();
    let counts = server.meters.counts().clone();
    let mut page = Page::default();
    page.head("folkmoot_runs_running", "gauge", "Runs that are driven now.");
    page.line("folkmoot_runs_running", "", load.driven as u64);
    page.head("folkmoot_runs_queued", "gauge", "Runs that wait to be driven.");
    page.line("folkmoot_runs_queued", "", load.waiting as u64);
    page.head("folkmoot_runs_ended_total", "counter", "Runs that have ended, by how.");
    for (status, count) in &counts.ended {
        page.line("folkmoot_runs_ended_total", &format!("{{status=\"{status}\"}}"), *count);
    }
    page.head("folkmoot_calls_total", "counter", "Calls that were asked.");
    page.line("folkmoot_calls_total", "", counts.calls);
    page.head("folkmoot_tokens_total", "counter", "Tokens that were used, read and written.");
    page.line("folkmoot_tokens_total", "{kind=\"input\"}", counts.input);
    page.line("folkmoot_tokens_total", "{kind=\"output\"}", counts.output);
    page.head("folkmoot_http_requests_total", "counter", "Requests that were answered, by status.");
    for (status, count) in &counts.answers {
        page.line("folkmoot_http_requests_total", &format!("{{status=\"{status}\"}}"), *count);
    }
    ([(CONTENT_TYPE, "text/plain; version=0.0.4")], page.0).into_response()
}

/// The text of the page.
#[derive(Default)]
struct Page(String);

impl Page {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}")
            .expect("a string takes any text");
    }

    fn line(&mut self, name: &str, labels: &str, value: u64) {
        writeln!(self.0, "{name}{labels} {value}").expect("a string takes any text");
    }
}

/// What was counted since the server started.
#[derive(Debug, Default)]
pub(super) struct Meters(Mutex<Counts>);

#[derive(Clone, Debug, Default)]
struct Counts {
    ended: BTreeMap<&'static str, u64>,
    answers: BTreeMap<u16, u64>,
    calls: u64,
    input: u64,
    output: u64,
}

impl Meters {
    /// Counts an answer.
    pub(super) fn answered(&self, status: StatusCode) {
        *self.counts().answers.entry(status.as_u16()).or_default() += 1;
    }

    /// The same observer, with what is recorded counted too.
    pub(super) fn counting(self: &Arc<Meters>, observer: Arc<dyn Observer>) -> Arc<dyn Observer> {
        Arc::new(Counting { meters: self.clone(), observer })
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Counting {
    meters: Arc<Meters>,
    observer: Arc<dyn Observer>,
}

impl Observer for Counting {
    fn recorded(&self, spec: &Spec, run: &Run, records: &[Record]) {
        self.observer.recorded(spec, run, records);
        let mut counts = self.meters.counts();
        for record in records {
            match &record.event {
                Event::Asked { .. } => counts.calls += 1,
                Event::Answered { usage, .. } | Event::Withdrawn { usage, .. } => {
                    counts.input = counts.input.saturating_add(usage.tokens.input);
                    counts.output = counts.output.saturating_add(usage.tokens.output);
                }
                Event::Ended { .. } => {
                    let (status, _) = view::status(run, true);
                    *counts.ended.entry(status.as_str()).or_default() += 1;
                }
                Event::Started { .. }
                | Event::Inherited { .. }
                | Event::Resumed { .. }
                | Event::Prompted { .. }
                | Event::Amended { .. }
                | Event::CancelRequested
                | Event::Ticked
                | Event::Woken { .. }
                | Event::Saved { .. }
                | Event::Mailed { .. }
                | Event::Concluded { .. }
                | Event::Refused { .. } => {}
            }
        }
    }

    fn delta(&self, key: &Key, delta: Delta<'_>) {
        self.observer.delta(key, delta);
    }
}
