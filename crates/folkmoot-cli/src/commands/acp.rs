use std::{path::Path, sync::Arc, time::Duration};

use agent_client_protocol::Stdio;
use anyhow::Result;
use clap::Args;
use folkmoot_agents::end_orphans;
use folkmoot_core::{refusal::Refusal, request::Form, team::Sandbox};
use folkmoot_server::{Hall, Office, Ready, acp};

use super::{drive::Signals, team::TeamArgs};
use crate::{
    app::App,
    exit::{self, Exit},
    office::Local,
};

/// Lets editors talk to a team, by the Agent Client Protocol on standard input and output.
///
/// Each prompt is a run in the folder that the editor has open, unless --workdir names another one.
/// When the editor goes away, runs under way are let go of: `folkmoot resume` goes on with them.
#[derive(Debug, Args)]
#[command(after_help = "Examples, as the command of an agent in an editor's settings:
  folkmoot acp /path/to/team.yaml
  folkmoot acp --demo")]
pub(crate) struct Acp {
    #[command(flatten)]
    team: TeamArgs,
}

impl Acp {
    pub(crate) async fn run(self, app: &Arc<App>) -> Result<Exit> {
        // What is wrong with the team is told before an editor waits for it.
        self.team.check_for_any_task(app)?.sound_spec()?;
        let mut signals = Signals::listen()?;
        // Whoever starts the editor's agent says what it may do, in the team or by flags.
        let office = Arc::new(Local::new(app.clone(), Sandbox::Full, Path::new("/"))?);
        end_orphans().await;
        let hall = Hall::new(office.clone(), MOST_AT_ONCE);
        let (asked, team) = (app.clone(), self.team);
        let prepare = move |task: &str, folder: &Path| -> Result<Ready, Refusal> {
            let team = team.check_in(&asked, task, folder);
            let team = team.map_err(|error| exit::refusal(&error))?;
            let turns = team.checked.bounds.as_ref().map(|bounds| bounds.turns.max);
            let means = team.means();
            let spec = team.sound_spec()?;
            let engine = means.given_to(office.engine().clone());
            Ok(Ready { spec, engine, form: Form::Unified, turns })
        };
        let served = tokio::select! {
            served = acp::serve(hall.clone(), Arc::new(prepare), Stdio::new()) => served,
            () = signals.next() => Ok(()),
        };
        hall.close(Duration::ZERO).await;
        if let Err(why) = served {
            app.tell(&format!("error: the editor does not speak the protocol: {why}"));
            return Ok(Exit::FAILED);
        }
        Ok(Exit::DONE)
    }
}

/// How many runs of an editor's sessions are driven at once.
const MOST_AT_ONCE: usize = 8;
