//! The built-in tools: what they are called, what a model is told of them, who may use them
//! (agents.md §§5, 6).
//!
//! What a tool does is the business of whoever runs it; here stands what a checked spec and a model
//! must know.

use serde_json::{Map, Value, json};

use crate::{
    call::{Tool, ToolCall},
    team::{Agent, Sandbox},
    text::shorten,
    words::Language,
};

/// A tool that an agent can be offered.
#[derive(Debug)]
struct Builtin {
    name: &'static str,
    /// What it does, in English and in Chinese.
    about: [&'static str; 2],
    fields: &'static [Field],
    /// Whether it changes the workspace.
    writes: bool,
}

/// An argument of a tool.
#[derive(Debug)]
struct Field {
    name: &'static str,
    kind: &'static str,
    required: bool,
    about: [&'static str; 2],
}

const fn needs(name: &'static str, about: [&'static str; 2]) -> Field {
    Field { name, kind: "string", required: true, about }
}

const fn may(name: &'static str, kind: &'static str, about: [&'static str; 2]) -> Field {
    Field { name, kind, required: false, about }
}

const PATH: [&str; 2] = ["A path in the workspace.", "工作区内的路径。"];
const GLOB: [&str; 2] =
    ["Only files that match, such as **/*.rs.", "只看匹配的文件，例如 **/*.rs。"];

const BUILTINS: &[Builtin] = &[
    Builtin {
        name: "file.read",
        about: ["Reads a text file; each line with its number.", "读取文本文件；每行带行号。"],
        fields: &[
            needs("path", PATH),
            may("offset", "integer", ["The first line, from 1.", "起始行，从 1 开始。"]),
            may("limit", "integer", ["How many lines.", "读取的行数。"]),
        ],
        writes: false,
    },
    Builtin {
        name: "file.list",
        about: [
            "Lists the files and folders below a folder, with their sizes; what .gitignore names is left out.",
            "列出文件夹下的文件与子文件夹及其大小；忽略 .gitignore 所列。",
        ],
        fields: &[
            may("path", "string", PATH),
            may("glob", "string", GLOB),
            may("depth", "integer", ["How deep to look.", "查看的层数。"]),
        ],
        writes: false,
    },
    Builtin {
        name: "file.write",
        about: [
            "Writes a whole file (content), or replaces a text that occurs once in it (old, new).",
            "写入整个文件（content），或替换其中只出现一次的文本（old、new）。",
        ],
        fields: &[
            needs("path", PATH),
            may("content", "string", ["The whole new text.", "完整的新内容。"]),
            may("old", "string", ["The text to be replaced.", "要替换的文本。"]),
            may("new", "string", ["What stands there instead.", "替换后的文本。"]),
            may("all", "boolean", ["Replace every occurrence.", "替换所有出现之处。"]),
        ],
        writes: true,
    },
    Builtin {
        name: "search",
        about: [
            "Searches the files of the workspace for a regular expression; gives path:line: text.",
            "用正则表达式搜索工作区的文件；给出 路径:行号: 文本。",
        ],
        fields: &[
            needs("pattern", ["A regular expression.", "正则表达式。"]),
            may("glob", "string", GLOB),
            may("context", "integer", ["Lines around each match.", "每处匹配前后的行数。"]),
        ],
        writes: false,
    },
    Builtin {
        name: "shell",
        about: [
            "Runs a command in the workspace; gives its exit code and what it wrote.",
            "在工作区运行命令；给出退出码和输出。",
        ],
        fields: &[
            needs("command", ["A line for the shell.", "交给 shell 的一行命令。"]),
            may("timeout_s", "number", ["Seconds it may take (120).", "允许的秒数（120）。"]),
            may("cwd", "string", ["A folder in the workspace.", "工作区内的文件夹。"]),
        ],
        writes: false,
    },
    Builtin {
        name: "fetch",
        about: [
            "Gets a page by http or https; gives its status and text.",
            "通过 http 或 https 获取网页；给出状态码和文本。",
        ],
        fields: &[needs("url", ["The address.", "网址。"])],
        writes: false,
    },
];

/// What else can be granted: tools that come with a service.
const SERVICES: &[(&str, &[&str])] = &[
    ("mail", &["send", "inbox", "read", "ack", "nack"]),
    ("board", &["show", "post", "get", "set"]),
];

/// All that a grant may name, whole tools before their actions.
pub(crate) fn grantable() -> Vec<String> {
    let mut known = vec!["*".to_owned()];
    for Builtin { name, .. } in BUILTINS {
        match name.split_once('.') {
            Some((tool, _)) if known.iter().any(|it| it == tool) => {}
            Some((tool, _)) => known.push(tool.to_owned()),
            None => {}
        }
        known.push((*name).to_owned());
    }
    known.push("shell.run".to_owned());
    for (tool, actions) in SERVICES {
        known.push((*tool).to_owned());
        known.extend(actions.iter().map(|action| format!("{tool}.{action}")));
    }
    known
}

/// Whether a grant names something that there is; `tool.*` is the whole tool.
pub(crate) fn is_grantable(grant: &str) -> bool {
    let whole = grant.strip_suffix(".*").filter(|tool| !tool.contains('.')).unwrap_or(grant);
    grantable().iter().any(|known| known == whole)
}

/// Whether a tool leaves files as they are: all that only look, and those of services.
pub(crate) fn only_looks(name: &str) -> bool {
    let is_of_service = |(tool, _): &(&str, _)| name.split('.').next() == Some(tool);
    matches!(name, "file.read" | "file.list" | "search" | "fetch")
        || SERVICES.iter().any(is_of_service)
}

/// The tools that `agent` is offered: those granted to it that its sandbox lets it use.
pub(crate) fn offered_to(agent: &Agent, language: Language) -> Vec<Tool> {
    let granted = BUILTINS.iter().filter(|tool| agent.is_granted(tool.name));
    let usable = granted.filter(|tool| !tool.writes || agent.sandbox > Sandbox::ReadOnly);
    usable.map(|tool| tool.told(language)).collect()
}

/// Where what a tool gives back is from, as far as its arguments tell: a path, an address, a pattern,
/// a command; on one line and not longer than a line.
pub(crate) fn source(call: &ToolCall) -> Option<String> {
    let named = ["path", "url", "pattern", "command"];
    let source = named.into_iter().find_map(|name| call.arguments.get(name)?.as_str())?;
    let line = source.split_whitespace().collect::<Vec<_>>().join(" ");
    Some(shorten(&line, LONGEST_SOURCE, Language::English).into_owned())
}

/// How many characters are told of where a result is from.
const LONGEST_SOURCE: usize = 200;

impl Builtin {
    fn told(&self, language: Language) -> Tool {
        let pick = |[english, chinese]: [&'static str; 2]| language.pick(english, chinese);
        let property = |field: &Field| {
            let schema = json!({ "type": field.kind, "description": pick(field.about) });
            (field.name.to_owned(), schema)
        };
        let properties: Map<String, Value> = self.fields.iter().map(property).collect();
        let required = self.fields.iter().filter(|field| field.required);
        let required: Vec<&str> = required.map(|field| field.name).collect();
        let parameters =
            json!({ "type": "object", "properties": properties, "required": required });
        Tool { name: self.name.into(), description: pick(self.about).into(), parameters }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::team::Target;

    fn names(grants: &[&str], sandbox: Sandbox) -> Vec<String> {
        let grants = grants.iter().map(|grant| (*grant).into()).collect();
        let agent = Agent { grants, sandbox, ..Agent::new("a", Target::Demo) };
        let tools = offered_to(&agent, Language::English);
        tools.iter().map(|tool| tool.name.to_string()).collect()
    }

    #[test]
    fn nobody_is_offered_what_is_not_granted() {
        assert_eq!(names(&[], Sandbox::Full), [] as [&str; 0]);
        let reads = ["file.read", "file.list"];
        assert_eq!(names(&["file.read"], Sandbox::Full), reads, "who reads may list");
        assert_eq!(names(&["shell.run", "search.*"], Sandbox::Full), ["search", "shell"]);
        assert_eq!(names(&["file.list"], Sandbox::Full), ["file.list"]);
        assert_eq!(names(&["file"], Sandbox::Write), ["file.read", "file.list", "file.write"]);
        assert_eq!(names(&["*"], Sandbox::Write).len(), BUILTINS.len());
    }

    #[test]
    fn whoever_may_write_nothing_is_not_offered_to() {
        assert_eq!(names(&["file"], Sandbox::ReadOnly), ["file.read", "file.list"]);
    }

    #[test]
    fn every_tool_and_action_can_be_granted() {
        let known = grantable();
        for name in ["*", "file", "file.write", "search", "shell", "mail", "mail.send", "board.set"]
        {
            assert!(known.iter().any(|it| it == name), "{name}");
        }
        assert!(BUILTINS.iter().all(|tool| known.iter().any(|it| it == tool.name)));
    }
}
