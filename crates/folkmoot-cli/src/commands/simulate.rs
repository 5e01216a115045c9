use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use folkmoot_agents::Rehearsal;
use folkmoot_core::{
    sim::Sim,
    spec::{Spec, Warning},
    team::Target,
    view,
};

use super::{drive::tell, team::TeamArgs};
use crate::{
    app::{self, App, Output},
    exit::Exit,
    terminal::stream,
};

/// Rehearses a team against its scripts, in virtual time. No model is called.
#[derive(Debug, Args)]
pub(crate) struct Simulate {
    /// Shuffles what happens at the same instant; the same seed gives the same run
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    #[command(flatten)]
    team: TeamArgs,
}

impl Simulate {
    pub(crate) async fn run(self, app: &App) -> Result<Exit> {
        let spec = match self.team.check(app)?.rehearsed_spec(app) {
            Ok(spec) => Arc::new(with_stand_ins(spec)),
            Err(exit) => return Ok(exit),
        };
        let sim = Sim::start(spec, self.seed, app::now(), &mut Rehearsal).finish(&mut Rehearsal);
        let id = app.engine()?.keep(&sim.spec, &sim.log).await?;
        let outcome = view::outcome(id.as_str(), &sim.spec, &sim.run, false);
        tell(&outcome, &sim.spec.limits, app);
        if app.output() == Output::StreamJson {
            sim.log.iter().for_each(|record| app.print(&stream::record(id.as_str(), record)));
            app.print(&stream::result(&outcome));
        }
        Ok(outcome.status.into())
    }
}

/// Warns of the agents for which the offline demo stands in.
fn with_stand_ins(mut spec: Spec) -> Spec {
    let models = spec.team.agents.iter().filter(|it| matches!(it.target, Target::Model(_)));
    let warnings: Vec<Warning> = models
        .map(|agent| Warning {
            code: "stand_in".into(),
            message: format!("\"{}\" has no script: the offline demo stands in", agent.name).into(),
        })
        .collect();
    spec.warnings.extend(warnings);
    spec
}
