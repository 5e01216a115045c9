//! The config, and where runs are kept.

use std::fs;

use expect_test::expect;
use folkmoot_stub::{Reply, Stub};
use rusqlite::Connection;
use serde_json::json;

use crate::{
    bench::{Bench, until},
    snapshot::check,
};

const ECHO: &str = "agents: [{ name: echo, script: {} }]\n";

#[test]
fn what_is_wrong_with_a_config_is_told_with_its_place() {
    for (config, expected) in [
        (
            "default_model = 'a/b'\n\n[provider.x]\n",
            expect![[r#"
                exit 2
                ! error: folkmoot.toml:3:2: unknown field `provider`, expected one of `default_model`, `aliases`, `providers`, `prices`, `max_output_tokens`, `context_windows`, `fetch`, `owner`, `templates`; did you mean `providers`?
            "#]],
        ),
        (
            "default_model = 3",
            expect![[r#"
            exit 2
            ! error: folkmoot.toml:1:17: invalid type: integer `3`, expected a string
        "#]],
        ),
        (
            "[aliases]\n\"名\" = [1]\n",
            expect![[r#"
                exit 2
                ! error: folkmoot.toml:2:7: an alias stands for a target, a list of targets, { cli = "…" } with claude, codex, gemini or opencode, or { acp = [command] }
            "#]],
        ),
        (
            "[providers.x]\nbase_url = 'http://x'\nkey = 'sk-12345678'\n",
            expect![[r#"
            exit 2
            ! error: folkmoot.toml:3:1: unknown field `key`, expected one of `protocol`, `base_url`, `key_env`, `headers`, `stream_usage`
        "#]],
        ),
        (
            "[providers.x]\nkey_env = 'sk-proj-12345678'\n[providers.y]\nkey_env = 'AIzaSyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q'\n",
            expect![[r#"
                exit 2
                ! error: folkmoot.toml:2:11: key_env is the name of the variable that holds the key, in letters, digits and `_`; this is none, and is not shown in case it is the key itself
                ! error: folkmoot.toml:4:11: key_env is the name of the variable that holds the key, in letters, digits and `_`; this is none, and is not shown in case it is the key itself
            "#]],
        ),
        (
            "[providers.x]\nprotocol = 'chatty'\n",
            expect![[r#"
                exit 2
                ! error: folkmoot.toml:2:12: unknown variant `chatty`, expected one of `chat`, `responses`, `messages`, `gemini`; did you mean `chat`?
            "#]],
        ),
        (
            "[prices.\"a/b\"]\ninput = 'cheap'\noutput = 1\n",
            expect![[r#"
            exit 2
            ! error: folkmoot.toml:2:9: invalid type: string "cheap", expected f64
        "#]],
        ),
        (
            "default_model = ",
            expect![[r#"
            exit 2
            ! error: folkmoot.toml:1:17: string values must be quoted, expected literal string
        "#]],
        ),
        (
            "default_model = 'gone'\n[aliases]\na = ['b', 'opnai/x']\nb = 'a'\nc = 'a/b'\n",
            expect![[r#"
                exit 2
                ! error: folkmoot.toml:3:5: unknown provider "opnai" in "opnai/x"
                ! help: did you mean "openai"?
                ! error: folkmoot.toml:3:5: the alias "a" leads to itself: a -> b -> a
                ! error: folkmoot.toml:5:5: unknown provider "a" in "a/b"
                ! help: known: anthropic, cerebras, dashscope, deepseek, fireworks, gemini, groq, hunyuan, llamacpp, lmstudio, minimax, mistral, moonshot, nvidia, ollama, openai, openrouter, perplexity, qianfan, sglang, siliconflow, stepfun, together, vllm, volcengine, xai, zhipu, demo
                ! error: folkmoot.toml:1:17: unknown model "gone"
                ! help: write provider/model, or an alias of the config
            "#]],
        ),
        (
            "[prices.x]\ninputs = 1\noutput = 'two'\n[aliases]\nx = 3\n[providers.y]\nurl = 1\n",
            expect![[r#"
                exit 2
                ! error: folkmoot.toml:2:1: unknown field `inputs`, expected one of `input`, `output`, `cached_input`, `cache_write`, `above`, `as_of`; did you mean `input`?
                ! error: folkmoot.toml:3:10: invalid type: string "two", expected f64
                ! error: folkmoot.toml:5:5: an alias stands for a target, a list of targets, { cli = "…" } with claude, codex, gemini or opencode, or { acp = [command] }
                ! error: folkmoot.toml:7:1: unknown field `url`, expected one of `protocol`, `base_url`, `key_env`, `headers`, `stream_usage`
            "#]],
        ),
        (
            "a = 1\na = 2",
            expect![[r#"
            exit 2
            ! error: folkmoot.toml:2:1: duplicate key
        "#]],
        ),
    ] {
        let bench = Bench::with_team(ECHO);
        bench.write("folkmoot.toml", config);
        check(&bench, bench.call(["run", "team.yaml", "task"]).must_be(2), expected);
        bench.call(["models"]).must_be(2);
        bench.call(["schema"]).must_be(0);
    }
}

#[test]
fn the_config_of_a_project_wins_over_that_of_the_user() {
    let stub = Stub::start([Reply::text("hi")]);
    let bench = Bench::with_team("agents: [{ name: a }]").with("OLLAMA_BASE_URL", stub.base_url());
    fs::create_dir_all(bench.path(".config/folkmoot")).expect("it can be made");
    bench.write(
        ".config/folkmoot/config.toml",
        "default_model = 'quick'\n[aliases]\nquick = 'ollama/users'\nslow = 'ollama/slow'\n",
    );
    bench.call(["run", "team.yaml", "task"]).must_be(0);
    bench.write("folkmoot.toml", "[aliases]\nquick = 'ollama/projects'\n");
    bench.call(["run", "team.yaml", "task"]).must_be(0);
    bench.call(["run", "team.yaml", "task", "--model", "slow"]).must_be(0);
    until(&stub, |seen| seen.requests.len() == 3);
    let models = stub.seen().requests.iter().map(|it| it.body["model"].clone()).collect::<Vec<_>>();
    assert_eq!(models, [json!("users"), json!("projects"), json!("slow")]);
}

#[test]
fn runs_are_kept_where_it_is_said() {
    let bench = Bench::with_team(ECHO);
    bench.call(["run", "team.yaml", "task", "--db", "a/b/own.db"]).must_be(0);
    let listed = bench.call(["runs", "--json", "--db", "a/b/own.db"]).must_be(0).json();
    assert_eq!(listed.as_array().map(Vec::len), Some(1));
    assert!(bench.runs().is_empty(), "the flag wins over the variable");

    let mut command = bench.folkmoot(["run", "team.yaml", "task"]);
    command.env_remove("FOLKMOOT_DB").env("XDG_STATE_HOME", bench.path("state"));
    assert!(command.status().expect("it can be started").success());
    assert!(bench.path("state/folkmoot/folkmoot.db").exists());
    let mut command = bench.folkmoot(["run", "team.yaml", "task"]);
    command.env_remove("FOLKMOOT_DB");
    assert!(command.status().expect("it can be started").success());
    assert!(bench.path(".local/state/folkmoot/folkmoot.db").exists());
}

#[test]
fn what_cannot_be_a_database_is_refused_and_left_alone() {
    let bench = Bench::with_team(ECHO);
    let other = Connection::open(bench.path("sqlite.db")).expect("it can be made");
    other.execute_batch("CREATE TABLE streams (id)").expect("it is SQL");
    let other = fs::read(bench.path("sqlite.db")).expect("it is there");
    fs::create_dir(bench.path("folder")).expect("it can be made");
    bench.write(
        "other.db",
        "not a database, but long enough to be taken for one. ".repeat(20).as_str(),
    );
    for (file, expected) in [
        (
            "team.yaml",
            expect![[r#"
                exit 2
                ! error: store FOLDER/team.yaml: the file exists and is no store of folkmoot; choose another
                ! help: `--db FILE`, or the variable FOLKMOOT_DB, keeps runs in another file
            "#]],
        ),
        (
            "other.db",
            expect![[r#"
                exit 2
                ! error: store FOLDER/other.db: the file exists and is no store of folkmoot; choose another
                ! help: `--db FILE`, or the variable FOLKMOOT_DB, keeps runs in another file
            "#]],
        ),
        (
            "sqlite.db",
            expect![[r#"
                exit 2
                ! error: store FOLDER/sqlite.db: the file exists and is no store of folkmoot; choose another
                ! help: `--db FILE`, or the variable FOLKMOOT_DB, keeps runs in another file
            "#]],
        ),
        (
            "folder",
            expect![[r#"
                exit 2
                ! error: store FOLDER/folder: it is a folder; name a file in it
                ! help: `--db FILE`, or the variable FOLKMOOT_DB, keeps runs in another file
            "#]],
        ),
        (
            "team.yaml/runs.db",
            expect![[r#"
                exit 2
                ! error: store FOLDER/team.yaml/runs.db: File exists (os error 17)
                ! help: `--db FILE`, or the variable FOLKMOOT_DB, keeps runs in another file
            "#]],
        ),
    ] {
        check(&bench, bench.call(["run", "team.yaml", "task", "--db", file]).must_be(2), expected);
    }
    assert_eq!(fs::read_to_string(bench.path("team.yaml")).expect("it is there"), ECHO);
    assert_eq!(fs::read(bench.path("sqlite.db")).expect("it is there"), other);
    // Not even root can write here.
    let refused = bench.call(["run", "team.yaml", "task", "--db", "/proc/runs.db"]).must_be(2);
    assert!(refused.stderr.starts_with("error: store /proc/runs.db: "), "{}", refused.stderr);
}
