use std::{path::PathBuf, sync::Arc};

use anyhow::Result;
use clap::Args;
use folkmoot_core::{
    diagnostic::Diagnostic,
    request::{self, Refused},
};
use serde_json::Value;

use super::{
    drive::drive,
    team::{Origin, Team, from_stdin_if_asked},
};
use crate::{
    app::App,
    exit::{Exit, Refusal},
};

/// Lets roles work on one task by a ready-made pattern: review, consensus or debate.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  folkmoot collaborate review \"Write a parser for durations\"
  folkmoot collaborate debate \"Should we rewrite it?\" --providers '{\"arbiter\": \"openai/gpt-5\"}'
  folkmoot collaborate review \"Rehearse it\" --team cast.yaml --max-rounds 5
  folkmoot collaborate --list")]
pub(crate) struct Collaborate {
    /// review, consensus or debate
    #[arg(allow_hyphen_values = true)]
    pattern: Option<String>,
    /// The task; `-` reads it from standard input
    #[arg(value_name = "TASK")]
    task: Option<String>,
    /// Lists the patterns and runs nothing
    #[arg(long)]
    list: bool,
    /// What answers for which role, as JSON: {"reviewer": "gemini"}
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    providers: Option<String>,
    /// The most turns; 0 is as many as the pattern usually has
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    max_rounds: Option<String>,
    /// The most time the run may take: seconds, `30m`, or `none` [default: 1800]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    timeout: Option<String>,
    /// What who works and revises may do: read-only, write or full
    #[arg(long, value_name = "LEVEL", allow_hyphen_values = true)]
    sandbox: Option<String>,
    /// Who is asked if a review gives no signal: provider/model, or an alias
    #[arg(long, value_name = "TARGET", allow_hyphen_values = true)]
    judge: Option<String>,
    /// `literal` reads replies by plain keywords
    #[arg(long, value_name = "HOW", allow_hyphen_values = true)]
    signals: Option<String>,
    /// A team file whose agents stand in for the roles they are named after
    #[arg(long, value_name = "FILE")]
    team: Option<PathBuf>,
    /// The workspace
    #[arg(long, value_name = "FOLDER", allow_hyphen_values = true)]
    workdir: Option<String>,
    /// Refuses to start unless the worst case is proved to fit the limits
    #[arg(long)]
    strict_budget: bool,
}

impl Collaborate {
    pub(crate) async fn run(self, app: &App) -> Result<Exit> {
        if self.list {
            list(app);
            return Ok(Exit::DONE);
        }
        let team = match self.team.clone() {
            Some(file) => Origin::File(file),
            None => Origin::Agents(Vec::new()),
        };
        let is_strict = self.strict_budget;
        let request = self.request()?;
        let judged = request.judge();
        let task = Some(judged.task.as_str()).filter(|task| !task.trim().is_empty());
        let mut checked = None;
        let mut found: Vec<Diagnostic> = Vec::new();
        if !judged.overrides.is_empty() {
            let team = Team::check(app, &team, task, &judged.overrides)?;
            found.clone_from(&team.checked.diagnostics);
            checked = Some(team);
        }
        let is_told_of_a_file = judged.refused.is_empty() && !app.wants_json();
        let refused = request.refusals(judged, found, &app.config()?.catalog());
        let refused = Refusal::all(refused.into_iter().map(Refusal::from));
        let team = match (checked, refused) {
            (None, None) => return Ok(Exit::USAGE),
            (Some(team), Some(_)) if is_told_of_a_file => team,
            (_, Some(refused)) => return Err(refused.into()),
            (Some(team), None) => team,
        };
        let means = team.means();
        let spec = match team.within_budget(is_strict).spec(app) {
            Ok(spec) => spec,
            Err(exit) => return Ok(exit),
        };
        // Kept until the result is printed: to close the store takes the disk its time.
        let engine = means.given_to(app.engine()?);
        let driver = engine.start(Arc::new(spec)).await?;
        drive(driver, app).await
    }

    fn request(self) -> Result<request::Collaborate> {
        let task = self.task.map(from_stdin_if_asked).transpose()?;
        let fields = [
            ("pattern", self.pattern),
            ("task", task),
            ("providers", self.providers),
            ("max_rounds", self.max_rounds),
            ("timeout", self.timeout),
            ("sandbox", self.sandbox),
            ("judge", self.judge),
            ("signals", self.signals),
            ("workdir", self.workdir),
        ];
        let request = request::Collaborate::default();
        Ok(fields.into_iter().fold(request, |request, (name, text)| request.with(name, text)))
    }
}

fn list(app: &App) {
    let patterns = request::patterns();
    if app.wants_json() {
        return app.print_json(&patterns);
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    for pattern in patterns["patterns"].as_array().into_iter().flatten() {
        let roles: Vec<String> =
            pattern["roles"].as_array().into_iter().flatten().map(text).collect();
        let (name, description) = (text(&pattern["name"]), text(&pattern["description"]));
        app.print(&format!("{name:<9}  {description}\n{:<9}  roles: {}", "", roles.join(", ")));
    }
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Refusal {
        let Refused { code, message, help, allowed } = refused;
        Refusal { help, allowed, ..Refusal::new(code, message) }
    }
}
