//! Messages as the strictest server reads them (rules.md 10.10).

use folkmoot_core::{
    call::ToolCall,
    render::{Message, Role},
};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::kept::Kept;

/// A message on the wire. No speaker's name is ever sent: servers disagree about what a name may
/// hold (rules.md 2.8).
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub(super) enum WireMessage {
    System {
        content: String,
    },
    User {
        content: String,
    },
    Assistant {
        /// Null beside tool calls, where a server refuses the empty string.
        content: Option<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<WireCall>,
        /// What the provider wants back.
        #[serde(flatten)]
        kept: Map<String, Value>,
    },
    Tool {
        tool_call_id: String,
        content: String,
    },
}

/// An earlier tool call of the model on the wire.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct WireCall {
    id: String,
    r#type: &'static str,
    function: WireFunction,
    #[serde(flatten)]
    kept: Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct WireFunction {
    name: String,
    /// JSON text.
    arguments: String,
}

/// Stands where a server wants a message and nobody said anything.
const NOTHING_SAID: &str = "Go on.";

/// Stands for the result of a tool that gave none.
const NO_OUTPUT: &str = "(no output)";

/// Lays `messages` out for `provider`: instructions first, then user and assistant in turn, nobody
/// empty, the last word with the user or a tool.
pub(super) fn lay_out(messages: &[Message], provider: &str) -> Vec<WireMessage> {
    let mut laid_out: Vec<WireMessage> = Vec::with_capacity(messages.len() + 2);
    for message in messages {
        let Some(next) = on_the_wire(message, provider, laid_out.last()) else { continue };
        if needs_user_before(&next, laid_out.last()) {
            laid_out.push(WireMessage::User { content: NOTHING_SAID.to_owned() });
        }
        if let Err(next) = merge(laid_out.last_mut(), next) {
            laid_out.push(next);
        }
    }
    if !matches!(laid_out.last(), Some(WireMessage::User { .. } | WireMessage::Tool { .. })) {
        laid_out.push(WireMessage::User { content: NOTHING_SAID.to_owned() });
    }
    laid_out
}

fn on_the_wire(
    message: &Message,
    provider: &str,
    before: Option<&WireMessage>,
) -> Option<WireMessage> {
    let content = (!message.content.trim().is_empty()).then(|| message.content.to_string());
    Some(match (message.role, &message.tool_call_id) {
        (Role::System, _) if matches!(before, None | Some(WireMessage::System { .. })) => {
            WireMessage::System { content: content? }
        }
        (Role::Tool, Some(id)) => WireMessage::Tool {
            tool_call_id: wire_id(id),
            content: content.unwrap_or_else(|| NO_OUTPUT.to_owned()),
        },
        (Role::System | Role::User | Role::Tool, _) => WireMessage::User { content: content? },
        (Role::Assistant, _) if message.tool_calls.is_empty() => WireMessage::Assistant {
            content: Some(content?),
            tool_calls: Vec::new(),
            kept: Map::new(),
        },
        (Role::Assistant, _) => with_tool_calls(message, content, provider),
    })
}

/// Servers want their own fields back where they wait for tool results, and some refuse them
/// anywhere else.
fn with_tool_calls(message: &Message, content: Option<String>, provider: &str) -> WireMessage {
    let kept = Kept::of(message.provider.as_ref(), provider);
    let mut kept_of_calls = kept.tool_calls.into_iter();
    let wire_call = |call: &ToolCall| WireCall {
        id: wire_id(&call.id),
        r#type: "function",
        function: WireFunction { name: wire_id(&call.name), arguments: arguments(&call.arguments) },
        kept: kept_of_calls.next().unwrap_or_default(),
    };
    let tool_calls = message.tool_calls.iter().map(wire_call).collect();
    WireMessage::Assistant { content, tool_calls, kept: kept.message }
}

/// Servers read the arguments as an object, even those that the model got wrong.
fn arguments(arguments: &Value) -> String {
    match arguments {
        Value::Object(_) => arguments.to_string(),
        broken => json!({ "unreadable": broken }).to_string(),
    }
}

fn needs_user_before(next: &WireMessage, before: Option<&WireMessage>) -> bool {
    matches!(next, WireMessage::Assistant { .. })
        && matches!(before, None | Some(WireMessage::System { .. }))
}

/// Adds `next` to the message before it if the same side speaks on; gives it back otherwise.
fn merge(before: Option<&mut WireMessage>, next: WireMessage) -> Result<(), WireMessage> {
    match (before, next) {
        (Some(WireMessage::System { content }), WireMessage::System { content: more })
        | (Some(WireMessage::User { content }), WireMessage::User { content: more }) => {
            content.push_str("\n\n");
            content.push_str(&more);
        }
        (
            Some(WireMessage::Assistant { content, tool_calls, kept }),
            WireMessage::Assistant { content: more, tool_calls: further, kept: also },
        ) => {
            let texts: Vec<_> = content.take().into_iter().chain(more).collect();
            *content = (!texts.is_empty()).then(|| texts.join("\n\n"));
            tool_calls.extend(further);
            kept.extend(also);
        }
        (_, next) => return Err(next),
    }
    Ok(())
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

    fn shape(messages: &[Message]) -> Vec<(String, String)> {
        let part = |message: &Value, name: &str| message[name].as_str().unwrap_or("-").to_owned();
        let laid_out = lay_out(messages, "p").into_iter();
        let laid_out = laid_out.map(|it| serde_json::to_value(it).expect("it is plain data"));
        laid_out.map(|it| (part(&it, "role"), part(&it, "content"))).collect()
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
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
    fn tool_calls_and_their_results_keep_together() {
        let call = ToolCall {
            id: "c1".into(),
            name: "file.read".into(),
            arguments: json!({ "path": "a" }),
        };
        let broken = ToolCall { arguments: json!("{\"path"), id: "c2".into(), ..call.clone() };
        let asks = Message { tool_calls: vec![call, broken], ..message(Role::Assistant, "") };
        let result =
            |id: &str| Message { tool_call_id: Some(id.into()), ..message(Role::Tool, "") };
        let laid_out =
            lay_out(&[message(Role::User, "task"), asks, result("c1"), result("c2")], "p");
        expect_test::expect![[r#"
            [
              {
                "role": "user",
                "content": "task"
              },
              {
                "role": "assistant",
                "content": null,
                "tool_calls": [
                  {
                    "id": "c1",
                    "type": "function",
                    "function": {
                      "name": "file_read-5d22b9ce",
                      "arguments": "{\"path\":\"a\"}"
                    }
                  },
                  {
                    "id": "c2",
                    "type": "function",
                    "function": {
                      "name": "file_read-5d22b9ce",
                      "arguments": "{\"unreadable\":\"{\\\"path\"}"
                    }
                  }
                ]
              },
              {
                "role": "tool",
                "tool_call_id": "c1",
                "content": "(no output)"
              },
              {
                "role": "tool",
                "tool_call_id": "c2",
                "content": "(no output)"
              }
            ]"#]]
        .assert_eq(&serde_json::to_string_pretty(&laid_out).expect("it is plain data"));
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
