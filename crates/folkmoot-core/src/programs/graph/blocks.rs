//! The blocks that tell agents and the lead of a graph (graph.md §14).

use serde_json::Value;

use super::{Graph, Group, Member, PARENT, Structure, Test, prompt::form, walk::Walk};
use crate::{programs::language, render::without_tags, team::AgentId, words::Language};

/// What people named things, or an error, on one line in which nothing can be taken for the tag of a
/// block.
pub(super) fn inline(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    without_tags(&line, &["reply", "collaboration", "termination", "findings", "output"])
}

/// How a graph stands that its lead routes along.
pub(super) struct State<'a> {
    pub(super) due: String,
    pub(super) failed: Vec<String>,
    /// Choices that are open: who, and between what.
    pub(super) choices: Vec<String>,
    pub(super) can_finish: bool,
    pub(super) next: Next<'a>,
}

/// What a lead is to do.
pub(super) enum Next<'a> {
    /// To hand out work.
    Dispatch,
    /// To say what becomes of a step that failed.
    Decide,
    /// To write the answer, as the work has ended for this reason.
    Close(&'a str),
}

/// What the lead is told in each turn.
pub(super) fn state(walk: &Walk, state: &State) -> String {
    let language = language(walk.cx);
    let list = |ids: Vec<&AgentId>| {
        let ids: Vec<&str> = ids.into_iter().map(AgentId::as_str).collect();
        if ids.is_empty() { "-".to_owned() } else { ids.join(", ") }
    };
    let mut lines = vec!["<collaboration_state>".to_owned()];
    let status = match state.next {
        Next::Close(_) => "ended",
        Next::Dispatch | Next::Decide => "active",
    };
    lines.push(format!("status: {status}"));
    lines.push(format!("step: {}", walk.journal.steps()));
    lines.push(format!("due: {}", state.due));
    lines.push(format!(
        "running: {}",
        list(walk.tokens.running().map(|turn| walk.id(turn.agent)).collect())
    ));
    lines.push(format!("completed: {}", list(walk.history.speakers().collect())));
    if !state.failed.is_empty() {
        lines.push(format!("failed: {}", inline(&state.failed.join("; "))));
    }
    for choice in &state.choices {
        lines.push(format!("choice: {choice}"));
    }
    for (own, it) in walk.structure.loops.iter().enumerate() {
        let agents = list(it.agents.iter().map(|agent| walk.id(*agent)).collect());
        let (rounds, cap) = (walk.history.rounds(own), walk.graph.rounds());
        lines.push(format!("loop {agents}: {rounds} rounds finished, cap {cap}"));
    }
    let finish = if state.can_finish { "open" } else { "not open" };
    lines.push(format!("finish: {finish}"));
    let next = match state.next {
        Next::Close(reason) => {
            lines.push(format!("<termination_reason>{reason}</termination_reason>"));
            language.pick(
                "The collaboration has ended. Write the closing answer with finish.",
                "协作已经结束。请用 finish 写出最终回答。",
            )
        }
        Next::Decide => language.pick(
            "next: decide what becomes of the step that failed.",
            "next: 决定如何处理失败的这一步。",
        ),
        Next::Dispatch => language.pick(
            "next: dispatch an agent that is due; those that are due may be dispatched together.",
            "next: 派发（dispatch）一个就绪的成员；可以同时派发多个就绪的成员。",
        ),
    };
    lines.push(next.to_owned());
    lines.push("</collaboration_state>".to_owned());
    lines.join("\n")
}

/// What stands in the lead's system prompt: the whole graph, and when it ends.
fn whole<'n>(
    graph: &Graph,
    structure: &Structure,
    name: &dyn Fn(&AgentId) -> &'n str,
    language: Language,
) -> String {
    let topology = graph.topology.as_deref().unwrap_or("custom");
    let mut lines = vec!["<collaboration_graph>".to_owned(), format!("topology: {topology}")];
    let shown = |id: &AgentId| match id.as_str() {
        PARENT => PARENT.to_owned(),
        text => match name(id) {
            name if name == text => inline(text),
            name => format!("{} ({})", inline(text), inline(name)),
        },
    };
    for edge in &graph.edges {
        let label = edge.label.as_ref().map(|label| format!(": {}", inline(label)));
        let label = label.unwrap_or_default();
        let exit = if edge.exit { " [exit]" } else { "" };
        lines.push(format!("{} -> {}{label}{exit}", shown(&edge.from), shown(&edge.to)));
    }
    let ids = |agents: Vec<usize>| {
        let ids: Vec<&str> = agents.iter().map(|at| structure.agents[*at].as_str()).collect();
        ids.join(", ")
    };
    lines.push(format!("entry: {}", ids(structure.entries().collect())));
    for agent in (0..structure.agents.len()).filter(|agent| structure.decides(*agent)) {
        let out = structure.out(agent).iter().map(|edge| &graph.edges[*edge]);
        let options: Vec<&str> =
            out.filter(|edge| !edge.is_for_failures()).map(|edge| edge.to.as_str()).collect();
        lines.push(format!("{} chooses: {}", structure.agents[agent], options.join(" | ")));
    }
    if let Some(cap) = graph.cap {
        lines.push(format!("cap: {cap}"));
    }
    lines.push(
        language
            .pick(
                "Agents that are due may be dispatched at the same time.",
                "就绪的成员可以同时派发。",
            )
            .to_owned(),
    );
    lines.push("</collaboration_graph>".to_owned());
    if let Some(termination) = &graph.termination {
        lines.push("<termination_conditions>".to_owned());
        conditions(termination, 0, &mut lines);
        lines.push("</termination_conditions>".to_owned());
    }
    lines.join("\n")
}

fn conditions(group: &Group, depth: usize, lines: &mut Vec<String>) {
    let indent = "  ".repeat(depth);
    for (word, members) in [("any of", &group.any_of), ("all of", &group.all_of)] {
        let Some(members) = members else { continue };
        lines.push(format!("{indent}{word}:"));
        for member in members {
            match member {
                Member::One(condition) => {
                    let is_own = matches!(condition.test, Test::Own(_));
                    let text = if is_own { condition.shown() } else { words(&condition.written) };
                    lines.push(format!("{indent}- {}", inline(&text)));
                }
                Member::Group(group) => conditions(group, depth + 1, lines),
            }
        }
    }
}

/// A condition as people would say it: `result_matches: agent reviewer, contains "SHIP IT"`.
fn words(written: &Value) -> String {
    let fields = written.as_object().into_iter().flatten();
    let fields = fields.map(|(key, value)| match value {
        Value::Object(fields) => {
            let parts = fields.iter().map(|(key, value)| match (key.as_str(), value) {
                ("agent", Value::String(id)) => format!("agent {id}"),
                (key, Value::Bool(_)) => key.to_owned(),
                (key, value) => format!("{key} {value}"),
            });
            format!("{key}: {}", parts.collect::<Vec<_>>().join(", "))
        }
        Value::String(text) => format!("{key}: {text}"),
        value => format!("{key}: {value}"),
    });
    fields.collect::<Vec<_>>().join(", ")
}

/// What stands in the system prompt of an agent of a graph: from whom it receives work, and to whom
/// its output goes.
pub(super) fn role<'n>(
    graph: &Graph,
    structure: &Structure,
    name: &dyn Fn(&AgentId) -> &'n str,
    agent: &AgentId,
    language: Language,
) -> Option<String> {
    if agent.as_str() == PARENT {
        return Some(whole(graph, structure, name, language));
    }
    let own = structure.number(agent)?;
    let shown = |id: &AgentId| match id.as_str() {
        PARENT => language.pick("the lead", "组长").to_owned(),
        id_text => match name(id) {
            name if name == id_text => inline(name),
            name => format!("{} ({})", inline(name), inline(id_text)),
        },
    };
    let list = |names: Vec<String>| names.join(language.pick(", ", "、"));
    let edges = |numbers: &[usize]| numbers.iter().map(|at| &graph.edges[*at]).collect::<Vec<_>>();
    let (into, out) = (edges(structure.incoming(own)), edges(structure.out(own)));
    let from = list(into.iter().map(|edge| shown(&edge.from)).collect());
    let to = list(out.iter().filter(|edge| !edge.exit).map(|edge| shown(&edge.to)).collect());
    let ends = out.is_empty() || out.iter().any(|edge| edge.exit);
    let mut lines = vec!["<collaboration_role>".to_owned()];
    lines.push(match language {
        Language::English => format!("You receive work from: {from}."),
        Language::Chinese => format!("交给你工作的是：{from}。"),
    });
    if !to.is_empty() {
        lines.push(match language {
            Language::English => format!("Your output goes to: {to}."),
            Language::Chinese => format!("你的产出交给：{to}。"),
        });
    }
    if ends {
        lines.push(
            match (structure.closes(own), language) {
                (true, Language::English) => {
                    "Either your output completes the workflow, or the work goes back for another round."
                }
                (true, Language::Chinese) => "你的产出要么完成整个流程，要么让工作回到下一轮。",
                (false, Language::English) => "Your output completes the workflow.",
                (false, Language::Chinese) => "你的产出将完成整个流程。",
            }
            .to_owned(),
        );
    }
    if structure.decides(own) {
        lines.push(form(language));
    }
    lines.push("</collaboration_role>".to_owned());
    Some(lines.join("\n"))
}
