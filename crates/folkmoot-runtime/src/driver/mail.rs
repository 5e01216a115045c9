//! Mail of a run under way (messaging.md §2): lent before a call begins, recorded, then told; done with once
//! the call is answered.
//!
//! A mailbox that cannot be read or written keeps no run from going on: its mail waits.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use folkmoot_core::{
    call::Call,
    event::Event,
    key::Key,
    known::Entry,
    mail::{Delivery, LEASE, Lent, Mailbox, Party, Reading},
    spec::Mail,
    team::AgentId,
};
use tokio::time::Instant;

use super::Driver;

/// When what is lent is asked for longer: well before the lease runs out.
const RENEWAL: Duration = Duration::from_secs(LEASE / 3);

/// What the calls of a run hold of the mailboxes of its agents.
pub(super) struct Lendings {
    by_call: BTreeMap<Key, Lending>,
    renewed: Instant,
}

impl Default for Lendings {
    fn default() -> Lendings {
        Lendings { by_call: BTreeMap::new(), renewed: Instant::now() }
    }
}

/// What a call holds of a mailbox.
pub(super) struct Lending {
    name: Arc<str>,
    lent: Vec<Lent>,
}

impl Lending {
    fn of(by: &Party, readings: &[Reading]) -> Lending {
        Lending { name: by.name.clone(), lent: readings.iter().map(Lent::from).collect() }
    }
}

/// An agent in a run as mailboxes and boards know it. One in a team that is a member acts as that member:
/// nobody outside knows it by another name.
pub(super) fn party(run: &Arc<str>, agent: &AgentId, key: &Key) -> Party {
    let member = agent.as_str().split_once('/').map_or(agent.as_str(), |(member, _)| member);
    Party { name: member.into(), run: Some(run.clone()), call: Some(key.as_str().into()) }
}

impl Driver {
    /// Lends the mail that comes to a call before it begins; gives what is to be recorded of it. What the
    /// limits have no room for waits.
    pub(super) async fn mail_before(&mut self, key: &Key) -> Option<(Event, Lending)> {
        let desk = self.desk.clone()?;
        if !self.run.takes_mail(&self.spec, key) {
            return None;
        }
        let by = self.reader(key)?;
        let due = desk.mail.due(&by).await.ok()?;
        let told = |readings: &[Reading]| readings.iter().map(Delivery::of).collect::<Vec<_>>();
        let fits = |most: &usize| self.run.mailed(&self.spec, key, told(&due[..*most])).is_some();
        let most = (1..=due.len()).rev().find(fits)?;
        let readings = desk.mail.lend(&by, most).await.ok().filter(|it| !it.is_empty())?;
        let lending = Lending::of(&by, &readings);
        let mailed = self.run.mailed(&self.spec, key, told(&readings));
        if mailed.is_none() {
            // Somebody else was faster, and what came instead is longer.
            let back = |mailbox: &Mailbox, now| mailbox.nack_all(now, &lending.lent);
            let _ = desk.mail.settle(&lending.name, back).await;
        }
        Some((mailed?, lending))
    }

    /// Who reads the mail that comes before a call: its agent. That of a member which is a team goes to whoever
    /// of it is asked first.
    fn reader(&self, key: &Key) -> Option<Party> {
        let known = self.run.known();
        let entry = known.get(key.as_str())?;
        let agent = entry.call.agent();
        if let Some((member, _)) = agent.as_str().split_once('/') {
            let is_around = |(turn, it): &(&Key, &Entry)| {
                it.call.is_of_team()
                    && it.call.agent().as_str() == member
                    && key.is_under(&format!("{turn}/"))
            };
            let (turn, _) = known.iter().find(is_around)?;
            let below = format!("{turn}/");
            let asked = known.iter().filter(|(it, _)| it.is_under(&below));
            let asked = asked.filter(|(_, it)| matches!(it.call, Call::Agent { .. }));
            let (first, _) = asked.min_by_key(|(_, it)| it.asked)?;
            if first != key {
                return None;
            }
        }
        Some(party(&self.id.as_arc(), agent, key))
    }

    /// Notes in the mailbox that the log has what was lent to a call.
    pub(super) async fn note_mail(&mut self, key: &Key, lending: Lending) {
        let Some(desk) = self.desk.clone() else { return };
        let record = self.run.known().all_mail().find(|(it, ..)| *it == key).map(|(_, seq, _)| seq);
        if let Some(record) = record {
            let noted = |mailbox: &Mailbox, now| mailbox.delivered(now, &lending.lent, record);
            let _ = desk.mail.settle(&lending.name, noted).await;
        }
        self.lent.by_call.insert(key.clone(), lending);
    }

    /// Is done with the mail of calls that were answered, and gives back that of those that failed.
    pub(super) async fn settle_mail(&mut self) {
        let Some(desk) = self.desk.clone() else { return };
        let known = self.run.known();
        let over = self
            .lent
            .by_call
            .keys()
            .filter_map(|key| Some((key.clone(), known.was_answered(key)?)));
        for (key, is_answered) in over.collect::<Vec<_>>() {
            let Some(Lending { name, lent }) = self.lent.by_call.remove(&key) else { continue };
            let settled = |mailbox: &Mailbox, now| {
                if is_answered { mailbox.ack_all(now, &lent) } else { mailbox.nack_all(now, &lent) }
            };
            let _ = desk.mail.settle(&name, settled).await;
        }
    }

    /// Keeps what calls under way hold.
    pub(super) async fn keep_mail(&mut self) {
        let Some(desk) = self.desk.clone().filter(|_| self.lent.renewed.elapsed() >= RENEWAL)
        else {
            return;
        };
        self.lent.renewed = Instant::now();
        for Lending { name, lent } in self.lent.by_call.values() {
            let _ = desk.mail.settle(name, |mailbox, now| mailbox.extend_all(now, lent)).await;
        }
    }

    /// Takes up what the calls of the run held before it was interrupted. Of what nobody was told any more
    /// that it was answered, the next step is done with.
    pub(super) async fn take_mail_up_again(&mut self) {
        let Some(desk) = self.desk.clone().filter(|_| self.spec.mail == Mail::On) else { return };
        let known = self.run.known();
        let told = known.all_mail().filter_map(|(key, _, mail)| {
            let entry = known.get(key.as_str()).filter(|entry| !entry.inherited)?;
            // What failed was given back, or will come back by itself.
            known.was_answered(key).is_none_or(|it| it).then_some(())?;
            let by = party(&self.id.as_arc(), entry.call.agent(), key);
            Some((key.clone(), by, mail.iter().map(|it| it.id.clone()).collect::<Vec<_>>()))
        });
        for (key, by, ids) in told.collect::<Vec<_>>() {
            let Ok(readings) = desk.mail.lend_again(&by, &ids).await else { continue };
            if !readings.is_empty() {
                self.note_mail(&key, Lending::of(&by, &readings)).await;
            }
        }
    }
}
