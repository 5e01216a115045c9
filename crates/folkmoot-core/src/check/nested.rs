//! Members that are teams: their files are checked like any other, and what they may do is cut down to
//! what the member may (agents.md §§2, 5).

use std::sync::Arc;

use super::{
    Checked, Input, Source, check_reading,
    team::{Workplace, is_unset},
};
use crate::{
    diagnostic::{Diagnostic, Severity, Text, quoted},
    extension::Registry,
    file::item::{Fields, Item},
    names::file_stem,
    spec::Collaboration,
    team::{Agent, Nested, Target, narrow},
};

/// How deeply teams may nest: so many below the outermost.
const MAX_DEPTH: usize = 4;

/// Lets the team of a file answer for `agent`; gives where that team works. Nothing if it cannot.
pub(super) fn answer_for(
    agent: &mut Agent,
    item: &Item,
    input: &Input<'_>,
    registry: &Registry,
    told: &mut Vec<Diagnostic>,
) -> Option<Workplace> {
    let file = item.text()?;
    let path: Arc<str> = beside(input.around.last().map_or("", |it| it), file).into();
    let around: Vec<Arc<str>> = match input.around {
        [] => vec![own_name(input).into()],
        around => around.to_vec(),
    };
    if let Some(fault) = fault(&around, &path) {
        told.push(fault.at(&item.place));
        return None;
    }
    let around: Vec<Arc<str>> = around.into_iter().chain([path.clone()]).collect();
    let text = match (input.read)(file) {
        Ok(text) => text,
        Err(why) => {
            let message = format!("{} cannot be read: {why}", quoted(file));
            told.push(Diagnostic::error("bad_file", message).at(&item.place));
            return None;
        }
    };
    let read = |name: &str| (input.read)(&beside(file, name));
    let list = |name: &str| (input.list)(&beside(file, name));
    let inner = Input {
        source: Source::File(text.as_bytes()),
        name: file_stem(&path),
        path: None,
        overrides: &[],
        read: &read,
        list: &list,
        around: &around,
        ..*input
    };
    let checked = check_reading(&inner, registry);
    let source = Arc::new(Text { path: path.clone(), text: checked.text.as_str().into() });
    // A team that is a member is asked what it is asked, not the task of the run.
    let is_told = |it: &Diagnostic| it.severity != Severity::Hint && it.code != "empty_prompt";
    let about = checked.diagnostics.iter().filter(|it| is_told(it)).cloned();
    told.extend(about.map(|it| it.of(&source)));
    let Checked { spec, workplace, .. } = checked;
    let mut spec = spec?;
    if let Collaboration::Controller(_) | Collaboration::Coded(_) = &spec.collaboration {
        let message =
            format!("{} is led by a program of its own: it cannot be a member", quoted(file));
        told.push(Diagnostic::error("unsupported", message).at(&item.place));
        return None;
    }
    (spec.task, spec.recipe, spec.warnings) = ("".into(), None, Vec::new());
    agent.retries = 0;
    agent.target = Target::Team(Box::new(Nested { file: file.clone(), spec }));
    let before = agent.clone();
    narrow(agent);
    told.extend(narrowed(&before, agent).map(|it| it.at(&item.place)));
    Some(workplace)
}

/// Tells which grants of a team its member does not have itself.
fn narrowed(before: &Agent, after: &Agent) -> Option<Diagnostic> {
    let team = |of: &Agent| of.team().map(|it| it.spec.team.all()).unwrap_or_default();
    let (before_all, after_all) = (team(before), team(after));
    let lost: Vec<String> = before_all
        .iter()
        .zip(&after_all)
        .flat_map(|(then, now)| {
            let is_lost = |grant: &&Arc<str>| !now.is_granted(grant);
            then.grants.iter().filter(is_lost).map(|grant| format!("{grant} of {}", then.name))
        })
        .collect();
    let lost = (!lost.is_empty()).then(|| lost.join(", "))?;
    let message =
        format!("{} does not have all that its team is granted: {lost}", quoted(&after.name));
    let help = "a team may do what its member may: give the member these grants too".to_owned();
    Some(Diagnostic::warning("narrowed_grants", message).help(help))
}

/// Tells of a workspace that a team names which is a member: it works in that of the run.
pub(super) fn displaced(file: &Fields, input: &Input<'_>) -> Option<Diagnostic> {
    file.get("workdir").filter(|_| !input.around.is_empty())?;
    let message = "workdir has no effect in a team that is a member: it works where the run does";
    Some(Diagnostic::warning("ignored_parameter", message).at(file.key("workdir")))
}

/// Tells of what a limit on tokens or money around a team cannot bound in it.
pub(super) fn unbounded(agent: &Agent, is_metered: bool, is_priced: bool) -> Vec<Diagnostic> {
    let inner = agent.team().map(|nested| nested.spec.team.all()).unwrap_or_default();
    let told = inner.iter().flat_map(|it| {
        let later = it.fallbacks.iter().map(|fallback| &fallback.target);
        [&it.target].into_iter().chain(later).filter_map(|target| match target {
            target if is_metered && target.unmetered().is_some() => {
                let name = target.label().unwrap_or_default();
                let message =
                    format!("the limit cannot be kept: nobody knows what {name} will use");
                let help = "limit calls and time instead".to_owned();
                Some(Diagnostic::error("unbounded_agent", message).help(help))
            }
            Target::Model(model) if is_priced && model.price.is_none() && !is_unset(model) => {
                let message = format!("cost_usd cannot be kept: the price of {model} is not known");
                Some(Diagnostic::error("unknown_price", message))
            }
            Target::Model(_)
            | Target::Script(_)
            | Target::Demo
            | Target::Cli(_)
            | Target::Acp(_)
            | Target::A2a(_)
            | Target::Team(_) => None,
        })
    });
    told.collect()
}

/// Refuses teams where a way of working asks its agents in its own manner.
pub(super) fn misplaced(file: &Fields, what: &str) -> Vec<Diagnostic> {
    let items = file.list("agents").iter().filter_map(Item::fields);
    let teams = items.filter(|fields| fields.get("team").is_some());
    let told = teams.map(|fields| {
        let message = format!("no team can have a part in {what}");
        Diagnostic::error("unsupported", message).at(fields.key("team"))
    });
    told.collect()
}

/// Why a team cannot be a member below these files.
fn fault(around: &[Arc<str>], path: &Arc<str>) -> Option<Diagnostic> {
    let chain = || {
        let names: Vec<&str> = around.iter().chain([path]).map(|it| &**it).collect();
        names.join(" -> ")
    };
    if around.contains(path) {
        let message = format!("a team cannot be a member of itself: {}", chain());
        Some(Diagnostic::error("team_cycle", message))
    } else if around.len() > MAX_DEPTH {
        let message = format!("teams nest at most {MAX_DEPTH} deep: {}", chain());
        Some(Diagnostic::error("too_deep", message))
    } else {
        None
    }
}

/// What the outermost file is called in the paths of those that it names.
fn own_name<'a>(input: &Input<'a>) -> &'a str {
    let path = input.path.unwrap_or(input.name);
    path.rsplit(['/', std::path::MAIN_SEPARATOR]).next().unwrap_or(path)
}

/// The path of what `file`, itself a path, calls `name`.
fn beside(file: &str, name: &str) -> String {
    let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
    if folder.is_empty() || name.starts_with(['/', '~']) {
        return tidy(name);
    }
    tidy(&format!("{folder}/{name}"))
}

/// A path without steps that lead nowhere, so that a file has one name.
fn tidy(path: &str) -> String {
    let mut steps: Vec<&str> = Vec::new();
    for step in path.split('/') {
        match step {
            "." => {}
            "" if !steps.is_empty() => {}
            ".." if steps.last().is_some_and(|last| !matches!(*last, ".." | "")) => {
                steps.pop();
            }
            step => steps.push(step),
        }
    }
    steps.join("/")
}
