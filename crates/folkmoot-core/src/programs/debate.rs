//! Decisions that gain from opposition.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    Clocks, contributed, entry, everyone, is_stopped, language, others, own, quoted, responses,
};
use crate::{
    call::{Prompt, Reply},
    event::Ending,
    scope::{Program, Scope, Step},
    team::AgentId,
};

/// All participants argue for some rounds; a judge concludes.
///
/// 1. Each round asks everybody at once; nobody sees the others' words of the same round.
/// 2. The judge is shown the last round in which somebody spoke, and nothing else but the task.
/// 3. The answer is the judge's reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Debate {
    /// The debaters in registration order.
    pub agents: Vec<AgentId>,
    /// How often they speak.
    pub rounds: u32,
    /// Who concludes.
    pub judge: AgentId,
    /// Its clocks.
    pub clocks: Clocks,
}

impl Program for Debate {
    fn run(&self, cx: &Scope) -> Step<Ending> {
        let first = self.round(cx, 1, &[])?;
        self.go_on(cx, first)
    }
}

impl Debate {
    /// The rounds after the first, and the judgement.
    pub(super) fn go_on(&self, cx: &Scope, first: Vec<Reply>) -> Step<Ending> {
        let mut heard = first.clone();
        let mut last = first;
        for n in 2..=self.rounds {
            if is_stopped(&last) {
                break;
            }
            last = self.round(cx, n, &last)?;
            if !contributed(&last).is_empty() {
                heard.clone_from(&last);
            }
        }
        let statements = contributed(&heard);
        if statements.is_empty() {
            return Ok(Ending::failed("all_failed", statements));
        }
        if is_stopped(&last) {
            return Ok(Ending::failed("judge_failed", statements));
        }
        self.judgement(cx, &heard)
    }

    pub(super) fn round(&self, cx: &Scope, n: u32, before: &[Reply]) -> Step<Vec<Reply>> {
        let round = self.clocks.phase(cx).at(format!("round-{n}"));
        let replies = everyone(&round, &self.agents, |agent| match own(before, agent) {
            None => Prompt::task().say(language(cx).pick(
                "State your position on the task and defend it.",
                "请就这项任务表明你的立场并加以论证。",
            )),
            Some(own) => {
                quoted(cx, Prompt::after(own), others(before, agent)).say(language(cx).pick(
                    "Answer the others: attack what is weak, concede what is right, \
                     and state your position now.",
                    "请回应其他人：指出薄弱之处，承认正确之处，并说明你现在的立场。",
                ))
            }
        })?;
        cx.record(|| json!({ "round": n, "kind": "debate", "responses": responses(cx, &replies) }));
        Ok(replies)
    }

    fn judgement(&self, cx: &Scope, heard: &[Reply]) -> Step<Ending> {
        let prompt = quoted(cx, Prompt::task(), heard).say(language(cx).pick(
            "You are the judge. Weigh these statements on their merits \
             and give the final answer to the task.",
            "你是裁判。请权衡以上陈述的是非优劣，给出这项任务的最终答案。",
        ));
        let verdict = self.clocks.phase(cx).ask("judge", &self.judge, prompt)?;
        let name = cx.name(&self.judge);
        cx.record(|| json!({ "step": "judge", "agent": name, "response": entry(&verdict) }));
        Ok(match verdict.contribution() {
            Some(_) => Ending::done("judged", vec![verdict.key]),
            None => Ending::failed("judge_failed", contributed(heard)),
        })
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::{
        spec::{Collaboration, Spec},
        testing::{agent, check, ids, spec},
    };

    fn debate(rounds: u32, a: &[&str], judge: &[&str]) -> Spec {
        let agents = ids(&["a", "judge"]);
        let debate = Debate { agents, rounds, judge: "judge".into(), clocks: Clocks::default() };
        spec(vec![agent("a", a), agent("judge", judge)], Collaboration::Debate(debate))
    }

    #[test]
    fn a_judge_that_takes_part_is_still_asked_afresh() {
        check(
            debate(2, &["A1", "A2"], &["J1", "J2", "VERDICT"]),
            expect![[r#"
                  1     0 started
                  2     0 asked round-1/a [task · say State your position on t…]
                  3     0 asked round-1/judge [task · say State your position on t…]
                  4     0 answered round-1/judge: J1
                  5     0 answered round-1/a: A1
                  6     0 asked round-2/a [after round-1/a · quote round-1/judge · say Answer the others: attac…]
                  7     0 asked round-2/judge [after round-1/judge · quote round-1/a · say Answer the others: attac…]
                  8     0 answered round-2/judge: J2
                  9     0 answered round-2/a: A2
                 10     0 asked judge [task · quote round-2/a · quote round-2/judge · say You are the judge. Weigh…]
                 11     0 answered judge: VERDICT
                 12     0 ended judged
                = done judged: Some("VERDICT")
                  {"round":1,"kind":"debate","responses":{"a":"A1","judge":"J1"}}
                  {"round":2,"kind":"debate","responses":{"a":"A2","judge":"J2"}}
                  {"step":"judge","agent":"judge","response":"VERDICT"}
            "#]],
        );
    }

    #[test]
    fn the_judge_is_shown_the_latest_round_in_which_somebody_spoke() {
        check(
            debate(2, &["A1", "!x"], &["!y", "!z", "VERDICT"]),
            expect![[r#"
                  1     0 started
                  2     0 asked round-1/a [task · say State your position on t…]
                  3     0 asked round-1/judge [task · say State your position on t…]
                  4     0 answered round-1/judge: (y)
                  5     0 answered round-1/a: A1
                  6     0 asked round-2/a [after round-1/a · say Without a contribution: … · say Answer the others: attac…]
                  7     0 asked round-2/judge [after round-1/judge · quote round-1/a · say Answer the others: attac…]
                  8     0 answered round-2/judge: (z)
                  9     0 answered round-2/a: (x)
                 10     0 asked judge [task · quote round-1/a · say Without a contribution: … · say You are the judge. Weigh…]
                 11     0 answered judge: VERDICT
                 12     0 ended judged
                = done judged: Some("VERDICT")
                  {"round":1,"kind":"debate","responses":{"a":"A1","judge":{"error":"y"}}}
                  {"round":2,"kind":"debate","responses":{"a":{"error":"x"},"judge":{"error":"z"}}}
                  {"step":"judge","agent":"judge","response":"VERDICT"}
            "#]],
        );
    }

    #[test]
    fn a_debate_in_which_nobody_spoke_has_no_judge() {
        check(
            debate(1, &["!x"], &["!y", "VERDICT"]),
            expect![[r#"
              1     0 started
              2     0 asked round-1/a [task · say State your position on t…]
              3     0 asked round-1/judge [task · say State your position on t…]
              4     0 answered round-1/judge: (y)
              5     0 answered round-1/a: (x)
              6     0 ended all_failed
            = failed all_failed: None
              {"round":1,"kind":"debate","responses":{"a":{"error":"x"},"judge":{"error":"y"}}}
        "#]],
        );
    }

    #[test]
    fn a_judge_that_cannot_be_paid_leaves_the_statements() {
        let mut spec = debate(1, &["A1"], &["J1", "VERDICT"]);
        spec.limits.calls = Some(2);
        check(
            spec,
            expect![[r#"
              1     0 started
              2     0 asked round-1/a [task · say State your position on t…]
              3     0 asked round-1/judge [task · say State your position on t…]
              4     0 answered round-1/judge: J1
              5     0 answered round-1/a: A1
              6     0 refused judge: budget exhausted
              7     0 ended judge_failed
            = budget_exhausted calls: None
              partial "A1\n\nJ1"
              {"round":1,"kind":"debate","responses":{"a":"A1","judge":"J1"}}
              {"step":"judge","agent":"judge","response":{"error":"budget exhausted"}}
        "#]],
        );
    }
}
