use std::net::TcpListener;

use folkmoot_core::{
    call::{Answer, Call, Outcome},
    key::Key,
    known::Entry,
    programs::Clocks,
    run::Run,
    sim::{Happening, Sim, World},
    team::{Agent, Script, ScriptedReply, Target, Team},
    time::Duration,
};
use tempfile::TempDir;

use super::*;
use crate::{
    Rehearsal,
    testing::{is_running, until},
    unenforceable,
};

/// A controller that wants one turn after the other.
struct Fixed;

impl World for Fixed {
    fn answer(&mut self, spec: &Spec, run: &Run, key: &Key, entry: &Entry) -> Option<Happening> {
        if !matches!(entry.call, Call::Exchange { .. }) {
            return Rehearsal.answer(spec, run, key, entry);
        }
        let round = Briefing::of(spec, run.known(), key).round;
        let line = match round {
            3 => r#"{"final":"done"}"#.to_owned(),
            _ => format!(
                r#"{{"want":[{{"key":"turn-{round}","agent":"a","prompt":[{{"text":"go"}}]}}]}}"#
            ),
        };
        let outcome: Outcome = Ok(Answer::text(line).into());
        Some(Happening { after: Duration::default(), outcome, usage: Usage::default() })
    }
}

/// A folder with a controller that is a script of the shell.
struct Place {
    folder: TempDir,
    spec: Arc<Spec>,
}

impl Place {
    /// One for confined programs; where the system cannot confine any, they must be refused instead.
    async fn confining(script: &str) -> Option<Place> {
        let place = Place::new(&["sh", "-c", script], Sandbox::Full);
        if unenforceable().is_none() {
            return Some(place);
        }
        let mut spec = Spec::clone(&place.spec);
        spec.workspace = spec.workspace.map(|it| Workspace { sandbox: Sandbox::ReadOnly, ..it });
        let fault = Place { spec: spec.into(), ..place }.first().await.expect_err("it is refused");
        assert!(fault.to_string().starts_with("sandbox_unavailable: "), "{fault}");
        None
    }

    fn new(command: &[&str], sandbox: Sandbox) -> Place {
        let folder = tempfile::tempdir().expect("a folder");
        let replies = vec![ScriptedReply::text("one"), ScriptedReply::text("two")];
        let agent = Agent::new("a", Target::Script(Script { replies, ..Script::default() }));
        let command = command.iter().map(|word| (*word).into()).collect();
        let (agents, clocks) = (vec!["a".into()], Clocks::default());
        let path: Arc<str> = folder.path().to_str().expect("a path").into();
        let controller = Controller { command, folder: path.clone(), agents, clocks };
        let mut team = Team::new("t", vec![agent]);
        team.staff = vec![controller.staff()];
        let spec = Spec {
            team,
            task: "T".into(),
            collaboration: Collaboration::Controller(controller),
            auto: None,
            limits: folkmoot_core::limits::Limits::default(),
            workspace: Some(Workspace { folder: path, sandbox }),
            warnings: Vec::new(),
            recipe: None,
            mail: folkmoot_core::spec::Mail::Unknown,
        };
        Place { folder, spec: spec.into() }
    }

    /// What is to be told in three exchanges.
    fn briefings(&self) -> [Briefing; 3] {
        let sim = Sim::start(self.spec.clone(), 0, 0, &mut Fixed).finish(&mut Fixed);
        ["controller/1", "controller/2", "controller/3"]
            .map(|key| Briefing::of(&self.spec, sim.run.known(), &Key::parse(key)))
    }

    fn meet(&self) -> Arc<dyn Dialogue> {
        let ours = [("PATH", std::env::var("PATH").unwrap_or_default()), ("MY_KEY", "x".into())];
        let ours = ours.map(|(name, value)| (name.to_owned(), value));
        Starter::new(ours).meet(&self.spec)
    }

    async fn first(&self) -> Result<String, Fault> {
        let [first, ..] = self.briefings();
        said(self.meet().tell(first).await)
    }
}

/// The `final` that a controller says.
fn said(response: Response) -> Result<String, Fault> {
    let answer = response.outcome?;
    let said: serde_json::Value = serde_json::from_str(&answer.text).expect("it is JSON");
    Ok(said["final"].as_str().map_or_else(|| said["final"].to_string(), str::to_owned))
}

/// Who says so, and what it was told.
fn heard(said: &str) -> (String, String) {
    let (process, line) = said[1..said.len() - 1].split_once(',').expect("it says who it is");
    (process.to_owned(), line.to_owned())
}

const WHOLE: &str = r#"{"known":{},"new":[],"task":"T","agents":["a"],"round":1}"#;

#[tokio::test]
async fn one_process_is_told_all_and_then_what_is_new() {
    let Some(place) =
        Place::confining("while read -r line; do echo \"{\\\"final\\\":[$$,$line]}\"; done").await
    else {
        return;
    };
    let [first, second, third] = place.briefings();
    let dialogue = place.meet();
    let one = said(dialogue.tell(first.clone()).await).expect("it answers");
    let (process, line) = heard(&one);
    assert_eq!(line, WHOLE);
    let two = said(dialogue.tell(second.clone()).await).expect("it answers");
    assert_eq!(heard(&two), (process.clone(), second.news()));
    // Whoever was not told all that came before is told everything, in a process of its own.
    assert!(third.follows(&second) && !third.follows(&first));
    said(dialogue.tell(first).await).expect("it answers");
    let anew = said(dialogue.tell(third.clone()).await).expect("it answers");
    let (other, line) = heard(&anew);
    assert_eq!((other == process, line), (false, third.whole()));
    let other = other.parse().expect("a process");
    assert!(is_running(other));
    // Nothing else goes on in this thread: that it is let go of is what ends it.
    drop(dialogue);
    until(|| !is_running(other));
}

#[tokio::test]
async fn one_that_answers_once_and_ends_is_started_anew_and_told_everything() {
    let Some(place) = Place::confining("read -r line; echo \"{\\\"final\\\":$line}\"").await else {
        return;
    };
    let dialogue = place.meet();
    for briefing in place.briefings() {
        assert_eq!(said(dialogue.tell(briefing.clone()).await), Ok(briefing.whole()));
    }
    let Some(place) = Place::confining("printf '{\"final\":\"last\"}'").await else { return };
    assert_eq!(place.first().await.as_deref(), Ok("last"));
}

#[tokio::test]
async fn one_that_gives_no_line_fails_with_the_reason_and_its_error_output() {
    for (script, why) in [
        (
            "echo bad luck >&2; exit 3",
            "it ended with code 3 and gave no answer; its error output: bad luck",
        ),
        ("kill -9 $$", "it was killed and gave no answer"),
        ("yes long | tr -d '\\n' | head -c 1100000", "its line is longer than 1 MiB"),
        ("printf '\\377\\n'", "its line is not UTF-8"),
        ("echo '{\"error\": \"I give up\"}'", "I give up"),
    ] {
        let Some(place) = Place::confining(script).await else { return };
        let fault = place.first().await.expect_err(script);
        assert_eq!(fault.to_string(), why);
    }
}

const SAYS_TWO: &str = r#"printf '{"final":1}\n{"final":2}\n'; while read -r line; do :; done"#;

#[tokio::test]
async fn one_that_says_more_than_it_was_asked_is_found_out() {
    let Some(place) = Place::confining(SAYS_TWO).await else {
        return;
    };
    let [first, second, _] = place.briefings();
    let dialogue = place.meet();
    assert_eq!(said(dialogue.tell(first).await).as_deref(), Ok("1"));
    let fault = said(dialogue.tell(second).await).expect_err("it said two lines");
    assert_eq!(fault.to_string(), "it says more than one line for each that it is told");
}

#[tokio::test]
async fn one_that_is_not_there_is_named_with_its_folder() {
    let place = Place::new(&["./no-such-program"], Sandbox::Full);
    if unenforceable().is_some() {
        return;
    }
    let fault = place.first().await.expect_err("there is none").to_string();
    let named = fault.starts_with("./no-such-program in ") && fault.contains(" cannot be run: ");
    assert!(named, "{fault}");
}

#[tokio::test]
async fn a_controller_runs_beside_its_file_and_neither_writes_nor_sees_keys_whatever_the_team_may()
{
    let script = "echo x > there; echo x > $PWD/here; printf '{\"final\":\"%s [%s]\"}\\n' $(cat here) $MY_KEY";
    let Some(place) = Place::confining(script).await else { return };
    let here = place.folder.path().join("here");
    std::fs::write(&here, "kept").expect("it can be written");
    assert_eq!(place.first().await.as_deref(), Ok("kept []"));
    assert_eq!(std::fs::read_to_string(here).expect("it is there"), "kept");
    assert!(!place.folder.path().join("there").exists());
}

#[tokio::test]
async fn a_controller_reaches_no_server() {
    let server = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    server.set_nonblocking(true).expect("it can be told so");
    let port = server.local_addr().expect("it has one").port();
    let script =
        format!("git ls-remote git://127.0.0.1:{port}/x || echo '{{\"final\":\"refused\"}}'");
    let Some(place) = Place::confining(&script).await else { return };
    assert_eq!(place.first().await.as_deref(), Ok("refused"));
    assert!(server.accept().is_err());
}
