//! What has become of a task, as far as it was told.

use ::a2a::{
    Artifact, Message, Part, PartContent, StreamResponse, Task, TaskArtifactUpdateEvent, TaskState,
    TaskStatus,
};
use folkmoot_core::call::{Answer, FailureKind};
use folkmoot_runtime::backend::{Delta, OnDelta};

use super::{Said, line::LONGEST_REPLY};
use crate::retry::Failure;

/// What a piece costs beside its text, in bytes.
const PIECE: usize = 64;

/// A fold of what the remote side tells of a task.
#[derive(Debug, Default)]
pub(super) struct Course {
    /// The task, once there is one.
    pub(super) task: Option<String>,
    context: Option<String>,
    state: TaskState,
    /// What was said with the state.
    said: Option<String>,
    /// What it made, by its id, in the order of coming.
    made: Vec<(String, String)>,
    /// The answer of an agent that made no task of it.
    answered: Option<String>,
}

impl Course {
    /// Takes what was told, and shows what is new in it. That it is about another task, or more than a
    /// reply may have, is a failure.
    pub(super) fn take(
        &mut self,
        told: StreamResponse,
        on_delta: OnDelta<'_>,
    ) -> Result<(), Failure> {
        let of = match &told {
            StreamResponse::Task(task) => Some(&task.id),
            StreamResponse::Message(message) => message.task_id.as_ref(),
            StreamResponse::StatusUpdate(update) => Some(&update.task_id),
            StreamResponse::ArtifactUpdate(update) => Some(&update.task_id),
        };
        if let (Some(task), Some(of)) = (&self.task, of)
            && task != of
        {
            let text = format!("it told of task {of:?} where {task:?} was asked for");
            return Err(Failure::new(FailureKind::Protocol, text));
        }
        match told {
            StreamResponse::Task(task) => self.take_task(task),
            StreamResponse::Message(message) => {
                let text = text_of(&message.parts);
                on_delta(Delta::Text(&text));
                self.context = message.context_id;
                self.answered = Some(text);
            }
            StreamResponse::StatusUpdate(update) => {
                self.task = Some(update.task_id);
                self.context = Some(update.context_id);
                self.take_status(update.status);
            }
            StreamResponse::ArtifactUpdate(update) => {
                self.task = Some(update.task_id.clone());
                self.context = Some(update.context_id.clone());
                self.take_artifact(&update, on_delta);
            }
        }
        let made: usize = self.made.iter().map(|(id, text)| id.len() + text.len() + PIECE).sum();
        if made > LONGEST_REPLY {
            let text = format!("what it made is larger than {LONGEST_REPLY} bytes");
            return Err(Failure::new(FailureKind::Protocol, text));
        }
        Ok(())
    }

    fn take_task(&mut self, task: Task) {
        (self.task, self.context) = (Some(task.id), Some(task.context_id));
        let made = |it: &Artifact| (it.artifact_id.clone(), text_of(&it.parts));
        self.made = task.artifacts.iter().flatten().map(made).collect();
        self.take_status(task.status);
    }

    fn take_status(&mut self, status: TaskStatus) {
        self.state = status.state;
        self.said = status.message.as_ref().map(|message: &Message| text_of(&message.parts));
    }

    fn take_artifact(&mut self, update: &TaskArtifactUpdateEvent, on_delta: OnDelta<'_>) {
        let text = text_of(&update.artifact.parts);
        on_delta(Delta::Text(&text));
        let id = &update.artifact.artifact_id;
        match self.made.iter_mut().find(|(it, _)| it == id) {
            Some((_, made)) if update.append == Some(true) => made.push_str(&text),
            Some((_, made)) => *made = text,
            None => self.made.push((id.clone(), text)),
        }
    }

    /// What came of it, once it is over or waits for somebody.
    pub(super) fn outcome(&self) -> Option<Result<Answer, Failure>> {
        let said = self.said.as_deref().filter(|it| !it.trim().is_empty());
        let failed = |kind, why: &str| {
            let text = said.map_or_else(|| why.to_owned(), |said| format!("{why}: {said}"));
            Some(Err(Failure::new(kind, text)))
        };
        let here = |task: Option<String>| Said { context: self.context.clone(), task }.stored();
        if let Some(text) = &self.answered {
            return Some(Ok(Answer { provider: here(None), ..Answer::text(text.as_str()) }));
        }
        match self.state {
            TaskState::Completed => {
                let made: Vec<&str> = self.made.iter().map(|(_, text)| &**text).collect();
                let made = Some(made.join("\n\n")).filter(|made| !made.trim().is_empty());
                let text = made.unwrap_or_else(|| said.unwrap_or_default().to_owned());
                if text.trim().is_empty() {
                    return failed(
                        FailureKind::Incomplete,
                        "its task was completed without a text",
                    );
                }
                Some(Ok(Answer { provider: here(None), ..Answer::text(text) }))
            }
            TaskState::InputRequired => {
                let question = said.unwrap_or("It asks for more, and does not say what.");
                let (asks, provider) = (true, here(self.task.clone()));
                Some(Ok(Answer { asks, provider, ..Answer::text(question) }))
            }
            TaskState::AuthRequired => failed(FailureKind::Auth, "it asks for a sign-in"),
            TaskState::Failed => failed(FailureKind::Harness, "its task failed"),
            TaskState::Rejected => failed(FailureKind::Harness, "it refused the task"),
            TaskState::Canceled => failed(FailureKind::Harness, "its task was cancelled there"),
            TaskState::Submitted | TaskState::Working | TaskState::Unspecified => None,
        }
    }
}

/// The text of parts; of a structure its compact JSON, of what else there is, what it is.
fn text_of(parts: &[Part]) -> String {
    let text = |part: &Part| match &part.content {
        PartContent::Text(text) => text.clone(),
        PartContent::Data(value) => value.to_string(),
        PartContent::Url(url) => url.clone(),
        PartContent::Raw(bytes) => {
            let name = part.filename.as_deref().unwrap_or("a file");
            let kind = part.media_type.as_deref().unwrap_or("unknown type");
            format!("[{name}, {kind}, {} bytes, left out]", bytes.len())
        }
    };
    parts.iter().map(text).collect::<Vec<_>>().join("\n")
}
