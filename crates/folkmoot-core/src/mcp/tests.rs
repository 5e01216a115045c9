//! What agents are offered of servers, and what is kept of it: agents.md §§5, 6.

use std::collections::BTreeMap;

use expect_test::expect;
use serde_json::json;

use super::*;
use crate::{
    call::{FailureKind, Fault, ToolCall},
    event::{Event, Settled},
    key::Key,
    programs::{Broadcast, Clocks},
    replay,
    replay::{Change, Retry, fork},
    run::Run,
    sim::{Happening, Sim, World},
    spec::{Collaboration, Spec},
    team::{Nested, Says, Script, ScriptedReply, Target},
    testing::{Scripted, agent, check, ids, line, play, spec, tool},
    time::{Duration, Time},
    view,
};

fn wants(tools: &[&str]) -> ScriptedReply {
    let call = |name: &&str| {
        let (id, name) = ((*name).into(), (*name).into());
        ToolCall { id, name, arguments: json!({ "n": 1 }) }
    };
    let calls = tools.iter().map(call).collect();
    ScriptedReply { says: Says::Tools { calls, text: "let me see".into() }, ..text("") }
}

fn text(text: &str) -> ScriptedReply {
    ScriptedReply::text(text)
}

/// An agent that is granted `mcp.s`.
fn member(name: &str, replies: Vec<ScriptedReply>) -> Agent {
    let target = Target::Script(Script { replies, ..Script::default() });
    let (grants, servers) = (vec!["mcp.s".into()], vec!["s".into()]);
    Agent { grants, servers, target, ..agent(name, &[]) }
}

fn team(members: Vec<Agent>, rounds: u32) -> Spec {
    let names: Vec<String> = members.iter().map(|agent| agent.id.to_string()).collect();
    let agents = ids(&names.iter().map(|name| &**name).collect::<Vec<_>>());
    spec(members, Collaboration::Broadcast(Broadcast { agents, rounds, clocks: Clocks::default() }))
}

#[test]
fn a_server_is_asked_once_what_it_has_when_an_agent_first_needs_it() {
    let members = vec![
        member("a", vec![wants(&["mcp.s.look", "mcp.s.gone", "mcp.t.look"]), text("A")]),
        member("b", vec![text("B")]),
        agent("c", &["C"]),
    ];
    check(
        team(members, 1),
        expect![[r#"
          1     0 started
          2     0 asked mcp/s listing of s
          3     0 asked round-1/c [task]
          4     0 answered mcp/s: [{"name":"look","description":"does look","parameters":{"type":"object"},"repeatable":true},{"name":"change","description":"does change","parameters":{"type":"object"}}]
          5     0 answered round-1/c: C
          6     0 asked round-1/a/model-1 [task]
          7     0 asked round-1/b/model-1 [task]
          8     0 answered round-1/a/model-1: let me see
          9     0 answered round-1/b/model-1: B
         10     0 asked round-1/a/tool-1 tool
         11     0 refused round-1/a/tool-2: denied: mcp.s.gone
         12     0 refused round-1/a/tool-3: denied: mcp.t.look
         13     0 answered round-1/a/tool-1: {"n":1}
         14     0 asked round-1/a/model-2 [after round-1/a/model-1 · result round-1/a/tool-1 · result round-1/a/tool-2 · result round-1/a/tool-3]
         15     0 answered round-1/a/model-2: A
         16     0 ended answered
        = done answered: Some("A\n\nB\n\nC")
          {"round":1,"kind":"broadcast","responses":{"a":"A","b":"B","c":"C"}}
    "#]],
    );
}

/// A member that this team answers for.
fn a_team(name: &str, spec: Spec) -> Agent {
    let nested = Nested { file: format!("{name}.yaml").into(), spec };
    let grants = vec!["mcp.s".into()];
    Agent { grants, ..Agent::new(name, Target::Team(Box::new(nested))) }
}

#[test]
fn each_team_has_servers_and_pins_of_its_own_whatever_others_call_theirs() {
    let inner = |name: &str| team(vec![member(name, vec![text("done")])], 1);
    let members =
        vec![member("a", vec![text("A")]), a_team("x", inner("a")), a_team("y", inner("a"))];
    let sim = play(team(members, 1));
    let known = sim.run.known();
    let listings = known.in_order().into_iter();
    let listings = listings.filter(|(_, entry)| matches!(entry.call, Call::Listing { .. }));
    let keys: Vec<&str> = listings.map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["mcp/s", "mcp/x/s", "mcp/y/s"]);
    for of in ["", "x", "y"] {
        assert_eq!(pinned(known, of, "s").len(), 2, "{of}");
    }
    assert_eq!(pinned(known, "z", "s"), []);
    let offered = |id: &str| sim.spec.tools(&id.into(), known).len();
    assert_eq!([offered("a"), offered("x/a"), offered("y/a")], [2; 3]);
}

#[test]
fn the_whole_name_of_a_tool_counts() {
    let may = |grant: &str, name: &str| {
        let grants = vec![grant.into()];
        Agent { grants, ..agent("a", &[]) }.is_granted(name)
    };
    for (grant, name) in [
        ("*", "mcp.s.t"),
        ("mcp.s", "mcp.s.t"),
        ("mcp.s.*", "mcp.s.t.u"),
        ("mcp.s.t", "mcp.s.t"),
        ("mcp.s.t.u", "mcp.s.t.u"),
    ] {
        assert!(may(grant, name), "{grant} {name}");
    }
    for (grant, name) in [
        ("mcp.s.t", "mcp.s.t.u"),
        ("mcp.s.t", "mcp.s.tu"),
        ("mcp.s", "mcp.st.t"),
        ("mcp.s", "mcp.S.t"),
        ("mcp", "mcp.s.t"),
        ("mcp.s.t", "mcp.s2.t"),
        ("file", "mcp.file.read"),
    ] {
        assert!(!may(grant, name), "{grant} {name}");
    }
}

/// What an agent is offered at the end of a run.
fn offered(sim: &Sim, agent: &str) -> Vec<String> {
    let tools = sim.spec.tools(&agent.into(), sim.run.known());
    tools.iter().map(|tool| tool.name.to_string()).collect()
}

#[test]
fn an_agent_is_offered_what_it_is_granted_of_what_was_pinned() {
    let mut spec = team(vec![member("a", vec![text("A")]), member("b", vec![text("B")])], 1);
    spec.team.agents[1].grants = vec!["mcp.s.look".into()];
    let sim = play(spec);
    assert_eq!(offered(&sim, "a"), ["mcp.s.look", "mcp.s.change"]);
    assert_eq!(offered(&sim, "b"), ["mcp.s.look"]);
    let told = sim.spec.tools(&"b".into(), sim.run.known());
    assert_eq!(
        (&*told[0].description, &told[0].parameters),
        ("does look", &json!({ "type": "object" }))
    );
}

/// A world in which the first so many listings fail.
struct Failing {
    listings: u32,
}

impl World for Failing {
    fn answer(&mut self, spec: &Spec, run: &Run, key: &Key, entry: &Entry) -> Option<Happening> {
        let happening = Scripted.answer(spec, run, key, entry)?;
        if !matches!(entry.call, Call::Listing { .. }) || self.listings == 0 {
            return Some(happening);
        }
        self.listings -= 1;
        let outcome = Err(Fault::failed(FailureKind::Spawn, "no such program"));
        Some(Happening { outcome, ..happening })
    }
}

#[test]
fn a_server_that_cannot_be_had_keeps_nobody_from_working_and_is_tried_again_by_the_next_turn() {
    let members = vec![
        member("a", vec![wants(&["mcp.s.look"]), text("A1"), wants(&["mcp.s.look"]), text("A2")]),
        member("b", vec![text("B")]),
    ];
    let mut world = Failing { listings: 1 };
    let sim = Sim::start(team(members, 2).into(), 0, 0, &mut world).finish(&mut world);
    let story = sim.log.iter().map(|record| line(record).trim_start().to_owned());
    let story: Vec<String> = story.collect();
    expect![[r#"
        1     0 started
        2     0 asked mcp/s listing of s
        3     0 answered mcp/s: (no such program)
        4     0 asked round-1/a/model-1 [task]
        5     0 asked round-1/b/model-1 [task]
        6     0 answered round-1/a/model-1: let me see
        7     0 answered round-1/b/model-1: B
        8     0 refused round-1/a/tool-1: denied: mcp.s.look
        9     0 asked round-1/a/model-2 [after round-1/a/model-1 · result round-1/a/tool-1]
        10     0 answered round-1/a/model-2: A1
        11     0 asked round-2/a/mcp-s listing of s
        12     0 asked round-2/b/mcp-s listing of s
        13     0 answered round-2/b/mcp-s: [{"name":"look","description":"does look","parameters":{"type":"object"},"repeatable":true},{"name":"change","description":"does change","parameters":{"type":"object"}}]
        14     0 answered round-2/a/mcp-s: [{"name":"look","description":"does look","parameters":{"type":"object"},"repeatable":true},{"name":"change","description":"does change","parameters":{"type":"object"}}]
        15     0 asked round-2/a/model-1 [after round-1/a/model-2 · quote round-1/b/model-1 · say Take what the others sai…]
        16     0 asked round-2/b/model-1 [after round-1/b/model-1 · quote round-1/a/model-2 · say Take what the others sai…]
        17     0 answered round-2/b/model-1: B
        18     0 answered round-2/a/model-1: let me see
        19     0 asked round-2/a/tool-1 tool
        20     0 answered round-2/a/tool-1: {"n":1}
        21     0 asked round-2/a/model-2 [after round-2/a/model-1 · result round-2/a/tool-1]
        22     0 answered round-2/a/model-2: A2
        23     0 ended answered"#]].assert_eq(&story.join("\n"));
    let warnings = view::outcome("r", &sim.spec, &sim.run, false).warnings;
    let told: Vec<&str> = warnings.iter().map(|it| &*it.message).collect();
    assert_eq!(told, ["the tools of MCP server s could not be had: no such program"]);
}

#[test]
fn a_replay_needs_no_server_and_decides_everything_as_recorded() {
    let sim = play(team(vec![member("a", vec![wants(&["mcp.s.look"]), text("A")])], 1));
    replay::replay(&sim.log).expect("it decides as recorded");
    let mut other = sim.log.clone();
    let listed =
        |event: &Event| matches!(event, Event::Answered { key, .. } if key.as_str() == "mcp/s");
    let answer = other.iter_mut().find(|it| listed(&it.event)).expect("it was asked");
    let Event::Answered { settled: Settled::Answer(answer), .. } = &mut answer.event else {
        panic!("it answered");
    };
    *answer = Arc::new(crate::call::Answer::json(Pinned::listed(&[tool("change", false)])));
    assert!(replay::replay(&other).is_err(), "what is pinned decides what is denied");
}

#[test]
fn a_crash_repeats_a_call_only_if_its_server_says_that_it_can_be_repeated() {
    let replies = vec![wants(&["mcp.s.look", "mcp.s.change"]), text("A")];
    let sim = play(team(vec![member("a", replies)], 1));
    let asked = |record: &crate::event::Record| matches!(&record.event, Event::Asked { key, .. } if key.as_str().ends_with("tool-2"));
    let cut = sim.log.iter().position(asked).expect("it was asked") + 1;
    let mut run = Run::fold(&sim.log[..cut]);
    let resumed = [Event::Resumed { wall: 0 }];
    let stepped = run.step(sim.spec.program(), &sim.spec, resumed, Time::default());
    let lost: Vec<(&str, &Fault)> = stepped
        .records
        .iter()
        .filter_map(|record| match &record.event {
            Event::Withdrawn { key, fault, .. } => Some((key.as_str(), fault)),
            _ => None,
        })
        .collect();
    assert_eq!(lost, [("round-1/a/tool-2", &Fault::Lost)]);
    let look = run.known().get("round-1/a/tool-1").expect("it was asked");
    assert_eq!((look.attempt, look.is_open()), (2, true));
    let told =
        Sim::resume(sim.spec.clone(), Run::fold(&sim.log[..cut]), sim.log[..cut].to_vec(), 0);
    let mut told = told;
    told.feed(Event::Resumed { wall: 0 }, &mut Scripted);
    let told = told.finish(&mut Scripted);
    let calls = view::calls(&told.spec, &told.run);
    let last = calls.last().expect("the model is told").request.messages.last().cloned();
    let last = last.expect("a result");
    assert!(last.content.contains("error: interrupted, outcome unknown"), "{}", last.content);
}

#[test]
fn another_attempt_uses_no_tool_again_whose_outcome_a_crash_left_unknown_unless_it_is_named() {
    let replies = vec![wants(&["mcp.s.look", "mcp.s.change"]), text("A")];
    let sim = play(team(vec![member("a", replies)], 1));
    let asked = |record: &crate::event::Record| matches!(&record.event, Event::Asked { key, .. } if key.as_str().ends_with("tool-2"));
    let cut = sim.log.iter().position(asked).expect("it was asked") + 1;
    let mut resumed =
        Sim::resume(sim.spec.clone(), Run::fold(&sim.log[..cut]), sim.log[..cut].to_vec(), 0);
    resumed.feed(Event::Resumed { wall: 0 }, &mut Scripted);
    let resumed = resumed.finish(&mut Scripted);
    let attempt = |log: &[crate::event::Record], from: Option<&str>| {
        let retry = Some(Retry { from: from.map(Key::parse), prompt: None });
        let (at, spec) = (log.last().expect("it began").seq, sim.spec.clone());
        let change = Change { at, spec: spec.clone(), answers: Vec::new(), retry };
        let mut attempt = Sim::resume(spec, Run::default(), Vec::new(), 0);
        attempt.feed_all(fork("first", log, &change, 0), &mut Scripted);
        let attempt = attempt.finish(&mut Scripted);
        let tool = attempt.run.known().get("round-1/a/tool-2").expect("it is known").clone();
        let is_used = attempt.log.iter().any(asked);
        (is_used, tool.fault() == Some(&Fault::Lost))
    };
    for log in [&sim.log[..cut], &resumed.log] {
        assert_eq!(attempt(log, None), (false, true));
    }
    assert_eq!(attempt(&resumed.log, Some("round-1/a/tool-2")), (true, false));
}

/// A world whose server takes its time.
struct Slow(BTreeMap<&'static str, Duration>);

impl World for Slow {
    fn answer(&mut self, spec: &Spec, run: &Run, key: &Key, entry: &Entry) -> Option<Happening> {
        let happening = Scripted.answer(spec, run, key, entry)?;
        let after = self.0.get(key.as_str()).copied().unwrap_or(happening.after);
        Some(Happening { after, ..happening })
    }
}

#[test]
fn a_server_that_is_waited_for_counts_against_the_time_of_its_turn() {
    let mut spec = team(vec![member("a", vec![text("A")])], 1);
    if let Collaboration::Broadcast(broadcast) = &mut spec.collaboration {
        broadcast.clocks.timeout = Some(Duration::from_secs(5));
    }
    let mut world = Slow([("mcp/s", Duration::from_secs(60))].into());
    let sim = Sim::start(spec.into(), 0, 0, &mut world).finish(&mut world);
    assert_eq!(sim.run.at(), Time::default() + Duration::from_secs(5));
    assert!(sim.run.ending().is_some());
}
