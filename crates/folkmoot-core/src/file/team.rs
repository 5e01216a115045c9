//! What a team file may hold (interface.md).

use crate::file::{
    collaboration::COLLABORATION,
    extensions::EXTENSIONS,
    script::SCRIPT,
    servers::{MCP_SERVERS, SERVER},
    shape::{ENDLESS, Field, List, MANY, Record, SOME, Shape, Zero},
};

/// A team file.
pub static TEAM: Record = Record {
    name: "team",
    noun: "key",
    doc: "A team of agents and how it works together. YAML 1.2 or JSON, at most 1 MiB.",
    groups: &[
        &[
            Field::new("name", Shape::Text, "The team's name."),
            Field::new("description", Shape::Text, "What the team is for."),
            Field::new("prompt", Shape::Text, "The lead's own prompt."),
            Field::new("prompt_file", Shape::Text, "A file that holds the lead's prompt."),
            Field::new("model", Shape::Text, MODEL).flag("--model"),
            Field::new("agents", AGENTS, "The team's agents.").or(&["subagents"]),
            Field::new("collaboration", Shape::Record(&COLLABORATION), COLLABORATION.doc)
                .default("the lead dispatches freely; without a lead, strategy auto"),
            Field::new("limits", Shape::Record(&LIMITS), "The limits of the whole run."),
            Field::new("sandbox", Shape::Word(SANDBOXES), "The ceiling for all agents.")
                .default("read-only")
                .flag("--sandbox"),
            Field::new("workdir", Shape::Text, "The workspace.")
                .default("the current folder")
                .flag("--workdir"),
            Field::new("extensions", Shape::Record(&EXTENSIONS), EXTENSIONS.doc),
            Field::new("mcp_servers", Shape::Named(&SERVER), MCP_SERVERS),
            Field::new("mail", Shape::Word(&["on", "off"]), "Whether its agents get their mail.")
                .default("on"),
            Field::new("agents_from", Shape::Text, "A folder of agent files to import."),
        ],
        RUNNING,
    ],
};

const AGENTS: Shape = Shape::List(List { of: &Shape::Record(&AGENT), what: "agents", ..MANY });

static AGENT: Record = Record {
    name: "agent",
    noun: "key",
    doc: "A member of the team. One thing answers for it: a model, a script, demo.",
    groups: &[
        &[
            Field::new("name", Shape::Text, "Its name as results and prompts show it.").required(),
            Field::new("description", Shape::Text, "What it is good for."),
            Field::new("prompt", Shape::Text, "Its own instructions."),
            Field::new("prompt_file", Shape::Text, "A file that holds its instructions."),
            Field::new("model", Shape::Text, "Its model: provider/model, or an alias.")
                .default("the team's model"),
            Field::new("capabilities", TEXTS, "Tags by which tasks find it."),
            Field::new(
                "limits",
                Shape::Record(&LIMITS),
                "Its own limits; they fail its calls only.",
            ),
            Field::new("team", Shape::Text, "Another team's file: its whole run is one turn."),
            Field::new("file", Shape::Text, "An agent file to import; what stands beside it wins."),
        ],
        RUNNING,
    ],
};

const MODEL: &str = "The default model of every agent: provider/model, or an alias.";

const TEXTS: Shape = Shape::List(List { of: &Shape::Text, what: "texts", ..MANY });

/// The levels of a sandbox, the narrowest first.
const SANDBOXES: &[&str] = &["read-only", "write", "full"];

/// The keys that the lead and other agents share: what answers, and with what means.
const RUNNING: &[Field] = &[
    Field::new("script", Shape::Record(&SCRIPT), SCRIPT.doc),
    Field::new("demo", Shape::Flag, "Whether it gives canned offline replies.").default("false"),
    Field::new("acp", Shape::Record(&ACP), ACP.doc),
    Field::new("cli", Shape::TextOr(&CLI), CLI.doc),
    Field::new("a2a", Shape::Record(&A2A), A2A.doc),
    Field::new("grants", TEXTS, "The tools it may use: file.read, shell, …")
        .default("[]; what is not granted is denied"),
    Field::new("max_steps", Shape::Whole { min: 1, max: 1000 }, "Model calls in one turn.")
        .default("30, of the lead 50"),
    Field::new("retries", Shape::Whole { min: 0, max: 10 }, "Extra attempts inside one call.")
        .default("2 for a model, else 0"),
    Field::new("env", Shape::Variables, "Variables of its processes; ${NAME} is filled in."),
    Field::new("env_allow", TEXTS, "Variables of ours that its processes get."),
    Field::new("inherit_env", Shape::Flag, "Whether its processes get all our variables.")
        .default("false"),
];

static ACP: Record = Record {
    name: "acp",
    noun: "key",
    doc: "A coding agent that is talked to in the Agent Client Protocol.",
    groups: &[&[COMMAND]],
};

static A2A: Record = Record {
    name: "a2a",
    noun: "key",
    doc: "A remote agent that is talked to in the Agent2Agent protocol.",
    groups: &[&[
        Field::new("url", Shape::Text, "Where its card is: its own address, or the host's.")
            .required(),
        Field::new("key_env", Shape::Text, "The variable that holds the key it wants to see."),
    ]],
};

/// A program to be started.
const COMMAND: Field = Field::new(
    "command",
    Shape::List(List { of: &Shape::Text, what: "words", ..SOME }),
    "The program and its arguments; no shell reads them.",
)
.required();

static CLI: Record = Record {
    name: "cli",
    noun: "key",
    doc: "A coding agent on the command line that answers for it: claude, codex, gemini, opencode, or a command.",
    groups: &[&[
        COMMAND,
        Field::new("input", Shape::Word(&["stdin", "file", "arg"]), "How it gets the prompt.")
            .default("stdin"),
        Field::new("output", Shape::Word(&["text", "json", "jsonl"]), "How it gives its reply.")
            .default("text"),
    ]],
};

static LIMITS: Record = Record {
    name: "limits",
    noun: "limit",
    doc: "What may be used; zero lets nothing start, an absent limit does not bind.",
    groups: &[&[
        Field::new("tokens", COUNT, "Tokens read and written.").flag("--max-tokens"),
        Field::new("calls", COUNT, "Calls started.").flag("--max-calls"),
        Field::new("cost_usd", Shape::Number { min: 0.0, max: 1e6 }, "Money, in US dollars.")
            .flag("--max-cost"),
        Field::new("time", Shape::Time(Zero::Allowed), "Active time.").flag("--deadline"),
        Field::new("concurrency", Shape::Whole { min: 1, max: 1024 }, "Calls at once."),
    ]],
};

const COUNT: Shape = Shape::Whole { min: 0, max: ENDLESS };
