//! What is missing on a machine, and the way out.

use expect_test::expect;
use folkmoot_stub::{Reply, Stub};
use regex::Regex;
use serde_json::{Value, json};

use crate::bench::{Bench, Called};

/// What is printed, without what differs from machine to machine.
fn page(called: &Called, bench: &Bench) -> String {
    let mut page = called.stdout.replace(&bench.path("").display().to_string(), "FOLDER/");
    for (pattern, plain) in [
        (r"127\.0\.0\.1:\d{5}", "ADDRESS"),
        (r"\d+\.\d GB", "N GB"),
        (r"\d{4}-\d\d-\d\dT[\d:]+Z", "NOW"),
        (r"git version .*", "git version V"),
        (r"(?m)^. agents .*\n(?: +→ (?:only teams|log in with) .*\n)?", ""),
    ] {
        page = Regex::new(pattern).expect("it is a pattern").replace_all(&page, plain).into_owned();
    }
    page
}

fn check(bench: &Bench, called: &Called, expected: &expect_test::Expect) {
    expected.assert_eq(&page(called, bench));
}

#[test]
fn a_new_machine_is_ready_and_told_what_it_lacks() {
    let bench = Bench::new().with("LANG", "C");
    let called = bench.call(["doctor"]).must_be(0);
    check(
        &bench,
        &called,
        &expect![[r#"
        – config    no FOLDER/.config/folkmoot/config.toml
        – config    no folkmoot.toml
        ✓ state     FOLDER/runs.db, N GB free
        – provider  on this machine, if they run: ollama, lmstudio, llamacpp, vllm, sglang
                    → `folkmoot doctor --online` asks them
        – provider  without a key: openai, anthropic, gemini, deepseek, dashscope, moonshot, zhipu, siliconflow, volcengine, hunyuan, qianfan, minimax, stepfun, openrouter, groq, mistral, xai, together, fireworks, cerebras, nvidia, perplexity
                    → set its variable, for example OPENAI_API_KEY; `folkmoot models` names them all
        – model     no default_model
                    → set default_model in folkmoot.toml, or name models in team files; --demo needs none
        ✓ git       git version V
        – terminal  LANG=C is not UTF-8: some text may look wrong
                    → set LANG, for example to C.UTF-8
        ✓ clock     NOW

        ready
    "#]],
    );
}

#[test]
fn what_is_configured_is_told_by_itself_and_what_is_broken_with_the_way_out() {
    let stub = Stub::start([Reply::status(500)]);
    let bench = Bench::new().with("LANG", "zh_CN.UTF-8").with("DEEPSEEK_API_KEY", "sk-0123456789");
    let bench = bench.with("PATH", "/usr/bin:/bin");
    bench.write(
        "folkmoot.toml",
        &format!(
            "default_model = 'office/x'\n[aliases]\nsafe = ['deepseek/c', 'office/x', 'demo']\n\
             coder = {{ cli = 'codex' }}\nmixed = ['demo', 'coder']\n\
             [providers.office]\nbase_url = '{}'\nkey_env = 'OFFICE_KEY'\n",
            stub.base_url()
        ),
    );
    let called = bench.call(["doctor"]).must_be(1);
    check(
        &bench,
        &called,
        &expect![[r#"
            – config    no FOLDER/.config/folkmoot/config.toml
            ✓ config    folkmoot.toml
            ✓ state     FOLDER/runs.db, N GB free
            ✓ provider  deepseek: chat at https://api.deepseek.com/v1, key in DEEPSEEK_API_KEY
            – provider  provider "office" has no key: OFFICE_KEY is not set
                        → set OFFICE_KEY, or mend [providers.office] in the config
            – provider  on this machine, if they run: ollama, lmstudio, llamacpp, vllm, sglang
                        → `folkmoot doctor --online` asks them
            – provider  without a key: openai, anthropic, gemini, dashscope, moonshot, zhipu, siliconflow, volcengine, hunyuan, qianfan, minimax, stepfun, openrouter, groq, mistral, xai, together, fireworks, cerebras, nvidia, perplexity
                        → set its variable, for example OPENAI_API_KEY; `folkmoot models` names them all
            ✗ model     default_model office/x: provider "office" has no key: OFFICE_KEY is not set
                        → set the key, or choose another default_model
            ✓ alias     mixed: demo → (codex: codex is not installed, or not in PATH)
            ✓ alias     safe: deepseek/c → (office/x: provider "office" has no key: OFFICE_KEY is not set) → demo
            – alias     coder: codex is not installed, or not in PATH
            ✓ git       git version V
            ✓ terminal  LANG=zh_CN.UTF-8
            ✓ clock     NOW

            not ready: 1 problem to fix
        "#]],
    );
    assert_eq!(stub.seen().connections, 0, "nothing leaves the machine");
    assert!(!called.shown().contains("sk-0123456789"));
}

#[test]
fn what_is_wrong_with_a_config_is_told_and_the_rest_all_the_same() {
    let bench = Bench::new().with("LANG", "C.UTF-8");
    bench.write("folkmoot.toml", "default_model = 'gone'\n[alises]\n[providers.x]\nkey = 1\n");
    let called = bench.call(["doctor", "--json"]).must_be(1).json();
    assert_eq!(called["ready"], false);
    let checks = called["checks"].as_array().expect("it is a list");
    let told = |it: &&Value| it["state"] == "bad";
    let bad: Vec<_> = checks.iter().filter(told).map(|it| &it["message"]).collect();
    assert_eq!(bad.len(), 2, "{bad:?}");
    assert!(bad[0].as_str().is_some_and(|it| it.contains("did you mean `aliases`?")), "{bad:?}");
    assert!(checks.iter().any(|it| it["check"] == "clock" && it["state"] == "ok"));

    bench.write("folkmoot.toml", "default_model = 'gone'\n");
    let page = bench.call(["doctor"]).must_be(1).stdout;
    assert!(page.contains("✗ config    folkmoot.toml:1:17: unknown model \"gone\""), "{page}");
}

#[test]
fn a_state_file_that_cannot_be_used_is_told() {
    let bench = Bench::new();
    bench.write("other.db", &"no database at all, not even a small one. ".repeat(40));
    let page = bench.call(["doctor", "--db", "other.db"]).must_be(1).stdout;
    assert!(page.contains("✗ state     store "), "{page}");
    assert!(page.contains("is no store of folkmoot"), "{page}");
    assert!(page.contains("→ `--db FILE`, or the variable FOLKMOOT_DB, keeps runs"), "{page}");
}

#[test]
fn online_each_provider_that_can_be_used_is_asked_what_it_has() {
    let stub = Stub::answering(|asked| {
        assert_eq!(asked.line.split(' ').next(), Some("GET"));
        match asked.header("authorization") {
            Some("Bearer good-key-012345") => Reply::json(200, &json!({ "data": [] })),
            _ => Reply::json(401, &json!({ "error": { "message": "who?" } })),
        }
    });
    let own = |name: &str| {
        let url = stub.base_url();
        format!("[providers.{name}]\nbase_url = '{url}'\nkey_env = '{name}_KEY'\n")
    };
    let bench = Bench::new()
        .with("LANG", "C.UTF-8")
        .with("good_KEY", "good-key-012345")
        .with("bad_KEY", "bad-key-0123456");
    bench.write("folkmoot.toml", &(own("good") + &own("bad")));
    let page = bench.call(["doctor", "--online"]).must_be(1).stdout;
    assert!(page.contains("key in good_KEY, answers"), "{page}");
    assert!(page.contains("key in bad_KEY: 401 Unauthorized; who?"), "{page}");
    assert!(page.contains("not running on this machine: ollama"), "{page}");
    let lines: Vec<_> = stub.seen().requests.iter().map(|it| it.line.clone()).collect();
    assert_eq!(lines, ["GET /v1/models HTTP/1.1"; 2]);
}
