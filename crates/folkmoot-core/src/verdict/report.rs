//! What a reviewer reports of a round (convergence.md §1).

use serde_json::Value;

use super::{Finding, Object, Reading, Unreadable, object::illegal};
use crate::call::Answer;

/// How many findings one report may have (rules.md 3.9).
pub const MOST_FINDINGS: usize = 200;

/// The findings of one round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// All that is wrong with the work as it is.
    pub findings: Vec<Finding>,
    /// The names of earlier findings that are mended.
    pub fixed: Vec<String>,
}

/// Reads the object with `findings`, and with `fixed` if it has that too. Words never stand in for it.
pub fn report(answer: &Answer) -> Reading<Report> {
    let object = match Object::find(answer, "findings") {
        Ok(Some(object)) => object,
        Ok(None) => return Reading::None,
        Err(why) => return Reading::Unreadable(why),
    };
    let Some(findings) = object.findings() else { return Reading::None };
    let fixed = match object.get("fixed") {
        None => Some(Vec::new()),
        Some(fixed) => names(fixed),
    };
    let is_blank = |finding: &Finding| finding.text.trim().is_empty();
    let given = |key| illegal(key, object.get(key).unwrap_or(&Value::Null));
    match fixed {
        _ if findings.iter().any(is_blank) => Reading::Unreadable(given("findings")),
        _ if findings.len() > MOST_FINDINGS => {
            let count = format!("a list of {}; at most {MOST_FINDINGS} are read", findings.len());
            Reading::Unreadable(Unreadable::Illegal { key: "findings".to_owned(), found: count })
        }
        None => Reading::Unreadable(given("fixed")),
        Some(fixed) => Reading::Value(Report { findings, fixed }),
    }
}

fn names(value: &Value) -> Option<Vec<String>> {
    let names = value.as_array()?.iter();
    names.map(|name| Some(name.as_str()?.to_owned())).collect()
}
