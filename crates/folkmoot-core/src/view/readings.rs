//! Why an agent said what it said: the texts that a call had read, each with its author.

use std::collections::BTreeSet;

use serde::Serialize;

use super::USER;
use crate::{
    call::{Call, Part, Prompt},
    key::Key,
    known::{Entry, Known},
    render,
    run::Run,
    spec::Spec,
    tools,
};

/// What a call had before it.
#[derive(Clone, Debug, Serialize)]
pub struct Readings {
    /// The call.
    pub key: Key,
    /// Who was asked, or on whose behalf a tool was used.
    pub agent: String,
    /// The texts, in the order in which they were put before it.
    pub reads: Vec<Reading>,
    /// Every earlier call whose answer came to it, also through others, in the order of asking.
    pub behind: Vec<Key>,
}

/// One text that a call had read.
#[derive(Clone, Debug, Serialize)]
pub struct Reading {
    /// How it came: `prompt`, `task`, `instruction`, `own`, `reply`, `result`, `memory`, `findings`,
    /// `mail`, `told` or `wish`.
    pub part: &'static str,
    /// Who wrote it: an agent, a tool, `user`, the `team file`, or `folkmoot`; all senders of mail.
    pub author: String,
    /// The call whose answer it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Key>,
    /// Where a tool had it from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The request that first put it before the agent.
    pub since: Key,
    /// The text, as it was put.
    pub text: String,
}

/// What the call named `key` had read, if there is one.
pub fn readings(spec: &Spec, run: &Run, key: &str) -> Option<Readings> {
    let known = run.known();
    let (key, entry) = known.iter().find(|(it, _)| it.as_str() == key)?;
    let reader = Reader { spec, known, key };
    let (reads, sources) = match &entry.call {
        Call::Agent { prompt, .. } => {
            let system = render::system(spec, spec.team.agent(entry.call.agent()));
            let mut reads = vec![reader.reading("prompt", TEAM_FILE, None, system)];
            reads.extend(reader.prompt(prompt));
            reads[0].since = reads.get(1).map_or(key, |it| &it.since).clone();
            (reads, entry.call.sources().collect())
        }
        Call::Team { prompt, .. } | Call::Person { prompt, .. } => {
            (reader.prompt(prompt), entry.call.sources().collect())
        }
        Call::Tool { request, .. } => {
            let wish = reader.wish(&request.id);
            let wished = wish.iter().map(|(from, _)| *from).collect();
            let arguments = request.arguments.to_string();
            let told = wish.map(|(from, entry)| {
                reader.reading("wish", &reader.author(entry), Some(from), arguments)
            });
            (told.into_iter().collect(), wished)
        }
        Call::Gate { of, .. } => (vec![reader.answer("reply", of)], vec![of]),
        Call::Exchange { .. } => {
            let sources: Vec<&Key> = entry.call.sources().collect();
            (sources.iter().map(|it| reader.answer("reply", it)).collect(), sources)
        }
        // A server is asked the same whatever was said before.
        Call::Listing { .. } => (Vec::new(), Vec::new()),
    };
    let agent = spec.team.agent(entry.call.agent()).name.to_string();
    let behind = reader.behind(sources);
    Some(Readings { key: key.clone(), agent, reads, behind })
}

const TEAM_FILE: &str = "team file";
const FOLKMOOT: &str = "folkmoot";

struct Reader<'a> {
    spec: &'a Spec,
    known: &'a Known,
    key: &'a Key,
}

impl<'a> Reader<'a> {
    /// What stands in a request and in those it continues, oldest first.
    fn prompt(&self, prompt: &'a Prompt) -> Vec<Reading> {
        let mut requests = vec![(self.key, prompt)];
        while let Some(before) = requests.last().and_then(|(_, prompt)| self.continued(prompt)) {
            requests.push(before);
        }
        let request = |(key, prompt): (&'a Key, &'a Prompt)| {
            let own = prompt.continues.iter().map(|own| self.answer("own", own));
            let parts = prompt.parts.iter().map(|part| self.part(part));
            own.chain(parts).map(|it| Reading { since: key.clone(), ..it }).collect::<Vec<_>>()
        };
        requests.into_iter().rev().flat_map(request).collect()
    }

    fn continued(&self, prompt: &Prompt) -> Option<(&'a Key, &'a Prompt)> {
        let (key, entry) = self.known.named(prompt.continues.as_ref()?)?;
        match &entry.call {
            Call::Agent { prompt, .. } | Call::Team { prompt, .. } => Some((key, prompt)),
            Call::Tool { .. }
            | Call::Person { .. }
            | Call::Gate { .. }
            | Call::Exchange { .. }
            | Call::Listing { .. } => None,
        }
    }

    fn part(&self, part: &Part) -> Reading {
        let text = render::part(self.spec, self.known, part);
        let folkmoots = |part| self.reading(part, FOLKMOOT, None, text.clone());
        let answers = |part, key| Reading { text: text.clone(), ..self.answer(part, key) };
        match part {
            Part::Task => self.reading("task", USER, None, text),
            Part::Say(_) => folkmoots("instruction"),
            Part::Told { .. } => folkmoots("told"),
            Part::Own(key) => answers("own", key),
            Part::Quote(key) | Part::Handed { key, .. } | Part::Returned { key, .. } => {
                answers("reply", key)
            }
            Part::Result(key) => answers("result", key),
            Part::Findings(key) => answers("findings", key),
            // The last of them wrote the summary; each entry of the lists names its own role.
            Part::Memory(keys) => match keys.last() {
                Some(key) => answers("memory", key),
                None => folkmoots("memory"),
            },
            Part::Board { .. } => folkmoots("board"),
            // Each message names its sender in a frame of its own.
            Part::Mail(key) => {
                let mut senders: Vec<&str> =
                    self.known.mail(key).iter().map(|it| &*it.from).collect();
                senders.dedup();
                self.reading("mail", &senders.join(", "), None, text)
            }
        }
    }

    /// The answer to `key`, whoever gave it.
    fn answer(&self, part: &'static str, key: &Key) -> Reading {
        let text = self.known.text(key).map(ToString::to_string).unwrap_or_default();
        let Some((key, entry)) = self.known.named(key) else {
            return self.reading(part, FOLKMOOT, Some(key), text);
        };
        let source = match &entry.call {
            Call::Tool { request, .. } => tools::source(request),
            Call::Gate { gate, .. } => Some(gate.to_string()),
            Call::Agent { .. }
            | Call::Team { .. }
            | Call::Person { .. }
            | Call::Exchange { .. }
            | Call::Listing { .. } => None,
        };
        Reading { source, ..self.reading(part, &self.author(entry), Some(key), text) }
    }

    /// Who wrote the answer to a call.
    fn author(&self, entry: &Entry) -> String {
        match &entry.call {
            Call::Person { .. } => USER.to_owned(),
            Call::Tool { request, .. } => request.name.to_string(),
            Call::Gate { .. } => FOLKMOOT.to_owned(),
            Call::Listing { server, .. } => format!("mcp.{server}"),
            Call::Agent { agent, .. } | Call::Team { agent, .. } | Call::Exchange { agent, .. } => {
                self.spec.team.agent(agent).name.to_string()
            }
        }
    }

    fn reading(
        &self,
        part: &'static str,
        author: &str,
        from: Option<&Key>,
        text: String,
    ) -> Reading {
        let (author, from, since) = (author.to_owned(), from.cloned(), self.key.clone());
        Reading { part, author, from, source: None, since, text }
    }

    /// The reply of the same turn that wanted this tool call.
    fn wish(&self, id: &str) -> Option<(&'a Key, &'a Entry)> {
        let (turn, _) = self.key.as_str().rsplit_once('/')?;
        let asked = self.known.named(self.key)?.1.asked;
        let before = self.known.in_order().into_iter().rev().filter(|(_, it)| it.asked < asked);
        let mut replies = before.filter(|(key, _)| key.is_under(&format!("{turn}/")));
        replies.find(|(_, entry)| match &entry.outcome {
            Some(Ok(answer)) => answer.tool_calls.iter().any(|call| &*call.id == id),
            Some(Err(_)) | None => false,
        })
    }

    /// All that these answers were made from, and they.
    fn behind(&self, sources: Vec<&Key>) -> Vec<Key> {
        let mut open = sources;
        let mut behind = BTreeSet::new();
        while let Some(key) = open.pop() {
            let Some((key, entry)) = self.known.named(key) else { continue };
            if !behind.insert((entry.asked, key)) {
                continue;
            }
            open.extend(entry.call.sources());
            if let Call::Tool { request, .. } = &entry.call {
                let reader = Reader { key, ..*self };
                open.extend(reader.wish(&request.id).map(|(key, _)| key));
            }
        }
        behind.into_iter().map(|(_, key)| key.clone()).collect()
    }
}
