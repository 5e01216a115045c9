//! How the state of a run follows from its log.

use super::Run;
use crate::{
    call::{Answer, Call, Fault, Outcome, Usage},
    event::{Event, Files, Record, Reservation},
    key::Key,
    known::Entry,
    mail::Delivery,
    time::Time,
};

impl Run {
    /// Brings a run back from its log.
    pub fn fold<'a>(records: impl IntoIterator<Item = &'a Record>) -> Run {
        let mut run = Run::default();
        records.into_iter().for_each(|record| run.apply(record));
        run
    }

    /// Folds one record; decides nothing, cannot fail.
    pub fn apply(&mut self, record: &Record) {
        self.seq = record.seq;
        self.at = self.at.max(record.at);
        match &record.event {
            Event::Started { spec, wall, origin } => {
                self.walls.push((record.at, *wall));
                self.origin.clone_from(origin);
                let sent = origin.as_ref().and_then(|origin| origin.sent.clone());
                self.numbers = sent.unwrap_or_default();
                self.deadline = spec.limits.time.map(|time| Time::default() + time);
            }
            Event::Inherited { key, call, nth, settled } => {
                self.number(call, *nth);
                let entry = self.entry(key, call, Some(settled.clone().into()));
                let entry = Entry { nth: *nth, inherited: true, ..entry };
                self.known.insert(key.clone(), entry);
                self.known.amended = self.seq;
            }
            Event::Prompted { key, text } => {
                self.known.add_words(key.clone(), text.clone());
                self.known.amended = self.seq;
            }
            Event::Resumed { wall } => {
                self.walls.push((record.at, *wall));
                self.known.retry_open();
            }
            Event::Answered { key, attempt, settled, usage } => {
                self.bill(key, *attempt, *usage);
                let current = self.known.get(key.as_str()).map(|entry| entry.attempt);
                if current == Some(*attempt) {
                    self.settle(key, settled.clone().into());
                }
            }
            Event::Amended { key, text } => {
                self.settle(key, Err(Fault::Unwanted));
                if let Some(entry) = self.known.get_mut(key) {
                    entry.outcome = Some(Ok(Answer::text(text.clone()).into()));
                    (entry.settled, entry.settled_at) = (record.seq, self.at);
                }
                self.known.amended = self.seq;
                self.known.reopen_around(key);
                // What follows from the new answer is not known yet.
                self.ending = None;
            }
            Event::CancelRequested => self.stopped_by(Fault::Cancelled),
            Event::Ticked => {
                self.ticked = record.at;
                if self.deadline.is_some_and(|deadline| deadline <= record.at) {
                    self.stopped_by(Fault::Deadline);
                }
            }
            Event::Woken { wall } => self.walls.push((record.at, *wall)),
            Event::Saved { files: Files::Tree(_), .. } => {}
            Event::Saved { key, files: Files::Unsaved(why) } => {
                self.unsaved.get_or_insert_with(|| (key.clone(), why.clone()));
            }
            Event::Mailed { key, mail, reserved } => self.deliver(key, mail, *reserved),
            Event::Asked { key, call, nth, reserved, expires, scopes } => {
                self.number(call, *nth);
                let is_charged = call.is_performed();
                let entry = Entry {
                    nth: *nth,
                    expires: *expires,
                    reserved: *reserved,
                    scopes: scopes.clone(),
                    usages: is_charged.then(Usage::default).into_iter().collect(),
                    ..self.entry(key, call, None)
                };
                if is_charged {
                    self.ledger.start(&entry);
                }
                self.known.insert(key.clone(), entry);
            }
            Event::Refused { key, call, fault } => {
                if fault.stops_run() {
                    self.stopped_by(fault.clone());
                }
                let entry = self.entry(key, call, Some(Err(fault.clone())));
                self.known.insert(key.clone(), Entry { refused: true, ..entry });
            }
            Event::Withdrawn { key, fault, usage } => {
                self.settle(key, Err(fault.clone()));
                if let Some(entry) = self.known.get_mut(key) {
                    entry.withdrawn = true;
                    let attempt = entry.attempt;
                    self.bill(key, attempt, *usage);
                }
            }
            Event::Concluded { key, settled } => self.settle(key, settled.clone().into()),
            Event::Ended { ending } => self.ending = Some(ending.clone()),
        }
    }

    fn entry(&self, key: &Key, call: &Call, outcome: Option<Outcome>) -> Entry {
        let settled = if outcome.is_some() { self.seq } else { 0 };
        Entry {
            call: call.clone(),
            outcome,
            refused: false,
            inherited: false,
            withdrawn: false,
            attempt: self.known.next_attempt(key),
            nth: 0,
            asked: self.seq,
            settled,
            asked_at: self.at,
            settled_at: self.at,
            expires: None,
            reserved: None,
            scopes: Vec::new(),
            usages: Vec::new(),
        }
    }

    fn deliver(&mut self, key: &Key, mail: &[Delivery], reserved: Option<Reservation>) {
        if !self.known.add_mail(key, mail, self.seq) {
            return;
        }
        if let Some((entry, reserved)) = self.known.get_mut(key).zip(reserved)
            && entry.is_charged()
        {
            self.ledger.reserve(entry, reserved);
            entry.reserved = Some(reserved);
        }
    }

    fn settle(&mut self, key: &Key, outcome: Outcome) {
        if let Some(entry) = self.known.settle(key, outcome, self.seq, self.at)
            && entry.is_charged()
        {
            self.ledger.settle(entry);
        }
    }

    fn bill(&mut self, key: &Key, attempt: u32, usage: Usage) {
        if let Some((entry, earlier)) = self.known.book(key, attempt, usage) {
            self.ledger.bill(entry, earlier, usage);
        }
    }

    fn number(&mut self, call: &Call, nth: u64) {
        if matches!(call, Call::Agent { .. }) {
            let number = self.numbers.entry(call.agent().clone()).or_default();
            *number = nth.max(*number);
        }
    }

    /// What comes after the end stops nothing, and what lets nothing go on outranks a spent budget.
    fn stopped_by(&mut self, fault: Fault) {
        if self.ending.is_none() && !self.is_halted() {
            self.stop = Some(fault);
        }
    }

    /// Whether nothing may go on; what a budget stopped is paid for and may finish.
    pub(super) fn is_halted(&self) -> bool {
        matches!(self.stop, Some(Fault::Cancelled | Fault::Deadline))
    }
}
