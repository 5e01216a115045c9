//! What an edge requires is looked at before it is taken (convergence.md §2).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{
    choice::{Options, Why},
    prompt,
    tokens::Turn,
    walk::Walk,
};
use crate::{
    call::{Answer, Call, FailureKind, Fault, Prompt, Reply},
    gate::{Evidence, GRACE, Gate},
    scope::{Scope, Step},
};

/// Where the work of a step goes when its edges have been looked at.
#[derive(Debug)]
pub(super) enum Passage {
    /// Over these edges, with the reply that passed.
    Open {
        /// The latest reply of the step.
        reply: Reply,
        /// The edges, and how they came about where that has changed.
        edges: Vec<usize>,
        /// How.
        why: Option<Why>,
    },
    /// Nowhere: what was required is not so, and there is no other way.
    Shut {
        /// The latest reply of the step.
        reply: Reply,
        /// What fails the step.
        fault: Fault,
    },
    /// The run was stopped from outside.
    Halted,
}

/// Looks at the edges of one step, in turn.
struct Look<'w, 'g, 'c> {
    walk: &'w mut Walk<'g, 'c>,
    place: Scope<'c>,
    reply: Reply,
    edges: Vec<usize>,
    why: Option<Why>,
    /// The edges that the latest reply has passed.
    passed: BTreeSet<usize>,
    /// By edge: how often its agent was asked again.
    asked: BTreeMap<usize, u32>,
    /// The edges that are not taken any more.
    shut: BTreeSet<usize>,
    /// What was looked at.
    evidence: Vec<Value>,
}

/// Something required that is not so.
struct Missing {
    edge: usize,
    gate: Gate,
    outcome: Evidence,
    /// Whether the agent could do something about it.
    can_be_mended: bool,
}

impl<'g> Walk<'g, '_> {
    /// Whether some edge of an agent requires anything.
    pub(super) fn is_gated(&self, agent: usize) -> bool {
        let mut out = self.structure.out(agent).iter();
        out.any(|edge| self.graph.edges[*edge].requires.is_some())
    }

    /// Looks at what the chosen edges require. What fails is told to the agent, which may reply again;
    /// then the other options remain.
    pub(super) fn pass(
        &mut self,
        turn: &Turn,
        attempt: u32,
        reply: &Reply,
        before: Option<&Answer>,
        edges: &[usize],
        options: Option<&Options<'g>>,
    ) -> Step<Passage> {
        let mut look = Look {
            place: self.place(turn, attempt),
            walk: self,
            reply: reply.clone(),
            edges: edges.to_vec(),
            why: None,
            passed: BTreeSet::new(),
            asked: BTreeMap::new(),
            shut: BTreeSet::new(),
            evidence: Vec::new(),
        };
        let passage = look.go(before, options);
        let evidence = look.evidence;
        self.journal.show(evidence);
        passage
    }
}

impl<'g> Look<'_, 'g, '_> {
    fn go(&mut self, before: Option<&Answer>, options: Option<&Options<'g>>) -> Step<Passage> {
        loop {
            let missing = self.first_missing()?;
            if self.walk.halted {
                return Ok(Passage::Halted);
            }
            let Some(missing) = missing else {
                let (reply, edges) = (self.reply.clone(), self.edges.clone());
                return Ok(Passage::Open { reply, edges, why: self.why });
            };
            if self.asks_again(&missing, options)? {
                continue;
            }
            if self.walk.halted {
                return Ok(Passage::Halted);
            }
            self.shut.insert(missing.edge);
            self.edges.retain(|edge| *edge != missing.edge);
            if self.edges.is_empty() {
                let Some(other) = options.and_then(|it| self.other(before, it)) else {
                    let text = format!("gate failed: {}", missing.gate);
                    let fault = Fault::failed(FailureKind::Other, text);
                    return Ok(Passage::Shut { reply: self.reply.clone(), fault });
                };
                (self.edges, self.why) = (vec![other], Some(Why::Gate));
            }
        }
    }

    /// The first thing that is required and not so; each is a call of its own.
    fn first_missing(&mut self) -> Step<Option<Missing>> {
        for edge in self.edges.clone() {
            let Some(requires) = &self.walk.graph.edges[edge].requires else { continue };
            if self.passed.contains(&edge) {
                continue;
            }
            for (nth, requirement) in requires.all.iter().enumerate() {
                let looked = self.walk.looks.entry((edge, nth)).or_default();
                *looked += 1;
                let call = Call::Gate {
                    agent: self.reply.agent.clone(),
                    gate: requirement.gate.clone(),
                    of: self.reply.key.clone(),
                    scripted: requirement.scripted(*looked),
                };
                let name = format!("gate-{}", self.evidence.len() + 1);
                let most = match &requirement.gate {
                    Gate::Command { timeout, .. } => *timeout + GRACE,
                    Gate::File { .. } | Gate::Schema { .. } => GRACE,
                };
                let told = self.place.each_within(Some(most)).call(&name, call)?;
                if told.is_stopped() {
                    self.walk.halted = true;
                    return Ok(None);
                }
                let (outcome, can_be_mended) = match Evidence::read(&told) {
                    Ok(outcome) => (outcome, true),
                    Err(fault) => (Evidence::shut(fault.to_string()), false),
                };
                self.evidence.push(record(&told, &requirement.gate, &outcome));
                if !outcome.passed {
                    let gate = requirement.gate.clone();
                    return Ok(Some(Missing { edge, gate, outcome, can_be_mended }));
                }
            }
            self.passed.insert(edge);
        }
        Ok(None)
    }

    /// Asks the agent again, with what failed; false if it may not be asked any more, or says nothing.
    fn asks_again(&mut self, missing: &Missing, options: Option<&Options<'g>>) -> Step<bool> {
        let requires = self.walk.graph.edges[missing.edge].requires.as_ref();
        let asked = self.asked.entry(missing.edge).or_default();
        if !missing.can_be_mended || *asked >= requires.map_or(0, |it| it.tries) {
            return Ok(false);
        }
        *asked += 1;
        let name = format!("gate-again-{}", self.asked.values().sum::<u32>());
        let prompt = Prompt::after(&self.reply);
        let (gate, outcome) = (&missing.gate, &missing.outcome);
        let prompt =
            prompt::gate_failed(self.walk.cx, self.walk.graph, prompt, gate, outcome, options);
        let again =
            self.walk.graph.clocks.phase(&self.place).ask(&name, &self.reply.agent, prompt)?;
        self.walk.halted |= again.is_stopped();
        let Some(answer) = again.contribution() else { return Ok(false) };
        let named = options.and_then(|it| it.named(self.walk.cx, answer));
        if let Some((edges, why)) = named {
            let open = edges.into_iter().filter(|edge| !self.shut.contains(edge));
            let open: Vec<usize> = open.collect();
            if !open.is_empty() && open != self.edges {
                (self.edges, self.why) = (open, Some(why));
            }
        }
        self.passed.clear();
        self.reply = again;
        Ok(true)
    }

    /// Another way for the work: one whose guard holds, the default, or the only one that is left.
    fn other(&self, before: Option<&Answer>, options: &Options) -> Option<usize> {
        let left: Vec<usize> = options.all().filter(|edge| !self.shut.contains(edge)).collect();
        let is_left = |edge: &usize| left.contains(edge);
        let answer = self.reply.contribution()?;
        let guarded = options.guarded(answer, before, &|usage| self.walk.facts(usage));
        // What cannot be evaluated ended the run when the first reply came, or is no way now.
        let guarded = guarded.ok().flatten().filter(is_left);
        let default = || options.default().filter(is_left);
        let only = || left.first().copied().filter(|_| left.len() == 1);
        guarded.or_else(default).or_else(only)
    }
}

/// What was looked at, and what came of it.
fn record(told: &Reply, gate: &Gate, outcome: &Evidence) -> Value {
    let mut record = json!({ "key": told.key });
    let (kind, what) = match gate {
        Gate::Command { command, .. } => ("command", command),
        Gate::File { path } => ("file", path),
        Gate::Schema { name, .. } => ("schema", name),
    };
    record[kind] = (**what).into();
    if let Some(Value::Object(told)) = outcome.answer().json {
        for (key, value) in told {
            record[key] = value;
        }
    }
    record
}
