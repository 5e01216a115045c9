//! An agent that does in its turn what a test tells it to, at the other end of a pipe.

use std::{io, path::PathBuf, sync::Arc};

use agent_client_protocol::{
    Agent as Side, Client, Error, Lines, on_receive_notification, on_receive_request,
    schema::ProtocolVersion,
    v1::{
        ConnectionTo,
        schema::{
            AuthMethod, AuthMethodAgent, CancelNotification, ClientCapabilities, ContentChunk,
            CreateTerminalRequest, Implementation, InitializeRequest, InitializeResponse,
            NewSessionRequest, NewSessionResponse, PermissionOption, PermissionOptionKind,
            PromptRequest, PromptResponse, ReadTextFileRequest, RequestPermissionOutcome,
            RequestPermissionRequest, SessionId, SessionNotification, SessionUpdate, ToolCall,
            ToolCallUpdate, ToolCallUpdateFields, ToolKind, WriteTextFileRequest,
        },
    },
};
use folkmoot_core::{
    call::Answer,
    team::{Agent, Sandbox, Target},
};
use futures_util::{Sink, Stream, future::BoxFuture, sink, stream};
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{
    acp::{
        desk::Desk,
        rights::Rights,
        talk::{self, Said, Silence},
        terminals::Terminals,
    },
    tools::Handed,
};

/// What a scripted agent does in its turn.
type Act = Arc<dyn Fn(Stage) -> BoxFuture<'static, Result<PromptResponse, Error>> + Send + Sync>;

/// A turn with a scripted agent: how it is met, and what it does.
pub(super) struct Scene {
    pub(super) folder: TempDir,
    pub(super) grants: Vec<&'static str>,
    pub(super) level: Sandbox,
    pub(super) is_logged_in: bool,
    pub(super) left: CancellationToken,
}

/// Where a scripted agent acts.
#[derive(Clone)]
pub(super) struct Stage {
    pub(super) cx: ConnectionTo<Client>,
    pub(super) session: SessionId,
    pub(super) folder: PathBuf,
    pub(super) prompt: String,
    pub(super) can: ClientCapabilities,
    /// Once its turn is cancelled.
    pub(super) cancelled: CancellationToken,
}

impl Scene {
    pub(super) fn new(grants: &[&'static str]) -> Scene {
        Scene {
            folder: tempfile::tempdir().expect("a folder can be made"),
            grants: grants.to_vec(),
            level: Sandbox::Full,
            is_logged_in: true,
            left: CancellationToken::new(),
        }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Has a turn with an agent that acts so.
    pub(super) async fn play<F, Acts>(&self, act: F) -> (Result<Said, Silence>, Answer)
    where
        F: Fn(Stage) -> Acts + Send + Sync + 'static,
        Acts: Future<Output = Result<PromptResponse, Error>> + Send + 'static,
    {
        let act: Act = Arc::new(move |stage| Box::pin(act(stage)));
        let ((to_agent, from_us), (to_us, from_agent)) = (pipe(), pipe());
        let agent = tokio::spawn(self.agent(act, Lines::new(to_us, from_us)));
        let grants = self.grants.iter().map(|grant| (*grant).into()).collect();
        let agent_of_ours = Agent { grants, ..Agent::new("a", Target::Demo) };
        let rights = Rights { agent: Arc::new(agent_of_ours), level: self.level };
        let files = Handed::new(self.folder.path(), &[self.path("runs.db")]);
        let path = std::env::var("PATH").unwrap_or_default();
        let environment = [("PATH".to_owned(), path)].into();
        let terminals = Terminals::new(self.folder.path().into(), environment, self.level);
        let desk = Arc::new(Desk::new(rights, files, terminals));
        let (tell, mut told) = mpsc::channel(1);
        let shown = tokio::spawn(async move { while told.recv().await.is_some() {} });
        let pipes = (to_agent, from_agent);
        let prompt = "做吧。".to_owned();
        let folder = self.folder.path();
        let said = talk::turn(pipes, desk.clone(), tell, folder, prompt, &self.left).await;
        agent.abort();
        let _ = shown.await;
        (said, desk.answer(0).unwrap_or_default())
    }

    fn agent<O, I>(&self, act: Act, pipes: Lines<O, I>) -> impl Future<Output = ()> + use<O, I>
    where
        O: Sink<String, Error = io::Error> + Send + 'static,
        I: Stream<Item = io::Result<String>> + Send + 'static,
    {
        let folder = self.folder.path().to_owned();
        let is_logged_in = self.is_logged_in;
        let cancelled = CancellationToken::new();
        let can = Arc::new(std::sync::Mutex::new(ClientCapabilities::default()));
        let can_now = can.clone();
        let end = cancelled.clone();
        let agent = Side
            .v1()
            .on_receive_request(
                async move |asked: InitializeRequest, reply, _| {
                    *can.lock().expect("nothing panics in it") = asked.client_capabilities;
                    let way = AuthMethod::Agent(AuthMethodAgent::new("key", "An API key"));
                    let hello = InitializeResponse::new(ProtocolVersion::V1);
                    let info = Implementation::new("scripted", "7.1");
                    reply.respond(hello.agent_info(info).auth_methods(vec![way]))
                },
                on_receive_request!(),
            )
            .on_receive_request(
                async move |_: NewSessionRequest, reply, _| {
                    if is_logged_in {
                        reply.respond(NewSessionResponse::new("s-1"))
                    } else {
                        reply.respond_with_error(Error::auth_required())
                    }
                },
                on_receive_request!(),
            )
            .on_receive_notification(
                async move |_: CancelNotification, _| {
                    end.cancel();
                    Ok(())
                },
                on_receive_notification!(),
            )
            .on_receive_request(
                async move |asked: PromptRequest, reply, cx: ConnectionTo<Client>| {
                    let prompt = format!("{:?}", asked.prompt);
                    let can = can_now.lock().expect("nothing panics in it").clone();
                    let (cancelled, folder) = (cancelled.clone(), folder.clone());
                    let session = asked.session_id;
                    let stage = Stage { cx: cx.clone(), session, folder, prompt, can, cancelled };
                    let acting = act(stage);
                    cx.spawn(async move { reply.respond_with_result(acting.await) })
                },
                on_receive_request!(),
            );
        async move {
            let _ = agent.connect_to(pipes).await;
        }
    }
}

impl Stage {
    fn tell(&self, update: SessionUpdate) {
        let told = SessionNotification::new(self.session.clone(), update);
        self.cx.send_notification(told).expect("the pipe is open");
    }

    pub(super) fn say(&self, text: &str) {
        self.tell(SessionUpdate::AgentMessageChunk(ContentChunk::new(text.into())));
    }

    pub(super) fn think(&self, text: &str) {
        self.tell(SessionUpdate::AgentThoughtChunk(ContentChunk::new(text.into())));
    }

    pub(super) fn uses(&self, id: &'static str, kind: ToolKind) {
        self.tell(SessionUpdate::ToolCall(ToolCall::new(id, format!("uses {id}")).kind(kind)));
    }

    /// Asks leave for a tool call; gives what was chosen.
    pub(super) async fn asks(&self, id: &'static str) -> String {
        use PermissionOptionKind::{AllowAlways, AllowOnce, RejectOnce};
        let option = |kind| PermissionOption::new(format!("{kind:?}"), "x", kind);
        let options = [AllowAlways, AllowOnce, RejectOnce].map(option).to_vec();
        let call = ToolCallUpdate::new(id, ToolCallUpdateFields::new());
        let asked = RequestPermissionRequest::new(self.session.clone(), call, options);
        match self.cx.send_request(asked).block_task().await.expect("it is answered").outcome {
            RequestPermissionOutcome::Selected(chosen) => chosen.option_id.to_string(),
            _ => "cancelled".to_owned(),
        }
    }

    pub(super) async fn reads(&self, path: &str) -> Result<String, Error> {
        let asked = ReadTextFileRequest::new(self.session.clone(), self.folder.join(path));
        Ok(self.cx.send_request(asked).block_task().await?.content)
    }

    pub(super) async fn writes(&self, path: &str, text: &str) -> Result<(), Error> {
        let path = self.folder.join(path);
        let asked = WriteTextFileRequest::new(self.session.clone(), path, text);
        self.cx.send_request(asked).block_task().await.map(|_| ())
    }

    pub(super) fn runs(&self, line: &str) -> CreateTerminalRequest {
        let arguments = vec!["-c".to_owned(), line.to_owned()];
        CreateTerminalRequest::new(self.session.clone(), "sh").args(arguments)
    }
}

/// A pipe of lines.
fn pipe() -> (
    impl Sink<String, Error = io::Error> + Send + 'static,
    impl Stream<Item = io::Result<String>> + Send + 'static,
) {
    let (into, out) = mpsc::unbounded_channel();
    let into = sink::unfold(into, |into: mpsc::UnboundedSender<String>, line| async move {
        let _ = into.send(line);
        Ok(into)
    });
    let out = stream::unfold(out, |mut out: mpsc::UnboundedReceiver<String>| async move {
        out.recv().await.map(|line| (Ok(line), out))
    });
    (into, out)
}
