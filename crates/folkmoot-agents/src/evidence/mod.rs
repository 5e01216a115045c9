//! Looks at what edges of graphs require (convergence.md §2).
//!
//! A command runs in the workspace with a clean environment. It may only run where nothing confines
//! agents anyway, `sandbox: full`: this version has nothing that could keep it from writing.

mod command;

use std::{collections::BTreeMap, io, path::Path};

use async_trait::async_trait;
use folkmoot_core::{
    call::{Answer, FailureKind, Fault, Outcome, Usage},
    gate::{Evidence, Gate, OUTPUT, Workspace},
    team::Sandbox,
    verdict,
};
use folkmoot_runtime::{
    backend::Response,
    gates::{GateRequest, Gates},
};
use serde_json::Value;

use self::command::{Ran, run_command};

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
        Inspector { environment: command::baseline(ours) }
    }
}

/// Why commands of gates cannot be run at this level, if so.
pub fn unenforceable(sandbox: Sandbox) -> Option<&'static str> {
    match sandbox {
        Sandbox::Full => None,
        Sandbox::ReadOnly | Sandbox::Write => Some(
            "this version cannot keep a command from writing, so it runs \
             commands of gates only with sandbox: full",
        ),
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
                if let Some(why) = unenforceable(workspace.sandbox) {
                    let text = format!("sandbox_unavailable: {why}");
                    return Err(Fault::failed(FailureKind::Unsupported, text));
                }
                let ran = run_command(command, folder, (*timeout).into(), &self.environment).await;
                let ran = ran.map_err(|error| {
                    Fault::failed(FailureKind::Spawn, format!("it cannot be run: {error}"))
                })?;
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
    let Ran { exit_code, timed_out, output } = ran;
    let detail = match exit_code {
        _ if timed_out => Some(format!("it was not done within {timeout}")),
        None => Some("it was killed".to_owned()),
        Some(_) => None,
    };
    let passed = exit_code == Some(0) && !timed_out;
    Evidence { passed, detail, exit_code: exit_code.map(i64::from), output: Some(output) }
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

/// The end of a text, in whole characters.
fn tail(bytes: &[u8]) -> String {
    let from = bytes.len().saturating_sub(OUTPUT);
    let rest = &bytes[from..];
    let cut = rest.iter().take_while(|byte| from > 0 && **byte & 0xC0 == 0x80).count();
    String::from_utf8_lossy(&rest[cut..]).into_owned()
}

#[cfg(test)]
mod tests;
