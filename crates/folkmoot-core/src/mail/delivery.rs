//! A message as it comes to an agent in a run (messaging.md §2).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Reading;
use crate::{text::shorten, words::Language};

/// How many messages come to a call at the most.
pub const AT_ONCE: usize = 20;

/// How many bytes of text they have together at the most; of a longer message the middle is left out.
pub const MAX_DELIVERY: usize = 32 << 10;

/// How many bytes its references have together at the most; those behind are left out.
const MAX_REFS: usize = 4 << 10;

/// A message as it stands in the log of a run: what its agent is told of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// The message.
    pub id: Arc<str>,
    /// Who wrote it.
    pub from: Arc<str>,
    /// What it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Arc<str>>,
    /// What it says.
    pub body: Arc<str>,
    /// The size of what it says in bytes, if that was too long to be told whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<u64>,
    /// What it refers to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refs: Vec<Arc<str>>,
    /// The message that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<Arc<str>>,
    /// When it was sent, in microseconds since 1970.
    pub sent_at: u64,
    /// How often it was delivered, this time included.
    pub attempt: u32,
    /// Whether the phase it waited for never came.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub phase_missed: bool,
}

impl Delivery {
    /// What is told of a message that was lent.
    pub fn of(reading: &Reading) -> Delivery {
        let Reading { message, attempt, phase_missed, .. } = reading;
        let mut size = 0;
        let fits = |it: &&Arc<str>| {
            size += it.len();
            size <= MAX_REFS
        };
        let refs = message.draft.refs.iter().take_while(fits).cloned().collect();
        let mut told = Delivery {
            id: message.id.clone(),
            from: message.from.clone(),
            subject: message.draft.subject.clone(),
            body: message.draft.body.clone(),
            whole: None,
            refs,
            reply_to: message.draft.reply_to.clone(),
            sent_at: message.sent_at,
            attempt: *attempt,
            phase_missed: *phase_missed,
        };
        let beside = told.bytes() - told.body.len();
        let room = MAX_DELIVERY.saturating_sub(beside);
        if told.body.len() > room {
            told.whole = Some(told.body.len() as u64);
            told.body = cut(&told.body, room).into();
        }
        told
    }

    /// The size of its texts.
    pub fn bytes(&self) -> usize {
        let own = [&self.id, &self.from, &self.body].into_iter();
        let texts = own.chain(&self.subject).chain(&self.reply_to).chain(&self.refs);
        texts.map(|text| text.len()).sum()
    }
}

/// Both ends of a text in at most `room` bytes.
fn cut(text: &str, room: usize) -> String {
    let mut most = text.chars().count() * room / text.len();
    loop {
        let short = shorten(text, most, Language::of(text));
        if short.len() <= room {
            return short.into_owned();
        }
        most = most * 9 / 10;
    }
}
