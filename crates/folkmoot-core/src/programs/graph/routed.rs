//! A graph along which the lead routes (graph.md §14).

use serde_json::{Value, json};

use super::{
    Graph, Structure,
    blocks::{self, Next},
    choice::Options,
    ending::Walked,
    lead::{self, Desk, Order, Whom, agent_of, guidance, list},
    prompt,
    tokens::{Token, Turn},
    walk::{Begin, Stop, Walk},
};
use crate::{
    call::{FailureKind, Fault, Prompt, Reply},
    event::{Ending, Text},
    programs::language,
    scope::{Moment, Scope, Step},
    team::{Agent, AgentId},
};

/// How many dispatches are still run after the end.
const AFTER_THE_END: u32 = 3;

impl Graph {
    /// Lets the lead route; gives how it ends the work, and what that has come to.
    pub(super) fn led(&self, cx: &Scope, lead: &Agent, begin: &Begin) -> Step<(Ending, Walked)> {
        let structure = Structure::of(&self.edges);
        let walk = Walk::new(self, &structure, cx, begin);
        let mut routed = Routed {
            walk,
            working: Vec::new(),
            offers: Vec::new(),
            failed: Vec::new(),
            refused: Vec::new(),
            extra: 0,
            was_told: false,
        };
        let ending = lead::run(cx, lead, &mut routed);
        routed.walk.tell();
        cx.tell(|account| {
            let told = account.graph.as_mut().and_then(|graph| graph["refused"].as_array_mut());
            if let Some(told) = told {
                told.extend(routed.refused.iter().cloned());
            }
        });
        Ok((ending?, routed.walk.walked()))
    }
}

/// A graph as its lead has moved it.
struct Routed<'g, 'c> {
    walk: Walk<'g, 'c>,
    working: Vec<Working>,
    /// The choices that are open.
    offers: Vec<Offer<'g>>,
    /// The steps that failed, and what was asked.
    failed: Vec<Failed>,
    refused: Vec<Value>,
    /// How many dispatches were run after the end.
    extra: u32,
    /// Whether the lead was told that others are due.
    was_told: bool,
}

/// A turn that is under way.
struct Working {
    job: Job,
    reply: Step<Reply>,
    came: Moment,
}

/// What an agent works on.
struct Job {
    turn: Turn,
    attempt: u32,
    /// What it was asked at first.
    prompt: Prompt,
    /// Whether it moves nothing, as the work has ended.
    is_extra: bool,
}

/// What a decision agent has done, until the lead takes one of its options.
struct Offer<'g> {
    record: usize,
    turn: Turn,
    token: Token,
    options: Options<'g>,
}

/// A step that failed, until the lead tries it again or goes on without it.
struct Failed {
    record: usize,
    turn: Turn,
    attempt: u32,
    prompt: Prompt,
    fault: Fault,
}

impl Routed<'_, '_> {
    /// Whether the work has ended, so that a closing answer is all that is left.
    fn is_over(&self) -> bool {
        self.walk.stop.is_some()
            || (self.walk.tokens.are_used_up() && self.offers.is_empty() && self.failed.is_empty())
    }

    /// Who may be dispatched.
    fn due(&self) -> Vec<AgentId> {
        if self.is_over() {
            return Vec::new();
        }
        let mut due: Vec<AgentId> = Vec::new();
        let mut add = |id: &AgentId| {
            if !due.contains(id) {
                due.push(id.clone());
            }
        };
        self.walk.tokens.due().into_iter().for_each(|agent| add(self.walk.id(agent)));
        for offer in &self.offers {
            let targets =
                offer.options.open.iter().filter_map(|at| self.walk.structure.target(*at));
            targets.for_each(|agent| add(self.walk.id(agent)));
        }
        for failed in &self.failed {
            add(self.walk.id(failed.turn.agent));
        }
        due
    }

    /// The exits that are open.
    fn exits(&self) -> Vec<(usize, usize)> {
        let offers = self.offers.iter().enumerate();
        let exits = offers.flat_map(|(at, offer)| {
            let open = offer.options.open.iter().copied();
            open.filter(|edge| self.walk.structure.target(*edge).is_none())
                .map(move |edge| (at, edge))
        });
        exits.collect()
    }

    fn can_finish(&self) -> bool {
        self.is_over() || !self.exits().is_empty()
    }

    fn refuse(&mut self, agent: &str, why: &str) -> String {
        let due = self.due();
        self.refused.push(json!({
            "after_step": self.walk.journal.steps(),
            "agent": agent,
            "why": why,
            "due": due,
        }));
        guidance(why, &due, self.can_finish())
    }

    /// The number of the agent that the lead means, by its id or name.
    fn meant(&self, name: &str) -> Option<usize> {
        let agent = self.walk.cx.spec().team.find(name.trim())?;
        self.walk.structure.number(&agent.id)
    }

    fn ask(&mut self, job: Job, asked: Prompt) {
        let walk = &self.walk;
        let (reply, came) =
            walk.cx.branch(walk.cx.moment(), || walk.request(&job.turn, job.attempt, asked));
        self.working.push(Working { job, reply, came });
    }

    /// What an agent is to do in a turn, with the lead's words behind its inputs.
    fn job(&self, turn: Turn, order: &Order) -> Job {
        let prompt = lead::ordered(self.walk.cx, self.walk.question(&turn), order);
        Job { turn, attempt: 1, prompt, is_extra: false }
    }

    fn start(&mut self, agent: usize, order: &Order) -> bool {
        if !self.walk.tokens.due().contains(&agent) {
            return false;
        }
        let Some(turn) = self.walk.tokens.start(agent) else { return false };
        let job = self.job(turn, order);
        let asked = job.prompt.clone();
        self.ask(job, asked);
        true
    }

    /// Takes the option of an offer that leads to an agent.
    fn take(&mut self, agent: usize) -> bool {
        let structure = self.walk.structure;
        let leads = |offer: &Offer| {
            let mut open = offer.options.open.iter().copied();
            open.find(|edge| structure.target(*edge) == Some(agent))
        };
        let Some((at, edge)) =
            self.offers.iter().enumerate().find_map(|(at, offer)| Some((at, leads(offer)?)))
        else {
            return false;
        };
        let offer = self.offers.remove(at);
        self.settle_offer(&offer, edge);
        true
    }

    fn settle_offer(&mut self, offer: &Offer, edge: usize) {
        let next = self.walk.went(&[edge], offer.turn.round);
        self.walk.journal.amend(offer.record, &next, Some("lead"));
        self.walk.send(offer.turn.agent, &[edge], &offer.token);
    }

    /// Goes on without a step that failed, to one of its successors.
    fn go_on_without(&mut self, agent: usize) -> bool {
        let structure = self.walk.structure;
        let leads = |failed: &Failed| {
            let mut out = structure.out(failed.turn.agent).iter();
            out.any(|edge| structure.target(*edge) == Some(agent))
        };
        let Some(at) = self.failed.iter().position(leads) else { return false };
        let Failed { record, turn, fault, .. } = self.failed.remove(at);
        let to = |edge: &usize| structure.target(*edge) == Some(agent);
        let edges: Vec<usize> = if structure.decides(turn.agent) {
            structure.out(turn.agent).iter().copied().filter(to).collect()
        } else {
            self.walk.ways(turn.agent)
        };
        let next = self.walk.went(&edges, turn.round);
        self.walk.journal.amend(record, &next, None);
        self.walk.tokens.skip(turn.agent, &"failed".into());
        self.walk.tokens.finish(turn.agent);
        let mut token = turn.token();
        token.missing.push((self.walk.id(turn.agent).clone(), prompt::why(&fault)));
        self.walk.send(turn.agent, &edges, &token);
        true
    }

    fn try_again(&mut self, agent: usize, order: &Order) -> bool {
        let Some(at) = self.failed.iter().position(|it| it.turn.agent == agent) else {
            return false;
        };
        let Failed { record, turn, attempt, prompt, fault } = self.failed.remove(at);
        let next = [self.walk.id(agent).clone()];
        self.walk.journal.amend(record, &next, None);
        let asked = prompt::after_failure(self.walk.cx, prompt.clone(), &fault);
        let asked = lead::ordered(self.walk.cx, asked, order);
        self.ask(Job { turn, attempt: attempt + 1, prompt, is_extra: false }, asked);
        true
    }

    /// Takes in what came of a turn.
    fn deliver(&mut self, job: Job, reply: &Reply) -> Step<()> {
        let Job { turn, attempt, prompt, is_extra } = job;
        let id = self.walk.id(turn.agent).clone();
        if reply.contribution().is_none() {
            if reply.is_stopped() {
                self.walk.halted = true;
                return Ok(());
            }
            let blank = || Fault::failed(FailureKind::Incomplete, "blank");
            let fault = reply.fault().cloned().unwrap_or_else(blank);
            let failed = Reply { outcome: Err(fault.clone()), ..reply.clone() };
            if reply.fault().is_none() {
                self.walk.journal.fault(&failed, &fault);
            }
            let record = self.walk.journal.step(&id, turn.round, attempt, &failed, None, &[]);
            if !is_extra {
                self.failed.push(Failed { record, turn, attempt, prompt, fault });
            }
            return Ok(());
        }
        if is_extra {
            self.walk.journal.step(&id, turn.round, attempt, reply, None, &[]);
            return Ok(());
        }
        let now = self.walk.cx.moment().at;
        self.walk.history.add(self.walk.structure, turn.agent, turn.round, reply, now);
        self.walk.weigh(reply);
        self.walk.review(&turn, attempt, reply)?;
        let token = self.walk.work(&turn, reply);
        let edges = self.walk.ways(turn.agent);
        let decides = self.walk.structure.decides(turn.agent);
        let options = decides.then(|| self.walk.options(&turn));
        let stop = self.walk.judge(&turn, &edges)?;
        let is_over = stop.is_some() || self.walk.failed;
        let goes = decides || is_over;
        let next = if goes { Vec::new() } else { self.walk.went(&edges, turn.round) };
        let chosen = options.map(|options| (options, None));
        let record =
            self.walk.journal.step(&id, turn.round, attempt, reply, chosen.as_ref(), &next);
        self.walk.tokens.finish(turn.agent);
        if is_over {
            let edge = edges.first().copied().unwrap_or_else(|| self.walk.tokens.place(turn.agent));
            self.walk.tokens.stand(edge, token);
            let at_step = self.walk.journal.steps();
            self.walk.stop = stop.map(|stop| Stop { at_step, ..stop });
            return Ok(());
        }
        match chosen {
            Some((options, _)) if options.open.is_empty() => {
                self.walk.send(turn.agent, &options.closed, &token);
            }
            Some((options, _)) => self.offers.push(Offer { record, turn, token, options }),
            None => self.walk.send(turn.agent, &edges, &token),
        }
        Ok(())
    }
}

impl Desk for Routed<'_, '_> {
    fn dispatch(&mut self, order: Order) -> Result<AgentId, String> {
        let name = match &order.whom {
            Whom::Agent(name) => name.clone(),
            Whom::Task(task) => agent_of(task).to_owned(),
        };
        let Some(agent) = self.meant(&name) else {
            return Err(self.refuse(&name, "unknown"));
        };
        let id = self.walk.id(agent).clone();
        if self.working.iter().any(|it| it.job.turn.agent == agent) {
            return Err(self.refuse(id.as_str(), "off_route"));
        }
        if self.is_over() {
            if self.extra == AFTER_THE_END {
                return Err(self.refuse(id.as_str(), "ended"));
            }
            self.extra += 1;
            let turn = self.walk.tokens.extra(agent);
            let job = Job { is_extra: true, ..self.job(turn, &order) };
            let asked = job.prompt.clone();
            self.ask(job, asked);
            return Ok(id);
        }
        let is_retry = matches!(order.whom, Whom::Task(_));
        let is_done = (!is_retry && self.start(agent, &order))
            || self.try_again(agent, &order)
            || (!is_retry
                && (self.take(agent) || self.go_on_without(agent))
                && self.start(agent, &order));
        if is_done {
            return Ok(id);
        }
        let structure = self.walk.structure;
        let is_capped = self.offers.iter().any(|offer| {
            offer.options.closed.iter().any(|edge| structure.target(*edge) == Some(agent))
        });
        Err(self.refuse(id.as_str(), if is_capped { "capped" } else { "off_route" }))
    }

    fn settle(&mut self) -> Step<Vec<(AgentId, Reply)>> {
        let mut replies = Vec::new();
        let mut now = self.walk.cx.moment();
        loop {
            let answered = self.working.iter().enumerate().filter(|(_, it)| it.reply.is_ok());
            let next = answered.min_by_key(|(_, it)| it.came).map(|(at, _)| at);
            let Some(next) = next.or((!self.working.is_empty()).then_some(0)) else { break };
            let Working { job, reply, came } = self.working.remove(next);
            let reply = reply?;
            let cx = self.walk.cx;
            let id = self.walk.id(job.turn.agent).clone();
            let (delivered, moment) = cx.branch(now.max(came), || self.deliver(job, &reply));
            delivered?;
            now = moment;
            replies.push((id, reply));
        }
        // What the lead does next begins when the last of them is in.
        self.walk.cx.go_to(now);
        Ok(replies)
    }

    fn hear(&mut self, reply: &Reply) {
        self.walk.history.hear(reply);
        if self.walk.stop.is_none() {
            self.walk.stop = self.walk.holds_by_lead();
        }
    }

    fn state(&self) -> Option<String> {
        let walk = &self.walk;
        let failed: Vec<String> = (self.failed.iter())
            .map(|it| {
                let error = prompt::error(&it.fault, language(walk.cx));
                format!("{} ({error})", walk.id(it.turn.agent))
            })
            .collect();
        let proposals: Vec<String> = (self.offers.iter())
            .map(|offer| {
                let targets: Vec<&str> =
                    offer.options.targets().into_iter().map(AgentId::as_str).collect();
                format!("{} -> {}", walk.id(offer.turn.agent), targets.join(" | "))
            })
            .collect();
        let ended = self.is_over().then(|| match &walk.stop {
            Some(stop) => stop.reason.as_str(),
            None if walk.is_capped() => "max_iterations",
            None => "completed",
        });
        Some(blocks::state(
            walk,
            &blocks::State {
                due: list(&self.due()),
                failed,
                choices: proposals,
                can_finish: self.can_finish(),
                next: ended.map_or(Next::Dispatch, Next::Close),
            },
        ))
    }

    fn finish(&mut self) -> Result<(), String> {
        let exits = self.exits();
        let due = self.due();
        if exits.is_empty() && !due.is_empty() && self.failed.is_empty() && !self.was_told {
            self.was_told = true;
            return Err(format!(
                "not finished: {} is due; call finish again to end all the same",
                list(&due)
            ));
        }
        let offers = std::mem::take(&mut self.offers);
        for (at, edge) in exits {
            self.settle_offer(&offers[at], edge);
        }
        for Failed { turn, .. } in std::mem::take(&mut self.failed) {
            self.walk.tokens.finish(turn.agent);
            self.walk.tokens.fail(turn.agent, turn.token());
        }
        self.walk.tokens.leave(&"left by the lead".into());
        Ok(())
    }

    fn is_halted(&self) -> bool {
        self.walk.halted || self.walk.failed
    }

    fn out_of_steps(&self) -> Ending {
        Ending::bound("max_steps", self.walk.walked().works)
    }

    fn ending(&self, answer: Option<Text>) -> Ending {
        let walked = self.walk.walked();
        match answer {
            Some(answer) => walked.ending(answer),
            None => Ending::failed("error", walked.works),
        }
    }
}
