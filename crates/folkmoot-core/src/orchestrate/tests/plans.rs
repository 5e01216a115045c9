//! The plan of a phase (orchestrate.md §2).

use serde_json::{Value, json};

use crate::orchestrate::{Plan, PlanRequest, Refusals, Role, Topology, action};

fn plan(request: &Value) -> Result<Plan, Refusals> {
    let text = |key: &str| request[key].as_str().map(str::to_owned);
    let request = PlanRequest {
        issues: request["issues"].clone(),
        topology: text("topology"),
        max_dev_teams: request.get("max_dev_teams").cloned(),
        target: text("target").map(Into::into),
    };
    Plan::new(&request, |id| id == "done")
}

fn told(request: &Value) -> Value {
    plan(request).expect("it is sound").told()
}

fn codes(request: &Value) -> Vec<&'static str> {
    plan(request).expect_err("it is refused").iter().map(|it| it.code).collect()
}

fn ids(told: &Value) -> Vec<&str> {
    let cards = told["cards"].as_array().into_iter().flatten();
    cards.filter_map(|card| card["issue_id"].as_str()).collect()
}

fn issues(ids: impl IntoIterator<Item = u32>) -> Value {
    ids.into_iter().map(|id| json!({ "id": id.to_string() })).collect()
}

#[test]
fn four_issues_become_cards_and_the_rest_is_deferred() {
    let told = told(&json!({ "issues": issues(1..=6) }));
    assert_eq!(ids(&told), ["1", "2", "3", "4"]);
    let deferred = json!([
        { "issue_id": "5", "reason": "max_dev_teams" },
        { "issue_id": "6", "reason": "max_dev_teams" },
    ]);
    assert_eq!((&told["deferred"], &told["topology"]), (&deferred, &json!("parallel-team")));
    assert_eq!((&told["dry_run"], &told["edges"]), (&json!(true), &json!([])));
    assert_eq!(told["warnings"].as_array().map(Vec::len), Some(4), "no files were declared");
}

#[test]
fn dependencies_come_first_then_priority_then_the_order_given() {
    let told = told(&json!({ "issues": [
        { "id": "a", "depends_on": ["c"], "priority": 9 },
        { "id": "b" },
        { "id": "c", "priority": 1, "depends_on": ["done"] },
        { "id": "d", "priority": 1 },
    ] }));
    assert_eq!(ids(&told), ["c", "a", "d", "b"]);
    assert_eq!((&told["edges"], &told["cards"][1]["wave"]), (&json!([["c", "a"]]), &json!(2)));
}

#[test]
fn what_depends_on_a_deferred_issue_is_deferred_and_readers_take_no_team() {
    let told = told(&json!({ "max_dev_teams": "1", "issues": [
        { "id": "1", "priority": 1 },
        { "id": "2" },
        { "id": "3", "depends_on": ["2"], "write": false },
        { "id": "4", "write": false, "title": "Audit it" },
    ] }));
    assert_eq!(ids(&told), ["1", "4"]);
    assert_eq!(told["deferred"][1], json!({ "issue_id": "3", "reason": "dependency_deferred" }));
    assert_eq!(told["cards"][1]["kind"], "support");
    assert_eq!(told["cards"][1].get("branch_hint"), None);
}

#[test]
fn cards_that_would_write_the_same_files_are_deferred_except_in_a_pipeline() {
    for (first, second, meets) in [
        ("src/a.rs", "./src/a.rs", true),
        ("src/", "src/a.rs", true),
        ("src/a/b.rs", "src/", true),
        ("src", "src/a.rs", false),
        ("src/a", "src/ab", false),
    ] {
        let issues = json!([{ "id": "1", "files": [first] }, { "id": "2", "files": [second] }]);
        for (topology, wanted) in [("star", meets), ("parallel-team", meets), ("pipeline", false)] {
            let told = told(&json!({ "issues": issues, "topology": topology }));
            let is_deferred =
                told["deferred"] == json!([{ "issue_id": "2", "reason": "file_conflict" }]);
            assert_eq!(is_deferred, wanted, "{first} and {second} in {topology}");
            assert_eq!(told["warnings"], json!([]));
        }
    }
}

#[test]
fn a_star_has_a_hub_that_never_writes_and_a_pipeline_is_a_chain() {
    let star = told(&json!({ "issues": issues(1..=2), "topology": " STAR " }));
    assert_eq!(star["edges"], json!([["1", "hub"], ["2", "hub"]]));
    let hub = &star["cards"][2];
    assert_eq!(
        (&hub["kind"], &hub["write"], &hub["wave"]),
        (&json!("hub"), &json!(false), &json!(2))
    );
    let pipeline = told(&json!({ "issues": issues(1..=3), "topology": "pipeline" }));
    assert_eq!(pipeline["edges"], json!([["1", "2"], ["2", "3"]]));
    assert_eq!(pipeline["cards"][2]["depends_on"], json!(["2"]));
}

#[test]
fn the_digest_is_of_what_was_asked_for_with_its_defaults() {
    let digest = |request: Value| plan(&request).expect("it is sound").digest;
    let plain = digest(json!({ "issues": [{ "id": "1" }] }));
    let full = digest(json!({ "max_dev_teams": 4, "topology": "parallel-team", "issues": [
        { "write": true, "priority": 0, "title": "1", "body": "", "files": [], "depends_on": [], "id": "1" },
    ] }));
    assert_eq!((plain.len(), &plain), (64, &full));
    for other in [
        json!({ "issues": [{ "id": "2" }] }),
        json!({ "issues": [{ "id": "1" }], "target": "main" }),
        json!({ "issues": [{ "id": "1" }], "max_dev_teams": 3 }),
        json!({ "issues": [{ "id": "1" }], "topology": "star" }),
    ] {
        assert_ne!(digest(other.clone()), plain, "{other}");
    }
}

#[test]
fn a_plan_that_cannot_be_is_refused_with_all_its_faults() {
    let one = issues(1..=1);
    for (request, wanted) in [
        (json!({ "issues": "{" }), vec!["invalid_issues_json"]),
        (json!({ "issues": [] }), vec!["invalid_issues_json"]),
        (json!({ "issues": null }), vec!["invalid_issues_json"]),
        (json!({ "issues": [{ "id": "1" }, { "id": "1" }] }), vec!["invalid_issues_json"]),
        (json!({ "issues": [{ "id": " " }] }), vec!["invalid_issues_json"]),
        (json!({ "issues": [{ "id": "1", "write": "false" }] }), vec!["invalid_issues_json"]),
        (
            json!({ "issues": [{ "id": "1", "titel": "x", "files": "a" }] }),
            vec!["invalid_issues_json"; 2],
        ),
        (json!({ "issues": [{ "id": "1", "role": "ghost" }] }), vec!["unknown_role"]),
        (json!({ "issues": [{ "id": "1", "depends_on": ["9"] }] }), vec!["unknown_dependency"]),
        (json!({ "issues": [{ "id": "1", "depends_on": ["1"] }] }), vec!["dependency_cycle"]),
        (json!({ "issues": one, "max_dev_teams": 0 }), vec!["invalid_max_dev_teams"]),
        (json!({ "issues": one, "max_dev_teams": "-1" }), vec!["invalid_max_dev_teams"]),
        (json!({ "issues": one, "max_dev_teams": 1.5 }), vec!["invalid_max_dev_teams"]),
        (
            json!({ "issues": one, "topology": "ring", "max_dev_teams": 0 }),
            vec!["unknown_topology", "invalid_max_dev_teams"],
        ),
        (json!({ "issues": [{ "id": "hub" }], "topology": "star" }), vec!["invalid_issues_json"]),
    ] {
        assert_eq!(codes(&request), wanted, "{request}");
    }
    let ring = json!({ "issues": [{ "id": "a", "depends_on": ["b"] }, { "id": "b", "depends_on": ["a"] }] });
    let refused = plan(&ring).expect_err("it is a cycle");
    assert!(refused[0].message.ends_with("a -> b -> a"), "{}", refused[0].message);
    let topology = plan(&json!({ "issues": one, "topology": "ring" })).expect_err("there is none");
    assert_eq!(topology[0].allowed, ["parallel-team", "star", "pipeline"]);
}

#[test]
fn a_chain_of_a_thousand_issues_is_planned() {
    let chain: Value = (0..1_000)
        .map(|at: u32| {
            let before: Vec<String> = at.checked_sub(1).iter().map(u32::to_string).collect();
            json!({ "id": at.to_string(), "depends_on": before, "files": [format!("f{at}")] })
        })
        .collect();
    let plan = plan(&json!({ "issues": chain, "max_dev_teams": 1_000 })).expect("it is sound");
    assert_eq!((plan.cards.len(), plan.cards[999].wave), (1_000, 1_000));
    assert_eq!(plan.topology, Topology::ParallelTeam);
}

#[test]
fn the_first_telling_word_suggests_a_role() {
    for (task, wanted) in [
        ("write release notes", Role::Writer),
        ("Fix the docs", Role::Debugger),
        ("Rewrite the prefix tree", Role::Implementer),
        ("TESTS for the plan", Role::Tester),
        ("请修复登录的缺陷", Role::Debugger),
        ("为解析器补充测试", Role::Tester),
        ("", Role::Implementer),
    ] {
        assert_eq!(Role::suggested(task), wanted, "{task}");
    }
}

#[test]
fn an_action_is_known_whatever_its_case() {
    assert_eq!(action(" Phase-Plan "), Ok("phase-plan"));
    let refused = action("ship").expect_err("there is none");
    assert_eq!((refused[0].code, refused[0].allowed.len()), ("unknown_action", 8));
}
