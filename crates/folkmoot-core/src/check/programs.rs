//! From what a file says of a program that is not built in to one that can be followed
//! (extensions.md §§4, 5).

use std::collections::BTreeSet;

use crate::{
    check::{graph, listing::Listing, roles},
    diagnostic::{Diagnostic, quoted},
    extension::Registry,
    file::item::Fields,
    names,
    programs::{
        Clocks, Controller, Roundtable,
        roundtable::{USUAL_POSTS, USUAL_TURNS},
    },
    spec::Collaboration,
    team::Team,
};

/// The key that asks for one.
pub(super) const PROGRAM: &str = "program";

/// The name of the round table.
const TABLE: &str = "roundtable";

/// What may stand beside it.
const BESIDE_TABLES: [&str; 7] =
    [PROGRAM, "agents", "timeout", "call_timeout", "max_posts", "max_turns", "scribe"];

/// What may stand beside a controller.
const BESIDE_CONTROLLERS: [&str; 4] = [PROGRAM, "agents", "timeout", "call_timeout"];

/// Fills in the program that `given` asks for; tells everything that keeps it from running.
pub(super) fn resolve(
    given: &Fields,
    team: &Team,
    registry: &Registry,
    folder: &str,
    told: &mut Vec<Diagnostic>,
) -> Option<Collaboration> {
    let item = given.get(PROGRAM)?;
    let is_table = item.text().is_some_and(|name| name.trim() == TABLE);
    let is_known = |name: &str| name == TABLE || registry.programs().any(|known| known == name);
    let is_sure = item.text().is_none_or(|name| is_known(name.trim()));
    if team.agents.is_empty() && is_sure {
        told.push(Diagnostic::error("no_agents", "the team has no agents").at(&given.place));
        return None;
    }
    let beside: &[&str] = match item.fields() {
        Some(_) => &BESIDE_CONTROLLERS,
        None if is_table => &BESIDE_TABLES,
        None => &[PROGRAM],
    };
    told.extend(others(given, beside));
    if is_table {
        return roundtable(given, team, told).map(Collaboration::Roundtable);
    }
    let Some(fields) = item.fields() else {
        let name = item.text()?.trim();
        let coded = registry.coded(name).map(Collaboration::Coded);
        if coded.is_none() {
            let known: Vec<&str> =
                [roles::NAME, TABLE].into_iter().chain(registry.programs()).collect();
            let message = format!("unknown program {}", quoted(name));
            let help = names::suggestion(name, known.iter().copied());
            let usual = || "a program of your own is a process: program: { command: [...] }".into();
            let unknown = Diagnostic::error("unknown_program", message).at(&item.place);
            told.push(unknown.help(Some(help.unwrap_or_else(usual))));
        }
        return coded;
    };
    let agents = participants(given, team, told);
    let command = fields.texts("command");
    if command.first().is_some_and(|program| program.trim().is_empty()) {
        let message = "command begins with the program to run; it begins with nothing";
        told.push(Diagnostic::error("bad_value", message).at(fields.place_of("command")));
    }
    let clocks = clocks(given);
    Some(Collaboration::Controller(Controller {
        command,
        folder: folder.into(),
        agents: agents.ids(),
        clocks,
    }))
}

fn clocks(given: &Fields) -> Clocks {
    Clocks {
        timeout: given.time("timeout").unwrap_or(Clocks::default().timeout),
        call_timeout: given.time("call_timeout").flatten(),
    }
}

/// A round table of those in `agents`, else of all.
fn roundtable(given: &Fields, team: &Team, told: &mut Vec<Diagnostic>) -> Option<Roundtable> {
    let mut agents = participants(given, team, told).ids();
    let mut seen = BTreeSet::new();
    agents.retain(|agent| seen.insert(agent.clone()));
    let scribe = given.get("scribe").and_then(|item| Some((item, item.text()?)));
    let found = scribe.and_then(|(_, name)| super::listing::find(team, name));
    if let Some((item, name)) = scribe.filter(|_| found.is_none()) {
        let message = format!("unknown agent {} in scribe", quoted(name));
        let help = names::suggestion(name, team.agents.iter().map(|agent| &*agent.name));
        told.push(Diagnostic::error("unknown_agent", message).at(&item.place).help(help));
    }
    Some(Roundtable {
        agents: Some(agents).filter(|agents| !agents.is_empty())?,
        max_posts: given.whole("max_posts").unwrap_or(USUAL_POSTS),
        max_turns: given.whole("max_turns").unwrap_or(USUAL_TURNS),
        scribe: found.map(|agent| agent.id.clone()),
        clocks: clocks(given),
    })
}

/// Who can be asked: those in `agents`, else all.
fn participants<'t>(given: &Fields, team: &'t Team, told: &mut Vec<Diagnostic>) -> Listing<'t> {
    for item in given.list("agents") {
        let Some(name) = item.text().filter(|name| super::listing::find(team, name).is_none())
        else {
            continue;
        };
        let message = format!("unknown agent {} in agents", quoted(name));
        let help = names::suggestion(name, team.agents.iter().map(|agent| &*agent.name));
        told.push(Diagnostic::error("unknown_agent", message).at(&item.place).help(help));
    }
    Listing::participants(given, team)
}

/// What else is said of how the team works: that is another way of working, or has no effect.
fn others(given: &Fields, beside: &[&str]) -> Vec<Diagnostic> {
    let tell = |key: &'static str| {
        let is_other = key == "strategy" || graph::knows(key);
        let told = if is_other {
            let message = format!("a collaboration is one thing; found program and {key}");
            Diagnostic::error("bad_config", message)
        } else {
            let message = format!("{key} has no effect beside program");
            Diagnostic::warning("ignored_parameter", message)
        };
        told.at(given.key(key))
    };
    given.names().filter(|key| !beside.contains(key)).map(tell).collect()
}
