//! How work moves: one reply at a time, in the order of the log (graph.md §6).

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    Condition, Graph, PARENT, Structure,
    choice::{Options, Why},
    gates::Passage,
    prompt,
    record::Journal,
    review::Reviews,
    termination::{History, Reason},
    tokens::{End, Token, Tokens, Turn},
};
use crate::{
    call::{Answer, FailureKind, Fault, Prompt, Reply},
    key::Key,
    scope::{Moment, Scope, Step},
    team::AgentId,
};

/// Where a graph begins.
#[derive(Clone, Debug, Default)]
pub(super) struct Begin<'a> {
    /// The stage that it is of a larger graph.
    pub(super) stage: Option<&'a str>,
    /// How many steps there were before.
    pub(super) steps: u64,
    /// The works of the stage before.
    pub(super) works: Vec<Key>,
}

/// A turn that is under way, or answered and not yet handled.
#[derive(Debug)]
struct Pending {
    turn: Turn,
    attempt: u32,
    /// What was asked, to be asked again if it fails.
    prompt: Prompt,
    reply: Step<Reply>,
    came: Moment,
}

/// What ended a graph before its work was done.
#[derive(Debug)]
pub(super) struct Stop {
    pub(super) reason: Reason,
    pub(super) also: Vec<Reason>,
    /// The condition as its author wrote it.
    pub(super) by: Option<Value>,
    pub(super) at_step: u64,
}

/// A graph as far as it has come.
pub(super) struct Walk<'g, 'c> {
    pub(super) graph: &'g Graph,
    pub(super) structure: &'g Structure,
    pub(super) cx: &'c Scope<'c>,
    pub(super) tokens: Tokens<'g>,
    pub(super) history: History,
    pub(super) journal: Journal,
    /// What was found, if findings are asked for.
    pub(super) reviews: Option<Reviews>,
    /// By edge and place: how often what it requires has been looked at.
    pub(super) looks: BTreeMap<(usize, usize), usize>,
    pending: Vec<Pending>,
    now: Moment,
    /// The conditions of the team's own that hold since the latest reply.
    pub(super) holding: Vec<&'g Condition>,
    /// What ended it.
    pub(super) stop: Option<Stop>,
    /// Whether it cannot go on, as the judge failed or something cannot be evaluated.
    pub(super) failed: bool,
    /// Whether the run was stopped from outside, so that nothing more may start.
    pub(super) halted: bool,
}

impl<'g, 'c> Walk<'g, 'c> {
    pub(super) fn new(
        graph: &'g Graph,
        structure: &'g Structure,
        cx: &'c Scope<'c>,
        begin: &Begin,
    ) -> Walk<'g, 'c> {
        Walk {
            graph,
            structure,
            cx,
            tokens: Tokens::new(graph, structure, &begin.works),
            history: History::new(structure, cx.moment().at),
            journal: Journal::new(begin.stage, begin.steps),
            reviews: graph.findings.map(Reviews::new),
            looks: BTreeMap::new(),
            pending: Vec::new(),
            now: cx.moment(),
            holding: Vec::new(),
            stop: None,
            failed: false,
            halted: false,
        }
    }

    /// Goes as far as what is known allows.
    pub(super) fn go(&mut self) -> Step<()> {
        let gone = self.handle_all();
        if self.is_over() {
            self.pending.drain(..).for_each(|it| give_up(self.cx, self.structure, &it.turn));
        }
        gone
    }

    fn is_over(&self) -> bool {
        self.stop.is_some() || self.failed
    }

    fn handle_all(&mut self) -> Step<()> {
        loop {
            while let Some(agent) = self.tokens.due().first().copied().filter(|_| !self.halted) {
                self.start(agent);
            }
            let answered = self.pending.iter().enumerate().filter(|(_, it)| it.reply.is_ok());
            let next = answered.min_by_key(|(_, it)| it.came).map(|(at, _)| at);
            let Some(next) = next.or((!self.pending.is_empty()).then_some(0)) else {
                return Ok(());
            };
            let Pending { turn, attempt, prompt, reply, came } = self.pending.remove(next);
            let reply = reply?;
            let (handled, now) =
                self.cx.branch(self.now.max(came), || self.handle(&turn, attempt, &prompt, &reply));
            handled?;
            self.now = now;
            if self.is_over() {
                return Ok(());
            }
        }
    }

    /// Lets an agent be asked, with all that it holds.
    fn start(&mut self, agent: usize) {
        let Some(turn) = self.tokens.start(agent) else { return };
        // What could only end in a join that has started is wanted no longer.
        let is_running = |it: &Pending| self.tokens.running().any(|turn| *turn == it.turn);
        let (kept, lost) = std::mem::take(&mut self.pending).into_iter().partition(is_running);
        self.pending = kept;
        for it in &lost as &Vec<Pending> {
            give_up(self.cx, self.structure, &it.turn);
        }
        let prompt = self.question(&turn);
        self.ask(turn, 1, prompt);
    }

    /// What an agent is asked in a turn.
    pub(super) fn question(&self, turn: &Turn) -> Prompt {
        let own = self.history.latest(self.id(turn.agent)).map(|reply| reply.key.clone());
        let options = self.structure.decides(turn.agent).then(|| self.options(turn));
        let findings = self.findings_for(turn.agent);
        prompt::of_turn(self.cx, self.graph, turn, own.as_ref(), findings, options.as_ref())
    }

    /// Asks an agent for a turn that it has started.
    pub(super) fn ask(&mut self, turn: Turn, attempt: u32, prompt: Prompt) {
        let (reply, came) =
            self.cx.branch(self.now, || self.request(&turn, attempt, prompt.clone()));
        self.pending.push(Pending { turn, attempt, prompt, reply, came });
    }

    /// The reply to a turn, as soon as there is one.
    pub(super) fn request(&self, turn: &Turn, attempt: u32, prompt: Prompt) -> Step<Reply> {
        let id = self.id(turn.agent);
        let place = self.cx.at(id);
        if self.tokens.lacks_quorum(turn) {
            let fault = Fault::failed(FailureKind::Other, "quorum not reached");
            let key = place.key(turn.nth);
            return Ok(Reply { key, agent: id.clone(), outcome: Err(fault) });
        }
        let phase = self.graph.clocks.phase(&place);
        match attempt {
            1 => phase.ask(&turn.nth.to_string(), id, prompt),
            n => phase.at(turn.nth).ask(&format!("try-{n}"), id, prompt),
        }
    }

    /// Asks the agent of a failed turn again, from now on.
    pub(super) fn ask_again(&mut self, turn: &Turn, attempt: u32, prompt: Prompt) {
        self.now = self.cx.moment();
        self.ask(turn.clone(), attempt + 1, prompt);
    }

    pub(super) fn id(&self, agent: usize) -> &'g AgentId {
        &self.structure.agents[agent]
    }

    pub(super) fn options(&self, turn: &Turn) -> Options<'g> {
        let is_closed = |edge| self.tokens.is_closed(edge, turn.round);
        Options::of(self.graph, self.structure, turn.agent, is_closed)
    }

    /// Records a step, reads its choice, judges, and sends its work on.
    fn handle(&mut self, turn: &Turn, attempt: u32, prompt: &Prompt, reply: &Reply) -> Step<()> {
        if reply.is_stopped() {
            self.halted = true;
            return Ok(());
        }
        let Some(answer) = reply.contribution() else {
            let blank = || Fault::failed(FailureKind::Incomplete, "blank");
            let fault = reply.fault().cloned().unwrap_or_else(blank);
            return self.fail(turn, attempt, prompt, reply, &fault);
        };
        let before = self.history.latest(&reply.agent).and_then(Reply::contribution).cloned();
        self.history.add(self.structure, turn.agent, turn.round, reply, self.cx.moment().at);
        let reviews = self.reviews.clone();
        self.weigh(reply);
        self.review(turn, attempt, reply)?;
        let mut edges = self.ways(turn.agent);
        let mut chosen = None;
        if self.structure.decides(turn.agent) && !self.failed {
            let options = self.options(turn);
            let choice = self.choice(turn, attempt, reply, answer, before.as_ref(), &options)?;
            match choice {
                Some((ref taken, _)) => edges.clone_from(taken),
                None if self.failed => {}
                None if options.closed.is_empty() && !self.has_succeeded() => {
                    let fault = undecided(&options);
                    return self.fail_after_all(turn, attempt, prompt, reply, &fault, reviews);
                }
                None => edges.clone_from(&options.closed),
            }
            chosen = Some((options, choice.map(|(_, why)| why)));
        }
        let mut passed = None;
        if self.is_gated(turn.agent) && !self.failed {
            let (options, before) = (chosen.as_ref().map(|it| &it.0), before.as_ref());
            match self.pass(turn, attempt, reply, before, &edges, options)? {
                Passage::Open { reply: latest, edges: open, why } => {
                    edges = open;
                    if let (Some(chosen), Some(why)) = (&mut chosen, why) {
                        chosen.1 = Some(why);
                    }
                    passed = Some(latest);
                }
                Passage::Shut { reply: latest, fault } => {
                    return self.fail_after_all(turn, attempt, prompt, &latest, &fault, reviews);
                }
                Passage::Halted => {
                    self.halted = true;
                    return Ok(());
                }
            }
        }
        let reply = passed.as_ref().map_or(reply, |latest| {
            self.replace(turn, reply, latest, reviews);
            let is_evident = |edge: &usize| self.graph.edges[*edge].requires.is_some();
            self.note_clear(turn, edges.iter().any(is_evident));
            latest
        });
        let token = self.work(turn, reply);
        let stop = self.judge(turn, &edges)?;
        let is_over = stop.is_some() || self.failed;
        let next = if is_over { Vec::new() } else { self.went(&edges, turn.round) };
        let id = self.id(turn.agent);
        self.journal.step(id, turn.round, attempt, reply, chosen.as_ref(), &next);
        self.tokens.finish(turn.agent);
        if is_over {
            let edge = edges.first().copied().unwrap_or_else(|| self.tokens.place(turn.agent));
            self.tokens.stand(edge, token);
            let at_step = self.journal.steps();
            self.stop = stop.map(|stop| Stop { at_step, ..stop });
        } else {
            self.send(turn.agent, &edges, &token);
        }
        Ok(())
    }

    /// Lets a later reply of the same step stand for the one that came first.
    fn replace(&mut self, turn: &Turn, first: &Reply, latest: &Reply, reviews: Option<Reviews>) {
        if latest.key == first.key {
            return;
        }
        self.history.drop_last(self.structure, turn.agent, turn.round, &first.agent);
        self.history.add(self.structure, turn.agent, turn.round, latest, self.cx.moment().at);
        self.weigh(latest);
        self.review_anew(turn, latest, reviews);
    }

    /// Fails a step whose reply came, as if it had not.
    fn fail_after_all(
        &mut self,
        turn: &Turn,
        attempt: u32,
        prompt: &Prompt,
        reply: &Reply,
        fault: &Fault,
        reviews: Option<Reviews>,
    ) -> Step<()> {
        self.history.drop_last(self.structure, turn.agent, turn.round, &reply.agent);
        self.reviews = reviews;
        self.fail(turn, attempt, prompt, reply, fault)
    }

    /// The edges that an agent chooses, and how; nothing if no choice can be read.
    fn choice(
        &mut self,
        turn: &Turn,
        attempt: u32,
        reply: &Reply,
        answer: &Answer,
        before: Option<&Answer>,
        options: &Options,
    ) -> Step<Option<(Vec<usize>, Why)>> {
        if let Some(named) = options.named(self.cx, answer) {
            return Ok(Some(named));
        }
        match options.guarded(answer, before, &|with_usage| self.facts(with_usage)) {
            Ok(None) => {}
            Ok(Some(edge)) => return Ok(Some((vec![edge], Why::Guard))),
            Err(why) => {
                self.break_off(reply, why);
                return Ok(None);
            }
        }
        // A run that ends here needs no choice.
        let is_asked = !options.are_guarded() && !self.has_succeeded();
        if is_asked {
            let place = self.place(turn, attempt);
            let prompt = prompt::again(self.cx, self.graph, Prompt::after(reply), options);
            let again = self.graph.clocks.phase(&place).ask("again", &reply.agent, prompt)?;
            let named = again.contribution().and_then(|answer| options.named(self.cx, answer));
            if let Some((edges, _)) = named {
                return Ok(Some((edges, Why::Asked)));
            }
        }
        let Some(default) = options.default() else { return Ok(None) };
        if is_asked {
            let message = format!("{}: no choice could be read; the default was taken", reply.key);
            self.journal.warn("undecided", message);
        }
        Ok(Some((vec![default], Why::Default)))
    }

    /// The edges over which an agent without a choice sends its work.
    pub(super) fn ways(&self, agent: usize) -> Vec<usize> {
        let edges = self.structure.out(agent).iter().copied();
        edges.filter(|edge| !self.graph.edges[*edge].is_for_failures()).collect()
    }

    pub(super) fn send(&mut self, agent: usize, edges: &[usize], token: &Token) {
        if edges.is_empty() {
            self.tokens.end(agent, token.clone(), End::Normally);
        }
        for edge in edges {
            if self.structure.is_back(*edge) && !self.tokens.is_closed(*edge, token.round) {
                self.history.goes_back();
            }
            self.tokens.send(*edge, token.clone());
        }
    }

    /// Whom work goes to over these edges.
    pub(super) fn went(&self, edges: &[usize], round: u32) -> Vec<AgentId> {
        let open = edges.iter().filter(|edge| !self.tokens.is_closed(**edge, round));
        let target = |edge: &usize| match self.structure.target(*edge) {
            Some(to) => self.id(to).clone(),
            None => PARENT.into(),
        };
        open.map(target).collect()
    }

    /// The work after a reply: what was written, or what was judged with a remark more.
    pub(super) fn work(&self, turn: &Turn, reply: &Reply) -> Token {
        let mut token = turn.token();
        token.missing.clear();
        if self.structure.judges(turn.agent) && !token.works.is_empty() {
            token.remarks.push(reply.key.clone());
        } else {
            token.works = vec![reply.key.clone()];
            token.remarks.clear();
        }
        token
    }

    /// Where what belongs to a turn stands.
    pub(super) fn place(&self, turn: &Turn, attempt: u32) -> Scope<'c> {
        let place = self.cx.at(self.id(turn.agent)).at(turn.nth);
        if attempt == 1 { place } else { place.at(format!("try-{attempt}")) }
    }
}

/// Wants a turn no longer.
fn give_up(cx: &Scope, structure: &Structure, turn: &Turn) {
    cx.at(&structure.agents[turn.agent]).give_up(turn.nth);
}

fn undecided(options: &Options) -> Fault {
    let expected: Vec<String> = options.targets().iter().map(ToString::to_string).collect();
    let text = format!("undecided: expected one of {}", expected.join(", "));
    Fault::failed(FailureKind::Protocol, text)
}
