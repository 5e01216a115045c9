//! One turn of an agent that a team answers for: that team's whole run, in the place of the turn.
//!
//! Composition is calling a function. The turn is a call of its own, so that others can quote its reply
//! and go on from it; the calls of its team lie below it, count against the budget of the run and
//! survive a crash. To those calls the task is what the member was asked, part by part, so that the log
//! holds no copy of it and it is known what they were made from.

use std::sync::Arc;

use crate::{
    call::{Answer, Call, FailureKind, Fault, Limit, Outcome, Owner, Prompt, Reply},
    event::{Ending, Text},
    scope::{Scope, Step},
    spec::Spec,
    team::{Agent, Nested},
};

/// Takes a turn named `name`; gives what the team came to.
pub(crate) fn take(
    cx: &Scope,
    name: &str,
    agent: &Agent,
    nested: &Nested,
    prompt: Prompt,
) -> Step<Reply> {
    let timed = cx.each_within(nested.spec.limits.time);
    let wanted = timed
        .known()
        .worded(&timed.key(name), Call::Team { agent: agent.id.clone(), prompt: prompt.clone() });
    let brief = match &wanted {
        Call::Team { prompt, .. } => timed.brief(prompt),
        _ => timed.brief(&prompt),
    };
    let reply = timed.call(name, Call::Team { agent: agent.id.clone(), prompt });
    let follow = || {
        let spec = Spec { task: timed.told(&brief).into(), ..nested.spec.clone() };
        let place = timed.nested(name, &agent.id, &spec, brief.clone());
        spec.program().run(&place)
    };
    let waits = match reply {
        Ok(reply) => {
            timed.follow_again(name, follow);
            return Ok(reply);
        }
        Err(waits) => waits,
    };
    let (step, wants) = timed.follow(name, follow);
    match step {
        Ok(ending) if wants.is_empty() => {
            timed.conclude(name, outcome(&timed.at(name), nested, &ending));
        }
        Ok(_) => timed.conclude(name, Err(failed(nested, "swallowed_wait"))),
        Err(_) if wants.is_empty() => {
            timed.conclude(name, Err(failed(nested, "waits_for_nothing")));
        }
        Err(_) => return timed.wait_for(wants),
    }
    Err(waits)
}

/// The final artifact of a team is its member's reply; without one the member has failed, with the
/// team's reason.
fn outcome(place: &Scope, nested: &Nested, ending: &Ending) -> Outcome {
    let text = match &ending.answer {
        Some(Text::Literal(text)) => Some(Answer::text(text.clone())),
        Some(Text::Replies(keys)) => {
            let answers = keys.iter().filter_map(|key| place.reply(key)?.outcome.ok());
            let answers: Vec<Arc<Answer>> = answers.collect();
            match &answers[..] {
                [] => None,
                // A structured reply stays one; what its author thought or asked for is its own.
                [one] => Some(Answer {
                    text: one.text.clone(),
                    json: one.json.clone(),
                    ..Answer::default()
                }),
                many => {
                    let texts: Vec<&str> = many.iter().map(|it| &*it.text).collect();
                    Some(Answer::text(texts.join("\n\n")))
                }
            }
        }
        None => None,
    };
    match text {
        Some(answer) => Ok(answer.into()),
        None => Err(place.short_of().map_or_else(
            || failed(nested, &ending.reason),
            |limit: Limit| Fault::OverBudget { limit, of: Owner::Scope },
        )),
    }
}

fn failed(nested: &Nested, reason: &str) -> Fault {
    let name = &nested.spec.team.name;
    Fault::failed(FailureKind::Other, format!("team {name}: {reason}"))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::{
        limits::Limits,
        programs::{Broadcast, Clocks, Sequential},
        replay::{Change, fork},
        run::Run,
        sim::Sim,
        spec::Collaboration,
        team::{AgentId, Target},
        testing::{Scripted, agent, check, ids, play, spec},
        time::Duration,
        view,
    };

    fn sequence(agents: Vec<Agent>) -> Spec {
        let order: Vec<AgentId> = agents.iter().map(|agent| agent.id.clone()).collect();
        spec(agents, Collaboration::Sequential(Sequential { order, clocks: Clocks::default() }))
    }

    /// A member that this team answers for.
    fn member(name: &str, inner: Spec) -> Agent {
        let nested = Nested { file: format!("{name}.yaml").into(), spec: inner };
        Agent::new(name, Target::Team(Box::new(nested)))
    }

    fn asked_twice(inner: Spec) -> Spec {
        let agents = vec![agent("a", &["one", "two"]), member("team", inner)];
        let (agents_of, clocks) = (ids(&["a", "team"]), Clocks::default());
        let broadcast = Broadcast { agents: agents_of, rounds: 2, clocks };
        spec(agents, Collaboration::Broadcast(broadcast))
    }

    #[test]
    fn a_turn_is_a_whole_run_whose_last_word_is_the_reply() {
        let inner = sequence(vec![agent("a", &["draft"]), agent("b", &["better"])]);
        check(
            sequence(vec![agent("a", &["idea"]), member("team", inner)]),
            expect![[r#"
              1     0 started
              2     0 asked step-1/a [task · say This is step 1 of 2: do …]
              3     0 answered step-1/a: idea
              4     0 asked step-2/team [task · quote step-1/a · say This is step 2 of 2: do …]
              5     0 asked step-2/team/step-1/a [task · quote step-1/a · say This is step 2 of 2: do … · say This is step 1 of 2: do …]
              6     0 answered step-2/team/step-1/a: draft
              7     0 asked step-2/team/step-2/b [task · quote step-1/a · say This is step 2 of 2: do … · quote step-2/team/step-1/a · say This is step 2 of 2: do …]
              8     0 answered step-2/team/step-2/b: better
              9     0 concluded step-2/team: better
             10     0 ended answered
            = done answered: Some("better")
              {"step":1,"agent":"a","response":"idea"}
              {"step":2,"agent":"team","response":"better"}
        "#]],
        );
    }

    #[test]
    fn each_turn_begins_anew_and_is_told_what_was_said_before() {
        let inner = sequence(vec![agent("x", &[])]);
        check(
            asked_twice(inner),
            expect![[r#"
              1     0 started
              2     0 asked round-1/a [task]
              3     0 asked round-1/team [task]
              4     0 asked round-1/team/step-1/x [task · say This is step 1 of 1: do …]
              5     0 answered round-1/team/step-1/x: TASK

            This is step 1 of 1: do your part.
              6     0 answered round-1/a: one
              7     0 concluded round-1/team: TASK

            This is step 1 of 1: do your part.
              8     0 asked round-2/a [after round-1/a · quote round-1/team · say Take what the others sai…]
              9     0 asked round-2/team [after round-1/team · quote round-1/a · say Take what the others sai…]
             10     0 asked round-2/team/step-1/x [task · quote round-1/team · quote round-1/a · say Take what the others sai… · say This is step 1 of 1: do …]
             11     0 answered round-2/team/step-1/x: TASK

            <reply from="team" key="round-1/team">
            TASK

            This is step 1 of 1: do your part.
            </reply>

            <reply from="a" key="round-1/a">
            one
            </reply>

            Take what the others said into account and answer the task again, completely.

            This is step 1 of 1: do your part.
             12     0 answered round-2/a: two
             13     0 concluded round-2/team: TASK

            <reply from="team" key="round-1/team">
            TASK

            This is step 1 of 1: do your part.
            </reply>

            <reply from="a" key="round-1/a">
            one
            </reply>

            Take what the others said into account and answer the task again, completely.

            This is step 1 of 1: do your part.
             14     0 ended answered
            = done answered: Some("two\n\nTASK\n\n<reply from=\"team\" key=\"round-1/team\">\nTASK\n\nThis is step 1 of 1: do your part.\n</reply>\n\n<reply from=\"a\" key=\"round-1/a\">\none\n</reply>\n\nTake what the others said into account and answer the task again, completely.\n\nThis is step 1 of 1: do your part.")
              {"round":1,"kind":"broadcast","responses":{"a":"one","team":"TASK\n\nThis is step 1 of 1: do your part."}}
              {"round":2,"kind":"broadcast","responses":{"a":"two","team":"TASK\n\n<reply from=\"team\" key=\"round-1/team\">\nTASK\n\nThis is step 1 of 1: do your part.\n</reply>\n\n<reply from=\"a\" key=\"round-1/a\">\none\n</reply>\n\nTake what the others said into account and answer the task again, completely.\n\nThis is step 1 of 1: do your part."}}
        "#]],
        );
    }

    #[test]
    fn a_team_that_fails_fails_its_member_with_its_reason() {
        let inner = sequence(vec![agent("x", &["!boom"])]);
        check(
            sequence(vec![agent("a", &["idea"]), member("team", inner)]),
            expect![[r#"
              1     0 started
              2     0 asked step-1/a [task · say This is step 1 of 2: do …]
              3     0 answered step-1/a: idea
              4     0 asked step-2/team [task · quote step-1/a · say This is step 2 of 2: do …]
              5     0 asked step-2/team/step-1/x [task · quote step-1/a · say This is step 2 of 2: do … · say This is step 1 of 1: do …]
              6     0 answered step-2/team/step-1/x: (boom)
              7     0 concluded step-2/team: (team test: all_failed)
              8     0 ended last_step_failed
            = failed last_step_failed: None
              partial "idea"
              {"step":1,"agent":"a","response":"idea"}
              {"step":2,"agent":"team","response":{"error":"team test: all_failed"}}
        "#]],
        );
    }

    #[test]
    fn the_limits_of_a_team_bind_each_of_its_turns_and_the_run_goes_on() {
        let mut inner = sequence(vec![agent("x", &["draft"]), agent("y", &["better"])]);
        inner.limits = Limits { calls: Some(1), ..Limits::default() };
        check(
            asked_twice(inner),
            expect![[r#"
              1     0 started
              2     0 asked round-1/a [task]
              3     0 asked round-1/team [task]
              4     0 asked round-1/team/step-1/x [task · say This is step 1 of 2: do …]
              5     0 answered round-1/team/step-1/x: draft
              6     0 answered round-1/a: one
              7     0 refused round-1/team/step-2/y: budget exhausted
              8     0 concluded round-1/team: (budget exhausted)
              9     0 asked round-2/a [after round-1/a · say Without a contribution: … · say Take what the others sai…]
             10     0 asked round-2/team [after round-1/team · quote round-1/a · say Take what the others sai…]
             11     0 asked round-2/team/step-1/x [task · quote round-1/a · say Take what the others sai… · say This is step 1 of 2: do …]
             12     0 answered round-2/team/step-1/x: draft
             13     0 answered round-2/a: two
             14     0 refused round-2/team/step-2/y: budget exhausted
             15     0 concluded round-2/team: (budget exhausted)
             16     0 ended answered
            = done answered: Some("two")
              {"round":1,"kind":"broadcast","responses":{"a":"one","team":{"error":"budget exhausted"}}}
              {"round":2,"kind":"broadcast","responses":{"a":"two","team":{"error":"budget exhausted"}}}
        "#]],
        );
    }

    #[test]
    fn the_limits_of_a_member_count_all_that_its_team_uses() {
        let mut team = member("team", sequence(vec![agent("x", &["draft"]), agent("y", &["no"])]));
        team.limits.calls = Some(1);
        let sim = play(sequence(vec![team]));
        let outcome = view::outcome("run", &sim.spec, &sim.run, true);
        assert_eq!(outcome.meta.usage.calls, 1);
        assert_eq!(outcome.errors.last().map(|it| &*it.error), Some("budget exhausted"));
    }

    #[test]
    fn teams_nest_in_teams() {
        let inmost = sequence(vec![agent("x", &["deep"])]);
        let inner = sequence(vec![member("team", inmost)]);
        check(
            sequence(vec![member("team", inner)]),
            expect![[r#"
              1     0 started
              2     0 asked step-1/team [task · say This is step 1 of 1: do …]
              3     0 asked step-1/team/step-1/team [task · say This is step 1 of 1: do … · say This is step 1 of 1: do …]
              4     0 asked step-1/team/step-1/team/step-1/x [task · say This is step 1 of 1: do … · say This is step 1 of 1: do … · say This is step 1 of 1: do …]
              5     0 answered step-1/team/step-1/team/step-1/x: deep
              6     0 concluded step-1/team/step-1/team: deep
              7     0 concluded step-1/team: deep
              8     0 ended answered
            = done answered: Some("deep")
              {"step":1,"agent":"team","response":"deep"}
        "#]],
        );
    }

    fn told(sim: &Sim) -> serde_json::Value {
        let outcome = view::outcome("run", &sim.spec, &sim.run, true);
        serde_json::to_value(outcome.nested).expect("it is plain data")
    }

    #[test]
    fn results_tell_the_rounds_of_each_turn_of_a_team_and_of_those_within_it() {
        let inmost = sequence(vec![agent("x", &["!boom"])]);
        let inner = sequence(vec![member("team", inmost), agent("y", &["saved"])]);
        let sim = play(sequence(vec![member("team", inner)]));
        expect![[r#"
            {
              "step-1/team": {
                "agent": "team",
                "team": "test",
                "strategy": "sequential",
                "status": "done",
                "reason": "answered",
                "rounds": [
                  {
                    "step": 1,
                    "agent": "team",
                    "response": {
                      "error": "team test: all_failed"
                    }
                  },
                  {
                    "step": 2,
                    "agent": "y",
                    "response": "saved"
                  }
                ]
              },
              "step-1/team/step-1/team": {
                "agent": "team/team",
                "team": "test",
                "strategy": "sequential",
                "status": "failed",
                "reason": "all_failed",
                "rounds": [
                  {
                    "step": 1,
                    "agent": "x",
                    "response": {
                      "error": "boom"
                    }
                  }
                ]
              }
            }"#]]
        .assert_eq(&format!("{:#}", told(&sim)));
        let report = view::report("run", &sim.spec, &sim.run, true);
        let teams = report.split("## ").find(|it| it.starts_with("Teams")).expect("it is told");
        expect![[r#"
            Teams

            | turn | team | strategy | status | reason | rounds |
            |---|---|---|---|---|--:|
            | `step-1/team` | team | sequential | done | answered | 2 |
            | `step-1/team/step-1/team` | team/team | sequential | failed | all\_failed | 1 |

        "#]]
        .assert_eq(teams);
    }

    #[test]
    fn the_rounds_of_a_turn_under_way_are_told_as_far_as_they_have_come() {
        let inner = sequence(vec![agent("x", &["draft"]), agent("y", &["~500 late"])]);
        let mut sim = Sim::start(sequence(vec![member("team", inner)]).into(), 0, 0, &mut Scripted);
        sim.advance(&mut Scripted);
        let told = told(&sim);
        assert_eq!(told["step-1/team"]["status"], "running");
        assert_eq!(told["step-1/team"]["rounds"][0]["response"], "draft");
    }

    #[test]
    fn a_fork_takes_over_a_turn_that_its_clock_cut_off() {
        let inner = sequence(vec![agent("x", &["draft"]), agent("y", &["~9000 late"])]);
        let mut spec = sequence(vec![member("team", inner), agent("z", &["after"])]);
        if let Collaboration::Sequential(sequential) = &mut spec.collaboration {
            sequential.clocks.timeout = Some(Duration::from_secs(1));
        }
        let sim = play(spec);
        let change =
            Change { at: sim.run.seq(), spec: sim.spec.clone(), answers: Vec::new(), retry: None };
        let begun = Sim::resume(sim.spec.clone(), Run::default(), Vec::new(), 0);
        let events = fork("origin", &sim.log, &change, 0);
        let mut forked = begun;
        forked.feed_all(events, &mut Scripted);
        let lines: Vec<String> = forked.log.iter().map(crate::testing::line).collect();
        expect![[r#"
            1     0 started
            2     0 inherited step-1/team/step-1/x
            3     0 inherited step-1/team
            4     0 inherited step-2/z
            5     0 ended answered"#]]
        .assert_eq(&lines.iter().map(|it| it.trim_start()).collect::<Vec<_>>().join("\n"));
    }

    #[test]
    fn nothing_is_asked_below_a_turn_that_is_refused() {
        let inner = sequence(vec![agent("x", &["draft"])]);
        let agents = vec![agent("a", &["one"]), member("team", inner)];
        let broadcast =
            Broadcast { agents: ids(&["a", "team"]), rounds: 1, clocks: Clocks::default() };
        let mut spec = spec(agents, Collaboration::Broadcast(broadcast));
        spec.limits.calls = Some(0);
        check(
            spec,
            expect![[r#"
              1     0 started
              2     0 refused round-1/a: budget exhausted
              3     0 refused round-1/team: budget exhausted
              4     0 ended all_failed
            = budget_exhausted calls: None
              {"round":1,"kind":"broadcast","responses":{"a":{"error":"budget exhausted"},"team":{"error":"budget exhausted"}}}
        "#]],
        );
    }
}
