//! Two runs side by side: which calls are the same, which changed, which only one of them has.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::{CallView, Spending, calls};
use crate::{run::Run, spec::Spec};

/// Two runs side by side.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The calls in the order in which the first run asked them; those that only the second has stand
    /// behind the one that they follow there.
    pub calls: Vec<Pair>,
    /// All of them together.
    pub totals: Totals,
}

/// One call in both runs.
#[derive(Clone, Debug, Serialize)]
pub struct Pair {
    /// Its name.
    pub key: String,
    /// Who was asked.
    pub agent: String,
    /// Whether it is the same in both.
    pub state: Likeness,
    /// What came of it in the first.
    pub a: Option<Side>,
    /// And in the second.
    pub b: Option<Side>,
}

/// How a call of one run stands to that of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Likeness {
    /// The same question, and the same that came of it.
    Same,
    /// Another question, or something else came of it.
    Changed,
    /// Only the first run has it.
    OnlyA,
    /// Only the second run has it.
    OnlyB,
}

/// What came of a call in one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Side {
    /// `open`, `answered`, `failed`, `refused` or `withdrawn`.
    pub state: &'static str,
    /// The answer.
    pub text: Option<String>,
    /// Why there is none.
    pub fault: Option<Value>,
    /// What it used.
    pub usage: Spending,
    /// How long it took.
    pub elapsed_seconds: Option<f64>,
}

/// All calls together.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Totals {
    /// How many are the same.
    pub same: usize,
    /// How many changed.
    pub changed: usize,
    /// How many only the first run has.
    pub only_a: usize,
    /// How many only the second run has.
    pub only_b: usize,
    /// What the first run took.
    pub a: Taken,
    /// What the second run took.
    pub b: Taken,
}

/// What a run took.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Taken {
    /// Calls started.
    pub calls: u64,
    /// Tokens, read and written.
    pub total_tokens: u64,
    /// US dollars, where prices are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// How long it was active.
    pub elapsed_seconds: f64,
}

/// Lays two runs side by side.
pub fn of(a: (&Spec, &Run), b: (&Spec, &Run)) -> Comparison {
    let (ours, theirs) = (calls(a.0, a.1), calls(b.0, b.1));
    let known: BTreeMap<&str, &CallView> = ours.iter().map(|it| (it.key.as_str(), it)).collect();
    let other: BTreeMap<&str, &CallView> = theirs.iter().map(|it| (it.key.as_str(), it)).collect();
    let mut pairs: Vec<Pair> =
        ours.iter().map(|it| pair(Some(it), other.get(it.key.as_str()).copied())).collect();
    let mut place = 0;
    for call in &theirs {
        if known.contains_key(call.key.as_str()) {
            let at = pairs.iter().position(|pair| pair.key == call.key.as_str());
            place = at.map_or(place, |at| at + 1);
        } else {
            pairs.insert(place, pair(None, Some(call)));
            place += 1;
        }
    }
    let count = |likeness| pairs.iter().filter(|pair| pair.state == likeness).count();
    let totals = Totals {
        same: count(Likeness::Same),
        changed: count(Likeness::Changed),
        only_a: count(Likeness::OnlyA),
        only_b: count(Likeness::OnlyB),
        a: taken(a),
        b: taken(b),
    };
    Comparison { calls: pairs, totals }
}

fn pair(a: Option<&CallView>, b: Option<&CallView>) -> Pair {
    let state = match (a, b) {
        (Some(a), Some(b)) if is_same(a, b) => Likeness::Same,
        (Some(_), Some(_)) => Likeness::Changed,
        (_, None) => Likeness::OnlyA,
        (None, Some(_)) => Likeness::OnlyB,
    };
    let one = a.or(b).expect("one of the runs has it");
    let (key, agent) = (one.key.to_string(), one.agent.clone());
    Pair { key, agent, state, a: a.map(side), b: b.map(side) }
}

/// Whether the same was asked, and the same came of it; what it used and how long it took do not count.
fn is_same(a: &CallView, b: &CallView) -> bool {
    let came = |it: &CallView| (it.state, it.reply.clone(), it.json.clone(), it.fault.clone());
    a.request.digest == b.request.digest && came(a) == came(b)
}

fn side(call: &CallView) -> Side {
    Side {
        state: call.state,
        text: call.reply.clone(),
        fault: call.fault.clone(),
        usage: call.usage,
        elapsed_seconds: call.elapsed_seconds,
    }
}

fn taken((spec, run): (&Spec, &Run)) -> Taken {
    let meta = super::outcome("", spec, run, false).meta;
    let total = meta.usage.total;
    Taken {
        calls: meta.usage.calls,
        total_tokens: total.total_tokens,
        cost_usd: total.cost_usd,
        elapsed_seconds: meta.elapsed_seconds,
    }
}
