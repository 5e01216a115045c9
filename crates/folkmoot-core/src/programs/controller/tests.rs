use std::{collections::BTreeSet, sync::Arc};

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::*;
use crate::{
    bounds::Bounds,
    call::Usage,
    event::{Event, Record},
    known::Entry,
    log,
    replay::{self, Change, Retry, replay},
    run::Run,
    sim::{Happening, Sim, World, audit::audit, hazard::Hazards, weather::Weather},
    spec::{Collaboration, Spec},
    testing::{Scripted, agent, ids, line, spec, story},
    time::Time,
    view::{self, Status},
};

type Function = fn(&Value) -> Value;

/// A world whose controller is a function of what it is told, and whose agents are scripted.
struct Controlled(Function);

impl World for Controlled {
    fn answer(&mut self, spec: &Spec, run: &Run, key: &Key, entry: &Entry) -> Option<Happening> {
        if !matches!(entry.call, Call::Exchange { .. }) {
            return Scripted.answer(spec, run, key, entry);
        }
        let briefing = Briefing::of(spec, run.known(), key);
        let told = serde_json::from_str(&briefing.whole()).expect("it is JSON");
        let said = match (self.0)(&told) {
            Value::String(line) => line,
            said => said.to_string(),
        };
        let (after, usage) = (Duration::from_millis(10), Usage::default());
        Some(Happening { after, outcome: Controller::outcome(&said), usage })
    }
}

fn team(agents: Vec<Agent>) -> Spec {
    let names: Vec<AgentId> = agents.iter().map(|agent| agent.id.clone()).collect();
    let command = vec!["./controller".into()];
    let controller =
        Controller { command, folder: "/team".into(), agents: names, clocks: Clocks::default() };
    let mut spec = spec(agents, Collaboration::Controller(controller.clone()));
    spec.team.staff = vec![controller.staff()];
    spec.limits.calls = Some(20);
    spec
}

fn three() -> Spec {
    team(vec![agent("a", &["~100 A", "A again"]), agent("b", &["~200 B"]), agent("c", &["~300 C"])])
}

fn play(spec: Spec, controller: Function) -> Sim {
    let mut world = Controlled(controller);
    Sim::start(Arc::new(spec), 0, 0, &mut world).finish(&mut world)
}

/// Plays a team, compares its story with what is expected, and goes on with it from every record.
fn check(spec: Spec, controller: Function, expected: &Expect) -> Sim {
    let sim = play(spec, controller);
    expected.assert_eq(&story(&sim));
    assert!(replay(&sim.log).unwrap_or_else(|divergence| panic!("{divergence}")) == sim.run);
    for kept in 1..sim.log.len() {
        let (spec, run) = log::load(&sim.log[..kept]).unwrap_or_else(|it| panic!("{it}"));
        let log = sim.log[..kept].to_vec();
        let mut world = Controlled(controller);
        let mut resumed = Sim::resume(spec, run, log, 0);
        resumed.feed(Event::Resumed { wall: 0 }, &mut world);
        let resumed = resumed.finish(&mut world);
        let ending = |sim: &Sim| sim.run.ending().cloned();
        assert_eq!(ending(&resumed), ending(&sim), "from record {kept}");
    }
    sim
}

fn want(key: &str, agent: &str, prompt: &Value) -> Value {
    json!({ "key": key, "agent": agent, "prompt": prompt })
}

fn text(told: &Value, key: &str) -> Option<String> {
    Some(told["known"][key]["text"].as_str()?.to_owned())
}

/// All speak, the first two that do are quoted to `a`, and the third is not waited for.
fn first_two(told: &Value) -> Value {
    let all = ["a", "b", "c"].map(|id| (format!("round-1/{id}"), id));
    let known = all.iter().filter(|(key, _)| text(told, key).is_some());
    let known: Vec<&str> = known.map(|(key, _)| &**key).collect();
    if let Some(end) = text(told, "end") {
        return json!({ "final": end });
    }
    if known.len() >= 2 {
        let quotes = known.iter().map(|key| json!({ "quote": key }));
        let prompt = [json!({ "text": "Sum up." })].into_iter().chain(quotes).collect();
        return json!({ "want": [want("end", "a", &Value::Array(prompt))] });
    }
    let first = |(key, id): &(String, &str)| want(key, id, &json!([{ "text": told["task"] }]));
    json!({ "want": all.iter().map(first).collect::<Vec<_>>() })
}

#[test]
fn what_a_controller_no_longer_wants_is_withdrawn_and_its_answer_is_the_runs() {
    check(
        three(),
        first_two,
        &expect![[r#"
          1     0 started
          2     0 asked controller/1 exchange []
          3    10 answered controller/1: {"want":[{"key":"round-1/a","agent":"a","prompt":[{"text":"TASK"}]},{"key":"round-1/b","agent":"b","prompt":[{"text":"TASK"}]},{"key":"round-1/c","agent":"c","prompt":[{"text":"TASK"}]}]}
          4    10 asked round-1/a [say TASK…]
          5    10 asked round-1/b [say TASK…]
          6    10 asked round-1/c [say TASK…]
          7   110 answered round-1/a: A
          8   110 asked controller/2 exchange [round-1/a]
          9   120 answered controller/2: {"want":[{"key":"round-1/a","agent":"a","prompt":[{"text":"TASK"}]},{"key":"round-1/b","agent":"b","prompt":[{"text":"TASK"}]},{"key":"round-1/c","agent":"c","prompt":[{"text":"TASK"}]}]}
         10   210 answered round-1/b: B
         11   210 asked controller/3 exchange [round-1/b]
         12   220 answered controller/3: {"want":[{"key":"end","agent":"a","prompt":[{"text":"Sum up."},{"quote":"round-1/a"},{"quote":"round-1/b"}]}]}
         13   220 withdrawn round-1/c: withdrawn
         14   220 asked end [say Sum up.… · quote round-1/a · quote round-1/b]
         15   220 answered end: A again
         16   220 asked controller/4 exchange [end]
         17   230 answered controller/4: {"final":"A again"}
         18   230 ended completed
        = done completed: Some("A again")
          {"round":1,"kind":"controller","responses":{},"wants":["round-1/a","round-1/b","round-1/c"]}
          {"round":2,"kind":"controller","responses":{"round-1/a":"A"},"wants":["round-1/a","round-1/b","round-1/c"]}
          {"round":3,"kind":"controller","responses":{"round-1/b":"B"},"wants":["end"]}
          {"round":4,"kind":"controller","responses":{"end":"A again"},"wants":[]}
    "#]],
    );
}

#[test]
fn a_line_tells_all_at_first_and_then_what_is_new() {
    let sim = play(three(), first_two);
    let told = |n: u64| Briefing::of(&sim.spec, sim.run.known(), &exchange_key(n));
    expect![[r#"{"known":{},"new":[],"task":"TASK","agents":["a","b","c"],"round":1}"#]]
        .assert_eq(&told(1).whole());
    expect![[r#"{"known":{"round-1/b":{"text":"B"}},"new":["round-1/b"],"task":"TASK","agents":["a","b","c"],"round":3,"since":2}"#]].assert_eq(&told(3).news());
    expect![[r#"{"known":{"round-1/a":{"text":"A"},"round-1/b":{"text":"B"}},"new":["round-1/b"],"task":"TASK","agents":["a","b","c"],"round":3}"#]].assert_eq(&told(3).whole());
    assert!(told(3).follows(&told(2)) && !told(3).follows(&told(1)) && !told(2).follows(&told(3)));
}

/// Wants one turn of `a`, and does this once it is known.
fn after_one(told: &Value, then: Value) -> Value {
    if told["round"] == 1 {
        json!({ "want": [want("x", "a", &json!([{ "text": "do it" }]))] })
    } else {
        then
    }
}

#[track_caller]
fn refused(controller: Function) -> String {
    let sim = play(three(), controller);
    let result = view::outcome("run", &sim.spec, &sim.run, true);
    assert_eq!((result.status, result.reason.as_deref()), (Status::Failed, Some("error")));
    let [error] = &result.errors[..] else { panic!("{:?}", result.errors) };
    assert_eq!(
        (&*error.agent, error.key.as_str().starts_with("controller/")),
        ("./controller", true)
    );
    if told_one(&sim) {
        assert_eq!(result.partial.map(|it| it.text).as_deref(), Some("A"));
    }
    assert!(replay(&sim.log).is_ok());
    error.error.clone()
}

fn told_one(sim: &Sim) -> bool {
    sim.run.known().get("controller/2").is_some()
}

#[test]
fn what_a_controller_may_not_want_ends_the_run_and_names_the_key() {
    let cases: [(Function, &str); 16] = [
        (|_| "nonsense".into(), "its answer cannot be read: "),
        (|_| json!({}), "one of want, final and error"),
        (|_| json!({ "error": "I give up" }), "I give up"),
        (|it| after_one(it, json!({ "error": { "code": 7 } })), "{\"code\":7}"),
        (|_| json!({ "want": [] }), "it wants nothing that it does not know, and gives no final"),
        (|it| after_one(it, json!({ "want": [] })), "gives no final"),
        (
            |_| json!({ "want": [want("a b", "a", &json!([{ "text": "t" }]))] }),
            "key \"a b\" is no name",
        ),
        (
            |_| json!({ "want": [want("a//b", "a", &json!([{ "text": "t" }]))] }),
            "key \"a//b\" is no name",
        ),
        (
            |_| json!({ "want": [want("controller/9", "a", &json!([{ "text": "t" }]))] }),
            "key \"controller/9\" is taken",
        ),
        (
            |_| json!({ "want": [want("k", "nobody", &json!([{ "text": "t" }]))] }),
            "key \"k\" is wanted of \"nobody\", who is no agent; agents: a, b, c",
        ),
        (
            |_| json!({ "want": [want("k", "the controller", &json!([{ "text": "t" }]))] }),
            "who is no agent",
        ),
        (
            |_| json!({ "want": [want("k", "a", &json!([{ "quote": "z" }]))] }),
            "key \"k\" quotes \"z\", which is not known",
        ),
        (|_| json!({ "want": [want("k", "a", &json!([]))] }), "key \"k\" asks nothing"),
        (
            |_| {
                let one = want("k", "a", &json!([{ "text": "t" }]));
                json!({ "want": [one.clone(), one] })
            },
            "key \"k\" is wanted twice",
        ),
        (
            |it| after_one(it, json!({ "want": [want("x", "b", &json!([{ "text": "do it" }]))] })),
            "key \"x\" is wanted otherwise than before",
        ),
        (
            |it| after_one(it, json!({ "want": [want("x/y", "b", &json!([{ "text": "t" }]))] })),
            "key \"x/y\" and key \"x\" lie one in the other",
        ),
    ];
    for (controller, why) in cases {
        let error = refused(controller);
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn a_failed_turn_is_told_as_a_fault_and_cannot_be_all_of_a_prompt() {
    let controller = |told: &Value| -> Value {
        match told["known"]["x"]["fault"].as_str() {
            None => json!({ "want": [want("x", "a", &json!([{ "text": "do it" }]))] }),
            Some(fault) => json!({ "final": format!("a said: {fault}") }),
        }
    };
    let sim = play(team(vec![agent("a", &["!boom"])]), controller);
    let result = view::outcome("run", &sim.spec, &sim.run, true);
    assert_eq!(result.answer.as_deref(), Some("a said: boom"));
    let quoting =
        |it: &Value| after_one(it, json!({ "want": [want("y", "a", &json!([{ "quote": "x" }]))] }));
    let sim = play(team(vec![agent("a", &["!boom"])]), quoting);
    let result = view::outcome("run", &sim.spec, &sim.run, true);
    assert!(result.errors[1].error.contains("key \"y\" asks nothing"), "{:?}", result.errors);
}

#[test]
fn whoever_wants_without_end_comes_to_the_limit_of_calls() {
    let endless = |told: &Value| -> Value {
        let key = format!("turn-{}", told["round"]);
        json!({ "want": [want(&key, "a", &json!([{ "text": "more" }]))] })
    };
    let sim = play(team(vec![agent("a", &["A"])]), endless);
    let result = view::outcome("run", &sim.spec, &sim.run, true);
    assert_eq!((result.status, result.reason.as_deref()), (Status::BudgetExhausted, Some("calls")));
    assert_eq!(sim.run.ledger().run.calls, 20, "exchanges are calls too");
    assert!(result.partial.is_some());
}

#[test]
fn an_exchange_is_charged_to_no_budget_of_tokens_or_money() {
    let mut spec = three();
    spec.limits.tokens = Some(1);
    let sim = play(spec, first_two);
    assert_eq!(sim.run.ending().map(|ending| ending.done), Some(true));
}

#[test]
fn a_controller_that_says_nothing_in_time_ends_the_run() {
    struct Silent;
    impl World for Silent {
        fn answer(&mut self, _: &Spec, _: &Run, _: &Key, _: &Entry) -> Option<Happening> {
            None
        }
    }
    let sim = Sim::start(Arc::new(three()), 0, 0, &mut Silent).finish(&mut Silent);
    let result = view::outcome("run", &sim.spec, &sim.run, true);
    assert_eq!((result.status, result.reason.as_deref()), (Status::Failed, Some("error")));
    assert_eq!(sim.run.at(), Time(45_000_000));
    assert_eq!(result.errors[0].error, "timeout");
}

/// What was asked of agents, by key.
fn asked(log: &[Record]) -> Vec<String> {
    let asked = log.iter().filter(|record| matches!(record.event, Event::Asked { .. }));
    asked
        .map(|record| line(record).split_whitespace().nth(3).unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn a_retry_takes_over_the_exchanges_and_asks_only_what_failed() {
    let controller = |told: &Value| -> Value {
        let known = |key: &str| text(told, key);
        match (known("one"), known("two"), &told["known"]["two"]["fault"]) {
            (Some(_), Some(two), _) => json!({ "final": two }),
            (_, _, Value::String(fault)) => json!({ "error": format!("two: {fault}") }),
            _ => json!({ "want": [
                want("one", "a", &json!([{ "text": "t" }])),
                want("two", "b", &json!([{ "text": "t" }])),
            ] }),
        }
    };
    // What is told of the two comes in another order than they are wanted in.
    let agents = vec![agent("a", &["~500 A"]), agent("b", &["!boom", "B"])];
    let sim = play(team(agents), controller);
    assert_eq!(view::outcome("run", &sim.spec, &sim.run, true).errors.len(), 2);
    let change = Change {
        at: sim.run.seq(),
        spec: sim.spec.clone(),
        answers: Vec::new(),
        retry: Some(Retry::default()),
    };
    let events = replay::fork("run", &sim.log, &change, 0);
    let mut world = Controlled(controller);
    let mut again = Sim::resume(sim.spec.clone(), Run::default(), Vec::new(), 0);
    again.feed_all(events, &mut world);
    let again = again.finish(&mut world);
    assert_eq!(view::outcome("run", &again.spec, &again.run, true).answer.as_deref(), Some("B"));
    assert_eq!(asked(&again.log), ["one", "two", "controller/2", "controller/3"]);
}

#[test]
fn a_fork_with_nothing_changed_asks_nothing_again() {
    let sim = play(three(), |told: &Value| {
        let (end, a, b) = (text(told, "end"), text(told, "a"), text(told, "b"));
        match (end, a, b) {
            (Some(end), ..) => json!({ "final": end }),
            (None, Some(_), Some(_)) => {
                let prompt = json!([{ "quote": "b" }, { "quote": "a" }]);
                json!({ "want": [want("end", "c", &prompt)] })
            }
            _ => json!({ "want": [
                want("b", "b", &json!([{ "text": "t" }])),
                want("a", "a", &json!([{ "text": "t" }])),
            ] }),
        }
    });
    let (at, spec) = (sim.run.seq(), sim.spec.clone());
    let change = Change { at, spec: spec.clone(), answers: Vec::new(), retry: None };
    let events = replay::fork("run", &sim.log, &change, 0);
    let mut fork = Sim::resume(spec, Run::default(), Vec::new(), 0);
    fork.feed_all(events, &mut Controlled(|_| panic!("nobody asks it")));
    assert_eq!(fork.run.ending(), sim.run.ending());
}

#[test]
fn an_amended_answer_is_told_anew_and_what_follows_is_asked_again() {
    let sim = play(three(), first_two);
    let mut world = Controlled(first_two);
    let key = Key::parse("round-1/a");
    let events = sim.run.amendment(&sim.spec, &key, "other".into());
    let mut amended = Sim::resume(sim.spec.clone(), sim.run.clone(), sim.log.clone(), 0);
    amended.feed_all(events, &mut world);
    let amended = amended.finish(&mut world);
    assert_eq!(amended.run.ending().map(|ending| ending.done), Some(true));
    let told = Briefing::of(&amended.spec, amended.run.known(), &exchange_key(3)).whole();
    assert!(told.contains(r#""round-1/a":{"text":"other"}"#), "{told}");
    assert!(asked(&amended.log[sim.log.len()..]).contains(&"controller/2".to_owned()));
    assert!(!asked(&amended.log[sim.log.len()..]).contains(&"controller/1".to_owned()));
    assert!(replay(&amended.log).is_ok());
}

#[test]
fn a_turn_with_tools_is_told_under_the_key_it_was_wanted_by() {
    use crate::team::{Says, ScriptedReply};
    let calls =
        vec![crate::call::ToolCall { id: "1".into(), name: "f.x".into(), arguments: json!({}) }];
    let tools =
        ScriptedReply { says: Says::Tools { calls, text: "".into() }, ..ScriptedReply::text("") };
    let script = Script { replies: vec![tools, ScriptedReply::text("used")], ..Script::default() };
    let one = Agent { grants: vec!["f".into()], ..Agent::new("a", Target::Script(script)) };
    let sim = check(
        team(vec![one, agent("b", &["fine"])]),
        |told: &Value| match (text(told, "x"), text(told, "y")) {
            (_, Some(_)) => json!({ "final": told["known"] }),
            (Some(_), None) => json!({ "want": [want("y", "b", &json!([{ "quote": "x" }]))] }),
            _ => json!({ "want": [want("x", "a", &json!([{ "text": "t" }]))] }),
        },
        &expect![[r#"
              1     0 started
              2     0 asked controller/1 exchange []
              3    10 answered controller/1: {"want":[{"key":"x","agent":"a","prompt":[{"text":"t"}]}]}
              4    10 asked x/model-1 [say t…]
              5    10 answered x/model-1: 
              6    10 asked x/tool-1 tool
              7    10 answered x/tool-1: {}
              8    10 asked x/model-2 [after x/model-1 · result x/tool-1]
              9    10 answered x/model-2: used
             10    10 asked controller/2 exchange [x]
             11    20 answered controller/2: {"want":[{"key":"y","agent":"b","prompt":[{"quote":"x"}]}]}
             12    20 asked y [quote x/model-2]
             13    20 answered y: fine
             14    20 asked controller/3 exchange [y]
             15    30 answered controller/3: {"final":{"x":{"text":"used"},"y":{"text":"fine"}}}
             16    30 ended completed
            = done completed: Some("{\"x\":{\"text\":\"used\"},\"y\":{\"text\":\"fine\"}}")
              {"round":1,"kind":"controller","responses":{},"wants":["x"]}
              {"round":2,"kind":"controller","responses":{"x":"used"},"wants":["y"]}
              {"round":3,"kind":"controller","responses":{"y":"fine"},"wants":[]}
        "#]],
    );
    assert!(sim.run.known().get("x/model-2").is_some());
}

#[test]
fn a_log_that_was_made_by_hand_tells_what_it_holds_and_no_more() {
    let sim = play(three(), first_two);
    let known = sim.run.known();
    for key in ["controller/99", "controller", "controller/0", "end", "x"] {
        let line = Briefing::of(&sim.spec, known, &Key::parse(key)).whole();
        assert!(line.contains(r#""known":{}"#), "{key}: {line}");
    }
    assert_eq!(ids(&["a", "b", "c"]).len(), 3);
}

#[test]
fn where_one_call_at_a_time_is_allowed_the_controller_is_asked_before_the_next_agent() {
    let mut spec = three();
    spec.limits.concurrency = Some(1);
    let sim = play(spec, first_two);
    let asked: Vec<String> = asked(&sim.log);
    assert_eq!(asked[..4], ["controller/1", "round-1/a", "controller/2", "round-1/b"]);
    assert_eq!(sim.run.ending().map(|ending| ending.done), Some(true));
}

#[test]
fn whatever_goes_wrong_every_rule_of_a_run_is_kept_and_its_bounds_hold() {
    let spec = Arc::new(three());
    let bounds = Bounds::of(&spec.collaboration, &spec.team, &spec.limits, Some(&spec.task));
    let mut reasons = BTreeSet::new();
    for seed in 0..300 {
        let weather = Weather::new(Controlled(first_two), seed, Hazards::all());
        let sim = weather.live(spec.clone(), 0);
        audit(&sim, &bounds).unwrap_or_else(|broken| panic!("seed {seed}: {broken}"));
        let replayed = replay(&sim.log).unwrap_or_else(|it| panic!("seed {seed}: {it}"));
        assert!(replayed == sim.run, "seed {seed}");
        reasons.extend(sim.run.ending().map(|ending| ending.reason.to_string()));
    }
    assert_eq!(reasons.into_iter().collect::<Vec<_>>(), ["completed", "error"]);
}
