//! What a role team tells of its work: the fields of its record, its rounds, and the public stream
//! (agents.md §§7 to 9).

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{
    Path, Role,
    handoff::{Memory, Written},
    review::{findings, question},
    work::{End, Spoken, Work},
};
use crate::{
    programs::{entry, language, turns::Turn},
    scope::{Account, Notice},
    spec::Warning,
    time::Duration,
};

impl End {
    fn state(self) -> &'static str {
        match self {
            End::Done => "DONE",
            End::DoneWithFindings => "DONE_WITH_FINDINGS",
            End::Failed => "FAILED",
            End::BudgetExceeded => "BUDGET_EXCEEDED",
            End::Cancelled => "CANCELLED",
        }
    }

    /// What the public stream is told of it.
    fn notice(self) -> &'static str {
        match self {
            End::Done | End::DoneWithFindings => "pipeline_complete",
            End::Failed | End::BudgetExceeded => "pipeline_failed",
            End::Cancelled => "pipeline_cancelled",
        }
    }
}

impl Work<'_, '_> {
    /// Tells how far the work has come, and how it ended if it has.
    pub(super) fn tell(&self, end: Option<End>) {
        self.cx.tell(|account| {
            account.record = self.record(end);
            account.rounds = self.rounds();
            account.notices = self.notices(end);
            self.warn(account);
        });
    }

    fn record(&self, end: Option<End>) -> Map<String, Value> {
        let waits = self.question();
        let pending = if waits.is_some() { "NEEDS_INPUT" } else { "WORKING" };
        let fields = [
            ("state", json!(end.map_or(pending, End::state))),
            ("path", json!(self.complexity.path)),
            ("turns", self.turns()),
            ("phases", json!(self.phases().collect::<Vec<_>>())),
            ("rework", json!(u32::from(self.rework().is_some()))),
            ("failed_role", json!(self.failed.map(Role::name))),
            ("complexity", self.complexity.told()),
            ("memory", Memory::of(self.cx.known(), self.handed_on(), language(self.cx)).told()),
            ("budget", self.budget()),
            ("unresolved", json!(self.unresolved())),
        ];
        let reason = waits.iter().map(|_| ("reason", json!("needs_input")));
        let open = waits.iter().map(|question| ("open_questions", json!([question])));
        let question = waits.iter().map(|question| ("question", question.clone()));
        fields
            .into_iter()
            .chain(question)
            .chain(open)
            .chain(reason)
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }

    fn turns(&self) -> Value {
        let told = |(n, spoken): (u64, &Spoken)| {
            let turn = Turn {
                number: n,
                round: spoken.round.into(),
                stage: n,
                role: spoken.role.name(),
                agent: &spoken.reply.agent,
                name: self.roles.label(spoken.role),
                target: None,
                said: match &spoken.reply.outcome {
                    Ok(answer) => Ok(&answer.text),
                    Err(fault) => Err(fault.to_string()),
                },
                calls: &spoken.calls,
            };
            let mut told = turn.told(self.cx);
            if spoken.is_incomplete {
                told["incomplete"] = true.into();
            }
            told
        };
        (1..).zip(&self.spoken).map(told).collect()
    }

    /// What was completed, in its order.
    fn phases(&self) -> impl Iterator<Item = &'static str> {
        self.spoken.iter().filter_map(Spoken::phase)
    }

    fn budget(&self) -> Value {
        let Some(budget) = &self.roles.budget else { return Value::Null };
        let (total, used) = (budget.total(), self.cx.consumed());
        let consumed = |(n, spoken): (u32, &Spoken)| {
            let Spoken { role, tokens, is_inside, .. } = spoken;
            json!({ "turn": n, "role": role.name(), "tokens": tokens, "inside": is_inside })
        };
        let consumed: Vec<Value> = (1..).zip(&self.spoken).map(consumed).collect();
        let multiplier: Value =
            budget.multiplier.to_string().parse().map_or(Value::Null, Value::Number);
        json!({
            "single": budget.single,
            "multiplier": multiplier,
            "total": total,
            "used": used,
            "remaining": total.saturating_sub(used),
            "consumed": consumed,
        })
    }

    /// What a person is asked just now.
    fn question(&self) -> Option<Value> {
        let (role, key) = self.questions.last()?;
        let is_open = self.cx.known().get(key.as_str())?.is_open();
        let asked = self.spoken.last()?.reply.contribution()?;
        let told = json!({ "key": key, "role": role.name(), "text": question(asked) });
        is_open.then_some(told)
    }

    /// The findings that are open.
    fn unresolved(&self) -> Vec<Value> {
        let review = self.open.as_ref().and_then(|key| self.cx.reply(key));
        let answer = review.as_ref().and_then(|reply| reply.contribution());
        answer.map(|answer| findings(answer, language(self.cx))).unwrap_or_default()
    }

    fn rounds(&self) -> Vec<Value> {
        let mut rounds: BTreeMap<u32, Map<String, Value>> = BTreeMap::new();
        for spoken in &self.spoken {
            let name = spoken.role.name().to_owned();
            rounds.entry(spoken.round).or_default().insert(name, entry(&spoken.reply));
        }
        let told = |(round, responses)| json!({ "round": round, "kind": "roles", "responses": Value::Object(responses) });
        rounds.into_iter().map(told).collect()
    }

    /// What the public stream was told: nothing of what the roles do on their way.
    fn notices(&self, end: Option<End>) -> Vec<Notice> {
        if self.complexity.path == Path::Single {
            return Vec::new();
        }
        let notice = |seq, kind, more: Value| {
            let mut fields = Map::new();
            fields.insert("session_id".to_owned(), (&*self.roles.parent).into());
            fields.extend(more.as_object().cloned().unwrap_or_default());
            Notice { seq, kind, fields }
        };
        let phase = |spoken: &Spoken| {
            let more = json!({
                "phase": spoken.phase()?,
                "role": spoken.role.name(),
                "tokens": spoken.tokens,
                "duration_ms": spoken.took().0 / 1000,
            });
            Some(notice(spoken.seq, "task_phase_change", more))
        };
        let rework = self.rework().map(|seq| notice(seq, "rework_started", Value::Null));
        // What ends before anything is known ends with the first record.
        let now = self.cx.moment().seq.max(1);
        let ended = end.map(|end| notice(now, end.notice(), Value::Null));
        let mut notices: Vec<Notice> = self.spoken.iter().filter_map(phase).chain(rework).collect();
        notices.sort_by_key(|notice| notice.seq);
        notices.into_iter().chain(ended).collect()
    }

    fn warn(&self, account: &mut Account) {
        if self.lacks_economy {
            let message = "less than a fifth of the budget is left, and there is no economy model: \
                           nothing is changed; name one as economy_model, or as the alias economy";
            account
                .warnings
                .push(Warning { code: "no_economy_model".into(), message: message.into() });
        }
        for (role, _) in self.written().filter(|(_, written)| *written == Written::OverMemory) {
            let name = role.name();
            let message = format!("{name}: the memory is read_only; only the hand-off is taken");
            account.warnings.push(Warning { code: "read_only".into(), message: message.into() });
        }
    }
}

impl Spoken<'_> {
    /// What is completed with it, if it did not fail.
    fn phase(&self) -> Option<&'static str> {
        self.role.phase().filter(|_| self.is_finished())
    }

    fn took(&self) -> Duration {
        let began = self.calls.iter().map(|call| call.asked_at).min();
        let ended = self.calls.iter().map(|call| call.settled_at).max();
        ended.unwrap_or_default().since(began.unwrap_or_default())
    }
}
