//! Whether a graph ends with the reply that has just come (graph.md §§9, 11).

use serde_json::{Value, json};

use super::{
    Condition, Facts, Group, JudgeError, PARENT, Test, Used, prompt,
    termination::{Judged, Reason},
    tokens::Turn,
    walk::{Stop, Walk},
};
use crate::{
    call::{FailureKind, Fault, Reply},
    scope::Step,
    team::AgentId,
    verdict::{self, Reading, Severity},
};

impl Walk<'_, '_> {
    /// Evaluates the conditions of the team's own after a reply; the run ends where that fails.
    pub(super) fn weigh(&mut self, reply: &Reply) {
        self.holding.clear();
        let conditions = self.graph.termination.iter().flat_map(Group::conditions);
        let own = conditions.filter_map(|condition| match &condition.test {
            Test::Own(own) => Some((condition, own)),
            _ => None,
        });
        let own: Vec<_> = own.collect();
        if own.is_empty() {
            return;
        }
        let facts = self.facts(own.iter().any(|(_, own)| own.rule.asks_for_usage()));
        for (condition, own) in own {
            match own.rule.holds(&facts, &own.params) {
                Ok(true) => self.holding.push(condition),
                Ok(false) => {}
                Err(why) => return self.break_off(reply, format!("condition {}: {why}", own.name)),
            }
        }
    }

    /// What extensions are evaluated on.
    pub(super) fn facts(&self, with_usage: bool) -> Facts {
        Facts {
            steps: self.journal.own_steps() + 1,
            usage: if with_usage { self.cx.used() } else { Used::default() },
            task: self.cx.spec().task.clone(),
            ..self.history.facts()
        }
    }

    /// Ends the run, as something cannot be evaluated.
    pub(super) fn break_off(&mut self, reply: &Reply, why: String) {
        self.failed = true;
        self.journal.fault(reply, &Fault::failed(FailureKind::Other, why));
    }

    /// Whether the termination holds, as a success, without the judge.
    pub(super) fn has_succeeded(&self) -> bool {
        let judged = self.graph.termination.as_ref().map(|it| self.judged(it, &[]));
        judged.is_some_and(|it| it.reasons().first().is_some_and(|reason| !reason.is_bound()))
            || self.reviews.as_ref().is_some_and(|reviews| reviews.is_clear)
    }

    /// Whether the run ends here. The judge is asked last, and only where its word can change that.
    pub(super) fn judge(&mut self, turn: &Turn, edges: &[usize]) -> Step<Option<Stop>> {
        if self.failed {
            return Ok(None);
        }
        let mut said: Vec<&Condition> = Vec::new();
        if let Some(termination) = &self.graph.termination
            && !self.has_succeeded()
            && !self.is_last(turn, edges)
        {
            let mut asked = 0;
            for condition in termination.conditions() {
                let Test::Converged { criterion, declared_by } = &condition.test else { continue };
                let is_due = match declared_by {
                    Some(agent) => agent == self.id(turn.agent),
                    None => self.structure.loops.is_empty() || self.structure.closes(turn.agent),
                };
                let supposed: Vec<&Condition> = said.iter().copied().chain([condition]).collect();
                let could = self.judged(termination, &supposed).reasons();
                if is_due && could.first() == Some(&Reason::Converged) {
                    if self.converged(asked, turn, criterion, declared_by.as_ref())? {
                        said.push(condition);
                    }
                    asked += 1;
                }
                if self.failed || self.halted {
                    return Ok(None);
                }
            }
        }
        let own = self.graph.termination.as_ref().map(|it| self.judged(it, &said).ends());
        let mut ends = own.unwrap_or_default();
        let materiality = self.graph.findings.map(Severity::as_str);
        let written = json!({ "findings": { "materiality": materiality } });
        ends.extend(self.ended_by_findings(turn).into_iter().map(|it| (it, written.clone())));
        ends.sort_by_key(|(reason, _)| reason.rank());
        let completes = self.tokens.would_complete(turn.agent, edges);
        Ok(stop_for(ends, completes))
    }

    /// Whether the termination holds by what the lead who routes has just said.
    pub(super) fn holds_by_lead(&self) -> Option<Stop> {
        let is_of_lead = |it: &Condition| matches!(&it.test, Test::Matches { agent, .. } if agent.as_str() == PARENT);
        let termination = self.graph.termination.as_ref()?;
        termination.conditions().into_iter().find(|it| is_of_lead(it))?;
        let stop = stop_for(self.judged(termination, &[]).ends(), false)?;
        Some(Stop { at_step: self.journal.steps(), ..stop })
    }

    /// What the termination comes to if the judge says `converged` of these conditions.
    fn judged<'t>(&self, termination: &'t Group, converged: &[&Condition]) -> Judged<'t> {
        let holding = converged.iter().chain(&self.holding);
        termination.judge(self.structure, &self.history, &|it: &Condition| {
            holding.clone().any(|said| std::ptr::eq(*said, it))
        })
    }

    /// Whether the run ends with this reply anyway.
    fn is_last(&self, turn: &Turn, edges: &[usize]) -> bool {
        let is_end = |edge: &usize| {
            self.structure.target(*edge).is_none() || self.tokens.is_closed(*edge, turn.round)
        };
        self.tokens.is_alone(turn.agent) && edges.iter().all(is_end)
    }

    /// What the judge says. Asked once more if it cannot be read or fails.
    fn converged(
        &mut self,
        nth: usize,
        turn: &Turn,
        criterion: &str,
        declared_by: Option<&AgentId>,
    ) -> Step<bool> {
        let Some(judge) = &self.graph.judge else { return Ok(false) };
        let step = self.journal.steps() + 1;
        let name = if nth == 0 { step.to_string() } else { format!("{step}-{}", nth + 1) };
        let place = self.graph.clocks.phase(&self.cx.at("judge"));
        let (graph, history) = (self.graph, &self.history);
        let question =
            prompt::of_judge(self.cx, graph, history, criterion, declared_by, turn.round);
        let read = |reply: &Reply| reply.contribution().map_or(Reading::None, verdict::converged);
        let mut reply = place.ask(&name, judge, question.clone())?;
        if !matches!(read(&reply), Reading::Value(_)) && !reply.is_stopped() {
            reply = place.at(&name).ask("again", judge, question)?;
        }
        if reply.is_stopped() {
            self.halted = true;
            return Ok(false);
        }
        let (code, what) = match (read(&reply), reply.fault(), self.graph.judge_error) {
            (Reading::Value(converged), ..) => return Ok(converged),
            (_, Some(_), JudgeError::Stop) => {
                self.failed = true;
                return Ok(false);
            }
            (_, Some(_), JudgeError::Ignore) => ("judge_failed", "the judge failed"),
            (_, None, _) => ("judge_unreadable", "the judge could not be read"),
        };
        let message = format!("{}: {what}; that counts as not converged", reply.key);
        self.journal.warn(code, message);
        Ok(false)
    }
}

/// The end that conditions bring about. One by a bound does not spoil work that has just come to its
/// exit.
fn stop_for(ends: Vec<(Reason, Value)>, completes: bool) -> Option<Stop> {
    let mut reasons: Vec<Reason> = ends.iter().map(|(reason, _)| reason.clone()).collect();
    reasons.dedup();
    let (first, also) = reasons.split_first()?;
    if first.is_bound() && completes {
        return None;
    }
    let first = first.clone();
    let by = ends.into_iter().next().map(|(_, written)| written);
    Some(Stop { reason: first, also: also.to_vec(), by, at_step: 0 })
}
