//! What reviewers found over the rounds of a loop, and what became of it (convergence.md §1).
//!
//! The ledger is a fold of the reports in the order of the log. It knows nothing of graphs, prompts or
//! time: whoever reviews in rounds can keep one.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, LazyLock},
};

use regex::Regex;
use serde_json::{Value, json};
use unicode_normalization::UnicodeNormalization;

use crate::{
    text::is_invisible,
    verdict::{Report, Severity},
};

/// How much of a text tells findings apart, in characters of its folded form.
const TELLING: usize = 2000;

/// How many findings a ledger holds; what goes beyond is not taken in.
pub const MOST: usize = 1000;

/// How a finding stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It was seen in the latest report for the first time.
    New,
    /// It was seen before and is still there.
    Open,
    /// It is no longer there.
    Fixed,
    /// It had been fixed and has come back.
    Reopened,
}

impl State {
    /// Its word in records and prompts.
    pub fn as_str(self) -> &'static str {
        match self {
            State::New => "new",
            State::Open => "open",
            State::Fixed => "fixed",
            State::Reopened => "reopened",
        }
    }

    /// Whether something is left to be done about it.
    pub fn is_open(self) -> bool {
        match self {
            State::New | State::Open | State::Reopened => true,
            State::Fixed => false,
        }
    }
}

/// Why a loop need not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// Nothing material is open.
    NoMaterialFindings,
    /// Something was fixed and came back, twice.
    Oscillation,
    /// The number of open material findings does not fall.
    Plateau,
}

/// Who reports: a name that tells reviewers apart, and the loop whose rounds they close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct By<'a> {
    /// The reviewer.
    pub reviewer: &'a str,
    /// The loop.
    pub of_loop: usize,
}

/// One finding over all rounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its number in order of first sight, from 1.
    pub number: usize,
    /// How bad it is, by the latest report of it.
    pub severity: Severity,
    /// Where it is, as first reported.
    pub place: Arc<str>,
    /// What it is, as first reported.
    pub text: Arc<str>,
    /// The round of its first sight.
    pub opened: u32,
    /// How it stands.
    pub state: State,
    /// Its states, and the round in which each began.
    pub history: Vec<(u32, State)>,
    reviewer: Arc<str>,
    of_loop: usize,
    identity: Identity,
}

impl Entry {
    /// The name by which reports refer to it.
    pub fn id(&self) -> String {
        format!("F{}", self.number)
    }

    fn go(&mut self, round: u32, state: State) {
        if self.state != state {
            self.history.push((round, state));
        }
        self.state = state;
    }

    fn reopenings(&self) -> usize {
        self.history.iter().filter(|(_, state)| *state == State::Reopened).count()
    }

    fn is_material(&self, materiality: Severity) -> bool {
        self.state.is_open() && self.severity <= materiality
    }
}

/// What one round brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// The round.
    pub round: u32,
    /// How many findings were seen for the first time.
    pub new: usize,
    /// How many were fixed.
    pub fixed: usize,
    /// How many came back.
    pub reopened: usize,
    /// How many are open now.
    pub open: usize,
}

/// All findings of a run so far.
#[derive(Clone, Debug, PartialEq)]
pub struct Ledger {
    materiality: Severity,
    entries: Vec<Entry>,
    /// By place: the findings there.
    places: BTreeMap<Arc<str>, Vec<usize>>,
    rounds: Vec<Round>,
    /// By loop: its read rounds, and how many of its material findings were open then.
    material: BTreeMap<usize, Vec<(u32, usize)>>,
}

impl Ledger {
    /// An empty ledger for which findings of this severity, and worse ones, are material.
    pub fn new(materiality: Severity) -> Ledger {
        let (entries, places) = (Vec::new(), BTreeMap::new());
        Ledger { materiality, entries, places, rounds: Vec::new(), material: BTreeMap::new() }
    }

    /// All findings in order of first sight.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The findings that are open.
    pub fn open(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| entry.state.is_open())
    }

    /// What each read round brought.
    pub fn rounds(&self) -> &[Round] {
        &self.rounds
    }

    /// Takes in what a reviewer reports of a round; `changed` tells whether the work is another than it
    /// last reported of. Gives the names of findings that do not exist.
    ///
    /// What is named as fixed and reported all the same is still there. What is not reported again is
    /// fixed if the work has changed and it was this reviewer who reported it last.
    pub fn add(&mut self, by: By, round: u32, report: &Report, changed: bool) -> Vec<String> {
        let mut sum = Round { round, ..Round::default() };
        let Sorted { known, new } = self.sort(report);
        for (at, severity) in &known {
            let entry = &mut self.entries[*at];
            let was_fixed = !entry.state.is_open();
            entry.go(round, if was_fixed { State::Reopened } else { State::Open });
            entry.severity = *severity;
            (entry.reviewer, entry.of_loop) = (by.reviewer.into(), by.of_loop);
            sum.reopened += usize::from(was_fixed);
        }
        let (named, unknown) = self.named(&report.fixed);
        for (at, entry) in self.entries.iter_mut().enumerate() {
            let is_gone = changed && *entry.reviewer == *by.reviewer;
            let is_fixed = !known.contains_key(&at) && (is_gone || named.contains(&at));
            if is_fixed && entry.state.is_open() {
                entry.go(round, State::Fixed);
                sum.fixed += 1;
            } else if entry.state.is_open() && entry.history.last().is_some_and(|it| it.0 < round) {
                entry.go(round, State::Open);
            }
        }
        for (identity, severity, place, text) in new {
            sum.new += usize::from(self.open_new(by, round, identity, severity, (place, text)));
        }
        self.close(by, sum);
        unknown
    }

    /// The findings that these names mean, and the names that mean none.
    fn named(&self, names: &[String]) -> (BTreeSet<usize>, Vec<String>) {
        let mut found = (BTreeSet::new(), Vec::new());
        for name in names {
            let number = name.trim().trim_start_matches(['F', 'f']).parse::<usize>();
            match number.ok().filter(|it| (1..=self.entries.len()).contains(it)) {
                Some(number) => _ = found.0.insert(number - 1),
                None => found.1.push(name.clone()),
            }
        }
        found
    }

    /// Tells what is known from what is new. The order within a report plays no part but in numbering:
    /// the longest texts come first, so that what they hold is found in them.
    fn sort(&self, report: &Report) -> Sorted {
        let mut identities: Vec<(Identity, usize)> = (report.findings.iter().enumerate())
            .map(|(at, it)| (Identity::of(&it.place, &it.text), at))
            .collect();
        identities
            .sort_by_key(|(it, at)| (Reverse(it.length), it.place.clone(), it.text.clone(), *at));
        let mut known: BTreeMap<usize, Severity> = BTreeMap::new();
        let mut new: Vec<(usize, Identity, Severity, usize)> = Vec::new();
        for (identity, at) in identities {
            let severity = report.findings[at].severity;
            if let Some(entry) = self.find(&identity) {
                let known = known.entry(entry).or_insert(severity);
                *known = severity.min(*known);
            } else if let Some(it) = new.iter_mut().find(|it| it.1.is_same(&identity)) {
                (it.0, it.2) = (it.0.min(at), it.2.min(severity));
            } else {
                new.push((at, identity, severity, at));
            }
        }
        new.sort_by_key(|(first, ..)| *first);
        let shown = |at: usize| {
            let finding = &report.findings[at];
            (finding.place.trim().into(), finding.text.trim().into())
        };
        let new = new.into_iter().map(|(_, identity, severity, at)| {
            let (place, text) = shown(at);
            (identity, severity, place, text)
        });
        Sorted { known, new: new.collect() }
    }

    /// The finding that is the same: an equal one, else the one nearest in length.
    fn find(&self, identity: &Identity) -> Option<usize> {
        let there = self.places.get(&identity.place)?.iter().copied();
        let same = there.filter(|at| self.entries[*at].identity.is_same(identity));
        same.min_by_key(|at| {
            let other = &self.entries[*at].identity;
            (other.text != identity.text, other.length.abs_diff(identity.length), &other.text)
        })
    }

    /// Takes in a finding that nobody has seen before; false if the ledger is full.
    fn open_new(
        &mut self,
        by: By,
        round: u32,
        identity: Identity,
        severity: Severity,
        (place, text): (Arc<str>, Arc<str>),
    ) -> bool {
        if self.entries.len() == MOST {
            return false;
        }
        self.places.entry(identity.place.clone()).or_default().push(self.entries.len());
        self.entries.push(Entry {
            number: self.entries.len() + 1,
            severity,
            place,
            text,
            opened: round,
            state: State::New,
            history: vec![(round, State::New)],
            reviewer: by.reviewer.into(),
            of_loop: by.of_loop,
            identity,
        });
        true
    }

    /// Books what a report brought to its round; several reviewers may close one together.
    fn close(&mut self, by: By, sum: Round) {
        let open = self.open().count();
        match self.rounds.iter_mut().find(|it| it.round == sum.round) {
            Some(it) => {
                it.new += sum.new;
                it.fixed += sum.fixed;
                it.reopened += sum.reopened;
                it.open = open;
            }
            None => self.rounds.push(Round { open, ..sum }),
        }
        let own = self.entries.iter().filter(|it| it.of_loop == by.of_loop);
        let material = own.filter(|it| it.is_material(self.materiality)).count();
        let rounds = self.material.entry(by.of_loop).or_default();
        match rounds.last_mut().filter(|(round, _)| *round == sum.round) {
            Some((_, latest)) => *latest = material,
            None => rounds.push((sum.round, material)),
        }
    }

    /// What ends the loop `of_loop` after a report of it, if anything does.
    pub fn ends(&self, of_loop: usize) -> Vec<End> {
        let is_clear = !self.entries.iter().any(|it| it.is_material(self.materiality));
        let oscillates = self.entries.iter().any(|it| it.reopenings() >= 2);
        let rounds = self.material.get(&of_loop).map_or(&[][..], Vec::as_slice);
        let stays = match rounds {
            [.., (_, first), (_, second), (_, third)] => first <= second && second <= third,
            _ => false,
        };
        let all = [
            (is_clear && !rounds.is_empty(), End::NoMaterialFindings),
            (oscillates, End::Oscillation),
            (stays, End::Plateau),
        ];
        all.into_iter().filter_map(|(holds, end)| holds.then_some(end)).collect()
    }

    /// The findings as results tell them (interface.md).
    pub fn told(&self) -> Vec<Value> {
        let entry = |entry: &Entry| {
            let step =
                |(round, state): &(u32, State)| json!({ "round": round, "state": state.as_str() });
            json!({
                "id": entry.id(),
                "severity": entry.severity.as_str(),
                "place": entry.place,
                "text": entry.text,
                "opened": entry.opened,
                "state": entry.state.as_str(),
                "history": entry.history.iter().map(step).collect::<Vec<_>>(),
            })
        };
        self.entries.iter().map(entry).collect()
    }

    /// The rounds as results tell them (interface.md).
    pub fn told_rounds(&self) -> Vec<Value> {
        let round = |it: &Round| {
            let Round { round, new, fixed, reopened, open } = it;
            json!({ "round": round, "new": new, "fixed": fixed, "reopened": reopened, "open": open })
        };
        self.rounds.iter().map(round).collect()
    }
}

/// The findings of a report: those that are known, with how bad they are now, and the new ones.
struct Sorted {
    known: BTreeMap<usize, Severity>,
    new: Vec<(Identity, Severity, Arc<str>, Arc<str>)>,
}

/// What tells a finding from others, however it is worded in detail.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Identity {
    place: Arc<str>,
    text: Arc<str>,
    /// Of the text, in characters.
    length: usize,
}

impl Identity {
    fn of(place: &str, text: &str) -> Identity {
        let text = folded(text);
        Identity {
            place: without_lines(place).into(),
            length: text.chars().count(),
            text: text.into(),
        }
    }

    /// Whether both are one finding: the same place, and equal texts, or one that holds the other and
    /// is no more than twice as long.
    fn is_same(&self, other: &Identity) -> bool {
        let (shorter, longer) =
            if self.length <= other.length { (self, other) } else { (other, self) };
        self.place == other.place
            && (self.text == other.text
                || shorter.length * 2 >= longer.length && longer.text.contains(&*shorter.text))
    }
}

/// What is left of a text when its wording in detail is taken away: NFKC, lower case, without digits,
/// punctuation and white space.
fn folded(text: &str) -> String {
    static DETAIL: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"[\p{P}\p{Sk}\p{Nd}\p{Z}\p{Cc}]+").expect("the pattern is right")
    });
    let lower: String = text.nfkc().flat_map(char::to_lowercase).nfkc().collect();
    let kept = DETAIL.replace_all(&lower, "");
    kept.chars().filter(|c| !is_invisible(*c)).take(TELLING).collect()
}

/// A place without the lines that stand behind it: `src/a.rs:12:5`, `src/a.rs#L3-L9`,
/// `src/a.rs, lines 3 to 9`, `src/a.rs 第 3 行`.
fn without_lines(place: &str) -> &str {
    static LINES: LazyLock<Regex> = LazyLock::new(|| {
        let number = r"[Ll]?\d+(?:\s*[-–—:,~]\s*[LlCc]?\d+)*";
        let words = r"(?i:lines?|ln\.?|col(?:umn)?s?|rows?|l\.?)";
        let range = r"\d+(?:\s*(?:[-–—,:~]|to|and|&)\s*(?:(?i:lines?|col(?:umn)?s?)\s*)?\d+)*";
        let pattern = format!(
            r"(?:\s*[:：#@]\s*{number}|(?:^|[\s,，;:：(（\[]+){words}\s*:?\s*{range}\s*[)）\]]*|[\s,，;:：(（\[]*第?\s*\d+(?:\s*[-–—~至到、]\s*\d+)*\s*行\s*[)）\]]*|\s*[(（\[]\s*{number}\s*[)）\]])$"
        );
        Regex::new(&pattern).expect("the pattern is right")
    });
    let mut place = place.trim();
    while let Some(found) = LINES.find(place).filter(|found| !found.is_empty()) {
        place = place[..found.start()].trim_end();
    }
    place
}

#[cfg(test)]
mod tests;
