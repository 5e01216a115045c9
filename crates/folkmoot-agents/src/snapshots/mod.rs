//! Files of workspaces as they were before calls that may have changed them, and how they are put back
//! (agents.md §10).
//!
//! They are kept by Git, in a repository of Folkmoot's own for each workspace: whether the workspace
//! is a repository too or not, nothing in it is touched, nothing of its configuration is run, and
//! files are kept to the byte. Deliberately absent: removing what is no longer wanted.

mod git;
mod listing;

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use folkmoot_core::event::Files;
use folkmoot_runtime::snapshots::Snapshots;
use thiserror::Error;
use tokio::{sync::Mutex, task::spawn_blocking};

use self::git::{Index, Repository};

/// The name of the ref of a run for the files that it left behind.
const END: &str = "end";

/// How many changed files are named.
const NAMED: usize = 5;

/// Where files are kept.
#[derive(Debug)]
pub struct Archive {
    /// The folder for all of it.
    folder: PathBuf,
    /// What finds `git`.
    path: String,
    /// Lets one thing happen at a time. Whoever works in the files meanwhile is not held up.
    alone: Mutex<()>,
}

/// What became of putting files back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PutBack {
    /// They were what they are to be.
    Unchanged,
    /// They were something else, which is kept.
    Restored(Kept),
}

/// Files that are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Their tree.
    pub tree: String,
    /// The repository that holds it.
    pub repository: PathBuf,
}

/// Why files were not put back. Nothing was touched.
#[derive(Debug, Error)]
pub enum NotPutBack {
    /// Somebody has changed them since the run left them.
    #[error("{}", changed(.0))]
    Changed(Vec<PathBuf>),
    /// They are not kept here.
    #[error("they are not kept on this machine")]
    NotKept,
    /// It did not work.
    #[error("{0}")]
    Failed(String),
}

fn changed(paths: &[PathBuf]) -> String {
    let named: Vec<_> = paths.iter().take(NAMED).map(|path| path.display().to_string()).collect();
    let more = paths.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    match &named[..] {
        [] => "what the run left behind is not known".to_owned(),
        named => format!("they have changed since: {}{more}", named.join(", ")),
    }
}

/// What is to be put back, and where.
#[derive(Clone, Copy, Debug)]
pub struct Putting<'a> {
    /// The workspace.
    pub folder: &'a Path,
    /// The files.
    pub tree: &'a str,
    /// The run that has left behind what is there now, for all that is known.
    pub origin: &'a str,
    /// The run for which it is done, under whose name what is there now is kept.
    pub run: &'a str,
    /// Whether changes of others are undone too.
    pub changes: Changes,
}

/// What becomes of changes that the run did not make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changes {
    /// They stand in the way.
    Respected,
    /// They are undone.
    Discarded,
}

impl Archive {
    /// An archive in `folder`, whose `git` is found by `path`, the variable of that name.
    pub fn new(folder: PathBuf, path: &str) -> Archive {
        Archive { folder, path: path.to_owned(), alone: Mutex::new(()) }
    }

    /// Puts the files of a workspace back. What is there before is kept.
    ///
    /// # Errors
    /// If they are not, and why; then nothing has been touched.
    pub async fn put_back(&self, putting: Putting<'_>) -> Result<PutBack, NotPutBack> {
        let _alone = self.alone.lock().await;
        let Putting { folder, tree, origin, run, changes } = putting;
        let repository = self.repository(folder).await.map_err(NotPutBack::Failed)?;
        let index = repository.index().map_err(|error| NotPutBack::Failed(error.to_string()))?;
        if !repository.has(&index, tree).await {
            return Err(NotPutBack::NotKept);
        }
        let failed = NotPutBack::Failed;
        let wanted = repository.paths_of(&index, tree).await.map_err(failed)?;
        let failed = NotPutBack::Failed;
        let now = self.look(&repository, &index, run, wanted).await.map_err(failed)?;
        if now == tree {
            return Ok(PutBack::Unchanged);
        }
        let left = repository.named(origin, END);
        if changes == Changes::Respected && left.as_deref() != Some(&now) {
            let differing = match &left {
                Some(left) => repository.differing(&index, [left, &now]).await.unwrap_or_default(),
                None => Vec::new(),
            };
            return Err(NotPutBack::Changed(differing));
        }
        repository.move_to(&index, [&now, tree]).await.map_err(NotPutBack::Failed)?;
        let _ = repository.keep(index);
        Ok(PutBack::Restored(Kept { tree: now, repository: repository.folder }))
    }

    async fn save_now(&self, run: &str, folder: &Path) -> Result<String, String> {
        let _alone = self.alone.lock().await;
        let repository = self.repository(folder).await?;
        let index = repository.index().map_err(|error| error.to_string())?;
        let tree = self.look(&repository, &index, run, Vec::new()).await?;
        repository.keep(index).map_err(|error| error.to_string())?;
        Ok(tree)
    }

    /// The repository of a workspace.
    async fn repository(&self, folder: &Path) -> Result<Repository, String> {
        let (archive, folder, path) = (self.folder.clone(), folder.to_owned(), self.path.clone());
        let opened = spawn_blocking(move || {
            let root = folder.canonicalize()?;
            let name = blake3::hash(root.as_os_str().as_encoded_bytes()).to_hex();
            Repository::open(archive.join(&name[..16]), root, &path)
        });
        let opened = opened.await.map_err(|error| error.to_string())?;
        opened.map_err(|error| error.to_string())
    }

    /// What the files are now: those that are seen, those that were seen before, and those `beside`.
    async fn look(
        &self,
        repository: &Repository,
        index: &Index,
        run: &str,
        beside: Vec<PathBuf>,
    ) -> Result<String, String> {
        let before = repository.indexed(index).await?;
        let (root, closed) = (repository.root.clone(), self.folder.clone());
        let looked = spawn_blocking(move || {
            let closed = closed.canonicalize().unwrap_or(closed);
            let mut files = listing::listed(&root, &closed)?;
            let unseen = before.iter().chain(&beside).filter(|path| !files.contains(*path));
            let is_there = |path: &&PathBuf| listing::is_there(&root, path);
            let there: Vec<PathBuf> = unseen.filter(is_there).cloned().collect();
            files.extend(there);
            let gone = before.into_iter().filter(|path| !files.contains(path)).collect();
            Ok::<_, String>((files, gone))
        });
        let (files, gone): (_, Vec<PathBuf>) =
            looked.await.map_err(|error| error.to_string())??;
        repository.update(index, &files, &gone).await?;
        repository.tree(index, run).await
    }
}

#[async_trait]
impl Snapshots for Archive {
    async fn save(&self, run: &str, folder: &Path) -> Files {
        match self.save_now(run, folder).await {
            Ok(tree) => Files::Tree(tree.into()),
            Err(why) => Files::Unsaved(why.into()),
        }
    }

    async fn leave(&self, run: &str, folder: &Path) {
        let Ok(tree) = self.save_now(run, folder).await else { return };
        // Without it what is there later counts as somebody's own.
        if let Ok(repository) = self.repository(folder).await {
            let _ = repository.name(run, END, &tree);
        }
    }
}

#[cfg(all(test, unix))]
mod tests;
