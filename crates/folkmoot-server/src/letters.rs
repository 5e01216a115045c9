//! Mail and boards for whoever asks by a protocol (messaging.md §§1, 3).

use std::sync::Arc;

use folkmoot_core::{
    board::Post,
    mail::{ATTEMPTS, Deliver, Draft, Party},
    refusal::Refusal,
};
use folkmoot_runtime::{
    boards::Boards,
    mail::{Mail, Which},
    told,
};
use serde_json::{Map, Value, json};

use crate::{fields::Fields, hall::Hall};

/// How many messages or entries are told unless that is said.
const USUAL: u64 = 20;

/// All fields of the actions of mail.
const MAIL: [&str; 16] = [
    "action",
    "to",
    "body",
    "subject",
    "refs",
    "reply_to",
    "key",
    "deliver",
    "ttl_s",
    "max_attempts",
    "future",
    "all",
    "limit",
    "id",
    "lease_s",
    "lease",
];

impl Hall {
    /// Carries out an action of mail for `me`.
    pub async fn mail(&self, me: &str, given: &Map<String, Value>) -> Result<Value, Refusal> {
        let mail = Mail::new(self.office().engine(), self.office().owner());
        let known: Vec<&str> = MAIL.into_iter().chain(["delay_s"]).collect();
        let mut fields = Fields::new(given, &known);
        let action = fields.needed("action");
        let by = Party { name: me.into(), ..Party::default() };
        match action.as_str() {
            "send" => {
                let to = fields.needed("to");
                let draft = draft(&mut fields);
                fields.judged()?;
                Ok(json!(mail.send(&by, &to, draft).await?))
            }
            "inbox" => {
                let which = Which { future: fields.flag("future"), all: fields.flag("all") };
                let limit = fields.number("limit").unwrap_or(USUAL);
                fields.judged()?;
                let headers = mail.inbox(me, which, limit as usize).await?;
                Ok(json!({ "messages": headers.iter().map(told::header).collect::<Vec<_>>() }))
            }
            "read" => {
                let (id, lease_s) = (fields.text("id"), fields.number("lease_s"));
                fields.judged()?;
                let reading = mail.read(&by, id.as_deref(), lease_s).await?;
                Ok(reading.map_or_else(|| json!({ "message": null }), |it| told::reading(&it)))
            }
            "ack" => {
                let (id, lease) = (fields.needed("id"), fields.needed("lease"));
                fields.judged()?;
                mail.ack(me, &id, &lease).await?;
                Ok(json!({ "id": id, "state": "ACKNOWLEDGED" }))
            }
            "nack" => {
                let (id, lease) = (fields.needed("id"), fields.needed("lease"));
                let delay_s = fields.number("delay_s").unwrap_or_default();
                fields.judged()?;
                let state = mail.nack(me, &id, &lease, delay_s).await?;
                Ok(json!({ "id": id, "state": state }))
            }
            other => {
                fields.wrong_action(other, &["send", "inbox", "read", "ack", "nack"]);
                fields.judged()?;
                Ok(Value::Null)
            }
        }
    }

    /// Carries out an action of boards for `me`.
    pub async fn board(&self, me: &str, given: &Map<String, Value>) -> Result<Value, Refusal> {
        let boards = Boards::new(self.office().engine(), self.office().owner());
        let known = [
            "action", "board", "topic", "text", "refs", "key", "value", "expect", "after", "limit",
        ];
        let mut fields = Fields::new(given, &known);
        let (action, board) = (fields.needed("action"), fields.needed("board"));
        let by = Party { name: me.into(), ..Party::default() };
        match action.as_str() {
            "show" => {
                let after = fields.number("after").unwrap_or_default();
                let (topic, limit) = (fields.text("topic"), fields.number("limit"));
                fields.judged()?;
                let limit = limit.unwrap_or(USUAL) as usize;
                Ok(told::delta(&boards.show(&board, after, topic.as_deref(), limit).await?))
            }
            "post" => {
                let (topic, text) = (fields.needed("topic"), fields.needed("text"));
                let refs = fields.texts("refs").into_iter().map(Into::into).collect();
                fields.judged()?;
                let post = Post { topic: topic.into(), text: text.into(), refs };
                Ok(json!({ "seq": boards.post(&by, &board, post).await? }))
            }
            "get" => {
                let key = fields.needed("key");
                fields.judged()?;
                let (version, cell) = boards.get(&board, &key).await?;
                Ok(json!({ "version": version, "cell": cell }))
            }
            "set" => {
                let (key, expect) = (fields.needed("key"), fields.number("expect"));
                if expect.is_none() {
                    fields
                        .wrong("missing_field", "expect is missing: the version seen, 0 for none");
                }
                let value = given.get("value").cloned().unwrap_or_default();
                fields.judged()?;
                let expect = expect.unwrap_or_default();
                Ok(json!({ "version": boards.set(&by, &board, &key, &value, expect).await? }))
            }
            other => {
                fields.wrong_action(other, &["show", "post", "get", "set"]);
                fields.judged()?;
                Ok(Value::Null)
            }
        }
    }
}

fn draft(fields: &mut Fields<'_>) -> Draft {
    let deliver = deliver(fields);
    let max_attempts = fields.number("max_attempts");
    Draft {
        body: fields.needed("body").into(),
        subject: fields.text("subject").map(Into::into),
        refs: fields.texts("refs").into_iter().map(Into::into).collect(),
        reply_to: fields.text("reply_to").map(Into::into),
        key: fields.text("key").map(Into::into),
        deliver,
        ttl_s: fields.number("ttl_s"),
        max_attempts: max_attempts.map_or(ATTEMPTS, |it| u32::try_from(it).unwrap_or(u32::MAX)),
    }
}

/// `now`, `after_current`, or an object: `{at}`, `{delay_s}`, `{on_phase, run}`.
fn deliver(fields: &mut Fields<'_>) -> Deliver {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(Arc::<str>::from);
    let wanted = match fields.value("deliver") {
        None => return Deliver::Now,
        Some(Value::String(when)) if when == "now" => return Deliver::Now,
        Some(Value::String(when)) if when == "after_current" => return Deliver::AfterCurrent,
        Some(Value::Object(wanted)) => wanted.clone(),
        Some(_) => Map::new(),
    };
    let at = text(wanted.get("at")).and_then(|at| told::moment(&at)).map(Deliver::At);
    let delay = wanted.get("delay_s").and_then(Value::as_u64).map(Deliver::DelayS);
    let phase = text(wanted.get("on_phase")).zip(text(wanted.get("run")));
    let phase = phase.map(|(phase, run)| Deliver::OnPhase { phase, run });
    at.or(delay).or(phase).unwrap_or_else(|| {
        let message = "deliver is now, after_current, {at}, {delay_s}, or {on_phase, run}";
        fields.wrong("bad_value", message);
        Deliver::Now
    })
}
