//! Plans as they come, and what becomes of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    sync::Arc,
};

use proptest::{collection::vec, option, prelude::*, sample::select};
use serde_json::{Value, json};

use super::{Format, Note, Plan, RoutedBy, repair};
use crate::{
    call::{Answer, FailureKind, Fault, Outcome},
    names::slug,
    team::{Agent, AgentId, Target},
};

/// A worker with these capabilities, between commas.
pub(super) fn worker(name: &str, capabilities: &str) -> Agent {
    Agent {
        id: AgentId(slug(name).into()),
        capabilities: capabilities.split_terminator(',').map(Arc::from).collect(),
        ..Agent::new(name, Target::Demo)
    }
}

fn team() -> [Agent; 3] {
    [worker("w1", "rust,unit tests"), worker("Web Worker", "rust,html"), worker("w3", "")]
}

fn plan_of(outcome: &Outcome, max_tasks: u32) -> Plan {
    let team = team();
    repair(outcome, "The goal", &team.iter().collect::<Vec<_>>(), max_tasks)
}

fn text(reply: &str) -> Plan {
    plan_of(&Ok(Answer::text(reply).into()), 32)
}

fn tasks(tasks: &Value) -> Plan {
    plan_of(&Ok(Answer::json(json!({ "tasks": tasks })).into()), 32)
}

fn ids(plan: &Plan) -> Vec<&str> {
    plan.tasks.iter().map(|task| &*task.id).collect()
}

fn needs(plan: &Plan) -> Vec<Vec<&str>> {
    plan.tasks.iter().map(|task| task.depends_on.iter().map(|id| &**id).collect()).collect()
}

fn routes(plan: &Plan) -> Vec<(&str, RoutedBy)> {
    plan.tasks.iter().map(|task| (task.agent.as_str(), task.routed_by)).collect()
}

/// Notes; structural ones begin with a bullet.
fn notes(plan: &Plan) -> Vec<String> {
    let marked = |note: &Note| {
        if note.structural { format!("• {}", note.text) } else { note.text.clone() }
    };
    plan.notes.iter().map(marked).collect()
}

#[test]
fn a_sound_plan_is_kept_as_it_is() {
    let plan = tasks(&json!([
        {"id": "c", "description": "C", "agent": "w3", "depends_on": ["a", "b"]},
        {"id": "b", "description": "B", "agent": "web-worker", "depends_on": ["a"]},
        {"id": "a", "description": "A", "agent": "Web Worker"},
    ]));
    assert_eq!((plan.format, notes(&plan)), (Format::Json, vec![]));
    assert_eq!(ids(&plan), ["c", "b", "a"]);
    assert_eq!(needs(&plan), [vec!["a", "b"], vec!["a"], vec![]]);
    let named = ["w3", "web-worker", "web-worker"].map(|agent| (agent, RoutedBy::Named));
    assert_eq!(routes(&plan), named);
}

#[test]
fn without_a_plan_the_whole_work_is_one_task() {
    let fault = |text: &str| Err(Fault::failed(FailureKind::Harness, text));
    for (plan, note) in [
        (plan_of(&fault("boom"), 1), "• plan call failed (boom)"),
        (plan_of(&fault(" "), 1), "• plan call failed (failed)"),
        (plan_of(&Err(Fault::TimedOut), 1), "• plan call failed (timeout)"),
        (text("{\"tasks\": [\"a"), "• plan is not readable JSON (line 1, column 13)"),
        (text(" \n"), "plan has no tasks"),
        (text("{\"tasks\": [{\"id\": \"a\"}]}"), "plan has no tasks"),
    ] {
        assert_eq!(notes(&plan), [format!("{note}: the whole task is one task")]);
        assert_eq!((plan.format, ids(&plan)), (Format::Fallback, vec!["task_1"]));
        let task = &plan.tasks[0];
        assert_eq!((&*task.description, task.over_max), ("The goal", false));
    }
}

#[test]
fn each_defect_has_its_smallest_repair_and_its_note_in_the_order_of_the_checks() {
    let plan = plan_of(
        &Ok(Answer::json(json!({"tasks": [
            {"id": "t1", "description": "a", "agent": "ghost", "depends_on": ["t1", "t2", "none"]},
            {"id": "t2", "description": "b", "depends_on": "t1", "required_capabilities": ["quantum"]},
            {"id": "x"},
            {"id": " ", "description": "c", "depends_on": "t1, t2"},
            {"id": "t2", "description": "d", "depends_on": ["t2"]},
            7,
        ]}))
        .into()),
        3,
    );
    assert_eq!(
        notes(&plan),
        [
            "entry 3 has no description: dropped",
            "entry 6 has no description: dropped",
            "entry 4 has a blank id: now \"task_4\"",
            "\"t2\": depends_on is no list: read as \"t1\"",
            "\"task_4\": depends_on is no list: read as \"t1\", \"t2\"",
            "• plan has 4 tasks, 3 are allowed: the last 1 are cancelled",
            "• id \"t2\" is used again: entry 5 is now \"t2_r2\"",
            "• \"t1\" depends on unknown \"none\": dropped",
            "• \"t1\" depends on itself: dropped",
            "• cycle: \"t1\" depends on \"t2\" dropped",
            "\"t1\" names unknown agent \"ghost\": routed to \"w1\"",
            "nobody has capability \"quantum\" (\"t2\"): ignored",
        ]
    );
    assert_eq!(ids(&plan), ["t1", "t2", "task_4", "t2_r2"]);
    assert_eq!(needs(&plan), [vec![], vec!["t1"], vec!["t1", "t2"], vec!["t2"]]);
    assert_eq!(
        plan.tasks.iter().map(|task| task.over_max).collect::<Vec<_>>(),
        [false, false, false, true]
    );
    assert_eq!(plan.structural_defects(), 5);
}

#[test]
fn dependencies_on_an_id_used_twice_mean_the_first() {
    let plan = tasks(&json!([
        {"id": "t", "description": "a"},
        {"id": "t_r2", "description": "b", "depends_on": ["t"]},
        {"id": "t", "description": "c", "depends_on": ["t"]},
        {"id": "t", "description": "d", "depends_on": ["t_r2"]},
    ]));
    assert_eq!(ids(&plan), ["t", "t_r2", "t_r3", "t_r4"]);
    assert_eq!(needs(&plan), [vec![], vec!["t"], vec!["t"], vec!["t_r2"]]);
}

#[test]
fn an_id_with_a_comma_is_one_dependency_if_a_task_has_it() {
    let plan = tasks(&json!([
        {"id": "a,b", "description": "x"},
        {"id": 2, "description": "y", "depends_on": "a,b"},
        {"id": "z", "description": "z", "depends_on": 2},
        {"id": "n", "description": "n", "depends_on": ""},
    ]));
    assert_eq!(needs(&plan), [vec![], vec!["a,b"], vec!["2"], vec![]]);
    assert_eq!(notes(&plan)[2], "\"n\": depends_on is no list: read as none");
}

#[test]
fn tasks_that_will_not_run_are_routed_but_are_no_load() {
    let entries = json!([
        {"description": "a"}, {"description": "b"},
        {"description": "c", "agent": "w1"}, {"description": "d"}, {"description": "e"},
    ]);
    let plan = plan_of(&Ok(Answer::json(entries).into()), 2);
    let agents: Vec<&str> = routes(&plan).into_iter().map(|(agent, _)| agent).collect();
    assert_eq!(agents, ["w1", "web-worker", "w1", "w3", "w3"]);
}

#[test]
fn named_tasks_are_load_before_the_others_are_routed() {
    let plan = tasks(&json!([{"description": "a"}, {"description": "b", "agent": "w1"}]));
    assert_eq!(routes(&plan), [("web-worker", RoutedBy::Load), ("w1", RoutedBy::Named)]);
}

#[test]
fn a_second_plan_counts_if_it_is_json_and_has_fewer_structural_defects() {
    let sound = tasks(&json!(["a"]));
    let one = tasks(&json!([{"description": "a", "depends_on": ["x"]}]));
    let two = tasks(&json!([{"description": "a", "depends_on": ["x", "y"]}]));
    let routing = tasks(&json!([{"description": "a", "agent": "x"}]));
    let (lines, broken, empty) = (text("a\nb"), text("{"), text(""));
    assert!(sound.improves_on(&one) && one.improves_on(&two) && two.improves_on(&broken));
    assert!(routing.improves_on(&one) && two.improves_on(&empty));
    assert!(!two.improves_on(&one) && !one.improves_on(&one) && !lines.improves_on(&one));
    assert!(!empty.improves_on(&broken) && !lines.improves_on(&broken));
}

#[test]
fn two_tasks_that_do_not_depend_on_each_other_are_independent() {
    assert!(text("a\nb").has_independent_tasks());
    assert!(!text("a").has_independent_tasks() && !text("").has_independent_tasks());
    let chain = json!([
        {"id": "c", "description": "c", "depends_on": ["b"]},
        {"id": "a", "description": "a"},
        {"id": "b", "description": "b", "depends_on": ["a"]},
    ]);
    assert!(!tasks(&chain).has_independent_tasks());
    let over = plan_of(&Ok(Answer::text("a\nb").into()), 1);
    assert!(!over.has_independent_tasks());
}

#[test]
fn a_great_plan_is_repaired_at_once_and_its_notes_stay_small() {
    let mut plan = String::from("[");
    for n in 0..20_000 {
        write!(
            plan,
            "{{\"id\":{},\"task\":\"t\",\"depends_on\":[{},{}]}},",
            n % 15_000,
            n + 1,
            (n * 7) % 20_000
        )
        .expect("writing to a string cannot fail");
    }
    write!(
        plan,
        "{{\"id\":\"{}\",\"task\":\"rust\",\"depends_on\":\"x\"}}]",
        "long".repeat(10_000)
    )
    .expect("writing to a string cannot fail");
    let plan = text(&plan);
    let counted = |note: &Note| note.text.starts_with("plan has 20001 tasks, 32 are allowed");
    assert!(plan.notes.iter().any(counted), "the note counts all of them");
    assert_eq!(plan.tasks.len(), 1_032, "not all that are too many are listed");
    assert!(plan.notes.iter().all(|note| note.text.chars().count() < 600));
    assert_eq!(order_of(&plan).len(), 1_032);
}

/// The ids in an order in which each task follows what it needs.
fn order_of(plan: &Plan) -> Vec<&str> {
    let mut waiting: BTreeMap<&str, usize> = BTreeMap::new();
    let mut needed_by: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for task in &plan.tasks {
        waiting.insert(&task.id, task.depends_on.len());
        for need in &task.depends_on {
            needed_by.entry(need).or_default().push(&task.id);
        }
    }
    let mut order: Vec<&str> =
        waiting.iter().filter(|(_, n)| **n == 0).map(|(id, _)| *id).collect();
    let mut next = 0;
    while let Some(id) = order.get(next) {
        for other in needed_by.get(id).into_iter().flatten() {
            let missing = waiting.get_mut(other).expect("dependents are tasks");
            *missing -= 1;
            if *missing == 0 {
                order.push(other);
            }
        }
        next += 1;
    }
    order
}

/// Something that a planner could write as an id.
fn some_id() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => select(vec![json!("a"), json!("b"), json!("c"), json!("a_r2"), json!("task_2"), json!(1)]),
        1 => select(vec![json!(""), json!(null), json!([]), json!("a, b"), json!(" c "), json!(true)]),
    ]
}

fn some_entry() -> impl Strategy<Value = Value> {
    let description = option::weighted(0.9, select(vec!["x", "rust", "单元", " "]));
    let needs = prop_oneof![4 => vec(some_id(), 0..4).prop_map(Value::from), 1 => some_id()];
    let agent =
        select(vec![json!(null), json!("w1"), json!("Web Worker"), json!("ghost"), json!(3)]);
    let capabilities = vec(select(vec!["rust", "HTML", "quantum", ""]), 0..3);
    (some_id(), description, needs, agent, capabilities).prop_map(
        |(id, description, depends_on, agent, required_capabilities)| {
            json!({
                "id": id, "description": description, "depends_on": depends_on, "agent": agent,
                "required_capabilities": required_capabilities,
            })
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_plan_becomes_sound(entries in vec(some_entry(), 0..9), max_tasks in 1u32..9) {
        let usable = |entry: &&Value| entry["description"].as_str().is_some_and(|text| !text.trim().is_empty());
        let survivors: Vec<&str> =
            entries.iter().filter(usable).filter_map(|entry| entry["description"].as_str()).collect();
        let plan = plan_of(&Ok(Answer::json(json!({"tasks": entries})).into()), max_tasks);
        let team = team();

        let distinct: BTreeSet<&str> = ids(&plan).into_iter().collect();
        prop_assert_eq!(distinct.len(), plan.tasks.len());
        prop_assert!(plan.tasks.iter().all(|task| task.depends_on.iter().all(|id| distinct.contains(&**id))));
        prop_assert_eq!(order_of(&plan).len(), plan.tasks.len());
        prop_assert!(plan.tasks.iter().all(|task| team.iter().any(|worker| worker.id == task.agent)));
        let running = plan.tasks.iter().take_while(|task| !task.over_max).count();
        prop_assert_eq!(running, plan.tasks.len().min(max_tasks as usize));
        if survivors.is_empty() {
            prop_assert_eq!((plan.format, plan.tasks.len()), (Format::Fallback, 1));
        } else {
            let kept: Vec<&str> = plan.tasks.iter().map(|task| &*task.description).collect();
            prop_assert_eq!(kept, survivors);
        }
    }

    #[test]
    fn a_repaired_plan_needs_no_repair(entries in vec(some_entry(), 1..9)) {
        let first = tasks(&Value::from(entries));
        let again: Vec<Value> = first.tasks.iter().map(|task| json!({
            "id": &*task.id, "description": &*task.description, "agent": task.agent.as_str(),
            "depends_on": task.depends_on.iter().map(|id| &**id).collect::<Vec<_>>(),
        })).collect();
        let second = tasks(&Value::from(again));
        prop_assert_eq!(notes(&second), Vec::<String>::new());
        prop_assert_eq!((ids(&second), needs(&second)), (ids(&first), needs(&first)));
        let agents = |plan: &Plan| plan.tasks.iter().map(|task| task.agent.clone()).collect::<Vec<_>>();
        prop_assert_eq!(agents(&second), agents(&first));
    }
}
