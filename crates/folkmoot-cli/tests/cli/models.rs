//! Teams of models, served by a stub that can misbehave (agents.md §§1, 3, rules.md §10, 14.6).

use folkmoot_stub::{Completion, Door, Received, Reply, Stub};
use serde_json::{Value, json};

use crate::bench::{Bench, Called, until};

const KEY: &str = "sk-test-0123456789abcdef";

/// A team of one model, which is asked once and not again.
const ONE: &str = "
name: one
agents: [{ name: writer, model: openai/stub, retries: 0 }]
collaboration: { strategy: sequential }
";

const TWO: &str = "
name: two
agents:
  - { name: thinker, model: openai/stub }
  - { name: writer, model: openai/stub }
collaboration: { strategy: sequential }
";

const CONFIG: &str = r#"
default_model = "quick"
[aliases]
quick = "office/qwen3"
[providers.office]
base_url = "BASE_URL"
key_env = "OFFICE_KEY"
[prices."office/qwen3"]
input = 1000.0
output = 10000.0
"#;

/// A bench whose config names a provider `office`, served by `stub`.
fn office(team: &str, stub: &Stub) -> Bench {
    let bench = Bench::with_team(team).with("OFFICE_KEY", KEY);
    bench.write("folkmoot.toml", &CONFIG.replace("BASE_URL", &stub.base_url()));
    bench
}

fn run(bench: &Bench) -> Called {
    bench.call(["run", "team.yaml", "Say hello", "--json"])
}

/// What was asked the `nth` time, from 1.
fn request(stub: &Stub, nth: usize) -> Received {
    stub.seen().requests.get(nth - 1).cloned().expect("so many requests came")
}

fn requests(stub: &Stub) -> usize {
    stub.seen().requests.len()
}

#[test]
fn a_model_is_asked_at_its_address_with_its_key_and_its_reply_streams() {
    let stub = Stub::start([Reply::stream(&Completion::text(["Hel", "lo"]))]);
    let bench = Bench::with_models(ONE, &stub).with("OPENAI_API_KEY", KEY);
    let called = bench.call(["run", "team.yaml", "Say hello", "--output", "stream-json"]);
    let lines = called.must_be(0).json_lines();
    let deltas: Vec<&Value> = lines.iter().filter(|it| it["type"] == "delta").collect();
    let texts: String = deltas.iter().filter_map(|it| it["text"].as_str()).collect();
    assert_eq!((deltas.len(), &*texts), (2, "Hello"));
    assert_eq!(lines.last().map(|it| &it["final"]), Some(&json!("Hello")));

    let asked = request(&stub, 1);
    assert_eq!(asked.line, "POST /v1/chat/completions HTTP/1.1");
    assert_eq!(asked.header("authorization"), Some(&*format!("Bearer {KEY}")));
    assert_eq!((&asked.body["model"], &asked.body["stream"]), (&json!("stub"), &json!(true)));
    let messages = asked.body["messages"].as_array().expect("messages are sent");
    let last = messages.last().expect("there are some");
    assert_eq!(last["role"], "user");
    assert!(last["content"].as_str().is_some_and(|it| it.starts_with("Say hello")), "{last}");
}

#[test]
fn usage_and_cost_of_a_configured_provider_stand_in_the_result() {
    let stub = Stub::start([Reply::text("Hello")]);
    let bench = office("agents: [{ name: writer }]", &stub);
    let usage = run(&bench).must_be(0).json()["meta"]["usage"].clone();
    let wanted = json!({
        "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15, "cost_usd": 0.06
    });
    assert_eq!(usage, json!({ "total": wanted, "agents": { "writer": wanted }, "calls": 1 }));
    let asked = request(&stub, 1);
    assert_eq!(asked.body["model"], "qwen3");
    assert_eq!(asked.header("authorization"), Some(&*format!("Bearer {KEY}")));
    assert_eq!(bench.runs()[0]["usage"]["total"]["cost_usd"], json!(0.06));
}

/// A provider that charges long requests more, and whose prices have a date.
#[test]
fn the_price_of_a_call_goes_by_its_length_and_the_report_tells_which_held_and_since_when() {
    let of = |read: u64| {
        let usage = json!({ "prompt_tokens": read, "completion_tokens": 1 });
        Reply::stream(&Completion { usage: Some(usage), ..Completion::text(["Hello"]) })
    };
    let stub = Stub::start([of(199_999), of(200_000), of(300_000)]);
    let bench = office(
        "agents: [{ name: writer }]\ncollaboration: { strategy: broadcast, rounds: 3 }",
        &stub,
    );
    let config = CONFIG.replace("BASE_URL", &stub.base_url());
    let tier = "as_of = '2025-11-01'\nabove = [{ tokens = 200_000, input = 2000, output = 0 }]\n";
    bench.write("folkmoot.toml", &(config + tier));
    let total = run(&bench).must_be(0).json()["meta"]["usage"]["total"].clone();
    assert_eq!(total["cost_usd"], json!(199.999 + 200.0 + 600.0 + 0.02));
    let report = bench.call(["report", "last"]).must_be(0).stdout;
    let line = "- office/qwen3: 2 calls at $1000 read and $10000 written, \
                1 call of more than 200000 tokens at $2000 read and $0 written; as of 2025-11-01";
    assert!(report.contains(line), "{report}");
}

#[test]
fn a_limit_of_tokens_bounds_each_reply_and_refuses_the_call_that_does_not_fit() {
    let long = Completion {
        usage: Some(json!({ "prompt_tokens": 100, "completion_tokens": 2700 })),
        ..Completion::text(["Hello"])
    };
    let stub = Stub::start([Reply::stream(&long)]);
    let bench = Bench::with_models(TWO, &stub);
    let limited = ["run", "team.yaml", "Say hello", "--max-tokens", "3000", "--json"];
    let result = bench.call(limited).must_be(4).json();
    assert_eq!(
        (&result["status"], &result["reason"]),
        (&json!("budget_exhausted"), &json!("tokens"))
    );
    assert_eq!(result["errors"][0]["error"], "budget exhausted");
    assert_eq!(result["partial"]["text"], "Hello");
    assert_eq!(requests(&stub), 1);
    let bound = request(&stub, 1).body["max_completion_tokens"].as_u64().expect("it is bounded");
    assert!((1..3000).contains(&bound), "{bound}");
}

#[test]
fn a_limit_of_cost_bounds_each_reply_by_its_price() {
    let stub = Stub::start([Reply::text("Hello")]);
    let bench = office("agents: [{ name: writer }]\nlimits: { cost_usd: 20 }", &stub);
    run(&bench).must_be(0);
    let bound = request(&stub, 1).body["max_tokens"].as_u64().expect("it is bounded");
    // 10,000 dollars a million: each token a cent, and the request is not free.
    assert!((1800..2000).contains(&bound), "{bound}");

    let poor = ["run", "team.yaml", "Say hello", "--max-cost", "0.5", "--json"];
    let result = bench.call(poor).must_be(4).json();
    assert_eq!((&result["reason"], requests(&stub)), (&json!("cost"), 1));
}

#[test]
fn a_limit_of_cost_is_refused_where_the_price_is_unknown() {
    let stub = Stub::start([Reply::text("Hello")]);
    let bench = Bench::with_models(ONE, &stub);
    let limited = ["run", "team.yaml", "Say hello", "--max-cost", "1", "--json"];
    let refused = bench.call(limited).must_be(2).json();
    assert_eq!(refused["error"]["code"], "unknown_price");
    assert_eq!(requests(&stub), 0);
}

#[test]
fn a_server_that_is_busy_for_a_while_is_asked_again() {
    let busy = || Reply::status(503).header("retry-after", "0");
    let stub = Stub::start([busy(), busy(), Reply::text("Hello")]);
    let bench = Bench::with_models(&ONE.replace("retries: 0", "retries: 2"), &stub);
    let called = run(&bench).must_be(0);
    assert_eq!(called.json()["final"], "Hello");
    assert_eq!(called.json()["meta"]["usage"]["calls"], 1, "attempts are no further calls");
    assert_eq!(requests(&stub), 3);
    assert_eq!(called.stderr.matches("  retried    ").count(), 2, "{}", called.stderr);
}

#[test]
fn a_refused_key_fails_the_call_once_and_the_words_help() {
    let error = json!({ "error": { "message": format!("Incorrect API key provided: {KEY}") } });
    let stub = Stub::start([Reply::json(401, &error)]);
    let bench = Bench::with_models(&ONE.replace("retries: 0", "retries: 3"), &stub)
        .with("OPENAI_API_KEY", KEY);
    let called = run(&bench).must_be(1);
    assert_eq!(requests(&stub), 1);
    let error = called.json()["errors"][0]["error"].as_str().expect("it is told").to_owned();
    assert_eq!(error, "openai/stub: 401 Unauthorized; Incorrect API key provided: ***");
}

#[test]
fn a_missing_key_is_told_with_the_name_of_its_variable_and_nobody_is_asked() {
    let bench = Bench::with_team(ONE);
    let called = bench.call(["run", "team.yaml", "Say hello"]).must_be(2);
    assert!(called.stderr.contains("OPENAI_API_KEY is not set"), "{}", called.stderr);
    assert!(bench.runs().is_empty());
    let checked = bench.call(["check", "team.yaml"]).must_be(0);
    assert!(checked.stderr.starts_with("warning[unusable_model]: "), "{}", checked.stderr);
    bench.call(["simulate", "team.yaml", "Say hello"]).must_be(0);
}

#[test]
fn usage_that_nobody_reports_is_estimated_and_said_to_be() {
    let silent = Completion { usage: None, ..Completion::text(["Hello, world"]) };
    let stub = Stub::start([Reply::stream(&silent)]);
    let bench = office("agents: [{ name: writer }]", &stub);
    let total = run(&bench).must_be(0).json()["meta"]["usage"]["total"].clone();
    assert_eq!(total["estimated"], true);
    let number = |field: &str| total[field].as_f64().expect("it is a number");
    assert!(number("prompt_tokens") > 0.0 && number("completion_tokens") > 0.0, "{total}");
    assert!(number("cost_usd") > 0.0, "{total}");
    let shown = bench.call(["show", "last"]).must_be(0).stdout;
    assert!(shown.contains('~'), "{shown}");
}

/// Everything that tells of runs and models.
const TELLING: [&[&str]; 9] = [
    &["show", "last"],
    &["show", "last", "--json", "--events"],
    &["show", "last", "--call", "round-1/writer"],
    &["report", "last"],
    &["report", "last", "--json"],
    &["watch", "last", "--json"],
    &["runs", "--json"],
    &["models"],
    &["models", "--json"],
];

/// What a run of two models and all that tells of it print in every form.
fn told_of(replies: impl IntoIterator<Item = Reply>) -> (Bench, Vec<String>) {
    let stub = Stub::start(replies);
    let team = TWO.replace("stub }", "stub, retries: 0 }").replace("sequential", "broadcast");
    let bench = Bench::with_models(&team, &stub).with("OPENAI_API_KEY", KEY);
    let runs = ["text", "json", "stream-json"].map(|it| ["run", "team.yaml", "hi", "--output", it]);
    let calls = runs.iter().map(|it| &it[..]).chain(TELLING);
    let told = calls.map(|arguments| {
        let called = bench.call(arguments.iter().copied());
        assert!(called.exit < 2, "{}", called.shown());
        called.shown()
    });
    let told = told.collect();
    let is_sent = request(&stub, 1).header("authorization") == Some(&*format!("Bearer {KEY}"));
    assert!(is_sent, "the key is in use");
    (bench, told)
}

fn holds(bytes: &[u8], part: &str) -> bool {
    bytes.windows(part.len()).any(|it| it == part.as_bytes())
}

#[test]
fn a_burst_at_a_provider_that_serves_two_at_a_time_is_answered_in_full() {
    let door = Door::closed();
    let (mut served, mut refused) = (0, 0);
    let stub = Stub::answering(move |_| {
        // All come before any is answered: who hears of a refusal asks no more.
        if refused < 4 && served == 2 {
            refused += 1;
            if refused == 4 {
                door.open();
            }
            return Reply::status(429).header("retry-after", "1").behind(&door);
        }
        served += 1;
        Reply::text(&format!("reply {served}")).behind(&door)
    });
    let names =
        ["a", "b", "c", "d", "e", "f"].map(|it| format!("{{ name: {it}, model: openai/stub }}"));
    let team = format!("agents: [{}]\ncollaboration: {{ strategy: broadcast }}", names.join(", "));
    let bench = Bench::with_models(&team, &stub);
    let result = run(&bench).must_be(0).json();
    let responses = result["rounds"][0]["responses"].as_object().expect("there are some");
    assert_eq!(responses.len(), 6);
    assert!(responses.values().all(Value::is_string), "{result}");
    let seen = stub.seen();
    assert_eq!((seen.requests.len(), &result["meta"]["usage"]["calls"]), (10, &json!(6)));
    // What the provider was still serving when it refused is what it is asked for at once from then on.
    assert!(seen.requests[6..].iter().all(|it| it.under_way <= 3), "{:?}", seen.most_at_once);
}

#[test]
fn a_key_that_an_error_repeats_is_neither_printed_nor_kept() {
    let said = json!({ "error": { "message": format!("no such key: {KEY}") } });
    let (bench, told) = told_of([
        Reply::json(401, &said),
        Reply::events([said.to_string()]),
        Reply::status(500).send(said.to_string()),
        Reply::status(302).header("location", &format!("http://127.0.0.1:9/{KEY}")),
    ]);
    assert!(told[0].contains("no such key: ***"), "{}", told[0]);
    assert!(told.iter().all(|it| !it.contains(KEY)), "{told:#?}");
    assert!(holds(&bench.stored(), "no such key: ***"));
    assert!(!holds(&bench.stored(), KEY));
}

#[test]
fn a_key_that_a_reply_repeats_is_not_printed() {
    let said = format!("the key is {KEY}.");
    let aloud = Completion {
        reasoning: Some(said.clone()),
        ..Completion::text([&said[..20], &said[20..]])
    };
    let (_, told) = told_of([Reply::stream(&aloud)]);
    assert!(told[0].contains("the key is ***."), "{}", told[0]);
    assert!(told.iter().all(|it| !it.contains(KEY)), "{told:#?}");
}

#[test]
fn a_key_that_stands_in_the_task_or_the_config_is_not_printed() {
    let stub = Stub::start([Reply::text("Hello")]);
    let bench = office("agents: [{ name: writer }]", &stub);
    let task = format!("what is {KEY}?");
    let called = bench.call(["run", "team.yaml", &task, "--output", "stream-json"]).must_be(0);
    assert!(!called.shown().contains(KEY), "{}", called.shown());

    bench.write("folkmoot.toml", &format!("[providers.office]\napi_key = '{KEY}'"));
    let bench = bench.with("OFFICE_KEY", "");
    let refused = bench.call(["models"]).must_be(2);
    assert!(refused.stderr.contains("unknown field `api_key`"), "{}", refused.stderr);
    assert!(!refused.shown().contains(KEY), "{}", refused.shown());
}

#[test]
fn reasoning_is_kept_and_shown_apart_and_nobody_else_reads_it() {
    let aloud =
        Completion { reasoning: Some("let me think".into()), ..Completion::text(["a draft"]) };
    let stub = Stub::start([Reply::stream(&aloud), Reply::text("the end")]);
    let bench = Bench::with_models(TWO, &stub);
    let called = bench.call(["run", "team.yaml", "Say hello", "--output", "stream-json"]);
    let lines = called.must_be(0).json_lines();
    assert!(lines.iter().any(|it| it["reasoning"] == "let me think"));
    let result = lines.last().expect("there is a result");
    assert_eq!(result["rounds"][0]["response"], "a draft");
    assert!(!result.to_string().contains("let me think"));
    let second = request(&stub, 2).body.to_string();
    assert!(second.contains("a draft") && !second.contains("let me think"), "{second}");
    let shown = bench.call(["show", "last", "--call", "step-1/thinker"]).must_be(0).stdout;
    assert!(shown.contains("let me think"), "{shown}");
}

#[test]
fn a_stream_that_is_cut_off_is_no_reply() {
    let half = Reply::events(Completion::text(["Hel", "lo"]).events()[..2].iter());
    for (reply, part) in [
        (half.clone().cut(), "unexpected EOF"),
        (half.clone(), "the reply was cut off: it has no end mark"),
        (half.until_close(), "the reply was cut off: it has no end mark"),
    ] {
        let stub = Stub::start([reply]);
        let bench = Bench::with_models(ONE, &stub);
        let result = run(&bench).must_be(1).json();
        assert_eq!((&result["final"], result.get("partial")), (&Value::Null, None), "{result}");
        let error = result["errors"][0]["error"].as_str().expect("it is told");
        assert!(error.contains(part), "{error}");
        let total = &result["meta"]["usage"]["total"];
        assert_eq!(total["estimated"], true, "what was sent is paid for: {total}");
    }
}

#[test]
fn a_timeout_and_a_deadline_close_the_connection() {
    for (flag, exit, error) in [("--timeout", 1, "timeout"), ("--deadline", 6, "deadline")] {
        let half = Reply::events(Completion::text(["Hel", "lo"]).events()[..2].iter());
        let stub = Stub::start([half.left_open()]);
        let bench = Bench::with_models(ONE, &stub);
        let result = bench.call(["run", "team.yaml", "Say hello", flag, "0.2", "--json"]);
        assert_eq!(result.must_be(exit).json()["errors"][0]["error"], error);
        until(&stub, |seen| seen.hung_up == 1 && seen.under_way == 0);
        assert_eq!(requests(&stub), 1);
    }
}

#[test]
fn the_models_that_can_be_used_are_listed_and_the_others_with_the_reason() {
    let stub = Stub::start([]);
    let bench = office("", &stub).with("OPENAI_API_KEY", KEY);
    let listed = bench.call(["models", "--json"]).must_be(0).json();
    assert_eq!(listed["default_model"], "quick");
    assert_eq!(listed["aliases"], json!({ "quick": ["office/qwen3"] }));
    let providers = listed["providers"].as_array().expect("it is a list");
    let provider = |name: &str| {
        let found = providers.iter().find(|it| it["provider"] == name);
        found.cloned().expect("it is known")
    };
    for usable in ["openai", "office", "ollama", "demo"] {
        let found = provider(usable);
        assert_eq!((&found["usable"], &found["why_not"]), (&json!(true), &Value::Null), "{usable}");
    }
    assert_eq!(provider("office")["base_url"], json!(stub.base_url()));
    let missing = provider("deepseek");
    assert_eq!(missing["usable"], false);
    let why = missing["why_not"].as_str().expect("it is told");
    assert!(why.contains("DEEPSEEK_API_KEY is not set"), "{why}");

    let table = bench.call(["models"]).must_be(0).stdout;
    let row = |name: &str| {
        let found = table.lines().find(|line| line.split_whitespace().next() == Some(name));
        found.expect("it is listed").to_owned()
    };
    assert!(row("quick").contains("office/qwen3") && row("quick").contains("10000"), "{table}");
    assert!(row("office/…").trim_end().ends_with("yes"), "{table}");
    assert!(row("demo/…").trim_end().ends_with("yes"), "{table}");
    assert!(row("deepseek/…").contains("DEEPSEEK_API_KEY"), "{table}");
}

#[test]
fn a_name_of_the_config_that_means_nothing_is_refused_by_all_that_needs_it() {
    let bench = Bench::with_team("agents: [{ name: a, script: {} }]\n");
    bench.write("folkmoot.toml", "[aliases]\na = 'b'\nb = ['a']\nc = 'nobody/x'");
    for command in [&["models", "--json"][..], &["run", "team.yaml", "task", "--json"]] {
        let refused = bench.call(command.iter().copied()).must_be(2).json();
        let told = refused["errors"].as_array().expect("it is a list");
        let codes: Vec<_> = told.iter().filter_map(|it| it["code"].as_str()).collect();
        assert_eq!(codes, ["bad_config"; 2]);
        let message = told[1]["message"].as_str().expect("it is told");
        assert_eq!(message, "folkmoot.toml:4:5: unknown provider \"nobody\" in \"nobody/x\"");
    }
    bench.call(["runs"]).must_be(2);
    bench.call(["schema"]).must_be(0);
}
