//! A file that a command writes.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use tempfile::NamedTempFile;

use crate::exit::Refusal;

/// A file that is there when it is whole, and not before.
pub(super) struct NewFile {
    unfinished: NamedTempFile,
    path: PathBuf,
    force: bool,
}

impl NewFile {
    /// Begins the file at `path`, which is there already only if it is written over by `force`.
    pub(super) fn begin(path: &Path, force: bool) -> Result<NewFile> {
        if !force && path.try_exists().unwrap_or(true) {
            return Err(exists(path).into());
        }
        let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
        let unfinished = NamedTempFile::new_in(folder.unwrap_or(Path::new(".")));
        let unfinished = unfinished.with_context(|| cannot_write(path))?;
        Ok(NewFile { unfinished, path: path.to_owned(), force })
    }

    /// Puts it in its place, whole; gives its path.
    pub(super) fn finish(self) -> Result<PathBuf> {
        let NewFile { unfinished, path, force } = self;
        unfinished.as_file().sync_all().with_context(|| cannot_write(&path))?;
        let kept =
            if force { unfinished.persist(&path) } else { unfinished.persist_noclobber(&path) };
        match kept {
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {
                Err(exists(&path).into())
            }
            kept => kept.map(drop).with_context(|| cannot_write(&path)).map(|()| path),
        }
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.unfinished.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.unfinished.flush()
    }
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

fn exists(file: &Path) -> Refusal {
    let message = format!("{} exists already", file.display());
    Refusal::new("file_exists", message).help("name another file, or write over it with --force")
}
