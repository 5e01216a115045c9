//! Whether the names of a team can be told apart and written everywhere (graph.md §1, rules.md §2).

use std::{collections::BTreeMap, sync::LazyLock};

use regex::Regex;

use crate::{
    check::team::Named,
    diagnostic::{Diagnostic, quoted},
    names::{loosened, mixed_scripts},
};

const MAX_CHARACTERS: usize = 100;

/// Tells what is wrong with the names of a team.
pub(super) fn check(agents: &[Named<'_>], told: &mut Vec<Diagnostic>) {
    let mut known = BTreeMap::new();
    for agent in agents {
        let (name, place) = (agent.name, agent.fields.place_of("name"));
        told.extend(fault(name).map(|message| Diagnostic::error("bad_name", message).at(place)));
        told.extend(look_alike(name).map(|warning| warning.at(place)));
        if let Some((twin, first)) = known.insert(loosened(name), (name, place)) {
            told.push(confusable(twin, name).at(place).also(first.span, "the other one"));
        }
    }
}

fn confusable(twin: &str, name: &str) -> Diagnostic {
    let message = format!("Agents {} and {} cannot be told apart", quoted(twin), quoted(name));
    Diagnostic::error("bad_name", message)
}

fn fault(name: &str) -> Option<String> {
    static FORBIDDEN: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"[/\p{Cc}\p{Cf}\p{Co}\p{Zl}\p{Zp}]").expect("the pattern is constant")
    });
    let length = name.chars().count();
    if name.trim().is_empty() {
        Some("an agent's name must not be blank".into())
    } else if length > MAX_CHARACTERS {
        Some(format!("an agent's name has at most {MAX_CHARACTERS} characters; this has {length}"))
    } else if let Some(found) = FORBIDDEN.find(name) {
        Some(format!(
            "Agent name {} holds {}; letters, digits, blanks and signs of any script are \
             permitted, but no slash, line break, control or invisible character",
            quoted(name),
            visible(found.as_str())
        ))
    } else if name.trim().chars().all(|c| c == '.') {
        Some(format!("Agent name {} is no name", quoted(name)))
    } else if loosened(name) == "parent" {
        Some(format!("Agent name {} is reserved", quoted(name)))
    } else {
        None
    }
}

fn visible(found: &str) -> String {
    match found.chars().next() {
        None | Some('/') => quoted(found),
        Some(character) => format!("U+{:04X}", u32::from(character)),
    }
}

/// Scripts whose letters look alike have no reason to stand in one word.
fn look_alike(name: &str) -> Option<Diagnostic> {
    let mixed = mixed_scripts(name);
    (!mixed.is_empty()).then(|| {
        let (name, mixed) = (quoted(name), mixed.join(" and "));
        let message = format!("Agent name {name} mixes {mixed} letters in one word");
        Diagnostic::warning("look_alike", message)
    })
}
