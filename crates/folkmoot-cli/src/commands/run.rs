use std::sync::Arc;

use anyhow::Result;
use clap::Args;

use super::{drive::drive, team::TeamArgs};
use crate::{app::App, exit::Exit};

/// Runs a team on a task.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  folkmoot run --demo \"Which database should we use?\"
  folkmoot run team.yaml \"Review this design\" --strategy debate --rounds 2
  folkmoot run --demo --agents 产品,研发,运营 --strategy consensus \"Q3 优先做哪个功能？\"")]
pub(crate) struct Run {
    /// Refuses to start unless the worst case is proved to fit the limits
    #[arg(long)]
    strict_budget: bool,
    #[command(flatten)]
    team: TeamArgs,
}

impl Run {
    pub(crate) async fn run(self, app: &App) -> Result<Exit> {
        let team = self.team.check(app)?.within_budget(self.strict_budget);
        let means = team.means();
        let spec = match team.spec(app) {
            Ok(spec) => spec,
            Err(exit) => return Ok(exit),
        };
        // Kept until the result is printed: to close the store takes the disk its time.
        let engine = means.given_to(app.engine()?);
        let driver = engine.start(Arc::new(spec)).await?;
        drive(driver, app).await
    }
}
