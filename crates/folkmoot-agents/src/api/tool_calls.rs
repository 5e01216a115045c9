//! Tool calls, put together from what a stream brings of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use folkmoot_core::call::ToolCall;
use serde_json::{Map, Value};

use super::{arguments::Arguments, kept::extend};

/// A piece of a tool call, or a whole one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct CallPiece {
    /// The number by which later pieces find the call.
    pub index: Option<u64>,
    pub id: Option<String>,
    pub name: Option<String>,
    /// A piece of JSON text, or an object at once.
    pub arguments: Option<Value>,
    /// Fields that only the provider understands.
    pub kept: Map<String, Value>,
}

/// The tool calls of a reply under way.
#[derive(Clone, Debug, Default)]
pub(super) struct CallDraft {
    calls: Vec<Building>,
    /// Where the latest call with an index stands.
    latest: BTreeMap<u64, usize>,
}

#[derive(Clone, Debug, Default)]
struct Building {
    id: Option<String>,
    name: String,
    arguments: Arguments,
    kept: Map<String, Value>,
}

impl CallDraft {
    /// Begins a call.
    pub(super) fn begin(&mut self, piece: CallPiece) {
        if let Some(index) = piece.index {
            self.latest.insert(index, self.calls.len());
        }
        let mut call = Building::default();
        call.take(piece);
        self.calls.push(call);
    }

    /// Adds to the arguments of the latest call with `index`; without one they are nobody's.
    pub(super) fn go_on(&mut self, index: u64, arguments: &str) {
        if let Some(at) = self.latest.get(&index) {
            self.calls[*at].arguments.push(arguments);
        }
    }

    /// Adds a piece to the latest call with its index, unless it begins a new one.
    pub(super) fn begin_or_go_on(&mut self, piece: CallPiece) {
        let (id, name) = (set(piece.id.as_deref()), set(piece.name.as_deref()));
        let meant = match piece.index {
            None => self.calls.last_mut(),
            Some(index) => self.latest.get(&index).map(|at| &mut self.calls[*at]),
        };
        match meant {
            Some(call) if !call.ends_at(id, name) => call.take(piece),
            _ => self.begin(piece),
        }
    }

    /// How many calls have begun.
    pub(super) fn len(&self) -> usize {
        self.calls.len()
    }

    /// How many bytes they hold.
    pub(super) fn bytes(&self) -> usize {
        self.calls.iter().map(|call| call.name.len() + call.arguments.len()).sum()
    }

    /// The calls, and what their provider wants back with each. Those without an id of their own
    /// get one that begins with `prefix`.
    pub(super) fn finish(self, prefix: &str) -> (Vec<ToolCall>, Vec<Map<String, Value>>) {
        let ids = ids(&self.calls, prefix);
        let call = |(call, id): (Building, Arc<str>)| {
            let (name, arguments) = (Arc::from(call.name), call.arguments.read());
            (ToolCall { id, name, arguments }, call.kept)
        };
        self.calls.into_iter().zip(ids).map(call).unzip()
    }
}

/// An id for each call: its own if no call before has it, else a new one that no call has.
fn ids(calls: &[Building], prefix: &str) -> Vec<Arc<str>> {
    let given: BTreeSet<&str> = calls.iter().filter_map(|call| call.id.as_deref()).collect();
    let mut taken = BTreeSet::new();
    let ids = (1..).zip(calls).map(|(nth, call)| {
        let own = call.id.as_deref().filter(|id| taken.insert(*id)).map(Arc::from);
        own.unwrap_or_else(|| {
            let mut new = format!("{prefix}-{nth}");
            while given.contains(&*new) {
                new.push('x');
            }
            new.into()
        })
    });
    ids.collect()
}

impl Building {
    fn take(&mut self, piece: CallPiece) {
        self.id = self.id.take().or(set(piece.id));
        if self.name.is_empty() {
            self.name = piece.name.unwrap_or_default();
        }
        match piece.arguments {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) => self.arguments.push(&text),
            Some(whole) => self.arguments.push(&whole.to_string()),
        }
        extend(&mut self.kept, piece.kept);
    }

    /// Whether a piece with this id and name belongs to a new call (rules.md 10.5).
    ///
    /// Some servers name the call in each of its pieces: without ids, the same name begins a new
    /// call only once the arguments are complete.
    fn ends_at(&self, id: Option<&str>, name: Option<&str>) -> bool {
        let is_renamed = name.is_some_and(|name| !self.name.is_empty() && name != self.name);
        match (id, &self.id) {
            (Some(new), Some(old)) => new != old || is_renamed,
            (None, _) | (_, None) => is_renamed || (name.is_some() && self.arguments.is_complete()),
        }
    }
}

/// A text that servers also send empty where they mean none.
fn set<Text: AsRef<str>>(text: Option<Text>) -> Option<Text> {
    text.filter(|text| !text.as_ref().is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::chat::CallDelta, *};

    /// The pieces in the shape in which `chat` brings them.
    fn pieces(deltas: Value) -> Vec<CallPiece> {
        let deltas: Vec<CallDelta> = serde_json::from_value(deltas).expect("they are deltas");
        deltas.into_iter().map(CallPiece::from).collect()
    }

    fn finished(draft: CallDraft) -> Vec<(String, String, Value)> {
        let plain = |call: ToolCall| (call.id.to_string(), call.name.to_string(), call.arguments);
        draft.finish("call-7").0.into_iter().map(plain).collect()
    }

    fn calls(deltas: Value) -> Vec<(String, String, Value)> {
        let mut draft = CallDraft::default();
        for piece in pieces(deltas) {
            draft.begin_or_go_on(piece);
        }
        finished(draft)
    }

    fn call(id: &str, name: &str, arguments: Value) -> (String, String, Value) {
        (id.to_owned(), name.to_owned(), arguments)
    }

    #[test]
    fn pieces_are_joined_by_their_index_even_when_they_take_turns() {
        let calls = calls(json!([
            {"index": 0, "id": "a", "type": "function", "function": {"name": "read", "arguments": ""}},
            {"index": 1, "id": "b", "type": "function", "function": {"name": "list", "arguments": "{\"q\""}},
            {"index": 0, "function": {"arguments": "{\"p\":"}},
            {"index": 1, "function": {"arguments": ":2}"}},
            {"index": 0, "id": null, "function": {"name": null, "arguments": "1}"}},
        ]));
        assert_eq!(calls, [call("a", "read", json!({"p": 1})), call("b", "list", json!({"q": 2}))]);
    }

    #[test]
    fn a_new_id_begins_a_new_call_at_the_same_index() {
        let calls = calls(json!([
            {"index": 0, "id": "c1", "function": {"name": "read", "arguments": "{\"p\":\"x\"}"}},
            {"index": 0, "id": "c2", "function": {"name": "read", "arguments": "{\"p\":\"y\"}"}},
        ]));
        assert_eq!(
            calls,
            [call("c1", "read", json!({"p": "x"})), call("c2", "read", json!({"p": "y"}))]
        );
    }

    #[test]
    fn a_name_begins_a_new_call_where_there_are_no_ids() {
        let calls = calls(json!([
            {"index": 0, "function": {"name": "read", "arguments": "{\"p\":\"x\"}"}},
            {"index": 0, "function": {"name": "read", "arguments": "{\"p\":\"y\"}"}},
            {"function": {"name": "list", "arguments": "{\"d\""}},
            {"function": {"name": "read", "arguments": "{}"}},
        ]));
        let expected = [
            call("call-7-1", "read", json!({"p": "x"})),
            call("call-7-2", "read", json!({"p": "y"})),
            call("call-7-3", "list", json!("{\"d\"")),
            call("call-7-4", "read", json!({})),
        ];
        assert_eq!(calls, expected);
    }

    #[test]
    fn a_name_or_id_that_is_repeated_in_each_piece_begins_nothing() {
        for id in [json!("c1"), json!(null), json!("")] {
            let calls = calls(json!([
                {"index": 0, "id": id, "function": {"name": "read", "arguments": "{\"p\":"}},
                {"index": 0, "id": id, "function": {"name": "read", "arguments": "\"x\"}"}},
                {"index": 0, "id": id, "function": {"arguments": ""}},
            ]));
            assert_eq!(calls.len(), 1, "{id}");
            assert_eq!(calls[0].2, json!({"p": "x"}));
        }
    }

    #[test]
    fn one_id_for_different_tools_is_no_id() {
        let calls = calls(json!([
            {"index": 0, "id": "call", "function": {"name": "read", "arguments": "{}"}},
            {"index": 0, "id": "call", "function": {"name": "list", "arguments": "{}"}},
        ]));
        assert_eq!(calls, [call("call", "read", json!({})), call("call-7-2", "list", json!({}))]);
    }

    #[test]
    fn an_id_that_is_made_up_is_nobody_elses() {
        let calls = calls(json!([
            {"id": "call-7-2", "function": {"name": "read", "arguments": "{}"}},
            {"function": {"name": "read", "arguments": "{}"}},
        ]));
        let expected = [call("call-7-2", "read", json!({})), call("call-7-2x", "read", json!({}))];
        assert_eq!(calls, expected);
    }

    #[test]
    fn arguments_may_come_as_an_object_or_not_at_all() {
        let calls = calls(json!([
            {"id": "a", "function": {"name": "read", "arguments": {"p": "x"}}},
            {"id": "b", "function": {"name": "now"}},
        ]));
        assert_eq!(calls, [call("a", "read", json!({"p": "x"})), call("b", "now", json!({}))]);
    }

    #[test]
    fn broken_arguments_stay_as_the_text_they_are() {
        for broken in ["{\"p\": \"x", "[1]", "path=x", "{} {}"] {
            let calls =
                calls(json!([{"id": "a", "function": {"name": "read", "arguments": broken}}]));
            assert_eq!(calls, [call("a", "read", json!(broken))]);
        }
    }

    #[test]
    fn a_protocol_that_marks_beginnings_needs_neither_ids_nor_names_to_keep_calls_apart() {
        let mut draft = CallDraft::default();
        let [piece] = &pieces(json!([{"index": 1, "function": {"name": "read"}}]))[..] else {
            panic!("it is one")
        };
        draft.begin(piece.clone());
        draft.go_on(1, "{\"p\":");
        draft.begin(piece.clone());
        draft.go_on(1, "{}");
        draft.go_on(7, "nobody's");
        let expected =
            [call("call-7-1", "read", json!("{\"p\":")), call("call-7-2", "read", json!({}))];
        assert_eq!(finished(draft), expected);
    }

    #[test]
    fn what_the_provider_wants_back_is_kept_with_its_call() {
        let mut draft = CallDraft::default();
        for piece in pieces(json!([
            {"id": "a", "type": "function", "function": {"name": "read"}},
            {"id": "b", "type": "function", "function": {"name": "read"}, "extra": {"sig": "s"}},
        ])) {
            draft.begin_or_go_on(piece);
        }
        let kept: Vec<_> = draft.finish("x").1.into_iter().map(Value::Object).collect();
        assert_eq!(kept, [json!({}), json!({"extra": {"sig": "s"}})]);
    }
}
