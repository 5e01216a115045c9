//! A team as an agent of the Agent Client Protocol, so that editors can talk to it.
//!
//! Each prompt of a session is a run, and what was said before in the session goes with it. A question
//! with a few possible answers becomes a request for permission; any other one ends the turn, and the
//! next prompt answers it. If the editor goes away, its runs are let go of: they can be resumed.

mod shown;
mod talk;

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use agent_client_protocol::{
    Agent, Client, ConnectTo, Error, on_receive_notification, on_receive_request,
    schema::ProtocolVersion,
    v1::{
        ConnectionTo,
        schema::{
            AgentCapabilities, CancelNotification, Implementation, InitializeRequest,
            InitializeResponse, NewSessionRequest, NewSessionResponse, PromptCapabilities,
            PromptRequest, PromptResponse, SessionId,
        },
    },
};
use folkmoot_core::refusal::Refusal;
use folkmoot_runtime::engine::RunId;
use tokio_util::sync::CancellationToken;

use self::talk::Talk;
use crate::{conversation, hall::Hall, office::Ready};

/// Makes of a task what is to be run in a folder.
pub type Prepare = Arc<dyn Fn(&str, &Path) -> Result<Ready, Refusal> + Send + Sync>;

/// A team that an editor talks to.
#[derive(Clone)]
struct Speaker {
    hall: Hall,
    prepare: Prepare,
    sessions: Arc<Mutex<HashMap<SessionId, Session>>>,
}

/// One conversation.
struct Session {
    folder: PathBuf,
    /// What was said so far, by role.
    said: Vec<(&'static str, String)>,
    /// The run that waits for an answer, and to which question.
    asks: Option<(RunId, Option<String>)>,
    /// Cancels the turn under way.
    turn: Option<CancellationToken>,
}

/// Lets a team be talked to over `transport` until the other side goes away.
pub async fn serve(
    hall: Hall,
    prepare: Prepare,
    transport: impl ConnectTo<Agent> + 'static,
) -> Result<(), Error> {
    let speaker = Speaker { hall: hall.clone(), prepare, sessions: Arc::default() };
    let (begun, prompted, cancelled) = (speaker.clone(), speaker.clone(), speaker);
    let served = Agent
        .v1()
        .name("folkmoot")
        .on_receive_request(
            async move |_: InitializeRequest, reply, _| {
                let can = PromptCapabilities::new().embedded_context(true);
                let can = AgentCapabilities::new().prompt_capabilities(can);
                let info = Implementation::new("folkmoot", env!("CARGO_PKG_VERSION"));
                let hello = InitializeResponse::new(ProtocolVersion::V1).agent_info(info);
                reply.respond(hello.agent_capabilities(can))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |asked: NewSessionRequest, reply, _| {
                reply.respond_with_result(begun.begin(asked))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |asked: PromptRequest, reply, cx: ConnectionTo<Client>| {
                let (speaker, client) = (prompted.clone(), cx.clone());
                cx.spawn(async move {
                    let told = speaker.turn(asked, client).await;
                    reply.respond_with_result(told)
                })
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async move |told: CancelNotification, _| {
                let turn = cancelled.session(&told.session_id, |session| session.turn.clone());
                // A session that is not there has nothing to cancel.
                turn.into_iter().flatten().for_each(|turn| turn.cancel());
                Ok(())
            },
            on_receive_notification!(),
        )
        .connect_to(transport)
        .await;
    hall.close(Duration::ZERO).await;
    served
}

impl Speaker {
    fn begin(&self, asked: NewSessionRequest) -> Result<NewSessionResponse, Error> {
        if !asked.cwd.is_absolute() {
            return Err(Error::invalid_params().data("cwd is no absolute path"));
        }
        let id = SessionId::new(RunId::random().as_str());
        let session = Session { folder: asked.cwd, said: Vec::new(), asks: None, turn: None };
        self.sessions().insert(id.clone(), session);
        Ok(NewSessionResponse::new(id))
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Session>> {
        // Every change is a single step, so a panic elsewhere leaves them whole.
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks into a session, or changes it.
    fn session<T>(&self, id: &SessionId, look: impl FnOnce(&mut Session) -> T) -> Result<T, Error> {
        let mut sessions = self.sessions();
        let unknown = || Error::invalid_params().data(format!("there is no session {id}"));
        sessions.get_mut(id).map(look).ok_or_else(unknown)
    }

    /// One turn: a run, or the answer to one that asks.
    async fn turn(
        &self,
        asked: PromptRequest,
        client: ConnectionTo<Client>,
    ) -> Result<PromptResponse, Error> {
        let (id, text) = (asked.session_id, talk::text(&asked.prompt));
        let turn = CancellationToken::new();
        let (asks, task, folder) = self.session(&id, |session| {
            if session.turn.is_some() {
                let message = "a turn of this session is under way";
                return Err(Error::invalid_request().data(message));
            }
            session.turn = Some(turn.clone());
            let earlier = session.said.iter().map(|(role, text)| (*role, &**text));
            let task = conversation::task(&text, earlier);
            Ok((session.asks.take(), task, session.folder.clone()))
        })??;
        let talk = Talk { speaker: self, id: &id, client: &client, turn: &turn };
        let told = match asks {
            Some(asks) => talk.answer(asks, &text).await,
            None => talk.task(&text, &task, &folder).await,
        };
        self.session(&id, |session| session.turn = None)?;
        told
    }
}
