//! The plan of a phase: which issues become cards, and in which order (orchestrate.md §2).

use std::{collections::BTreeMap, fmt::Write as _, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::layout::{HUB, Laying, edges, hub, order_of, sorted};
use super::{Issue, Kind, Refusals, Role, helped, texts};
use crate::{diagnostic::quoted, refusal::Refusal};

/// The usual bound on the cards that write.
const USUAL_TEAMS: u64 = 4;

/// How the cards of a phase are arranged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Topology {
    /// Each by itself.
    #[default]
    ParallelTeam,
    /// A read-only card reads all products.
    Star,
    /// Each product is the next card's input.
    Pipeline,
}

impl Topology {
    const NAMES: [&str; 3] = ["parallel-team", "star", "pipeline"];

    fn named(name: &str) -> Result<Topology, Refusal> {
        match name.trim().to_lowercase().as_str() {
            "" | "parallel-team" => Ok(Topology::ParallelTeam),
            "star" => Ok(Topology::Star),
            "pipeline" => Ok(Topology::Pipeline),
            _ => {
                let message = format!("there is no topology {}", quoted(name));
                let allowed = texts(&Topology::NAMES);
                let help = format!("there are: {}", allowed.join(", "));
                Err(Refusal { allowed, ..helped("unknown_topology", message, help) })
            }
        }
    }
}

/// What a plan is asked for with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanRequest {
    /// The issues: a JSON array, or the text of one.
    pub issues: Value,
    /// How the cards are arranged; nothing is side by side.
    pub topology: Option<String>,
    /// The most cards that write, a number or its text.
    pub max_dev_teams: Option<Value>,
    /// The branch into which the work goes.
    pub target: Option<Arc<str>>,
}

/// A card that is planned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planned {
    /// Its name in the phase.
    pub card_id: Arc<str>,
    /// The issue.
    pub issue_id: Arc<str>,
    /// What sort it is.
    pub kind: Kind,
    /// Who is to do it.
    pub role: Role,
    /// Whether it writes.
    pub write: bool,
    /// The files that it will change.
    pub files: Vec<Arc<str>>,
    /// The issues whose cards come before.
    pub depends_on: Vec<Arc<str>>,
    /// How many cards in a row must come before, from 1.
    pub wave: usize,
    /// What its branch could be called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch_hint: Option<Arc<str>>,
}

/// An issue that is left for a later phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deferred {
    /// The issue.
    pub issue_id: Arc<str>,
    /// `max_dev_teams`, `file_conflict` or `dependency_deferred`.
    pub reason: Arc<str>,
}

/// Something doubtful about a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warned {
    /// What kind of doubt.
    pub code: Arc<str>,
    /// The issue.
    pub issue_id: Arc<str>,
}

/// The plan of a phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Its name: the same plan has the same.
    pub phase_id: Arc<str>,
    /// SHA-256 of what was asked for.
    pub digest: Arc<str>,
    /// How the cards are arranged.
    pub topology: Topology,
    /// The most cards that write.
    pub max_dev_teams: u64,
    /// The branch into which the work goes; the one of the repository's head if none.
    #[serde(default)]
    pub target: Option<Arc<str>>,
    /// All issues.
    pub issues: Vec<Issue>,
    /// Those that become cards, in plan order.
    pub cards: Vec<Planned>,
    /// Which comes before which, by issue.
    pub edges: Vec<(Arc<str>, Arc<str>)>,
    /// Those that do not.
    pub deferred: Vec<Deferred>,
    /// What is doubtful.
    pub warnings: Vec<Warned>,
}

/// The plans that were made: a fold of their stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Phases {
    plans: Vec<Plan>,
}

impl Phases {
    /// Takes the next plan.
    pub fn apply(&mut self, plan: Plan) {
        self.plans.push(plan);
    }

    /// The plan of that phase, else the last one.
    pub fn plan(&self, phase_id: Option<&str>) -> Option<&Plan> {
        let is_meant = |plan: &&Plan| phase_id.is_none_or(|id| *plan.phase_id == *id);
        self.plans.iter().rev().find(is_meant)
    }

    /// Whether an issue of that id was planned.
    pub fn knows_issue(&self, id: &str) -> bool {
        self.plans.iter().flat_map(|plan| &plan.issues).any(|issue| *issue.id == *id)
    }
}

impl Plan {
    /// The issue of that id.
    pub fn issue(&self, id: &str) -> Option<&Issue> {
        self.issues.iter().find(|issue| *issue.id == *id)
    }

    /// The digest that the same request with other issues would have.
    pub fn digest_with(&self, issues: &[Issue]) -> Arc<str> {
        digest(issues, self.topology, self.max_dev_teams, self.target.as_deref())
    }

    /// The plan for a request, or all that is wrong with it; `is_integrated` tells which issues of
    /// earlier phases are done.
    pub fn new(
        request: &PlanRequest,
        is_integrated: impl Fn(&str) -> bool,
    ) -> Result<Plan, Refusals> {
        let mut told = Refusals::new();
        let mut keep = |refusals: Refusals| told.extend(refusals);
        let topology = Topology::named(request.topology.as_deref().unwrap_or_default());
        let topology = topology.map_err(|it| keep(vec![it])).unwrap_or_default();
        let teams = teams(request.max_dev_teams.as_ref()).map_err(|it| keep(vec![it]));
        let issues = Issue::read(&request.issues).map_err(&mut keep).unwrap_or_default();
        let is_hub = |issue: &Issue| topology == Topology::Star && &*issue.id == HUB;
        if issues.iter().any(is_hub) {
            let message = "in a star no issue can be called hub";
            keep(vec![helped("invalid_issues_json", message, "call that issue otherwise")]);
        }
        let next = order_of(&issues, is_integrated).map_err(&mut keep).unwrap_or_default();
        let (Ok(max_dev_teams), []) = (teams, &told[..]) else { return Err(told) };
        let target = request.target.clone().filter(|it| !it.trim().is_empty());
        let digest = digest(&issues, topology, max_dev_teams, target.as_deref());
        let phase_id: Arc<str> = format!("p-{}", &digest[..10]).into();
        let order = sorted(&issues, &next);
        let mut laying =
            Laying { topology, max_dev_teams, phase_id: &phase_id, ..Laying::default() };
        for at in order {
            laying.place(&issues[at]);
        }
        let Laying { mut cards, deferred, warnings, .. } = laying;
        if topology == Topology::Star {
            cards.push(hub());
        }
        let edges = edges(topology, &cards);
        let mut before: BTreeMap<&Arc<str>, Vec<Arc<str>>> = BTreeMap::new();
        for (from, to) in &edges {
            before.entry(to).or_default().push(from.clone());
        }
        let mut waves: BTreeMap<Arc<str>, usize> = BTreeMap::new();
        for card in &mut cards {
            card.depends_on = before.remove(&card.issue_id).unwrap_or_default();
            let latest = card.depends_on.iter().filter_map(|it| waves.get(it)).max();
            card.wave = 1 + latest.copied().unwrap_or(0);
            waves.insert(card.issue_id.clone(), card.wave);
        }
        Ok(Plan {
            phase_id,
            digest,
            topology,
            max_dev_teams,
            target,
            issues,
            cards,
            edges,
            deferred,
            warnings,
        })
    }

    /// The plan as it is told.
    pub fn told(&self) -> Value {
        json!({
            "phase_id": self.phase_id,
            "digest": self.digest,
            "dry_run": true,
            "topology": self.topology,
            "max_dev_teams": self.max_dev_teams,
            "target": self.target,
            "cards": self.cards,
            "edges": self.edges,
            "deferred": self.deferred,
            "warnings": self.warnings,
        })
    }
}

fn teams(given: Option<&Value>) -> Result<u64, Refusal> {
    let number = match given {
        None | Some(Value::Null) => Some(USUAL_TEAMS),
        Some(Value::String(text)) => text.trim().parse().ok(),
        Some(other) => other.as_u64(),
    };
    let bad = || {
        let message = "max_dev_teams is a whole number from 1 on";
        helped("invalid_max_dev_teams", message, format!("without it, it is {USUAL_TEAMS}"))
    };
    number.filter(|number| *number >= 1).ok_or_else(bad)
}

/// SHA-256 of the canonical JSON of what was asked for: keys sorted, nothing between.
fn digest(
    issues: &[Issue],
    topology: Topology,
    max_dev_teams: u64,
    target: Option<&str>,
) -> Arc<str> {
    let asked = json!({
        "issues": issues,
        "topology": topology,
        "max_dev_teams": max_dev_teams,
        "target": target,
    });
    let hash = Sha256::digest(canonical(&asked).to_string());
    let hex = hash.iter().fold(String::new(), |mut hex, byte| {
        // Writing to a text cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    });
    hex.into()
}

/// The same value with the keys of all objects in order. Nothing here is deep.
fn canonical(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let sorted: BTreeMap<&String, Value> =
                map.iter().map(|(key, value)| (key, canonical(value))).collect();
            sorted.into_iter().map(|(key, value)| (key.clone(), value)).collect()
        }
        Value::Array(items) => items.iter().map(canonical).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}
