//! The roles of cards.

use serde::{Deserialize, Serialize};

use super::{Refusals, helped};
use crate::{diagnostic::quoted, names::suggestion, refusal::Refusal, text::is_word_letter};

/// What a card needs doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Writes what was asked for.
    Implementer,
    /// Judges what others wrote.
    Reviewer,
    /// Writes texts.
    Writer,
    /// Says how it is to be done.
    Planner,
    /// Finds out what is wrong.
    Debugger,
    /// Shows that it works.
    Tester,
}

/// The words that suggest a role. Letters of Chinese are no words: they count wherever they stand.
const WORDS: [(&str, Role); 24] = [
    ("bug", Role::Debugger),
    ("fix", Role::Debugger),
    ("crash", Role::Debugger),
    ("debug", Role::Debugger),
    ("缺陷", Role::Debugger),
    ("修复", Role::Debugger),
    ("review", Role::Reviewer),
    ("audit", Role::Reviewer),
    ("审查", Role::Reviewer),
    ("write", Role::Writer),
    ("docs", Role::Writer),
    ("document", Role::Writer),
    ("readme", Role::Writer),
    ("notes", Role::Writer),
    ("changelog", Role::Writer),
    ("文档", Role::Writer),
    ("plan", Role::Planner),
    ("design", Role::Planner),
    ("architecture", Role::Planner),
    ("规划", Role::Planner),
    ("设计", Role::Planner),
    ("test", Role::Tester),
    ("tests", Role::Tester),
    ("测试", Role::Tester),
];

impl Role {
    /// All of them.
    pub const ALL: [Role; 6] = [
        Role::Implementer,
        Role::Reviewer,
        Role::Writer,
        Role::Planner,
        Role::Debugger,
        Role::Tester,
    ];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Implementer => "implementer",
            Role::Reviewer => "reviewer",
            Role::Writer => "writer",
            Role::Planner => "planner",
            Role::Debugger => "debugger",
            Role::Tester => "tester",
        }
    }

    /// The role of that name.
    pub fn named(name: &str) -> Result<Role, Refusals> {
        let found = Role::ALL.into_iter().find(|role| role.as_str() == name);
        found.ok_or_else(|| {
            let allowed = Role::ALL.map(|it| it.as_str().to_owned()).to_vec();
            let message = match name.trim() {
                "" => "the role is missing".to_owned(),
                name => format!("there is no role {}", quoted(name)),
            };
            let near = suggestion(name, Role::ALL.map(Role::as_str));
            let help = near.unwrap_or_else(|| format!("there are: {}", allowed.join(", ")));
            vec![Refusal { allowed, ..helped("unknown_role", message, help) }]
        })
    }

    /// The role that the first telling word of a task suggests, else the implementer.
    pub fn suggested(task: &str) -> Role {
        let task = task.to_lowercase();
        let is_whole = |at: usize, word: &str| {
            let before = task[..at].chars().next_back();
            let after = task[at + word.len()..].chars().next();
            !word.is_ascii() || ![before, after].into_iter().flatten().any(is_word_letter)
        };
        let first = |(word, role): (&str, Role)| {
            let found = task.match_indices(word).find(|(at, _)| is_whole(*at, word));
            found.map(|(at, _)| (at, std::cmp::Reverse(word.len()), role))
        };
        let earliest =
            WORDS.into_iter().filter_map(first).min_by_key(|(at, length, _)| (*at, *length));
        earliest.map_or(Role::Implementer, |(_, _, role)| role)
    }
}
