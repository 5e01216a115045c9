//! One turn of an agent: a request, and for an agent with tools whatever its tools need.
//!
//! A turn is a program of its own, nested in the place where it was asked for, so that every request
//! and every tool call is in the log, counts against the budget and survives a crash. An agent
//! without tools takes its turn in one call, which bears the turn's own name.
//!
//! A call that fails in a way that another target may not is made again by the next target of the
//! agent's chain, as a call of its own below the one that failed: `round-1/alice/target-2`. Its price,
//! its window and what is set aside for it are that target's.

use crate::{
    call::{Call, FailureKind, Fault, Prompt, Reply, ToolCall},
    key::Key,
    mcp,
    scope::{Scope, Step},
    team::{Agent, ECONOMY, FIRST_TARGET},
    tools,
};

/// Takes a turn named `name`; gives the reply that wants nothing more.
pub(crate) fn take(cx: &Scope, name: &str, agent: &Agent, prompt: Prompt) -> Step<Reply> {
    let mut turn = Turn::begin(cx, name, agent, prompt)?;
    turn.go_on(|| true)?;
    if !turn.is_open() {
        return Ok(turn.reply);
    }
    let fault =
        Fault::failed(FailureKind::Other, format!("no answer within {} steps", agent.max_steps));
    // The call itself was answered.
    let told = (turn.reply.key.clone(), agent.id.clone(), fault.clone());
    cx.tell(|account| account.faults.push(told));
    Ok(Reply { outcome: Err(fault), ..turn.reply })
}

/// A turn as far as it has come.
pub(crate) struct Turn<'a, 's> {
    /// The latest reply, or why the turn ended.
    pub(crate) reply: Reply,
    agent: &'a Agent,
    chain: Chain<'a>,
    place: Scope<'s>,
    first: Key,
    steps: u32,
    tools: u32,
    questions: u32,
}

impl<'a, 's> Turn<'a, 's> {
    /// Asks for the first time.
    pub(crate) fn begin(
        cx: &Scope<'s>,
        name: &str,
        agent: &'a Agent,
        prompt: Prompt,
    ) -> Step<Turn<'a, 's>> {
        let place = cx.at(name);
        let mut chain = Chain::of(agent);
        if let Some(reply) = mcp::meet(&place, agent)? {
            let first = reply.key.clone();
            return Ok(Turn {
                reply,
                agent,
                chain,
                place,
                first,
                steps: 0,
                tools: 0,
                questions: 0,
            });
        }
        let reply = if agent.grants.is_empty() {
            chain.ask(cx, name, prompt)?
        } else {
            chain.ask(&place, "model-1", prompt)?
        };
        let first = if agent.grants.is_empty() { cx.key(name) } else { place.key("model-1") };
        Ok(Turn { reply, agent, chain, place, first, steps: 1, tools: 0, questions: 0 })
    }

    /// Whether the latest reply wants something before there is a final one: tools, or the word of a
    /// person (rules.md 1.12).
    pub(crate) fn is_open(&self) -> bool {
        !tool_calls(&self.reply).is_empty() || asks(&self.reply)
    }

    /// Lets it use its tools and hear from people, as long as it wants to, has steps left and `may` go
    /// on.
    pub(crate) fn go_on(&mut self, may: impl Fn() -> bool) -> Step<()> {
        while self.is_open() && self.steps < self.agent.max_steps && may() {
            if asks(&self.reply) {
                let told = self.ask_person()?;
                if told.is_stopped() {
                    self.reply.outcome = told.outcome;
                    return Ok(());
                }
                // As it is, in no frame: what asked may be a program.
                self.ask(Prompt::after(&self.reply).result(&told))?;
                continue;
            }
            let calls = tool_calls(&self.reply).to_vec();
            let place = self.place.going_on(&self.first);
            let results = place.all(&calls, |call| {
                self.tools += 1;
                use_tool(&place, &format!("tool-{}", self.tools), self.agent, call)
            })?;
            if let Some(stopped) = results.iter().find(|result| result.is_stopped()) {
                self.reply.outcome.clone_from(&stopped.outcome);
                return Ok(());
            }
            let prompt = results.iter().fold(Prompt::after(&self.reply), Prompt::result);
            self.ask(prompt)?;
        }
        Ok(())
    }

    fn ask_person(&mut self) -> Step<Reply> {
        self.questions += 1;
        let prompt = Prompt::default().quote(&self.reply);
        let question = Call::Person { agent: self.agent.id.clone(), prompt };
        let place = self.place.going_on(&self.first);
        place.call(&format!("person-{}", self.questions), question)
    }

    /// Asks once more.
    pub(crate) fn ask(&mut self, prompt: Prompt) -> Step<()> {
        self.steps += 1;
        let place = self.place.going_on(&self.first);
        self.reply = self.chain.ask(&place, &format!("model-{}", self.steps), prompt)?;
        Ok(())
    }
}

/// The targets of an agent; whoever answered last in a turn is asked first from then on.
pub(crate) struct Chain<'a> {
    agent: &'a Agent,
    target: u32,
}

impl<'a> Chain<'a> {
    /// All of them, none asked yet.
    pub(crate) fn of(agent: &'a Agent) -> Chain<'a> {
        Chain { agent, target: FIRST_TARGET }
    }

    /// Asks until somebody answers, or fails in a way that another target would too (agents.md §3).
    pub(crate) fn ask(&mut self, cx: &Scope, name: &str, prompt: Prompt) -> Step<Reply> {
        self.target = self.first_asked(cx, name, &prompt);
        if self.agent.next_target(self.target).is_none() {
            return cx.call(name, self.request(prompt));
        }
        let mut reply = cx.call(name, self.request(prompt.clone()))?;
        let below = cx.at(name).going_on(&reply.key);
        while let Some(next) = self.agent.next_target(self.target).filter(|_| moves_on(&reply)) {
            self.target = next;
            reply = below.call(&format!("target-{next}"), self.request(prompt.clone()))?;
        }
        Ok(reply)
    }

    /// Whoever is asked first: once a budget runs low the economy's target, to the end of the turn
    /// (agents.md §8). Who was asked already stands in the log, whatever bills came in later.
    fn first_asked(&self, cx: &Scope, name: &str, prompt: &Prompt) -> u32 {
        let Some(economy) = self.agent.economy.first().filter(|_| self.target < ECONOMY) else {
            return self.target;
        };
        let was_asked = |target: u32| {
            let asked = Chain { agent: self.agent, target };
            cx.has_asked(name, asked.request(prompt.clone()))
        };
        if was_asked(self.target) {
            self.target
        } else if cx.is_low() || was_asked(economy.number) {
            economy.number
        } else {
            self.target
        }
    }

    fn request(&self, prompt: Prompt) -> Call {
        Call::Agent { agent: self.agent.id.clone(), target: self.target, prompt }
    }
}

/// Whether a call failed in a way that another target may not. What the kernel itself ended, a call
/// that is out of time among it, is nobody's failure.
fn moves_on(reply: &Reply) -> bool {
    matches!(reply.fault(), Some(Fault::Failed { kind, .. }) if kind.moves_on())
}

fn tool_calls(reply: &Reply) -> &[ToolCall] {
    reply.contribution().map_or(&[], |answer| &answer.tool_calls)
}

fn asks(reply: &Reply) -> bool {
    reply.contribution().is_some_and(|answer| answer.asks)
}

/// What is not granted is not executed: the model is told, and the refusal is recorded. Nor is what a
/// server did not have at first sight.
fn use_tool(turn: &Scope, name: &str, agent: &Agent, request: &ToolCall) -> Step<Reply> {
    let of_server = mcp::parts(&request.name);
    let pinned = of_server.map(|(server, tool)| mcp::tool(turn, server, tool));
    let is_harmless = matches!(&pinned, Some(Some(tool)) if tool.repeatable);
    let repeatable = is_harmless || turn.has_mail() && tools::is_of_service(&request.name);
    let call = Call::Tool { agent: agent.id.clone(), request: request.clone(), repeatable };
    let is_granted = agent.is_granted(&request.name) && turn.is_granted_around(&request.name);
    let is_there = is_granted && pinned.is_none_or(|it| it.is_some());
    if is_there {
        turn.call(name, call)
    } else {
        let denied = Fault::failed(FailureKind::Denied, format!("denied: {}", request.name));
        turn.forbid(name, call, denied)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use std::sync::Arc;

    use super::*;
    use crate::{
        call::{Answer, Usage},
        known::Entry,
        programs::{Broadcast, Clocks},
        run::Run,
        sim::{Happening, Sim, World},
        spec::{Collaboration, Spec},
        team::{A2a, Fallback, Says, Script, ScriptRule, ScriptedReply, Target},
        testing::{agent, check, ids, play, spec, story},
        time::Duration,
        view,
    };

    fn wants(tools: &[&str]) -> ScriptedReply {
        let tool = |name: &&str| {
            let (id, name) = ((*name).into(), (*name).into());
            ToolCall { id, name, arguments: json!({ "path": "a.txt" }) }
        };
        let calls = tools.iter().map(tool).collect();
        ScriptedReply { says: Says::Tools { calls, text: "let me see".into() }, ..text("") }
    }

    fn text(text: &str) -> ScriptedReply {
        ScriptedReply::text(text)
    }

    /// One turn of an agent that may use `file`.
    fn turn(replies: Vec<ScriptedReply>, rules: Vec<ScriptRule>) -> Spec {
        let target = Target::Script(Script { replies, rules, label: None });
        let alone = Agent { grants: vec!["file".into()], target, ..agent("a", &[]) };
        let agents = ids(&["a"]);
        let broadcast = Broadcast { agents, rounds: 1, clocks: Clocks::default() };
        spec(vec![alone], Collaboration::Broadcast(broadcast))
    }

    #[test]
    fn tools_are_used_side_by_side_and_their_results_shown_in_the_order_asked_for() {
        check(
            turn(vec![wants(&["file.read", "file.list"]), text("done")], Vec::new()),
            expect![[r#"
                  1     0 started
                  2     0 asked round-1/a/model-1 [task]
                  3     0 answered round-1/a/model-1: let me see
                  4     0 asked round-1/a/tool-1 tool
                  5     0 asked round-1/a/tool-2 tool
                  6     0 answered round-1/a/tool-1: {"path":"a.txt"}
                  7     0 answered round-1/a/tool-2: {"path":"a.txt"}
                  8     0 asked round-1/a/model-2 [after round-1/a/model-1 · result round-1/a/tool-1 · result round-1/a/tool-2]
                  9     0 answered round-1/a/model-2: done
                 10     0 ended answered
                = done answered: Some("done")
                  {"round":1,"kind":"broadcast","responses":{"a":"done"}}
            "#]],
        );
    }

    #[test]
    fn what_is_not_granted_is_not_done_and_the_model_is_told() {
        let rule = ScriptRule { contains: "error: denied: shell".into(), reply: text("I see") };
        check(
            turn(vec![wants(&["file.read", "shell"])], vec![rule]),
            expect![[r#"
                  1     0 started
                  2     0 asked round-1/a/model-1 [task]
                  3     0 answered round-1/a/model-1: let me see
                  4     0 asked round-1/a/tool-1 tool
                  5     0 refused round-1/a/tool-2: denied: shell
                  6     0 answered round-1/a/tool-1: {"path":"a.txt"}
                  7     0 asked round-1/a/model-2 [after round-1/a/model-1 · result round-1/a/tool-1 · result round-1/a/tool-2]
                  8     0 answered round-1/a/model-2: I see
                  9     0 ended answered
                = done answered: Some("I see")
                  {"round":1,"kind":"broadcast","responses":{"a":"I see"}}
            "#]],
        );
    }

    #[test]
    fn an_agent_without_any_grant_is_told_so_too() {
        let rule = ScriptRule { contains: "error: denied: shell".into(), reply: text("I see") };
        let mut spec = turn(vec![wants(&["shell"])], vec![rule]);
        spec.team.agents[0].grants.clear();
        check(
            spec,
            expect![[r#"
              1     0 started
              2     0 asked round-1/a [task]
              3     0 answered round-1/a: let me see
              4     0 refused round-1/a/tool-1: denied: shell
              5     0 asked round-1/a/model-2 [after round-1/a · result round-1/a/tool-1]
              6     0 answered round-1/a/model-2: I see
              7     0 ended answered
            = done answered: Some("I see")
              {"round":1,"kind":"broadcast","responses":{"a":"I see"}}
        "#]],
        );
    }

    /// A remote agent that wants to hear a word from a person first.
    struct Remote;

    impl World for Remote {
        fn answer(&mut self, _: &Spec, _: &Run, key: &Key, _: &Entry) -> Option<Happening> {
            let answer = match key.as_str() {
                "round-1/a" => Answer { asks: true, ..Answer::text("which city?") },
                "round-1/a/person-1" => Answer::text("Bergen"),
                _ => Answer::text("rain"),
            };
            let (after, usage) = (Duration(0), Usage::default());
            Some(Happening { after, outcome: Ok(Arc::new(answer)), usage })
        }
    }

    #[test]
    fn what_asks_a_person_goes_on_with_what_that_one_says() {
        let mut spec = turn(Vec::new(), Vec::new());
        let agent = &mut spec.team.agents[0];
        agent.grants.clear();
        agent.target = Target::A2a(A2a { url: "https://weather.example".into(), key_env: None });
        let sim = Sim::start(Arc::new(spec), 0, 0, &mut Remote).finish(&mut Remote);
        expect![[r#"
              1     0 started
              2     0 asked round-1/a [task]
              3     0 answered round-1/a: which city?
              4     0 asked round-1/a/person-1 [quote round-1/a]
            = needs_input : None
        "#]]
        .assert_eq(&story(&sim));
    }

    #[test]
    fn a_model_that_never_stops_using_tools_is_out_of_steps() {
        let mut spec = turn(vec![wants(&["file.read"])], Vec::new());
        spec.team.agents[0].max_steps = 2;
        check(
            spec,
            expect![[r#"
              1     0 started
              2     0 asked round-1/a/model-1 [task]
              3     0 answered round-1/a/model-1: let me see
              4     0 asked round-1/a/tool-1 tool
              5     0 answered round-1/a/tool-1: {"path":"a.txt"}
              6     0 asked round-1/a/model-2 [after round-1/a/model-1 · result round-1/a/tool-1]
              7     0 answered round-1/a/model-2: let me see
              8     0 ended all_failed
            = failed all_failed: None
              {"round":1,"kind":"broadcast","responses":{"a":{"error":"no answer within 2 steps"}}}
        "#]],
        );
    }

    #[test]
    fn every_tool_call_counts_against_the_budget_and_a_stopped_one_ends_the_turn() {
        let mut spec = turn(vec![wants(&["file.read", "file.list"]), text("done")], Vec::new());
        spec.limits.calls = Some(2);
        check(
            spec,
            expect![[r#"
              1     0 started
              2     0 asked round-1/a/model-1 [task]
              3     0 answered round-1/a/model-1: let me see
              4     0 asked round-1/a/tool-1 tool
              5     0 refused round-1/a/tool-2: budget exhausted
              6     0 answered round-1/a/tool-1: {"path":"a.txt"}
              7     0 ended all_failed
            = budget_exhausted calls: None
              {"round":1,"kind":"broadcast","responses":{"a":{"error":"budget exhausted"}}}
        "#]],
        );
    }

    /// A turn without tools of an agent with a chain of scripts.
    fn chained(first: Vec<ScriptedReply>, later: Vec<(u32, Vec<ScriptedReply>)>) -> Spec {
        let script = |replies| Target::Script(Script { replies, ..Script::default() });
        let mut spec = turn(first, Vec::new());
        let later = later.into_iter().map(|(number, it)| Fallback { number, target: script(it) });
        spec.team.agents[0].fallbacks = later.collect();
        spec.team.agents[0].grants.clear();
        spec
    }

    fn fails(kind: FailureKind) -> ScriptedReply {
        ScriptedReply { says: Says::Error { text: "boom".into(), kind }, ..text("") }
    }

    #[test]
    fn the_kind_of_a_failure_decides_whether_the_next_target_is_asked() {
        use FailureKind::*;
        let kinds = [
            (Auth, true),
            (RateLimited, true),
            (Timeout, true),
            (Transport, true),
            (Incomplete, true),
            (Protocol, true),
            (Spawn, true),
            (Harness, true),
            (Config, false),
            (Unsupported, false),
            (NotFound, false),
            (Io, false),
            (Denied, false),
            (Other, false),
        ];
        for (kind, moves_on) in kinds {
            let sim = play(chained(vec![fails(kind)], vec![(2, vec![text("saved")])]));
            let outcome = view::outcome("run", &sim.spec, &sim.run, true);
            assert_eq!(outcome.answer.is_some(), moves_on, "{kind:?}");
            assert_eq!(sim.run.known().iter().count(), 1 + usize::from(moves_on), "{kind:?}");
        }
    }

    #[test]
    fn each_target_of_a_chain_is_asked_the_same_until_one_answers() {
        let down = || vec![fails(FailureKind::Transport)];
        check(
            chained(down(), vec![(2, down()), (4, vec![text("saved")]), (5, down())]),
            expect![[r#"
                  1     0 started
                  2     0 asked round-1/a [task]
                  3     0 answered round-1/a: (boom)
                  4     0 asked round-1/a/target-2 [task]
                  5     0 answered round-1/a/target-2: (boom)
                  6     0 asked round-1/a/target-4 [task]
                  7     0 answered round-1/a/target-4: saved
                  8     0 ended answered
                = done answered: Some("saved")
                  {"round":1,"kind":"broadcast","responses":{"a":"saved"}}
            "#]],
        );
    }

    #[test]
    fn a_chain_that_is_used_up_fails_like_its_last_target() {
        let last = ScriptedReply {
            says: Says::Error { text: "no key".into(), kind: FailureKind::Auth },
            ..text("")
        };
        check(
            chained(vec![fails(FailureKind::Transport)], vec![(2, vec![last])]),
            expect![[r#"
                  1     0 started
                  2     0 asked round-1/a [task]
                  3     0 answered round-1/a: (boom)
                  4     0 asked round-1/a/target-2 [task]
                  5     0 answered round-1/a/target-2: (no key)
                  6     0 ended all_failed
                = failed all_failed: None
                  {"round":1,"kind":"broadcast","responses":{"a":{"error":"no key"}}}
            "#]],
        );
    }

    #[test]
    fn who_answered_keeps_the_turn_and_the_next_turn_begins_with_the_first_again() {
        let flaky = vec![fails(FailureKind::RateLimited), text("unused"), text("back")];
        let mut spec =
            chained(flaky, vec![(2, vec![text(""), wants(&["file.read"]), text("done")])]);
        spec.team.agents[0].grants = vec!["file".into()];
        let Collaboration::Broadcast(broadcast) = &mut spec.collaboration else { unreachable!() };
        broadcast.rounds = 2;
        check(
            spec,
            expect![[r#"
                  1     0 started
                  2     0 asked round-1/a/model-1 [task]
                  3     0 answered round-1/a/model-1: (boom)
                  4     0 asked round-1/a/model-1/target-2 [task]
                  5     0 answered round-1/a/model-1/target-2: let me see
                  6     0 asked round-1/a/tool-1 tool
                  7     0 answered round-1/a/tool-1: {"path":"a.txt"}
                  8     0 asked round-1/a/model-2 [after round-1/a/model-1/target-2 · result round-1/a/tool-1]
                  9     0 answered round-1/a/model-2: done
                 10     0 asked round-2/a/model-1 [after round-1/a/model-2 · say Take what the others sai…]
                 11     0 answered round-2/a/model-1: back
                 12     0 ended answered
                = done answered: Some("back")
                  {"round":1,"kind":"broadcast","responses":{"a":"done"}}
                  {"round":2,"kind":"broadcast","responses":{"a":"back"}}
            "#]],
        );
    }

    #[test]
    fn each_request_of_a_chain_counts_against_the_calls_of_the_run() {
        let mut spec = chained(vec![fails(FailureKind::Auth)], vec![(2, vec![text("unasked")])]);
        spec.limits.calls = Some(1);
        check(
            spec,
            expect![[r#"
                  1     0 started
                  2     0 asked round-1/a [task]
                  3     0 answered round-1/a: (boom)
                  4     0 refused round-1/a/target-2: budget exhausted
                  5     0 ended all_failed
                = budget_exhausted calls: None
                  {"round":1,"kind":"broadcast","responses":{"a":{"error":"budget exhausted"}}}
            "#]],
        );
    }

    #[test]
    fn the_clock_of_a_call_is_that_of_its_whole_chain_and_moves_on_to_nobody() {
        let late = |reply| ScriptedReply { delay: Duration::from_millis(400), ..reply };
        let slow = || vec![late(fails(FailureKind::Timeout))];
        let mut spec = chained(slow(), vec![(2, slow()), (3, vec![text("unasked")])]);
        let Collaboration::Broadcast(broadcast) = &mut spec.collaboration else { unreachable!() };
        broadcast.clocks.call_timeout = Some(Duration::from_millis(700));
        check(
            spec,
            expect![[r#"
                  1     0 started
                  2     0 asked round-1/a [task]
                  3   400 answered round-1/a: (boom)
                  4   400 asked round-1/a/target-2 [task]
                  5   700 ticked
                  6   700 withdrawn round-1/a/target-2: timeout
                  7   700 ended all_failed
                = failed all_failed: None
                  {"round":1,"kind":"broadcast","responses":{"a":{"error":"timeout"}}}
            "#]],
        );
    }

    #[test]
    fn the_clock_of_a_call_is_the_whole_turn_s() {
        let slow = |reply| ScriptedReply { delay: Duration::from_millis(400), ..reply };
        let mut spec = turn(vec![slow(wants(&["file.read"])), slow(text("late"))], Vec::new());
        let Collaboration::Broadcast(broadcast) = &mut spec.collaboration else { unreachable!() };
        broadcast.clocks.call_timeout = Some(Duration::from_millis(700));
        check(
            spec,
            expect![[r#"
              1     0 started
              2     0 asked round-1/a/model-1 [task]
              3   400 answered round-1/a/model-1: let me see
              4   400 asked round-1/a/tool-1 tool
              5   400 answered round-1/a/tool-1: {"path":"a.txt"}
              6   400 asked round-1/a/model-2 [after round-1/a/model-1 · result round-1/a/tool-1]
              7   700 ticked
              8   700 withdrawn round-1/a/model-2: timeout
              9   700 ended all_failed
            = failed all_failed: None
              {"round":1,"kind":"broadcast","responses":{"a":{"error":"timeout"}}}
        "#]],
        );
    }
}
