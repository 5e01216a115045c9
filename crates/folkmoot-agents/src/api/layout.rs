//! Messages as the strictest server reads them (rules.md 10.10).

use folkmoot_core::{
    call::ToolCall,
    render::{Message, Role},
};
use serde_json::{Map, Value, json};

use super::kept::Kept;

/// A message as every protocol can send it. No speaker's name is ever sent: servers disagree about
/// what a name may hold (rules.md 2.8).
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Turn {
    /// The instructions; only the first turn can be one.
    System(String),
    /// Somebody else said something.
    User(String),
    /// The model said something or called tools.
    Assistant {
        text: Option<String>,
        calls: Vec<EarlierCall>,
        /// What the provider wants back.
        kept: Map<String, Value>,
    },
    /// What a tool gave back.
    Result { call: CallMark, text: String },
}

/// An earlier tool call of the model.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EarlierCall {
    pub mark: CallMark,
    /// An object, even where the model got it wrong.
    pub arguments: Value,
}

/// By what a tool call is known again.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CallMark {
    pub id: String,
    pub name: String,
    /// What the provider wants back with it.
    pub kept: Map<String, Value>,
}

/// Stands where a server wants a message and nobody said anything.
const NOTHING_SAID: &str = "Go on.";

/// Stands for the result of a tool that gave none.
const NO_OUTPUT: &str = "(no output)";

/// Lays `messages` out for `provider`: instructions first, then user and assistant in turn, nobody
/// empty, the last word with the user or a tool.
pub(super) fn lay_out(messages: &[Message], provider: &str) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::with_capacity(messages.len() + 2);
    for message in messages {
        let Some(next) = turn(message, provider, &turns) else { continue };
        if needs_user_before(&next, turns.last()) {
            turns.push(Turn::User(NOTHING_SAID.to_owned()));
        }
        add(&mut turns, next);
    }
    if !matches!(turns.last(), Some(Turn::User(_) | Turn::Result { .. })) {
        turns.push(Turn::User(NOTHING_SAID.to_owned()));
    }
    turns
}

/// The instructions, and the other turns by sides: the model's alone, all others together.
pub(super) fn sides(turns: &[Turn]) -> (Option<&str>, impl Iterator<Item = &[Turn]>) {
    let (instructions, turns) = match turns {
        [Turn::System(text), turns @ ..] => (Some(text.as_str()), turns),
        turns => (None, turns),
    };
    let is_model = |turn: &Turn| matches!(turn, Turn::Assistant { .. });
    (instructions, turns.chunk_by(move |one, other| is_model(one) == is_model(other)))
}

fn turn(message: &Message, provider: &str, before: &[Turn]) -> Option<Turn> {
    let text = (!message.content.trim().is_empty()).then(|| message.content.to_string());
    Some(match (message.role, &message.tool_call_id) {
        (Role::System, _) if matches!(before, [] | [Turn::System(_)]) => Turn::System(text?),
        (Role::Tool, Some(id)) => Turn::Result {
            call: mark_of(&wire_id(id), before),
            text: text.unwrap_or_else(|| NO_OUTPUT.to_owned()),
        },
        (Role::System | Role::User | Role::Tool, _) => Turn::User(text?),
        (Role::Assistant, _) if message.tool_calls.is_empty() => {
            Turn::Assistant { text: Some(text?), calls: Vec::new(), kept: Map::new() }
        }
        (Role::Assistant, _) => with_tool_calls(message, text, provider),
    })
}

/// Servers want their own fields back where they wait for tool results, and some refuse them
/// anywhere else.
fn with_tool_calls(message: &Message, text: Option<String>, provider: &str) -> Turn {
    let kept = Kept::of(message.provider.as_ref(), provider);
    let mut kept_of_calls = kept.tool_calls.into_iter();
    let earlier = |call: &ToolCall| EarlierCall {
        mark: CallMark {
            id: wire_id(&call.id),
            name: wire_name(&call.name),
            kept: kept_of_calls.next().unwrap_or_default(),
        },
        arguments: arguments(&call.arguments),
    };
    let calls = message.tool_calls.iter().map(earlier).collect();
    Turn::Assistant { text, calls, kept: kept.message }
}

/// The latest call with this id; ids may come again in a later reply.
fn mark_of(id: &str, before: &[Turn]) -> CallMark {
    let calls = before.iter().rev().flat_map(|turn| match turn {
        Turn::Assistant { calls, .. } => calls.as_slice(),
        Turn::System(_) | Turn::User(_) | Turn::Result { .. } => &[],
    });
    let mark = calls.map(|call| &call.mark).find(|mark| mark.id == id).cloned();
    mark.unwrap_or_else(|| CallMark { id: id.to_owned(), name: id.to_owned(), kept: Map::new() })
}

/// Servers read the arguments as an object, even those that the model got wrong.
fn arguments(arguments: &Value) -> Value {
    match arguments {
        Value::Object(_) => arguments.clone(),
        broken => json!({ "unreadable": broken }),
    }
}

fn needs_user_before(next: &Turn, before: Option<&Turn>) -> bool {
    matches!(next, Turn::Assistant { .. }) && matches!(before, None | Some(Turn::System(_)))
}

/// Adds `next` as a turn of its own, or to the turn before it if the same side speaks on.
fn add(turns: &mut Vec<Turn>, next: Turn) {
    match (turns.last_mut(), next) {
        (Some(Turn::System(text)), Turn::System(more))
        | (Some(Turn::User(text)), Turn::User(more)) => {
            text.push_str("\n\n");
            text.push_str(&more);
        }
        (
            Some(Turn::Assistant { text, calls, kept }),
            Turn::Assistant { text: more, calls: further, kept: also },
        ) => {
            let texts: Vec<_> = text.take().into_iter().chain(more).collect();
            *text = (!texts.is_empty()).then(|| texts.join("\n\n"));
            calls.extend(further);
            kept.extend(also);
        }
        (_, next) => turns.push(next),
    }
}

/// The name of a tool as every server accepts it. A dot becomes an underscore; where that could make
/// one name of two, or where it has to be cut, it carries a hash of the whole (rules.md 11.7).
pub(super) fn wire_name(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let is_clear = !name.contains('.') || !name.contains('_');
    let is_kept = is_clear && name.chars().all(|c| is_plain(c) || matches!(c, '.' | '_'));
    if is_kept && (1..=64).contains(&name.len()) {
        return name.replace('.', "_");
    }
    wire_id(name)
}

/// `id` if every server accepts it, else a readable form of it that is as unique.
fn wire_id(id: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if (1..=64).contains(&id.len()) && id.chars().all(is_plain) {
        return id.to_owned();
    }
    let plain = id.chars().map(|c| if is_plain(c) { c } else { '_' }).take(40);
    let hash = blake3::hash(id.as_bytes()).to_hex();
    format!("{}-{}", plain.collect::<String>(), &hash[..8])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::message;

    fn shape(messages: &[Message]) -> Vec<(&'static str, String)> {
        let plain = |turn| match turn {
            Turn::System(text) => ("system", text),
            Turn::User(text) => ("user", text),
            Turn::Assistant { text, .. } => ("assistant", text.unwrap_or_else(|| "-".to_owned())),
            Turn::Result { text, .. } => ("tool", text),
        };
        lay_out(messages, "p").into_iter().map(plain).collect()
    }

    fn pairs<'a>(expected: &[(&'a str, &str)]) -> Vec<(&'a str, String)> {
        expected.iter().map(|(role, text)| (*role, (*text).to_owned())).collect()
    }

    #[test]
    fn neighbours_of_one_side_are_merged_and_nobody_is_empty() {
        use Role::{Assistant, System, User};
        let messages = [
            message(System, "be brief"),
            message(System, "be kind"),
            message(User, "task"),
            message(User, " \n"),
            message(User, "quote"),
            message(Assistant, ""),
            message(Assistant, "mine"),
            message(Assistant, "more"),
            message(System, "a late word"),
            message(User, "go"),
        ];
        let expected = [
            ("system", "be brief\n\nbe kind"),
            ("user", "task\n\nquote"),
            ("assistant", "mine\n\nmore"),
            ("user", "a late word\n\ngo"),
        ];
        assert_eq!(shape(&messages), pairs(&expected));
    }

    #[test]
    fn the_user_speaks_first_and_last() {
        let expected = [("user", "Go on."), ("assistant", "mine"), ("user", "Go on.")];
        assert_eq!(shape(&[message(Role::Assistant, "mine")]), pairs(&expected));
        let expected = [("system", "be brief"), ("user", "Go on.")];
        assert_eq!(shape(&[message(Role::System, "be brief")]), pairs(&expected));
        assert_eq!(shape(&[]), pairs(&[("user", "Go on.")]));
    }

    #[test]
    fn a_result_is_marked_like_the_latest_call_with_its_id() {
        let kept = |sig: &str| Map::from_iter([("sig".to_owned(), json!(sig))]);
        let asks = |name: &str, sig: &str| Message {
            tool_calls: vec![ToolCall {
                id: "c.1".into(),
                name: name.into(),
                arguments: json!({}),
            }],
            provider: Kept::stored("p", Map::new(), vec![kept(sig)]),
            ..message(Role::Assistant, "")
        };
        let gives =
            |id: &str| Message { tool_call_id: Some(id.into()), ..message(Role::Tool, "it") };
        let messages = [asks("a", "1"), gives("c.1"), asks("b", "2"), gives("c.1"), gives("x")];
        let marks: Vec<_> = lay_out(&messages, "p")
            .into_iter()
            .filter_map(|turn| match turn {
                Turn::Result { call, .. } => Some((call.name, call.kept)),
                Turn::System(_) | Turn::User(_) | Turn::Assistant { .. } => None,
            })
            .collect();
        let expected = [("a", kept("1")), ("b", kept("2")), ("x", Map::new())]
            .map(|(it, kept)| (it.to_owned(), kept));
        assert_eq!(marks, expected);
    }

    #[test]
    fn sides_take_turns_and_the_instructions_stand_apart() {
        use Role::{Assistant, System, Tool, User};
        let call = ToolCall { id: "c".into(), name: "look".into(), arguments: json!({}) };
        let turns = lay_out(
            &[
                message(System, "be brief"),
                message(User, "task"),
                Message { tool_calls: vec![call], ..message(Assistant, "") },
                Message { tool_call_id: Some("c".into()), ..message(Tool, "") },
                message(User, "go on"),
                message(Assistant, "done"),
            ],
            "p",
        );
        let (instructions, sides) = sides(&turns);
        let lengths: Vec<_> = sides.map(<[Turn]>::len).collect();
        assert_eq!((instructions, lengths), (Some("be brief"), vec![1, 1, 2, 1, 1]));
    }

    #[test]
    fn no_two_tools_have_one_name() {
        assert_eq!(wire_name("file.read"), "file_read");
        assert_eq!(wire_name("mcp.files.read-all"), "mcp_files_read-all");
        let long = "mcp.northwind-archive-service-production.archive";
        let names = [
            "mcp.a.b_c",
            "mcp.a_b.c",
            "mcp.a.b.c",
            "mcp.a.b/c",
            "mcp.a.b:c",
            "mcp.one.search",
            "mcp.two.search",
            &format!("{long}_create_entry_with_links_and_permissions"),
            &format!("{long}_delete_entry_with_links_and_permissions"),
            &format!("{long}-create-entry-with-links-and-permissions"),
            &format!("{long}-delete-entry-with-links-and-permissions"),
        ];
        let wire: std::collections::BTreeSet<String> = names.map(wire_name).into();
        assert_eq!(wire.len(), names.len(), "{wire:?}");
        let is_accepted = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        assert!(wire.iter().all(|it| it.len() <= 64 && it.chars().all(is_accepted)), "{wire:?}");
    }

    #[test]
    fn ids_that_a_server_might_refuse_are_replaced_and_stay_apart() {
        assert_eq!(wire_id("call_1-a"), "call_1-a");
        assert_ne!(wire_id("研究.read"), wire_id("研究/read"));
        for id in ["", "file.read", "研究员", &"x".repeat(65), "a b\n"] {
            let wire = wire_id(id);
            assert!(
                wire.len() <= 64
                    && wire.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
            );
        }
    }
}
