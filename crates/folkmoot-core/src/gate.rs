//! What must be so before an edge of a graph is taken (convergence.md §2).
//!
//! A gate is looked at by the world, and what came of it stands in the log: so a replay needs neither
//! the command, nor the file, nor the schema's.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    call::{Answer, Fault, Reply},
    team::Sandbox,
    time::Duration,
};

/// How long a command may take unless its gate says otherwise.
pub const USUAL_TIMEOUT: Duration = Duration::from_secs(120);

/// How often an agent is asked again when a gate has failed, unless its edge says otherwise.
pub const USUAL_TRIES: u32 = 2;

/// How much longer a gate may take than its command, for what starting and ending one takes.
pub(crate) const GRACE: Duration = Duration::from_secs(15);

/// How much of the output of a command is kept, in bytes.
pub const OUTPUT: usize = 8 * 1024;

/// Something that can be looked at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gate {
    /// A command of the shell, which must end with 0 within its time.
    Command {
        /// The command line.
        command: Arc<str>,
        /// Its time.
        timeout: Duration,
    },
    /// A file of the workspace, which must be there and not be empty.
    File {
        /// Its path.
        path: Arc<str>,
    },
    /// A JSON Schema that the reply, or its last fenced JSON block, must satisfy.
    Schema {
        /// What it is called: the file that it came from.
        name: Arc<str>,
        /// The schema itself, so that nobody needs that file again.
        schema: Value,
    },
}

impl Gate {
    /// Whether it looks at the workspace, not only at the reply.
    pub fn needs_workspace(&self) -> bool {
        match self {
            Gate::Command { .. } | Gate::File { .. } => true,
            Gate::Schema { .. } => false,
        }
    }
}

/// A gate as errors and prompts name it.
impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Gate::Command { command, .. } => f.write_str(command),
            Gate::File { path } => f.write_str(path),
            Gate::Schema { name, .. } => f.write_str(name),
        }
    }
}

/// A gate of an edge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Requirement {
    /// What is looked at.
    pub gate: Gate,
    /// What comes of it in a rehearsal, by how often it has been looked at; the last repeats. Empty
    /// where it is really looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub script: Vec<bool>,
}

impl Requirement {
    /// What the script says to the `nth` look, from 1.
    pub(crate) fn scripted(&self, nth: usize) -> Option<bool> {
        self.script.get(nth.saturating_sub(1)).or(self.script.last()).copied()
    }
}

/// What came of looking at a gate.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// Whether it may be passed.
    pub passed: bool,
    /// Why not, or what else is to be told.
    pub detail: Option<String>,
    /// How the command ended; none if it did not end by itself.
    pub exit_code: Option<i64>,
    /// The end of what the command put out.
    pub output: Option<String>,
}

impl Evidence {
    /// An outcome of which there is no more to tell.
    pub fn of(passed: bool) -> Evidence {
        Evidence { passed, detail: None, exit_code: None, output: None }
    }

    /// A gate that is shut, and why.
    pub fn shut(why: impl Into<String>) -> Evidence {
        Evidence { detail: Some(why.into()), ..Evidence::of(false) }
    }

    /// The outcome as it is recorded.
    pub fn answer(&self) -> Answer {
        let Evidence { passed, detail, exit_code, output } = self;
        let mut told = json!({ "passed": passed });
        if let Some(code) = exit_code {
            told["exit_code"] = (*code).into();
        }
        for (key, text) in [("detail", detail), ("output", output)] {
            if let Some(text) = text {
                told[key] = text.as_str().into();
            }
        }
        Answer::json(told)
    }

    /// What is recorded of a gate; a fault if nobody could look. What a person puts in its place is
    /// read too: the same object, or `pass`.
    ///
    /// # Errors
    /// If it could not be looked at.
    pub(crate) fn read(reply: &Reply) -> Result<Evidence, Fault> {
        let answer = reply.outcome.as_ref().map_err(Clone::clone)?;
        let written = || serde_json::from_str::<Value>(&answer.text).ok();
        let told = answer.json.clone().or_else(written).unwrap_or_default();
        let word = answer.text.trim().to_lowercase();
        let text = |key: &str| told[key].as_str().map(str::to_owned);
        Ok(Evidence {
            passed: told["passed"] == true || word == "pass" || word == "passed",
            detail: text("detail"),
            exit_code: told["exit_code"].as_i64(),
            output: text("output"),
        })
    }
}

/// Where the gates of a run are looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workspace {
    /// The folder.
    pub folder: Arc<str>,
    /// What a process may do there (agents.md §6).
    pub sandbox: Sandbox,
}
