//! What `collaboration` may hold: the parameters of the strategies (strategies.md §1.2), and the
//! keys of shapes that are yet to come.

use crate::file::{
    graph::{GRAPH, STAGES},
    shape::{ENDLESS, Field, List, MANY, NAMES, Record, SOME, Shape, Zero},
};

/// `collaboration`.
pub static COLLABORATION: Record = Record {
    name: "collaboration",
    noun: "parameter",
    doc: "How the team works together.",
    groups: &[PARAMETERS, GRAPH, STAGES, PATTERN, PROGRAM, ROLES, ROUNDTABLE, LATER],
};

/// The key of programs: roles (agents.md §7), and those that are not built in (extensions.md §§4, 5).
const PROGRAM: &[Field] = &[Field::new(
    "program",
    Shape::TextOr(&CONTROLLER),
    "A program: roles, a process of the team's own, or the name of code.",
)
.flag("--program")];

static CONTROLLER: Record = Record {
    name: "controller",
    noun: "key",
    doc: "A process that says who does what.",
    groups: &[&[Field::new(
        "command",
        Shape::List(List { of: &Shape::Text, what: "words", ..SOME }),
        "The program and its arguments; it runs in the folder of the team file.",
    )
    .required()]],
};

/// The parameters of the role team (agents.md §§7, 8).
pub const ROLES: &[Field] = &[
    Field::new("path", Shape::Word(&["single", "roles"]), "The path that the task takes.")
        .default("as complex as it is"),
    Field::new("complexity", COUNT, "How complex the task is.").default("measured"),
    Field::new("complexity_threshold", COUNT, "From where on a task is complex.").default("2"),
    Field::new("intents", TEXTS, "What the task is for: code_modify, development, …"),
    Field::new("past_steps", COUNT, "How many steps were taken before."),
    Field::new("single_agent_budget", COUNT, "The tokens one agent would have.")
        .default("none: there is no budget"),
    Field::new("multiplier", Shape::Decimal, "How many times that all roles have together.")
        .default("1.5"),
    Field::new("economy_model", Shape::Text, "What answers when less than a fifth is left.")
        .default("the alias economy"),
];

const COUNT: Shape = Shape::Whole { min: 0, max: ENDLESS };

const TEXTS: Shape = Shape::List(List { of: &Shape::Text, what: "texts", ..MANY });

/// The names of the strategies.
pub const STRATEGIES: &[&str] =
    &["broadcast", "sequential", "debate", "supervisor", "consensus", "relay", "auto"];

/// The parameters of the strategies. Which belong to which: `check::strategies`.
pub const PARAMETERS: &[Field] = &[
    Field::new("strategy", Shape::Suggested(STRATEGIES), "The strategy, in any case.")
        .default("auto")
        .flag("--strategy"),
    Field::new("agents", PARTICIPANTS, "Who takes part.").default("all agents"),
    Field::new("rounds", Shape::Whole { min: 1, max: 100 }, "How often everybody speaks.")
        .default("broadcast 1, debate 3, relay 2")
        .flag("--rounds"),
    Field::new("order", NAMES, "Who speaks after whom; subsets and repeats are allowed.")
        .default("the participants in registration order, also for []")
        .flag("--order"),
    Field::new("judge", Shape::Text, "Who concludes.")
        .default("the agent named judge, else the first participant")
        .flag("--judge"),
    Field::new("supervisor", Shape::Text, "Who plans and reports.")
        .default("the agent named supervisor, else the first participant")
        .flag("--supervisor"),
    Field::new("workers", NAMES, "Who does the tasks.")
        .default("the participants but the supervisor")
        .flag("--workers"),
    Field::new(
        "timeout",
        Shape::Time(Zero::Refused),
        "The clock of one parallel phase, one single step, one task.",
    )
    .default("600 s")
    .flag("--timeout"),
    Field::new("call_timeout", Shape::Time(Zero::Refused), "The clock of one call.")
        .default("none"),
    Field::new("self_votes", Shape::Flag, "Whether a vote for oneself is valid.").default("true"),
    Field::new("convergence", Shape::Word(&["exact", "normalized"]), "When two drafts are equal.")
        .default("exact"),
    Field::new("replan", Shape::Flag, "Whether a defective plan is asked for once more.")
        .default("true"),
    Field::new("strict", Shape::Flag, "Whether a defect that is left in a plan ends the run.")
        .default("false"),
    Field::new("max_tasks", Shape::Whole { min: 1, max: 1000 }, "The most tasks that run.")
        .default("32"),
    Field::new("auto", Shape::Word(&["seed", "adaptive"]), "The rule by which auto chooses.")
        .default("seed"),
];

/// A list of agents that is not empty.
pub const PARTICIPANTS: Shape = Shape::List(List { of: &Shape::Text, what: "names", ..SOME });

/// The keys of patterns (collaborate.md §5). `judge` and `timeout` are theirs too.
pub const PATTERN: &[Field] = &[
    Field::new(
        "planner",
        Shape::Text,
        "What says how a task is to be done before a pattern begins.",
    )
    .default("nobody"),
    Field::new("pattern", Shape::Suggested(PATTERNS), "A ready-made pattern of roles."),
    Field::new(
        "providers",
        Shape::Json,
        "What answers for which role: a map of roles and targets.",
    )
    .default("codex, claude and gemini, as each role needs it"),
    Field::new("max_rounds", Shape::Whole { min: 0, max: ENDLESS }, "The most turns of a pattern.")
        .default("0, that is as many as the pattern usually has"),
    Field::new("signals", Shape::Word(SIGNALS), "Reads replies by plain keywords.")
        .default("each role's words by their form"),
];

/// The names of the patterns.
pub const PATTERNS: &[&str] = &["review", "consensus", "debate"];

/// How the replies of a pattern can be read beside the usual way.
pub const SIGNALS: &[&str] = &["literal"];

/// The parameters of the round table (messaging.md §4).
pub const ROUNDTABLE: &[Field] = &[
    Field::new(
        "max_posts",
        Shape::Whole { min: 1, max: 10_000 },
        "How many entries end a round table.",
    )
    .default("40"),
    Field::new("max_turns", Shape::Whole { min: 1, max: 1000 }, "The most turns of each agent.")
        .default("20"),
    Field::new("scribe", Shape::Text, "Who words the answer of a round table.")
        .default("nobody: the cells and the last entry of each topic"),
];

/// The keys of programs that are yet to come.
const LATER: &[Field] = &[Field::new("board", Shape::Later, "A lasting board for a round table.")];
