//! From what a file says of a program that is not built in to one that can be followed
//! (extensions.md §§4, 5).

use crate::{
    check::{graph, listing::Listing, roles},
    diagnostic::{Diagnostic, quoted},
    extension::Registry,
    file::item::Fields,
    names,
    programs::{Clocks, Controller},
    spec::Collaboration,
    team::Team,
};

/// The key that asks for one.
pub(super) const PROGRAM: &str = "program";

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
    let is_known = |name: &str| registry.programs().any(|known| known == name);
    let is_sure = item.text().is_none_or(|name| is_known(name.trim()));
    if team.agents.is_empty() && is_sure {
        told.push(Diagnostic::error("no_agents", "the team has no agents").at(&given.place));
        return None;
    }
    let beside: &[&str] = if item.fields().is_some() { &BESIDE_CONTROLLERS } else { &[PROGRAM] };
    told.extend(others(given, beside));
    let Some(fields) = item.fields() else {
        let name = item.text()?.trim();
        let coded = registry.coded(name).map(Collaboration::Coded);
        if coded.is_none() {
            let known: Vec<&str> = [roles::NAME].into_iter().chain(registry.programs()).collect();
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
    let clocks = Clocks {
        timeout: given.time("timeout").unwrap_or(Clocks::default().timeout),
        call_timeout: given.time("call_timeout").flatten(),
    };
    Some(Collaboration::Controller(Controller {
        command,
        folder: folder.into(),
        agents: agents.ids(),
        clocks,
    }))
}

/// Whom a controller can ask: those in `agents`, else all.
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
