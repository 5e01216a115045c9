//! What reviewers may say of cards, and when a card may be merged (orchestrate.md §4).

use std::sync::Arc;

use super::request::{idle, open, refuse};
use super::{Card, Cards, Event, Mark, Passed, Refusals, Row, State, Verdict, helped};
use crate::{diagnostic::quoted, names, refusal::Refusal};

/// A verdict as it is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// The commit that was looked at.
    pub commit: Option<Arc<str>>,
    /// What is wrong.
    pub findings: Vec<Arc<str>>,
}

impl Cards {
    /// Puts a card up for review, or takes a verdict on it. `head` is the last commit of its branch, as
    /// far as anybody can tell.
    pub fn review(
        &self,
        by: &Mark,
        card: &Card,
        branch: Option<&str>,
        head: Option<Arc<str>>,
        judgement: Option<&Judgement>,
    ) -> Result<Vec<Row>, Refusals> {
        open(card)?;
        match (card.state, judgement) {
            (State::Planned | State::Blocked | State::Failed, _) => {
                let message = format!("nobody works on card {}", card.task_id);
                refuse("must_be_assigned", message, "`execute` it, or `assign` it to somebody")
            }
            (State::ChangesRequested, None) => {
                let message = format!("card {} has to be done better first", card.task_id);
                refuse("must_be_assigned", message, "`execute` it again, or `assign` it")
            }
            (State::Implementing, Some(_)) => {
                let message = format!("card {} is not under review yet", card.task_id);
                let help =
                    "`review` without a verdict puts it up for review, and so does `execute`";
                refuse("must_be_reviewing", message, help)
            }
            (State::ChangesRequested, Some(it)) if !is_second_opinion(card, &by.actor, it) => {
                let message = format!("card {} is not under review", card.task_id);
                refuse("must_be_reviewing", message, "`execute` it again, or `assign` it")
            }
            (State::Implementing | State::Reviewing, None) => self.submit(by, card, branch, head),
            (State::Reviewing | State::ChangesRequested, Some(it)) => {
                let mut rows =
                    if head != card.branch.head && head.is_some() {
                        vec![by.row(
                            &card.task_id,
                            Event::Submitted { branch: None, head: head.clone() },
                        )]
                    } else {
                        Vec::new()
                    };
                let head = head.or_else(|| card.branch.head.clone());
                rows.push(judge(by, card, head.as_deref(), it)?);
                Ok(rows)
            }
            (State::Integrated | State::Cancelled, _) => open(card).map(|()| Vec::new()),
        }
    }

    fn submit(
        &self,
        by: &Mark,
        card: &Card,
        branch: Option<&str>,
        head: Option<Arc<str>>,
    ) -> Result<Vec<Row>, Refusals> {
        idle(card)?;
        let named = branch.map(str::trim).filter(|it| !it.is_empty());
        let is_own = |it: &&str| card.branch.name.as_deref() == Some(*it);
        let branch = match named.filter(|it| !is_own(it)) {
            Some(branch) => Some(self.free_branch(card, branch)?),
            None => None,
        };
        if card.write && branch.is_none() && card.branch.name.is_none() {
            let message = format!("card {} has no branch yet", card.task_id);
            return refuse("branch_required", message, "name the branch its work is on: --branch");
        }
        if card.state == State::Reviewing
            && branch.is_none()
            && (head.is_none() || head == card.branch.head)
        {
            return Ok(Vec::new());
        }
        Ok(vec![by.row(&card.task_id, Event::Submitted { branch, head })])
    }

    /// Whether a card may be merged, but for its release; `head` is the last commit of its branch.
    pub fn merge(&self, card: &Card, head: Option<&str>) -> Result<(), Refusals> {
        open(card)?;
        if card.state != State::Reviewing {
            let message = format!("card {} is {}", card.task_id, card.state.as_str());
            let help = "it has to be executed and approved first; `status` tells how far it is";
            return refuse("must_be_reviewing", message, help);
        }
        let is_approval = card.review.as_ref().filter(|it| it.verdict == Verdict::Approved);
        let approved = match is_approval {
            Some(review) if !card.is_disputed() => review,
            _ => return Err(vec![unapproved(card)]),
        };
        let moved = head.is_some() && head != approved.commit.as_deref();
        if moved || approved.commit != card.branch.head {
            let message = format!("card {} was approved at another commit", card.task_id);
            let help = "it is under review again: give a verdict on the commit that it is at now";
            return refuse("stale_commit", message, help);
        }
        let open: Vec<&str> = card
            .gates
            .iter()
            .filter(|(_, it)| **it != Passed::Passed)
            .map(|(name, _)| &**name)
            .collect();
        if !open.is_empty() {
            let message = format!("not passed: {}", open.join(", "));
            return refuse("gates_not_passed", message, "`assign` it and `execute` it again");
        }
        Ok(())
    }
}

/// Whether somebody else has looked at this very commit before.
fn is_second_opinion(card: &Card, by: &str, it: &Judgement) -> bool {
    let is_other = |review: &super::Review| *review.by != *by && review.commit == it.commit;
    card.verdicts.iter().any(is_other)
}

fn judge(by: &Mark, card: &Card, head: Option<&str>, it: &Judgement) -> Result<Row, Refusals> {
    let Judgement { verdict, commit, findings } = it.clone();
    let is_own = |author: &Arc<str>| names::slug(author) == names::slug(&by.actor);
    if card.authors.iter().any(is_own) && verdict == Verdict::Approved {
        let message = format!("{} wrote card {} and cannot approve it", by.actor, card.task_id);
        return refuse("own_work", message, "let somebody else judge it: --as NAME");
    }
    if card.write && (commit.is_none() || (head.is_some() && commit.as_deref() != head)) {
        let head = head.unwrap_or("unknown");
        let message = format!("commit is the one that was looked at; the branch is at {head}");
        let help = "look at that, then give it: --commit";
        return refuse("stale_commit", message, help);
    }
    let commit = commit.filter(|_| card.write);
    Ok(by.row(&card.task_id, Event::Judged { verdict, commit, findings }))
}

/// That nobody has approved the last commit of a card, or that reviewers disagree about it.
fn unapproved(card: &Card) -> Refusal {
    let id = &card.task_id;
    let asking = card.waiting_on.as_ref().filter(|_| card.is_disputed());
    if let Some(run) = asking.map(|it| it.run.as_deref().unwrap_or("RUN")) {
        let message = format!("reviewers disagree about card {id}");
        let help = format!("a person decides: `folkmoot answer {run} approved`");
        return helped("not_approved", message, help);
    }
    let commit = card.branch.head.as_deref().filter(|_| card.write);
    let commit = commit.map(|head| format!(" --commit {head}")).unwrap_or_default();
    let message = format!("nobody has approved card {id}");
    helped("not_approved", message, format!("`review {id} --verdict approved{commit}`"))
}

impl Verdict {
    /// The verdict of that name.
    pub fn named(name: &str) -> Result<Verdict, Refusals> {
        match name.trim().to_lowercase().as_str() {
            "approved" => Ok(Verdict::Approved),
            "changes_requested" => Ok(Verdict::ChangesRequested),
            _ => {
                let allowed = super::texts(&["approved", "changes_requested"]);
                let message = format!("there is no verdict {}", quoted(name));
                let refused = helped("unknown_verdict", message, "approved, or changes_requested");
                Err(vec![Refusal { allowed, ..refused }])
            }
        }
    }
}
