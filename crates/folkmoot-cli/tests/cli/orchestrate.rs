//! From issues to merged cards, by the real binary (orchestrate.md).

use serde_json::{Value, json};

use crate::bench::Bench;

const CONFIG: &str = "default_model = 'demo'
[aliases]
codex = 'demo'
";

fn asked(bench: &Bench, arguments: &[&str], exit: i32) -> Value {
    let all = ["orchestrate"].iter().chain(arguments).chain(&["--json"]).copied();
    bench.call(all).must_be(exit).json()
}

fn refused(bench: &Bench, arguments: &[&str]) -> String {
    asked(bench, arguments, 2)["error"]["code"].as_str().unwrap_or_default().to_owned()
}

fn desk() -> Bench {
    let bench = Bench::new();
    bench.write("folkmoot.toml", CONFIG);
    bench
}

#[test]
fn a_plan_is_a_record_and_calls_nobody() {
    let bench = desk();
    let told = asked(&bench, &["plan", "write release notes"], 0);
    assert_eq!(
        (&told["task_id"], &told["state"], &told["suggested_role"]),
        (&json!("T001"), &json!("PLANNED"), &json!("writer"))
    );
    assert_eq!(refused(&bench, &["plan", "  "]), "task_required");
    assert_eq!(refused(&bench, &["plan", "x", "--task-id", "T001"]), "task_id_exists");
    assert_eq!(refused(&bench, &["execute", "T001"]), "not_materialized");
    let near = asked(&bench, &["phase-pln"], 2);
    assert_eq!(near["error"]["help"], "did you mean \"phase-plan\"?");
    let unknown = asked(&bench, &["ship"], 2);
    assert_eq!(unknown["error"]["code"], "unknown_action");
    assert_eq!(unknown["error"]["allowed"][7], "merge");
    assert_eq!(bench.runs(), Vec::<Value>::new());
}

#[test]
fn a_phase_is_planned_dry_and_made_into_cards_once() {
    let bench = desk();
    let template = ["--collaboration-template", "phase_delivery_team"];
    let materialize = [&["phase-materialize"][..], &template].concat();
    assert_eq!(refused(&bench, &materialize), "no_phase_plan");
    let issues = r#"[{"id": "1"}, {"id": "2", "write": false}]"#;
    let plan = asked(&bench, &["phase-plan", "--issues-json", issues], 0);
    assert_eq!(plan["dry_run"], true);
    assert_eq!(asked(&bench, &["status"], 0)["summary"]["total"], 0);
    assert_eq!(refused(&bench, &["execute", "1"]), "not_materialized");
    assert_eq!(refused(&bench, &["execute", "T999"]), "unknown_task_id");
    assert_eq!(refused(&bench, &["phase-materialize"]), "collaboration_template_required");
    let ghost = ["phase-materialize", "--collaboration-template", "ghost"];
    assert_eq!(refused(&bench, &ghost), "unknown_template");
    let drifted = [&materialize[..], &["--issues-json", r#"[{"id": "1"}]"#]].concat();
    assert_eq!(refused(&bench, &drifted), "plan_drift");
    assert_eq!(refused(&bench, &[&materialize[..], &["--digest", "00"]].concat()), "plan_drift");
    assert_eq!(asked(&bench, &["status"], 0)["summary"]["total"], 0, "refusals make nothing");
    let digest = plan["digest"].as_str().unwrap_or_default();
    let same = [&materialize[..], &["--digest", digest, "--issues-json", issues]].concat();
    let made = asked(&bench, &same, 0);
    assert_eq!((&made["created"], &made["reused"]), (&json!(["T001", "T002"]), &json!([])));
    assert_eq!(made["cards"][0]["candidates"], json!(["demo"]));
    let again = asked(&bench, &materialize, 0);
    assert_eq!((&again["created"], &again["reused"]), (&json!([]), &json!(["T001", "T002"])));
    assert_eq!(asked(&bench, &["plan", "x"], 0)["task_id"], "T003", "ids are shared");
    let status = asked(&bench, &["status"], 0);
    assert_eq!(status["summary"], json!({ "total": 3, "by_state": { "PLANNED": 3 } }));
    assert_eq!(status["cards"][0]["task_id"], "T003", "the newest first");
    assert_eq!(bench.runs(), Vec::<Value>::new(), "no agent was called");
}

#[test]
fn a_template_without_anybody_to_ask_makes_no_cards() {
    let bench = Bench::new();
    bench.write("folkmoot.toml", "[templates.mine]\nroles = { implementer = ['nobody/here'] }\n");
    asked(&bench, &["phase-plan", "--issues-json", r#"[{"id": "1"}]"#], 0);
    for name in ["mine", "phase_delivery_team"] {
        let materialize = ["phase-materialize", "--collaboration-template", name];
        assert_eq!(refused(&bench, &materialize), "no_candidate", "{name}");
    }
    assert_eq!(asked(&bench, &["status"], 0)["summary"]["total"], 0);
}

#[test]
fn a_card_is_assigned_and_reviewed_by_hand() {
    let bench = desk().with("USER", "ann");
    asked(&bench, &["plan", "x"], 0);
    assert_eq!(refused(&bench, &["review", "T001"]), "must_be_assigned");
    let assign = |role, agent| ["assign", "T001", "--role", role, "--agent", agent];
    assert_eq!(refused(&bench, &assign("ghost", "codex")), "unknown_role");
    assert_eq!(refused(&bench, &assign("implementer", "ghost")), "unknown_agent");
    let card = asked(&bench, &assign("implementer", "codex"), 0);
    assert_eq!(
        (&card["state"], &card["events"][1]["actor"]),
        (&json!("IMPLEMENTING"), &json!("ann"))
    );
    assert_eq!(refused(&bench, &["review", "T001"]), "branch_required");
    let card = asked(&bench, &["review", "T001", "--branch", "feat/x"], 0);
    assert_eq!(card["state"], "REVIEWING");
    assert_eq!(asked(&bench, &["status", "--branch", "feat/x"], 0)["task_id"], "T001");
    let page = bench.call(["orchestrate", "status"]).must_be(0).stdout;
    assert_eq!(page, "T001 · REVIEWING · codex · x\n");
}
