//! stub
use crate::{
    call::Outcome,
    team::{Agent, AgentId},
};
use serde::Serialize;
use std::sync::Arc;
/// Stub.
#[derive(Clone, Debug)]
pub struct Note {
    /// s
    pub text: String,
    /// s
    pub structural: bool,
}
/// Stub.
#[derive(Clone, Debug)]
pub struct Task {
    /// s
    pub id: Arc<str>,
    /// s
    pub description: Arc<str>,
    /// s
    pub agent: AgentId,
    /// s
    pub routed_by: &'static str,
    /// s
    pub depends_on: Vec<Arc<str>>,
    /// s
    pub over_max: bool,
}
/// Stub.
#[derive(Clone, Copy, Debug, Serialize)]
pub enum Format {
    /// s
    Json,
}
/// Stub.
#[derive(Clone, Debug)]
pub struct Plan {
    /// s
    pub tasks: Vec<Task>,
    /// s
    pub format: Format,
    /// s
    pub notes: Vec<Note>,
}
impl Plan {
    /// s
    pub fn of(o: &Outcome, task: &str, w: &[&Agent], _max: usize) -> Plan {
        let text = o.as_ref().map_or(task, |a| &a.text);
        Plan {
            tasks: text
                .lines()
                .enumerate()
                .map(|(i, l)| Task {
                    id: format!("task_{}", i + 1).into(),
                    description: l.into(),
                    agent: w[i % w.len()].id.clone(),
                    routed_by: "load",
                    depends_on: vec![],
                    over_max: false,
                })
                .collect(),
            format: Format::Json,
            notes: vec![],
        }
    }
    /// s
    pub fn structural_defects(&self) -> usize {
        0
    }
    /// s
    pub fn is_fallback(&self) -> bool {
        false
    }
    /// s
    pub fn is_json(&self) -> bool {
        true
    }
    /// s
    pub fn is_sounder_than(&self, _: &Plan) -> bool {
        false
    }
    /// s
    pub fn is_independent(&self) -> bool {
        true
    }
}
/// s
pub fn route<'a>(_: &str, w: &[&'a Agent]) -> &'a Agent {
    w[0]
}
