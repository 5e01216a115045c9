use serde_json::json;

use super::*;

fn codes(request: Value) -> Vec<&'static str> {
    let Value::Object(fields) = request else { panic!("it is an object") };
    Request::new(Kind::Collaborate, fields)
        .judge(false)
        .refused
        .into_iter()
        .map(|it| it.code)
        .collect()
}

#[test]
fn each_mistake_has_its_code_whether_it_comes_as_text_or_as_json() {
    for (fields, code) in [
        (json!({ "pattern": "Review" }), "unknown_pattern"),
        (json!({ "pattern": 5 }), "unknown_pattern"),
        (json!({ "task": " \n" }), "task_required"),
        (json!({ "sandbox": "root" }), "invalid_sandbox"),
        (json!({ "sandbox": "Write" }), "invalid_sandbox"),
        (json!({ "max_rounds": "-1" }), "invalid_max_rounds"),
        (json!({ "max_rounds": -1 }), "invalid_max_rounds"),
        (json!({ "max_rounds": 1.5 }), "invalid_max_rounds"),
        (json!({ "max_rounds": "many" }), "invalid_max_rounds"),
        (json!({ "max_rounds": "" }), "invalid_max_rounds"),
        (json!({ "max_rounds": true }), "invalid_max_rounds"),
        (json!({ "max_rounds": "99999999999999999999" }), "invalid_max_rounds"),
        (json!({ "pattern": "debate", "max_rounds": 2 }), "max_rounds_too_small"),
        (json!({ "timeout": "0" }), "invalid_timeout"),
        (json!({ "timeout": 0 }), "invalid_timeout"),
        (json!({ "timeout": "-5" }), "invalid_timeout"),
        (json!({ "timeout": "soon" }), "invalid_timeout"),
        (json!({ "providers": "{implementer: codex" }), "invalid_providers_json"),
        (json!({ "providers": "[\"codex\"]" }), "invalid_providers_json"),
        (json!({ "providers": { "reviewer": 5 } }), "invalid_providers_json"),
        (json!({ "providers": r#"{"reviewer": "x", "reviewer": "x"}"# }), "invalid_providers_json"),
        (json!({ "providers": { "reviewer": " " } }), "invalid_providers_json"),
        (json!({ "providers": { "tester": "codex" } }), "unknown_role"),
        (json!({ "providers": "{\"tester\": \"codex\"}" }), "unknown_role"),
        (json!({ "judge": "" }), "invalid_judge"),
        (json!({ "signals": "loose" }), "invalid_signals"),
        (json!({ "rounds": 3 }), "unknown_field"),
        (json!({ "task": "x".repeat(LARGEST) }), "too_large"),
    ] {
        let mut request = json!({ "pattern": "review", "task": "T" });
        for (key, value) in fields.as_object().expect("it is one") {
            request[key] = value.clone();
        }
        assert_eq!(
            codes(request),
            [code],
            "{}",
            fields.to_string().chars().take(80).collect::<String>()
        );
    }
}

#[test]
fn what_is_right_as_text_is_right_as_json() {
    for fields in [
        json!({ "max_rounds": "0", "timeout": "30m", "providers": "{\"reviewer\": \"x\"}" }),
        json!({ "max_rounds": 7, "timeout": 0.05, "providers": { "reviewer": "x" } }),
        json!({ "timeout": "none", "sandbox": "read-only", "judge": "x", "signals": "literal" }),
        json!({ "max_rounds": 3.0, "workdir": "here", "wait_s": 0, "list_patterns": false }),
    ] {
        let mut request = json!({ "pattern": "review", "task": "T" });
        for (key, value) in fields.as_object().expect("it is one") {
            request[key] = value.clone();
        }
        assert_eq!(codes(request), [""; 0], "{fields}");
    }
    let literally =
        json!({ "pattern": "consensus", "task": "T", "max_rounds": 2, "signals": "literal" });
    assert_eq!(codes(literally), [""; 0], "by plain keywords there is no least number");
}

#[test]
fn all_mistakes_are_told_in_the_order_of_the_checks() {
    let request = json!({
        "timeout": 0, "max_rounds": -1, "providers": 5, "sandbox": "x", "task": "", "pattern": "x",
    });
    let order = [
        "unknown_pattern",
        "task_required",
        "invalid_sandbox",
        "invalid_max_rounds",
        "invalid_timeout",
        "invalid_providers_json",
    ];
    assert_eq!(codes(request), order);
}

#[test]
fn what_is_allowed_is_listed() {
    let Value::Object(fields) = json!({ "pattern": "x", "task": "T" }) else { panic!("it is one") };
    let refused = Request::new(Kind::Collaborate, fields).judge(false).refused;
    assert_eq!(refused[0].allowed, ["review", "consensus", "debate"]);
    assert!(refused[0].message.starts_with("Unknown pattern \"x\""), "{}", refused[0].message);
}
