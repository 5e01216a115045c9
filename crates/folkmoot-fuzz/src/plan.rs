//! The plan of a supervisor.

use std::collections::{BTreeMap, BTreeSet};

use folkmoot_core::{
    call::{Answer, Outcome},
    plan::{Format, Plan, repair},
    team::Agent,
};

use crate::names::agents;

/// Whatever a supervisor says, there is a plan that can be carried out.
pub fn plan(reply: &[u8]) {
    let text = String::from_utf8_lossy(reply);
    let structured = serde_json::from_str(&text).ok().map(Answer::json);
    for answer in [Some(Answer::text(&*text)), structured].into_iter().flatten() {
        let outcome: Outcome = Ok(answer.into());
        for max_tasks in [1, 3, 1000] {
            let agents = agents();
            let workers: Vec<&Agent> = agents.iter().collect();
            let plan = repair(&outcome, "the task", &workers, max_tasks);
            check(&plan, &workers, max_tasks as usize);
        }
    }
}

fn check(plan: &Plan, workers: &[&Agent], max_tasks: usize) {
    assert!(!plan.tasks.is_empty(), "there is nothing to do");
    let running = plan.tasks.iter().filter(|task| !task.over_max).count();
    assert!((1..=max_tasks).contains(&running), "{running} tasks run, {max_tasks} may");
    let ids: BTreeSet<&str> = plan.tasks.iter().map(|task| &*task.id).collect();
    assert_eq!(ids.len(), plan.tasks.len(), "two tasks share an id");
    for task in &plan.tasks {
        assert!(!task.description.trim().is_empty(), "{} says nothing", task.id);
        assert!(!task.id.trim().is_empty(), "a task has no id");
        assert!(workers.iter().any(|worker| worker.id == task.agent), "{} is nobody", task.agent);
        let foreign = task.depends_on.iter().find(|id| !ids.contains(&***id));
        assert_eq!(foreign, None, "{} depends on what there is not", task.id);
    }
    assert!(can_be_carried_out(plan), "tasks wait for each other");
    assert!(plan.format != Format::Fallback || plan.tasks.len() == 1);
    let _ = plan.has_independent_tasks();
}

/// Whether each task can be reached by doing those that it depends on.
fn can_be_carried_out(plan: &Plan) -> bool {
    let mut missing: BTreeMap<&str, usize> = BTreeMap::new();
    let mut waiting: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for task in &plan.tasks {
        missing.insert(&task.id, task.depends_on.len());
        for id in &task.depends_on {
            waiting.entry(id).or_default().push(&task.id);
        }
    }
    let free = missing.iter().filter(|(_, missing)| **missing == 0);
    let mut done: Vec<&str> = free.map(|(id, _)| *id).collect();
    let mut next = 0;
    while let Some(id) = done.get(next).copied() {
        for other in waiting.get(id).into_iter().flatten() {
            if let Some(missing) = missing.get_mut(other) {
                *missing -= 1;
                if *missing == 0 {
                    done.push(other);
                }
            }
        }
        next += 1;
    }
    done.len() == plan.tasks.len()
}
