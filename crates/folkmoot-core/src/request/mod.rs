//! What a caller asks for: judged here, whoever reads the arguments, so that the command line and the
//! servers refuse alike (collaborate.md §§1, 5).
//!
//! A request is its fields as they were given. Judging them gives the team that is to be checked, what
//! wins over it, and everything that is wrong; nothing is started by it.

mod collaborate;
mod judging;
mod run_team;
mod targets;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde_json::{Map, Value};

pub use self::collaborate::patterns;
use self::judging::Judging;
use crate::{file::overrides::Override, programs::pattern, refusal::Refusal, spec::Spec};

/// The largest request, in bytes.
pub const LARGEST: usize = 1 << 20;

/// The longest time that somebody waits for a run, in seconds.
pub const LONGEST_WAIT: f64 = 3_600.0;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A team works on a task.
    RunTeam,
    /// One task goes to one target.
    Dispatch,
    /// One task goes to many targets.
    Broadcast,
    /// Roles work by a pattern.
    Collaborate,
}

impl Kind {
    /// The fields there are, each a text of a command line, or JSON.
    pub fn fields(self) -> &'static [&'static str] {
        match self {
            Kind::RunTeam => &["team", "prompt", "overrides", "wait_s"],
            Kind::Dispatch => &[
                "task",
                "target",
                "sandbox",
                "max_retries",
                "timeout",
                "provider_session",
                "workdir",
                "wait_s",
            ],
            Kind::Broadcast => {
                &["task", "targets", "compare", "sandbox", "timeout", "workdir", "wait_s"]
            }
            Kind::Collaborate => &[
                "pattern",
                "task",
                "providers",
                "max_rounds",
                "timeout",
                "sandbox",
                "list_patterns",
                "judge",
                "signals",
                "workdir",
                "wait_s",
            ],
        }
    }
}

/// A request, not judged yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// What is asked for.
    pub kind: Kind,
    fields: Map<String, Value>,
}

/// Where the team of a request comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Members {
    /// From a file.
    File(String),
    /// From the request itself, as the text of a file.
    Inline(String),
    /// They are models, each an agent of this name.
    Named(Vec<String>),
}

/// A request that was judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// Its team; nothing if that cannot be told.
    pub members: Option<Members>,
    /// The task.
    pub task: String,
    /// What wins over the team file, or makes a team without one.
    pub overrides: Vec<Override>,
    /// How long the caller waits for the run, in seconds, if that is said.
    pub wait_s: Option<f64>,
    /// What is wrong with it.
    pub refused: Vec<Refusal>,
}

/// What is told of a run that a request has made.
#[derive(Clone, Debug, PartialEq)]
pub enum Form {
    /// The unified result.
    Unified,
    /// What a dispatch tells (collaborate.md §3).
    Dispatch {
        /// The target as it was given.
        target: String,
    },
    /// What a broadcast tells (collaborate.md §4).
    Broadcast {
        /// The targets as they were given, each with the agent that stands for it.
        targets: Vec<(String, Arc<str>)>,
    },
}

impl Request {
    /// A request of these fields; null is nothing given.
    pub fn new(kind: Kind, fields: Map<String, Value>) -> Request {
        let given = fields.into_iter().filter(|(_, value)| !value.is_null());
        Request { kind, fields: given.collect() }
    }

    /// The same with the text of a flag, if that is given.
    #[must_use]
    pub fn with(mut self, field: &str, text: Option<String>) -> Request {
        self.fields.extend(text.map(|text| (field.to_owned(), text.into())));
        self
    }

    /// Whether only the patterns are to be listed, whatever else is given.
    pub fn lists_patterns(&self) -> bool {
        self.kind == Kind::Collaborate && self.fields.get("list_patterns") == Some(&true.into())
    }

    /// Judges everything that can be judged without the team. `in_file` tells that a team file is given
    /// beside the request, whose agents are meant.
    pub fn judge(&self, in_file: bool) -> Judged {
        let mut judging = Judging { fields: &self.fields, told: Vec::new() };
        judging.size_and_fields(self.kind.fields());
        let mut judged = match self.kind {
            Kind::RunTeam => run_team::judge(&mut judging),
            Kind::Dispatch => targets::judge_one(&mut judging, in_file),
            Kind::Broadcast => targets::judge_all(&mut judging, in_file),
            Kind::Collaborate => collaborate::judge(&mut judging),
        };
        judged.wait_s = judging.wait_s();
        judged.refused = self.allowing(judging.told, &[]);
        judged
    }

    /// All that is wrong with the request and with the team that was made of it, each once, in the order
    /// of its checks. `targets` are the names that can stand for a target.
    pub fn refusals(
        &self,
        judged: Vec<Refusal>,
        found: impl IntoIterator<Item = Refusal>,
        targets: &[String],
    ) -> Vec<Refusal> {
        let mut all = judged;
        for refusal in self.allowing(found.into_iter().collect(), targets) {
            if !all.iter().any(|it| it.code == refusal.code && it.message == refusal.message) {
                all.push(refusal);
            }
        }
        if self.kind == Kind::Collaborate {
            all.sort_by_key(|it| collaborate::rank(it.code));
        }
        all
    }

    /// What is told of its run, which depends on `spec`.
    pub fn form(&self, spec: &Spec) -> Form {
        match self.kind {
            Kind::RunTeam | Kind::Collaborate => Form::Unified,
            Kind::Dispatch => Form::Dispatch { target: targets::one(&self.fields, spec) },
            Kind::Broadcast => {
                let targets = targets::agents(spec, &targets::all(&self.fields));
                Form::Broadcast { targets }
            }
        }
    }

    /// Whether it asks for leave to write for a single target.
    pub fn lets_write(&self) -> bool {
        let level = self.fields.get("sandbox").and_then(Value::as_str);
        self.kind == Kind::Dispatch && matches!(level, Some("write" | "full"))
    }

    /// Mistakes with what would be allowed.
    fn allowing(&self, told: Vec<Refusal>, targets: &[String]) -> Vec<Refusal> {
        let form =
            self.fields.get("pattern").and_then(Value::as_str).and_then(pattern::Form::named);
        let allowed = |code: &str| match code {
            "unknown_field" => judging::texts(self.kind.fields()),
            "unknown_provider" => targets.to_vec(),
            code => judging::allowed(code, form),
        };
        let told = told.into_iter().map(|it| match it.allowed[..] {
            [] => Refusal { allowed: allowed(it.code), ..it },
            [..] => it,
        });
        told.collect()
    }
}
