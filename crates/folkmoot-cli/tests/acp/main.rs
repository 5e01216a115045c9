//! A team as an agent, as editors meet it: the official SDK's client talks to the real program on its
//! standard input and output.

use std::{
    path::PathBuf,
    process::Stdio,
    sync::{Arc, Mutex},
    time::Duration,
};

use agent_client_protocol::{
    Agent, ByteStreams, Client, Error, on_receive_notification, on_receive_request,
    schema::ProtocolVersion,
    v1::{
        ConnectionTo,
        schema::{
            CancelNotification, ContentBlock, InitializeRequest, NewSessionRequest,
            PlanEntryStatus, PromptRequest, PromptResponse, RequestPermissionOutcome,
            RequestPermissionRequest, RequestPermissionResponse, SelectedPermissionOutcome,
            SessionId, SessionNotification, SessionUpdate, StopReason, TextContent, ToolCallStatus,
        },
    },
};
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command;
use tokio_util::compat::{TokioAsyncReadCompatExt, TokioAsyncWriteCompatExt};

/// A folder that an editor has open, with a team and a store of its own.
struct Place(TempDir);

/// What an editor was told.
#[derive(Clone, Default)]
struct Told {
    updates: Arc<Mutex<Vec<SessionUpdate>>>,
    questions: Arc<Mutex<Vec<RequestPermissionRequest>>>,
}

/// A session of an editor.
struct Session {
    agent: ConnectionTo<Agent>,
    id: SessionId,
    told: Told,
}

impl Place {
    fn with_team(team: &str) -> Place {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("team.yaml"), team).expect("it is written");
        Place(folder)
    }

    fn program(&self) -> Command {
        let mut command = Command::new(PathBuf::from(env!("CARGO_BIN_EXE_folkmoot")));
        command
            .current_dir(self.0.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.0.path().join("home"))
            .env("USER", "user")
            .env("FOLKMOOT_DB", self.0.path().join("runs.db"))
            .kill_on_drop(true);
        command
    }

    /// What a command prints with `--json`.
    async fn command(&self, arguments: &[&str]) -> Value {
        let output = self.program().args(arguments).arg("--json").output().await.expect("it ran");
        let text = String::from_utf8_lossy(&output.stdout);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {output:?}"))
    }

    /// Opens the folder in an editor that talks to the team, and lets `act` use it. Where it may choose,
    /// the person behind it takes `choice`.
    async fn edit<Acts>(&self, choice: &'static str, act: impl FnOnce(Session) -> Acts + Send)
    where
        Acts: Future<Output = Result<(), Error>> + Send,
    {
        let mut command = self.program();
        command.args(["acp", "team.yaml"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let (to, from) = (child.stdin.take().expect("in"), child.stdout.take().expect("out"));
        let pipes = ByteStreams::new(to.compat_write(), from.compat());
        let told = Told::default();
        let (shown, asked) = (told.clone(), told.clone());
        let folder = self.0.path().to_owned();
        let edited = Client
            .v1()
            .on_receive_notification(
                async move |told: SessionNotification, _| {
                    shown.updates.lock().expect("nobody panics").push(told.update);
                    Ok(())
                },
                on_receive_notification!(),
            )
            .on_receive_request(
                async move |question: RequestPermissionRequest, reply, _| {
                    asked.questions.lock().expect("nobody panics").push(question);
                    let chosen = SelectedPermissionOutcome::new(choice);
                    let chosen = RequestPermissionOutcome::Selected(chosen);
                    reply.respond(RequestPermissionResponse::new(chosen))
                },
                on_receive_request!(),
            )
            .connect_with(pipes, async move |agent: ConnectionTo<Agent>| {
                let hello = InitializeRequest::new(ProtocolVersion::V1);
                let met = agent.send_request(hello).block_task().await?;
                assert_eq!(met.agent_info.expect("it says who it is").name, "folkmoot");
                let begun = agent.send_request(NewSessionRequest::new(folder)).block_task().await?;
                act(Session { agent, id: begun.session_id, told }).await
            })
            .await;
        edited.expect("the protocol is kept");
        drop(child.kill().await);
    }
}

impl Session {
    async fn prompt(&self, text: &str) -> Result<PromptResponse, Error> {
        let text = ContentBlock::Text(TextContent::new(text));
        self.agent.send_request(PromptRequest::new(self.id.clone(), vec![text])).block_task().await
    }

    fn updates(&self) -> Vec<SessionUpdate> {
        self.told.updates.lock().expect("nobody panics").clone()
    }

    /// All that the team said aloud, and thought.
    fn texts(&self) -> (String, String) {
        let (mut said, mut thought) = (String::new(), String::new());
        for update in self.updates() {
            match update {
                SessionUpdate::AgentMessageChunk(chunk) => said += text(&chunk.content),
                SessionUpdate::AgentThoughtChunk(chunk) => thought += text(&chunk.content),
                _ => {}
            }
        }
        (said, thought)
    }
}

fn text(content: &ContentBlock) -> &str {
    match content {
        ContentBlock::Text(text) => &text.text,
        other => panic!("it is no text: {other:?}"),
    }
}

const ADVISERS: &str = "
agents:
  - { name: bold, script: { replies: [Do it., Do it now.] } }
  - { name: careful, script: { replies: [Wait., Wait a while.] } }
collaboration: { strategy: broadcast }
";

#[tokio::test]
async fn a_prompt_is_a_run_that_is_shown_as_it_goes() {
    let place = Place::with_team(ADVISERS);
    place
        .edit("", async |session| {
            let ended = session.prompt("Should we?").await?;
            assert_eq!(ended.stop_reason, StopReason::EndTurn);
            let (said, thought) = session.texts();
            assert!(said.contains("Do it.") && said.contains("Wait."), "{said}");
            assert!(thought.contains("**bold**\n\nDo it."), "{thought}");
            assert!(thought.contains("**careful**\n\nWait."), "{thought}");
            let plans = session.updates().into_iter().filter_map(|update| match update {
                SessionUpdate::Plan(plan) => Some(plan.entries),
                _ => None,
            });
            let last = plans.last().expect("a plan is shown");
            assert_eq!(last.len(), 2);
            assert!(last.iter().all(|turn| turn.status == PlanEntryStatus::Completed));
            // What was said before goes with the next prompt.
            session.prompt("And then?").await?;
            Ok(())
        })
        .await;
    let shown = place.command(&["show", "last"]).await;
    let task = shown["run"]["prompt"].as_str().expect("it has a task");
    assert!(task.contains("Should we?") && task.ends_with("And then?"), "{task}");
    assert_eq!(place.command(&["runs"]).await.as_array().map(Vec::len), Some(2));
}

#[tokio::test]
async fn tools_are_shown_with_what_they_gave_back() {
    let place = Place::with_team(
        "
agents:
  - name: reader
    grants: [file.read]
    script:
      replies:
        - { tool_calls: [{ name: file.read, arguments: { path: note.txt } }] }
        - read
collaboration: { strategy: sequential }
",
    );
    std::fs::write(place.0.path().join("note.txt"), "what stands there").expect("it is written");
    place
        .edit("", async |session| {
            session.prompt("Read it").await?;
            let updates = session.updates();
            let begun = updates.iter().find_map(|update| match update {
                SessionUpdate::ToolCall(begun) => Some(begun.title.clone()),
                _ => None,
            });
            assert_eq!(begun.as_deref(), Some("reader: file.read"));
            let ended = updates.iter().find_map(|update| match update {
                SessionUpdate::ToolCallUpdate(ended) => Some(ended.fields.clone()),
                _ => None,
            });
            let ended = ended.expect("it ends");
            assert_eq!(ended.status, Some(ToolCallStatus::Completed));
            assert!(format!("{:?}", ended.content).contains("what stands there"));
            Ok(())
        })
        .await;
}

#[tokio::test]
async fn a_question_ends_the_turn_and_the_next_prompt_answers_it() {
    let place = Place::with_team(
        "
agents:
  - { name: implementer, script: { replies: ['NEEDS_INPUT: Which port?', 'It listens at 80.'] } }
  - { name: reviewer, script: { replies: [CONVERGED] } }
  - { name: reviser, script: { replies: [x] } }
collaboration: { pattern: review }
",
    );
    place
        .edit("", async |session| {
            session.prompt("Write a server").await?;
            assert!(session.texts().0.contains("Which port?"), "{}", session.texts().0);
            session.prompt("80").await?;
            assert!(session.texts().0.contains("It listens at 80."), "{}", session.texts().0);
            Ok(())
        })
        .await;
    let runs = place.command(&["runs"]).await;
    assert_eq!((runs.as_array().map(Vec::len), &runs[0]["status"]), (Some(1), &"done".into()));
}

#[tokio::test]
async fn a_question_with_few_answers_is_a_request_for_permission() {
    let place = Place::with_team(
        "
agents:
  - { name: coder, script: { replies: [{ error: boom }, fixed] } }
  - { name: tester, script: { replies: [tested] } }
collaboration: { topology: pipeline, agents: [coder, tester], on_failure: ask }
",
    );
    place
        .edit("retry", async |session| {
            let ended = session.prompt("Fix it").await?;
            assert_eq!(ended.stop_reason, StopReason::EndTurn);
            let questions = session.told.questions.lock().expect("nobody panics").clone();
            let [question] = &questions[..] else { panic!("it asks once: {questions:?}") };
            let options: Vec<&str> = question.options.iter().map(|it| &*it.name).collect();
            assert_eq!(options, ["retry", "skip", "stop"]);
            assert!(session.texts().0.contains("tested"), "{}", session.texts().0);
            Ok(())
        })
        .await;
}

#[tokio::test]
async fn a_turn_that_is_cancelled_cancels_its_run() {
    let place = Place::with_team(
        "
agents: [{ name: slow, script: { replies: [{ delay_ms: 60000, reply: late }] } }]
collaboration: { strategy: sequential }
",
    );
    place
        .edit("", async |session| {
            let begun = session.updates().len();
            let cancel = async {
                while session.updates().len() == begun {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                session.agent.send_notification(CancelNotification::new(session.id.clone()))
            };
            let (ended, told) = tokio::join!(session.prompt("Take your time"), cancel);
            told?;
            assert_eq!(ended?.stop_reason, StopReason::Cancelled);
            Ok(())
        })
        .await;
    assert_eq!(place.command(&["runs"]).await[0]["status"], "cancelled");
}

#[tokio::test]
async fn a_team_that_is_wrong_is_told_before_an_editor_waits() {
    let place = Place::with_team("agents: 5\n");
    let output = place.program().args(["acp", "team.yaml"]).output().await.expect("it ran");
    assert_eq!((output.status.code(), &*output.stdout), (Some(2), &b""[..]));
    assert!(String::from_utf8_lossy(&output.stderr).contains("agents"), "{output:?}");
}
