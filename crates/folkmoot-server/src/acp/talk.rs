//! One turn of a session: a run from its beginning, or from its question, to its end or next question.

use std::{path::Path, sync::Arc, time::Duration};

use agent_client_protocol::{
    Client, Error, ErrorCode,
    v1::{
        ConnectionTo,
        schema::{
            ContentBlock, ContentChunk, EmbeddedResourceResource, PermissionOption,
            PermissionOptionKind, PromptResponse, RequestPermissionOutcome,
            RequestPermissionRequest, SessionId, SessionNotification, SessionUpdate, StopReason,
            TextContent, ToolCallUpdate, ToolCallUpdateFields, Usage,
        },
    },
};
use folkmoot_core::refusal::Refusal;
use folkmoot_runtime::{driver::Observer, engine::RunId};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{Speaker, shown::Shown};
use crate::{
    hall::{Hall, Underway},
    standing::{Given, Standing},
};

/// How long a run is waited for: it has limits of its own.
const UNTIL_IT_ENDS: Duration = Duration::from_secs(u32::MAX as u64);

/// A turn under way.
pub(super) struct Talk<'a> {
    pub(super) speaker: &'a Speaker,
    pub(super) id: &'a SessionId,
    pub(super) client: &'a ConnectionTo<Client>,
    /// Cancelled with the turn.
    pub(super) turn: &'a CancellationToken,
}

/// What came of putting a question.
enum Asked {
    /// It was answered.
    Answered(Given),
    /// The next prompt answers it.
    Later,
    /// The turn is cancelled, and with it this run.
    Cancelled(String),
}

impl Talk<'_> {
    /// Runs the team on a task; `task` is `text` with what was said before.
    pub(super) async fn task(
        &self,
        text: &str,
        task: &str,
        folder: &Path,
    ) -> Result<PromptResponse, Error> {
        let hall = self.hall();
        let ready = (self.speaker.prepare)(task, folder).map_err(|it| error(&it))?;
        let begun = hall.begin_as(RunId::random(), ready).await.map_err(|it| error(&it))?;
        self.go_on(&hall, Standing::Underway(begun), text).await
    }

    /// Answers the question of a run, and goes on with it.
    pub(super) async fn answer(
        &self,
        (run, key): (RunId, Option<String>),
        text: &str,
    ) -> Result<PromptResponse, Error> {
        let hall = self.hall();
        let given = Given { run: run.to_string(), key, text: text.to_owned() };
        let next = hall.answer(&given).await.map_err(|it| error(&it))?;
        self.go_on(&hall, next, text).await
    }

    async fn go_on(
        &self,
        hall: &Hall,
        mut next: Standing,
        text: &str,
    ) -> Result<PromptResponse, Error> {
        loop {
            let record = match next {
                Standing::Underway(mut run) => self.end_of(&mut run).await?,
                Standing::Stands(record) => Arc::new(record),
            };
            let questions = record["open_questions"].as_array();
            let first = questions.and_then(|it| it.first());
            let Some(question) = first.filter(|_| record["status"] == "needs_input") else {
                return self.tell(text, &record);
            };
            let run = record["run_id"].as_str().unwrap_or_default();
            match self.ask(run, question).await? {
                Asked::Answered(given) => {
                    next = hall.answer(&given).await.map_err(|it| error(&it))?;
                }
                Asked::Later => {
                    self.speaker.session(self.id, |it| it.said.push(("user", text.to_owned())))?;
                    return Ok(PromptResponse::new(StopReason::EndTurn));
                }
                Asked::Cancelled(run) => {
                    hall.cancel(&run).await.map_err(|it| error(&it))?;
                    return Ok(PromptResponse::new(StopReason::Cancelled));
                }
            }
        }
    }

    /// The hall, in which this session is shown what happens.
    fn hall(&self) -> Hall {
        let (client, id) = (self.client.clone(), self.id.clone());
        self.speaker.hall.clone().followed(Arc::new(move |_| {
            let (client, id) = (client.clone(), id.clone());
            Arc::new(Shown::new(move |update| {
                // An editor that went away is shown nothing.
                let _ = client.send_notification(SessionNotification::new(id.clone(), update));
            })) as Arc<dyn Observer>
        }))
    }

    /// The record of a run, once it has ended or asks. If the turn is cancelled meanwhile, so is the run.
    async fn end_of(&self, run: &mut Underway) -> Result<Arc<Value>, Error> {
        let ended = tokio::select! {
            ended = run.ended(UNTIL_IT_ENDS) => ended,
            () = self.turn.cancelled() => {
                let cancelled = self.speaker.hall.cancel(run.id.as_str()).await;
                cancelled.map_err(|it| error(&it))?;
                run.ended(UNTIL_IT_ENDS).await
            }
        };
        ended.ok_or_else(Error::internal_error)?.map_err(|it| error(&it))
    }

    /// Puts a question: as a request for permission if it has a few possible answers.
    async fn ask(&self, run: &str, question: &Value) -> Result<Asked, Error> {
        let [key, role, text] =
            ["key", "role", "text"].map(|name| question[name].as_str().unwrap_or_default());
        let choices = question["choices"].as_array().into_iter().flatten();
        let choices: Vec<&str> = choices.filter_map(Value::as_str).collect();
        if choices.is_empty() {
            self.say(&format!("**{role}**\n\n{text}"))?;
            let asks = Some((RunId::parse(run), Some(key.to_owned())));
            self.speaker.session(self.id, |session| session.asks = asks)?;
            return Ok(Asked::Later);
        }
        let options = choices.iter().map(|choice| {
            let kind = match *choice {
                "stop" | "deny" => PermissionOptionKind::RejectOnce,
                _ => PermissionOptionKind::AllowOnce,
            };
            PermissionOption::new((*choice).to_owned(), (*choice).to_owned(), kind)
        });
        let content = ContentBlock::Text(TextContent::new(text));
        let fields = ToolCallUpdateFields::new().title(role.to_owned());
        let about = ToolCallUpdate::new(key.to_owned(), fields.content(vec![content.into()]));
        let request = RequestPermissionRequest::new(self.id.clone(), about, options.collect());
        let reply = tokio::select! {
            reply = self.client.send_request(request).block_task() => reply?,
            () = self.turn.cancelled() => return Ok(Asked::Cancelled(run.to_owned())),
        };
        let RequestPermissionOutcome::Selected(chosen) = reply.outcome else {
            return Ok(Asked::Cancelled(run.to_owned()));
        };
        let (run, key) = (run.to_owned(), Some(key.to_owned()));
        Ok(Asked::Answered(Given { run, key, text: chosen.option_id.0.to_string() }))
    }

    /// Says how a run ended.
    fn tell(&self, text: &str, record: &Value) -> Result<PromptResponse, Error> {
        let status = record["status"].as_str().unwrap_or_default();
        let answer = record["final"].as_str().or_else(|| record["partial"]["text"].as_str());
        if let Some(answer) = answer {
            self.say(answer)?;
            let said = [("user", text.to_owned()), ("assistant", answer.to_owned())];
            self.speaker.session(self.id, |session| session.said.extend(said))?;
        }
        if status != "done" {
            let reason = record["reason"].as_str().unwrap_or_default();
            let run = record["run_id"].as_str().unwrap_or_default();
            self.say(&format!("\n\n(run {run}: {status}, {reason})"))?;
        }
        let stop = match status {
            "cancelled" => StopReason::Cancelled,
            "budget_exhausted" => StopReason::MaxTokens,
            "bound_reached" => StopReason::MaxTurnRequests,
            _ => StopReason::EndTurn,
        };
        let total = &record["meta"]["usage"]["total"];
        let tokens = |name: &str| total[name].as_u64().unwrap_or_default();
        let (all, read) = (tokens("total_tokens"), tokens("prompt_tokens"));
        Ok(PromptResponse::new(stop).usage(Usage::new(all, read, tokens("completion_tokens"))))
    }

    fn say(&self, text: &str) -> Result<(), Error> {
        let content = ContentBlock::Text(TextContent::new(text));
        let update = SessionUpdate::AgentMessageChunk(ContentChunk::new(content));
        self.client.send_notification(SessionNotification::new(self.id.clone(), update))
    }
}

/// The words of a prompt: its texts, and what it points to or brings along.
pub(super) fn text(blocks: &[ContentBlock]) -> String {
    let texts = blocks.iter().filter_map(|block| match block {
        ContentBlock::Text(text) => Some(text.text.clone()),
        ContentBlock::ResourceLink(link) => Some(format!("[{}]({})", link.name, link.uri)),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            EmbeddedResourceResource::TextResourceContents(text) => {
                Some(format!("{}:\n{}", text.uri, text.text))
            }
            _ => None,
        },
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n\n")
}

/// A refusal as the protocol tells it.
fn error(refusal: &Refusal) -> Error {
    let help = refusal.help.iter().map(|help| format!(" ({help})"));
    let message = help.fold(refusal.message.clone(), |message, help| message + &help);
    Error::new(ErrorCode::INVALID_PARAMS, message).data(refusal.told())
}
