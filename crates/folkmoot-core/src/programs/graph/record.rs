//! What a graph tells of its steps (graph.md §13, interface.md).

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    choice::{Options, Why},
    termination::Reason,
    tokens::End,
    walk::Walk,
};
use crate::{
    call::{Fault, Reply},
    key::Key,
    programs::entry,
    scope::Account,
    spec::Warning,
    team::AgentId,
};

/// The steps of a graph, numbered in the order of the log.
#[derive(Debug)]
pub(super) struct Journal {
    stage: Option<String>,
    before: u64,
    /// By step: its round, and the record.
    records: Vec<(u32, Value)>,
    warnings: Vec<Warning>,
    faults: Vec<(Key, AgentId, Fault)>,
    /// What was looked at for the step that is yet to be added.
    evidence: Vec<Value>,
}

impl Journal {
    pub(super) fn new(stage: Option<&str>, before: u64) -> Journal {
        let (records, warnings, faults) = (Vec::new(), Vec::new(), Vec::new());
        let stage = stage.map(str::to_owned);
        Journal { stage, before, records, warnings, faults, evidence: Vec::new() }
    }

    /// The number of the latest step.
    pub(super) fn steps(&self) -> u64 {
        self.before + self.records.len() as u64
    }

    /// How many steps there were here, those of earlier stages left out.
    pub(super) fn own_steps(&self) -> u64 {
        self.records.len() as u64
    }

    /// Adds a step; gives its place, by which it can be amended.
    pub(super) fn step(
        &mut self,
        agent: &AgentId,
        round: u32,
        attempt: u32,
        reply: &Reply,
        chosen: Option<&(Options, Option<Why>)>,
        next: &[AgentId],
    ) -> usize {
        let number = self.steps() + 1;
        let mut step =
            json!({ "step": number, "agent": agent, "response": entry(reply), "next": next });
        if let Some((options, why)) = chosen {
            step["options"] = json!(options.targets());
            if let Some(why) = why {
                step["why"] = why.as_str().into();
            }
        }
        let evidence = std::mem::take(&mut self.evidence);
        if !evidence.is_empty() {
            step["evidence"] = evidence.into();
        }
        if attempt > 1 {
            step["attempt"] = attempt.into();
        }
        self.records.push((round, step));
        self.records.len() - 1
    }

    /// Tells where the work of a step went after all, and who decided that.
    pub(super) fn amend(&mut self, at: usize, next: &[AgentId], why: Option<&str>) {
        let (_, step) = &mut self.records[at];
        step["next"] = json!(next);
        if let Some(why) = why {
            step["why"] = why.into();
        }
    }

    /// Keeps what was looked at for the next step.
    pub(super) fn show(&mut self, evidence: Vec<Value>) {
        self.evidence = evidence;
    }

    /// Adds a warning.
    pub(super) fn warn(&mut self, code: &str, message: String) {
        self.warnings.push(Warning { code: code.into(), message: message.into() });
    }

    /// Adds a reply that counts as failed though it came.
    pub(super) fn fault(&mut self, reply: &Reply, fault: &Fault) {
        self.faults.push((reply.key.clone(), reply.agent.clone(), fault.clone()));
    }

    fn tell(&self, account: &mut Account) {
        let mut rounds: BTreeMap<u32, Vec<&Value>> = BTreeMap::new();
        for (round, step) in &self.records {
            rounds.entry(*round).or_default().push(step);
        }
        for (round, steps) in rounds {
            let mut entry = json!({ "round": round, "kind": "graph", "steps": steps });
            if let Some(stage) = &self.stage {
                entry["stage"] = stage.as_str().into();
            }
            account.rounds.push(entry);
        }
        account.warnings.extend(self.warnings.iter().cloned());
        account.faults.extend(self.faults.iter().cloned());
    }
}

impl Walk<'_, '_> {
    /// Tells what has happened so far.
    pub(super) fn tell(&self) {
        self.cx.tell(|account| {
            self.journal.tell(account);
            let earlier = account.graph.take();
            account.graph = Some(self.summary(earlier.as_ref()));
            if let Some(reviews) = &self.reviews {
                let stage = self.journal.stage.as_deref();
                let told = account.findings.get_or_insert_default();
                told.add(&reviews.ledger, stage);
            }
        });
    }

    /// How it stands, with what the stages before it have told.
    fn summary(&self, earlier: Option<&Value>) -> Value {
        let loops = self.structure.loops.iter().enumerate().map(|(own, it)| {
            let agents: Vec<&AgentId> = it.agents.iter().map(|agent| self.id(*agent)).collect();
            let cap = self.graph.cap_of(self.structure, it);
            json!({ "agents": agents, "rounds": self.history.rounds(own), "cap": cap })
        });
        let skipped = self.tokens.skipped.iter();
        let skipped = skipped.map(|(agent, why)| json!({ "agent": agent, "why": why }));
        let with_earlier = |key: &str, own: Vec<Value>| -> Vec<Value> {
            let told = earlier.and_then(|told| told[key].as_array()).cloned();
            told.unwrap_or_default().into_iter().chain(own).collect()
        };
        let stop = self.stop.as_ref();
        let root = || json!({ "max_iterations": self.graph.cap, "root": true });
        let by = stop.map_or_else(|| self.is_capped().then(root), |stop| stop.by.clone());
        let is_cut_off = stop.is_some() || self.halted || self.failed;
        let also = stop.into_iter().flat_map(|stop| &stop.also).map(Reason::as_str);
        json!({
            "stopped_by": by,
            "at_step": stop.map_or(self.journal.steps(), |stop| stop.at_step),
            "also": also.collect::<Vec<_>>(),
            "loops": with_earlier("loops", loops.collect()),
            "skipped": with_earlier("skipped", skipped.collect()),
            "unfinished": if is_cut_off { self.tokens.unfinished() } else { Vec::new() },
            "refused": with_earlier("refused", Vec::new()),
        })
    }

    /// Whether some work came to the cap.
    pub(super) fn is_capped(&self) -> bool {
        self.tokens.ended.iter().any(|it| it.how == End::Capped)
    }
}
