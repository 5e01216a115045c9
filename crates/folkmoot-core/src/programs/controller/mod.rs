//! A program that is a process of its own (extensions.md §4).
//!
//! Each exchange with it is a call, so the log holds what it was told and what it said: nobody starts
//! it in a replay, nor in a resumed run before the recorded exchanges are used up.

mod briefing;
mod said;
mod wishes;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

pub use self::briefing::Briefing;
use self::{said::Said, wishes::Wishes};
use super::{Clocks, contributed, entry};
use crate::{
    call::{Answer, Call, FailureKind, Fault, Outcome, Reply, Told},
    diagnostic::quoted,
    event::{Ending, Text},
    key::Key,
    scope::{Program, Scope, Step},
    team::{Agent, AgentId, Script, Target},
    text::shorten,
    time::Duration,
    words::Language,
};

/// How long a controller may take for an answer.
pub const ANSWER_TIME: Duration = Duration::from_secs(30);

/// How much longer an exchange may take, for what starting and ending a process takes.
const GRACE: Duration = Duration::from_secs(15);

/// How many calls a run may take whose program is not built in, unless its limits say otherwise:
/// nothing else bounds it.
pub const USUAL_CALLS: u64 = 1024;

/// The id of a controller. No agent's id holds a blank.
const CONTROLLER: &str = "the controller";

/// The place of the exchanges; what a controller wants is called otherwise.
const EXCHANGES: &str = "controller";

/// How much of a command names its controller, in characters.
const NAME: usize = 80;

/// A process is asked what it wants.
///
/// 1. It is told what is known, and says which turns of agents it wants, all that it wants now.
/// 2. Those are wanted; what it no longer wants is withdrawn.
/// 3. As soon as something of it is known it is told so, and says again what it wants.
/// 4. The answer is its `final`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Controller {
    /// The program and its arguments; no shell reads them.
    pub command: Vec<Arc<str>>,
    /// Where it runs: the folder of the team file.
    pub folder: Arc<str>,
    /// Whom it can ask.
    pub agents: Vec<AgentId>,
    /// The clocks of each turn.
    pub clocks: Clocks,
}

impl Program for Controller {
    fn run(&self, cx: &Scope) -> Step<Ending> {
        let mut wishes = Wishes::new(self, cx);
        let (mut waiting, mut news) = (Vec::new(), Vec::new());
        let mut n = 0;
        loop {
            n += 1;
            let Ok(reply) = exchange(cx, n, &news) else { return cx.wait_for(waiting) };
            let said = reply.outcome.as_ref().map(|answer| Said::read(&answer.text));
            let wanted = match said {
                Ok(Ok(Said::Want(wanted))) => wishes.take(wanted, cx.moment()),
                Ok(Ok(Said::Final(answer))) => {
                    cx.record(|| round(n, &wishes, &news, &[]));
                    return Ok(completed(&answer));
                }
                Ok(Ok(Said::Error(why)) | Err(why)) => Err(why),
                // It stands among the errors of the run as the call that failed.
                Err(_) => return Ok(failed(&wishes)),
            };
            let wanted = match wanted {
                Ok(wanted) => wanted,
                Err(why) => return Ok(refused(cx, &wishes, &reply, &why)),
            };
            cx.record(|| round(n, &wishes, &news, &wanted));
            (news, waiting) = wishes.news(&wanted, &exchange_key(n + 1));
            if news.is_empty() && waiting.is_empty() {
                let why = "it wants nothing that it does not know, and gives no final";
                return Ok(refused(cx, &wishes, &reply, why));
            }
            if news.is_empty() {
                return cx.wait_for(waiting);
            }
        }
    }
}

/// Tells the controller what is new, if there is any or it is the first time.
fn exchange(cx: &Scope, n: u64, news: &[Told]) -> Step<Reply> {
    let call = Call::Exchange {
        agent: CONTROLLER.into(),
        after: (n > 1).then(|| exchange_key(n - 1)),
        told: news.to_vec(),
    };
    cx.at(EXCHANGES).each_within(Some(ANSWER_TIME + GRACE)).call(&n.to_string(), call)
}

fn exchange_key(n: u64) -> Key {
    Key::parse(&format!("{EXCHANGES}/{n}"))
}

/// The number of an exchange by its key.
fn number(key: &Key) -> Option<u64> {
    key.as_str().strip_prefix(EXCHANGES)?.strip_prefix('/')?.parse().ok()
}

fn completed(answer: &str) -> Ending {
    Ending { answer: Some(Text::Literal(answer.into())), ..Ending::done("completed", Vec::new()) }
}

fn failed(wishes: &Wishes) -> Ending {
    Ending::failed("error", contributed(wishes.replies()))
}

/// What it said cannot be followed.
fn refused(cx: &Scope, wishes: &Wishes, reply: &Reply, why: &str) -> Ending {
    let fault = Fault::failed(FailureKind::Protocol, why);
    cx.tell(|account| account.faults.push((reply.key.clone(), reply.agent.clone(), fault)));
    failed(wishes)
}

/// The record of an exchange: what it was told, and what it wants.
fn round(n: u64, wishes: &Wishes, news: &[Told], wanted: &[Key]) -> Value {
    let told = news.iter().filter_map(|told| wishes.reply(&told.key));
    let responses: Map<String, Value> =
        news.iter().map(|told| told.key.to_string()).zip(told.map(entry)).collect();
    json!({ "round": n, "kind": EXCHANGES, "responses": responses, "wants": wanted })
}

impl Controller {
    /// Who stands for it in a team: it is asked in exchanges alone, never as a model is.
    pub fn staff(&self) -> Agent {
        let name = shorten(&self.command.join(" "), NAME, Language::English).into_owned();
        let description = Some(self.command.join(" ").into());
        let target = Target::Script(Script::default());
        Agent { id: CONTROLLER.into(), description, ..Agent::new(&name, target) }
    }

    /// What came of an exchange in which the controller said this: that it cannot go on is a fault, and
    /// so is what nobody can read.
    pub fn outcome(line: &str) -> Outcome {
        match Said::read(line) {
            Ok(Said::Error(why)) => Err(Fault::failed(FailureKind::Harness, why)),
            Err(why) => {
                let text = format!("{why}; it says {}", quoted(line));
                Err(Fault::failed(FailureKind::Protocol, text))
            }
            Ok(Said::Want(_) | Said::Final(_)) => Ok(Answer::text(line).into()),
        }
    }
}

#[cfg(test)]
mod tests;
