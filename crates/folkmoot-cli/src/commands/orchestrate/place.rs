//! Where cards are worked on: branches and worktrees of the repository that the command is called in
//! (orchestrate.md §5).

use std::path::PathBuf;

use anyhow::Result;
use folkmoot_agents::{GitError, Inspector, Repository};
use folkmoot_core::{
    gate::{Gate, USUAL_TIMEOUT, Workspace},
    key::Key,
    orchestrate::{Card, Passed, Phases},
    team::Sandbox,
};
use folkmoot_runtime::gates::{GateRequest, Gates as _};

use crate::{app::App, config, exit::Refusal};

/// The repository that the command is called in, if it is in one.
pub(super) async fn repository() -> Result<Option<Repository>> {
    let environment: Vec<_> = config::environment().collect();
    match Repository::open(&std::env::current_dir()?, environment).await {
        Ok(repository) => Ok(Some(repository)),
        Err(GitError::NotARepository(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

pub(super) fn no_repository() -> Refusal {
    Refusal::new("not_a_repository", "this folder is in no git repository")
        .help("what is written goes to a branch; call it in the repository, or `git init`")
}

/// The last commit of a card's branch, as far as it is known here.
pub(super) async fn head(card: &Card, branch: Option<&str>) -> Result<Option<String>> {
    let Some(branch) = branch.or(card.branch.name.as_deref()).filter(|_| card.write) else {
        return Ok(None);
    };
    match repository().await? {
        Some(repository) => Ok(repository.commit(branch).await?),
        None => Ok(None),
    }
}

/// The branch that a card's work goes into.
pub(super) async fn target(
    repository: &Repository,
    phases: &Phases,
    card: &Card,
) -> Result<(String, String)> {
    let plan = card.phase_id.as_deref().and_then(|phase| phases.plan(Some(phase)));
    let name = match plan.and_then(|plan| plan.target.as_deref()) {
        Some(name) => Some(name.to_owned()),
        None => repository.head_branch().await?,
    };
    let name = name.ok_or_else(|| {
        Refusal::new("no_target", "no branch is checked out").help("plan the phase with --target")
    })?;
    let commit = repository.commit(&name).await?;
    let commit = commit.ok_or_else(|| {
        let message = format!("the branch {name} has no commit");
        Refusal::new("no_target", message)
            .help("make a first commit, or name another with --target")
    })?;
    Ok((name, commit))
}

/// The folder of a card's checkout.
pub(super) fn folder(app: &App, card: &Card, end: &str) -> Result<PathBuf> {
    let file = std::path::absolute(app.state_file()?)?;
    let phase = card.phase_id.as_deref().unwrap_or("record");
    Ok(file.with_extension("worktrees").join(phase).join(format!("{}{end}", card.task_id)))
}

/// Looks at what the work in a folder must pass: the outcome of each, and what is told of those that
/// are shut.
pub(super) async fn gates(
    card: &Card,
    folder: &std::path::Path,
    sandbox: Sandbox,
) -> Vec<(std::sync::Arc<str>, Passed, Option<String>)> {
    let inspector = Inspector::new(config::environment());
    let mut told = Vec::new();
    for command in card.gates.keys() {
        let workspace = Workspace { folder: folder.to_string_lossy().into(), sandbox };
        let request = GateRequest {
            run: card.task_id.clone(),
            key: Key::parse("gate"),
            attempt: 1,
            gate: Gate::Command { command: command.clone(), timeout: USUAL_TIMEOUT },
            scripted: None,
            reply: None,
            workspace: Some(workspace),
        };
        let answer = inspector.look(request).await.outcome;
        let seen = answer.as_ref().ok().and_then(|it| it.json.clone()).unwrap_or_default();
        if seen["passed"] == true {
            told.push((command.clone(), Passed::Passed, None));
            continue;
        }
        let said = match &answer {
            Ok(_) => {
                seen["output"].as_str().or(seen["detail"].as_str()).unwrap_or_default().to_owned()
            }
            Err(fault) => fault.to_string(),
        };
        told.push((command.clone(), Passed::Failed, Some(format!("`{command}` fails: {said}"))));
    }
    told
}
