//! How a card is released and merged (orchestrate.md §7).

use std::sync::Arc;

use super::{
    place, question, template,
    told::{self, Told},
};
use crate::{
    app::App,
    exit::{Exit, Refusal},
};
use anyhow::Result;
use folkmoot_agents::{Merge, Repository};
use folkmoot_core::{
    orchestrate::{Card, Event, Release, Template, Verdict},
    team::Sandbox,
    view::Status,
};
use folkmoot_runtime::{
    engine::{Engine, RunId},
    orchestrate::Desk,
    refusals,
};

/// Merges one card.
pub(super) struct Merging<'a> {
    pub(super) app: &'a App,
    pub(super) engine: &'a Engine,
    pub(super) desk: &'a Desk,
}

impl Merging<'_> {
    pub(super) async fn run(&self, card: Card, mode: Option<&str>) -> Result<(Told, Exit)> {
        let is_record = match mode.map_or("merge", str::trim) {
            "merge" => false,
            "record" => true,
            other => {
                let refusal = Refusal::new("unknown_mode", format!("there is no mode {other}"));
                let allowed = vec!["merge".to_owned(), "record".to_owned()];
                let help = "merge, or record for one that was made elsewhere";
                return Err(Refusal { allowed, ..refusal.help(help) }.into());
            }
        };
        let card = settled(self.app, self.engine, self.desk, card).await?;
        let head = place::head(&card, None).await?;
        let cards = self.desk.cards().await.map_err(Refusal::from)?;
        if let Err(refusals) = cards.merge(&card, head.as_deref()) {
            if refusals[0].code == "stale_commit" {
                // Whoever approved has not seen this: it is under review again.
                let head = head.map(Into::into);
                self.desk.review(&card, None, head, None).await.map_err(Refusal::from)?;
            }
            return Err(refusals::all(refusals).into());
        }
        if !card.write {
            return self.integrate(&card, None).await;
        }
        let repository = place::repository().await?.ok_or_else(place::no_repository)?;
        let Some(head) = head else {
            let branch = card.branch.name.as_deref().unwrap_or_default();
            let message = format!("there is no branch {branch} here");
            let help = "call it in the repository in which the card was worked on";
            return Err(Refusal::new("branch_required", message).help(help).into());
        };
        if is_record {
            return self.record(&card, &repository, &head).await;
        }
        match self.released(&card, &head).await? {
            Ok(card) => self.merge(&card, &repository, &head).await,
            Err(asked) => Ok(asked),
        }
    }

    /// The card, once somebody has released this commit of it; else what is told of the question.
    async fn released(
        &self,
        card: &Card,
        head: &str,
    ) -> Result<std::result::Result<Card, (Told, Exit)>> {
        if card.released.as_deref() == Some(head) {
            return Ok(Ok(card.clone()));
        }
        let id = &card.task_id;
        let note = |event| self.desk.note(id, event, |_, _| Ok(()));
        let commit = Some(head.into());
        let name = card.template.as_deref().unwrap_or(Template::BUILT_IN);
        if template(self.app, name)?.release == Release::Waived {
            let released = Event::Released { commit, waived: true };
            return Ok(Ok(note(released).await.map_err(Refusal::from)?));
        }
        let asking = card.waiting_on.as_ref().filter(|it| &*it.reason == "merge");
        let (card, run) = if let Some(run) = asking.and_then(|it| it.run.clone()) {
            (card.clone(), run)
        } else {
            let run: Arc<str> = RunId::random().as_str().into();
            let asked = Event::ReleaseAsked { run: run.clone() };
            (note(asked).await.map_err(Refusal::from)?, run)
        };
        let branch = card.branch.name.as_deref().unwrap_or_default();
        let question =
            format!("May commit {head} of {branch}, card {id}, be merged? approve or deny");
        question::put(self.app, self.engine, &run, &question).await?;
        match question::answer(self.engine, &run).await?.as_deref() {
            None => Ok(Err((told::question(&card, &run, &question), Status::NeedsInput.into()))),
            Some("approve" | "approved") => {
                let released = Event::Released { commit, waived: false };
                Ok(Ok(note(released).await.map_err(Refusal::from)?))
            }
            Some(_) => {
                let card = note(Event::Denied).await.map_err(Refusal::from)?;
                Ok(Err((told::card(&card), Exit::FAILED)))
            }
        }
    }

    /// Merges beside the user's checkout, and moves the target if nobody has moved it meanwhile.
    async fn merge(
        &self,
        card: &Card,
        repository: &Repository,
        head: &str,
    ) -> Result<(Told, Exit)> {
        let phases = self.desk.phases().await.map_err(Refusal::from)?;
        let (target, from) = place::target(repository, &phases, card).await?;
        let folder = place::folder(self.app, card, ".merge")?;
        repository.clear(&folder).await?;
        let scratch = repository.worktree(&folder, None, &from).await?;
        let message = format!("Merge {}: {}", card.task_id, card.title);
        let merged = repository.merge(&scratch, head, &message).await;
        let looked = match &merged {
            Ok(Merge::Made(_)) => place::gates(card, &scratch.folder, self.sandbox(card)?).await,
            _ => Vec::new(),
        };
        repository.remove(&scratch, true).await?;
        let mut findings: Vec<Arc<str>> =
            looked.iter().filter_map(|(.., why)| Some(why.as_deref()?.into())).collect();
        let commit = match merged? {
            Merge::Made(commit) => commit,
            Merge::Conflict(said) => {
                findings.push(format!("it does not merge into {target}: {said}").into());
                String::new()
            }
        };
        if !findings.is_empty() {
            let sent_back = Event::SentBack { findings };
            let card = self.desk.note(&card.task_id, sent_back, |_, _| Ok(())).await;
            return Ok((told::card(&card.map_err(Refusal::from)?), Exit::FAILED));
        }
        if !repository.advance(&target, &from, &commit).await? {
            let message = format!("{target} was moved by somebody else meanwhile");
            return Err(Refusal::new("target_moved", message).help("merge again").into());
        }
        repository.clear(&place::folder(self.app, card, "")?).await?;
        if repository.head_branch().await?.as_deref() == Some(&target) && from != commit {
            let hint = format!("`git read-tree -m -u {from} {commit}` brings it there");
            self.app.tell(&format!("{target} has moved; its checkout is as it was: {hint}"));
        }
        self.integrate(card, Some(commit)).await
    }

    /// Notes a merge that was made elsewhere.
    async fn record(
        &self,
        card: &Card,
        repository: &Repository,
        head: &str,
    ) -> Result<(Told, Exit)> {
        let phases = self.desk.phases().await.map_err(Refusal::from)?;
        let (target, commit) = place::target(repository, &phases, card).await?;
        if !repository.contains(&commit, head).await? {
            let message = format!("{target} does not contain {head}");
            let help = "merge that commit there first, or leave `--mode record` out";
            return Err(Refusal::new("not_merged", message).help(help).into());
        }
        repository.clear(&place::folder(self.app, card, "")?).await?;
        self.integrate(card, Some(commit)).await
    }

    async fn integrate(&self, card: &Card, commit: Option<String>) -> Result<(Told, Exit)> {
        let integrated = Event::Integrated { commit: commit.map(Into::into) };
        let card = self.desk.note(&card.task_id, integrated, |_, _| Ok(())).await;
        Ok((told::card(&card.map_err(Refusal::from)?), Exit::DONE))
    }

    fn sandbox(&self, card: &Card) -> Result<Sandbox> {
        let name = card.template.as_deref().unwrap_or(Template::BUILT_IN);
        Ok(template(self.app, name)?.sandbox.unwrap_or(Sandbox::Write))
    }
}

/// A card after a person has said what its reviewers could not agree on. If nobody has been asked yet,
/// somebody is.
pub(super) async fn settled(app: &App, engine: &Engine, desk: &Desk, card: Card) -> Result<Card> {
    let Some(asking) = card.waiting_on.as_ref().filter(|_| card.is_disputed()) else {
        return Ok(card);
    };
    let id = card.task_id.clone();
    let note = |event| async { desk.note(&id, event, |_, _| Ok(())).await.map_err(Refusal::from) };
    let (card, run) = if let Some(run) = asking.run.clone() {
        (card, run)
    } else {
        let run: Arc<str> = RunId::random().as_str().into();
        (note(Event::Disputed { run: run.clone() }).await?, run)
    };
    let commit = card.branch.head.as_deref().unwrap_or("none");
    let question = format!(
        "Reviewers disagree about commit {commit} of card {id}: approved or changes_requested?"
    );
    question::put(app, engine, &run, &question).await?;
    let verdict = match question::answer(engine, &run).await?.as_deref() {
        None => return Ok(card),
        Some("approve" | "approved") => Verdict::Approved,
        Some(_) => Verdict::ChangesRequested,
    };
    Ok(note(Event::Settled { verdict }).await?)
}
