//! Commands in the workspace, confined by the agent's sandbox.

use std::{collections::BTreeMap, fmt::Write as _, path::Path, time::Duration};

use folkmoot_core::team::Sandbox;
use serde::Deserialize;

use super::{
    Result,
    folder::{Folder, inside},
    other,
};
use crate::process::{self, Beyond, Exit, Process, unstarted};

/// How long a command may take unless the call says otherwise, and at the most, in seconds.
const TIMEOUT: f64 = 120.0;
const LONGEST: f64 = 3600.0;

/// How many bytes of the beginning and of the end of each output are kept.
const KEPT: (usize, usize) = (32 << 10, 32 << 10);

/// Arguments of `shell`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Line {
    command: String,
    timeout_s: Option<f64>,
    cwd: Option<String>,
}

impl Line {
    /// Runs it; an exit code that is not 0 is an answer like any other.
    pub(super) async fn run(
        &self,
        folder: &Folder,
        root: &Path,
        environment: &BTreeMap<String, String>,
        sandbox: Sandbox,
    ) -> Result<String> {
        let given = self.timeout_s.unwrap_or(TIMEOUT);
        if !(given > 0.0 && given <= LONGEST) {
            return Err(other(format!("bad_arguments: timeout_s is above 0, at most {LONGEST}")));
        }
        let within = folder.resolved(&inside(self.cwd.as_deref().unwrap_or("."))?)?;
        let process = Process {
            argv: &process::shell(&self.command),
            dir: &root.join(within),
            environment,
            stdin: &[],
            sandbox,
            beyond: Beyond::default(),
            workspace: root,
            time: Duration::from_secs_f64(given),
            kept: KEPT,
            merged: false,
        };
        let ran = process.run().await.map_err(|error| unstarted("it", &error))?;
        let mut text = match ran.exit {
            Exit::TimedOut => format!("timed out after {given} s\n"),
            exit => format!("{exit}\n"),
        };
        for (name, written) in [("stdout", ran.stdout), ("stderr", ran.stderr)] {
            if !written.is_empty() {
                let _ = write!(text, "--- {name}\n{written}");
                text.push_str(if written.ends_with('\n') { "" } else { "\n" });
            }
        }
        Ok(text)
    }
}
