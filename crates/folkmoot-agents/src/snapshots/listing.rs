//! Which files of a workspace are saved: all that nothing tells to ignore, and those saved before.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};

use ignore::{DirEntry, WalkBuilder};

/// How many files are saved at the most, and how many bytes they may have together.
const MOST_FILES: usize = 50_000;
const MOST_BYTES: u64 = 1 << 30;

/// The files and links below `root`, by their paths in it, without what its ignore files name,
/// what is in `closed`, and what belongs to a repository within. Links are not followed.
pub(super) fn listed(root: &Path, closed: &Path) -> Result<BTreeSet<PathBuf>, String> {
    let walk = WalkBuilder::new(root)
        .standard_filters(false)
        .git_ignore(true)
        .git_exclude(true)
        .parents(true)
        .require_git(false)
        .filter_entry({
            let closed = closed.to_owned();
            move |entry| is_looked_into(entry, &closed)
        })
        .build();
    let (mut files, mut bytes) = (BTreeSet::new(), 0u64);
    for entry in walk {
        let entry = entry.map_err(|error| error.to_string())?;
        if !entry.file_type().is_some_and(|kind| kind.is_file() || kind.is_symlink()) {
            continue;
        }
        // What has gone meanwhile is not there.
        let Ok(metadata) = entry.path().symlink_metadata() else { continue };
        let Ok(path) = entry.path().strip_prefix(root) else { continue };
        bytes = bytes.saturating_add(metadata.len());
        files.insert(path.to_owned());
        if files.len() > MOST_FILES {
            return Err(format!("it holds more than {MOST_FILES} files"));
        }
        if bytes > MOST_BYTES {
            return Err(format!("it holds more than {} MiB", MOST_BYTES >> 20));
        }
    }
    Ok(files)
}

fn is_looked_into(entry: &DirEntry, closed: &Path) -> bool {
    let is_git = |name: &OsStr| name.eq_ignore_ascii_case(".git");
    entry.depth() == 0
        || !(is_git(entry.file_name())
            || entry.path() == closed
            || entry.path().join(".git").symlink_metadata().is_ok())
}

/// Whether a path in `root` is a file or a link that is really there, with folders alone above it.
pub(super) fn is_there(root: &Path, path: &Path) -> bool {
    let mut at = root.to_owned();
    for part in path.parent().into_iter().flat_map(Path::components) {
        at.push(part);
        if !at.symlink_metadata().is_ok_and(|it| it.is_dir()) {
            return false;
        }
    }
    fs::symlink_metadata(root.join(path)).is_ok_and(|it| it.is_file() || it.is_symlink())
}
