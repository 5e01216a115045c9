//! What can go wrong in a simulated world, by name.

use std::{collections::BTreeSet, fmt};

use thiserror::Error;

use crate::names;

/// A kind of thing that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hazard {
    /// Requests take their time, some of them very long.
    Latency,
    /// Requests fail, with every kind of failure.
    Errors,
    /// The provider asks to wait.
    RateLimits,
    /// Replies are not what was asked for: broken, contradictory, hostile.
    Malformed,
    /// Replies say nothing.
    Blank,
    /// Replies break off.
    CutOff,
    /// No answer comes, until a clock strikes.
    Silence,
    /// Answers come twice.
    Duplicates,
    /// Answers come when nobody waits for them any longer.
    Late,
    /// The engine dies, and another one goes on.
    Crashes,
}

impl Hazard {
    /// All there are.
    pub const ALL: [Hazard; 10] = [
        Hazard::Latency,
        Hazard::Errors,
        Hazard::RateLimits,
        Hazard::Malformed,
        Hazard::Blank,
        Hazard::CutOff,
        Hazard::Silence,
        Hazard::Duplicates,
        Hazard::Late,
        Hazard::Crashes,
    ];

    /// Its name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Hazard::Latency => "latency",
            Hazard::Errors => "errors",
            Hazard::RateLimits => "rate-limits",
            Hazard::Malformed => "malformed",
            Hazard::Blank => "blank",
            Hazard::CutOff => "cut-off",
            Hazard::Silence => "silence",
            Hazard::Duplicates => "duplicates",
            Hazard::Late => "late",
            Hazard::Crashes => "crashes",
        }
    }
}

/// Some of the hazards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hazards(BTreeSet<Hazard>);

/// A word that names no hazard.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown fault \"{word}\"; known: {}, all", names().collect::<Vec<_>>().join(", "))]
pub struct UnknownHazard {
    /// The word.
    pub word: String,
    /// What was probably meant.
    pub suggestion: Option<String>,
}

fn names() -> impl Iterator<Item = &'static str> {
    Hazard::ALL.into_iter().map(Hazard::as_str)
}

impl Hazards {
    /// All of them.
    pub fn all() -> Hazards {
        Hazard::ALL.into_iter().collect()
    }

    /// Those named in `list`, separated by commas; `all` is all of them.
    pub fn parse(list: &str) -> Result<Hazards, UnknownHazard> {
        let mut hazards = Hazards::default();
        for word in list.split(',').map(str::trim) {
            match Hazard::ALL.into_iter().find(|it| it.as_str() == word) {
                Some(hazard) => drop(hazards.0.insert(hazard)),
                None if word == "all" => hazards = Hazards::all(),
                None => {
                    let suggestion = names::suggestion(word, names().chain(["all"]));
                    return Err(UnknownHazard { word: word.to_owned(), suggestion });
                }
            }
        }
        Ok(hazards)
    }

    /// Whether this one is among them.
    pub fn has(&self, hazard: Hazard) -> bool {
        self.0.contains(&hazard)
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = Hazard> {
        self.0.iter().copied()
    }
}

/// The list that [`Hazards::parse`] reads.
impl fmt::Display for Hazards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Hazards::all() {
            return f.write_str("all");
        }
        f.write_str(&self.iter().map(Hazard::as_str).collect::<Vec<_>>().join(","))
    }
}

impl FromIterator<Hazard> for Hazards {
    fn from_iter<I: IntoIterator<Item = Hazard>>(hazards: I) -> Hazards {
        Hazards(hazards.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hazard_is_found_by_its_name_and_all_of_them_by_one() {
        for hazard in Hazard::ALL {
            assert_eq!(Hazards::parse(hazard.as_str()), Ok([hazard].into_iter().collect()));
        }
        assert_eq!(Hazards::parse("all"), Ok(Hazards::all()));
        assert_eq!(Hazards::parse("late,all"), Ok(Hazards::all()));
        let both = Hazards::parse("crashes, errors").expect("both exist");
        assert_eq!(both.iter().collect::<Vec<_>>(), [Hazard::Errors, Hazard::Crashes]);
    }

    #[test]
    fn what_is_no_hazard_is_told_with_what_was_probably_meant() {
        let unknown = |list| Hazards::parse(list).expect_err("it is none");
        let crash = unknown("errors,crash");
        assert_eq!(crash.suggestion.as_deref(), Some("did you mean \"crashes\"?"));
        assert!(crash.to_string().starts_with("unknown fault \"crash\"; known: latency, errors,"));
        assert_eq!(unknown("team.yaml").suggestion, None);
        for list in ["", "errors,", "错误", "all,x"] {
            assert!(unknown(list).to_string().contains("unknown fault"), "{list}");
        }
    }
}
