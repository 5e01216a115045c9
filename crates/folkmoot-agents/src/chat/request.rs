//! The bytes of a request. They are stable: equal calls give equal bytes, fields in fixed order.

use bytes::Bytes;
use folkmoot_core::{render::Message, team::Model};
use serde::{Serialize, Serializer, ser::SerializeMap};

use super::layout::{WireMessage, lay_out};
use crate::known::Quirks;

struct Body<'a> {
    model: &'a str,
    messages: Vec<WireMessage>,
    quirks: &'a Quirks,
    max_tokens: Option<u64>,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_map(None)?;
        fields.serialize_entry("model", self.model)?;
        fields.serialize_entry("messages", &self.messages)?;
        if let Some(max_tokens) = self.max_tokens {
            fields.serialize_entry(self.quirks.max_tokens, &max_tokens)?;
        }
        fields.serialize_entry("stream", &true)?;
        if self.quirks.stream_usage {
            fields.serialize_entry("stream_options", &IncludeUsage { include_usage: true })?;
        }
        fields.end()
    }
}

#[derive(Serialize)]
struct IncludeUsage {
    include_usage: bool,
}

/// The request that asks `model` of `provider` to go on from `messages`.
pub(super) fn body(
    model: &Model,
    messages: &[Message],
    max_output_tokens: Option<u64>,
    quirks: &Quirks,
) -> Bytes {
    let body = Body {
        model: &model.model,
        messages: lay_out(messages, &model.provider),
        quirks,
        max_tokens: max_output_tokens.or(model.max_output_tokens),
    };
    serde_json::to_vec(&body).expect("it is plain data").into()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use folkmoot_core::{call::ToolCall, render::Role};
    use serde_json::{Map, Value, json};

    use super::{super::kept::Kept, *};
    use crate::testing::{message, model};

    fn check(model: &Model, messages: &[Message], quirks: &Quirks, bytes: &Expect) {
        let body = body(model, messages, None, quirks);
        bytes.assert_eq(std::str::from_utf8(&body).expect("it is JSON"));
    }

    fn conversation() -> Vec<Message> {
        vec![
            message(Role::System, "You are 产品经理."),
            message(Role::User, "Q3 优先做哪个功能？\n\"Export\" </b>"),
        ]
    }

    #[test]
    fn a_first_request() {
        check(
            &model("openai"),
            &conversation(),
            &Quirks::USUAL,
            &expect![[
                r#"{"model":"m-1","messages":[{"role":"system","content":"You are 产品经理."},{"role":"user","content":"Q3 优先做哪个功能？\n\"Export\" </b>"}],"stream":true,"stream_options":{"include_usage":true}}"#
            ]],
        );
    }

    #[test]
    fn a_bounded_request_to_a_server_that_knows_no_stream_options() {
        let bounded = Model { max_output_tokens: Some(50), ..model("mistral") };
        let quirks =
            Quirks { stream_usage: false, max_tokens: "max_completion_tokens", ..Quirks::USUAL };
        check(
            &bounded,
            &[message(Role::User, "hi")],
            &quirks,
            &expect![[
                r#"{"model":"m-1","messages":[{"role":"user","content":"hi"}],"max_completion_tokens":50,"stream":true}"#
            ]],
        );
    }

    #[test]
    fn the_bound_of_the_call_wins() {
        let bounded = Model { max_output_tokens: Some(50), ..model("openai") };
        let body = body(&bounded, &[], Some(20), &Quirks::USUAL);
        let body: Value = serde_json::from_slice(&body).expect("it is JSON");
        assert_eq!(body["max_tokens"], 20);
    }

    /// A conversation in which `deepseek` thought aloud and called a tool.
    fn with_a_tool() -> Vec<Message> {
        let reasoning = Map::from_iter([("reasoning_content".to_owned(), json!("I should look."))]);
        let call = ToolCall { id: "c1".into(), name: "look".into(), arguments: json!({"at": "a"}) };
        let kept_of_call = Map::from_iter([("extra_content".to_owned(), json!({"sig": "s"}))]);
        let mut messages = conversation();
        messages.push(Message {
            tool_calls: vec![call],
            provider: Kept::stored("deepseek", reasoning, vec![kept_of_call]),
            ..message(Role::Assistant, "")
        });
        messages.push(Message {
            tool_call_id: Some("c1".into()),
            ..message(Role::Tool, "nothing there")
        });
        messages
    }

    #[test]
    fn a_provider_gets_its_own_fields_back_with_its_tool_calls() {
        check(
            &model("deepseek"),
            &with_a_tool(),
            &Quirks::USUAL,
            &expect![[
                r#"{"model":"m-1","messages":[{"role":"system","content":"You are 产品经理."},{"role":"user","content":"Q3 优先做哪个功能？\n\"Export\" </b>"},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{\"at\":\"a\"}"},"extra_content":{"sig":"s"}}],"reasoning_content":"I should look."},{"role":"tool","tool_call_id":"c1","content":"nothing there"}],"stream":true,"stream_options":{"include_usage":true}}"#
            ]],
        );
    }

    #[test]
    fn no_other_provider_gets_them() {
        check(
            &model("moonshot"),
            &with_a_tool(),
            &Quirks::USUAL,
            &expect![[
                r#"{"model":"m-1","messages":[{"role":"system","content":"You are 产品经理."},{"role":"user","content":"Q3 优先做哪个功能？\n\"Export\" </b>"},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{\"at\":\"a\"}"}}]},{"role":"tool","tool_call_id":"c1","content":"nothing there"}],"stream":true,"stream_options":{"include_usage":true}}"#
            ]],
        );
    }

    #[test]
    fn each_request_extends_the_one_before_byte_for_byte() {
        let mut messages = conversation();
        let first = body(&model("openai"), &messages, None, &Quirks::USUAL);
        messages.extend([message(Role::Assistant, "Export."), message(Role::User, "Why?")]);
        let second = body(&model("openai"), &messages, None, &Quirks::USUAL);
        let end_of_messages = b"],\"stream\"";
        let shared = first.windows(end_of_messages.len()).position(|it| it == end_of_messages);
        let shared = shared.expect("the field stands behind the messages");
        assert_eq!(first[..shared], second[..shared]);
    }
}
