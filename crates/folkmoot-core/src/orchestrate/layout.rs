//! How the cards of a phase are laid out: in which order, which at all, and which before which
//! (orchestrate.md §2).

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
    sync::Arc,
};

use super::{Deferred, Issue, Kind, Planned, Refusals, Role, Topology, Warned, helped};
use crate::{diagnostic::quoted, loops};

/// The card that reads all others in a star.
pub(super) const HUB: &str = "hub";

/// Which issues follow which, by place.
pub(super) fn order_of(
    issues: &[Issue],
    is_integrated: impl Fn(&str) -> bool,
) -> Result<Vec<Vec<usize>>, Refusals> {
    let places: BTreeMap<&str, usize> = issues.iter().map(|it| &*it.id).zip(0..).collect();
    let (mut told, mut next) = (Refusals::new(), vec![Vec::new(); issues.len()]);
    for (at, issue) in issues.iter().enumerate() {
        for wanted in &issue.depends_on {
            match places.get(&**wanted) {
                Some(before) => next[*before].push(at),
                None if is_integrated(wanted) => {}
                None => {
                    let (id, wanted) = (quoted(&issue.id), quoted(wanted));
                    let message = format!(
                        "issue {id} depends on {wanted}, which is neither listed nor integrated"
                    );
                    let help = "list it too, or take it out of depends_on";
                    told.push(helped("unknown_dependency", message, help));
                }
            }
        }
    }
    for members in loops::in_graph(&next) {
        let first = members.first().copied().unwrap_or_default();
        let way = loops::way_back(&next, first);
        let path: Vec<String> =
            way.iter().chain([&first]).map(|at| issues[*at].id.to_string()).collect();
        let message = format!("issues depend on each other: {}", path.join(" -> "));
        let help = "take one of these out of depends_on";
        told.push(helped("dependency_cycle", message, help));
    }
    if told.is_empty() { Ok(next) } else { Err(told) }
}

/// The places of issues: what others depend on first, then by priority, then as given.
pub(super) fn sorted(issues: &[Issue], next: &[Vec<usize>]) -> Vec<usize> {
    let mut waits = vec![0_usize; issues.len()];
    next.iter().flatten().for_each(|to| waits[*to] += 1);
    let rank = |at: usize| (std::cmp::Reverse(issues[at].priority), at);
    let mut ready: BTreeSet<_> = (0..issues.len()).filter(|at| waits[*at] == 0).map(rank).collect();
    let mut order = Vec::new();
    while let Some((_, at)) = ready.pop_first() {
        order.push(at);
        for to in &next[at] {
            waits[*to] -= 1;
            if waits[*to] == 0 {
                ready.insert(rank(*to));
            }
        }
    }
    order
}

/// Lays the cards of a phase out, one issue after the other.
#[derive(Default)]
pub(super) struct Laying<'a> {
    pub(super) topology: Topology,
    pub(super) max_dev_teams: u64,
    pub(super) phase_id: &'a str,
    pub(super) cards: Vec<Planned>,
    pub(super) deferred: Vec<Deferred>,
    pub(super) warnings: Vec<Warned>,
    /// The files of the cards that write.
    pub(super) written: BTreeSet<Arc<str>>,
}

impl Laying<'_> {
    pub(super) fn place(&mut self, issue: &Issue) {
        match self.reason_to_defer(issue) {
            Some(reason) => {
                self.deferred.push(Deferred { issue_id: issue.id.clone(), reason: reason.into() });
            }
            None => self.take(issue),
        }
    }

    fn reason_to_defer(&self, issue: &Issue) -> Option<&'static str> {
        let is_deferred = |id: &Arc<str>| self.deferred.iter().any(|it| it.issue_id == *id);
        if issue.depends_on.iter().any(is_deferred) {
            return Some("dependency_deferred");
        }
        if !issue.write {
            return None;
        }
        if self.number_of(Kind::Dev) as u64 >= self.max_dev_teams {
            return Some("max_dev_teams");
        }
        let is_chained = self.topology == Topology::Pipeline;
        let meets = || issue.files.iter().any(|file| meets(&self.written, plain(file)));
        (!is_chained && meets()).then_some("file_conflict")
    }

    fn number_of(&self, kind: Kind) -> usize {
        self.cards.iter().filter(|card| card.kind == kind).count()
    }

    fn take(&mut self, issue: &Issue) {
        let kind = if issue.write { Kind::Dev } else { Kind::Support };
        let card_id: Arc<str> = format!("{}-{}", kind.as_str(), self.number_of(kind) + 1).into();
        let is_chained = self.topology == Topology::Pipeline;
        if issue.write && issue.files.is_empty() && !is_chained {
            let code = "files_undeclared".into();
            self.warnings.push(Warned { code, issue_id: issue.id.clone() });
        }
        if issue.write {
            self.written.extend(issue.files.iter().map(|file| plain(file).into()));
        }
        let hint = || format!("folkmoot/{}/{card_id}", self.phase_id).into();
        self.cards.push(Planned {
            issue_id: issue.id.clone(),
            kind,
            role: issue.role.unwrap_or_else(|| role_of(issue)),
            write: issue.write,
            files: issue.files.clone(),
            depends_on: issue.depends_on.clone(),
            wave: 0,
            branch_hint: issue.write.then(hint),
            card_id,
        });
    }
}

/// Who does an issue that names nobody: who writes implements.
fn role_of(issue: &Issue) -> Role {
    match Role::suggested(&issue.title) {
        _ if issue.write => Role::Implementer,
        Role::Implementer => Role::Reviewer,
        suggested => suggested,
    }
}

pub(super) fn hub() -> Planned {
    Planned {
        card_id: HUB.into(),
        issue_id: HUB.into(),
        kind: Kind::Hub,
        role: Role::Reviewer,
        write: false,
        files: Vec::new(),
        depends_on: Vec::new(),
        wave: 0,
        branch_hint: None,
    }
}

/// A path without what says nothing.
fn plain(path: &str) -> &str {
    path.trim_start_matches("./")
}

/// Whether a file is written already, lies in a folder that is, or is a folder of what is.
fn meets(written: &BTreeSet<Arc<str>>, file: &str) -> bool {
    let lies_in = || file.match_indices('/').any(|(at, _)| written.contains(&file[..=at]));
    let holds = || {
        let next = written.range::<str, _>((Bound::Included(file), Bound::Unbounded)).next();
        file.ends_with('/') && next.is_some_and(|it| it.starts_with(file))
    };
    written.contains(file) || lies_in() || holds()
}

pub(super) fn edges(topology: Topology, cards: &[Planned]) -> Vec<(Arc<str>, Arc<str>)> {
    let ids: BTreeSet<&Arc<str>> = cards.iter().map(|card| &card.issue_id).collect();
    let mut edges: Vec<(Arc<str>, Arc<str>)> = Vec::new();
    let mut there = BTreeSet::new();
    let mut add = |from: &Arc<str>, to: &Arc<str>| {
        let edge = (from.clone(), to.clone());
        if there.insert(edge.clone()) {
            edges.push(edge);
        }
    };
    match topology {
        Topology::ParallelTeam => {}
        Topology::Star => {
            let hub: Arc<str> = HUB.into();
            let others = cards.iter().filter(|card| card.kind != Kind::Hub);
            others.for_each(|card| add(&card.issue_id, &hub));
        }
        Topology::Pipeline => {
            cards.windows(2).for_each(|pair| add(&pair[0].issue_id, &pair[1].issue_id));
        }
    }
    for card in cards {
        let listed = card.depends_on.iter().filter(|it| ids.contains(it));
        listed.for_each(|before| add(before, &card.issue_id));
    }
    edges
}
