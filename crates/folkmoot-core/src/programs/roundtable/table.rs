//! The board of a round table, as replies make it, and how a reply is read.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

use crate::{
    board::{Board, Change, Post, What},
    call::{Answer, Call, Part},
    key::Key,
    known::Known,
    team::{AgentId, Team},
    time::Time,
    verdict::Object,
};

/// The topic of a reply that is plain text.
const NOTE: &str = "note";

/// A board, and what it did not take.
pub(crate) struct Table {
    board: Board,
    max_posts: u64,
    lost: Vec<Lost>,
}

/// Something that an agent tried to put on the board in vain.
pub(crate) struct Lost {
    pub(crate) author: AgentId,
    /// The number of the reply that held it, from 0.
    pub(crate) reply: usize,
    pub(crate) why: String,
}

/// What a reply came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Something,
    Pass,
    /// Neither; it counts as failed.
    Nothing,
}

impl Table {
    pub(crate) fn new(max_posts: u64) -> Table {
        Table { board: Board::default(), max_posts, lost: Vec::new() }
    }

    /// The table as these replies make it, in this order.
    pub(crate) fn of(known: &Known, team: &Team, replies: &[Key], max_posts: u64) -> Table {
        let mut table = Table::new(max_posts);
        for (n, key) in replies.iter().enumerate() {
            let Some(entry) = known.get(key.as_str()) else { continue };
            let Some(Ok(answer)) = &entry.outcome else { continue };
            let agent = entry.call.agent();
            let before = table.lost.len();
            table.put(agent, &team.agent(agent).name, answer, entry.settled_at);
            table.lost[before..].iter_mut().for_each(|lost| lost.reply = n);
        }
        table
    }

    pub(crate) fn board(&self) -> &Board {
        &self.board
    }

    pub(crate) fn lost(&self) -> &[Lost] {
        &self.lost
    }

    pub(super) fn is_full(&self) -> bool {
        self.board.entries().len() as u64 >= self.max_posts
    }

    pub(super) fn is_empty(&self) -> bool {
        self.board.version() == 0
    }

    /// Puts on the board what a reply says.
    pub(crate) fn put(&mut self, agent: &AgentId, name: &str, answer: &Answer, at: Time) -> Said {
        let Some((posts, cells)) = read(answer) else {
            return if passes(answer) { Said::Pass } else { Said::Nothing };
        };
        let author: Arc<str> = name.into();
        let (run, call) = (None, None);
        let change = |what| Change {
            at: at.0,
            author: author.clone(),
            run: run.clone(),
            call: call.clone(),
            what,
        };
        for post in posts {
            if self.is_full() {
                break;
            }
            match self.board.post(&post) {
                Ok(()) => self.board.apply(change(What::Posted(post))),
                Err(why) => self.lose(agent, format!("entry: {why}")),
            }
        }
        for Write { key, expect, value } in cells {
            match self.board.set(&key, &value, expect) {
                Ok(()) => self.board.apply(change(What::Set { key, value })),
                Err(why) => self.lose(agent, why.to_string()),
            }
        }
        Said::Something
    }

    fn lose(&mut self, author: &AgentId, why: String) {
        self.lost.push(Lost { author: author.clone(), reply: 0, why });
    }

    /// The cells and the last entry of each topic, the topics in the order in which they came up.
    pub(super) fn told(&self) -> String {
        let cells = self.board.cells().map(|cell| format!("{}: {}", cell.key, plain(&cell.value)));
        let cells: Vec<String> = cells.collect();
        let mut topics: Vec<&Post> = Vec::new();
        let mut places = BTreeMap::new();
        for entry in self.board.entries() {
            let at = *places.entry(&entry.post.topic).or_insert(topics.len());
            if at == topics.len() {
                topics.push(&entry.post);
            } else {
                topics[at] = &entry.post;
            }
        }
        let topics = topics.into_iter().map(|post| format!("{}:\n{}", post.topic, post.text));
        let cells = Some(cells.join("\n")).filter(|it| !it.is_empty());
        cells.into_iter().chain(topics).collect::<Vec<_>>().join("\n\n")
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The replies that had made the board when the turn `key` was asked, oldest first.
pub(crate) fn before(known: &Known, key: Option<&Key>) -> Vec<Key> {
    let (mut parts, mut next, mut asked) = (Vec::new(), key, u64::MAX);
    while let Some(entry) = next.and_then(|key| known.get(key.as_str())) {
        // Each was asked before the other; a log that says otherwise leads nowhere.
        let (Call::Team { prompt, .. } | Call::Agent { prompt, .. }) = &entry.call else { break };
        if entry.asked >= asked {
            break;
        }
        asked = entry.asked;
        next = match prompt.parts.iter().find_map(Part::board) {
            Some((since, replies)) => {
                parts.push(replies);
                since
            }
            None => prompt.continues.as_ref(),
        };
    }
    parts.into_iter().rev().flatten().cloned().collect()
}

/// A wish to set a cell.
struct Write {
    key: Arc<str>,
    expect: u64,
    value: Value,
}

/// What a reply wants to put on the board: what its object lists, else the text itself.
fn read(answer: &Answer) -> Option<(Vec<Post>, Vec<Write>)> {
    if answer.is_blank() || passes(answer) {
        return None;
    }
    match object(answer).map(|object| listed(&object)) {
        Some(Some((posts, cells))) if posts.is_empty() && cells.is_empty() => None,
        Some(Some(listed)) => Some(listed),
        Some(None) | None => {
            let (topic, text) = (NOTE.into(), answer.text.clone());
            Some((vec![Post { topic, text, refs: Vec::new() }], Vec::new()))
        }
    }
}

fn object(answer: &Answer) -> Option<Object> {
    let found = ["posts", "cells"].map(|key| Object::find(answer, key).ok().flatten());
    found
        .into_iter()
        .flatten()
        .find(|it| ["posts", "cells"].iter().any(|key| it.get(key).is_some()))
}

/// What an object lists, if all of it has the right form.
fn listed(object: &Object) -> Option<(Vec<Post>, Vec<Write>)> {
    let list = |key: &str| match object.get(key) {
        None => Some(&[][..]),
        Some(value) => value.as_array().map(Vec::as_slice),
    };
    let text = |value: &Value, key: &str| Some(Arc::from(value.get(key)?.as_str()?));
    let refs = |value: &Value| match value.get("refs") {
        None | Some(Value::Null) => Some(Vec::new()),
        Some(refs) => refs.as_array()?.iter().map(|it| Some(Arc::from(it.as_str()?))).collect(),
    };
    let post = |value: &Value| {
        Some(Post { topic: text(value, "topic")?, text: text(value, "text")?, refs: refs(value)? })
    };
    let write = |value: &Value| {
        let expect = value.get("expect").map_or(Some(0), Value::as_u64)?;
        Some(Write { key: text(value, "key")?, expect, value: value.get("value")?.clone() })
    };
    let posts = list("posts")?.iter().map(post).collect::<Option<_>>()?;
    Some((posts, list("cells")?.iter().map(write).collect::<Option<_>>()?))
}

/// Whether a reply is nothing but a pass.
fn passes(answer: &Answer) -> bool {
    if answer.json.is_none() {
        let word = answer.text.trim_matches(|c: char| !c.is_alphanumeric());
        if word.eq_ignore_ascii_case("pass") {
            return true;
        }
    }
    let Ok(Some(object)) = Object::find(answer, "pass") else { return false };
    let is_empty = |key| object.get(key).is_none_or(|it| it.as_array().is_some_and(Vec::is_empty));
    object.get("pass") == Some(&Value::Bool(true)) && is_empty("posts") && is_empty("cells")
}
