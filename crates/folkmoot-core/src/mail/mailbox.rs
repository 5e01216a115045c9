//! A mailbox: a fold of its stream, and what may happen to it next.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    AT_ONCE, Deliver, Delivery, Event, LEASE, MAX_DELIVERY, MAX_LEASE, MAX_WAIT, Message, Party,
    Refused, Row,
    letter::{Hold, Letter, State, seconds},
};

/// The letters of one addressee, in the order of sending.
///
/// Requests change nothing: they give the row that is to be appended, if any; [`Mailbox::apply`] folds
/// it once it is durable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mailbox {
    letters: Vec<Letter>,
    by_id: BTreeMap<Arc<str>, usize>,
    by_key: BTreeMap<(Arc<str>, Arc<str>), usize>,
    /// By the run and the call that sent them.
    by_call: BTreeMap<(Arc<str>, Arc<str>), usize>,
    /// The latest moment it knows of: a clock that is set back turns nothing back.
    at: u64,
    rows: u64,
}

/// What comes of sending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sending {
    /// The message: the new one, or the one that was sent under the same key.
    pub id: Arc<str>,
    /// What is to be appended, if it is new.
    pub row: Option<Row>,
}

/// What comes of reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The message.
    pub message: Message,
    /// The token that settles it.
    pub lease: Arc<str>,
    /// How often it was delivered, this time included.
    pub attempt: u32,
    /// Whether the phase it waited for never came.
    pub phase_missed: bool,
    /// What is to be appended, unless the same call holds it already.
    pub row: Option<Row>,
}

/// A message and the token that settles it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lent {
    /// The message.
    pub id: Arc<str>,
    /// The token.
    pub lease: Arc<str>,
}

impl From<&Reading> for Lent {
    fn from(reading: &Reading) -> Lent {
        Lent { id: reading.message.id.clone(), lease: reading.lease.clone() }
    }
}

impl Mailbox {
    /// The letters, oldest first.
    pub fn letters(&self) -> &[Letter] {
        &self.letters
    }

    /// The letter named `id`.
    pub fn get(&self, id: &str) -> Result<&Letter, Refused> {
        let at = self.by_id.get(id).ok_or_else(|| Refused::NotAvailable(id.into()))?;
        Ok(&self.letters[*at])
    }

    /// The moment that counts as `now`.
    pub fn now(&self, now: u64) -> u64 {
        now.max(self.at)
    }

    /// Folds a row; what makes no sense changes nothing.
    pub fn apply(&mut self, row: Row) {
        self.rows += 1;
        self.at = self.at.max(row.at);
        let number = self.rows;
        match row.event {
            Event::Sent { message, busy } => self.take_in(message, busy),
            Event::Released { id, phase_missed } => self.change(&id, |letter| {
                letter.released = true;
                letter.phase_missed = phase_missed;
            }),
            Event::Leased { id, lease, until, by } => self.change(&id, |letter| {
                letter.hold = Hold::Leased { lease, until };
                letter.attempt += 1;
                letter.spent += 1;
                letter.read = Some((by, row.at, number));
            }),
            Event::Delivered { id, record } => self.change(&id, |letter| {
                if let Some((_, _, told)) = &mut letter.read {
                    *told = record;
                }
            }),
            Event::Extended { id, until: longer } => self.change(&id, |letter| {
                if let Hold::Leased { until, .. } = &mut letter.hold {
                    *until = longer;
                }
            }),
            Event::Acknowledged { id } => self.change(&id, |letter| {
                if let Hold::Leased { lease, .. } = &letter.hold {
                    letter.hold = Hold::Done { lease: lease.clone() };
                }
            }),
            Event::Returned { id, due } => self.change(&id, |letter| {
                letter.hold = Hold::Free;
                letter.due = due;
            }),
            Event::Cancelled { id } => self.change(&id, |letter| letter.hold = Hold::Cancelled),
            Event::Revived { id } => self.change(&id, |letter| {
                letter.hold = Hold::Free;
                letter.spent = 0;
            }),
        }
    }

    fn take_in(&mut self, message: Message, busy: Vec<Arc<str>>) {
        let at = self.letters.len();
        if let Some(key) = &message.draft.key {
            self.by_key.insert((message.from.clone(), key.clone()), at);
        }
        self.by_id.insert(message.id.clone(), at);
        if let Some(call) = message.run.clone().zip(message.call.clone()) {
            self.by_call.insert(call, at);
        }
        let due = match message.draft.deliver {
            Deliver::At(due) => due,
            Deliver::DelayS(delay) => message.sent_at.saturating_add(seconds(delay)),
            Deliver::Now | Deliver::AfterCurrent | Deliver::OnPhase { .. } => 0,
        };
        let (hold, released, phase_missed) = (Hold::Free, false, false);
        let (attempt, spent, read) = (0, 0, None);
        self.letters.push(Letter {
            message,
            busy,
            phase_missed,
            attempt,
            read,
            released,
            spent,
            due,
            hold,
        });
    }

    fn change(&mut self, id: &str, change: impl FnOnce(&mut Letter)) {
        if let Some(at) = self.by_id.get(id) {
            change(&mut self.letters[*at]);
        }
    }

    /// Sends `message`, once for each key of its sender and for each call of a run; `busy` are the runs that
    /// the addressee is at.
    pub fn send(&self, message: Message, busy: Vec<Arc<str>>) -> Result<Sending, Refused> {
        message.draft.check()?;
        let key = message.draft.key.clone().map(|key| (message.from.clone(), key));
        if let Some((from, key)) = key
            && let Some(at) = self.by_key.get(&(from.clone(), key.clone()))
        {
            let sent = &self.letters[*at].message;
            return if sent.draft == message.draft {
                Ok(Sending { id: sent.id.clone(), row: None })
            } else {
                Err(Refused::IdempotencyConflict { from, key })
            };
        }
        let call = message.run.clone().zip(message.call.clone());
        let sent = call.and_then(|call| Some(&self.letters[*self.by_call.get(&call)?].message));
        if let Some(sent) = sent.filter(|sent| sent.draft == message.draft) {
            return Ok(Sending { id: sent.id.clone(), row: None });
        }
        let busy = if message.draft.deliver == Deliver::AfterCurrent { busy } else { Vec::new() };
        let (id, at) = (message.id.clone(), self.now(message.sent_at));
        Ok(Sending { id, row: Some(Row { at, event: Event::Sent { message, busy } }) })
    }

    /// What may be read from now on, as `happened` tells what letters wait for: nothing yet, that it
    /// came, or that it never will.
    pub fn releases(&self, now: u64, happened: impl Fn(&Letter) -> Option<Came>) -> Vec<Row> {
        let at = self.now(now);
        let waiting = self.letters.iter().filter(|it| it.waits() && it.state(at) == State::Pending);
        let released = waiting.filter_map(|letter| {
            let phase_missed = happened(letter)? == Came::Never;
            let id = letter.message.id.clone();
            Some(Row { at, event: Event::Released { id, phase_missed } })
        });
        released.collect()
    }

    /// Lends the oldest visible message, or the one named `id` if it is visible, to `by`; nothing if
    /// there is none. A call that asks again gets what it holds.
    pub fn read(
        &self,
        now: u64,
        id: Option<&str>,
        lease_s: Option<u64>,
        lease: &Arc<str>,
        by: &Party,
    ) -> Result<Option<Reading>, Refused> {
        let (now, lease_s) = (self.now(now), lease_length(lease_s)?);
        if let Some(id) = id {
            self.get(id)?;
        }
        let meant = |it: &&Letter| id.is_none_or(|id| *it.message.id == *id);
        if let Some(held) = self.letters.iter().filter(meant).find(|it| it.is_held(now, by)) {
            return Ok(held.reading(now, lease, by, LEASE));
        }
        let next = self.letters.iter().filter(meant).find(|it| it.is_visible(now));
        Ok(next.and_then(|letter| letter.reading(now, lease, by, lease_s)))
    }

    /// Lends to a call of a run what it holds already and what is visible, oldest first: at most `most`
    /// messages, and as many as may come at once (messaging.md §2).
    pub fn lend(&self, now: u64, lease: &Arc<str>, by: &Party, most: usize) -> Vec<Reading> {
        let now = self.now(now);
        let meant = self.letters.iter().filter(|it| it.is_held(now, by) || it.is_visible(now));
        let lent = meant.filter_map(|letter| letter.reading(now, lease, by, LEASE));
        let mut bytes = 0;
        let fits = |reading: &Reading| {
            let is_first = bytes == 0;
            bytes += Delivery::of(reading).bytes();
            is_first || bytes <= MAX_DELIVERY
        };
        lent.take(most.min(AT_ONCE)).take_while(fits).collect()
    }

    /// Lends to a call of a run these of what it was lent before, as far as nobody else has them now.
    pub fn lend_again(
        &self,
        now: u64,
        lease: &Arc<str>,
        by: &Party,
        ids: &[Arc<str>],
    ) -> Vec<Reading> {
        let now = self.now(now);
        let meant = self.letters.iter().filter(|it| ids.contains(&it.message.id));
        let last = meant.filter(|it| it.read.as_ref().is_some_and(|(reader, ..)| reader == by));
        last.filter_map(|letter| letter.reading(now, lease, by, LEASE)).collect()
    }

    /// Notes in which record of the reader's run these messages stand.
    pub fn delivered(&self, now: u64, lent: &[Lent], record: u64) -> Vec<Row> {
        self.of_leases(now, lent, |id| Event::Delivered { id, record })
    }

    /// Is done with all of these that are still held.
    pub fn ack_all(&self, now: u64, lent: &[Lent]) -> Vec<Row> {
        self.of_leases(now, lent, |id| Event::Acknowledged { id })
    }

    /// Gives back all of these that are still held.
    pub fn nack_all(&self, now: u64, lent: &[Lent]) -> Vec<Row> {
        let due = self.now(now);
        self.of_leases(now, lent, |id| Event::Returned { id, due })
    }

    /// Keeps all of these that are still held for another [`LEASE`] from now on.
    pub fn extend_all(&self, now: u64, lent: &[Lent]) -> Vec<Row> {
        let until = self.now(now).saturating_add(seconds(LEASE));
        self.of_leases(now, lent, |id| Event::Extended { id, until })
    }

    fn of_leases(&self, now: u64, lent: &[Lent], event: impl Fn(Arc<str>) -> Event) -> Vec<Row> {
        let held = lent.iter().filter_map(|Lent { id, lease }| {
            Some(Row { at: self.held(now, id, lease).ok()?, event: event(id.clone()) })
        });
        held.collect()
    }

    /// Those whose lease has run out and that a run is done with all the same, as `answered` tells: the call
    /// to which they came was answered, and then the run could not say so any more.
    pub fn overdue(&self, now: u64, answered: impl Fn(&str) -> bool) -> Vec<Row> {
        let at = self.now(now);
        let lapsed = self.letters.iter().filter(|letter| letter.lapsed(at).is_some());
        let done = lapsed.filter(|letter| answered(&letter.message.id));
        let row = |letter: &Letter| Row {
            at,
            event: Event::Acknowledged { id: letter.message.id.clone() },
        };
        done.map(row).collect()
    }

    /// Is done with a message; once more changes nothing.
    pub fn ack(&self, now: u64, id: &str, lease: &str) -> Result<Option<Row>, Refused> {
        match &self.get(id)?.hold {
            Hold::Done { lease: done } if **done == *lease => Ok(None),
            Hold::Free | Hold::Leased { .. } | Hold::Done { .. } | Hold::Cancelled => {
                let at = self.held(now, id, lease)?;
                Ok(Some(Row { at, event: Event::Acknowledged { id: id.into() } }))
            }
        }
    }

    /// Gives a message back, to be read again after `delay_s`.
    pub fn nack(&self, now: u64, id: &str, lease: &str, delay_s: u64) -> Result<Row, Refused> {
        if delay_s > MAX_WAIT {
            let wants = format!("is 0 to {MAX_WAIT} seconds, not {delay_s}");
            return Err(Refused::BadValue { field: "delay_s", wants });
        }
        let at = self.held(now, id, lease)?;
        let due = at.saturating_add(seconds(delay_s));
        Ok(Row { at, event: Event::Returned { id: id.into(), due } })
    }

    /// Keeps a message for another `lease_s` from now on.
    pub fn extend(
        &self,
        now: u64,
        id: &str,
        lease: &str,
        lease_s: Option<u64>,
    ) -> Result<Row, Refused> {
        let longer = seconds(lease_length(lease_s)?);
        let at = self.held(now, id, lease)?;
        let until = at.saturating_add(longer);
        Ok(Row { at, event: Event::Extended { id: id.into(), until } })
    }

    /// Takes back a message that nobody has read, for its sender.
    pub fn cancel(&self, now: u64, id: &str, sender: &str) -> Result<Row, Refused> {
        let letter = self.get(id)?;
        if *letter.message.from != *sender {
            return Err(Refused::NotAvailable(id.into()));
        }
        self.expect(now, id, State::Pending, Event::Cancelled { id: id.into() })
    }

    /// Lets a dead message be delivered anew.
    pub fn revive(&self, now: u64, id: &str) -> Result<Row, Refused> {
        self.expect(now, id, State::Dead, Event::Revived { id: id.into() })
    }

    fn expect(&self, now: u64, id: &str, wanted: State, event: Event) -> Result<Row, Refused> {
        let at = self.now(now);
        match self.get(id)?.state(at) {
            state if state == wanted => Ok(Row { at, event }),
            state => Err(Refused::WrongState { id: id.into(), state }),
        }
    }

    /// The moment, if `lease` holds the message now.
    fn held(&self, now: u64, id: &str, token: &str) -> Result<u64, Refused> {
        let now = self.now(now);
        match &self.get(id)?.hold {
            Hold::Leased { lease, until } if **lease == *token && *until > now => Ok(now),
            Hold::Free | Hold::Leased { .. } | Hold::Done { .. } | Hold::Cancelled => {
                Err(Refused::LeaseLost(id.into()))
            }
        }
    }
}

impl Letter {
    /// Whether the same call of a run holds it already.
    fn is_held(&self, now: u64, by: &Party) -> bool {
        let is_same = self.read.as_ref().is_some_and(|(reader, ..)| reader == by);
        by.call.is_some() && is_same && self.state(now) == State::Leased
    }

    /// What comes of lending it, or of asking again for what one holds.
    fn reading(&self, now: u64, lease: &Arc<str>, by: &Party, lease_s: u64) -> Option<Reading> {
        let (message, phase_missed) = (self.message.clone(), self.phase_missed);
        let of = |lease: &Arc<str>, attempt, row| {
            let lease = lease.clone();
            Reading { message: message.clone(), lease, attempt, phase_missed, row }
        };
        if let Hold::Leased { lease, .. } = &self.hold
            && self.is_held(now, by)
        {
            return Some(of(lease, self.attempt, None));
        }
        self.is_visible(now).then(|| {
            let until = now.saturating_add(seconds(lease_s));
            let (id, by) = (self.message.id.clone(), by.clone());
            let event = Event::Leased { id, lease: lease.clone(), until, by };
            of(lease, self.attempt + 1, Some(Row { at: now, event }))
        })
    }
}

/// What became of that which a letter waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    /// It has happened.
    Yes,
    /// It can no longer happen.
    Never,
}

fn lease_length(lease_s: Option<u64>) -> Result<u64, Refused> {
    match lease_s.unwrap_or(LEASE) {
        length @ 1..=MAX_LEASE => Ok(length),
        length => {
            let wants = format!("is 1 to {MAX_LEASE} seconds, not {length}");
            Err(Refused::BadValue { field: "lease_s", wants })
        }
    }
}
