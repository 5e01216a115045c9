//! The tools of mail and boards (messaging.md, agents.md §6): an agent in a run uses them as itself.
//!
//! They work on the store that the run stands in. Each names the call that used it, so that one that is
//! carried out again after a crash does nothing twice.

use std::sync::Arc;

use folkmoot_core::{
    board::Post,
    call::{Answer, FailureKind, Fault, ToolCall, Usage},
    mail::{ATTEMPTS, Deliver, Draft, Party},
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{
    backend::Response,
    boards::{BoardError, Boards},
    engine::Engine,
    mail::{Mail, MailError, Which},
};

/// How many messages and entries are shown unless an agent says otherwise.
const SHOWN: (usize, usize) = (20, 100);

/// The mailboxes and boards that agents of runs use.
pub(crate) struct Desk {
    pub(crate) mail: Mail,
    boards: Boards,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Send {
    to: String,
    body: Arc<str>,
    subject: Option<Arc<str>>,
    #[serde(default)]
    refs: Vec<Arc<str>>,
    reply_to: Option<Arc<str>>,
    key: Option<Arc<str>>,
    #[serde(default)]
    after_current: bool,
    delay_s: Option<u64>,
    ttl_s: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Inbox {
    limit: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Read {
    id: Option<String>,
    lease_s: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ack {
    id: String,
    lease: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nack {
    id: String,
    lease: String,
    #[serde(default)]
    delay_s: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Show {
    board: String,
    #[serde(default)]
    after: u64,
    topic: Option<String>,
    limit: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    board: String,
    topic: Arc<str>,
    text: Arc<str>,
    #[serde(default)]
    refs: Vec<Arc<str>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Get {
    board: String,
    key: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Set {
    board: String,
    key: String,
    value: Value,
    expect: u64,
}

impl Desk {
    /// That of `owner`, in the store of `engine`.
    pub(crate) fn new(engine: &Engine, owner: &str) -> Desk {
        Desk { mail: Mail::new(engine, owner), boards: Boards::new(engine, owner) }
    }

    /// Uses a tool for `by`; what comes of it is JSON that the model reads.
    pub(crate) async fn call(&self, by: &Party, call: &ToolCall) -> Response {
        let outcome = self.used(by, call).await.map(|told| Answer::text(told.to_string()).into());
        Response { outcome, usage: Usage::default() }
    }

    async fn used(&self, by: &Party, call: &ToolCall) -> Result<Value, Fault> {
        let arguments = &call.arguments;
        match &*call.name {
            "mail.send" => self.send(by, parsed(arguments)?).await,
            "mail.inbox" => {
                let Inbox { limit } = parsed(arguments)?;
                let limit = limit.unwrap_or(SHOWN.0);
                let told = self.mail.inbox(&by.name, Which::default(), limit).await;
                Ok(json!(told.map_err(|it| of_mail(&it))?))
            }
            "mail.read" => {
                let Read { id, lease_s } = parsed(arguments)?;
                let reading =
                    self.mail.read(by, id.as_deref(), lease_s).await.map_err(|it| of_mail(&it))?;
                Ok(reading.map_or(Value::Null, |it| {
                    let (message, lease, attempt) = (it.message, it.lease, it.attempt);
                    json!({ "message": message, "lease": lease, "attempt": attempt })
                }))
            }
            "mail.ack" => {
                let Ack { id, lease } = parsed(arguments)?;
                self.mail.ack(&by.name, &id, &lease).await.map_err(|it| of_mail(&it))?;
                Ok(json!({ "state": "ACKNOWLEDGED" }))
            }
            "mail.nack" => {
                let Nack { id, lease, delay_s } = parsed(arguments)?;
                let state = self
                    .mail
                    .nack(&by.name, &id, &lease, delay_s)
                    .await
                    .map_err(|it| of_mail(&it))?;
                Ok(json!({ "state": state }))
            }
            "board.show" => {
                let Show { board, after, topic, limit } = parsed(arguments)?;
                let (topic, limit) = (topic.as_deref(), limit.unwrap_or(SHOWN.1));
                let delta = self.boards.show(&board, after, topic, limit).await;
                Ok(json!(delta.map_err(|it| of_board(&it))?))
            }
            "board.post" => {
                let Entry { board, topic, text, refs } = parsed(arguments)?;
                let seq = self.boards.post(by, &board, Post { topic, text, refs }).await;
                Ok(json!({ "seq": seq.map_err(|it| of_board(&it))? }))
            }
            "board.get" => {
                let Get { board, key } = parsed(arguments)?;
                let (version, cell) =
                    self.boards.get(&board, &key).await.map_err(|it| of_board(&it))?;
                Ok(json!({ "version": version, "cell": cell }))
            }
            "board.set" => {
                let Set { board, key, value, expect } = parsed(arguments)?;
                let value = match &value {
                    Value::String(text) => serde_json::from_str(text).unwrap_or(value),
                    _ => value,
                };
                let version = self.boards.set(by, &board, &key, &value, expect).await;
                Ok(json!({ "version": version.map_err(|it| of_board(&it))? }))
            }
            name => {
                let text = format!("not_found: there is no tool {name}");
                Err(Fault::failed(FailureKind::NotFound, text))
            }
        }
    }

    async fn send(&self, by: &Party, send: Send) -> Result<Value, Fault> {
        let Send { to, body, subject, refs, reply_to, key, after_current, delay_s, ttl_s } = send;
        let deliver = match (after_current, delay_s) {
            (false, None) => Deliver::Now,
            (true, None) => Deliver::AfterCurrent,
            (false, Some(delay_s)) => Deliver::DelayS(delay_s),
            (true, Some(_)) => {
                let text = "bad_value: after_current and delay_s exclude each other";
                return Err(Fault::failed(FailureKind::Other, text));
            }
        };
        let draft =
            Draft { body, subject, refs, reply_to, key, deliver, ttl_s, max_attempts: ATTEMPTS };
        Ok(json!(self.mail.send(by, &to, draft).await.map_err(|it| of_mail(&it))?))
    }
}

/// The arguments of a tool as it takes them.
fn parsed<T: DeserializeOwned>(arguments: &Value) -> Result<T, Fault> {
    let bad = |error| Fault::failed(FailureKind::Other, format!("bad_arguments: {error}"));
    T::deserialize(arguments).map_err(bad)
}

fn of_mail(error: &MailError) -> Fault {
    refused(error.code(), &error.to_string())
}

fn of_board(error: &BoardError) -> Fault {
    match error {
        BoardError::Refused(folkmoot_core::board::Refused::Conflict { value, .. }) => {
            refused(error.code(), &format!("{error}; it holds {value}"))
        }
        BoardError::Refused(_) | BoardError::BadName(_) | BoardError::Kept(_) => {
            refused(error.code(), &error.to_string())
        }
    }
}

fn refused(code: &str, why: &str) -> Fault {
    Fault::failed(FailureKind::Other, format!("{code}: {why}"))
}
