//! What those who close loops find, round by round, and what ends a graph by it (convergence.md §1).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{ledger, termination::Reason, tokens::Turn, walk::Walk};
use crate::{
    call::{Prompt, Reply},
    findings::{By, End, Ledger},
    scope::Step,
    text::spaced,
    verdict::{Reading, Report, Severity, report},
};

/// The findings so far, and what is needed to go on with them.
#[derive(Clone, Debug)]
pub(super) struct Reviews {
    pub(super) ledger: Ledger,
    /// By reviewer: the work that it last reported of.
    seen: BTreeMap<usize, Vec<Arc<str>>>,
    /// Whether the report of the reply just handled was read.
    is_fresh: bool,
    /// Whether that reply leaves nothing material open, and nothing stands against ending there.
    pub(super) is_clear: bool,
}

impl Reviews {
    pub(super) fn new(materiality: Severity) -> Reviews {
        let (ledger, seen) = (Ledger::new(materiality), BTreeMap::new());
        Reviews { ledger, seen, is_fresh: false, is_clear: false }
    }
}

impl Walk<'_, '_> {
    /// Takes in what a closing agent found. It is asked once more if that cannot be read; then its round
    /// counts as unread. A run that ends here anyway asks nothing.
    pub(super) fn review(&mut self, turn: &Turn, attempt: u32, reply: &Reply) -> Step<()> {
        let Some(reviews) = &mut self.reviews else { return Ok(()) };
        (reviews.is_fresh, reviews.is_clear) = (false, false);
        if !self.structure.closes(turn.agent) || self.failed {
            return Ok(());
        }
        let read = |reply: &Reply| reply.contribution().map_or(Reading::None, report);
        let mut reading = read(reply);
        if !matches!(reading, Reading::Value(_)) {
            if self.has_succeeded() || self.halted {
                return Ok(());
            }
            let question = ledger::once_more(self.cx, Prompt::after(reply), &reading);
            let place = self.graph.clocks.phase(&self.place(turn, attempt));
            let again = place.ask("findings", &reply.agent, question)?;
            self.halted |= again.is_stopped();
            reading = read(&again);
        }
        match reading {
            Reading::Value(report) => self.take_in(turn, reply, &report),
            Reading::None | Reading::Ambiguous(_) | Reading::Unreadable(_) => {
                let message =
                    format!("{}: no findings could be read; the round counts as unread", reply.key);
                self.journal.warn("findings_unread", message);
            }
        }
        self.note_clear(turn, !self.is_gated(turn.agent));
        Ok(())
    }

    /// Takes in the report of a reply that has taken the place of another one, if it has one.
    pub(super) fn review_anew(&mut self, turn: &Turn, reply: &Reply, before: Option<Reviews>) {
        let reading = reply.contribution().map_or(Reading::None, report);
        if let (Some(reviews), Reading::Value(report)) = (before, reading)
            && self.structure.closes(turn.agent)
        {
            self.reviews = Some(reviews);
            self.take_in(turn, reply, &report);
        }
    }

    fn take_in(&mut self, turn: &Turn, reply: &Reply, report: &Report) {
        let work: Vec<Arc<str>> = (turn.token().works.iter())
            .filter_map(|key| Some(spaced(self.cx.reply(key)?.text()?).into()))
            .collect();
        let Some(reviews) = &mut self.reviews else { return };
        let changed = reviews.seen.insert(turn.agent, work.clone()) != Some(work);
        let of_loop = self.structure.loop_of(turn.agent).unwrap_or_default();
        let by = By { reviewer: reply.agent.as_str(), of_loop };
        let unknown = reviews.ledger.add(by, turn.round, report, changed);
        reviews.is_fresh = true;
        if !unknown.is_empty() {
            let message = format!("{}: there is no finding {}", reply.key, unknown.join(", "));
            self.journal.warn("unknown_finding", message);
        }
    }

    /// Notes whether the reply just handled leaves nothing material open, and `may_end` tells that
    /// nothing else stands against ending there.
    pub(super) fn note_clear(&mut self, turn: &Turn, may_end: bool) {
        let is_clear = may_end && self.found(turn).contains(&End::NoMaterialFindings);
        if let Some(reviews) = &mut self.reviews {
            reviews.is_clear = is_clear;
        }
    }

    /// Why the graph ends by what was found, if it does.
    pub(super) fn ended_by_findings(&self, turn: &Turn) -> Vec<Reason> {
        let is_clear = self.reviews.as_ref().is_some_and(|reviews| reviews.is_clear);
        let counts = |end: &End| is_clear || *end != End::NoMaterialFindings;
        self.found(turn).into_iter().filter(counts).map(Reason::from).collect()
    }

    /// What the ledger says to the reply just handled. While others are still to report of this round,
    /// it says nothing; and that all is well only when each who can report has done so.
    fn found(&self, turn: &Turn) -> Vec<End> {
        let Some(reviews) = self.reviews.as_ref().filter(|reviews| reviews.is_fresh) else {
            return Vec::new();
        };
        let closes = |agent: usize| self.structure.closes(agent);
        if self.tokens.are_awaited(turn, closes) {
            return Vec::new();
        }
        let count = self.structure.agents.len();
        let reviewers = (0..count).filter(|at| closes(*at) && self.structure.is_reachable(*at));
        let unheard: BTreeSet<usize> =
            reviewers.filter(|at| !reviews.seen.contains_key(at)).collect();
        let of_loop = self.structure.loop_of(turn.agent).unwrap_or_default();
        let ends = reviews.ledger.ends(of_loop).into_iter();
        ends.filter(|end| unheard.is_empty() || *end != End::NoMaterialFindings).collect()
    }

    /// What an agent is told of the findings: who closes a loop all of them, and how to report; others
    /// of a loop those that are open.
    pub(super) fn findings_for(&self, agent: usize) -> Option<String> {
        let reviews = self.reviews.as_ref()?;
        if self.structure.closes(agent) {
            return Some(ledger::for_reviewer(self.cx, &reviews.ledger));
        }
        self.structure.loop_of(agent)?;
        ledger::for_author(self.cx, &reviews.ledger)
    }
}
