//! What is done about a step that failed (graph.md §12).

use super::{
    Remedy,
    blocks::{self, Next},
    lead::list,
    prompt,
    tokens::{Token, Turn},
    walk::Walk,
};
use crate::{
    call::{Call, Fault, Prompt, Reply},
    key::Key,
    programs::language,
    scope::Step,
    team::AgentId,
    verdict::{DECISIONS, Decision, Reading},
};

/// How often the lead, or a person, may have a step tried again.
pub(crate) const MOST_RETRIES: u32 = 2;

/// Where a person is asked.
const PERSON: &str = "person";

/// What the name of a question about a failure begins with; the number of the step follows.
const FAILURE: &str = "failure-";

impl Walk<'_, '_> {
    /// Tries again, goes round the step, skips it, or ends its branch.
    pub(super) fn fail(
        &mut self,
        turn: &Turn,
        attempt: u32,
        prompt: &Prompt,
        reply: &Reply,
        fault: &Fault,
    ) -> Step<()> {
        let id = self.id(turn.agent);
        let policy = self.graph.policy(id);
        let failed = Reply { outcome: Err(fault.clone()), ..reply.clone() };
        if reply.fault().is_none() {
            self.journal.fault(&failed, fault);
        }
        let again = prompt::after_failure(self.cx, prompt.clone(), fault);
        // It is told of from now on; where its work goes may take a question.
        let step = self.journal.step(id, turn.round, attempt, &failed, None, &[]);
        if attempt <= policy.retry {
            self.journal.amend(step, std::slice::from_ref(id), None);
            self.ask_again(turn, attempt, again);
            return Ok(());
        }
        let spare: Vec<usize> = (self.structure.out(turn.agent).iter().copied())
            .filter(|edge| self.graph.edges[*edge].is_for_failures())
            .collect();
        if !spare.is_empty() {
            self.go_round(turn, step, fault, &spare);
            return Ok(());
        }
        let asked = attempt - 1 - policy.retry;
        let (decision, advice) = match policy.then {
            Remedy::Stop => (Decision::Stop, None),
            Remedy::Skip => (Decision::Skip, None),
            Remedy::Lead => self.ask_lead(turn, attempt, fault)?,
            Remedy::Ask => self.ask_person(turn, attempt, fault)?,
        };
        match (decision, self.skipping(turn)) {
            _ if self.halted => {}
            (Decision::Retry, _) if asked < MOST_RETRIES => {
                self.journal.amend(step, std::slice::from_ref(id), None);
                let again = advice.into_iter().fold(again, Prompt::say);
                self.ask_again(turn, attempt, again);
            }
            (Decision::Skip, Some(edges)) => {
                self.tokens.skip(turn.agent, &"failed".into());
                self.go_round(turn, step, fault, &edges);
            }
            (Decision::Retry | Decision::Skip | Decision::Stop, _) => {
                self.tokens.finish(turn.agent);
                self.tokens.fail(turn.agent, turn.token());
            }
        }
        Ok(())
    }

    /// Sends the work on as it came, with a note of who could not add to it.
    fn go_round(&mut self, turn: &Turn, step: usize, fault: &Fault, edges: &[usize]) {
        let id = self.id(turn.agent);
        let mut token: Token = turn.token();
        token.missing.push((id.clone(), prompt::why(fault)));
        let next = self.went(edges, turn.round);
        self.journal.amend(step, &next, None);
        self.tokens.finish(turn.agent);
        self.send(turn.agent, edges, &token);
    }

    /// The edges by which an agent is passed over; a choice is passed only by its declared default.
    fn skipping(&self, turn: &Turn) -> Option<Vec<usize>> {
        if !self.structure.decides(turn.agent) {
            return Some(self.ways(turn.agent));
        }
        let mut default = self.ways(turn.agent).into_iter();
        let default = default.find(|edge| self.graph.edges[*edge].default)?;
        (!self.tokens.is_closed(default, turn.round)).then(|| vec![default])
    }

    /// What the lead says to a failure, and what it has to add to another try. It is asked once more
    /// if that cannot be read.
    fn ask_lead(
        &mut self,
        turn: &Turn,
        attempt: u32,
        fault: &Fault,
    ) -> Step<(Decision, Option<String>)> {
        let stop = (Decision::Stop, None);
        let Some(lead) = self.cx.spec().team.lead() else { return Ok(stop) };
        let place = self.graph.clocks.phase(&self.cx.at("lead"));
        let name = format!("{FAILURE}{}", self.journal.steps());
        let id = self.id(turn.agent);
        let due: Vec<AgentId> =
            self.tokens.due().into_iter().map(|it| self.id(it).clone()).collect();
        let state = blocks::State {
            due: list(&due),
            failed: vec![format!("{id} ({})", prompt::error(fault, language(self.cx)))],
            choices: Vec::new(),
            can_finish: false,
            next: Next::Decide,
        };
        let question = prompt::of_failure(self.cx, id, attempt, fault);
        let question = question.say(blocks::state(self, &state));
        let mut reply = place.ask(&name, &lead.id, question.clone())?;
        let mut read = decision(&reply);
        if read.is_none() && !reply.is_stopped() {
            reply = place.at(&name).ask("again", &lead.id, question)?;
            read = decision(&reply);
        }
        self.halted |= reply.is_stopped();
        Ok(read.unwrap_or(stop))
    }

    /// What a person says to a failure; until then the run is suspended.
    fn ask_person(
        &mut self,
        turn: &Turn,
        attempt: u32,
        fault: &Fault,
    ) -> Step<(Decision, Option<String>)> {
        let agent = self.id(turn.agent).clone();
        let place = self.cx.at(PERSON);
        let name = format!("{FAILURE}{}", self.journal.steps());
        let prompt = prompt::of_failure(self.cx, &agent, attempt, fault);
        let question = Call::Person { agent, prompt };
        let mut reply = place.call(&name, question.clone())?;
        let mut read = decision(&reply);
        if read.is_none() && !reply.is_stopped() {
            reply = place.at(&name).call("again", question)?;
            read = decision(&reply);
        }
        self.halted |= reply.is_stopped();
        Ok(read.unwrap_or((Decision::Stop, None)))
    }
}

/// Whether a question asks a person what is to become of a step that failed.
pub(crate) fn is_about_failure(key: &Key) -> bool {
    let place = key.as_str().strip_suffix("/again").unwrap_or(key.as_str());
    let (place, name) = place.rsplit_once('/').unwrap_or(("", place));
    place.rsplit('/').next() == Some(PERSON) && name.starts_with(FAILURE)
}

/// What a reply says to a failure, and the text to add to another try.
fn decision(reply: &Reply) -> Option<(Decision, Option<String>)> {
    let answer = reply.contribution()?;
    let Reading::Value(decision) = DECISIONS.read(answer) else { return None };
    let advice = DECISIONS.beside(answer, "prompt");
    Some((decision, advice))
}
