//! Mailboxes in the store: what `folkmoot mail` and the tools `mail.*` do (messaging.md §1).
//!
//! Each mailbox is a stream of its own, `mail/OWNER/NAME`.

use std::{collections::BTreeMap, sync::Arc};

use folkmoot_core::{
    event::Event as RunEvent,
    key::Key,
    mail::{Came, Deliver, Draft, Letter, Mailbox, Message, Party, Reading, Refused, Row, State},
    names::slug,
    view,
};
use serde::Serialize;
use thiserror::Error;

use crate::{
    engine::{Engine, EngineError, RunId},
    folds::{self, FoldError},
    store::{Store, StoreError, StreamId},
};

/// Streams of mailboxes begin with this.
const MAIL: &str = "mail/";

/// The most mailboxes and runs that are looked through.
const MANY: usize = 10_000;

/// The mailboxes of one owner.
#[derive(Clone)]
pub struct Mail {
    engine: Engine,
    owner: Arc<str>,
}

/// Why a request to a mailbox failed.
#[derive(Debug, Error)]
pub enum MailError {
    /// The mailbox says no.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// There is no such mailbox for this caller.
    #[error("there is no mailbox {0}")]
    NoSuchMailbox(String),
    /// A name that cannot be one of a mailbox.
    #[error("{0:?} cannot be the name of a mailbox")]
    BadName(String),
    /// The run that a message is to wait for.
    #[error("there is no run {0}")]
    NoSuchRun(Arc<str>),
    /// It could not be read or kept.
    #[error(transparent)]
    Kept(#[from] FoldError),
}

impl From<StoreError> for MailError {
    fn from(error: StoreError) -> MailError {
        MailError::Kept(error.into())
    }
}

impl MailError {
    /// The code of the failure.
    pub fn code(&self) -> &'static str {
        match self {
            MailError::Refused(refused) => refused.code(),
            MailError::NoSuchMailbox(_) | MailError::NoSuchRun(_) => "not_available",
            MailError::BadName(_) => "bad_value",
            MailError::Kept(_) => "unusable_store",
        }
    }
}

/// What came of sending.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sent {
    /// The message.
    pub id: Arc<str>,
    /// How it stands.
    pub state: State,
    /// Whether it had been sent before, under the same key.
    pub duplicate: bool,
}

/// A message in a list, without its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Header {
    /// The message.
    pub id: Arc<str>,
    /// Who wrote it.
    pub from: Arc<str>,
    /// To whom.
    pub to: Arc<str>,
    /// What it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<Arc<str>>,
    /// The size of its text in bytes.
    pub bytes: usize,
    /// When it was sent, in microseconds since 1970.
    pub sent_at: u64,
    /// How it stands.
    pub state: State,
    /// How often it was delivered.
    pub attempt: u32,
    /// Whether it may not be read yet.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
    /// Whether the phase it waited for never came.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub phase_missed: bool,
    /// Its latest delivery.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipt: Option<Receipt>,
}

/// Who read a message, and the row of the mailbox that tells of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Receipt {
    /// Who read it.
    pub read_by: Arc<str>,
    /// When, in microseconds since 1970.
    pub at: u64,
    /// In which run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<Arc<str>>,
    /// With which call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<Arc<str>>,
    /// The number of the row in the mailbox.
    pub event: u64,
}

/// Which messages a list holds beside those that may be read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Which {
    /// Those that may not be read yet.
    pub future: bool,
    /// Those that are lent, done with, expired, dead or cancelled.
    pub all: bool,
}

impl Mail {
    /// The mailboxes of `owner` in the store of `engine`.
    pub fn new(engine: &Engine, owner: &str) -> Mail {
        Mail { engine: engine.clone(), owner: owner.into() }
    }

    /// Sends a message from `from` to the mailbox `to`.
    pub async fn send(&self, from: &Party, to: &str, draft: Draft) -> Result<Sent, MailError> {
        let stream = self.stream(to)?;
        let to: Arc<str> = slug(self.local(to)?).into();
        let busy = match &draft.deliver {
            Deliver::AfterCurrent => self.busy(&to).await?,
            Deliver::OnPhase { run, .. } => {
                let known = self.store().entry(&RunId::parse(run).stream()).await?;
                known.ok_or_else(|| MailError::NoSuchRun(run.clone()))?;
                Vec::new()
            }
            Deliver::Now | Deliver::At(_) | Deliver::DelayS(_) => Vec::new(),
        };
        let message = Message {
            id: RunId::random().as_arc(),
            from: slug(&from.name).into(),
            to,
            draft,
            sent_at: self.wall(),
            run: from.run.clone(),
            call: from.call.clone(),
        };
        let send = |mailbox: &Mailbox| {
            let sending = mailbox.send(message.clone(), busy.clone())?;
            Ok(((sending.id, sending.row.is_none()), sending.row.into_iter().collect()))
        };
        let ((id, duplicate), mailbox) = self.change(&stream, send).await?;
        let state = mailbox.get(&id)?.state(mailbox.now(self.wall()));
        Ok(Sent { id, state, duplicate })
    }

    /// The messages in the mailbox of `name`, oldest first, the latest `limit` of them.
    pub async fn inbox(
        &self,
        name: &str,
        which: Which,
        limit: usize,
    ) -> Result<Vec<Header>, MailError> {
        let mailbox = self.fresh(&self.stream(name)?).await?;
        let now = mailbox.now(self.wall());
        let listed = mailbox.letters().iter().filter(|letter| {
            let is_open = letter.state(now) == State::Pending;
            letter.is_visible(now) || is_open && which.future || !is_open && which.all
        });
        Ok(last(listed.map(|letter| header(letter, now)).collect(), limit))
    }

    /// What `name` has sent, oldest first, the latest `limit` of it, with who read it.
    pub async fn sent(&self, name: &str, limit: usize) -> Result<Vec<Header>, MailError> {
        let (from, mut sent) = (slug(self.local(name)?), Vec::new());
        for stream in self.mailboxes().await? {
            let mailbox = self.fresh(&stream).await?;
            let now = mailbox.now(self.wall());
            let own = mailbox.letters().iter().filter(|letter| *letter.message.from == *from);
            sent.extend(own.map(|letter| header(letter, now)));
        }
        sent.sort_by_key(|header| header.sent_at);
        Ok(last(sent, limit))
    }

    /// Lends a message of the mailbox of `by`: the one named `id`, else the oldest.
    pub async fn read(
        &self,
        by: &Party,
        id: Option<&str>,
        lease_s: Option<u64>,
    ) -> Result<Option<Reading>, MailError> {
        let stream = self.stream(&by.name)?;
        self.fresh(&stream).await?;
        let by = Party { name: slug(&by.name).into(), ..by.clone() };
        let lease = RunId::random().as_arc();
        let read = |mailbox: &Mailbox| {
            let reading = mailbox.read(self.wall(), id, lease_s, &lease, &by)?;
            let row = reading.as_ref().and_then(|it| it.row.clone());
            Ok((reading, row.into_iter().collect()))
        };
        let (reading, _) = self.change(&stream, read).await?;
        Ok(reading)
    }

    /// Is done with a message that `name` holds.
    pub async fn ack(&self, name: &str, id: &str, lease: &str) -> Result<(), MailError> {
        let ack = |mailbox: &Mailbox| {
            Ok(((), mailbox.ack(self.wall(), id, lease)?.into_iter().collect()))
        };
        self.change(&self.stream(name)?, ack).await.map(|_| ())
    }

    /// Gives a message back that `name` holds, to be read again after `delay_s`.
    pub async fn nack(
        &self,
        name: &str,
        id: &str,
        lease: &str,
        delay_s: u64,
    ) -> Result<State, MailError> {
        let nack =
            |mailbox: &Mailbox| Ok(((), vec![mailbox.nack(self.wall(), id, lease, delay_s)?]));
        let ((), mailbox) = self.change(&self.stream(name)?, nack).await?;
        Ok(mailbox.get(id)?.state(mailbox.now(self.wall())))
    }

    /// Keeps a message that `name` holds for another `lease_s` from now on.
    pub async fn extend(
        &self,
        name: &str,
        id: &str,
        lease: &str,
        lease_s: Option<u64>,
    ) -> Result<(), MailError> {
        let extend =
            |mailbox: &Mailbox| Ok(((), vec![mailbox.extend(self.wall(), id, lease, lease_s)?]));
        self.change(&self.stream(name)?, extend).await.map(|_| ())
    }

    /// Takes back what `name` has sent and nobody has read.
    pub async fn cancel(&self, name: &str, id: &str) -> Result<(), MailError> {
        let sender = slug(self.local(name)?);
        let stream = self.mailbox_of(id).await?;
        let cancel = |mailbox: &Mailbox| Ok(((), vec![mailbox.cancel(self.wall(), id, &sender)?]));
        self.change(&stream, cancel).await.map(|_| ())
    }

    /// Lets a dead message be delivered anew; for people.
    pub async fn revive(&self, id: &str) -> Result<(), MailError> {
        let stream = self.mailbox_of(id).await?;
        let revive = |mailbox: &Mailbox| Ok(((), vec![mailbox.revive(self.wall(), id)?]));
        self.change(&stream, revive).await.map(|_| ())
    }

    /// What may come to a call of a run; it is lent to nobody by this.
    pub(crate) async fn due(&self, by: &Party) -> Result<Vec<Reading>, MailError> {
        let mailbox = self.fresh(&self.stream(&by.name)?).await?;
        Ok(mailbox.lend(self.wall(), &RunId::random().as_arc(), by, usize::MAX))
    }

    /// Lends `most` messages of what may come to a call of a run.
    pub(crate) async fn lend(&self, by: &Party, most: usize) -> Result<Vec<Reading>, MailError> {
        let token = RunId::random().as_arc();
        self.lending(by, |mailbox| mailbox.lend(self.wall(), &token, by, most)).await
    }

    /// Lends once more what a call of a run was lent before the run was interrupted, as far as nobody else
    /// has it.
    pub(crate) async fn lend_again(
        &self,
        by: &Party,
        ids: &[Arc<str>],
    ) -> Result<Vec<Reading>, MailError> {
        let token = RunId::random().as_arc();
        self.lending(by, |mailbox| mailbox.lend_again(self.wall(), &token, by, ids)).await
    }

    async fn lending(
        &self,
        by: &Party,
        lend: impl Fn(&Mailbox) -> Vec<Reading>,
    ) -> Result<Vec<Reading>, MailError> {
        let lent = |mailbox: &Mailbox| {
            let readings = lend(mailbox);
            let rows = readings.iter().filter_map(|reading| reading.row.clone()).collect();
            Ok((readings, rows))
        };
        Ok(self.change(&self.stream(&by.name)?, lent).await?.0)
    }

    /// Does with what `name` was lent, all at once, what `rows` says.
    pub(crate) async fn settle(
        &self,
        name: &str,
        rows: impl Fn(&Mailbox, u64) -> Vec<Row>,
    ) -> Result<(), MailError> {
        let settle = |mailbox: &Mailbox| Ok(((), rows(mailbox, self.wall())));
        self.change(&self.stream(name)?, settle).await.map(|_| ())
    }

    fn store(&self) -> &dyn Store {
        self.engine.store()
    }

    fn wall(&self) -> u64 {
        self.engine.wall()
    }

    /// The name behind an address; that of another owner's mailbox looks absent.
    fn local<'a>(&self, address: &'a str) -> Result<&'a str, MailError> {
        match address.split_once('/') {
            Some((owner, name)) if *owner == *self.owner => Ok(name),
            Some(_) => Err(MailError::NoSuchMailbox(address.to_owned())),
            None => Ok(address),
        }
    }

    fn stream(&self, address: &str) -> Result<StreamId, MailError> {
        let bad = || MailError::BadName(address.to_owned());
        folds::stream(MAIL, &self.owner, self.local(address)?).ok_or_else(bad)
    }

    async fn mailboxes(&self) -> Result<Vec<StreamId>, MailError> {
        let prefix = format!("{MAIL}{}/", self.owner);
        let found = self.store().list(&prefix, None, MANY).await?;
        Ok(found.into_iter().map(|entry| entry.stream).collect())
    }

    /// The mailbox in which a message is.
    async fn mailbox_of(&self, id: &str) -> Result<StreamId, MailError> {
        for stream in self.mailboxes().await? {
            if self.load(&stream).await?.get(id).is_ok() {
                return Ok(stream);
            }
        }
        Err(Refused::NotAvailable(id.into()).into())
    }

    async fn load(&self, stream: &StreamId) -> Result<Mailbox, MailError> {
        Ok(folds::load(self.store(), stream).await?.0)
    }

    async fn change<T>(
        &self,
        stream: &StreamId,
        decide: impl Fn(&Mailbox) -> Result<(T, Vec<Row>), Refused>,
    ) -> Result<(T, Mailbox), MailError> {
        Ok(folds::change(self.store(), stream, decide).await??)
    }

    /// The mailbox, in which is released what waited for something that has happened by now.
    async fn fresh(&self, stream: &StreamId) -> Result<Mailbox, MailError> {
        let mailbox = self.done_with(stream, self.load(stream).await?).await?;
        let mut came = BTreeMap::new();
        for letter in mailbox.letters().iter().filter(|letter| letter.waits()) {
            if let Some(what) = self.came(letter).await? {
                came.insert(letter.message.id.clone(), what);
            }
        }
        if came.is_empty() {
            return Ok(mailbox);
        }
        let release = |mailbox: &Mailbox| {
            let happened = |letter: &Letter| came.get(&letter.message.id).copied();
            Ok(((), mailbox.releases(self.wall(), happened)))
        };
        Ok(self.change(stream, release).await?.1)
    }

    /// The mailbox, in which is acknowledged what came to calls that were answered although their run could
    /// not say so any more.
    async fn done_with(&self, stream: &StreamId, mailbox: Mailbox) -> Result<Mailbox, MailError> {
        let now = mailbox.now(self.wall());
        let mut answered = Vec::new();
        for letter in mailbox.letters() {
            let Some(Party { run: Some(run), call: Some(call), .. }) = letter.lapsed(now) else {
                continue;
            };
            let Ok(loaded) = self.engine.load(&RunId::parse(run)).await else { continue };
            let (known, call, id) = (loaded.run.known(), Key::parse(call), &letter.message.id);
            let has_come = known.mail(&call).iter().any(|it| it.id == *id);
            if has_come && known.was_answered(&call) == Some(true) {
                answered.push(id.clone());
            }
        }
        if answered.is_empty() {
            return Ok(mailbox);
        }
        let done = |mailbox: &Mailbox| {
            Ok(((), mailbox.overdue(self.wall(), |id| answered.iter().any(|it| **it == *id))))
        };
        Ok(self.change(stream, done).await?.1)
    }

    /// What became of that which a letter waits for.
    async fn came(&self, letter: &Letter) -> Result<Option<Came>, MailError> {
        let runs = match &letter.message.draft.deliver {
            Deliver::Now | Deliver::At(_) | Deliver::DelayS(_) => return Ok(None),
            Deliver::OnPhase { phase, run } => return Ok(self.phase(phase, run).await),
            Deliver::AfterCurrent => &letter.busy,
        };
        for run in runs {
            // A run that can no longer be read keeps nobody busy.
            let Ok(loaded) = self.engine.load(&RunId::parse(run)).await else { continue };
            let goes_on = loaded.is_alive() || loaded.run.waits_for_person();
            if loaded.run.ending().is_none() && goes_on {
                return Ok(None);
            }
        }
        Ok(Some(Came::Yes))
    }

    async fn phase(&self, phase: &str, run: &str) -> Option<Came> {
        let loaded = match self.engine.load(&RunId::parse(run)).await {
            Ok(loaded) => loaded,
            Err(EngineError::NoSuchRun(_)) => return Some(Came::Never),
            Err(_) => return None,
        };
        let notices = view::notices(&loaded.spec, &loaded.run, &loaded.records);
        let is_meant = |notice: &folkmoot_core::scope::Notice| {
            notice.kind == phase || notice.fields.get("phase").is_some_and(|it| it == phase)
        };
        match notices.iter().any(is_meant) {
            true => Some(Came::Yes),
            false if loaded.run.ending().is_some() => Some(Came::Never),
            false => None,
        }
    }

    /// The runs under way in which the agent takes part.
    async fn busy(&self, agent: &str) -> Result<Vec<Arc<str>>, MailError> {
        let mut busy = Vec::new();
        for entry in self.store().list("run/", None, MANY).await? {
            if entry.owner.is_none() {
                continue;
            }
            let run: Arc<str> = entry.stream.as_str().trim_start_matches("run/").into();
            let first = self.engine.load_until(&RunId::parse(&run), 1).await;
            let Ok(loaded) = first else { continue };
            let Some(RunEvent::Started { spec, .. }) = loaded.records.first().map(|it| &it.event)
            else {
                continue;
            };
            if spec.team.everyone().any(|it| it.id.as_str() == agent) {
                busy.push(run);
            }
        }
        Ok(busy)
    }
}

fn header(letter: &Letter, now: u64) -> Header {
    let Letter { message, attempt, phase_missed, read, .. } = letter;
    let state = letter.state(now);
    let receipt = read.as_ref().map(|(by, at, event)| Receipt {
        read_by: by.name.clone(),
        at: *at,
        run: by.run.clone(),
        call: by.call.clone(),
        event: *event,
    });
    Header {
        id: message.id.clone(),
        from: message.from.clone(),
        to: message.to.clone(),
        subject: message.draft.subject.clone(),
        bytes: message.draft.body.len(),
        sent_at: message.sent_at,
        state,
        attempt: *attempt,
        hidden: state == State::Pending && !letter.is_visible(now),
        phase_missed: *phase_missed,
        receipt,
    }
}

fn last<T>(mut list: Vec<T>, limit: usize) -> Vec<T> {
    list.split_off(list.len().saturating_sub(limit))
}
