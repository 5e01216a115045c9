//! Starts controllers, and talks to them (extensions.md §4).
//!
//! A controller runs in the folder of its team file, with a clean environment, and may only read.

use std::{collections::BTreeMap, io, path::Path, sync::Arc};

use async_trait::async_trait;
use folkmoot_core::{
    call::{FailureKind, Fault, Usage},
    check::Environment,
    gate::Workspace,
    programs::{
        Controller,
        controller::{ANSWER_TIME, Briefing},
    },
    spec::{Collaboration, Spec},
    team::Sandbox,
};
use folkmoot_runtime::{
    backend::Response,
    controllers::{Controllers, Dialogue, NoControllers},
};
use tokio::{sync::Mutex, time::Instant};

use crate::process::{self, Beyond, Exit, Process, Silence, Talk};

/// How much of what a controller writes on its error output is kept, in bytes.
const ERRORS: usize = 4 * 1024;

/// Starts controllers on this machine.
#[derive(Clone, Debug, Default)]
pub struct Starter {
    environment: Arc<BTreeMap<String, String>>,
}

impl Starter {
    /// One whose controllers get what they need of `ours`, the environment of this process.
    pub fn new(ours: impl IntoIterator<Item = (String, String)>) -> Starter {
        let policy = Environment::default();
        let environment = process::environment(&policy, &ours.into_iter().collect());
        Starter { environment: environment.into() }
    }
}

impl Controllers for Starter {
    fn meet(&self, spec: &Spec) -> Arc<dyn Dialogue> {
        let Collaboration::Controller(controller) = &spec.collaboration else {
            return Arc::new(NoControllers);
        };
        Arc::new(Local {
            command: controller.command.iter().map(ToString::to_string).collect(),
            folder: controller.folder.clone(),
            environment: self.environment.clone(),
            workspace: spec.workspace.clone().unwrap_or_default(),
            under_way: Mutex::new(None),
        })
    }
}

/// A controller on this machine.
struct Local {
    command: Vec<String>,
    folder: Arc<str>,
    environment: Arc<BTreeMap<String, String>>,
    workspace: Workspace,
    under_way: Mutex<Option<UnderWay>>,
}

/// A process, and what it was told last.
struct UnderWay {
    talk: Talk,
    told: Briefing,
}

#[async_trait]
impl Dialogue for Local {
    async fn tell(&self, briefing: Briefing) -> Response {
        let mut under_way = self.under_way.lock().await;
        // It is put back only when it has answered: whoever stops waiting ends the process.
        let earlier = under_way.take();
        let outcome = match self.exchange(earlier, &briefing).await {
            Ok((line, talk)) => {
                *under_way = Some(UnderWay { talk, told: briefing });
                Controller::outcome(&line)
            }
            Err(fault) => Err(fault),
        };
        Response { outcome, usage: Usage::default() }
    }
}

impl Local {
    /// Tells a process what is new, or one that is started anew everything.
    async fn exchange(
        &self,
        earlier: Option<UnderWay>,
        briefing: &Briefing,
    ) -> Result<(String, Talk), Fault> {
        let until = Instant::now() + std::time::Duration::from(ANSWER_TIME);
        if let Some(UnderWay { mut talk, told }) = earlier
            && briefing.follows(&told)
            && talk.has_listened()
        {
            match talk.say(&briefing.news(), until).await {
                Ok(line) => return Ok((line, talk)),
                // One that answers once and ends is told everything next time.
                Err(Silence::Ended(_)) => drop(talk),
                Err(silence) => return Err(told_why(silence, talk).await),
            }
        }
        let mut talk = self.start().await.map_err(|error| self.unstarted(&error))?;
        match talk.say(&briefing.whole(), until).await {
            Ok(line) => Ok((line, talk)),
            Err(silence) => Err(told_why(silence, talk).await),
        }
    }

    async fn start(&self) -> io::Result<Talk> {
        let folder = Path::new(&*self.folder);
        let process = Process {
            argv: &self.command,
            dir: folder,
            environment: &self.environment,
            stdin: &[],
            sandbox: self.level(),
            beyond: Beyond::default(),
            workspace: folder,
            time: ANSWER_TIME.into(),
            kept: (0, ERRORS),
            merged: false,
        };
        Talk::begin(&process).await
    }

    /// A controller may only read; it runs unconfined where nothing can confine it and the team says so.
    fn level(&self) -> Sandbox {
        match self.workspace.sandbox {
            Sandbox::Full if process::unenforceable().is_some() => Sandbox::Full,
            Sandbox::ReadOnly | Sandbox::Write | Sandbox::Full => Sandbox::ReadOnly,
        }
    }

    fn unstarted(&self, error: &io::Error) -> Fault {
        let program = self.command.first().map_or("", |it| it);
        process::unstarted(format_args!("{program} in {}", self.folder), error)
    }
}

/// Ends a process that gave no answer, and tells why.
async fn told_why(silence: Silence, talk: Talk) -> Fault {
    let (kind, why) = match silence {
        Silence::Ended(Exit::Code(code)) => {
            (FailureKind::Harness, format!("it ended with code {code} and gave no answer"))
        }
        Silence::Ended(Exit::Killed(_) | Exit::TimedOut) => {
            (FailureKind::Harness, "it was killed and gave no answer".to_owned())
        }
        Silence::TooSlow => {
            (FailureKind::Timeout, format!("it gave no answer within {ANSWER_TIME}"))
        }
        Silence::TooLong => (FailureKind::Protocol, "its line is longer than 1 MiB".to_owned()),
        Silence::NoText => (FailureKind::Protocol, "its line is not UTF-8".to_owned()),
        Silence::Unasked => (
            FailureKind::Protocol,
            "it says more than one line for each that it is told".to_owned(),
        ),
    };
    let errors = talk.stop().await;
    let text = match errors.trim() {
        "" => why,
        errors => format!("{why}; its error output: {errors}"),
    };
    Fault::failed(kind, text)
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
