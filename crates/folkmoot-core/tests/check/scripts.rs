//! Scripted agents.

use expect_test::expect;
use folkmoot_core::{
    call::{FailureKind, Tokens},
    team::{Says, Script, ScriptedReply, Target},
    time::Duration,
};
use serde_json::json;

use crate::Case;

fn script(script: &str) -> Script {
    let file = format!("agents: [{{ name: a, script: {script} }}]\n");
    match Case::new(&file).spec().team.agents.remove(0).target {
        Target::Script(script) => script,
        other @ (Target::Model(_)
        | Target::Demo
        | Target::Cli(_)
        | Target::Acp(_)
        | Target::A2a(_)
        | Target::Team(_)) => {
            panic!("{other:?}")
        }
    }
}

fn reply(item: &str) -> ScriptedReply {
    script(&format!("{{ replies: [{item}] }}")).replies.remove(0)
}

#[test]
fn a_reply_is_a_text_a_structure_an_error_or_tool_calls() {
    assert_eq!(reply("\"draft\"").says, Says::Text("draft".into()));
    assert_eq!(reply("yes").says, Says::Text("yes".into()));
    assert_eq!(reply("{ reply: 42 }").says, Says::Text("42".into()));
    let json = json!({ "verdict": "approve", "score": 8, "ok": true, "list": [1.5, null, "x"] });
    let item = "{ json: { verdict: approve, score: 8, ok: true, list: [1.5, null, x] } }";
    assert_eq!(reply(item).says, Says::Json(json));
    let error = |text: &str, kind| Says::Error { text: text.into(), kind };
    assert_eq!(reply("{ error: boom }").says, error("boom", FailureKind::Harness));
    assert_eq!(
        reply("{ error: '', kind: rate_limited }").says,
        error("", FailureKind::RateLimited)
    );
    let says = reply("{ tool_calls: [{ name: file.read, arguments: { path: a } }, { name: search }], text: look }").says;
    let Says::Tools { calls, text } = says else { panic!("tool calls") };
    assert_eq!(
        (&*text, &*calls[0].name, &calls[0].arguments),
        ("look", "file.read", &json!({ "path": "a" }))
    );
    assert_eq!((&*calls[1].name, &calls[1].arguments), ("search", &json!({})));
    assert_ne!(calls[0].id, calls[1].id);
}

#[test]
fn keys_of_a_structure_keep_their_order() {
    let Says::Json(value) = reply("{ json: { b: 1, a: 2 } }").says else { panic!("a structure") };
    assert_eq!(value.to_string(), "{\"b\":1,\"a\":2}");
}

#[test]
fn items_nest_and_what_stands_around_them_counts() {
    let item = "{ delay_ms: 300, usage: { input: 5, output: 2 }, reply: { delay_ms: 20, reply: { error: late, kind: auth } } }";
    let nested = reply(item);
    assert_eq!(nested.says, Says::Error { text: "late".into(), kind: FailureKind::Auth });
    assert_eq!(nested.delay, Duration::from_millis(320));
    assert_eq!(nested.usage, Tokens { input: 5, output: 2, ..Tokens::default() });
    let plain = reply("{ delay_ms: 1, json: {}, usage: { output: 3 } }");
    assert_eq!((plain.delay, plain.usage.total()), (Duration::from_millis(1), 3));
    assert_eq!(reply("x").usage, Tokens::default());
}

#[test]
fn rules_and_replies_stand_side_by_side() {
    let script = script("{ replies: [a, b], rules: [{ contains: vote, reply: { error: no } }] }");
    assert_eq!(
        script.reply(1, "please vote").map(|it| &it.says),
        Some(&script.rules[0].reply.says)
    );
    assert_eq!(script.reply(9, "else").map(|it| &it.says), Some(&Says::Text("b".into())));
    let empty = Script { replies: vec![], rules: vec![], label: None };
    assert_eq!(self::script("{}"), empty);
    assert_eq!(self::script("{ replies: [] }"), empty);
}

#[test]
fn every_kind_of_failure_can_be_rehearsed() {
    let kinds = [
        FailureKind::Auth,
        FailureKind::RateLimited,
        FailureKind::Timeout,
        FailureKind::Transport,
        FailureKind::Incomplete,
        FailureKind::Protocol,
        FailureKind::Spawn,
        FailureKind::Harness,
        FailureKind::Config,
        FailureKind::Unsupported,
        FailureKind::NotFound,
        FailureKind::Io,
        FailureKind::Denied,
        FailureKind::Other,
    ];
    for kind in kinds {
        let word = serde_json::to_value(kind).expect("a word");
        let says = reply(&format!("{{ error: x, kind: {} }}", word.as_str().expect("a word"))).says;
        assert_eq!(says, Says::Error { text: "x".into(), kind });
    }
}

#[test]
fn replies_that_make_no_sense_are_refused() {
    Case::new(
        "\
agents:
  - name: a
    script:
      replies:
        - { reply: x, error: y }
        - { delay_ms: 3 }
        - { reply: x, kind: auth }
        - { error: x, kind: outh }
        - { json: {}, text: beside }
        - { json: ~ }
        - { json: .nan }
        - { tool_calls: [] }
        - { tool_calls: [{ arguments: {} }] }
        - { delay_ms: -1, reply: { rely: x } }
        - { usage: { inputs: 3 }, reply: [x] }
        - ~
      rules:
        - { contains: '', reply: x }
        - { contains: x }
      reply: x
",
    )
    .tells(&expect![[r#"
        5:23 agents[0].script.replies[0].error error[bad_value] a reply is one thing; found reply and error
        6:11 agents[0].script.replies[1] error[bad_value] a reply needs one of reply, error, json, tool_calls
        7:23 agents[0].script.replies[2].kind error[bad_value] kind stands only beside error
        8:29 agents[0].script.replies[3].kind error[bad_value] kind must be auth, rate_limited, timeout, transport, incomplete, protocol, spawn, harness, config, unsupported, not_found, io, denied or other; got "outh" | help: did you mean "auth"?
        9:23 agents[0].script.replies[4].text error[bad_value] text stands only beside tool_calls
        10:11 agents[0].script.replies[5] error[bad_value] a reply needs one of reply, error, json, tool_calls
        11:19 agents[0].script.replies[6].json error[bad_value] JSON has no number .nan
        12:25 agents[0].script.replies[7].tool_calls error[bad_value] tool_calls must have 1 to 1000 tool calls; it has 0
        13:26 agents[0].script.replies[8].tool_calls[0] error[missing_key] name is missing
        14:23 agents[0].script.replies[9].delay_ms error[bad_value] delay_ms must be a whole number from 0 to 86400000; got -1
        14:36 agents[0].script.replies[9].reply.rely error[unknown_key] unknown key "rely" | help: did you mean "reply"?
        15:22 agents[0].script.replies[10].usage.inputs error[unknown_key] unknown key "inputs" | help: did you mean "input"?
        15:42 agents[0].script.replies[10].reply error[bad_value] reply must be a text or a map; got a list
        16:11 agents[0].script.replies[11] error[bad_value] replies[11] must be a text or a map; got nothing
        18:23 agents[0].script.rules[0].contains error[bad_condition] contains matches every reply
        19:11 agents[0].script.rules[1] error[missing_key] reply is missing
        20:7 agents[0].script.reply error[unknown_key] unknown key "reply" | help: "reply" belongs in reply
    "#]]);
}
