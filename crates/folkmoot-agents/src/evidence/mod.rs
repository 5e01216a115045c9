//! Looks at what edges of graphs require (convergence.md §2).
//!
//! A command runs in the workspace, with a clean environment, confined as the team's sandbox says.

use std::{collections::BTreeMap, io, path::Path};

use async_trait::async_trait;
use folkmoot_core::{
    call::{Answer, FailureKind, Fault, Outcome, Usage},
    check::Environment,
    gate::{Evidence, Gate, OUTPUT, Workspace},
    verdict,
};
use folkmoot_runtime::{
    backend::Response,
    gates::{GateRequest, Gates},
};
use serde_json::Value;

use crate::process::{self, Beyond, Exit, Process, Ran, unstarted};

/// How many misfits of one reply are told.
const MISFITS: usize = 3;

/// Looks at workspaces of this machine.
#[derive(Clone, Debug, Default)]
pub struct Inspector {
    environment: BTreeMap<String, String>,
}

impl Inspector {
    /// One whose commands get what they need of `ours`, the environment of this process.
    pub fn new(ours: impl IntoIterator<Item = (String, String)>) -> Inspector {
        let policy = Environment::default();
        Inspector { environment: process::environment(&policy, &ours.into_iter().collect()) }
    }
}

#[async_trait]
impl Gates for Inspector {
    async fn look(&self, request: GateRequest) -> Response {
        let GateRequest { gate, scripted, reply, workspace, .. } = request;
        let outcome = match known(&gate, scripted, reply.as_deref()) {
            Some(outcome) => outcome,
            None => self.look_around(&gate, &workspace.unwrap_or_default()).await,
        };
        Response { outcome, usage: Usage::default() }
    }
}

impl Inspector {
    async fn look_around(&self, gate: &Gate, workspace: &Workspace) -> Outcome {
        let folder = Path::new(&*workspace.folder);
        let evidence = match gate {
            Gate::Command { command, timeout } => {
                let process = Process {
                    argv: &process::shell(command),
                    dir: folder,
                    environment: &self.environment,
                    stdin: &[],
                    sandbox: workspace.sandbox,
                    beyond: Beyond::default(),
                    workspace: folder,
                    time: (*timeout).into(),
                    kept: (0, OUTPUT),
                    merged: true,
                };
                let ran = process.run().await.map_err(|error| unstarted("it", &error))?;
                of_command(ran, *timeout)
            }
            Gate::File { path } => of_file(folder, path),
            Gate::Schema { .. } => Evidence::shut("there is no reply"),
        };
        Ok(evidence.answer().into())
    }
}

/// What is known of a gate without looking at a workspace.
pub(crate) fn known(
    gate: &Gate,
    scripted: Option<bool>,
    reply: Option<&Answer>,
) -> Option<Outcome> {
    let evidence = match (scripted, gate, reply) {
        (Some(passed), ..) => Ok(Evidence::of(passed)),
        (None, Gate::Schema { schema, .. }, Some(reply)) => of_schema(schema, reply),
        (None, Gate::Schema { .. } | Gate::Command { .. } | Gate::File { .. }, _) => return None,
    };
    Some(evidence.map(|evidence| evidence.answer().into()))
}

fn of_command(ran: Ran, timeout: folkmoot_core::time::Duration) -> Evidence {
    let (exit_code, detail) = match ran.exit {
        Exit::Code(code) => (Some(i64::from(code)), None),
        Exit::Killed(_) => (None, Some("it was killed".to_owned())),
        Exit::TimedOut => (None, Some(format!("it was not done within {timeout}"))),
    };
    Evidence { passed: exit_code == Some(0), detail, exit_code, output: Some(ran.stdout) }
}

/// A file of a folder must be there, in it, and not be empty.
fn of_file(folder: &Path, path: &str) -> Evidence {
    let found = folder.canonicalize().and_then(|folder| {
        let file = folder.join(path).canonicalize()?;
        Ok((file.starts_with(&folder), file.metadata()?))
    });
    match found {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Evidence::shut("there is no such file")
        }
        Err(error) => Evidence::shut(error.to_string()),
        Ok((false, _)) => Evidence::shut("outside_workspace: it leads out of the workspace"),
        Ok((true, file)) if !file.is_file() => Evidence::shut("it is no file"),
        Ok((true, file)) if file.len() == 0 => Evidence::shut("it is empty"),
        Ok((true, _)) => Evidence::of(true),
    }
}

/// The JSON of a reply must satisfy a schema.
fn of_schema(schema: &Value, reply: &Answer) -> Result<Evidence, Fault> {
    let validator = jsonschema::validator_for(schema).map_err(|error| {
        Fault::failed(FailureKind::Config, format!("the schema cannot be used: {error}"))
    })?;
    let Some(value) = verdict::value(reply) else {
        return Ok(Evidence::shut("the reply holds no JSON"));
    };
    let misfits: Vec<String> = (validator.iter_errors(&value).take(MISFITS))
        .map(|error| match error.instance_path().to_string() {
            place if place.is_empty() => error.to_string(),
            place => format!("at {place}: {error}"),
        })
        .collect();
    Ok(if misfits.is_empty() { Evidence::of(true) } else { Evidence::shut(misfits.join("; ")) })
}

#[cfg(test)]
mod tests;
