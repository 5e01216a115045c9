//! Defects of plans and their repair (strategies.md §5.2).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{Format, Note, Plan, RoutedBy, Task, cycles::break_cycles, routing::Router};
use crate::{
    call::Outcome,
    team::Agent,
    text::shorten,
    verdict::plan::{self, Dependencies, Entry, PlanReading},
};

/// The most characters of an id, name or error in a note.
const EXCERPT: usize = 200;

/// The plan that the reply to the plan call gives, for the whole work `task`, of which `max_tasks` parts
/// may run, each done by one of `workers`. Panics without workers: specs are checked.
pub fn repair(outcome: &Outcome, task: &str, workers: &[&Agent], max_tasks: u32) -> Plan {
    let max_tasks = usize::try_from(max_tasks).unwrap_or(usize::MAX);
    let reading = match outcome {
        Ok(answer) => plan::read(answer),
        Err(fault) => {
            let why = format!("plan call failed ({})", excerpt(&fault.to_string()));
            return fallback(structural(why), task, workers);
        }
    };
    match reading {
        PlanReading::Json(entries) => Draft::new(entries).finish(Format::Json, workers, max_tasks),
        PlanReading::Lines(entries) => {
            Draft::new(entries).finish(Format::Lines, workers, max_tasks)
        }
        PlanReading::Empty => fallback(minor("plan has no tasks".to_owned()), task, workers),
        PlanReading::Undecodable { line, column } => {
            let why = format!("plan is not readable JSON (line {line}, column {column})");
            fallback(structural(why), task, workers)
        }
    }
}

/// The plan in which one task is the whole work.
fn fallback(mut why: Note, task: &str, workers: &[&Agent]) -> Plan {
    why.text.push_str(": the whole task is one task");
    let whole = Entry { description: Some(task.to_owned()), ..Entry::default() };
    let mut plan = Draft::new(vec![whole]).finish(Format::Fallback, workers, 1);
    plan.notes.push(why);
    plan
}

fn structural(text: String) -> Note {
    Note { text, structural: true }
}

fn minor(text: String) -> Note {
    Note { text, structural: false }
}

fn excerpt(text: &str) -> std::borrow::Cow<'_, str> {
    shorten(text, EXCERPT)
}

/// A plan under repair.
struct Draft {
    parts: Vec<Part>,
    notes: Vec<Note>,
}

/// A task under repair.
struct Part {
    /// The place of its entry in the plan as it came, from 1.
    position: usize,
    id: Arc<str>,
    description: Arc<str>,
    agent: Option<String>,
    required: Vec<String>,
    depends_on: Dependencies,
}

impl Draft {
    /// The usable ones of `entries`; the others are noted.
    fn new(entries: Vec<Entry>) -> Draft {
        let mut draft = Draft { parts: Vec::with_capacity(entries.len()), notes: Vec::new() };
        let mut blank_ids = Vec::new();
        for (position, entry) in (1..).zip(entries) {
            let Some(description) = entry.description else {
                draft.notes.push(minor(format!("entry {position} has no description: dropped")));
                continue;
            };
            let given = entry.id.as_deref().filter(|id| !id.is_empty());
            let id = given.map_or_else(|| format!("task_{position}"), str::to_owned);
            if given.is_none() && entry.id.is_some() {
                blank_ids.push(minor(format!("entry {position} has a blank id: now \"{id}\"")));
            }
            draft.parts.push(Part {
                position,
                id: id.into(),
                description: description.into(),
                agent: entry.agent,
                required: entry.required_capabilities,
                depends_on: entry.depends_on,
            });
        }
        draft.notes.extend(blank_ids);
        draft
    }

    /// Repairs what is left, in the order of the checks, and routes the tasks.
    fn finish(mut self, format: Format, workers: &[&Agent], max_tasks: usize) -> Plan {
        self.list_dependencies();
        self.count(max_tasks);
        self.tell_ids_apart();
        let needs = self.resolve_dependencies();
        let routes = self.route(workers, max_tasks);
        let ids: Vec<Arc<str>> = self.parts.iter().map(|part| part.id.clone()).collect();
        let task = |(place, ((part, needs), (worker, routed_by))): (_, ((Part, Vec<usize>), _))| {
            let worker: &Agent = workers[worker];
            Task {
                id: part.id,
                description: part.description,
                agent: worker.id.clone(),
                routed_by,
                depends_on: needs.into_iter().map(|need| ids[need].clone()).collect(),
                over_max: place >= max_tasks,
            }
        };
        let parts = self.parts.into_iter().zip(needs).zip(routes);
        Plan { tasks: parts.enumerate().map(task).collect(), format, notes: self.notes }
    }

    /// Reads a single dependency as one id, or, if no task has it, as ids between commas.
    fn list_dependencies(&mut self) {
        let ids: BTreeSet<Arc<str>> = self.parts.iter().map(|part| part.id.clone()).collect();
        for part in &mut self.parts {
            let Dependencies::Single(text) = &part.depends_on else {
                continue;
            };
            let list: Vec<String> = if ids.contains(&**text) {
                vec![text.clone()]
            } else {
                let names = text.split([',', '，']).map(str::trim).filter(|name| !name.is_empty());
                names.map(str::to_owned).collect()
            };
            let read: Vec<String> = list.iter().map(|id| format!("\"{}\"", excerpt(id))).collect();
            let read = if read.is_empty() { "none".to_owned() } else { read.join(", ") };
            let id = excerpt(&part.id);
            self.notes.push(minor(format!("\"{id}\": depends_on is no list: read as {read}")));
            part.depends_on = Dependencies::List(list);
        }
    }

    fn count(&mut self, max_tasks: usize) {
        let tasks = self.parts.len();
        if tasks > max_tasks {
            let over = tasks - max_tasks;
            self.notes.push(structural(format!(
                "plan has {tasks} tasks, {max_tasks} are allowed: the last {over} are cancelled"
            )));
        }
    }

    /// Renames tasks whose id an earlier one has.
    fn tell_ids_apart(&mut self) {
        let mut taken: BTreeSet<Arc<str>> = self.parts.iter().map(|part| part.id.clone()).collect();
        let mut uses: BTreeMap<Arc<str>, usize> = BTreeMap::new();
        for part in &mut self.parts {
            let uses = uses.entry(part.id.clone()).or_insert(0);
            *uses += 1;
            if *uses == 1 {
                continue;
            }
            let new = loop {
                let new: Arc<str> = format!("{}_r{uses}", part.id).into();
                if taken.insert(new.clone()) {
                    break new;
                }
                *uses += 1;
            };
            let (id, position) = (excerpt(&part.id), part.position);
            self.notes.push(structural(format!(
                "id \"{id}\" is used again: entry {position} is now \"{}\"",
                excerpt(&new)
            )));
            part.id = new;
        }
    }

    /// The places of the tasks that each one depends on; edges that cannot be are dropped.
    fn resolve_dependencies(&mut self) -> Vec<Vec<usize>> {
        let ids: Vec<Arc<str>> = self.parts.iter().map(|part| part.id.clone()).collect();
        let places: BTreeMap<&str, usize> =
            (0..).zip(&ids).map(|(place, id)| (&**id, place)).collect();
        let mut needs: Vec<Vec<usize>> = Vec::with_capacity(ids.len());
        let mut to_itself = Vec::new();
        for (place, part) in self.parts.iter().enumerate() {
            let id = excerpt(&part.id);
            let mut needed = Vec::new();
            let mut seen = BTreeSet::new();
            for name in part.depends_on.ids() {
                match places.get(&**name) {
                    None => self.notes.push(structural(format!(
                        "\"{id}\" depends on unknown \"{}\": dropped",
                        excerpt(name)
                    ))),
                    Some(&other) if other == place => {
                        to_itself.push(structural(format!("\"{id}\" depends on itself: dropped")));
                    }
                    Some(&other) if seen.insert(other) => needed.push(other),
                    Some(_) => {}
                }
            }
            needs.push(needed);
        }
        self.notes.append(&mut to_itself);
        for (task, other) in break_cycles(&mut needs) {
            let (task, other) = (excerpt(&ids[task]), excerpt(&ids[other]));
            self.notes
                .push(structural(format!("cycle: \"{task}\" depends on \"{other}\" dropped")));
        }
        needs
    }

    /// The worker of each task: those that name one first, then the others; tasks that will not run come
    /// last and are no load.
    fn route(&mut self, workers: &[&Agent], max_tasks: usize) -> Vec<(usize, RoutedBy)> {
        let mut router = Router::new(workers);
        let named: Vec<Option<usize>> =
            self.parts.iter().map(|part| router.named(part.agent.as_deref()?)).collect();
        for worker in named.iter().take(max_tasks).flatten() {
            router.assign(*worker);
        }
        let mut routes = Vec::with_capacity(named.len());
        for (place, (part, named)) in self.parts.iter().zip(named).enumerate() {
            if let Some(worker) = named {
                routes.push((worker, RoutedBy::Named));
                continue;
            }
            let (worker, rule) = router.choose(&part.description, &part.required);
            if place < max_tasks {
                router.assign(worker);
            }
            if let Some(agent) = &part.agent {
                self.notes.push(minor(format!(
                    "\"{}\" names unknown agent \"{}\": routed to \"{}\"",
                    excerpt(&part.id),
                    excerpt(agent),
                    workers[worker].name
                )));
            }
            routes.push((worker, rule));
        }
        self.note_unknown_capabilities(&router);
        routes
    }

    fn note_unknown_capabilities(&mut self, router: &Router) {
        for part in &self.parts {
            let unknown: BTreeSet<&String> =
                part.required.iter().filter(|tag| !router.is_capability(tag)).collect();
            for tag in unknown.into_iter().filter(|tag| !tag.is_empty()) {
                let (tag, id) = (excerpt(tag), excerpt(&part.id));
                self.notes
                    .push(minor(format!("nobody has capability \"{tag}\" (\"{id}\"): ignored")));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use proptest::{collection::vec, option, prelude::*, sample::select};
    use serde_json::{Value, json};

    use super::{super::routing::tests::worker, *};
    use crate::call::{Answer, FailureKind, Fault};

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

    fn tasks(tasks: Value) -> Plan {
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
        let plan = tasks(json!([
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
        let plan = tasks(json!([
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
        let plan = tasks(json!([
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
        let plan = tasks(json!([{"description": "a"}, {"description": "b", "agent": "w1"}]));
        assert_eq!(routes(&plan), [("web-worker", RoutedBy::Load), ("w1", RoutedBy::Named)]);
    }

    #[test]
    fn a_second_plan_counts_if_it_is_json_and_has_fewer_structural_defects() {
        let sound = tasks(json!(["a"]));
        let one = tasks(json!([{"description": "a", "depends_on": ["x"]}]));
        let two = tasks(json!([{"description": "a", "depends_on": ["x", "y"]}]));
        let routing = tasks(json!([{"description": "a", "agent": "x"}]));
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
        assert!(!tasks(chain).has_independent_tasks());
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
        assert_eq!(plan.tasks.len(), 20_001);
        assert!(plan.notes.iter().all(|note| note.text.chars().count() < 600));
        assert_eq!(order_of(&plan).len(), 20_001);
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
            let first = tasks(Value::from(entries));
            let again: Vec<Value> = first.tasks.iter().map(|task| json!({
                "id": &*task.id, "description": &*task.description, "agent": task.agent.as_str(),
                "depends_on": task.depends_on.iter().map(|id| &**id).collect::<Vec<_>>(),
            })).collect();
            let second = tasks(Value::from(again));
            prop_assert_eq!(notes(&second), Vec::<String>::new());
            prop_assert_eq!((ids(&second), needs(&second)), (ids(&first), needs(&first)));
            let agents = |plan: &Plan| plan.tasks.iter().map(|task| task.agent.clone()).collect::<Vec<_>>();
            prop_assert_eq!(agents(&second), agents(&first));
        }
    }
}
