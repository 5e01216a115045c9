//! One text that several hands improve.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Clocks, contributed, entry, is_stopped, language};
use crate::{
    call::{Prompt, Reply},
    event::Ending,
    scope::{Program, Scope, Step},
    team::AgentId,
    text,
};

/// A draft goes from hand to hand until a whole round leaves it unchanged.
///
/// 1. Each step shows one agent the task and the current draft; its reply becomes the draft at once.
/// 2. After a round in which somebody contributed and the draft came out as it went in, it stops.
/// 3. The answer is the draft.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Relay {
    /// The hands in order; one may come more than once.
    pub order: Vec<AgentId>,
    /// The most rounds.
    pub rounds: u32,
    /// When two drafts count as equal.
    pub convergence: Convergence,
    /// Its clocks.
    pub clocks: Clocks,
}

/// When two drafts count as equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Convergence {
    /// Byte for byte.
    #[default]
    Exact,
    /// Up to line ends, blanks at line ends, runs of blank lines and outer blank lines.
    Normalized,
}

impl Program for Relay {
    fn run(&self, cx: &Scope) -> Step<Ending> {
        let mut draft = None;
        for n in 1..=self.rounds {
            let (steps, after) = self.round(cx, n, draft.clone())?;
            let is_whole = !is_stopped(&steps) && !contributed(&steps).is_empty();
            let converged = is_whole && self.is_same(cx, draft.as_ref(), after.as_ref());
            cx.record(|| record(cx, n, &steps, converged));
            draft = after;
            if converged {
                return Ok(ending("converged", draft));
            }
            if is_stopped(&steps) {
                break;
            }
        }
        Ok(ending("rounds_completed", draft))
    }
}

impl Relay {
    /// One pass through all hands; gives their replies and the draft as it came out.
    fn round(
        &self,
        cx: &Scope,
        n: u32,
        mut draft: Option<Reply>,
    ) -> Step<(Vec<Reply>, Option<Reply>)> {
        let mut steps: Vec<Reply> = Vec::new();
        for (m, agent) in (1..).zip(&self.order) {
            let step = self.clocks.phase(cx).at(format!("round-{n}")).at(format!("step-{m}"));
            let reply = step.ask(agent.as_str(), agent, prompt(cx, draft.as_ref()))?;
            if reply.contribution().is_some() {
                draft = Some(reply.clone());
            }
            steps.push(reply);
            if is_stopped(&steps) {
                break;
            }
        }
        Ok((steps, draft))
    }

    fn is_same(&self, cx: &Scope, before: Option<&Reply>, after: Option<&Reply>) -> bool {
        let text = |draft: Option<&Reply>| {
            let text = draft.and_then(Reply::text).cloned();
            text.unwrap_or_else(|| cx.spec().task.clone())
        };
        let (before, after) = (text(before), text(after));
        match self.convergence {
            Convergence::Exact => before == after,
            Convergence::Normalized => text::normalized(&before) == text::normalized(&after),
        }
    }
}

/// The draft stands last, so that all requests share their head.
fn prompt(cx: &Scope, draft: Option<&Reply>) -> Prompt {
    match draft {
        None => Prompt::task().say(language(cx).pick(
            "Write the first complete draft of what the task asks for. Give only the draft.",
            "请写出任务所要求内容的第一份完整草稿。只输出草稿本身。",
        )),
        Some(draft) => Prompt::task()
            .say(language(cx).pick(
                "Improve the draft below. Give only the complete new draft; \
                 if nothing is left to improve, give it unchanged.",
                "请改进下面的草稿。只输出完整的新草稿；如果已无可改进，请原样输出。",
            ))
            .quote(draft),
    }
}

fn record(cx: &Scope, n: u32, steps: &[Reply], converged: bool) -> Value {
    let steps = (1..).zip(steps).map(|(m, reply): (u32, _)| {
        json!({ "step": m, "agent": cx.name(&reply.agent), "response": entry(reply) })
    });
    let steps: Vec<Value> = steps.collect();
    json!({ "round": n, "kind": "relay", "steps": steps, "converged": converged })
}

fn ending(reason: &str, draft: Option<Reply>) -> Ending {
    match draft {
        Some(draft) => Ending::done(reason, vec![draft.key]),
        None => Ending::failed("all_failed", Vec::new()),
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

    fn relay(convergence: Convergence, a: &[&str], b: &[&str]) -> Spec {
        let relay =
            Relay { order: ids(&["a", "b"]), rounds: 3, convergence, clocks: Clocks::default() };
        spec(vec![agent("a", a), agent("b", b)], Collaboration::Relay(relay))
    }

    #[test]
    fn it_stops_when_a_round_leaves_the_draft_unchanged() {
        check(
            relay(Convergence::Exact, &["v1", "v2"], &["v2"]),
            expect![[r#"
              1     0 started
              2     0 asked round-1/step-1/a [task · say Write the first complete…]
              3     0 answered round-1/step-1/a: v1
              4     0 asked round-1/step-2/b [task · say Improve the draft below.… · quote round-1/step-1/a]
              5     0 answered round-1/step-2/b: v2
              6     0 asked round-2/step-1/a [task · say Improve the draft below.… · quote round-1/step-2/b]
              7     0 answered round-2/step-1/a: v2
              8     0 asked round-2/step-2/b [task · say Improve the draft below.… · quote round-2/step-1/a]
              9     0 answered round-2/step-2/b: v2
             10     0 ended converged
            = done converged: Some("v2")
              {"round":1,"kind":"relay","steps":[{"step":1,"agent":"a","response":"v1"},{"step":2,"agent":"b","response":"v2"}],"converged":false}
              {"round":2,"kind":"relay","steps":[{"step":1,"agent":"a","response":"v2"},{"step":2,"agent":"b","response":"v2"}],"converged":true}
        "#]],
        );
    }

    #[test]
    fn a_failed_hand_leaves_the_draft_and_a_round_of_failures_is_no_convergence() {
        check(
            relay(Convergence::Exact, &["v1", "!x", "v1"], &["!y"]),
            expect![[r#"
              1     0 started
              2     0 asked round-1/step-1/a [task · say Write the first complete…]
              3     0 answered round-1/step-1/a: v1
              4     0 asked round-1/step-2/b [task · say Improve the draft below.… · quote round-1/step-1/a]
              5     0 answered round-1/step-2/b: (y)
              6     0 asked round-2/step-1/a [task · say Improve the draft below.… · quote round-1/step-1/a]
              7     0 answered round-2/step-1/a: (x)
              8     0 asked round-2/step-2/b [task · say Improve the draft below.… · quote round-1/step-1/a]
              9     0 answered round-2/step-2/b: (y)
             10     0 asked round-3/step-1/a [task · say Improve the draft below.… · quote round-1/step-1/a]
             11     0 answered round-3/step-1/a: v1
             12     0 asked round-3/step-2/b [task · say Improve the draft below.… · quote round-3/step-1/a]
             13     0 answered round-3/step-2/b: (y)
             14     0 ended converged
            = done converged: Some("v1")
              {"round":1,"kind":"relay","steps":[{"step":1,"agent":"a","response":"v1"},{"step":2,"agent":"b","response":{"error":"y"}}],"converged":false}
              {"round":2,"kind":"relay","steps":[{"step":1,"agent":"a","response":{"error":"x"}},{"step":2,"agent":"b","response":{"error":"y"}}],"converged":false}
              {"round":3,"kind":"relay","steps":[{"step":1,"agent":"a","response":"v1"},{"step":2,"agent":"b","response":{"error":"y"}}],"converged":true}
        "#]],
        );
    }

    #[test]
    fn white_space_counts_unless_the_comparison_is_normalized() {
        check(
            relay(Convergence::Normalized, &["v"], &["v", "v\n"]),
            expect![[r#"
              1     0 started
              2     0 asked round-1/step-1/a [task · say Write the first complete…]
              3     0 answered round-1/step-1/a: v
              4     0 asked round-1/step-2/b [task · say Improve the draft below.… · quote round-1/step-1/a]
              5     0 answered round-1/step-2/b: v
              6     0 asked round-2/step-1/a [task · say Improve the draft below.… · quote round-1/step-2/b]
              7     0 answered round-2/step-1/a: v
              8     0 asked round-2/step-2/b [task · say Improve the draft below.… · quote round-2/step-1/a]
              9     0 answered round-2/step-2/b: v

             10     0 ended converged
            = done converged: Some("v\n")
              {"round":1,"kind":"relay","steps":[{"step":1,"agent":"a","response":"v"},{"step":2,"agent":"b","response":"v"}],"converged":false}
              {"round":2,"kind":"relay","steps":[{"step":1,"agent":"a","response":"v"},{"step":2,"agent":"b","response":"v\n"}],"converged":true}
        "#]],
        );
    }

    #[test]
    fn a_relay_that_is_stopped_keeps_its_draft() {
        let mut spec = relay(Convergence::Exact, &["v1", "v3"], &["v2"]);
        spec.limits.calls = Some(2);
        check(
            spec,
            expect![[r#"
              1     0 started
              2     0 asked round-1/step-1/a [task · say Write the first complete…]
              3     0 answered round-1/step-1/a: v1
              4     0 asked round-1/step-2/b [task · say Improve the draft below.… · quote round-1/step-1/a]
              5     0 answered round-1/step-2/b: v2
              6     0 refused round-2/step-1/a: budget exhausted
              7     0 ended rounds_completed
            = budget_exhausted calls: Some("v2")
              {"round":1,"kind":"relay","steps":[{"step":1,"agent":"a","response":"v1"},{"step":2,"agent":"b","response":"v2"}],"converged":false}
              {"round":2,"kind":"relay","steps":[{"step":1,"agent":"a","response":{"error":"budget exhausted"}}],"converged":false}
        "#]],
        );
    }
}
