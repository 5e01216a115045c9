use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use folkmoot_agents::Rehearsal;
use folkmoot_core::{
    bounds::Bounds,
    sim::{Sim, audit, hazard::Hazards, weather::Weather},
    spec::{Spec, Warning},
    team::Target,
    view::{self, Outcome},
};
use folkmoot_runtime::engine::{Engine, EngineError};

use super::{drive::tell, rehearsals, team::TeamArgs};
use crate::{
    app::{self, App, Output},
    exit::{Exit, Refusal},
    terminal::stream,
};

/// Rehearses a team against its scripts, in virtual time. No model is called.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  folkmoot simulate team.yaml \"Review this design\"
  folkmoot simulate team.yaml \"评审这个方案\" --runs 10000 --faults
  folkmoot simulate team.yaml \"评审这个方案\" --seed 4711 --faults")]
#[command(after_long_help = "\
Faults, of which --faults takes a list:
  latency      requests take up to 4 s, one in 20 up to 2 min
  errors       requests fail, with every kind of failure
  rate-limits  the provider asks to wait, up to 90 s
  malformed    replies are broken, contradictory, hostile, or not what was asked for
  blank        replies say nothing
  cut-off      replies break off after some of their text
  silence      no answer comes, until a clock strikes; after 10 min where there is none
  duplicates   answers come twice
  late         answers come when nobody waits for them any longer
  crashes      the engine dies between any two steps; another one goes on from the record

Each befalls about one request in 20, or one step in 12. What fails is tried again inside the
call as the `retries` of its agent allow; what a script says, an error too, is its last word.

With --runs, every run is judged: it must have ended with nothing open, within its limits, its
record without gaps and its replay the same. A run that breaks such a rule shows a fault of
Folkmoot's own and is told apart from one that merely failed. The exit code is 0 if all runs
kept the rules, whether or not they were done; 1 if one did not; 130 after Ctrl-C, with what was
done by then.

With --runs no run is kept, unless --keep is given. Each can be had again, with the same
--faults, by its seed.

Examples:
  folkmoot simulate team.yaml \"Review this design\"
  folkmoot simulate team.yaml \"评审这个方案\" --runs 10000 --faults
  folkmoot simulate team.yaml \"评审这个方案\" --runs 10000 --faults errors,crashes --json
  folkmoot simulate team.yaml \"评审这个方案\" --seed 4711 --faults")]
pub(crate) struct Simulate {
    /// What happens at the same instant is shuffled, and faults are chosen, by this; the same seed
    /// gives the same run
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// Plays so many runs, with this seed and those after it, and tells what came of them together
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    runs: Option<u64>,
    /// Lets things go wrong: all that can, or those of this list (see --help)
    #[arg(long, value_name = "KINDS", num_args = 0..=1, default_missing_value = "all")]
    faults: Option<String>,
    /// With --runs: keeps the failed runs that are listed
    #[arg(long, requires = "runs")]
    keep: bool,
    #[command(flatten)]
    team: TeamArgs,
}

impl Simulate {
    pub(crate) async fn run(self, app: &App) -> Result<Exit> {
        let hazards = self.faults.as_deref().map_or(Ok(Hazards::default()), hazards)?;
        let spec = match self.team.check(app)?.rehearsed_spec(app) {
            Ok(spec) => Arc::new(with_stand_ins(spec)),
            Err(exit) => return Ok(exit),
        };
        let setting = Setting::new(spec, hazards, app::now());
        match self.runs {
            Some(runs) => rehearsals::play(&setting, self.seed, runs, self.keep, app).await,
            None => one(&setting, self.seed, app).await,
        }
    }
}

fn hazards(list: &str) -> Result<Hazards, Refusal> {
    Hazards::parse(list).map_err(|unknown| {
        let last = "put --faults behind the task, or write --faults=all".to_owned();
        let help = unknown.suggestion.clone().unwrap_or(last);
        Refusal::new("unknown_fault", unknown.to_string()).help(help)
    })
}

/// All that simulated runs of one team have in common.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub(super) spec: Arc<Spec>,
    pub(super) hazards: Hazards,
    pub(super) bounds: Bounds,
    wall: u64,
}

impl Setting {
    fn new(spec: Arc<Spec>, hazards: Hazards, wall: u64) -> Setting {
        let Spec { collaboration, team, limits, task, .. } = &*spec;
        let bounds = Bounds::of(collaboration, team, limits, Some(task));
        Setting { spec, hazards, bounds, wall }
    }

    /// The run of a seed.
    pub(super) fn live(&self, seed: u64) -> Sim {
        Weather::new(Rehearsal, seed, self.hazards.clone()).live(self.spec.clone(), self.wall)
    }
}

async fn one(setting: &Setting, seed: u64, app: &App) -> Result<Exit> {
    let (sim, outcome, is_broken) = played(setting, seed, &app.engine()?).await?;
    let exit = Exit::from(outcome.status);
    tell(&outcome, &sim.spec.limits, app);
    if app.output() == Output::StreamJson {
        let id = &outcome.run_id;
        sim.log.iter().for_each(|record| app.print(&stream::record(id, record)));
        app.print(&stream::result(&outcome));
    }
    Ok(if is_broken { exit.or_failed() } else { exit })
}

/// Plays and keeps the run of a seed; tells what came of it, and whether it broke a rule.
async fn played(
    setting: &Setting,
    seed: u64,
    engine: &Engine,
) -> Result<(Sim, Outcome, bool), EngineError> {
    let sim = setting.live(seed);
    let id = engine.keep(&sim.spec, &sim.log).await?;
    let mut outcome = view::outcome(id.as_str(), &sim.spec, &sim.run, false);
    let broken = audit::audit(&sim, &setting.bounds).err();
    outcome.warnings.extend(broken.iter().map(|broken| Warning {
        code: "broken_rule".into(),
        message: format!("this is a fault of Folkmoot's own: {broken}").into(),
    }));
    Ok((sim, outcome, broken.is_some()))
}

/// What came of the rehearsal of a checked team that somebody asks for elsewhere.
pub(crate) async fn rehearsed(
    engine: &Engine,
    spec: Spec,
    seed: u64,
    faults: Option<&str>,
) -> Result<Outcome, Refusal> {
    let hazards = faults.map_or(Ok(Hazards::default()), hazards)?;
    let setting = Setting::new(Arc::new(with_stand_ins(spec)), hazards, app::now());
    Ok(played(&setting, seed, engine).await?.1)
}

/// Warns of the agents for which the offline demo stands in.
fn with_stand_ins(mut spec: Spec) -> Spec {
    let models = spec.team.everyone().filter(|it| matches!(it.target, Target::Model(_)));
    let warnings: Vec<Warning> = models
        .map(|agent| Warning {
            code: "stand_in".into(),
            message: format!("\"{}\" has no script: the offline demo stands in", agent.name).into(),
        })
        .collect();
    spec.warnings.extend(warnings);
    let unseen = spec.collaboration.requirements().into_iter();
    let unseen = unseen.filter(|it| it.script.is_empty() && it.gate.needs_workspace());
    let unseen: Vec<Warning> = unseen
        .map(|it| Warning {
            code: "stand_in".into(),
            message: format!("\"{}\" has no script: it counts as passed", it.gate).into(),
        })
        .collect();
    spec.warnings.extend(unseen);
    spec
}
