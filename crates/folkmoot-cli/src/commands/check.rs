use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, ValueEnum};
use folkmoot_core::{
    bounds::Bounds,
    check::{self, Checked},
    diagnostic::{Diagnostic, Severity},
    programs::roles::Role,
    spec::Collaboration,
    team::{Agent, Target},
};
use serde_json::{Value, json};

use super::team::{Origin, Team, UNREADABLE};
use crate::{
    app::{App, Output},
    exit::{Exit, Refusal},
    terminal::{
        diagnostics, figures,
        sarif::{self, Findings},
    },
};

/// Checks team files: errors, warnings, and what a run takes. No model is called.
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// The team files
    #[arg(value_name = "TEAM", required = true)]
    teams: Vec<PathBuf>,
    /// How the findings are printed, instead of --output
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Format>,
}

/// How findings are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    Text,
    /// One JSON value.
    Json,
    /// The format of code scanners, SARIF 2.1.0.
    Sarif,
}

impl Check {
    /// How results are printed, if its own flag says so.
    pub(super) fn output(&self) -> Option<Output> {
        self.format.map(|format| match format {
            Format::Text => Output::Text,
            Format::Json | Format::Sarif => Output::Json,
        })
    }

    pub(crate) fn run(self, app: &App) -> Result<Exit> {
        let reports = self.teams.iter().map(|file| Report::of(app, file));
        let reports: Vec<Report> = reports.collect::<Result<_>>()?;
        let is_valid = reports.iter().all(Report::is_valid);
        match &reports[..] {
            all if self.format == Some(Format::Sarif) => {
                let files: Vec<Findings> = all.iter().map(Report::findings).collect();
                app.print_json(&sarif::log(&files, &std::env::current_dir()?));
            }
            [Report { checked: Err(refusal), .. }] => return Err(refusal.0.clone().into()),
            [Report { checked: Ok(team), .. }] if app.wants_json() => {
                app.print_json(&report(team));
            }
            [Report { checked: Ok(team), .. }] => {
                team.tell_people(app);
                if let Some(line) = sound(team) {
                    app.print(&line);
                    for (name, reached) in servers(team) {
                        let line = format!("agents may use the MCP server {name}: {reached}");
                        app.print(&app.page().line(&line));
                    }
                }
            }
            all if app.wants_json() => {
                let files: Vec<Value> = all.iter().map(Report::as_json).collect();
                app.print_json(&json!({ "valid": is_valid, "files": files }));
            }
            all => {
                for report in all {
                    report.tell_people(app);
                }
            }
        }
        Ok(if is_valid { Exit::DONE } else { Exit::USAGE })
    }
}

/// One of the files, and what was found in it.
struct Report {
    file: PathBuf,
    /// The team, or why the file cannot be read, also as a finding.
    checked: std::result::Result<Team, (Refusal, [Diagnostic; 1])>,
}

impl Report {
    fn of(app: &App, file: &Path) -> Result<Report> {
        let checked = match Team::check(app, &Origin::File(file.to_owned()), None, &[]) {
            Ok(mut team) => {
                let unusable = team.unusable(Severity::Warning);
                team.checked.diagnostics.extend(unusable);
                team.leave_out_unusable();
                team.warn_of_exposed(app);
                Ok(team)
            }
            Err(error) => match error.downcast::<Refusal>()? {
                it if it.code == UNREADABLE => {
                    let found = Diagnostic::error(UNREADABLE, it.message.as_str());
                    Err((it, [found]))
                }
                other => return Err(other.into()),
            },
        };
        Ok(Report { file: file.to_owned(), checked })
    }

    fn is_valid(&self) -> bool {
        self.checked.as_ref().is_ok_and(|team| team.checked.is_valid())
    }

    fn findings(&self) -> Findings<'_> {
        let (text, found) = match &self.checked {
            Ok(Team { checked, .. }) => (&*checked.text, &checked.diagnostics[..]),
            Err((_, found)) => ("", &found[..]),
        };
        Findings { file: &self.file, text, found }
    }

    /// The report of a file among others, by its name.
    fn as_json(&self) -> Value {
        let mut told = json!({ "file": self.file.display().to_string() });
        let own = match &self.checked {
            Ok(team) => report(team),
            Err((_, [found])) => {
                json!({ "valid": false, "errors": [found.located("")], "warnings": [], "hints": [] })
            }
        };
        let fields = told.as_object_mut().expect("it is a map");
        fields.extend(own.as_object().cloned().unwrap_or_default());
        told
    }

    fn tell_people(&self, app: &App) {
        let name = self.file.display().to_string();
        let end = match &self.checked {
            Ok(team) => {
                team.tell_people(app);
                sound(team)
            }
            Err((_, found)) => {
                let source = diagnostics::Source { name: &name, text: "" };
                app.tell(&diagnostics::render(&app.screen(), source, found));
                None
            }
        };
        let end = end.unwrap_or_else(|| "not sound".to_owned());
        app.print(&format!("{}: {end}", app.page().line(&name)));
    }
}

/// A report as programs read it.
pub(crate) fn report(team: &Team) -> Value {
    let has_roles = team
        .checked
        .spec
        .as_ref()
        .is_some_and(|spec| matches!(spec.collaboration, Collaboration::Roles(_)));
    let agents: Vec<Value> = (team.checked.team.agents.iter())
        .map(|it| {
            let mut shown = agent(it);
            if let Some(role) = Role::named(it.id.as_str()).filter(|_| has_roles) {
                shown["role"] = role.name().into();
            }
            shown
        })
        .collect();
    let mut found = json!({
        "valid": team.checked.is_valid(),
        "errors": team.findings(Severity::Error),
        "warnings": team.findings(Severity::Warning),
        "hints": team.findings(Severity::Hint),
        "bounds": team.checked.bounds,
        "agents": agents,
    });
    let servers = servers(team);
    if !servers.is_empty() {
        let shown = |(name, reached): (_, String)| json!({ "name": name, "reached": reached });
        found["servers"] = servers.into_iter().map(shown).collect();
    }
    let mut stages = Vec::new();
    for (name, graph) in team.checked.graphs() {
        let termination = graph.termination.clone();
        match name {
            None => {
                found["graph"] = json!(graph);
                found["termination"] = json!(termination);
            }
            Some(name) => {
                stages.push(json!({ "name": name, "graph": graph, "termination": termination }));
            }
        }
    }
    for (stage, taken) in stages.iter_mut().zip(team.checked.stages()) {
        stage["bounds"] = json!(taken);
    }
    if !stages.is_empty() {
        found["stages"] = json!(stages);
    }
    found
}

/// The MCP servers that a run may start or contact, and what that is of each.
fn servers(team: &Team) -> Vec<(String, String)> {
    let Checked { team, workplace, .. } = &team.checked;
    let all = team.all();
    let is_needed = |name: &&std::sync::Arc<str>| {
        all.iter().any(|agent| {
            let of = agent.id.team();
            let own = if of.is_empty() {
                Some(&***name)
            } else {
                name.strip_prefix(of).and_then(|it| it.strip_prefix('/'))
            };
            own.is_some_and(|own| agent.servers.iter().any(|it| **it == *own))
        })
    };
    let needed = workplace.servers.iter().filter(|(name, _)| is_needed(name));
    needed.map(|(name, server)| (name.to_string(), server.reached())).collect()
}

/// An agent as programs read it.
pub(super) fn agent(agent: &Agent) -> Value {
    let mut shown = json!({
        "name": agent.name,
        "id": agent.id,
        "role": null,
        "description": agent.description,
        "capabilities": agent.capabilities,
        "model": label(&agent.target),
        "grants": agent.grants,
        "sandbox": agent.sandbox,
        "max_steps": agent.max_steps,
        "retries": agent.retries,
    });
    let later = agent.fallbacks.iter().map(|fallback| label(&fallback.target));
    let later: Vec<Option<String>> = later.collect();
    if !later.is_empty() {
        shown["fallbacks"] = json!(later);
    }
    if let Some(nested) = agent.team() {
        let inner: Vec<Value> = nested.spec.team.agents.iter().map(self::agent).collect();
        shown["team"] = json!({ "file": nested.file, "agents": inner });
    }
    shown
}

/// What answers for an agent, in a word.
pub(crate) fn label(target: &Target) -> Option<String> {
    match target {
        Target::Model(model) if check::is_unset(model) => None,
        Target::Model(_)
        | Target::Script(_)
        | Target::Demo
        | Target::Cli(_)
        | Target::Acp(_)
        | Target::A2a(_)
        | Target::Team(_) => target.label(),
    }
}

/// What a run of a sound team takes, in words.
fn sound(team: &Team) -> Option<String> {
    let bounds = team.checked.bounds.as_ref().filter(|_| team.checked.is_valid())?;
    let asks_freely =
        |it: &Collaboration| matches!(it, Collaboration::Controller(_) | Collaboration::Coded(_));
    if team.checked.spec.as_ref().is_some_and(|spec| asks_freely(&spec.collaboration)) {
        let most = bounds.total.calls.max;
        return Some(format!(
            "sound: nothing but the limits bounds a run; it takes {most} calls at most"
        ));
    }
    Some(in_words(bounds))
}

fn in_words(bounds: &Bounds) -> String {
    let started = bounds.total.started.max;
    if let Some(started) = started.filter(|started| *started > bounds.total.calls.max) {
        let turns = match (bounds.total.calls.min, bounds.total.calls.max) {
            (1, 1) => "1 turn".to_owned(),
            (least, most) if least == most => format!("{most} turns"),
            (least, most) => format!("{least} to {most} turns"),
        };
        let calls = figures::grouped(started);
        return format!("sound: a run takes {turns}, with tools and retries at most {calls} calls");
    }
    let calls = match (bounds.total.calls.min, bounds.total.calls.max) {
        (1, 1) => return "sound: a run takes 1 call".to_owned(),
        (least, most) if least == most => format!("{most} calls"),
        (least, most) => format!("{least} to {most} calls"),
    };
    let order = match bounds.critical_path {
        all if all > 1 && all == bounds.total.calls.max => "one after the other".to_owned(),
        _ => figures::in_a_row(bounds),
    };
    format!("sound: a run takes {calls}, {order}")
}
