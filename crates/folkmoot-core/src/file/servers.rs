//! What is said of MCP servers, in a team file or in the `.mcp.json` of a workspace (agents.md §6).

use crate::file::shape::{Field, List, MANY, Record, Shape, Zero};

/// The file of a workspace that names servers.
pub const MCP_JSON: &str = ".mcp.json";

/// What the servers of a team file are for.
pub(super) const MCP_SERVERS: &str =
    "MCP servers by name, in the usual shape; they win over those of .mcp.json in the workspace.";

/// The key of `.mcp.json` under which its servers stand.
pub const SERVERS: &str = "mcpServers";

/// A server.
pub static SERVER: Record = Record {
    name: "mcp_server",
    noun: "key",
    doc: "An MCP server: a command that is started when it is first needed, or an address.",
    groups: &[&[
        Field::new("type", Shape::Word(TYPES), "How it is talked to.")
            .default("stdio with a command, http with a url"),
        Field::new("command", Shape::Filled, "The program; no shell reads it."),
        Field::new("args", ARGS, "Its arguments."),
        Field::new("env", Shape::Variables, "Variables that it gets; ${NAME} is filled in."),
        Field::new("url", Shape::Filled, "Its address, http or https."),
        Field::new("headers", Shape::Headers, "Headers of each request; ${NAME} is filled in."),
        Field::new("call_timeout", Shape::Time(Zero::Refused), "How long a call takes at most.")
            .default("10m"),
        Field::new(
            "idle_timeout",
            Shape::Time(Zero::Refused),
            "How long a call goes on without a sign of progress.",
        )
        .default("2m"),
        Field::new("start_timeout", Shape::Time(Zero::Refused), "How long it takes to start.")
            .default("30"),
    ]],
};

/// How servers are talked to; `sse` is known to be refused with a word on what stands in its place.
const TYPES: &[&str] = &["stdio", "http", "streamable-http", "sse"];

const ARGS: Shape = Shape::List(List { of: &Shape::Filled, what: "texts", ..MANY });
