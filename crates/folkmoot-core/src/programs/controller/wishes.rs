//! What a controller wants, and what came of it.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Controller, EXCHANGES,
    said::{Piece, Wanted},
};
use crate::{
    call::{Call, Prompt, Reply, Told},
    diagnostic::quoted,
    key::Key,
    scope::{Moment, Scope, Step, Want},
    team::AgentId,
};

/// The longest key, in bytes.
const LONGEST_KEY: usize = 200;

/// All that a controller has wanted so far, by key.
pub(super) struct Wishes<'c> {
    of: &'c Controller,
    cx: &'c Scope<'c>,
    all: BTreeMap<Key, Wish>,
    /// Those that are wanted now.
    current: BTreeSet<Key>,
}

/// A turn that is or was wanted.
struct Wish {
    agent: AgentId,
    prompt: Prompt,
    /// From where in the log on it is wanted.
    since: Moment,
    /// What came of it, once the controller is told.
    reply: Option<Reply>,
}

impl<'c> Wishes<'c> {
    /// None yet.
    pub(super) fn new(of: &'c Controller, cx: &'c Scope<'c>) -> Wishes<'c> {
        Wishes { of, cx, all: BTreeMap::new(), current: BTreeSet::new() }
    }

    /// What came of a wish, if the controller was told.
    pub(super) fn reply(&self, key: &Key) -> Option<&Reply> {
        self.all.get(key)?.reply.as_ref()
    }

    /// All that it was told.
    pub(super) fn replies(&self) -> impl Iterator<Item = &Reply> {
        self.all.values().filter_map(|wish| wish.reply.as_ref())
    }

    /// Takes in what is wanted from `since` on; gives its keys, or why it cannot be wanted.
    pub(super) fn take(&mut self, wanted: Vec<Wanted>, since: Moment) -> Result<Vec<Key>, String> {
        let (mut keys, mut seen) = (Vec::new(), BTreeSet::new());
        for Wanted { key, agent, prompt } in wanted {
            let key = self.key(&key)?;
            if !seen.insert(key.clone()) {
                return Err(format!("key {} is wanted twice", quoted(key.as_str())));
            }
            let (agent, prompt) = (self.agent(&key, &agent)?, self.prompt(&key, &prompt)?);
            if let Some(wish) = self.all.get_mut(&key) {
                if !self.current.contains(&key) {
                    wish.since = since;
                }
                if (&wish.agent, &wish.prompt) != (&agent, &prompt) {
                    let key = quoted(key.as_str());
                    return Err(format!(
                        "key {key} is wanted otherwise than before; want something else under another key"
                    ));
                }
            } else {
                self.all.insert(key.clone(), Wish { agent, prompt, since, reply: None });
            }
            keys.push(key);
        }
        self.current = seen;
        Ok(keys)
    }

    fn key(&self, text: &str) -> Result<Key, String> {
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
        let is_segment = |segment: &str| !segment.is_empty() && segment.chars().all(is_part);
        let named = quoted(text);
        if text.len() > LONGEST_KEY || !text.split('/').all(is_segment) {
            return Err(format!(
                "key {named} is no name of a call: it is made of letters, digits, hyphens, underscores \
                 and dots, with slashes between, and has at most {LONGEST_KEY} bytes"
            ));
        }
        let head = text.split('/').next();
        if head == Some(EXCHANGES) {
            return Err(format!(
                "key {named} is taken: what begins with {EXCHANGES}/ are exchanges"
            ));
        }
        if let Some(other) = self.relative(text) {
            return Err(format!("key {named} and key {} lie one in the other", quoted(other)));
        }
        Ok(Key::parse(text))
    }

    /// A key within which this one would lie, or that would lie within it: a turn with tools has keys
    /// below its own.
    fn relative(&self, text: &str) -> Option<&str> {
        let mut slashes = text.match_indices('/').map(|(at, _)| &text[..at]);
        let above = slashes.find_map(|above| self.all.get_key_value(above));
        let begin = format!("{text}/");
        let mut behind = self.all.range(Key::parse(&begin)..);
        let below = behind.next().filter(|(key, _)| key.is_under(&begin));
        above.or(below).map(|(key, _)| key.as_str())
    }

    fn agent(&self, key: &Key, name: &str) -> Result<AgentId, String> {
        let found = self.cx.spec().team.find(name).map(|agent| &agent.id);
        found.filter(|agent| self.of.agents.contains(agent)).cloned().ok_or_else(|| {
            let agents: Vec<&str> = self.of.agents.iter().map(AgentId::as_str).collect();
            let (key, name) = (quoted(key.as_str()), quoted(name));
            format!("key {key} is wanted of {name}, who is no agent; agents: {}", agents.join(", "))
        })
    }

    fn prompt(&self, key: &Key, pieces: &[Piece]) -> Result<Prompt, String> {
        let key = quoted(key.as_str());
        let mut prompt = Prompt::default();
        for piece in pieces {
            prompt = match piece {
                Piece::Text(text) => prompt.say(&**text),
                Piece::Quote(source) => {
                    let reply = self.all.get(&**source).and_then(|wish| wish.reply.as_ref());
                    let reply = reply.ok_or_else(|| {
                        let source = quoted(source);
                        format!("key {key} quotes {source}, which is not known; quote what it was told of")
                    })?;
                    prompt.quote(reply)
                }
            };
        }
        if prompt.parts.is_empty() {
            return Err(format!(
                "key {key} asks nothing: its prompt is empty, or quotes only what failed or is blank"
            ));
        }
        Ok(prompt)
    }

    /// Asks for what is wanted and not told yet. Gives what `exchange` is to tell of it, and what is
    /// waited for.
    ///
    /// What an exchange told before stands in its call, so that what has come since changes nothing
    /// about it.
    pub(super) fn news(&mut self, wanted: &[Key], exchange: &Key) -> (Vec<Told>, Vec<Want>) {
        let (steps, waiting) = self.cx.tentatively(|| self.ask(wanted));
        let mut settled: Vec<(Key, Reply, Moment)> = Vec::new();
        for (key, step, moment) in steps {
            settled.extend(step.ok().map(|reply| (key, reply, moment)));
        }
        settled.sort_by_key(|(.., moment)| *moment);
        if let Some(Call::Exchange { told, .. }) = self.cx.asked(exchange) {
            let place = |key: &Key| told.iter().position(|it| it.key == *key);
            let count = settled.iter().filter(|(key, ..)| place(key).is_some()).count();
            if count == told.len() {
                settled.retain(|(key, ..)| place(key).is_some());
                settled.sort_by_key(|(key, ..)| place(key));
            }
        }
        let mut news = Vec::new();
        for (key, reply, moment) in settled {
            self.cx.go_to(self.cx.moment().max(moment));
            news.push(Told {
                key: key.clone(),
                reply: (reply.key != key).then(|| reply.key.clone()),
                fault: reply.fault().cloned(),
            });
            if let Some(wish) = self.all.get_mut(&key) {
                wish.reply = Some(reply);
            }
        }
        (news, waiting)
    }

    fn ask(&self, wanted: &[Key]) -> Vec<(Key, Step<Reply>, Moment)> {
        let here = self.cx.moment();
        let untold = wanted.iter().filter_map(|key| Some((key, self.all.get(key)?)));
        let untold = untold.filter(|(_, wish)| wish.reply.is_none());
        let steps = untold.map(|(key, wish)| {
            let (step, moment) = self.cx.branch(wish.since, || {
                let (above, name) = key.as_str().rsplit_once('/').unwrap_or(("", key.as_str()));
                let segments = above.split('/').filter(|segment| !segment.is_empty());
                let place = segments.fold(self.cx.clone(), |place, segment| place.at(segment));
                self.of.clocks.phase(&place).ask(name, &wish.agent, wish.prompt.clone())
            });
            (key.clone(), step, moment.max(here))
        });
        let steps = steps.collect();
        self.cx.go_to(here);
        steps
    }
}
