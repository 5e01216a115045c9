//! What `collaboration` may hold of a graph (graph.md §2).

use crate::file::{
    collaboration::PARTICIPANTS,
    shape::{ENDLESS, Field, List, MANY, Record, SOME, Shape, Zero},
};

/// The names of the topologies.
pub const TOPOLOGIES: &[&str] = &["pipeline", "review-loop", "star"];

/// The keys of a graph that no strategy knows.
pub const GRAPH: &[Field] = &[
    Field::new("topology", TOPOLOGY, "The shape of the graph."),
    Field::new("flow", FLOW, "Its edges, or further ones: `a -> b: label`, or a map."),
    Field::new(
        "max_iterations",
        Shape::Whole { min: 0, max: 1000 },
        "How many rounds at the most.",
    )
    .default("3 if the graph has a loop, else none"),
    Field::new("termination", Shape::Record(&TERMINATION), TERMINATION.doc),
    Field::new("routing", Shape::Word(&["engine", "lead"]), "Who routes.").default("engine"),
    Field::new("judge_error", Shape::Word(&["stop", "ignore"]), "What a failing judge means.")
        .default("stop"),
    Field::new("on_failure", Shape::WordOr(REMEDIES, &RETRY), "What a failing step means.")
        .default("lead with a lead, else stop"),
    Field::new("nodes", Shape::Named(&NODE), "What is special about single agents."),
    Field::new("findings", Shape::FlagOr(&FINDINGS), FINDINGS.doc).default("off"),
    Field::new("result", Shape::Text, "The agent whose last reply is the answer.")
        .default("the work that came to its end"),
];

/// The keys of a graph and of each of its stages.
pub const STAGES: &[Field] = &[Field::new("stages", STAGE_LIST, "Graphs one after another.")];

const STAGE_LIST: Shape = Shape::List(List { of: &Shape::Record(&STAGE), what: "stages", ..MANY });

/// What `on_failure` may say in a word.
pub const REMEDIES: &[&str] = &["lead", "stop", "skip", "ask"];

/// Shared with strategies, which describe it in their own words.
const OF_STAGE: &[Field] = &[
    Field::new("name", Shape::Text, "The stage's name.").required(),
    Field::new("agents", PARTICIPANTS, "The agents of its topology, in order."),
    Field::new("judge", Shape::Text, "Who judges whether it has converged."),
    Field::new("timeout", Shape::Time(Zero::Refused), "The clock of one step.").default("600 s"),
    Field::new("on_bound", Shape::Word(&["stop", "continue"]), "What its end at a bound means.")
        .default("stop: the run ends"),
];

static STAGE: Record =
    Record { name: "stage", noun: "key", doc: "One graph of several.", groups: &[OF_STAGE, GRAPH] };

const TOPOLOGY: Shape =
    Shape::String { known: TOPOLOGIES, misfit: "invalid topology — expected a string, got {}" };

const FLOW: Shape = Shape::List(List {
    of: &Shape::LineOr { record: &EDGE, misfit: "unsupported flow entry type: {}" },
    what: "edges",
    most: 10_000,
    ..MANY
});

/// One edge as a map.
pub static EDGE: Record = Record {
    name: "edge",
    noun: "key",
    doc: "One agent hands its work to another.",
    groups: &[&[
        Field::new("from", Shape::Text, "Who hands over; parent for the lead."),
        Field::new("to", Shape::Text, "To whom; parent for the end."),
        Field::new("label", Shape::Text, "What is handed over, in words."),
        Field::new("exit", Shape::Flag, "Whether the work ends here.").default("to parent: true"),
        Field::new("when", Shape::Record(&GUARD), "Which replies take it."),
        Field::new("default", Shape::Flag, "Whether it is taken where no choice can be read.")
            .default("false"),
        Field::new("requires", GATES, "What must be so before it is taken."),
        Field::new(
            "tries",
            Shape::Whole { min: 0, max: 10 },
            "How often its agent is asked again when that is not so.",
        )
        .default("2"),
    ]],
};

const GATES: Shape =
    Shape::List(List { of: &Shape::Record(&GATE), what: "requirements", most: 20, ..MANY });

static GATE: Record = Record {
    name: "requirement",
    noun: "key",
    doc: "What must be so before an edge is taken: a command, a file or a schema.",
    groups: &[&[
        Field::new("command", Shape::Text, "A command of the shell that must end with 0."),
        Field::new("timeout", Shape::Time(Zero::Refused), "The time of the command.")
            .default("120 s"),
        Field::new("file", Shape::Text, "A file of the workspace that must not be empty."),
        Field::new("schema", Shape::Text, "A file with the JSON Schema of the reply."),
        Field::new("script", OUTCOMES, "What comes of it without looking; the last repeats."),
    ]],
};

const OUTCOMES: Shape =
    Shape::List(List { of: &Shape::Word(&["pass", "fail"]), what: "outcomes", ..SOME });

static FINDINGS: Record = Record {
    name: "findings",
    noun: "key",
    doc: "Whether those who close loops report findings, and from where on these are material.",
    groups: &[&[Field::new("materiality", Shape::Word(SEVERITIES), "The least that is material.")
        .default("minor")]],
};

/// How bad a finding may be, worst first.
pub const SEVERITIES: &[&str] = &["blocking", "critical", "major", "minor", "nit"];

static GUARD: Record = Record {
    name: "guard",
    noun: "matcher",
    doc: "Which replies take an edge.",
    groups: &[
        &[
            Field::new("failed", Shape::Flag, "Whether a failed step takes it."),
            Field::new("expr", Shape::Text, "An expression that is true or false."),
        ],
        MATCHERS,
    ],
};

/// How one reply is tested (graph.md §10).
pub const MATCHERS: &[Field] = &[
    Field::new("contains", Shape::Text, "A text it contains, literally."),
    Field::new("regex", Shape::Text, "A pattern it matches, in linear time."),
    Field::new("score_gte", Shape::Number { min: -1e9, max: 1e9 }, "The least score it gives."),
    Field::new("score_label", Shape::Text, "The label of the score.")
        .default("score, 评分, 得分 or 分数"),
    Field::new("no_changes", Shape::Flag, "Whether it must equal the one before."),
    Field::new("verdict", Shape::Word(&["approve", "reject"]), "The verdict it gives."),
];

/// `termination`.
pub static TERMINATION: Record = Record {
    name: "termination",
    noun: "key",
    doc: "When the run ends before all work is done.",
    groups: &[&[
        Field::new("any_of", CONDITIONS, "One of these must hold."),
        Field::new("all_of", CONDITIONS, "All of these must hold."),
    ]],
};

const CONDITIONS: Shape = Shape::List(OF_CONDITIONS);
const OF_CONDITIONS: List = List { of: &Shape::Record(&CONDITION), what: "conditions", ..MANY };

static CONDITION: Record = Record {
    name: "condition",
    noun: "termination condition",
    doc: "One condition, or again conditions.",
    groups: &[&[
        Field::new("max_iterations", AT_LEAST_ONE, "A loop has finished so many rounds."),
        Field::new("loop", Shape::Text, "The loop of this agent, beside max_iterations."),
        Field::new("timeout_ms", AT_LEAST_ONE, "The clock shows so many milliseconds."),
        Field::new("converged", Shape::Text, "The judge says that this holds."),
        Field::new("result_matches", Shape::Record(&RESULT_MATCHES), RESULT_MATCHES.doc),
        Field::new("stuck", Shape::Record(&STUCK), STUCK.doc),
        // Written out, since what refers to itself cannot do so by a constant.
        Field::new(
            "any_of",
            Shape::List(List { of: &Shape::Record(&CONDITION), what: "conditions", ..MANY }),
            "One of these must hold.",
        ),
        Field::new(
            "all_of",
            Shape::List(List { of: &Shape::Record(&CONDITION), what: "conditions", ..MANY }),
            "All of these must hold.",
        ),
    ]],
};

const AT_LEAST_ONE: Shape = Shape::Whole { min: 1, max: ENDLESS };

static RESULT_MATCHES: Record = Record {
    name: "result_matches",
    noun: "matcher",
    doc: "The latest reply of an agent matches in all of these ways.",
    groups: &[&[Field::new("agent", Shape::Text, "The agent.")], MATCHERS],
};

static STUCK: Record = Record {
    name: "stuck",
    noun: "key",
    doc: "The last replies of some agent are equal.",
    groups: &[&[
        Field::new("repeats", Shape::Whole { min: 2, max: ENDLESS }, "How many replies."),
        Field::new("agent", Shape::Text, "The agent.").default("any"),
    ]],
};

static RETRY: Record = Record {
    name: "retry",
    noun: "key",
    doc: "The agent is asked again, and then something else is done.",
    groups: &[&[
        Field::new("retry", Shape::Whole { min: 1, max: 5 }, "How often.").required(),
        Field::new("then", Shape::Word(REMEDIES), "And then.").required(),
    ]],
};

static NODE: Record = Record {
    name: "node",
    noun: "key",
    doc: "What is special about an agent of a graph.",
    groups: &[&[
        Field::new(
            "join",
            Shape::WordOr(&["all", "any"], &QUORUM),
            "With how many inputs it starts.",
        )
        .default("all"),
        Field::new("on_failure", Shape::WordOr(REMEDIES, &RETRY), "What its failing means.")
            .default("what the graph says"),
    ]],
};

static QUORUM: Record = Record {
    name: "quorum",
    noun: "key",
    doc: "With so many of its inputs.",
    groups: &[&[
        Field::new("quorum", Shape::Whole { min: 1, max: ENDLESS }, "How many.").required()
    ]],
};
