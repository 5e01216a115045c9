//! Git, as far as it is needed to keep files.
//!
//! It works in a repository of Folkmoot's own, with a configuration of Folkmoot's own: that of the
//! workspace, its hooks and its filters are another's, and are not looked at.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::{Output, Stdio},
    time::Duration,
};

use tempfile::{NamedTempFile, TempPath};
use tokio::{io::AsyncWriteExt, process::Command, time::timeout};

/// How long one command may take.
const TIME: Duration = Duration::from_mins(1);

/// How much of what went wrong is told, in characters.
const WORDS: usize = 200;

const CONFIG: &str = "[core]
\trepositoryformatversion = 0
\tbare = false
\tautocrlf = false
\tsafecrlf = false
\tcompression = 1
\thooksPath = /dev/null
\tfsmonitor = false
[gc]
\tauto = 0
";

/// Files are kept to the byte, whatever the attributes of the workspace say.
const ATTRIBUTES: &str = "* -text !eol -ident -filter -working-tree-encoding\n";

/// A repository for one workspace.
#[derive(Debug)]
pub(super) struct Repository {
    /// Where it is.
    pub(super) folder: PathBuf,
    /// The workspace.
    pub(super) root: PathBuf,
    /// What finds `git`.
    path: String,
}

/// What is known of the files of the workspace, for one user at a time.
pub(super) struct Index {
    path: TempPath,
    /// Whether there was none before.
    is_new: bool,
}

impl Repository {
    /// The repository in `folder`, which is made if there is none.
    pub(super) fn open(folder: PathBuf, root: PathBuf, path: &str) -> io::Result<Repository> {
        for part in ["objects", "refs/folkmoot", "info"] {
            fs::create_dir_all(folder.join(part))?;
        }
        for (name, text) in [("config", CONFIG), ("info/attributes", ATTRIBUTES)] {
            put(&folder, name, text)?;
        }
        // It is a repository once it has this.
        if !folder.join("HEAD").exists() {
            put(&folder, "HEAD", "ref: refs/heads/none\n")?;
        }
        Ok(Repository { folder, root, path: path.to_owned() })
    }

    /// An index of one's own, with what is known of the files from the last time.
    pub(super) fn index(&self) -> io::Result<Index> {
        let path = NamedTempFile::with_prefix_in("index-", &self.folder)?.into_temp_path();
        let last = self.folder.join("index");
        let is_new = match fs::copy(&last, &path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // An empty file is no index.
                fs::remove_file(&path)?;
                true
            }
            Err(error) => return Err(error),
            Ok(_) => {
                // By its time it is judged which files may have changed since unseen.
                let written = fs::metadata(&last)?.modified()?;
                fs::File::options().write(true).open(&path)?.set_modified(written)?;
                false
            }
        };
        Ok(Index { path, is_new })
    }

    /// Keeps what an index knows for the next time.
    pub(super) fn keep(&self, index: Index) -> io::Result<()> {
        index.path.persist(self.folder.join("index")).map_err(|error| error.error)
    }

    /// The paths in an index.
    pub(super) async fn indexed(&self, index: &Index) -> Result<Vec<PathBuf>, String> {
        if index.is_new {
            return Ok(Vec::new());
        }
        Ok(paths(&self.run(index, &["ls-files", "-z"], &[]).await?))
    }

    /// Puts into an index what the files are now, without those that are `gone`.
    pub(super) async fn update<'a>(
        &self,
        index: &Index,
        files: impl IntoIterator<Item = &'a PathBuf>,
        gone: &[PathBuf],
    ) -> Result<(), String> {
        if !gone.is_empty() {
            let mut list = Vec::new();
            for path in gone {
                list.extend_from_slice(b"0 0000000000000000000000000000000000000000\t");
                list.extend_from_slice(&bytes(path));
                list.push(0);
            }
            self.run(index, &["update-index", "-z", "--index-info"], &list).await?;
        }
        let mut list = Vec::new();
        for path in files {
            list.extend_from_slice(&bytes(path));
            list.push(0);
        }
        // At first there are many, which are kept better in one file than in one each.
        let packed: &[&str] = if index.is_new { &["-c", "core.bigFileThreshold=1"] } else { &[] };
        let update = ["update-index", "--add", "--replace", "--remove", "-z", "--stdin"];
        self.run(index, &[packed, &update].concat(), &list).await.map(|_| ())
    }

    /// The tree of an index, which is kept as long as the ref of its name under `run` is there.
    pub(super) async fn tree(&self, index: &Index, run: &str) -> Result<String, String> {
        let tree = self.run(index, &["write-tree"], &[]).await?;
        let tree = String::from_utf8_lossy(&tree).trim().to_owned();
        self.name(run, &tree, &tree).map_err(|error| error.to_string())?;
        Ok(tree)
    }

    /// Sets the ref `name` of a run.
    pub(super) fn name(&self, run: &str, name: &str, tree: &str) -> io::Result<()> {
        let folder = self.folder.join("refs/folkmoot").join(run);
        if fs::read_to_string(folder.join(name)).is_ok_and(|it| it.trim_end() == tree) {
            return Ok(());
        }
        fs::create_dir_all(&folder)?;
        put(&folder, name, &format!("{tree}\n"))
    }

    /// The tree of a ref of a run.
    pub(super) fn named(&self, run: &str, name: &str) -> Option<String> {
        // A record that comes from elsewhere may name anything.
        if !run.bytes().all(|it| it.is_ascii_alphanumeric()) {
            return None;
        }
        let text =
            fs::read_to_string(self.folder.join("refs/folkmoot").join(run).join(name)).ok()?;
        Some(text.trim_end().to_owned())
    }

    /// Whether a tree is kept here.
    pub(super) async fn has(&self, index: &Index, tree: &str) -> bool {
        let is_name = !tree.is_empty() && tree.bytes().all(|it| it.is_ascii_hexdigit());
        is_name
            && self.run(index, &["cat-file", "-e", &format!("{tree}^{{tree}}")], &[]).await.is_ok()
    }

    /// The paths in a tree.
    pub(super) async fn paths_of(&self, index: &Index, tree: &str) -> Result<Vec<PathBuf>, String> {
        let list = self.run(index, &["ls-tree", "-r", "-z", "--name-only", tree], &[]).await?;
        Ok(paths(&list))
    }

    /// The paths that differ between two trees.
    pub(super) async fn differing(
        &self,
        index: &Index,
        [one, other]: [&str; 2],
    ) -> Result<Vec<PathBuf>, String> {
        let diff = ["diff-tree", "-r", "-z", "--name-only", "--no-ext-diff", one, other];
        Ok(paths(&self.run(index, &diff, &[]).await?))
    }

    /// Brings the files from the tree that an index stands for to another. Whatever was changed
    /// meanwhile, or would be lost otherwise, lets it fail before anything is touched.
    pub(super) async fn move_to(&self, index: &Index, [from, to]: [&str; 2]) -> Result<(), String> {
        self.run(index, &["read-tree", "-m", "-u", from, to], &[]).await.map(|_| ())
    }

    async fn run(
        &self,
        index: &Index,
        arguments: &[&str],
        input: &[u8],
    ) -> Result<Vec<u8>, String> {
        let mut command = Command::new("git");
        command
            .args(arguments)
            .current_dir(&self.root)
            .env_clear()
            .envs(self.environment(index))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => "git is not installed, or not in PATH".to_owned(),
            _ => format!("git cannot be run: {error}"),
        })?;
        let stdin = child.stdin.take();
        let writing = async {
            if let Some(mut stdin) = stdin {
                let _ = stdin.write_all(input).await;
            }
        };
        let both = async { tokio::join!(child.wait_with_output(), writing).0 };
        match timeout(TIME, both).await {
            Ok(Ok(Output { status, stdout, .. })) if status.success() => Ok(stdout),
            Ok(Ok(Output { stderr, .. })) => {
                let text = String::from_utf8_lossy(&stderr);
                let text: String = text.trim().chars().take(WORDS).collect();
                Err(format!("git: {text}"))
            }
            Ok(Err(error)) => Err(format!("git cannot be run: {error}")),
            Err(_) => Err(format!("git takes longer than {} s", TIME.as_secs())),
        }
    }

    /// All its variables.
    fn environment<'a>(&'a self, index: &'a Index) -> BTreeMap<&'static str, &'a OsStr> {
        let nothing = OsStr::new(if cfg!(windows) { "NUL" } else { "/dev/null" });
        [
            ("PATH", OsStr::new(&self.path)),
            ("LC_ALL", OsStr::new("C")),
            ("GIT_DIR", self.folder.as_os_str()),
            ("GIT_WORK_TREE", self.root.as_os_str()),
            ("GIT_INDEX_FILE", index.path.as_os_str()),
            ("GIT_CONFIG_NOSYSTEM", OsStr::new("1")),
            ("GIT_CONFIG_SYSTEM", nothing),
            ("GIT_CONFIG_GLOBAL", nothing),
            ("GIT_ATTR_NOSYSTEM", OsStr::new("1")),
        ]
        .into()
    }
}

/// Writes a file as a whole.
fn put(folder: &Path, name: &str, text: &str) -> io::Result<()> {
    let mut draft = NamedTempFile::with_prefix_in("draft-", folder)?;
    draft.write_all(text.as_bytes())?;
    draft.persist(folder.join(name)).map(|_| ()).map_err(|error| error.error)
}

#[cfg(unix)]
fn bytes(path: &Path) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt;
    path.as_os_str().as_bytes().to_vec()
}

#[cfg(not(unix))]
fn bytes(path: &Path) -> Vec<u8> {
    path.to_string_lossy().replace('\\', "/").into_bytes()
}

/// The paths in a list, each with a NUL behind it.
fn paths(list: &[u8]) -> Vec<PathBuf> {
    list.split(|byte| *byte == 0).filter(|it| !it.is_empty()).map(path_of).collect()
}

#[cfg(unix)]
fn path_of(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    OsStr::from_bytes(bytes).into()
}

#[cfg(not(unix))]
fn path_of(bytes: &[u8]) -> PathBuf {
    String::from_utf8_lossy(bytes).into_owned().into()
}
