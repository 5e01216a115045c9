//! Work with an order: analyse, design, build, check.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Clocks, contributed, entry, language, quoted};
use crate::{
    call::{Prompt, Reply},
    event::Ending,
    scope::{Program, Scope, Step},
    team::AgentId,
    words::Language,
};

/// Agents speak one after the other, each seeing everything said before.
///
/// 1. Each step asks one agent; a failed step is recorded and the chain goes on.
/// 2. The answer is the reply of the last step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sequential {
    /// The speakers in order; one may speak more than once.
    pub order: Vec<AgentId>,
    /// Its clocks.
    pub clocks: Clocks,
}

impl Program for Sequential {
    fn run(&self, cx: &Scope) -> Step<Ending> {
        let mut said: Vec<Reply> = Vec::new();
        for (n, agent) in (1..).zip(&self.order) {
            let step = self.clocks.phase(cx).at(format!("step-{n}"));
            let reply = step.ask(agent.as_str(), agent, self.prompt(cx, &said, agent))?;
            cx.record(|| json!({ "step": n, "agent": cx.name(agent), "response": entry(&reply) }));
            let is_stopped = reply.is_stopped();
            said.push(reply);
            if is_stopped {
                break;
            }
        }
        Ok(self.ending(&said))
    }
}

impl Sequential {
    fn prompt(&self, cx: &Scope, said: &[Reply], agent: &AgentId) -> Prompt {
        let (n, k) = (said.len() + 1, self.order.len());
        let own = said.iter().rposition(|reply| reply.agent == *agent);
        let (prompt, since) = match own {
            Some(own) => (Prompt::after(&said[own]), &said[own + 1..]),
            None => (Prompt::task(), said),
        };
        quoted(cx, prompt, since).say(match language(cx) {
            Language::English => format!("This is step {n} of {k}: do your part."),
            Language::Chinese => format!("这是第 {n} 步，共 {k} 步：请完成你负责的部分。"),
        })
    }

    fn ending(&self, said: &[Reply]) -> Ending {
        let is_whole = said.len() == self.order.len();
        if let Some(last) = said.last().filter(|it| is_whole && it.contribution().is_some()) {
            return Ending::done("answered", vec![last.key.clone()]);
        }
        let latest = contributed(said).pop();
        let reason = if latest.is_none() { "all_failed" } else { "last_step_failed" };
        Ending::failed(reason, latest.into_iter().collect())
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

    fn sequential(order: &[&str], a: &[&str], b: &[&str]) -> Spec {
        let sequential = Sequential { order: ids(order), clocks: Clocks::default() };
        spec(vec![agent("a", a), agent("b", b)], Collaboration::Sequential(sequential))
    }

    #[test]
    fn each_sees_what_was_said_before_and_a_second_turn_what_was_said_since() {
        check(
            sequential(&["a", "b", "a"], &["A1", "A2"], &["B1"]),
            expect![[r#"
              1     0 started
              2     0 asked step-1/a [task · say This is step 1 of 3: do …]
              3     0 answered step-1/a: A1
              4     0 asked step-2/b [task · quote step-1/a · say This is step 2 of 3: do …]
              5     0 answered step-2/b: B1
              6     0 asked step-3/a [after step-1/a · quote step-2/b · say This is step 3 of 3: do …]
              7     0 answered step-3/a: A2
              8     0 ended answered
            = done answered: Some("A2")
              {"step":1,"agent":"a","response":"A1"}
              {"step":2,"agent":"b","response":"B1"}
              {"step":3,"agent":"a","response":"A2"}
        "#]],
        );
    }

    #[test]
    fn a_failed_step_does_not_break_the_chain_but_a_failed_last_one_leaves_no_answer() {
        check(
            sequential(&["a", "b"], &["A1"], &["!boom"]),
            expect![[r#"
              1     0 started
              2     0 asked step-1/a [task · say This is step 1 of 2: do …]
              3     0 answered step-1/a: A1
              4     0 asked step-2/b [task · quote step-1/a · say This is step 2 of 2: do …]
              5     0 answered step-2/b: (boom)
              6     0 ended last_step_failed
            = failed last_step_failed: None
              partial "A1"
              {"step":1,"agent":"a","response":"A1"}
              {"step":2,"agent":"b","response":{"error":"boom"}}
        "#]],
        );
    }

    #[test]
    fn a_spent_budget_ends_the_chain_where_it_stands() {
        let mut spec = sequential(&["a", "b", "a"], &["A1", "A2"], &["B1"]);
        spec.limits.calls = Some(1);
        check(
            spec,
            expect![[r#"
              1     0 started
              2     0 asked step-1/a [task · say This is step 1 of 3: do …]
              3     0 answered step-1/a: A1
              4     0 refused step-2/b: budget exhausted
              5     0 ended last_step_failed
            = budget_exhausted calls: None
              partial "A1"
              {"step":1,"agent":"a","response":"A1"}
              {"step":2,"agent":"b","response":{"error":"budget exhausted"}}
        "#]],
        );
    }
}
