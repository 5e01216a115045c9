use std::sync::Arc;

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::*;
use crate::{
    call::{Call, FailureKind, Tokens, ToolCall},
    event::Event,
    limits::Limits,
    render,
    sim::Sim,
    spec::{Collaboration, Spec},
    team::{ECONOMY, Fallback, Says, Script, ScriptedReply, Target},
    testing::{Scripted, agent, check, play, spec},
    view,
};

/// A role team on a complex task: the reviewer says these replies, everybody else that it did its part.
fn team(reviews: &[&str]) -> Spec {
    let agents = Role::ALL.map(|role| match role {
        Role::Reviewer => agent(role.name(), reviews),
        _ => agent(role.name(), &[&format!("{} did its part", role.name())]),
    });
    let weighing = Weighing { complexity: Some(9), ..Weighing::default() };
    spec(agents.to_vec(), Collaboration::Roles(Roles { weighing, ..Roles::usual() }))
}

fn roles(spec: &mut Spec) -> &mut Roles {
    let Collaboration::Roles(roles) = &mut spec.collaboration else { panic!("it is one") };
    roles
}

/// The same where a role says these things.
fn saying(mut spec: Spec, role: Role, replies: impl IntoIterator<Item = ScriptedReply>) -> Spec {
    let replies = replies.into_iter().collect();
    let script = Script { replies, label: Some("premium".into()), ..Script::default() };
    let agents = spec.team.agents.iter_mut();
    agents
        .filter(|it| it.id == role.agent())
        .for_each(|it| it.target = Target::Script(script.clone()));
    spec
}

fn text(text: &str) -> ScriptedReply {
    ScriptedReply::text(text)
}

fn object(value: Value) -> ScriptedReply {
    ScriptedReply { says: Says::Json(value), ..text("") }
}

fn using(reply: ScriptedReply, tokens: u64) -> ScriptedReply {
    ScriptedReply { usage: Tokens { input: tokens, ..Tokens::default() }, ..reply }
}

fn wants(tool: &str, arguments: Value) -> ScriptedReply {
    let call = ToolCall { id: tool.into(), name: tool.into(), arguments };
    ScriptedReply { says: Says::Tools { calls: vec![call], text: "step text".into() }, ..text("") }
}

fn failing() -> ScriptedReply {
    ScriptedReply {
        says: Says::Error { text: "boom".into(), kind: FailureKind::Harness },
        ..text("")
    }
}

fn record(sim: &Sim) -> Value {
    json!(view::outcome("r1", &sim.spec, &sim.run, true))
}

/// The roles of the turns of a record, and how it ended.
fn course(record: &Value) -> String {
    let turns = record["turns"].as_array().expect("it has turns").iter();
    let roles: Vec<&str> = turns.map(|turn| turn["role"].as_str().expect("a name")).collect();
    let word = |key: &str| record[key].as_str().unwrap_or("-").to_owned();
    format!("{}: {} {} ({})", roles.join(" "), word("state"), word("status"), word("reason"))
}

/// What the last request to a role held.
fn prompt_of(sim: &Sim, role: Role) -> String {
    let calls = sim.run.known().in_order();
    let of_role = |call: &Call| matches!(call, Call::Agent { agent, .. } if *agent == role.agent());
    let (_, entry) = calls.iter().rfind(|(_, it)| of_role(&it.call)).expect("it was asked");
    let Call::Agent { prompt, .. } = &entry.call else { panic!("it is one") };
    let agent = sim.spec.team.agent(&role.agent());
    let messages = render::messages(&sim.spec, sim.run.known(), agent, prompt);
    messages.iter().map(|it| &*it.content).collect::<Vec<_>>().join("\n\n")
}

#[track_caller]
fn goes(spec: Spec, expected: &str) -> Value {
    let record = record(&play(spec));
    assert_eq!(course(&record), expected);
    record
}

#[test]
fn the_roles_speak_in_turn_each_told_what_was_handed_on() {
    check(
        team(&["PASS"]),
        expect![[r#"
          1     0 started
          2     0 asked explorer [task · say When you are done, end w…]
          3     0 answered explorer: explorer did its part
          4     0 asked planner [task · memory explorer · say When you are done, end w…]
          5     0 answered planner: planner did its part
          6     0 asked coder [task · memory explorer planner · say When you are done, end w…]
          7     0 answered coder: coder did its part
          8     0 asked reviewer [task · memory explorer planner coder · say When you are done, reply…]
          9     0 answered reviewer: PASS
         10     0 ended review_passed
        = done review_passed: Some("coder did its part")
          {"round":1,"kind":"roles","responses":{"explorer":"explorer did its part","planner":"planner did its part","coder":"coder did its part","reviewer":"PASS"}}
    "#]],
    );
}

#[test]
fn a_review_with_issues_leads_to_one_rework_and_the_coder_gets_the_findings() {
    check(
        team(&[
            "{\"verdict\": \"ISSUES\", \"findings\": [{\"severity\": \"blocking\", \"text\": \"x\"}]}",
            "PASS",
        ]),
        expect![[r#"
              1     0 started
              2     0 asked explorer [task · say When you are done, end w…]
              3     0 answered explorer: explorer did its part
              4     0 asked planner [task · memory explorer · say When you are done, end w…]
              5     0 answered planner: planner did its part
              6     0 asked coder [task · memory explorer planner · say When you are done, end w…]
              7     0 answered coder: coder did its part
              8     0 asked reviewer [task · memory explorer planner coder · say When you are done, reply…]
              9     0 answered reviewer: {"verdict":"ISSUES","findings":[{"severity":"blocking","text":"x"}]}
             10     0 asked rework/coder [task · memory explorer planner coder reviewer · findings reviewer · say When you are done, end w…]
             11     0 answered rework/coder: coder did its part
             12     0 asked rework/reviewer [task · memory explorer planner coder reviewer rework/coder · say When you are done, reply…]
             13     0 answered rework/reviewer: PASS
             14     0 ended review_passed
            = done review_passed: Some("coder did its part")
              {"round":1,"kind":"roles","responses":{"explorer":"explorer did its part","planner":"planner did its part","coder":"coder did its part","reviewer":{"verdict":"ISSUES","findings":[{"severity":"blocking","text":"x"}]}}}
              {"round":2,"kind":"roles","responses":{"coder":"coder did its part","reviewer":"PASS"}}
        "#]],
    );
}

#[test]
fn a_simple_task_is_one_agents_alone() {
    let mut simple = team(&["PASS"]);
    roles(&mut simple).weighing.complexity = Some(1);
    check(
        simple,
        expect![[r#"
          1     0 started
          2     0 asked general [task]
          3     0 answered general: general did its part
          4     0 ended answered
        = done answered: Some("general did its part")
          {"round":1,"kind":"roles","responses":{"general":"general did its part"}}
    "#]],
    );
}

#[test]
fn there_is_no_second_rework_and_the_findings_stay_open() {
    let record = goes(
        team(&["ISSUES: all wrong", "ISSUES: still wrong"]),
        "explorer planner coder reviewer coder reviewer: DONE_WITH_FINDINGS bound_reached (findings_remain)",
    );
    assert_eq!(record["unresolved"], json!([{ "text": "ISSUES: still wrong" }]));
    assert_eq!((&record["rework"], &record["final"]), (&json!(1), &json!("coder did its part")));
    let rounds: Vec<&Value> =
        record["turns"].as_array().expect("turns").iter().map(|it| &it["round"]).collect();
    assert_eq!(json!(rounds), json!([1, 1, 1, 1, 2, 2]));
}

#[test]
fn an_unreadable_review_is_asked_for_once_more_in_the_same_turn_and_then_counts_as_issues() {
    let record = goes(
        team(&["hm", "hm", "PASS"]),
        "explorer planner coder reviewer coder reviewer: DONE done (review_passed)",
    );
    assert_eq!(record["unresolved"], json!([]));
    goes(team(&["hm", "PASS"]), "explorer planner coder reviewer: DONE done (review_passed)");
    goes(
        team(&["hm"]),
        "explorer planner coder reviewer coder reviewer: DONE_WITH_FINDINGS bound_reached (findings_remain)",
    );
    let failed_repair = saying(team(&[]), Role::Reviewer, [text("hm"), failing(), text("PASS")]);
    goes(
        failed_repair,
        "explorer planner coder reviewer coder reviewer: DONE done (review_passed)",
    );
}

#[test]
fn a_role_that_fails_ends_the_work_and_what_exists_is_kept() {
    let record = goes(
        saying(team(&["PASS"]), Role::Planner, [failing()]),
        "explorer planner: FAILED failed (role_failed)",
    );
    assert_eq!(record["failed_role"], "planner");
    assert_eq!(record["phases"], json!(["exploration_complete"]));
    assert_eq!(record["partial"]["text"], "explorer did its part");
    assert_eq!(record["turns"][1]["error"], "boom");
    let blank = saying(team(&["PASS"]), Role::Coder, [text("  ")]);
    let record = goes(blank, "explorer planner coder: FAILED failed (role_failed)");
    assert_eq!(record["failed_role"], "coder");
}

#[test]
fn a_record_of_a_turn_tells_who_was_asked_and_what_came() {
    let record = goes(
        saying(team(&["PASS"]), Role::Explorer, [using(text("found"), 7)]),
        "explorer planner coder reviewer: DONE done (review_passed)",
    );
    assert_eq!(
        record["turns"][0].to_string(),
        r#"{"turn":1,"round":1,"stage":1,"role":"explorer","agent":"parent_explorer","model":"premium","served_by":"premium","sandbox":"read-only","output":"found","usage":{"prompt_tokens":7,"completion_tokens":0,"total_tokens":7},"elapsed_s":0.0}"#
    );
    let fields = [
        "state",
        "path",
        "turns",
        "phases",
        "rework",
        "failed_role",
        "complexity",
        "memory",
        "budget",
        "unresolved",
    ];
    assert!(fields.iter().all(|field| record.get(field).is_some()));
}

#[test]
fn a_role_is_told_the_summary_of_the_one_before_and_never_its_steps() {
    let mut team = team(&["PASS"]);
    team.team.agents[0].grants = vec!["file.read".into()];
    let handed = json!({
        "summary": "SUM", "artifacts": ["a.rs", "b.rs"], "decisions": ["use a"], "errors": [],
        "secret": "the rest",
    });
    let team = saying(
        team,
        Role::Explorer,
        [wants("file.read", json!({ "path": "steps.txt" })), object(handed)],
    );
    let sim = play(team);
    let planner = prompt_of(&sim, Role::Planner);
    for handed in ["TASK", "SUM", "a.rs", "b.rs", "use a", "explorer"] {
        assert!(planner.contains(handed), "{handed} is missing in {planner}");
    }
    for kept in ["step text", "steps.txt", "the rest", "file.read"] {
        assert!(!planner.contains(kept), "{kept} is in {planner}");
    }
}

#[test]
fn the_memory_has_four_fields_its_summary_is_the_last_and_its_lists_only_grow() {
    let hands = |summary: &str, artifact: &str| {
        object(
            json!({ "summary": summary, "artifacts": [artifact], "decisions": [], "errors": [] }),
        )
    };
    let team = saying(team(&["PASS"]), Role::Explorer, [hands("one", "a.rs")]);
    let sim = play(saying(team, Role::Planner, [hands("two", "b.rs")]));
    let coder = prompt_of(&sim, Role::Coder);
    let memory = r#"{"parent_session_summary":"two","artifacts":[{"role":"explorer","text":"a.rs"},{"role":"planner","text":"b.rs"}],"decisions":[],"errors":[]}"#;
    assert!(coder.contains(memory), "{coder}");
    let told = record(&sim);
    assert_eq!(told["memory"]["parent_session_summary"], "PASS", "the last to speak");
    let fields: Vec<&String> = told["memory"].as_object().expect("a map").keys().collect();
    assert_eq!(fields, ["parent_session_summary", "artifacts", "decisions", "errors"]);
}

#[test]
fn a_reader_cannot_change_the_memory() {
    let writes = json!({
        "summary": "plan", "artifacts": [], "parent_session_summary": "forged",
    });
    let explores = json!({ "summary": "s", "artifacts": ["a.rs"] });
    let team = saying(team(&["PASS"]), Role::Explorer, [object(explores)]);
    let sim = play(saying(team, Role::Planner, [object(writes)]));
    let told = record(&sim);
    assert_eq!(told["warnings"][0]["code"], "read_only");
    assert_eq!(told["memory"]["artifacts"], json!([{ "role": "explorer", "text": "a.rs" }]));
    assert!(!prompt_of(&sim, Role::Coder).contains("forged"));
}

#[test]
fn a_missing_hand_off_is_taken_by_rules_from_the_reply_and_the_tool_calls() {
    let mut team = team(&["PASS"]);
    team.team.agents[2].grants = vec!["file".into()];
    let writes = |path: &str| wants("file.write", json!({ "path": path, "content": "…" }));
    let steps = [
        writes("a.rs"),
        writes("a.rs"),
        wants("shell", json!({ "command": "ls" })),
        text("All done"),
    ];
    let sim = play(saying(team, Role::Coder, steps));
    let reviewer = prompt_of(&sim, Role::Reviewer);
    assert!(reviewer.contains(r#""parent_session_summary":"All done""#), "{reviewer}");
    assert!(reviewer.contains(r#""artifacts":[{"role":"coder","text":"a.rs"}]"#), "{reviewer}");
    assert!(
        reviewer.contains(r#""errors":[{"role":"coder","text":"shell: denied: shell"}]"#),
        "{reviewer}"
    );
    assert_eq!(record(&sim)["meta"]["usage"]["calls"], 3 + 1 + 2 + 3, "no call is made for it");
}

#[test]
fn a_hand_off_of_the_wrong_shape_is_taken_by_rules() {
    let wrong = json!({ "summary": "s", "artifacts": "a.rs" });
    let sim = play(saying(team(&["PASS"]), Role::Explorer, [object(wrong.clone())]));
    let planner = prompt_of(&sim, Role::Planner);
    let summary = json!(wrong.to_string()).to_string();
    assert!(planner.contains(&format!(r#""parent_session_summary":{summary}"#)), "{planner}");
}

#[test]
fn a_hand_off_has_at_most_two_thousand_tokens() {
    for word in ["long ", "道", "\u{1}\"", "<reply "] {
        let long = json!({
            "summary": word.repeat(9000),
            "artifacts": vec![word.repeat(900); 300],
            "decisions": vec!["道道道道道道".repeat(100); 60],
        });
        let sim = play(saying(team(&["PASS"]), Role::Explorer, [object(long)]));
        let (hand_off, _) = handoff::HandOff::of(
            sim.run.known(),
            &crate::key::Key::parse("explorer"),
            crate::words::Language::English,
        );
        assert!(hand_off.size() <= handoff::MOST_TOKENS, "{word}: {}", hand_off.size());
        let prompt = prompt_of(&sim, Role::Planner);
        assert!(prompt.len() as u64 <= 2 * handoff::MOST_BYTES, "{word}: {}", prompt.len());
    }
}

#[test]
fn at_its_step_limit_a_role_hands_off_in_one_last_call_without_tools() {
    let mut team = team(&["PASS"]);
    (team.team.agents[0].grants, team.team.agents[0].max_steps) = (vec!["file".into()], 2);
    let look = || wants("file.read", json!({ "path": "x" }));
    let sim = play(saying(team, Role::Explorer, [look(), look(), text("so far")]));
    let known = sim.run.known();
    let last = known.get("explorer/model-3").expect("it was asked once more");
    assert!(matches!(&last.call, Call::Agent { prompt, .. } if prompt.without_tools));
    assert!(known.get("explorer/tool-2").is_none(), "its wish is not granted");
    let told = record(&sim);
    assert_eq!(course(&told), "explorer planner coder reviewer: DONE done (review_passed)");
    assert_eq!(
        (&told["turns"][0]["incomplete"], &told["turns"][0]["output"]),
        (&json!(true), &json!("so far"))
    );
    assert_eq!(told["turns"][1].get("incomplete"), None);
}

#[test]
fn a_roles_own_tokens_are_soft_and_it_hands_off_early() {
    let mut team = team(&["PASS"]);
    team.team.agents[0].grants = vec!["file".into()];
    roles(&mut team).hand_off_at.insert("explorer".into(), 10);
    let look = |tokens| using(wants("file.read", json!({ "path": "x" })), tokens);
    let sim = play(saying(team, Role::Explorer, [look(9), look(1), using(text("so far"), 50)]));
    let told = record(&sim);
    assert_eq!(course(&told), "explorer planner coder reviewer: DONE done (review_passed)");
    assert_eq!(told["turns"][0]["incomplete"], true);
    assert_eq!(told["turns"][0]["usage"]["total_tokens"], 60);
}

/// The same under a budget of this many times these tokens.
fn budgeted(mut spec: Spec, single: u64, multiplier: &str) -> Spec {
    let multiplier = Decimal::parse(multiplier).expect("a decimal number");
    roles(&mut spec).budget = Some(Budget { single, multiplier });
    spec
}

/// A team whose roles, in their order, use so many tokens, and may be answered by an economy model.
fn consuming(total: (u64, &str), uses: &[u64]) -> Spec {
    let mut spec = budgeted(team(&["PASS"]), total.0, total.1);
    let tokens = uses.iter().copied().chain([0; 4]);
    for (role, tokens) in Role::ALL.into_iter().zip(tokens).take(4) {
        let says = if role == Role::Reviewer { "PASS" } else { "done" };
        spec = saying(spec, role, [using(text(says), tokens)]);
    }
    for agent in &mut spec.team.agents {
        let Target::Script(script) = &agent.target else { continue };
        let target = Target::Script(Script { label: Some("economy".into()), ..script.clone() });
        agent.economy = vec![Fallback { number: ECONOMY, target }];
    }
    spec
}

fn models(record: &Value) -> Vec<&str> {
    let turns = record["turns"].as_array().expect("it has turns").iter();
    turns.map(|turn| turn["model"].as_str().unwrap_or("-")).collect()
}

#[test]
fn a_budget_is_exact_and_told_turn_by_turn() {
    let record = record(&play(consuming((10, "1.1"), &[5, 6])));
    assert_eq!(
        record["budget"].to_string(),
        r#"{"single":10,"multiplier":1.1,"total":11,"used":11,"remaining":0,"consumed":[{"turn":1,"role":"explorer","tokens":5,"inside":true},{"turn":2,"role":"planner","tokens":6,"inside":true}]}"#
    );
    assert_eq!(
        course(&record),
        "explorer planner: BUDGET_EXCEEDED budget_exhausted (budget_exceeded)"
    );
    assert_eq!(super::tests::record(&play(team(&["PASS"])))["budget"], Value::Null);
}

#[test]
fn a_turn_that_ends_outside_keeps_its_result_and_its_phase_and_nothing_further_starts() {
    let record = goes(
        consuming((100, "1.5"), &[151]),
        "explorer: BUDGET_EXCEEDED budget_exhausted (budget_exceeded)",
    );
    assert_eq!(record["turns"][0]["output"], "done");
    assert_eq!(record["phases"], json!(["exploration_complete"]));
    assert_eq!(record["budget"]["consumed"][0]["inside"], false);
    assert_eq!(record["partial"]["text"], "done");
    let at_the_end = consuming((100, "1.5"), &[50, 50, 50, 1]);
    goes(at_the_end, "explorer planner coder: BUDGET_EXCEEDED budget_exhausted (budget_exceeded)");
    let last = consuming((100, "1.5"), &[50, 50, 49, 9]);
    let record = goes(
        last,
        "explorer planner coder reviewer: BUDGET_EXCEEDED budget_exhausted (budget_exceeded)",
    );
    assert_eq!(record["phases"].as_array().map(Vec::len), Some(4));
    let exactly = consuming((100, "1.5"), &[50, 50, 49, 1]);
    goes(exactly, "explorer planner coder reviewer: DONE done (review_passed)");
    goes(consuming((0, "1.5"), &[]), ": BUDGET_EXCEEDED budget_exhausted (budget_exceeded)");
}

#[test]
fn a_review_that_cannot_be_read_is_kept_where_no_budget_is_left_to_ask_for_it_again() {
    let reviewed = |tokens| {
        let said = [using(text("hm"), tokens), text("PASS")];
        saying(consuming((100, "1.5"), &[]), Role::Reviewer, said)
    };
    let kept = |spec| {
        let record = goes(
            spec,
            "explorer planner coder reviewer: BUDGET_EXCEEDED budget_exhausted (budget_exceeded)",
        );
        assert_eq!(record["turns"][3]["output"], "hm");
        assert_eq!(record["phases"][3], "review_complete");
        record["budget"]["consumed"][3]["inside"] == true
    };
    assert_eq!([150, 151].map(|tokens| kept(reviewed(tokens))), [true, false]);
    let mut limited = reviewed(10);
    limited.limits = Limits { calls: Some(4), ..Limits::default() };
    assert!(kept(limited), "whichever budget it is");
}

#[test]
fn rework_pays_from_the_same_budget() {
    let spec = consuming((100, "1"), &[25, 25, 25]);
    let issues = ["ISSUES: x", "PASS"].map(|it| using(text(it), 5));
    goes(
        saying(spec, Role::Reviewer, issues),
        "explorer planner coder reviewer coder: BUDGET_EXCEEDED budget_exhausted (budget_exceeded)",
    );
}

#[test]
fn a_rework_that_nothing_is_left_for_never_began() {
    let reviewed = |tokens| {
        let said = [using(text("ISSUES: x"), tokens), text("PASS")];
        saying(consuming((100, "1.5"), &[]), Role::Reviewer, said)
    };
    let begun = |spec| {
        let sim = play(spec);
        let told = record(&sim);
        let is_told = notices(&sim).iter().any(|notice| notice.kind == "rework_started");
        let turns = told["turns"].as_array().map_or(0, Vec::len);
        (told["rework"].clone(), is_told, turns, told["unresolved"].as_array().map_or(0, Vec::len))
    };
    assert_eq!(begun(reviewed(150)), (json!(0), false, 4, 1));
    assert_eq!(begun(reviewed(149)), (json!(1), true, 6, 0));
    let mut limited = reviewed(0);
    limited.limits = Limits { calls: Some(4), ..Limits::default() };
    assert_eq!(begun(limited), (json!(0), false, 4, 1), "what is refused never began");
}

#[test]
fn tool_calls_of_a_turn_are_refused_once_nothing_is_left() {
    let mut spec = consuming((100, "1"), &[]);
    spec.team.agents[0].grants = vec!["file".into()];
    let look = || using(wants("file.read", json!({ "path": "x" })), 60);
    let spec = saying(spec, Role::Explorer, [look(), look(), text("never said")]);
    let sim = play(spec);
    let told = record(&sim);
    assert_eq!(course(&told), "explorer: BUDGET_EXCEEDED budget_exhausted (budget_exceeded)");
    assert_eq!(told["budget"]["used"], 120, "one call passes the total, none follows it");
    assert_eq!(told["phases"], json!([]));
}

#[test]
fn a_call_sets_aside_what_it_may_take_and_only_a_rest_of_nothing_refuses() {
    let sim = play(consuming((100, "1"), &[99, 500]));
    let aside = |event: &Event| match event {
        Event::Asked { reserved, scopes, .. } => {
            Some((reserved.map(|it| it.tokens.total()), scopes.len()))
        }
        _ => None,
    };
    let asked: Vec<_> = sim.log.iter().filter_map(|it| aside(&it.event)).collect();
    assert_eq!(asked, [(Some(99), 1), (Some(500), 1)], "the planner starts with a rest of 1");
}

#[test]
fn below_a_fifth_the_economy_model_answers_and_at_a_fifth_the_preferred_one() {
    let told = record(&play(consuming((100_000, "1.5"), &[60_000, 60_000])));
    assert_eq!(models(&told), ["premium"; 4]);
    let told = record(&play(consuming((100_000, "1.5"), &[60_000, 60_001])));
    assert_eq!(models(&told), ["premium", "premium", "economy", "economy"]);
    assert_eq!(told["warnings"], json!([]));
}

#[test]
fn the_economy_model_is_looked_for_before_every_call_of_a_turn() {
    let mut spec = consuming((100, "1"), &[]);
    let look = || using(wants("file.read", json!({ "path": "x" })), 81);
    spec = saying(spec, Role::Explorer, [look(), text("found")]);
    let target = Target::Script(Script {
        replies: vec![look(), text("found")],
        label: Some("economy".into()),
        ..Script::default()
    });
    spec.team.agents[0].grants = vec!["file".into()];
    spec.team.agents[0].economy = vec![Fallback { number: ECONOMY, target }];
    let told = record(&play(spec));
    assert_eq!(models(&told), ["premium", "economy", "economy", "economy"], "its first call's");
    assert_eq!(told["turns"][0]["served_by"], "economy");
}

#[test]
fn without_an_economy_model_there_is_a_warning_and_nothing_changes() {
    let mut spec = consuming((100, "1"), &[90]);
    spec.team.agents.iter_mut().for_each(|agent| agent.economy.clear());
    let told = record(&play(spec));
    assert_eq!(models(&told), ["premium"; 4]);
    assert_eq!(told["warnings"][0]["code"], "no_economy_model");
}

#[test]
fn the_runs_own_limits_stay_hard() {
    let mut spec = consuming((100_000, "1"), &[60, 60]);
    spec.limits = Limits { tokens: Some(100), ..Limits::default() };
    let told = goes(spec, "explorer: BUDGET_EXCEEDED budget_exhausted (budget_exceeded)");
    assert_eq!(told["budget"]["used"], 60);
}

#[test]
fn a_cancelled_team_says_only_that_on_its_public_stream() {
    let mut world = Scripted;
    let mut sim = Sim::start(Arc::new(team(&["PASS"])), 0, 0, &mut world);
    sim.advance(&mut world);
    sim.feed(Event::CancelRequested, &mut world);
    let sim = sim.finish(&mut world);
    let told = record(&sim);
    assert_eq!((&told["state"], &told["status"]), (&json!("CANCELLED"), &json!("cancelled")));
    let kinds: Vec<&str> = notices(&sim).iter().map(|notice| notice.kind).collect();
    assert_eq!(kinds, ["task_phase_change", "pipeline_cancelled"]);
}

fn notices(sim: &Sim) -> Vec<crate::scope::Notice> {
    sim.run.account(sim.spec.program(), &sim.spec).notices
}

#[test]
fn the_public_stream_sees_phases_and_nothing_of_what_happens_in_them() {
    let mut spec = team(&["ISSUES: x", "PASS"]);
    roles(&mut spec).parent = "s1".into();
    spec.team.agents[0].grants = vec!["file".into()];
    let look = wants("file.read", json!({ "path": "x" }));
    let sim = play(saying(spec, Role::Explorer, [look, using(text("found"), 9)]));
    let lines: Vec<String> = (notices(&sim).into_iter())
        .map(|it| format!("{} {} {}", it.seq, it.kind, Value::Object(it.fields)))
        .collect();
    let expected: Expect = expect![[r#"
        7 task_phase_change {"session_id":"s1","phase":"exploration_complete","role":"explorer","tokens":9,"duration_ms":0}
        9 task_phase_change {"session_id":"s1","phase":"planning_complete","role":"planner","tokens":0,"duration_ms":0}
        11 task_phase_change {"session_id":"s1","phase":"coding_complete","role":"coder","tokens":0,"duration_ms":0}
        13 task_phase_change {"session_id":"s1","phase":"review_complete","role":"reviewer","tokens":0,"duration_ms":0}
        14 rework_started {"session_id":"s1"}
        15 task_phase_change {"session_id":"s1","phase":"coding_complete","role":"coder","tokens":0,"duration_ms":0}
        17 task_phase_change {"session_id":"s1","phase":"review_complete","role":"reviewer","tokens":0,"duration_ms":0}
        17 pipeline_complete {"session_id":"s1"}"#]];
    expected.assert_eq(&lines.join("\n"));
}

#[test]
fn a_role_agents_label_is_made_of_whom_it_works_for_and_its_role() {
    let roles = Roles { parent: "s1".into(), ..Roles::usual() };
    assert_eq!(roles.label(Role::Explorer), "s1_explorer");
}

#[test]
fn a_role_text_is_composed_at_call_time_and_general_has_none() {
    let sim = play(team(&["PASS"]));
    let system = prompt_of(&sim, Role::Reviewer);
    assert!(system.starts_with("Your role is reviewer"), "{system}");
    assert_eq!(Role::General.brief(crate::words::Language::English), None);
}

#[test]
fn what_a_role_may_not_use_is_denied_however_often_it_fails() {
    let mut spec = team(&["PASS"]);
    spec.team.agents[0].grants = Role::Explorer.grants().iter().map(|it| (*it).into()).collect();
    let tries = (0..5).map(|_| wants("shell", json!({ "command": "ls" }))).chain([text("found")]);
    let sim = play(saying(spec, Role::Explorer, tries));
    let refused = sim.log.iter().filter(|it| matches!(it.event, Event::Refused { .. })).count();
    assert_eq!(refused, 5);
    let told = record(&sim);
    assert_eq!(told["meta"]["usage"]["calls"], 6 + 3, "each counts as a step, none is carried out");
}

#[test]
fn no_other_role_sees_what_a_role_did_on_its_way() {
    let mut spec = team(&["PASS"]);
    spec.team.agents[0].grants = vec!["file".into()];
    let look = wants("file.read", json!({ "path": "only-the-explorer-saw-this" }));
    let sim = play(saying(spec, Role::Explorer, [look, text("found")]));
    for role in [Role::Planner, Role::Coder, Role::Reviewer] {
        assert!(!prompt_of(&sim, role).contains("only-the-explorer-saw-this"));
    }
}

#[test]
fn an_amended_hand_off_is_told_anew_to_whoever_was_told_it() {
    let mut world = Scripted;
    let mut sim = play(team(&["PASS"]));
    let made: Vec<String> =
        (sim.run.known().made_from(&crate::key::Key::parse("explorer")).into_iter())
            .map(ToString::to_string)
            .collect();
    assert_eq!(made, ["planner", "coder", "reviewer"], "the memory names its sources");
    sim.feed(
        Event::Amended { key: crate::key::Key::parse("explorer"), text: "another finding".into() },
        &mut world,
    );
    let sim = sim.finish(&mut world);
    assert!(prompt_of(&sim, Role::Planner).contains("another finding"));
}

#[test]
fn a_role_that_asks_suspends_the_run_and_speaks_again_once_a_person_has_answered() {
    let asks = json!({ "verdict": "needs_input", "question": "Which database?" });
    let mut spec = saying(team(&["PASS"]), Role::Planner, [object(asks), text("the plan")]);
    roles(&mut spec).parent = "s1".into();
    let mut world = Scripted;
    let mut sim = Sim::start(Arc::new(spec), 0, 0, &mut world);
    while sim.advance(&mut world) {}
    let told = record(&sim);
    assert_eq!((&told["state"], &told["status"]), (&json!("NEEDS_INPUT"), &json!("needs_input")));
    assert_eq!(
        told["question"].to_string(),
        r#"{"key":"person/question-1","role":"planner","text":"Which database?"}"#
    );
    assert_eq!(told["reason"], "needs_input");
    assert_eq!(told["phases"], json!(["exploration_complete"]));
    let key = crate::key::Key::parse("person/question-1");
    sim.feed(Event::Amended { key, text: "SQLite".into() }, &mut world);
    let sim = sim.finish(&mut world);
    let told = record(&sim);
    assert_eq!(course(&told), "explorer planner planner coder reviewer: DONE done (review_passed)");
    assert_eq!(told.get("question"), None);
    assert!(sim.run.known().get("person/planner-1").is_some());
    for role in [Role::Planner, Role::Coder, Role::Reviewer] {
        let prompt = prompt_of(&sim, role);
        assert!(prompt.contains("from=\"a person\"") && prompt.contains("SQLite"), "{prompt}");
    }
    assert!(!prompt_of(&sim, Role::Coder).contains("Which database?"), "its question is no plan");
}

#[test]
fn every_role_is_told_how_to_ask_and_that_asking_stops_the_run() {
    let told_in = |task: &str, path| {
        let mut spec = team(&["PASS"]);
        spec.task = task.into();
        roles(&mut spec).weighing.path = Some(path);
        let sim = play(spec);
        let spoke = roles(&mut (*sim.spec).clone()).agents(Some(task));
        spoke.into_iter().map(|role| prompt_of(&sim, role)).collect::<Vec<_>>()
    };
    for (task, words) in [
        ("Mend it", ["NEEDS_INPUT: and your question", "stops the run"]),
        ("修好它", ["NEEDS_INPUT: 和你的问题", "运行会停下"]),
    ] {
        let prompts = [told_in(task, Path::Roles), told_in(task, Path::Single)].concat();
        assert_eq!(prompts.len(), Role::ALL.len());
        for prompt in prompts {
            assert!(words.iter().all(|it| prompt.contains(it)), "{prompt}");
            let (_, behind) = prompt.split_once("{\"verdict\"").expect("it is told the object");
            let object = format!("{{\"verdict\"{}}}", behind.split('}').next().unwrap_or_default());
            for asks in ["NEEDS_INPUT: which one?", "NEEDS_INPUT：用哪个？", &object] {
                let said = crate::call::Answer::text(asks);
                assert!(review::asks(&said), "{asks} is read");
            }
        }
    }
}

#[test]
fn people_are_asked_three_times_at_the_most() {
    let spec = saying(team(&["PASS"]), Role::Explorer, [text("NEEDS_INPUT")]);
    let mut world = Scripted;
    let mut sim = Sim::start(Arc::new(spec), 0, 0, &mut world);
    for n in 1..=MOST_QUESTIONS {
        while sim.advance(&mut world) {}
        let key = crate::key::Key::parse(&format!("person/question-{n}"));
        sim.feed(Event::Amended { key, text: "well".into() }, &mut world);
    }
    let told = record(&sim.finish(&mut world));
    assert_eq!(
        course(&told),
        "explorer explorer explorer explorer planner coder reviewer: DONE done (review_passed)"
    );
}
