//! A lead that hands out work as it sees fit (graph.md §14, free dispatch).

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::lead::{self, Desk, Order, Whom, agent_of, guidance};
use crate::{
    call::{Part, Prompt, Reply},
    event::{Ending, Text},
    key::Key,
    programs::{Clocks, entry},
    scope::{Moment, Program, Scope, Step},
    team::AgentId,
};

/// The lead hands work to any agent, as often as it likes.
///
/// 1. It works in turns with tools; agents that it dispatches in one turn work side by side.
/// 2. Each sees the task, its own last words, and what the lead says.
/// 3. The answer is what the lead finishes with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dispatch {
    /// Who can be dispatched.
    pub agents: Vec<AgentId>,
    /// Its clocks.
    pub clocks: Clocks,
}

impl Program for Dispatch {
    fn run(&self, cx: &Scope) -> Step<Ending> {
        let Some(lead) = cx.spec().team.lead() else {
            return Ok(Ending::failed("error", Vec::new()));
        };
        let mut free =
            Free { of: self, cx, working: Vec::new(), turns: Vec::new(), is_halted: false };
        let ending = lead::run(cx, lead, &mut free);
        cx.record(|| json!({ "round": 1, "kind": "dispatch", "steps": free.steps() }));
        ending
    }
}

/// What was handed out so far.
struct Free<'c> {
    of: &'c Dispatch,
    cx: &'c Scope<'c>,
    working: Vec<(AgentId, Step<Reply>, Moment)>,
    /// The replies in the order of the log.
    turns: Vec<Reply>,
    is_halted: bool,
}

impl Free<'_> {
    fn steps(&self) -> Vec<Value> {
        let step = |(number, reply): (usize, &Reply)| json!({ "step": number, "agent": reply.agent, "response": entry(reply), "next": [] });
        (1..).zip(&self.turns).map(step).collect()
    }

    fn of<'a>(&'a self, agent: &'a AgentId) -> impl DoubleEndedIterator<Item = &'a Reply> {
        self.turns.iter().filter(move |reply| reply.agent == *agent)
    }
}

impl Desk for Free<'_> {
    fn dispatch(&mut self, order: Order) -> Result<AgentId, String> {
        let name = match &order.whom {
            Whom::Agent(name) => name.trim(),
            Whom::Task(task) => agent_of(task),
        };
        let found = self.cx.spec().team.find(name).map(|agent| agent.id.clone());
        let Some(agent) = found.filter(|agent| self.of.agents.contains(agent)) else {
            return Err(guidance("unknown", &self.of.agents, true));
        };
        if self.working.iter().any(|(id, ..)| *id == agent) {
            return Err(format!("not run: {agent} is at work in this turn already"));
        }
        let mut prompt = Prompt::task();
        let own = self.of(&agent).rev().find(|reply| reply.contribution().is_some());
        prompt.parts.extend(own.map(|reply| Part::Own(reply.key.clone())));
        let prompt = lead::ordered(self.cx, prompt, &order);
        let nth = self.of(&agent).count() + 1;
        let (reply, came) = self.cx.branch(self.cx.moment(), || {
            let place = self.of.clocks.phase(&self.cx.at(&agent));
            place.ask(&nth.to_string(), &agent, prompt)
        });
        self.working.push((agent.clone(), reply, came));
        Ok(agent)
    }

    fn settle(&mut self) -> Step<Vec<(AgentId, Reply)>> {
        let mut working = std::mem::take(&mut self.working);
        working.sort_by_key(|(_, reply, came)| (reply.is_err(), *came));
        let mut replies = Vec::new();
        for (agent, reply, came) in working {
            let reply = reply?;
            self.is_halted |= reply.is_stopped();
            self.cx.go_to(self.cx.moment().max(came));
            self.turns.push(reply.clone());
            replies.push((agent, reply));
        }
        Ok(replies)
    }

    fn state(&self) -> Option<String> {
        None
    }

    fn finish(&mut self) -> Result<(), String> {
        Ok(())
    }

    fn is_halted(&self) -> bool {
        self.is_halted
    }

    fn out_of_steps(&self) -> Ending {
        Ending::bound("max_steps", self.works())
    }

    fn ending(&self, answer: Option<Text>) -> Ending {
        match answer {
            Some(answer) => {
                Ending { answer: Some(answer), ..Ending::done("completed", Vec::new()) }
            }
            None => Ending::failed("error", self.works()),
        }
    }
}

impl Free<'_> {
    fn works(&self) -> Vec<Key> {
        let said = self.turns.iter().filter(|reply| reply.contribution().is_some());
        said.map(|reply| reply.key.clone()).collect()
    }
}
