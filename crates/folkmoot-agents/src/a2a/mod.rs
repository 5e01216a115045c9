//! Remote agents that are talked to in the Agent2Agent protocol (agents.md §2): a call sends one message,
//! and follows the task that comes of it to its end.
//!
//! Spoken is version 1 of the protocol, over JSON-RPC. What the remote side asks for in the middle of a
//! task is a question to a person; with the answer the same task goes on. Deliberately absent: push
//! notifications, which would need a door of ours.

mod line;
mod task;

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use ::a2a::{
    CancelTaskRequest, GetTaskRequest, Message, Part, Role, SendMessageConfiguration,
    SendMessageRequest, SendMessageResponse, StreamResponse, methods,
};
use folkmoot_core::{
    call::{Answer, FailureKind},
    render,
    team::A2a,
};
use folkmoot_runtime::backend::{OnDelta, Request, Response};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::sleep;

use self::{line::Line, task::Course};
use crate::{
    cli,
    http::Http,
    machine::{Done, Machine},
    parting,
    patience::Patience,
    reported::Reported,
    retry::Failure,
    usage::unreported,
};

/// How long to wait before a task is looked at again: at first, and at most.
const LOOKS: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(5));

/// How long the remote side is given to hear that nobody waits any longer.
const PARTING: Duration = Duration::from_secs(2);

/// What it takes to reach remote agents.
#[derive(Clone, Copy, Debug)]
pub(crate) struct World<'a> {
    pub(crate) http: &'a Http,
    pub(crate) patience: &'a Patience,
    pub(crate) machine: Machine<'a>,
}

/// Sends `a2a` what is asked, and follows its task to the end, as often as the agent's retries allow.
/// Whoever no longer waits cancels it.
pub(crate) async fn perform(
    a2a: &A2a,
    world: World<'_>,
    request: &Request,
    on_delta: OnDelta<'_>,
) -> Response {
    let thread = &Thread::of(&request.messages);
    let prompt = &cli::prompt(&request.messages[thread.from..]);
    let attempts = &AtomicU32::new(0);
    let attempt = || async move {
        let nth = attempts.fetch_add(1, Ordering::Relaxed);
        let named = |it: Failure| Failure { text: format!("{a2a}: {}", it.text), ..it };
        let (line, streams) = Line::open(a2a, world).await.map_err(named)?;
        let sent = message(request, nth, thread, prompt, line.tenant());
        let used = unreported(prompt.len(), 0);
        match follow(&line, streams, &sent, on_delta).await {
            Ok(answer) => Ok(Done { answer, used: Reported::default() }),
            Err(failure) => Err(Failure { usage: used, ..named(failure) }),
        }
    };
    world.machine.persist(a2a, request, prompt.len(), on_delta, attempt).await
}

async fn follow(
    line: &Line,
    streams: bool,
    sent: &SendMessageRequest,
    on_delta: OnDelta<'_>,
) -> Result<Answer, Failure> {
    let mut watched = Watched { line, course: Course::default() };
    let told = if streams {
        let mut taken = Ok(());
        let told = line.stream(methods::SEND_STREAMING_MESSAGE, sent, |event: StreamResponse| {
            taken = watched.course.take(event, on_delta);
            taken.is_ok()
        });
        let told = told.await;
        taken?;
        told
    } else {
        let told = match line.call(methods::SEND_MESSAGE, sent).await? {
            SendMessageResponse::Task(task) => StreamResponse::Task(task),
            SendMessageResponse::Message(message) => StreamResponse::Message(message),
        };
        watched.course.take(told, on_delta)
    };
    let lasts = |failure: &Failure| failure.kind == FailureKind::Protocol;
    match told {
        // Where a connection breaks, the task goes on; who breaks the protocol cannot be followed.
        Err(failure) if watched.course.task.is_none() || lasts(&failure) => Err(failure),
        Ok(()) | Err(_) => watched.end(on_delta).await,
    }
}

/// What is sent; a message has one name, however often it is delivered.
fn message(
    request: &Request,
    nth: u32,
    thread: &Thread,
    prompt: &str,
    tenant: Option<String>,
) -> SendMessageRequest {
    let name = format!("{}/{}/{}/{nth}", request.run, request.key, request.attempt);
    let message = Message {
        message_id: blake3::hash(name.as_bytes()).to_hex()[..32].to_owned(),
        context_id: thread.said.context.clone(),
        task_id: thread.said.task.clone(),
        ..Message::new(Role::User, vec![Part::text(prompt)])
    };
    let configuration = SendMessageConfiguration {
        accepted_output_modes: Some(vec!["text/plain".to_owned(), "application/json".to_owned()]),
        task_push_notification_config: None,
        history_length: Some(0),
        return_immediately: Some(true),
    };
    SendMessageRequest { message, configuration: Some(configuration), metadata: None, tenant }
}

/// A task under way. Where it is left before its end, the remote side is told to cancel it.
struct Watched<'a> {
    line: &'a Line,
    course: Course,
}

impl Watched<'_> {
    async fn end(&mut self, on_delta: OnDelta<'_>) -> Result<Answer, Failure> {
        let (mut wait, longest) = LOOKS;
        loop {
            if let Some(outcome) = self.course.outcome() {
                return outcome;
            }
            let Some(task) = self.course.task.clone() else {
                let text = "it neither answered nor told of a task";
                return Err(Failure::new(FailureKind::Protocol, text));
            };
            sleep(wait).await;
            wait = (wait * 2).min(longest);
            let look =
                GetTaskRequest { id: task, history_length: Some(0), tenant: self.line.tenant() };
            let task = self.line.call(methods::GET_TASK, &look).await?;
            self.course.take(StreamResponse::Task(task), on_delta)?;
        }
    }
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        let Some(id) = self.course.task.take().filter(|_| self.course.outcome().is_none()) else {
            return;
        };
        let line = self.line.clone();
        parting::follow(async move {
            let cancel = CancelTaskRequest { id, metadata: None, tenant: line.tenant() };
            let told = line.call::<Value>(methods::CANCEL_TASK, &cancel);
            let _ = tokio::time::timeout(PARTING, told).await;
        });
    }
}

/// What an earlier answer of the same agent tells of where it was given.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Said {
    /// What groups the messages of a conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    context: Option<String>,
    /// The task, if it waits for an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    task: Option<String>,
}

impl Said {
    fn stored(&self) -> Option<Value> {
        self.context.as_ref().or(self.task.as_ref()).map(|_| json!({ "a2a": self }))
    }
}

/// What a message goes on from, so that only what is new is sent.
struct Thread {
    said: Said,
    /// The first message that the remote side has not heard.
    from: usize,
}

impl Thread {
    fn of(messages: &[render::Message]) -> Thread {
        let said = |message: &render::Message| {
            Said::deserialize(message.provider.as_ref()?.get("a2a")?).ok()
        };
        let last = messages.iter().enumerate().rev().find_map(|(at, it)| Some((at, said(it)?)));
        match last {
            Some((at, said)) => Thread { said, from: at + 1 },
            None => Thread { said: Said::default(), from: 0 },
        }
    }
}
