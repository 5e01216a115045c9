//! The turns of a run without a graph: who spoke after having heard whom.

use std::collections::{BTreeMap, BTreeSet};

use super::{Drawing, Kind, Way, run, steps::state};
use crate::{
    event::{Ending, Text},
    key::Key,
    known::{Entry, Known},
    run::Run,
    spec::Spec,
    team::Team,
    time::Time,
    view::Outcome,
};

/// Draws all turns in the order of asking.
pub(super) fn draw(drawing: &mut Drawing, spec: &Spec, run: &Run, outcome: &Outcome) {
    let turns = Turns::of(run.known());
    let from = drawing.node(Kind::Outside, ["the task"]);
    let nodes: Vec<usize> =
        (1..).zip(&turns.all).map(|(nth, turn)| turn.node(drawing, &spec.team, nth)).collect();
    let mut places: BTreeMap<&[usize], usize> = BTreeMap::new();
    let heard: Vec<Vec<usize>> = (0..turns.all.len()).map(|turn| turns.heard(turn)).collect();
    let mut times: BTreeMap<&[usize], usize> = BTreeMap::new();
    for heard in &heard {
        *times.entry(heard).or_default() += 1;
    }
    for (turn, heard) in heard.iter().enumerate() {
        match &heard[..] {
            [] => match turns.trigger(turn) {
                Some(before) => drawing.labelled(nodes[before], nodes[turn], Way::Spare, ["then"]),
                None => drawing.link(from, nodes[turn]),
            },
            many @ [_, _, ..] if times[many] > 1 => {
                let place = *places.entry(many).or_insert_with(|| {
                    let place = drawing.node(Kind::Place, ["what they said"]);
                    for it in many {
                        drawing.link(nodes[*it], place);
                    }
                    place
                });
                drawing.link(place, nodes[turn]);
            }
            few => few.iter().for_each(|it| drawing.link(nodes[*it], nodes[turn])),
        }
    }
    if let (Some(ending), Some(end)) = (run.ending(), run::end(drawing, outcome)) {
        for (turn, way) in turns.last(ending) {
            drawing.labelled(nodes[turn], end, way, [""]);
        }
    }
}

/// The turns of a run, and who heard whom.
struct Turns<'a> {
    /// In the order of asking.
    all: Vec<Turn<'a>>,
    /// By call: its turn.
    of: BTreeMap<&'a str, usize>,
}

/// A call with those below it.
struct Turn<'a> {
    key: &'a Key,
    first: &'a Entry,
    /// The record in which the last of its calls was settled.
    settled: u64,
    is_rescued: bool,
    sources: BTreeSet<&'a str>,
}

impl<'a> Turns<'a> {
    fn of(known: &'a Known) -> Turns<'a> {
        let mut turns = Turns { all: Vec::new(), of: BTreeMap::new() };
        for (key, entry) in known.in_order() {
            let sources = entry.call.sources().map(Key::as_str);
            let above = key
                .as_str()
                .rmatch_indices('/')
                .find_map(|(at, _)| turns.of.get(&key.as_str()[..at]).copied());
            let at = above.unwrap_or(turns.all.len());
            if let Some(turn) = turns.all.get_mut(at) {
                turn.settled = turn.settled.max(entry.settled);
                turn.sources.extend(sources);
            } else {
                let (settled, is_rescued) = (entry.settled, known.is_rescued(key));
                turns.all.push(Turn {
                    key,
                    first: entry,
                    settled,
                    is_rescued,
                    sources: sources.collect(),
                });
            }
            turns.of.insert(key.as_str(), at);
        }
        turns
    }

    /// The turns that a turn has heard of, without those that it knows through others of them.
    fn heard(&self, turn: usize) -> Vec<usize> {
        let direct = |turn: usize| {
            let sources = self.all[turn].sources.iter().filter_map(|key| self.of.get(key).copied());
            sources.filter(move |it| *it < turn).collect::<BTreeSet<usize>>()
        };
        let mut through: BTreeSet<usize> = BTreeSet::new();
        let mut heard: Vec<usize> = Vec::new();
        for before in direct(turn).into_iter().rev() {
            if !through.contains(&before) {
                through.extend(direct(before));
                heard.push(before);
            }
        }
        heard.reverse();
        heard
    }

    /// The turn whose end was the last thing that happened before a turn was asked.
    fn trigger(&self, turn: usize) -> Option<usize> {
        let asked = self.all[turn].first.asked;
        let before = self.all.iter().enumerate();
        let before = before.filter(|(_, it)| it.settled != 0 && it.settled < asked);
        before.max_by_key(|(_, it)| it.settled).map(|(at, _)| at)
    }

    /// The turns that the answer is made of, or what there is without one.
    fn last(&self, ending: &Ending) -> Vec<(usize, Way)> {
        let (keys, way) = match &ending.answer {
            Some(Text::Replies(keys)) => (&keys[..], Way::Plain),
            Some(Text::Literal(_)) => (&[][..], Way::Plain),
            None => (&ending.partial[..], Way::Spare),
        };
        let made = keys.iter().filter_map(|key| self.of.get(key.as_str()).copied());
        let mut turns: BTreeSet<usize> = made.collect();
        if turns.is_empty() {
            let latest = self.all.iter().enumerate().max_by_key(|(_, it)| it.settled);
            turns.extend(latest.map(|(at, _)| at));
        }
        turns.into_iter().map(|turn| (turn, way)).collect()
    }
}

impl Turn<'_> {
    fn node(&self, drawing: &mut Drawing, team: &Team, nth: u32) -> usize {
        let agent = team.agent(self.first.call.agent());
        let (kind, what) =
            if self.is_rescued { (Kind::Agent, String::new()) } else { state(self.first) };
        let title = format!("{nth} · {}", agent.name);
        let at = if self.first.is_open() {
            String::new()
        } else {
            format!(", at {}", self.first.settled_at.since(Time::default()))
        };
        drawing.node(kind, [title, format!("{}{at}", self.place()), what])
    }

    /// Where in the program it was asked: its key, without the agent's own name.
    fn place(&self) -> &str {
        let (key, agent) = (self.key.as_str(), self.first.call.agent());
        match key.rsplit_once('/') {
            Some((place, last)) if last == agent.as_str() => place,
            _ => key,
        }
    }
}
