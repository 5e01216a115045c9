//! The pictures of strategies.

use super::{Drawing, Kind, Way, counted, team::name};
use crate::{
    programs::{
        Adaptive, Broadcast, Consensus, Debate, Relay, Roles, Roundtable, Sequential, Supervise,
        roles::Role,
    },
    team::{AgentId, Team},
};

pub(super) fn broadcast(drawing: &mut Drawing, team: &Team, it: &Broadcast) {
    let (_, said) = rounds(drawing, team, &it.agents, it.rounds);
    let to = drawing.node(Kind::Outside, ["the answer", "what all said last"]);
    drawing.link(said, to);
}

pub(super) fn debate(drawing: &mut Drawing, team: &Team, it: &Debate) {
    let (_, said) = rounds(drawing, team, &it.agents, it.rounds);
    judged(drawing, team, said, &it.judge);
}

fn judged(drawing: &mut Drawing, team: &Team, said: usize, judge: &AgentId) {
    let judge = drawing.node(Kind::Agent, [name(team, judge), "concludes"]);
    drawing.labelled(said, judge, Way::Plain, ["the last round"]);
    let to = drawing.node(Kind::Outside, ["the answer"]);
    drawing.link(judge, to);
}

/// Everybody at once, as often as it takes; gives where a round begins and where it ends.
fn rounds(drawing: &mut Drawing, team: &Team, agents: &[AgentId], rounds: u32) -> (usize, usize) {
    let from = drawing.node(Kind::Outside, ["the task"]);
    let open = drawing.node(Kind::Place, ["everybody at once", "nobody sees what others say now"]);
    drawing.link(from, open);
    let said = everybody(drawing, team, agents, open, "");
    let close = drawing.node(Kind::Place, ["what everybody said"]);
    gather(drawing, &said, close);
    if rounds > 1 {
        drawing.labelled(close, open, Way::Plain, [format!("{} in all", counted(rounds, "round"))]);
    }
    (open, close)
}

fn everybody(
    drawing: &mut Drawing,
    team: &Team,
    agents: &[AgentId],
    from: usize,
    does: &str,
) -> Vec<usize> {
    let node = |agent: &AgentId| {
        let node = drawing.node(Kind::Agent, [name(team, agent), does]);
        drawing.link(from, node);
        node
    };
    agents.iter().map(node).collect()
}

fn gather(drawing: &mut Drawing, from: &[usize], to: usize) {
    for from in from {
        drawing.link(*from, to);
    }
}

/// One after the other; gives the first and the last node.
fn in_turn(drawing: &mut Drawing, team: &Team, order: &[AgentId]) -> Option<(usize, usize)> {
    let nodes: Vec<usize> =
        order.iter().map(|agent| drawing.node(Kind::Agent, [name(team, agent)])).collect();
    nodes.windows(2).for_each(|pair| drawing.link(pair[0], pair[1]));
    Some((*nodes.first()?, *nodes.last()?))
}

pub(super) fn sequential(drawing: &mut Drawing, team: &Team, it: &Sequential) {
    let from = drawing.node(Kind::Outside, ["the task"]);
    let Some((first, last)) = in_turn(drawing, team, &it.order) else { return };
    drawing.link(from, first);
    let to = drawing.node(Kind::Outside, ["the answer"]);
    drawing.link(last, to);
    drawing.note("each sees all that was said before");
}

pub(super) fn relay(drawing: &mut Drawing, team: &Team, it: &Relay) {
    let from = drawing.node(Kind::Outside, ["the task"]);
    let Some((first, last)) = in_turn(drawing, team, &it.order) else { return };
    drawing.link(from, first);
    if it.rounds > 1 {
        let cap = format!("at most {}", counted(it.rounds, "round"));
        drawing.labelled(last, first, Way::Plain, ["the draft goes round again", cap.as_str()]);
    }
    let to = drawing.node(Kind::Outside, ["the answer"]);
    drawing.link(last, to);
    drawing.note("ends as soon as a whole round leaves the draft as it was");
}

pub(super) fn consensus(drawing: &mut Drawing, team: &Team, it: &Consensus) {
    let from = drawing.node(Kind::Outside, ["the task"]);
    let proposed = everybody(drawing, team, &it.agents, from, "proposes");
    let ballot = drawing.node(Kind::Place, ["the proposals"]);
    gather(drawing, &proposed, ballot);
    let voted = everybody(drawing, team, &it.agents, ballot, "votes");
    let count = drawing.node(Kind::Choice, ["the votes"]);
    gather(drawing, &voted, count);
    let judge = drawing.node(Kind::Agent, [name(team, &it.judge), "decides"]);
    let to = drawing.node(Kind::Outside, ["the answer"]);
    drawing.labelled(count, to, Way::Plain, ["one has more than any other"]);
    drawing.labelled(count, judge, Way::Plain, ["a tie, or no valid vote"]);
    drawing.link(judge, to);
}

pub(super) fn supervisor(drawing: &mut Drawing, team: &Team, it: &Supervise) {
    let from = drawing.node(Kind::Outside, ["the task"]);
    let plan = drawing.node(Kind::Choice, [name(team, &it.supervisor), "plans the tasks"]);
    drawing.link(from, plan);
    let workers = everybody(drawing, team, &it.workers, plan, "does its tasks");
    let report = drawing.node(Kind::Agent, [name(team, &it.supervisor), "reports"]);
    gather(drawing, &workers, report);
    let to = drawing.node(Kind::Outside, ["the answer"]);
    drawing.link(report, to);
    drawing.note("a task starts as soon as all it depends on has succeeded");
}

pub(super) fn roles(drawing: &mut Drawing, team: &Team, it: &Roles, task: &str) {
    let from = drawing.node(Kind::Outside, ["the task"]);
    let parts = it.agents((!task.is_empty()).then_some(task));
    let is_open = parts.len() == Role::ALL.len();
    let shown = parts.into_iter().filter(|role| !is_open || *role != Role::General);
    let order: Vec<AgentId> = shown.map(|role| role.name().into()).collect();
    let [before @ .., coder, reviewer] = &order[..] else {
        let Some((first, last)) = in_turn(drawing, team, &order) else { return };
        drawing.link(from, first);
        let to = drawing.node(Kind::Outside, ["the answer"]);
        drawing.link(last, to);
        drawing.note("the task is simple: one agent does it all");
        return;
    };
    let Some((first, last)) = in_turn(drawing, team, before) else { return };
    drawing.link(from, first);
    let coder = drawing.node(Kind::Agent, [name(team, coder)]);
    drawing.link(last, coder);
    let reviewer = drawing.node(Kind::Choice, [name(team, reviewer), "PASS or ISSUES"]);
    drawing.link(coder, reviewer);
    drawing.labelled(reviewer, coder, Way::Plain, ["ISSUES", "once"]);
    let to = drawing.node(Kind::Outside, ["the answer"]);
    drawing.link(reviewer, to);
    drawing.note("each is told the task and what those before handed on");
    if is_open {
        drawing.note(format!("a simple task is {}'s alone", Role::General.name()));
    }
}

pub(super) fn roundtable(drawing: &mut Drawing, team: &Team, it: &Roundtable) {
    let from = drawing.node(Kind::Outside, ["the task"]);
    let board = drawing.node(Kind::Place, ["the board", "whoever is idle is shown what is new"]);
    drawing.link(from, board);
    let said = everybody(drawing, team, &it.agents, board, "posts, sets cells, or passes");
    gather(drawing, &said, board);
    let to = drawing.node(Kind::Outside, ["the answer"]);
    let last = match &it.scribe {
        Some(scribe) => {
            let scribe = drawing.node(Kind::Agent, [name(team, scribe), "words the answer"]);
            drawing.labelled(board, scribe, Way::Plain, ["nobody has anything to add"]);
            scribe
        }
        None => board,
    };
    drawing.link(last, to);
    drawing.note(format!("at most {} entries, and {} turns each", it.max_posts, it.max_turns));
}

pub(super) fn adaptive(drawing: &mut Drawing, team: &Team, it: &Adaptive) {
    match it {
        Adaptive::Supervise(it) => {
            supervisor(drawing, team, it);
            drawing.note("if the plan has no independent parts, one worker does it all");
        }
        Adaptive::Debate(it) => {
            debate(drawing, team, it);
            drawing.note("if the first answers agree, that is the answer");
        }
    }
}
