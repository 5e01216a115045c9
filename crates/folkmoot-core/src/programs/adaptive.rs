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
        return debate.go_on(cx, first);
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
    debate.go_on(cx, first)
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

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::{
        programs::Clocks,
        spec::{Collaboration, Spec},
        testing::{agent, check, ids, spec},
    };

    fn debating(a: &[&str], b: &[&str], judge: &[&str]) -> Spec {
        let clocks = Clocks::default();
        let debate = Debate { agents: ids(&["a", "b"]), rounds: 2, judge: "judge".into(), clocks };
        let agents = vec![agent("a", a), agent("b", b), agent("judge", judge)];
        spec(agents, Collaboration::Adaptive(Adaptive::Debate(debate)))
    }

    fn supervising(boss: &[&str], worker: &[&str]) -> Spec {
        let supervise = Supervise {
            supervisor: "boss".into(),
            workers: ids(&["w"]),
            replan: true,
            strict: false,
            max_tasks: 32,
            clocks: Clocks::default(),
        };
        let agents = vec![agent("boss", boss), agent("w", worker)];
        spec(agents, Collaboration::Adaptive(Adaptive::Supervise(supervise)))
    }

    #[test]
    fn equal_first_answers_end_it_without_a_judge() {
        check(
            debating(&["42"], &["42 \n"], &[]),
            expect![[r#"
                  1     0 started
                  2     0 asked round-1/a [task · say State your position on t…]
                  3     0 asked round-1/b [task · say State your position on t…]
                  4     0 answered round-1/a: 42
                  5     0 answered round-1/b: 42 

                  6     0 ended agreed
                = done agreed: Some("42")
                  {"round":1,"kind":"debate","responses":{"a":"42","b":"42 \n"}}
            "#]],
        );
    }

    #[test]
    fn a_judge_that_finds_agreement_gives_the_common_answer() {
        check(
            debating(&["forty-two"], &["42"], &["**Agree**\nIt is 42."]),
            expect![[r#"
                  1     0 started
                  2     0 asked round-1/a [task · say State your position on t…]
                  3     0 asked round-1/b [task · say State your position on t…]
                  4     0 answered round-1/a: forty-two
                  5     0 answered round-1/b: 42
                  6     0 asked agree [task · quote round-1/a · quote round-1/b · say Do these answers agree i…]
                  7     0 answered agree: **Agree**
                It is 42.
                  8     0 ended agreed
                = done agreed: Some("It is 42.")
                  {"round":1,"kind":"debate","responses":{"a":"forty-two","b":"42"}}
                  {"step":"agree","agent":"judge","response":"**Agree**\nIt is 42.","agreed":true}
            "#]],
        );
    }

    #[test]
    fn disagreement_goes_on_as_a_debate_that_keeps_its_first_round() {
        check(
            debating(&["1", "1!"], &["2", "2!"], &["disagree", "VERDICT"]),
            expect![[r#"
                  1     0 started
                  2     0 asked round-1/a [task · say State your position on t…]
                  3     0 asked round-1/b [task · say State your position on t…]
                  4     0 answered round-1/a: 1
                  5     0 answered round-1/b: 2
                  6     0 asked agree [task · quote round-1/a · quote round-1/b · say Do these answers agree i…]
                  7     0 answered agree: disagree
                  8     0 asked round-2/a [after round-1/a · quote round-1/b · say Answer the others: attac…]
                  9     0 asked round-2/b [after round-1/b · quote round-1/a · say Answer the others: attac…]
                 10     0 answered round-2/b: 2!
                 11     0 answered round-2/a: 1!
                 12     0 asked judge [task · quote round-2/a · quote round-2/b · say You are the judge. Weigh…]
                 13     0 answered judge: VERDICT
                 14     0 ended judged
                = done judged: Some("VERDICT")
                  {"round":1,"kind":"debate","responses":{"a":"1","b":"2"}}
                  {"step":"agree","agent":"judge","response":"disagree","agreed":false}
                  {"round":2,"kind":"debate","responses":{"a":"1!","b":"2!"}}
                  {"step":"judge","agent":"judge","response":"VERDICT"}
            "#]],
        );
    }

    #[test]
    fn independent_parts_are_supervised_with_the_plan_that_is_there() {
        check(
            supervising(&["- dig\n- water", "REPORT"], &["DUG", "WATERED"]),
            expect![[r#"
              1     0 started
              2     0 asked plan [task · say Plan this task for your …]
              3     0 answered plan: - dig
            - water
              4     0 asked work/task_1 [task · say Your part, task_1:
            dig… · say Do this part only, compl…]
              5     0 asked work/task_2 [task · say Your part, task_2:
            water… · say Do this part only, compl…]
              6     0 answered work/task_2: WATERED
              7     0 answered work/task_1: DUG
              8     0 asked report [after plan · say task_1: SUCCESS (w)… · quote work/task_1 · say task_2: SUCCESS (w)… · quote work/task_2 · say All tasks have ended. Wr…]
              9     0 answered report: REPORT
             10     0 ended reported
            = done reported: Some("REPORT")
              {"step":"plan","agent":"boss","response":"- dig\n- water"}
              {"step":"work","subtasks":["dig","water"],"assigned":{"w":["dig","water"]},"results":{"w":"DUG\nWATERED"},"tasks":[{"task_id":"task_1","status":"SUCCESS","agent":"w","output":"DUG","duration_ms":0.0,"depends_on":[],"routed_by":"load"},{"task_id":"task_2","status":"SUCCESS","agent":"w","output":"WATERED","duration_ms":0.0,"depends_on":[],"routed_by":"load"}],"plan_info":{"format":"lines","notes":[],"replanned":false}}
              {"step":"report","agent":"boss","response":"REPORT"}
        "#]],
        );
    }

    #[test]
    fn a_plan_without_independent_parts_is_left_to_one_worker() {
        check(
            supervising(&["- dig"], &["ALL OF IT"]),
            expect![[r#"
              1     0 started
              2     0 asked plan [task · say Plan this task for your …]
              3     0 answered plan: - dig
              4     0 asked solo/w [task]
              5     0 answered solo/w: ALL OF IT
              6     0 ended answered
            = done answered: Some("ALL OF IT")
              {"round":1,"kind":"broadcast","responses":{"w":"ALL OF IT"}}
        "#]],
        );
    }
}
