//! Brainstorming and independent views.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Clocks, contributed, everyone, is_stopped, language, others, own, quoted, responses};
use crate::{
    call::{Prompt, Reply},
    event::Ending,
    key::Key,
    scope::{Program, Scope, Step},
    team::AgentId,
};

/// All participants answer the same task at once; in later rounds they see what the others said.
///
/// 1. Round 1: everybody is asked the task and nothing else, with the same bytes.
/// 2. Each later round: everybody goes on from its own answer and is shown those of the others.
/// 3. The answer is the last round's contributions, joined by a blank line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Broadcast {
    /// The participants in registration order.
    pub agents: Vec<AgentId>,
    /// How often they are asked.
    pub rounds: u32,
    /// Its clocks.
    pub clocks: Clocks,
}

impl Program for Broadcast {
    fn run(&self, cx: &Scope) -> Step<Ending> {
        let mut replies = Vec::new();
        let mut spoken = Vec::new();
        for n in 1..=self.rounds {
            replies = self.round(cx, n, &replies)?;
            let now = contributed(&replies);
            let is_last = n == self.rounds;
            if is_last && !now.is_empty() {
                return Ok(Ending::done("answered", now));
            }
            spoken = if now.is_empty() { spoken } else { now };
            if is_stopped(&replies) {
                break;
            }
        }
        Ok(nobody_spoke_last(spoken))
    }
}

impl Broadcast {
    fn round(&self, cx: &Scope, n: u32, before: &[Reply]) -> Step<Vec<Reply>> {
        let round = self.clocks.phase(cx).at(format!("round-{n}"));
        let replies = everyone(&round, &self.agents, |agent| match own(before, agent) {
            None => Prompt::task(),
            Some(own) => {
                quoted(cx, Prompt::after(own), others(before, agent)).say(language(cx).pick(
                    "Take what the others said into account and answer the task again, completely.",
                    "请参考其他人的发言，重新完整地回答这项任务。",
                ))
            }
        })?;
        cx.record(
            || json!({ "round": n, "kind": "broadcast", "responses": responses(cx, &replies) }),
        );
        Ok(replies)
    }
}

fn nobody_spoke_last(spoken: Vec<Key>) -> Ending {
    let reason = if spoken.is_empty() { "all_failed" } else { "last_round_failed" };
    Ending::failed(reason, spoken)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::{
        spec::{Collaboration, Spec},
        testing::{agent, check, ids, spec},
    };

    fn broadcast(rounds: u32, a: &[&str], b: &[&str]) -> Spec {
        let clocks =
            Clocks { timeout: Some(crate::time::Duration::from_millis(500)), ..Clocks::default() };
        let broadcast = Broadcast { agents: ids(&["a", "b"]), rounds, clocks };
        spec(vec![agent("a", a), agent("b", b)], Collaboration::Broadcast(broadcast))
    }

    #[test]
    fn a_later_round_goes_on_from_ones_own_answer_and_quotes_the_others() {
        check(
            broadcast(2, &["A1", "A2"], &["B1", "B2"]),
            expect![[r#"
                  1     0 started
                  2     0 asked round-1/a [task]
                  3     0 asked round-1/b [task]
                  4     0 answered round-1/a: A1
                  5     0 answered round-1/b: B1
                  6     0 asked round-2/a [after round-1/a · quote round-1/b · say Take what the others sai…]
                  7     0 asked round-2/b [after round-1/b · quote round-1/a · say Take what the others sai…]
                  8     0 answered round-2/b: B2
                  9     0 answered round-2/a: A2
                 10     0 ended answered
                = done answered: Some("A2\n\nB2")
                  {"round":1,"kind":"broadcast","responses":{"a":"A1","b":"B1"}}
                  {"round":2,"kind":"broadcast","responses":{"a":"A2","b":"B2"}}
            "#]],
        );
    }

    #[test]
    fn a_failed_or_blank_reply_is_recorded_and_named_but_never_quoted() {
        check(
            broadcast(2, &["!down", "A2"], &[" ", "B2"]),
            expect![[r#"
                  1     0 started
                  2     0 asked round-1/a [task]
                  3     0 asked round-1/b [task]
                  4     0 answered round-1/a: (down)
                  5     0 answered round-1/b:  
                  6     0 asked round-2/a [after round-1/a · say Without a contribution: … · say Take what the others sai…]
                  7     0 asked round-2/b [after round-1/b · say Without a contribution: … · say Take what the others sai…]
                  8     0 answered round-2/b: B2
                  9     0 answered round-2/a: A2
                 10     0 ended answered
                = done answered: Some("A2\n\nB2")
                  {"round":1,"kind":"broadcast","responses":{"a":{"error":"down"},"b":" "}}
                  {"round":2,"kind":"broadcast","responses":{"a":"A2","b":"B2"}}
            "#]],
        );
    }

    #[test]
    fn the_phase_does_not_wait_for_a_slow_agent() {
        check(
            broadcast(1, &["~900 late"], &["~400 B1"]),
            expect![[r#"
              1     0 started
              2     0 asked round-1/a [task]
              3     0 asked round-1/b [task]
              4   400 answered round-1/b: B1
              5   500 ticked
              6   500 withdrawn round-1/a: timeout
              7   500 ended answered
            = done answered: Some("B1")
              {"round":1,"kind":"broadcast","responses":{"a":{"error":"timeout"},"b":"B1"}}
        "#]],
        );
    }

    #[test]
    fn without_a_word_in_the_last_round_the_one_before_is_what_is_left() {
        check(
            broadcast(2, &["A1", "!x"], &["B1", "!y"]),
            expect![[r#"
                  1     0 started
                  2     0 asked round-1/a [task]
                  3     0 asked round-1/b [task]
                  4     0 answered round-1/a: A1
                  5     0 answered round-1/b: B1
                  6     0 asked round-2/a [after round-1/a · quote round-1/b · say Take what the others sai…]
                  7     0 asked round-2/b [after round-1/b · quote round-1/a · say Take what the others sai…]
                  8     0 answered round-2/b: (y)
                  9     0 answered round-2/a: (x)
                 10     0 ended last_round_failed
                = failed last_round_failed: None
                  partial "A1\n\nB1"
                  {"round":1,"kind":"broadcast","responses":{"a":"A1","b":"B1"}}
                  {"round":2,"kind":"broadcast","responses":{"a":{"error":"x"},"b":{"error":"y"}}}
            "#]],
        );
    }
}
