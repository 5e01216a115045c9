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
    /// Its type in the schema; `strings` is a list of them.
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

const TO: [&str; 2] = ["The name of an agent or a person.", "代理或人的名字。"];
const ID: [&str; 2] = ["The message.", "邮件的 id。"];
const TOKEN: [&str; 2] = ["The lease that reading it gave.", "读取时得到的租约。"];
const REFS: [&str; 2] = ["What it refers to.", "引用的内容。"];
const BOARD: [&str; 2] = ["The name of the board.", "公告板的名称。"];
const CELL: [&str; 2] = ["The cell.", "单元格的名称。"];

/// Tools that work on what all runs share: mailboxes and boards (messaging.md). They change no file, and a
/// call of them may be made again: what it did once it does not do twice.
const SERVICES: &[Builtin] = &[
    Builtin {
        name: "mail.send",
        about: [
            "Sends a message to a mailbox that outlives this run; gives its id.",
            "向一个比本次运行更长久的邮箱发送邮件；给出其 id。",
        ],
        fields: &[
            needs("to", TO),
            needs("body", ["What it says.", "正文。"]),
            may("subject", "string", ["What it is about.", "主题。"]),
            may("refs", "strings", REFS),
            may("reply_to", "string", ["The message that it answers.", "所回复的邮件。"]),
            may("key", "string", ["Sent once under one key.", "同一个键只发送一次。"]),
            may(
                "after_current",
                "boolean",
                [
                    "Deliver it when the addressee has finished its current runs.",
                    "等收件人完成当前的运行后再投递。",
                ],
            ),
            may("delay_s", "integer", ["Deliver it after so many seconds.", "延迟投递的秒数。"]),
            may("ttl_s", "integer", ["Seconds until it expires unread.", "未读则过期的秒数。"]),
        ],
        writes: false,
    },
    Builtin {
        name: "mail.inbox",
        about: [
            "Lists what waits in your mailbox, without the texts; new mail comes to you by itself.",
            "列出你邮箱中等待的邮件（不含正文）；新邮件会自动送到。",
        ],
        fields: &[may("limit", "integer", ["How many.", "数量。"])],
        writes: false,
    },
    Builtin {
        name: "mail.read",
        about: [
            "Reads the oldest message in your mailbox, or the one named; it comes again unless mail.ack says that you are done with it.",
            "读取邮箱中最早的或指定的邮件；除非用 mail.ack 确认，否则会再次送达。",
        ],
        fields: &[
            may("id", "string", ID),
            may(
                "lease_s",
                "integer",
                ["Seconds until it comes again (300).", "再次送达前的秒数（300）。"],
            ),
        ],
        writes: false,
    },
    Builtin {
        name: "mail.ack",
        about: ["Says that you are done with a message.", "确认已处理一封邮件。"],
        fields: &[needs("id", ID), needs("lease", TOKEN)],
        writes: false,
    },
    Builtin {
        name: "mail.nack",
        about: ["Gives a message back, to be read again.", "退回一封邮件，以后再读。"],
        fields: &[
            needs("id", ID),
            needs("lease", TOKEN),
            may("delay_s", "integer", ["Not before so many seconds.", "至少等待的秒数。"]),
        ],
        writes: false,
    },
    Builtin {
        name: "board.show",
        about: [
            "Shows the entries and cells of a shared board that outlives this run.",
            "显示一个比本次运行更长久的公告板上的条目和单元格。",
        ],
        fields: &[
            needs("board", BOARD),
            may(
                "after",
                "integer",
                ["Only what came after this version.", "只看此版本之后的内容。"],
            ),
            may("topic", "string", ["Only entries on it.", "只看此主题的条目。"]),
            may("limit", "integer", ["How many entries (100).", "条目数量（100）。"]),
        ],
        writes: false,
    },
    Builtin {
        name: "board.post",
        about: ["Adds an entry to a shared board.", "向公告板添加一个条目。"],
        fields: &[
            needs("board", BOARD),
            needs("topic", ["What it is about.", "主题。"]),
            needs("text", ["What it says.", "正文。"]),
            may("refs", "strings", REFS),
        ],
        writes: false,
    },
    Builtin {
        name: "board.get",
        about: ["Gives a cell of a shared board.", "读取公告板的一个单元格。"],
        fields: &[needs("board", BOARD), needs("key", CELL)],
        writes: false,
    },
    Builtin {
        name: "board.set",
        about: [
            "Sets a cell of a shared board, unless somebody set it since you saw it.",
            "设置公告板的一个单元格，除非你看过之后已有人更改。",
        ],
        fields: &[
            needs("board", BOARD),
            needs("key", CELL),
            needs("value", ["JSON, else a text.", "JSON，否则为文本。"]),
            Field {
                name: "expect",
                kind: "integer",
                required: true,
                about: [
                    "The version that you saw; 0 for a new cell.",
                    "你看到的版本；新单元格为 0。",
                ],
            },
        ],
        writes: false,
    },
];

/// All that a grant may name, whole tools before their actions.
pub(crate) fn grantable() -> Vec<String> {
    let mut known = vec!["*".to_owned()];
    for Builtin { name, .. } in BUILTINS.iter().chain(SERVICES) {
        match name.split_once('.') {
            Some((tool, _)) if known.iter().any(|it| it == tool) => {}
            Some((tool, _)) => known.push(tool.to_owned()),
            None => {}
        }
        known.push((*name).to_owned());
    }
    known.push("shell.run".to_owned());
    known
}

/// Whether a grant names something that there is; `tool.*` is the whole tool.
pub(crate) fn is_grantable(grant: &str) -> bool {
    let whole = grant.strip_suffix(".*").filter(|tool| !tool.contains('.')).unwrap_or(grant);
    grantable().iter().any(|known| known == whole)
}

/// Whether a tool leaves files as they are: all that only look, and those of services.
pub(crate) fn only_looks(name: &str) -> bool {
    matches!(name, "file.read" | "file.list" | "search" | "fetch") || is_of_service(name)
}

/// Whether a tool works on mailboxes or boards.
pub fn is_of_service(name: &str) -> bool {
    matches!(name.split('.').next(), Some("mail" | "board"))
}

/// The tools that `agent` is offered: those granted to it that its sandbox lets it use.
pub(crate) fn offered_to(agent: &Agent, language: Language) -> Vec<Tool> {
    let granted = BUILTINS.iter().chain(SERVICES).filter(|tool| agent.is_granted(tool.name));
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
            let about = pick(field.about);
            let schema = match field.kind {
                "strings" => {
                    let items = json!({ "type": "string" });
                    json!({ "type": "array", "items": items, "description": about })
                }
                kind => json!({ "type": kind, "description": about }),
            };
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
        assert_eq!(
            names(&["mail.send", "board.get"], Sandbox::ReadOnly),
            ["mail.send", "board.get"]
        );
        assert_eq!(names(&["file"], Sandbox::Write), ["file.read", "file.list", "file.write"]);
        assert_eq!(names(&["*"], Sandbox::Write).len(), BUILTINS.len() + SERVICES.len());
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
        assert!(BUILTINS.iter().chain(SERVICES).all(|tool| known.iter().any(|it| it == tool.name)));
    }
}
