//! A strategy chosen by what the first answers show.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    Debate, Supervise, contributed, entry, is_stopped, language, quoted, responses,
    supervise::Planned,
};
use crate::{
    call::{Prompt, Reply},
    event::{Ending, Text},
    plan,
    scope::{Program, Scope, Step},
    spec::Choice,
    team::Agent,
    text,
    verdict::agreement,
};

/// Supervises if the plan has independent parts, else lets one worker do it; without a supervisor
/// it debates only where the first answers disagree (strategies.md §8).
///
/// It never looks at prices or history: the same team, task and answers always choose the same way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Adaptive {
    /// A supervisor is given or named.
    Supervise(Supervise),
    /// There is none.
    Debate(Debate),
}

impl Program for Adaptive {
    fn run(&self, cx: &Scope) -> Step<Ending> {
        match self {
            Adaptive::Supervise(supervise) => supervise_or_solo(supervise, cx),
            Adaptive::Debate(debate) => agree_or_debate(debate, cx),
        }
    }
}

fn supervise_or_solo(supervise: &Supervise, cx: &Scope) -> Step<Ending> {
    let planning = match supervise.plan(cx)? {
        Planned::Agreed(planning) => planning,
        Planned::Over(ending) => return Ok(ending),
    };
    if planning.plan.has_independent_tasks() {
        chose(cx, "supervisor", "the plan has parts that do not depend on each other");
        return supervise.carry_out(cx, &planning);
    }
    chose(cx, "broadcast", "the plan has no independent parts: one worker does it all");
    solo(supervise, cx)
}

/// The whole task to one worker; the result has the shape of a broadcast with one participant.
fn solo(supervise: &Supervise, cx: &Scope) -> Step<Ending> {
    let workers: Vec<&Agent> =
        supervise.workers.iter().map(|worker| cx.spec().team.agent(worker)).collect();
    let (worker, _) = plan::route(&cx.spec().task, &workers);
    let place = supervise.clocks.phase(cx).at("solo");
    let reply = place.ask(worker.as_str(), &worker, Prompt::task())?;
    let replies = [reply];
    // What was planned is not part of what came of it.
    cx.tell(|account| account.rounds.clear());
    cx.record(|| json!({ "round": 1, "kind": "broadcast", "responses": responses(cx, &replies) }));
    let contributed = contributed(&replies);
    Ok(if contributed.is_empty() {
        Ending::failed("all_failed", contributed)
    } else {
        Ending::done("answered", contributed)
    })
}

fn agree_or_debate(debate: &Debate, cx: &Scope) -> Step<Ending> {
    let first = debate.round(cx, 1, &[])?;
    let contributions: Vec<&Reply> =
        first.iter().filter(|reply| reply.contribution().is_some()).collect();
    if contributions.len() < 2 || is_stopped(&first) {
        chose(cx, "debate", "fewer than two first answers can be compared");
        return debate.from(cx, first);
    }
    if are_equal(&contributions) {
        chose(cx, "debate", "the first answers are the same");
        return Ok(Ending::done("agreed", vec![contributions[0].key.clone()]));
    }
    let verdict = ask_whether_they_agree(debate, cx, &first)?;
    let common = verdict.contribution().and_then(agreement::read);
    let (name, agreed) = (cx.name(&debate.judge), common.is_some());
    cx.record(
        || json!({ "step": "agree", "agent": name, "response": entry(&verdict), "agreed": agreed }),
    );
    if let Some(common) = common {
        chose(cx, "debate", "the judge found that the first answers agree");
        let answer = Some(Text::Literal(common.into()));
        return Ok(Ending { answer, ..Ending::done("agreed", Vec::new()) });
    }
    chose(cx, "debate", "the first answers disagree");
    if verdict.is_stopped() {
        return Ok(Ending::failed("judge_failed", self::contributed(&first)));
    }
    debate.from(cx, first)
}

fn are_equal(contributions: &[&Reply]) -> bool {
    let mut texts = contributions.iter().filter_map(|reply| reply.text());
    let first = texts.next().map(|text| text::normalized(text));
    texts.all(|text| Some(text::normalized(text)) == first)
}

fn ask_whether_they_agree(debate: &Debate, cx: &Scope, first: &[Reply]) -> Step<Reply> {
    let prompt = quoted(cx, Prompt::task(), first).say(language(cx).pick(
        "Do these answers agree in substance? Put `agree` or `disagree` alone on the first line. \
         After `agree`, write the common answer in full.",
        "这些回答在实质上是否一致？请在第一行只写 `agree` 或 `disagree`。\
         如果写的是 `agree`，请接着完整写出共同的答案。",
    ));
    debate.clocks.phase(cx).ask("agree", &debate.judge, prompt)
}

fn chose(cx: &Scope, strategy: &str, because: &str) {
    cx.tell(|account| {
        account.auto = Some(Choice {
            rule: "adaptive".into(),
            chose: strategy.into(),
            because: because.into(),
        });
    });
}
