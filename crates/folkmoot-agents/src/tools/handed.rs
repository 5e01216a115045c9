//! Files and folders as programs ask for them that know of whole paths only.

use std::path::{Path, PathBuf};

use super::{
    Result,
    folder::{Folder, inside, shown},
    other,
};

/// The longest file that is handed out or taken, in bytes.
const LONGEST: u64 = 4 << 20;

/// The workspace of a program that asks us for its files.
#[derive(Debug)]
pub(crate) struct Handed {
    root: PathBuf,
    closed: Vec<PathBuf>,
}

impl Handed {
    /// The workspace at `root`, of which the files in `closed` are not for agents.
    pub(crate) fn new(root: &Path, closed: &[PathBuf]) -> Handed {
        Handed { root: root.to_owned(), closed: closed.to_vec() }
    }

    /// The text of a file; from line `first`, counted from 1, and so many lines, if that is asked.
    pub(crate) fn read(
        &self,
        path: &Path,
        first: Option<u32>,
        lines: Option<u32>,
    ) -> Result<String> {
        let bytes = self.open()?.bytes(&self.place_of(path)?, LONGEST + 1)?;
        if bytes.len() as u64 > LONGEST {
            return Err(other("too_large: files of up to 4 MiB are handed out"));
        }
        if bytes.contains(&0) {
            return Err(other("binary: it is no text"));
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if first.is_none() && lines.is_none() {
            return Ok(text);
        }
        let skipped = first.unwrap_or(1).saturating_sub(1) as usize;
        let count = lines.map_or(usize::MAX, |lines| lines as usize);
        Ok(text.split_inclusive('\n').skip(skipped).take(count).collect())
    }

    /// Writes a file as a whole.
    pub(crate) fn write(&self, path: &Path, text: &str) -> Result<()> {
        if text.len() as u64 > LONGEST {
            return Err(other("too_large: files of up to 4 MiB are taken"));
        }
        self.open()?.write(&self.place_of(path)?, text.as_bytes())
    }

    /// A folder in the workspace, all links followed.
    pub(crate) fn dir(&self, path: &Path) -> Result<PathBuf> {
        Ok(self.root.join(self.open()?.resolved(&self.place_of(path)?)?))
    }

    fn open(&self) -> Result<Folder> {
        Folder::open(&self.root, &self.closed)
    }

    /// Where in the workspace a path is.
    fn place_of(&self, path: &Path) -> Result<PathBuf> {
        let real = self.root.canonicalize().ok();
        let mut roots = [Some(&self.root), real.as_ref()].into_iter().flatten();
        let below = roots.find_map(|root| path.strip_prefix(root).ok()).unwrap_or(path);
        inside(&shown(below))
    }
}
