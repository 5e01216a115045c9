use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use folkmoot_core::request::{self, Kind, Request};
use serde_json::{Map, Value};

use super::{
    drive::carry_out,
    team::{Team, from_stdin_if_asked},
};
use crate::{app::App, exit::Exit};

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
        let (file, is_strict) = (self.team.clone(), self.strict_budget);
        let request = self.request()?;
        let team = Team::asked(app, request.clone(), file)?.within_budget(is_strict);
        carry_out(app, &request, team).await
    }

    fn request(self) -> Result<Request> {
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
        let request = Request::new(Kind::Collaborate, Map::new());
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
