//! A git repository in which cards have branches and worktrees (orchestrate.md §5).
//!
//! What git is told is told to its command line. Nothing that the repository or the machine configures
//! runs: no hook, filter, merge driver or signing; nothing is ever pushed, and the checkout of the user
//! is only read.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use folkmoot_core::team::Sandbox;
use thiserror::Error;

use crate::process::{Beyond, Exit, Process};

/// How long a command of git may take.
const TIME: Duration = Duration::from_mins(2);

/// How much of what git says is kept, in bytes.
const KEPT: usize = 1 << 20;

/// Switches off what a repository may have configured to run.
const NEUTRAL: [&str; 12] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.attributesFile=/dev/null",
    "core.editor=true",
    "core.pager=cat",
    "commit.gpgSign=false",
    "tag.gpgSign=false",
    "merge.verifySignatures=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
    "protocol.allow=never",
];

/// A repository.
#[derive(Clone, Debug)]
pub struct Repository {
    /// Where its objects and branches are.
    common: PathBuf,
    /// What is configured to run, switched off.
    neutral: Vec<String>,
    environment: BTreeMap<String, String>,
}

/// A checkout of a repository in a folder of its own.
#[derive(Clone, Debug)]
pub struct Worktree {
    /// The folder.
    pub folder: PathBuf,
    /// Where the repository keeps what belongs to it: whoever works in the folder cannot change that.
    admin: PathBuf,
}

/// What comes of merging.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Merge {
    /// The commit.
    Made(String),
    /// What git says of the conflict.
    Conflict(String),
}

/// Why git could not do what it was asked.
#[derive(Debug, Error)]
pub enum GitError {
    /// There is no repository.
    #[error("{0} is in no git repository")]
    NotARepository(PathBuf),
    /// It could not be started, or a folder could not be made.
    #[error("git cannot be used: {0}")]
    Io(#[from] io::Error),
    /// It failed.
    #[error("git {what}: {said}")]
    Failed {
        /// The command.
        what: String,
        /// What it said.
        said: String,
    },
}

struct Said {
    is_good: bool,
    text: String,
}

impl Repository {
    /// The repository that `folder` is in. `ours` is the environment of this process, of which git gets
    /// where programs are.
    pub async fn open(
        folder: &Path,
        ours: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Repository, GitError> {
        let ours = ours.into_iter().filter(|(name, _)| matches!(&**name, "PATH" | "SystemRoot"));
        let fixed = [
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_AUTHOR_NAME", "folkmoot"),
            ("GIT_AUTHOR_EMAIL", "folkmoot@localhost"),
            ("GIT_COMMITTER_NAME", "folkmoot"),
            ("GIT_COMMITTER_EMAIL", "folkmoot@localhost"),
            ("LC_ALL", "C"),
        ];
        let fixed = fixed.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let environment = ours.chain(fixed).collect();
        let neutral = NEUTRAL.iter().map(|it| (*it).to_owned()).collect();
        let plain = Repository { common: PathBuf::new(), neutral, environment };
        let asked = ["rev-parse", "--path-format=absolute", "--git-common-dir"];
        let said = plain.run(folder, &[], &asked).await?;
        if !said.is_good {
            return Err(GitError::NotARepository(folder.to_owned()));
        }
        let common = PathBuf::from(said.text.trim_end_matches(['\r', '\n']));
        let mut repository = Repository { common, ..plain };
        let names = repository.git(&["config", "--list", "--name-only", "-z"]).await?;
        let switched_off = names.split('\0').filter_map(switched_off);
        repository.neutral.extend(switched_off);
        Ok(repository)
    }

    /// The branch that the user has checked out.
    pub async fn head_branch(&self) -> Result<Option<String>, GitError> {
        let said = self.try_git(&["symbolic-ref", "--short", "-q", "HEAD"]).await?;
        Ok(Some(said.text.trim().to_owned()).filter(|name| said.is_good && !name.is_empty()))
    }

    /// The last commit of a branch, or the commit itself; none if there is none.
    pub async fn commit(&self, branch: &str) -> Result<Option<String>, GitError> {
        let name = format!("refs/heads/{branch}^{{commit}}");
        let said =
            self.try_git(&["rev-parse", "--verify", "-q", "--end-of-options", &name]).await?;
        Ok(Some(said.text.trim().to_owned()).filter(|_| said.is_good))
    }

    /// Whether a commit is among those that lead to another.
    pub async fn contains(&self, later: &str, earlier: &str) -> Result<bool, GitError> {
        Ok(self.try_git(&["merge-base", "--is-ancestor", earlier, later]).await?.is_good)
    }

    /// A checkout in `folder`: of `branch`, which is made at `base` if it is not there, or of `base`
    /// alone. One that is there is used again.
    pub async fn worktree(
        &self,
        folder: &Path,
        branch: Option<&str>,
        base: &str,
    ) -> Result<Worktree, GitError> {
        if let Some(there) = self.find(folder) {
            return Ok(there);
        }
        if let Some(parent) = folder.parent() {
            std::fs::create_dir_all(parent)?;
        }
        let path = folder.to_string_lossy();
        let add = ["worktree", "add", "-q"];
        match branch {
            None => self.git(&[&add[..], &["--detach", &path, base]].concat()).await?,
            Some(branch) if self.commit(branch).await?.is_some() => {
                self.git(&[&add[..], &[&*path, branch]].concat()).await?
            }
            Some(branch) => {
                self.git(&[&add[..], &["--no-track", "-b", branch, &path, base]].concat()).await?
            }
        };
        self.find(folder).ok_or_else(|| GitError::Failed {
            what: "worktree add".to_owned(),
            said: format!("{path} is not there"),
        })
    }

    /// The checkout in `folder`, as the repository knows it.
    fn find(&self, folder: &Path) -> Option<Worktree> {
        let wanted = folder.canonicalize().ok()?;
        let entries = std::fs::read_dir(self.common.join("worktrees")).ok()?;
        let mut admins = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let is_its = |admin: &PathBuf| {
            let told = std::fs::read_to_string(admin.join("gitdir")).unwrap_or_default();
            let parent = Path::new(told.trim_end()).parent();
            parent.and_then(|it| it.canonicalize().ok()).as_ref() == Some(&wanted)
        };
        let admin = admins.find(is_its)?;
        Some(Worktree { folder: folder.to_owned(), admin })
    }

    /// Commits all that is left in a checkout, if anything is; gives its last commit.
    pub async fn commit_all(&self, tree: &Worktree, message: &str) -> Result<String, GitError> {
        self.git_in(tree, &["add", "-A"]).await?;
        let unchanged = ["diff", "--cached", "--quiet", "--no-ext-diff", "--no-textconv"];
        if !self.try_in(tree, &unchanged).await?.is_good {
            self.git_in(tree, &["commit", "-q", "--no-verify", "-m", message]).await?;
        }
        Ok(self.git_in(tree, &["rev-parse", "HEAD"]).await?.trim().to_owned())
    }

    /// Merges a commit into what is checked out; a conflict leaves nothing behind but the checkout.
    pub async fn merge(
        &self,
        tree: &Worktree,
        commit: &str,
        message: &str,
    ) -> Result<Merge, GitError> {
        let merge = ["merge", "--no-ff", "--no-verify", "--no-edit", "-q", "-m", message, commit];
        let said = self.try_in(tree, &merge).await?;
        if !said.is_good {
            return Ok(Merge::Conflict(said.text.trim().to_owned()));
        }
        Ok(Merge::Made(self.git_in(tree, &["rev-parse", "HEAD"]).await?.trim().to_owned()))
    }

    /// Moves a branch from one commit to another, unless it is elsewhere by now.
    pub async fn advance(&self, branch: &str, from: &str, to: &str) -> Result<bool, GitError> {
        let name = format!("refs/heads/{branch}");
        let update = ["update-ref", "-m", "folkmoot: merge", &name, to, from];
        Ok(self.try_git(&update).await?.is_good)
    }

    /// Takes a checkout away: one with changes only if `is_scratch`. The branch stays.
    pub async fn remove(&self, tree: &Worktree, is_scratch: bool) -> Result<bool, GitError> {
        let path = tree.folder.to_string_lossy();
        let force: &[&str] = if is_scratch { &["--force"] } else { &[] };
        Ok(self.try_git(&[&["worktree", "remove"], force, &[&*path]].concat()).await?.is_good)
    }

    /// Takes the checkout in `folder` away, if it is one and clean.
    pub async fn clear(&self, folder: &Path) -> Result<(), GitError> {
        if let Some(tree) = self.find(folder) {
            self.remove(&tree, false).await?;
        }
        Ok(())
    }

    async fn git(&self, arguments: &[&str]) -> Result<String, GitError> {
        good(arguments, self.try_git(arguments).await?)
    }

    async fn try_git(&self, arguments: &[&str]) -> Result<Said, GitError> {
        let place = [format!("--git-dir={}", self.common.display())];
        self.run(&self.common, &place, arguments).await
    }

    async fn git_in(&self, tree: &Worktree, arguments: &[&str]) -> Result<String, GitError> {
        good(arguments, self.try_in(tree, arguments).await?)
    }

    /// In a checkout, whatever its `.git` says by now.
    async fn try_in(&self, tree: &Worktree, arguments: &[&str]) -> Result<Said, GitError> {
        let place = [
            format!("--git-dir={}", tree.admin.display()),
            format!("--work-tree={}", tree.folder.display()),
        ];
        self.run(&tree.folder, &place, arguments).await
    }

    async fn run(
        &self,
        dir: &Path,
        place: &[String],
        arguments: &[&str],
    ) -> Result<Said, GitError> {
        let settings = self.neutral.iter().flat_map(|it| ["-c".to_owned(), it.clone()]);
        let argv: Vec<String> = (["git".to_owned()].into_iter())
            .chain(place.iter().cloned())
            .chain(settings)
            .chain(arguments.iter().map(|&it| it.to_owned()))
            .collect();
        let process = Process {
            argv: &argv,
            dir,
            environment: &self.environment,
            stdin: &[],
            sandbox: Sandbox::Full,
            beyond: Beyond::default(),
            workspace: dir,
            time: TIME,
            kept: (KEPT, 0),
            merged: false,
        };
        let ran = process.run().await?;
        let is_good = ran.exit == Exit::Code(0);
        let text = if is_good { ran.stdout } else { ran.stdout + &ran.stderr };
        Ok(Said { is_good, text })
    }
}

/// What switches a setting off that names a program.
fn switched_off(name: &str) -> Option<String> {
    let lower = name.to_lowercase();
    let (section, key) = (lower.split('.').next()?, lower.rsplit('.').next()?);
    let value = match (section, key) {
        ("filter", "clean" | "smudge" | "process") => "",
        ("filter", "required") | ("merge", "driver") => "false",
        _ => return None,
    };
    Some(format!("{name}={value}"))
}

fn good(arguments: &[&str], said: Said) -> Result<String, GitError> {
    if said.is_good {
        return Ok(said.text);
    }
    let what = arguments.first().copied().unwrap_or_default().to_owned();
    Err(GitError::Failed { what, said: said.text.trim().to_owned() })
}
