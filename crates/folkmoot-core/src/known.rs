//! What the log tells about the calls of a run.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    call::{Call, Fault, Outcome, Part, Prompt, Reply, Usage},
    event::Reservation,
    key::Key,
    mail::Delivery,
    time::Time,
};

/// The calls of a run so far: all that a program may know of the world.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Known {
    calls: BTreeMap<Key, Entry>,
    /// The open ones by the record in which they were asked.
    open: BTreeMap<u64, Key>,
    /// What was asked anew under the same key, after an answer it was made from had changed.
    replaced: Vec<(Key, Entry)>,
    /// What a person added to what is asked, by call.
    words: BTreeMap<Key, Arc<str>>,
    /// The mail that came before calls began, by call, with the record that tells of it.
    mail: BTreeMap<Key, (u64, Vec<Delivery>)>,
    /// Where an answer or a prompt was last changed, or an answer taken over; nothing asked later can
    /// be stale.
    pub(crate) amended: u64,
}

/// One call, as far as it has come.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// What was asked.
    pub call: Call,
    /// What came; nothing yet while it is open.
    pub outcome: Option<Outcome>,
    /// Whether it was never started.
    pub refused: bool,
    /// Whether it was taken over from the run this one was forked from.
    pub inherited: bool,
    /// Whether it was called off.
    pub withdrawn: bool,
    /// The current attempt, from 1; higher after a crash left an earlier one open, or after the key
    /// was asked anew.
    pub attempt: u32,
    /// Its number among its agent's calls, from 1; 0 if it was refused.
    pub nth: u64,
    /// The record in which it was asked, and in which it was settled.
    pub asked: u64,
    /// See `asked`; 0 while it is open.
    pub settled: u64,
    /// When it was asked.
    pub asked_at: Time,
    /// When it was settled.
    pub settled_at: Time,
    /// When it counts as timed out.
    pub expires: Option<Time>,
    /// What is reserved for it.
    pub reserved: Option<Reservation>,
    /// The parts of the run whose limits it counts against.
    pub scopes: Vec<Key>,
    /// What its attempts used, the current one last; none if it was never started by this run, or is
    /// for a person.
    pub usages: Vec<Usage>,
}

impl Entry {
    /// Whether the world still owes an answer.
    pub fn is_open(&self) -> bool {
        self.outcome.is_none()
    }

    /// Whether this run started it and pays for it.
    pub fn is_charged(&self) -> bool {
        !self.usages.is_empty()
    }

    /// Whether a crash left an earlier attempt open.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.usages.len() > 1
    }

    /// What the current attempt used.
    pub(crate) fn usage(&self) -> Usage {
        self.usages.last().copied().unwrap_or_default()
    }

    /// Where the usage of `attempt` stands, if it was one of this call's.
    fn position(&self, attempt: u32) -> Option<usize> {
        let later = self.attempt.checked_sub(attempt)? as usize;
        self.usages.len().checked_sub(later + 1)
    }

    /// The fault, if it failed, was refused or withdrawn.
    pub fn fault(&self) -> Option<&Fault> {
        self.outcome.as_ref()?.as_ref().err()
    }
}

impl Known {
    /// The call named `key`.
    pub fn get(&self, key: &str) -> Option<&Entry> {
        self.calls.get(key)
    }

    /// The same with its name as the log has it.
    pub(crate) fn named(&self, key: &Key) -> Option<(&Key, &Entry)> {
        self.calls.get_key_value(key)
    }

    /// All calls by key.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &Entry)> + Clone {
        self.calls.iter()
    }

    /// All that this run started and pays for, also what was later asked anew.
    pub fn charged(&self) -> impl Iterator<Item = &Entry> {
        let replaced = self.replaced.iter().map(|(_, entry)| entry);
        self.calls.values().chain(replaced).filter(|entry| entry.is_charged())
    }

    /// The calls below the turn `key`.
    pub(crate) fn below(&self, key: &Key) -> impl Iterator<Item = (&Key, &Entry)> {
        let below = Key::parse(&format!("{key}/"));
        let nested = self.calls.range(below.clone()..);
        nested.take_while(move |(it, _)| it.is_under(below.as_str()))
    }

    /// The calls of the turn `key`: the one of that name, and those below it.
    pub(crate) fn turn(&self, key: &Key) -> Vec<&Entry> {
        let nested = self.below(key).map(|(_, entry)| entry);
        self.calls.get(key).into_iter().chain(nested).collect()
    }

    /// All calls in the order of asking.
    pub fn in_order(&self) -> Vec<(&Key, &Entry)> {
        let mut calls: Vec<(&Key, &Entry)> = self.calls.iter().collect();
        calls.sort_by_key(|(_, entry)| entry.asked);
        calls
    }

    /// The calls the world still owes an answer to, in the order of asking.
    pub fn open(&self) -> impl Iterator<Item = (&Key, &Entry)> {
        self.open.values().filter_map(|key| self.calls.get_key_value(key))
    }

    /// The questions that a person is to answer, in the order of asking.
    pub fn questions(&self) -> impl Iterator<Item = (&Key, &Entry)> {
        self.open().filter(|(_, entry)| entry.call.is_for_person())
    }

    /// How many calls have no answer yet.
    pub fn open_count(&self) -> usize {
        self.open.len()
    }

    /// What became of `key`, as a reply that prompts can quote.
    pub fn reply(&self, key: &Key) -> Option<Reply> {
        let entry = self.calls.get(key)?;
        let outcome = entry.outcome.clone()?;
        Some(Reply { key: key.clone(), agent: entry.call.agent().clone(), outcome })
    }

    /// The text that was answered to `key`.
    pub fn text(&self, key: &Key) -> Option<&Arc<str>> {
        let answer = self.calls.get(key)?.outcome.as_ref()?.as_ref().ok()?;
        Some(&answer.text)
    }

    /// The calls that were made from the answer to `key`, directly or through others, in the order of
    /// asking: if that answer changes, they are asked again.
    pub fn made_from(&self, key: &Key) -> Vec<&Key> {
        let mut made: Vec<&Key> = Vec::new();
        for (name, entry) in self.in_order() {
            if entry.call.sources().any(|source| source == key || made.contains(&source)) {
                made.push(name);
            }
        }
        made
    }

    /// What a person added to what is asked, by call.
    pub fn words(&self) -> impl Iterator<Item = (&Key, &Arc<str>)> {
        self.words.iter()
    }

    /// What `key` is asked, with what a person added to it and the mail that came before it began; a later
    /// target is asked what the first one was.
    pub(crate) fn worded(&self, key: &Key, call: Call) -> Call {
        if self.words.is_empty() && self.mail.is_empty() {
            return call;
        }
        match call {
            Call::Agent { agent, target, prompt } => {
                let first = key.as_str().strip_suffix(&format!("/target-{target}"));
                let words = self.words.get(key).or_else(|| self.words.get(first?));
                let prompt = words.into_iter().fold(prompt, |prompt, it| prompt.say(it.clone()));
                let named = |key: &str| self.mail.get_key_value(key).map(|(key, _)| key);
                let mailed = named(key.as_str()).or_else(|| named(first?));
                let prompt = mailed.into_iter().fold(prompt, mailed_to);
                Call::Agent { agent, target, prompt }
            }
            Call::Team { agent, prompt } => {
                let words = self.words.get(key);
                let prompt = words.into_iter().fold(prompt, |prompt, it| prompt.say(it.clone()));
                Call::Team { agent, prompt }
            }
            call @ (Call::Tool { .. }
            | Call::Person { .. }
            | Call::Gate { .. }
            | Call::Exchange { .. }
            | Call::Listing { .. }) => call,
        }
    }

    /// The mail that came before `key` began.
    pub fn mail(&self, key: &Key) -> &[Delivery] {
        self.mail.get(key).map_or(&[], |(_, mail)| mail)
    }

    /// All the mail that came, by the call before which it did, with the number of the record that tells
    /// of it.
    pub fn all_mail(&self) -> impl Iterator<Item = (&Key, u64, &[Delivery])> {
        self.mail.iter().map(|(key, (seq, mail))| (key, *seq, mail.as_slice()))
    }

    /// Adds mail to what `key` is asked; a call that is over takes none, which false tells.
    pub(crate) fn add_mail(&mut self, key: &Key, mail: &[Delivery], seq: u64) -> bool {
        let is_first = !self.mail.contains_key(key);
        match self.calls.get_mut(key) {
            Some(Entry { call: Call::Agent { prompt, .. }, outcome: None, .. }) if is_first => {
                prompt.parts.push(Part::Mail(key.clone()));
            }
            Some(Entry { call: Call::Agent { .. }, outcome: None, .. }) | None => {}
            Some(_) => return false,
        }
        let (at, all) = self.mail.entry(key.clone()).or_default();
        *at = seq;
        all.extend(mail.iter().cloned());
        true
    }

    /// Whether `key`, or a later target in its place, was answered; none while one of them is open.
    pub fn was_answered(&self, key: &Key) -> Option<bool> {
        let is_open = |it: &Entry| it.is_open();
        let below = Key::parse(&format!("{key}/target-"));
        let later = self.calls.range(below.clone()..);
        let later = later.take_while(|(it, _)| it.as_str().starts_with(below.as_str()));
        let asked: Vec<&Entry> =
            self.calls.get(key).into_iter().chain(later.map(|(_, entry)| entry)).collect();
        let is_answered = asked.iter().any(|it| matches!(it.outcome, Some(Ok(_))));
        (is_answered || !asked.iter().any(|it| is_open(it))).then_some(is_answered)
    }

    /// Whether a later target answered in place of `key`.
    pub(crate) fn is_rescued(&self, key: &Key) -> bool {
        let below = Key::parse(&format!("{key}/target-"));
        let rescues = self.calls.range(below.clone()..);
        let mut rescues = rescues.take_while(|(it, _)| it.as_str().starts_with(below.as_str()));
        rescues.any(|(_, entry)| matches!(entry.outcome, Some(Ok(_))))
    }

    /// Adds words to what `key` is asked, in place of those added before.
    pub(crate) fn add_words(&mut self, key: Key, words: Arc<str>) {
        self.words.insert(key, words);
    }

    /// The entry for `key` if it still fits: the same question, and nothing it was made from is newer.
    pub(crate) fn fitting(&self, key: &Key, call: &Call) -> Option<&Entry> {
        let entry = self.calls.get(key)?;
        let is_fresh = |source: &Key| {
            self.calls.get(source).is_some_and(|source| source.settled <= entry.asked)
        };
        let fits =
            entry.call == *call && (entry.asked > self.amended || call.sources().all(is_fresh));
        fits.then_some(entry)
    }

    pub(crate) fn insert(&mut self, key: Key, entry: Entry) {
        if entry.is_open() {
            self.open.insert(entry.asked, key.clone());
        }
        if let Some(replaced) = self.calls.insert(key.clone(), entry) {
            self.open.remove(&replaced.asked);
            self.replaced.push((key, replaced));
        }
    }

    /// The number that the next attempt under `key` has.
    pub(crate) fn next_attempt(&self, key: &Key) -> u32 {
        let earlier = self.calls.get(key);
        earlier.map_or(1, |it| if it.is_charged() { it.attempt + 1 } else { it.attempt })
    }

    /// Books what `attempt` of `key` used; gives its call and what had been booked before.
    pub(crate) fn book(
        &mut self,
        key: &Key,
        attempt: u32,
        usage: Usage,
    ) -> Option<(&Entry, Usage)> {
        let replaced = self.replaced.iter_mut().filter(|(it, _)| it == key);
        let mut entries = self.calls.get_mut(key).into_iter().chain(replaced.map(|(_, it)| it));
        let (at, entry) = entries.find_map(|entry| Some((entry.position(attempt)?, entry)))?;
        let earlier = std::mem::replace(&mut entry.usages[at], usage);
        Some((entry, earlier))
    }

    /// Settles an open call; gives its entry if it was open.
    pub(crate) fn settle(
        &mut self,
        key: &Key,
        outcome: Outcome,
        seq: u64,
        at: Time,
    ) -> Option<&mut Entry> {
        let entry = self.calls.get_mut(key).filter(|entry| entry.is_open())?;
        self.open.remove(&entry.asked);
        entry.outcome = Some(outcome);
        (entry.settled, entry.settled_at) = (seq, at);
        Some(entry)
    }

    /// Lets the turns of teams that `key` was part of go on: what they came to may no longer hold.
    pub(crate) fn reopen_around(&mut self, key: &Key) {
        let ends = key.as_str().match_indices('/').map(|(at, _)| &key.as_str()[..at]);
        let around = ends.filter_map(|it| Some(self.calls.get_key_value(it)?.0.clone()));
        let around: Vec<Key> = around.collect();
        for key in around {
            let Some(entry) = self.calls.get_mut(&key) else { continue };
            let is_begun = entry.call.is_of_team() && !entry.refused;
            if is_begun && entry.outcome.take().is_some() {
                (entry.settled, entry.expires) = (0, None);
                (entry.inherited, entry.withdrawn) = (false, false);
                self.open.insert(entry.asked, key);
            }
        }
    }

    pub(crate) fn get_mut(&mut self, key: &Key) -> Option<&mut Entry> {
        self.calls.get_mut(key)
    }

    /// Begins another attempt of everything open.
    pub(crate) fn retry_open(&mut self) {
        for key in self.open.values() {
            // A question to a person is the same one after a restart (rules.md 8.1).
            let entry = self.calls.get_mut(key).filter(|entry| entry.call.is_performed());
            if let Some(entry) = entry {
                entry.attempt += 1;
                entry.usages.push(Usage::default());
            }
        }
    }
}

/// A prompt that quotes the mail that came before `key` began.
fn mailed_to(mut prompt: Prompt, key: &Key) -> Prompt {
    prompt.parts.push(Part::Mail(key.clone()));
    prompt
}
