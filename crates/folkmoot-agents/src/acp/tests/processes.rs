//! Programs that these tests play: their ends, their noise, their environment.

#![cfg(unix)]

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use folkmoot_core::{
    call::{FailureKind, Fault, Outcome},
    check::Environment,
    gate::Workspace,
    render::Role,
    team::{Acp, Agent, Sandbox, Target},
};
use folkmoot_runtime::{
    backend::{Request, Response},
    place::Place,
};
use tempfile::TempDir;

use crate::{
    acp::{self, Machine},
    gate::Gates,
    patience::Patience,
    retry::Backoff,
    testing::{Shown, message, request, until},
};

/// The beginning of an agent in the language of the shell: `answer` gives a result to the request that
/// was read last, `say` says something. It goes on with what it does once it is asked.
const AGENT: &str = r#"#!/bin/sh
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
say() {
    printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%s"}}}}\n' "$1"
}
hear() { read -r line && id=$(printf %s "$line" | sed -E 's/.*"id":("[^"]*"|[0-9]+).*/\1/'); }
done_() { answer '{"stopReason":"end_turn"}'; }
hear; answer '{"protocolVersion":1}'
hear; answer '{"sessionId":"s"}'
hear
"#;

/// A place with one agent, which does this once it is asked.
struct Stand {
    folder: TempDir,
    sandbox: Sandbox,
    grants: Vec<Arc<str>>,
    retries: u32,
}

impl Stand {
    fn with(acts: &str) -> Stand {
        Stand::of(&format!("{AGENT}{acts}\n"))
    }

    fn of(script: &str) -> Stand {
        let folder = tempfile::tempdir().expect("a folder can be made");
        fs::create_dir(folder.path().join("work")).expect("it can be made");
        let grants = vec!["*".into()];
        let stand = Stand { folder, sandbox: Sandbox::Full, grants, retries: 0 };
        let path = stand.path("agent");
        fs::write(&path, script).expect("it can be written");
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it can be set");
        stand
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn request(&self, program: &str) -> (Acp, Request) {
        let program: Arc<str> = self.path(program).to_str().expect("it is a text").into();
        let acp = Acp { command: vec![program] };
        let (grants, sandbox, retries) = (self.grants.clone(), self.sandbox, self.retries);
        let agent = Agent { grants, sandbox, retries, ..Agent::new("a", Target::Acp(acp.clone())) };
        let folder = self.path("work").to_str().expect("it is a text").into();
        let workspace = Workspace { folder, sandbox };
        let place = Place { workspace, environment: Environment::default() };
        (acp, Request { place, ..request(agent, vec![message(Role::User, "做吧。")]) })
    }

    async fn ask(&self) -> (Response, String) {
        self.ask_of("agent").await
    }

    async fn ask_of(&self, program: &str) -> (Response, String) {
        let (acp, request) = self.request(program);
        let shown = Shown::default();
        let path = std::env::var("PATH").unwrap_or_default();
        let ours =
            [("PATH".to_owned(), path), ("OPENAI_API_KEY".to_owned(), "sk-1".to_owned())].into();
        let patience = Patience { first_wait: Duration::ZERO, ..Patience::default() };
        let backoff = &Backoff::new(&patience, fastrand::Rng::with_seed(1));
        let machine = Machine { ours: &ours, closed: &[], gates: &Gates::default(), backoff };
        let response = acp::perform(&acp, machine, &request, &|it| shown.show(it)).await;
        (response, shown.text())
    }

    async fn fault(&self) -> (FailureKind, String) {
        match self.ask().await.0.outcome {
            Err(Fault::Failed { kind, text }) => (kind, text.to_string()),
            other => panic!("{other:?}"),
        }
    }

    /// The programs that still run in the workspace.
    #[cfg(target_os = "linux")]
    fn left_behind(&self) -> usize {
        let workspace = self.path("work").canonicalize().expect("it is there");
        let is_here = |process: &fs::DirEntry| {
            fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd == workspace)
        };
        fs::read_dir("/proc").expect("it is there").flatten().filter(is_here).count()
    }
}

fn text(outcome: &Outcome) -> &str {
    outcome.as_ref().map_or_else(|fault| panic!("{fault}"), |answer| &answer.text)
}

#[tokio::test]
async fn it_works_in_the_workspace_without_our_keys_and_what_it_says_is_shown() {
    let stand = Stand::with(
        r#"printf %s "$line" > prompt; env > env; say '好'; say '的。'; done_; cat > /dev/null"#,
    );
    let (response, shown) = stand.ask().await;
    assert_eq!((text(&response.outcome), &*shown), ("好的。", "好的。"));
    assert!(response.usage.estimated && response.usage.tokens.total() > 0);
    let read = |name| fs::read_to_string(stand.path(name)).expect("it was written");
    assert!(read("work/prompt").contains("做吧。"), "{}", read("work/prompt"));
    assert!(!read("work/env").contains("sk-1"), "{}", read("work/env"));
}

#[tokio::test]
async fn noise_on_its_output_is_skipped_and_counted() {
    let noise = r#"echo 'Loading…'; echo; echo '{}'; echo '{"jsonrpc":'; say ok; printf 'half'; echo; done_"#;
    let (response, _) = Stand::with(noise).ask().await;
    assert_eq!(text(&response.outcome), "ok");
    let answer = response.outcome.expect("it replied");
    assert_eq!(answer.session.as_ref().expect("it had one").noise, 4);
}

#[tokio::test]
async fn one_that_dies_in_its_turn_fails_with_its_end_and_its_last_words() {
    for (ends, told) in [("exit 3", "exit code 3"), ("kill -9 $$", "killed by signal 9")] {
        let (kind, why) =
            Stand::with(&format!("say half; echo 'no luck' >&2; {ends}")).fault().await;
        assert_eq!(kind, FailureKind::Harness);
        assert!(why.contains(told) && why.contains("no luck"), "{why}");
    }
    let (kind, why) =
        Stand::of("#!/bin/sh\necho 'error: no such flag' >&2; exit 2\n").fault().await;
    assert!(kind != FailureKind::Protocol && why.contains("exit code 2"), "{kind:?} {why}");
    assert!(why.contains("no such flag"), "{why}");
}

#[tokio::test]
async fn one_that_is_not_there_could_not_be_started_and_used_nothing() {
    let stand = Stand::with("");
    fs::remove_file(stand.path("agent")).expect("it is there");
    let (response, _) = stand.ask().await;
    assert!(response.usage.is_nothing());
    let fault = response.outcome.expect_err("it is gone").to_string();
    assert!(fault.contains("not installed"), "{fault}");
}

#[tokio::test]
async fn another_version_of_the_protocol_is_refused_by_name() {
    for version in [0, 2] {
        let (_, script) = AGENT.split_once('\n').expect("it has lines");
        let other =
            script.replace("\"protocolVersion\":1", &format!("\"protocolVersion\":{version}"));
        let (kind, why) = Stand::of(&format!("#!/bin/sh\n{other}")).fault().await;
        assert_eq!(kind, FailureKind::Protocol, "{why}");
        let names_both = why.contains("version 1") && why.contains(&version.to_string());
        assert!(why.contains("ACP protocol") && names_both, "{why}");
    }
}

#[tokio::test]
async fn a_fault_tells_what_had_been_allowed_by_then() {
    let asks = r#"echo '{"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"t","title":"rm -r build","kind":"execute"},"options":[{"optionId":"y","name":"Yes","kind":"allow_once"}]}}'
read -r line; echo noise; exit 3"#;
    let (_, why) = Stand::with(asks).fault().await;
    assert!(why.contains("exit code 3"), "{why}");
    assert!(why.contains("it had been allowed: rm -r build"), "{why}");
    assert!(why.contains("no messages: 1"), "{why}");
}

#[tokio::test]
async fn whoever_says_nothing_has_not_replied_and_what_it_was_denied_is_told() {
    let asks = r#"echo '{"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"t","title":"rm -r build","kind":"execute"},"options":[{"optionId":"n","name":"No","kind":"reject_once"}]}}'
ours=$id; read -r line; id=$ours; say '  '; done_; exec sleep 600"#;
    let (kind, why) = Stand { grants: Vec::new(), ..Stand::with(asks) }.fault().await;
    assert_eq!(kind, FailureKind::Incomplete);
    assert!(why.contains("it said nothing (after "), "{why}");
    assert!(why.contains("it had been denied: rm -r build"), "{why}");
}

#[tokio::test]
async fn one_that_fails_is_asked_again_as_often_as_its_retries_say() {
    let acts = "echo x >> tries; if [ $(wc -l < tries) -lt 3 ]; then exit 1; fi; say ok; done_; cat > /dev/null";
    let (kind, why) = Stand { retries: 1, ..Stand::with(acts) }.fault().await;
    assert!(kind == FailureKind::Harness && why.contains("(after 2 attempts)"), "{why}");
    let (response, _) = Stand { retries: 2, ..Stand::with(acts) }.ask().await;
    assert_eq!(text(&response.outcome), "ok");
    let at_once = Stand::with("say ok; done_; cat > /dev/null").ask().await.0.usage.tokens;
    assert!(response.usage.tokens.total() > at_once.total(), "what the others used counts");
}

#[tokio::test]
async fn codex_is_held_to_reading_unless_it_may_do_both() {
    if crate::unenforceable().is_some() {
        return;
    }
    for (grants, writes) in
        [(vec!["file".into()], false), (vec!["file".into(), "shell".into()], true)]
    {
        let acts = Stand::with("echo x > new; say ok; done_; cat > /dev/null");
        let stand = Stand { sandbox: Sandbox::Write, grants, ..acts };
        fs::rename(stand.path("agent"), stand.path("codex-acp")).expect("it is there");
        assert_eq!(text(&stand.ask_of("codex-acp").await.0.outcome), "ok");
        assert_eq!(stand.path("work/new").exists(), writes);
    }
}

#[tokio::test]
async fn what_is_said_in_another_session_is_no_reply() {
    let other = r#"echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"other","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"APPROVE"}}}}'; say 'no'; done_"#;
    assert_eq!(text(&Stand::with(other).ask().await.0.outcome), "no");
}

/// Time runs on by itself where everybody waits, so nobody waits two minutes here.
#[tokio::test(start_paused = true)]
async fn one_that_says_nothing_has_only_so_long_to_open_a_session() {
    let (kind, why) = Stand::of("#!/bin/sh\nexec sleep 600\n").fault().await;
    assert_eq!(kind, FailureKind::Timeout);
    assert!(why.contains("it opened no session within 120 s"), "{why}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn all_that_it_has_started_ends_with_the_call() {
    let stand = Stand::with("(sleep 600 &) ; sleep 600 & say ok; done_; wait");
    let (response, _) = stand.ask().await;
    assert_eq!(text(&response.outcome), "ok");
    until(|| stand.left_behind() == 0);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn whoever_no_longer_waits_has_it_told_and_ended() {
    let acts = "touch begun; hear; printf %s \"$line\" > told; answer '{\"stopReason\":\"cancelled\"}'; sleep 600";
    let stand = Stand::with(acts);
    let begun = Instant::now();
    let waits = async {
        while !stand.path("work/begun").exists() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        (response, _) = stand.ask() => panic!("{response:?}"),
        () = waits => {}
    }
    crate::parted().await;
    let told = fs::read_to_string(stand.path("work/told")).expect("it was told");
    assert!(told.contains("session/cancel"), "{told}");
    until(|| stand.left_behind() == 0);
    assert!(begun.elapsed() < Duration::from_secs(20));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn it_is_held_to_its_level_whatever_it_asks() {
    if crate::unenforceable().is_some() {
        return;
    }
    let acts = "echo x > new; echo x > ../beside; say ok; done_; cat > /dev/null";
    for (sandbox, grants, writes) in [
        (Sandbox::ReadOnly, vec!["*".into()], false),
        (Sandbox::Write, vec!["file.read".into()], false),
        (Sandbox::Write, vec!["file".into()], true),
    ] {
        let stand = Stand { sandbox, grants, ..Stand::with(acts) };
        assert_eq!(text(&stand.ask().await.0.outcome), "ok");
        assert_eq!(stand.path("work/new").exists(), writes, "{sandbox:?}");
        assert!(!stand.path("beside").exists());
    }
}

#[tokio::test]
async fn a_reply_of_any_size_is_bounded() {
    let acts = r#"long=$(head -c 900000 /dev/zero | tr '\0' x); for i in 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0; do say "$long"; done; done_"#;
    let (kind, why) = Stand::with(acts).fault().await;
    assert!(kind == FailureKind::Incomplete && why.contains("too long"), "{why}");
}

#[tokio::test]
async fn opencode_is_told_to_ask_for_what_it_is_granted() {
    let stand = Stand {
        grants: vec!["file".into()],
        ..Stand::with("say \"$(printf %s \"$OPENCODE_PERMISSION\" | tr -d '\"')\"; done_")
    };
    fs::rename(stand.path("agent"), stand.path("opencode")).expect("it is there");
    let (response, _) = stand.ask_of("opencode").await;
    assert_eq!(text(&response.outcome), "{edit:ask,bash:deny,webfetch:deny}");
}
