//! Defects of plans and their repair (strategies.md §5.2).

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{Format, Note, Plan, RoutedBy, Task, cycles::break_cycles, routing::Router};
use crate::{
    call::Outcome,
    team::Agent,
    text::shorten,
    verdict::plan::{self, Dependencies, Entry, PlanReading},
    words::Language,
};

/// The most characters of an id or name in a note.
const NAME: usize = 80;

/// The most characters of an error in a note.
const ERROR: usize = 200;

/// How many of the tasks that are too many are listed; the note counts all of them.
pub(crate) const LISTED: usize = 1000;

/// The plan that the reply to the plan call gives, for the whole work `task`, of which `max_tasks` parts
/// may run, each done by one of `workers`. Panics without workers: specs are checked.
pub fn repair(outcome: &Outcome, task: &str, workers: &[&Agent], max_tasks: u32) -> Plan {
    let max_tasks = usize::try_from(max_tasks).unwrap_or(usize::MAX);
    let reading = match outcome {
        Ok(answer) => plan::read(answer),
        Err(fault) => {
            let fault = fault.to_string();
            let why = shorten(&fault, ERROR, Language::English);
            let why = format!("plan call failed ({why})");
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

fn excerpt(text: &str) -> Cow<'_, str> {
    shorten(text, NAME, Language::English)
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
        let parts = self.parts.into_iter().zip(needs).zip(routes).enumerate();
        let tasks = parts.map(|(place, ((part, needs), (worker, routed_by)))| Task {
            id: part.id,
            description: part.description,
            agent: workers[worker].id.clone(),
            routed_by,
            depends_on: needs.into_iter().map(|need| ids[need].clone()).collect(),
            over_max: place >= max_tasks,
        });
        Plan { tasks: tasks.collect(), format, notes: self.notes }
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
        self.parts.truncate(max_tasks.saturating_add(LISTED));
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
            for name in part.depends_on.ids().iter().filter(|name| seen.insert(*name)) {
                match places.get(&**name) {
                    None => self.notes.push(structural(format!(
                        "\"{id}\" depends on unknown \"{}\": dropped",
                        excerpt(name)
                    ))),
                    Some(&other) if other == place => {
                        to_itself.push(structural(format!("\"{id}\" depends on itself: dropped")));
                    }
                    Some(&other) => needed.push(other),
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
        let mut chosen = Vec::with_capacity(named.len());
        for (place, (part, named)) in self.parts.iter().zip(named).enumerate() {
            if let Some(worker) = named {
                chosen.push((worker, RoutedBy::Named));
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
            chosen.push((worker, rule));
        }
        self.note_unknown_capabilities(&router);
        chosen
    }

    fn note_unknown_capabilities(&mut self, router: &Router) {
        for part in &self.parts {
            let mut seen = BTreeSet::new();
            let unknown = part.required.iter().filter(|tag| {
                !tag.is_empty() && !router.is_capability(tag) && seen.insert(tag.to_lowercase())
            });
            for tag in unknown {
                let (tag, id) = (excerpt(tag), excerpt(&part.id));
                self.notes
                    .push(minor(format!("nobody has capability \"{tag}\" (\"{id}\"): ignored")));
            }
        }
    }
}
