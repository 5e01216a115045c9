//! The errors of servers: where they say them, and of which kind they are (rules.md 10.2, 10.8).

use std::{fmt, time::Duration};

use folkmoot_core::{call::FailureKind, text::shorten, words::Language};
use serde_json::{Value, json};

use crate::retry::{Failure, wait};

/// What a server says about an error of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Said {
    /// The status it stands for; unknown ones are the server's fault.
    pub status: u16,
    /// Its words.
    pub text: String,
}

/// The kinds of failure by HTTP status, the first that fits.
const STATUSES: &[(std::ops::RangeInclusive<u16>, FailureKind)] = &[
    (401..=403, FailureKind::Auth), // 402: the account behind the key cannot pay
    (404..=404, FailureKind::NotFound),
    (408..=408, FailureKind::Timeout),
    (409..=409, FailureKind::Transport), // in conflict with another request just now
    (413..=413, FailureKind::Unsupported),
    (425..=425, FailureKind::Transport), // too early
    (429..=429, FailureKind::RateLimited),
    (501..=501, FailureKind::Unsupported),
    (504..=504, FailureKind::Timeout),
    (500..=599, FailureKind::Transport),
    (0..=u16::MAX, FailureKind::Config),
];

/// Words by which a 4xx says that the request itself is too large, whatever its status.
const TOO_LARGE: &[&str] = &[
    "too large",
    "too long",
    "too many tokens",
    "context_length",
    "context length",
    "context window",
    "context limit",
    "exceeds the maximum number of tokens",
    "must be reduced",
];

/// Words by which a 400 or 429 says that the account behind the key cannot pay.
const CANNOT_PAY: &[&str] = &[
    "insufficient_quota",
    "insufficient balance",
    "billing_hard_limit",
    "credit balance is too low",
];

/// Words by which a 400 says that the key is no good.
const BAD_KEY: &[&str] = &["api key not valid", "api key expired"];

/// The statuses that error names stand for, compared by their letters alone; the first that fits.
const NAMES: &[(&str, u16)] = &[
    ("insufficientquota", 402),
    ("insufficientbalance", 402),
    ("billing", 402),
    ("ratelimit", 429),
    ("throttl", 429),
    ("toomanyrequests", 429),
    ("resourceexhausted", 429),
    ("toolarge", 413),
    ("contextlength", 413),
    ("apikey", 401),
    ("authenticat", 401),
    ("unauthorized", 401),
    ("permission", 403),
    ("forbidden", 403),
    ("accessdenied", 403),
    ("notfound", 404),
    ("invalid", 400),
    ("badrequest", 400),
    ("timeout", 504),
    ("deadlineexceeded", 504),
];

/// The kind of the failure that `status` with `text` is.
pub(super) fn kind_of(status: u16, text: &str) -> FailureKind {
    let text = text.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    match status {
        400 | 413 | 422 | 429 if says(TOO_LARGE) => FailureKind::Unsupported,
        400 | 429 if says(CANNOT_PAY) => FailureKind::Auth,
        400 if says(BAD_KEY) => FailureKind::Auth,
        _ => {
            let row = STATUSES.iter().find(|(statuses, _)| statuses.contains(&status));
            row.expect("the last row holds every status").1
        }
    }
}

/// The failure of a reply that had begun and told of an error.
pub(super) fn broke_off(said: &Said) -> Failure {
    let text = format!("the reply broke off with an error: {}", said.text);
    Failure::new(kind_of(said.status, &said.text), text)
}

/// The failure of a reply that cannot be read.
pub(super) fn malformed(why: impl fmt::Display) -> Failure {
    let why = excerpt(&why.to_string());
    Failure::new(FailureKind::Protocol, format!("malformed stream: {why}"))
}

/// The error that stands in a chunk or a successful reply, in any known shape; of a list, the first.
pub(super) fn in_reply(value: &Value) -> Option<Said> {
    if let Value::Array(chunks) = value {
        return chunks.iter().find_map(in_reply);
    }
    let error = value.get("error").filter(|error| is_set(error));
    let of_choice = || value.pointer("/choices/0/error").filter(|error| is_set(error));
    if let Some(error) = error.or_else(of_choice) {
        return Some(match error {
            Value::Bool(_) => said(value),
            error => said(error),
        });
    }
    let is_named = |field: &str| value.get(field).is_some_and(|it| it == "error");
    if is_named("type") || is_named("object") {
        return Some(said(value));
    }
    if let Some(base) = value.get("base_resp")
        && base.get("status_code").and_then(Value::as_i64).is_some_and(|code| code != 0)
    {
        return Some(said(base));
    }
    let is_reply = ["choices", "candidates", "content"].iter().any(|it| value.get(it).is_some());
    if is_reply { None } else { bare(value) }
}

/// The error that a value is which is nothing else.
fn bare(value: &Value) -> Option<Said> {
    let is_full = |it: &Value| is_set(it) && *it != json!([]) && *it != json!({});
    let fields = ["errors", "detail", "error_code", "errorMessage"];
    if let Some(field) = fields.iter().find_map(|field| value.get(field).filter(|it| is_full(it))) {
        return Some(match field {
            Value::Array(errors) => said(errors.first().unwrap_or(value)),
            Value::Object(_) => said(field),
            _ => said(value),
        });
    }
    let is_coded = value.get("code").is_some_and(is_set) && value.get("message").is_some();
    (is_coded || value.get("success") == Some(&Value::Bool(false))).then(|| said(value))
}

/// The words of an error that came with an HTTP status of its own.
pub(super) fn in_refusal(body: &str) -> String {
    let Ok(value) = serde_json::from_str::<Value>(body) else { return excerpt(body) };
    let first = value.get(0).unwrap_or(&value);
    let said = in_reply(first).unwrap_or_else(|| said(first));
    if said.text.is_empty() { excerpt(body) } else { said.text }
}

/// How long a refusal asks to wait where it says so in its body, as Google's do.
pub(super) fn wait_in_refusal(body: &str) -> Option<Duration> {
    let value = serde_json::from_str::<Value>(body).ok()?;
    let details = value.get(0).unwrap_or(&value).pointer("/error/details")?.as_array()?;
    let delay = details.iter().find_map(|detail| detail.get("retryDelay")?.as_str())?;
    wait(delay.strip_suffix('s')?, 1.0)
}

/// Reads the error of an event that is named one, whatever its data.
pub(super) fn in_event(data: &str) -> Said {
    match serde_json::from_str::<Value>(data) {
        Ok(value) => in_reply(&value).unwrap_or_else(|| said(&value)),
        Err(_) => Said { status: 500, text: excerpt(data) },
    }
}

fn is_set(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false)) && value != "" && value != 0
}

fn said(error: &Value) -> Said {
    const CODES: [&str; 5] = ["code", "status", "status_code", "error_code", "type"];
    const TEXTS: [&str; 7] =
        ["message", "msg", "status_msg", "error_msg", "errorMessage", "detail", "error"];
    let fields = |names: &'static [&str]| names.iter().filter_map(|name| error.get(name));
    let numbers = fields(&CODES).filter_map(status_in);
    let names: Vec<&str> = fields(&CODES).filter_map(Value::as_str).collect();
    let status = numbers.into_iter().next().unwrap_or_else(|| status_named(&names.concat()));
    let text = match fields(&TEXTS).find(|text| is_set(text)).unwrap_or(error) {
        Value::String(text) => text.clone(),
        Value::Object(fields) if fields.is_empty() => String::new(),
        other => other.to_string(),
    };
    let name = names.first().filter(|name| !name.is_empty() && **name != "error");
    let text = excerpt(&text);
    Said { status, text: name.map_or_else(|| text.clone(), |name| format!("{name}: {text}")) }
}

fn status_in(code: &Value) -> Option<u16> {
    let number = code.as_u64().or_else(|| code.as_str()?.parse().ok())?;
    u16::try_from(number).ok().filter(|status| (400..600).contains(status))
}

fn status_named(names: &str) -> u16 {
    let letters: String =
        names.chars().filter(char::is_ascii_alphabetic).map(|c| c.to_ascii_lowercase()).collect();
    NAMES.iter().find(|(name, _)| letters.contains(name)).map_or(500, |(_, status)| *status)
}

/// A text that may be a whole page, in a length that can be shown.
pub(super) fn excerpt(text: &str) -> String {
    const MOST: usize = 500;
    String::from(&*shorten(text.trim(), MOST, Language::English))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_has_its_kind() {
        use FailureKind::{Auth, Config, NotFound, RateLimited, Timeout, Transport, Unsupported};
        let kinds = [
            (301, Config),
            (307, Config),
            (400, Config),
            (401, Auth),
            (402, Auth),
            (403, Auth),
            (404, NotFound),
            (405, Config),
            (406, Config),
            (408, Timeout),
            (409, Transport),
            (410, Config),
            (413, Unsupported),
            (415, Config),
            (422, Config),
            (425, Transport),
            (429, RateLimited),
            (451, Config),
            (500, Transport),
            (501, Unsupported),
            (502, Transport),
            (503, Transport),
            (504, Timeout),
            (520, Transport),
            (529, Transport),
        ];
        for (status, kind) in kinds {
            assert_eq!(kind_of(status, "no"), kind, "{status}");
        }
    }

    #[test]
    fn a_request_that_is_too_large_is_not_a_matter_of_waiting() {
        for text in [
            "Request too large for gpt-4o: Limit 30000, Requested 50000.",
            "the request itself is too large",
            "This model's maximum context length is 8192 tokens",
            "context_length_exceeded: shorten it",
            "prompt is too long: 210000 tokens > 200000 maximum",
            "input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000",
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        ] {
            for status in [400, 413, 422, 429] {
                assert_eq!(kind_of(status, text), FailureKind::Unsupported, "{status} {text}");
            }
            assert_eq!(kind_of(503, text), FailureKind::Transport);
        }
        let wait = "Rate limit reached on tokens per min: Limit 30000, Used 29000, Requested 2000.";
        assert_eq!(kind_of(429, wait), FailureKind::RateLimited);
    }

    #[test]
    fn an_account_that_cannot_pay_is_not_a_matter_of_waiting() {
        assert_eq!(kind_of(429, "insufficient_quota: see your plan"), FailureKind::Auth);
        assert_eq!(kind_of(402, "Insufficient Balance"), FailureKind::Auth);
        let low = "invalid_request_error: Your credit balance is too low to access the API";
        assert_eq!(kind_of(400, low), FailureKind::Auth);
    }

    #[test]
    fn a_key_that_is_no_good_is_a_matter_of_the_key_though_a_400_says_so() {
        let text = "INVALID_ARGUMENT: API key not valid. Please pass a valid API key.";
        assert_eq!(kind_of(400, text), FailureKind::Auth);
        assert_eq!(kind_of(500, text), FailureKind::Transport);
    }

    #[test]
    fn each_name_of_an_error_inside_a_reply_has_its_kind() {
        use FailureKind::{Auth, Config, NotFound, RateLimited, Timeout, Transport, Unsupported};
        for (name, kind) in [
            ("invalid_request_error", Config),
            ("authentication_error", Auth),
            ("billing_error", Auth),
            ("permission_error", Auth),
            ("not_found_error", NotFound),
            ("request_too_large", Unsupported),
            ("rate_limit_error", RateLimited),
            ("api_error", Transport),
            ("timeout_error", Timeout),
            ("overloaded_error", Transport),
            ("INVALID_ARGUMENT", Config),
            ("UNAUTHENTICATED", Auth),
            ("PERMISSION_DENIED", Auth),
            ("NOT_FOUND", NotFound),
            ("RESOURCE_EXHAUSTED", RateLimited),
            ("INTERNAL", Transport),
            ("UNAVAILABLE", Transport),
            ("DEADLINE_EXCEEDED", Timeout),
            ("something_new", Transport),
        ] {
            let event = json!({"type": "error", "error": {"type": name, "message": "no"}});
            let said = in_reply(&event).expect("it is an error");
            assert_eq!(kind_of(said.status, &said.text), kind, "{name}");
        }
    }

    #[test]
    fn every_known_shape_of_an_error_is_seen_inside_a_reply() {
        let shapes = [
            (
                json!({"error": {"message": "no", "type": "rate_limit_error"}}),
                429,
                "rate_limit_error: no",
            ),
            (json!({"error": {"message": "no", "code": 503}, "choices": []}), 503, "no"),
            (json!({"error": {"message": "no", "code": "429"}}), 429, "429: no"),
            (json!({"error": {"message": "no", "code": null, "type": ""}}), 500, "no"),
            (
                json!({"error": {"code": 401, "message": "no", "status": "UNAUTHENTICATED"}}),
                401,
                "UNAUTHENTICATED: no",
            ),
            (json!({"error": "model 'x' failed"}), 500, "model 'x' failed"),
            (json!({"error": true, "message": "no"}), 500, "no"),
            (json!({"error": {}}), 500, ""),
            (
                json!({"choices": [{"delta": {}, "error": {"code": 502, "message": "no"}}]}),
                502,
                "no",
            ),
            (
                json!({"type": "error", "error": {"type": "overloaded_error", "message": "no"}}),
                500,
                "overloaded_error: no",
            ),
            (
                json!({"object": "error", "message": "no", "type": "BadRequestError", "code": 400}),
                400,
                "BadRequestError: no",
            ),
            (
                json!({"code": "InvalidApiKey", "message": "no", "request_id": "1"}),
                401,
                "InvalidApiKey: no",
            ),
            (json!({"base_resp": {"status_code": 1002, "status_msg": "no"}}), 500, "no"),
            (json!({"detail": "no"}), 500, "no"),
            (
                json!({"detail": [{"loc": ["body"], "msg": "no", "type": "missing"}]}),
                500,
                "missing: no",
            ),
            (json!({"success": false, "errors": [{"code": 429, "message": "no"}]}), 429, "no"),
            (json!({"success": false, "code": 1302, "msg": "no"}), 500, "no"),
            (json!({"error_code": 17, "error_msg": "no"}), 500, "no"),
            (json!({"errorMessage": "no"}), 500, "no"),
            (json!([{"candidates": []}, {"error": {"code": 503, "message": "no"}}]), 503, "no"),
        ];
        for (reply, status, text) in shapes {
            let expected = Said { status, text: text.to_owned() };
            assert_eq!(in_reply(&reply), Some(expected), "{reply}");
        }
    }

    #[test]
    fn a_sound_reply_is_no_error() {
        for reply in [
            json!({"choices": [{"delta": {"content": "error"}}], "error": null}),
            json!({"choices": [], "code": 0, "message": "success", "error": ""}),
            json!({"choices": [], "base_resp": {"status_code": 0, "status_msg": ""}}),
            json!({"choices": [], "detail": "high", "errors": [1], "success": false}),
            json!({"type": "message", "content": [], "errors": [], "detail": null}),
            json!({"usage": {}}),
            json!({}),
        ] {
            assert_eq!(in_reply(&reply), None, "{reply}");
        }
    }

    #[test]
    fn an_event_named_error_is_one_whatever_it_says() {
        assert_eq!(in_event("boom").text, "boom");
        assert_eq!(in_event("{\"message\": \"boom\", \"code\": 429}").status, 429);
        assert_eq!(in_event("{\"error\": {\"message\": \"boom\"}}").text, "boom");
    }

    #[test]
    fn a_refusal_may_ask_for_a_wait_in_its_body() {
        let with = |delay: Value| {
            let info =
                json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay});
            json!({"error": {"code": 429, "details": [{"reason": "QUOTA"}, info]}})
        };
        let read = |body: &Value| wait_in_refusal(&body.to_string());
        assert_eq!(read(&with(json!("34s"))), Some(Duration::from_secs(34)));
        assert_eq!(read(&json!([with(json!("0.5s"))])), Some(Duration::from_millis(500)));
        assert_eq!(read(&with(json!("99999999999999999999999s"))), Some(Duration::MAX));
        for odd in [json!("34"), json!("-3s"), json!("soon"), json!(34), json!(null)] {
            assert_eq!(read(&with(odd.clone())), None, "{odd}");
        }
        assert_eq!(wait_in_refusal("<h1>Busy</h1>"), None);
    }

    #[test]
    fn the_words_of_a_refusal_are_found_or_its_body_is_shown() {
        assert_eq!(in_refusal("{\"error\": {\"message\": \"no\", \"type\": \"t\"}}"), "t: no");
        assert_eq!(in_refusal("[{\"error\": {\"message\": \"no\", \"code\": 400}}]"), "no");
        assert_eq!(in_refusal("{\"detail\": \"Not Found\"}"), "Not Found");
        assert_eq!(in_refusal("<h1>Bad gateway</h1>\n"), "<h1>Bad gateway</h1>");
        assert_eq!(in_refusal(""), "");
        assert!(in_refusal(&"é".repeat(9000)).chars().count() <= 500);
    }
}
