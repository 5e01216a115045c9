//! Turns with agents that act as these tests tell them, and with programs that these tests play.

mod agent;
mod processes;

use std::{collections::BTreeSet, fs};

use agent_client_protocol::{
    Error,
    v1::schema::{
        KillTerminalRequest, PromptResponse, ReleaseTerminalRequest, StopReason, TerminalId,
        TerminalOutputRequest, ToolKind, Usage, WaitForTerminalExitRequest,
    },
};
use folkmoot_core::{call::FailureKind, team::Sandbox};

use self::agent::{Scene, Stage};
use super::{talk::Silence, used};

fn done() -> Result<PromptResponse, Error> {
    Ok(PromptResponse::new(StopReason::EndTurn))
}

fn why(silence: Silence) -> (FailureKind, String) {
    match silence {
        Silence::Told { kind, text } => (kind, text),
        Silence::Ended => panic!("it ended"),
    }
}

#[tokio::test]
async fn what_it_says_is_its_reply_in_paragraphs_and_what_it_thinks_is_kept_apart() {
    let scene = Scene::new(&[]);
    let (said, answer) = scene
        .play(|stage: Stage| async move {
            assert!(stage.prompt.contains("做吧。"), "{}", stage.prompt);
            stage.think("Hm.");
            stage.say("我先");
            stage.say("看看。");
            stage.uses("t1", ToolKind::Read);
            stage.uses("t2", ToolKind::Think);
            stage.say("APPROVE");
            let usage = Usage::new(60, 40, 9).cached_read_tokens(5).thought_tokens(2);
            Ok(PromptResponse::new(StopReason::EndTurn).usage(usage))
        })
        .await;
    assert_eq!(&*answer.text, "我先看看。\n\nAPPROVE");
    assert_eq!(answer.reasoning.as_deref(), Some("Hm."));
    let session = answer.session.expect("it had one");
    assert_eq!((session.program.as_deref(), session.tool_calls), (Some("scripted 7.1"), 2));
    let usage = used(&said.expect("it replied").usage.expect("it told")).usage(400, 400);
    assert_eq!((usage.tokens.input, usage.tokens.cached, usage.tokens.output), (40, 5, 11));
    assert!(!usage.estimated);
}

#[test]
fn what_it_used_is_counted_once_whichever_way_it_counts() {
    let tokens = |total, input, output| {
        let told = Usage::new(total, input, output);
        let told = told.cached_read_tokens(30).cached_write_tokens(10).thought_tokens(5);
        let tokens = used(&told).usage(8, 4).tokens;
        (tokens.input, tokens.cached, tokens.cache_write, tokens.output)
    };
    assert_eq!(tokens(155, 100, 10), (100, 30, 10, 15));
    assert_eq!(tokens(110, 100, 10), (60, 30, 10, 10));
    assert_eq!(tokens(u64::MAX, 3, u64::MAX), (0, 30, 10, 1), "what cannot be is estimated");
}

#[tokio::test]
async fn permissions_are_answered_from_the_grants_once_each_and_noted() {
    let scene = Scene::new(&["file.read", "shell", "mcp.x"]);
    let (_, answer) = scene
        .play(|stage: Stage| async move {
            for (id, kind) in [
                ("read", ToolKind::Read),
                ("edit", ToolKind::Edit),
                ("delete", ToolKind::Delete),
                ("run", ToolKind::Execute),
                ("fetch", ToolKind::Fetch),
                ("other", ToolKind::Other),
            ] {
                stage.uses(id, kind);
                let chosen = stage.asks(id).await;
                stage.say(&format!("{id}: {chosen}"));
            }
            stage.say(&stage.asks("unheard of").await);
            done()
        })
        .await;
    let said: Vec<&str> = answer.text.split("\n\n").collect();
    assert_eq!(
        said,
        [
            "read: AllowOnce",
            "edit: RejectOnce",
            "delete: RejectOnce",
            "run: AllowOnce",
            "fetch: RejectOnce",
            "other: RejectOnce",
            "RejectOnce"
        ]
    );
    let session = answer.session.expect("it had one");
    let noted = session
        .decisions
        .iter()
        .map(|it| format!("{} {} {}", it.what, it.tool.as_deref().unwrap_or("-"), it.allowed));
    assert_eq!(
        noted.collect::<Vec<_>>(),
        [
            "uses read file.read true",
            "uses edit file.write false",
            "uses delete file.write false",
            "uses run shell true",
            "uses fetch fetch false",
            "uses other - false",
            "unheard of - false"
        ]
    );
}

#[tokio::test]
async fn files_are_read_and_written_for_it_in_the_workspace_only_and_by_its_grants() {
    let scene = Scene::new(&["file"]);
    fs::write(scene.path("a.txt"), "一\n二\n三\n").expect("it can be written");
    fs::create_dir(scene.path(".git")).expect("it can be made");
    #[cfg(unix)]
    std::os::unix::fs::symlink("/etc", scene.path("out")).expect("it can be made");
    let (_, answer) = scene
        .play(|stage: Stage| async move {
            assert!(stage.can.fs.read_text_file && stage.can.fs.write_text_file);
            assert!(!stage.can.terminal);
            assert_eq!(stage.reads("a.txt").await?, "一\n二\n三\n");
            stage.writes("new/b.txt", "研究🦀").await?;
            let outside = ["/etc/hostname", "../x", "new/../../x", "out/hostname"];
            for path in outside {
                let error = stage.reads(path).await.expect_err(path);
                assert!(error.message.starts_with("outside_workspace"), "{path}: {error:?}");
                let error = stage.writes(path, "x").await.expect_err(path);
                assert!(error.message.starts_with("outside_workspace"), "{path}: {error:?}");
            }
            for path in [".git/config", "runs.db"] {
                let error = stage.writes(path, "x").await.expect_err(path);
                assert!(error.message.starts_with("denied"), "{path}: {error:?}");
            }
            let error = stage.reads("none").await.expect_err("there is none");
            assert_eq!(error.code.value(), -32_002);
            let run = stage.runs("touch ran");
            let error = stage.cx.send_request(run).block_task().await.expect_err("not granted");
            assert_eq!(error.message, "denied: shell");
            stage.say("ok");
            done()
        })
        .await;
    assert_eq!(&*answer.text, "ok");
    assert_eq!(fs::read_to_string(scene.path("new/b.txt")).expect("it is there"), "研究🦀");
    let session = answer.session.expect("it had one");
    assert_eq!(session.decisions.iter().filter(|it| !it.allowed).count(), 1);
}

#[tokio::test]
async fn whoever_only_reads_gets_parts_of_files_and_writes_none() {
    let scene = Scene { level: Sandbox::ReadOnly, ..Scene::new(&["file"]) };
    fs::write(scene.path("a.txt"), "1\n2\n3\n").expect("it can be written");
    let (_, answer) = scene
        .play(|stage: Stage| async move {
            assert!(stage.can.fs.read_text_file && !stage.can.fs.write_text_file);
            let error = stage.writes("a.txt", "x").await.expect_err("it only reads");
            stage.say(&error.message);
            let mut part = agent_client_protocol::v1::schema::ReadTextFileRequest::new(
                stage.session.clone(),
                stage.folder.join("a.txt"),
            );
            (part.line, part.limit) = (Some(2), Some(1));
            stage.say(&stage.cx.send_request(part).block_task().await?.content);
            done()
        })
        .await;
    assert_eq!(&*answer.text, "denied: file.write2\n");
}

#[tokio::test]
async fn commands_are_run_for_it_and_can_be_watched_killed_and_released() {
    let scene = Scene::new(&["shell"]);
    let (_, answer) = scene
        .play(|stage: Stage| async move {
            assert!(stage.can.terminal);
            let (cx, session) = (&stage.cx, stage.session.clone());
            let run = stage.runs("pwd; echo 错误 >&2; exit 3");
            let id = cx.send_request(run).block_task().await?.terminal_id;
            let wait = WaitForTerminalExitRequest::new(session.clone(), id.clone());
            let status = cx.send_request(wait).block_task().await?.exit_status;
            assert_eq!((status.exit_code, status.signal), (Some(3), None));
            let look = TerminalOutputRequest::new(session.clone(), id);
            let seen = cx.send_request(look).block_task().await?;
            let folder = stage.folder.canonicalize().expect("it is there").display().to_string();
            // Both come by pipes of their own.
            let lines: BTreeSet<&str> = seen.output.lines().collect();
            assert_eq!((lines, seen.truncated), ([&*folder, "错误"].into(), false));

            let run = stage.runs("yes | head -c 100000; exec sleep 600").output_byte_limit(10);
            let id = cx.send_request(run).block_task().await?.terminal_id;
            let look = || TerminalOutputRequest::new(session.clone(), id.clone());
            loop {
                let seen = cx.send_request(look()).block_task().await?;
                if seen.truncated {
                    assert_eq!((seen.output.len(), seen.exit_status), (10, None));
                    break;
                }
            }
            let kill = KillTerminalRequest::new(session.clone(), id.clone());
            cx.send_request(kill).block_task().await?;
            let wait = WaitForTerminalExitRequest::new(session.clone(), id.clone());
            let status = cx.send_request(wait).block_task().await?.exit_status;
            assert_eq!(status.signal.as_deref(), Some("SIGKILL"));
            let release = ReleaseTerminalRequest::new(session.clone(), id.clone());
            cx.send_request(release).block_task().await?;
            cx.send_request(look()).block_task().await.expect_err("nothing is known of it");
            let unknown = TerminalOutputRequest::new(session.clone(), TerminalId::new("x"));
            cx.send_request(unknown).block_task().await.expect_err("there is none");
            let away = stage.runs("pwd").cwd(stage.folder.join(".."));
            let error = cx.send_request(away).block_task().await.expect_err("it leads out");
            assert!(error.message.starts_with("outside_workspace"), "{error:?}");
            stage.say("ok");
            done()
        })
        .await;
    assert_eq!(&*answer.text, "ok");
}

#[tokio::test]
async fn a_question_that_waits_holds_up_no_other() {
    let scene = Scene::new(&["shell", "file.read"]);
    fs::write(scene.path("a.txt"), "a").expect("it can be written");
    let (_, answer) = scene
        .play(|stage: Stage| async move {
            let run = stage.runs("exec sleep 600");
            let id = stage.cx.send_request(run).block_task().await?.terminal_id;
            let wait = WaitForTerminalExitRequest::new(stage.session.clone(), id);
            let waits = stage.cx.send_request(wait);
            stage.say(&stage.reads("a.txt").await?);
            stage.uses("t", ToolKind::Read);
            stage.say(&stage.asks("t").await);
            drop(waits);
            done()
        })
        .await;
    assert_eq!(&*answer.text, "a\n\nAllowOnce");
}

#[tokio::test]
async fn a_turn_that_stops_early_is_no_reply() {
    for (reason, kind, text) in [
        (StopReason::MaxTokens, FailureKind::Incomplete, "limit of tokens"),
        (StopReason::MaxTurnRequests, FailureKind::Incomplete, "limit of requests"),
        (StopReason::Refusal, FailureKind::Other, "it refused"),
        (StopReason::Cancelled, FailureKind::Other, "cancelled"),
    ] {
        let act = move |stage: Stage| async move {
            stage.say("half of");
            Ok(PromptResponse::new(reason))
        };
        let (said, _) = Scene::new(&[]).play(act).await;
        let (told, words) = why(said.expect_err("it is no reply"));
        assert!(told == kind && words.contains(text), "{reason:?}: {told:?} {words}");
    }
}

#[tokio::test]
async fn an_error_is_told_with_its_kind() {
    for (error, kind) in [
        (
            Error::new(-32_603, "Internal error").data(serde_json::json!("429: rate limit")),
            FailureKind::RateLimited,
        ),
        (Error::new(-32_603, "boom"), FailureKind::Harness),
        (Error::auth_required(), FailureKind::Auth),
    ] {
        let act = move |_: Stage| std::future::ready(Err(error.clone()));
        let (said, _) = Scene::new(&[]).play(act).await;
        assert_eq!(why(said.expect_err("it is no reply")).0, kind);
    }
}

#[tokio::test]
async fn whoever_is_not_logged_in_is_told_how() {
    let scene = Scene { is_logged_in: false, ..Scene::new(&[]) };
    let (said, _) = scene.play(|_| std::future::ready(done())).await;
    let (kind, text) = why(said.expect_err("there is no session"));
    assert_eq!(kind, FailureKind::Auth);
    assert!(text.contains("log in") && text.contains("it offers: An API key"), "{text}");
}

#[tokio::test]
async fn whoever_is_left_is_told_so_and_allowed_nothing_more() {
    let scene = Scene::new(&["*"]);
    let left = scene.left.clone();
    let act = move |stage: Stage| {
        let left = left.clone();
        async move {
            stage.uses("t", ToolKind::Edit);
            left.cancel();
            stage.cancelled.cancelled().await;
            assert_eq!(stage.asks("t").await, "cancelled");
            stage.writes("late.txt", "x").await.expect_err("nobody wants it");
            fs::write(stage.folder.join("told"), "").expect("it can be written");
            Ok(PromptResponse::new(StopReason::Cancelled))
        }
    };
    let (said, _) = scene.play(act).await;
    said.expect_err("it is no reply");
    assert_eq!((scene.path("told").exists(), scene.path("late.txt").exists()), (true, false));
}
