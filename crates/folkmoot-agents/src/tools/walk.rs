//! Everything below a folder, without what its ignore files name.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use cap_std::fs::{Dir, Metadata};
use globset::{Glob, GlobMatcher};
use ignore::{
    Match,
    gitignore::{Gitignore, GitignoreBuilder},
};

use super::{Result, folder::Folder, other};

/// What folders name files in that are of no interest.
const IGNORE_FILES: [&str; 2] = [".gitignore", ".ignore"];

/// The most bytes of such a file that are read.
const IGNORE_FILE: u64 = 64 << 10;

/// Something that stands in a folder.
pub(super) struct Entry {
    /// Its path in the workspace.
    pub(super) path: PathBuf,
    pub(super) metadata: Metadata,
}

/// Goes through `from` in order of names, `depth` folders deep; links are told and not followed. Ends
/// when `see` says so.
pub(super) fn walk(
    folder: &Folder,
    from: &Path,
    depth: usize,
    see: &mut dyn FnMut(Entry) -> bool,
) -> Result<()> {
    let mut ignored = Vec::new();
    let mut above = PathBuf::new();
    for part in from.components().filter(|part| part.as_os_str() != ".") {
        ignored.extend(ignore_file(folder, &above));
        above.push(part);
    }
    let dir = folder.dir(from)?;
    Walk { folder, see, ignored }.through(&dir, &above, depth);
    Ok(())
}

struct Walk<'a> {
    folder: &'a Folder,
    see: &'a mut dyn FnMut(Entry) -> bool,
    /// What each folder on the way here ignores, the innermost last.
    ignored: Vec<Gitignore>,
}

impl Walk<'_> {
    /// Goes through one folder; false when enough was seen.
    fn through(&mut self, dir: &Dir, at: &Path, depth: usize) -> bool {
        let known = self.ignored.len();
        self.ignored.extend(ignore_file(self.folder, at));
        let goes_on = self.entries(dir, at, depth);
        self.ignored.truncate(known);
        goes_on
    }

    fn entries(&mut self, dir: &Dir, at: &Path, depth: usize) -> bool {
        let Ok(entries) = dir.entries() else { return true };
        let mut names: Vec<_> = entries.filter_map(|it| Some(it.ok()?.file_name())).collect();
        names.sort();
        for name in names {
            let path = at.join(&name);
            let Ok(metadata) = dir.symlink_metadata(&name) else { continue };
            let is_dir = metadata.is_dir();
            if name == OsStr::new(".git") || self.is_ignored(&path, is_dir) {
                continue;
            }
            if !(self.see)(Entry { path: path.clone(), metadata }) {
                return false;
            }
            if !is_dir || depth <= 1 {
                continue;
            }
            let Ok(inner) = cap_fs_ext::DirExt::open_dir_nofollow(dir, &name) else { continue };
            if !self.through(&inner, &path, depth - 1) {
                return false;
            }
        }
        true
    }

    fn is_ignored(&self, path: &Path, is_dir: bool) -> bool {
        for ignored in self.ignored.iter().rev() {
            match ignored.matched(path, is_dir) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        false
    }
}

/// What the ignore files of a folder say, if there are any.
fn ignore_file(folder: &Folder, at: &Path) -> Option<Gitignore> {
    let mut builder = GitignoreBuilder::new(at);
    let mut has_lines = false;
    for name in IGNORE_FILES {
        let Ok(bytes) = folder.bytes(&at.join(name), IGNORE_FILE) else { continue };
        for line in String::from_utf8_lossy(&bytes).lines() {
            // A line that is no pattern ignores nothing.
            has_lines |= builder.add_line(None, line).is_ok();
        }
    }
    has_lines.then(|| builder.build().ok())?
}

/// Which paths an agent asks for.
pub(super) fn glob(pattern: Option<&str>) -> Result<Option<GlobMatcher>> {
    let compiled = pattern.map(|pattern| Glob::new(pattern).map(|glob| glob.compile_matcher()));
    compiled.transpose().map_err(|error| other(format!("bad_arguments: glob: {error}")))
}

/// Whether a path is asked for: by its whole, or by its name where the pattern holds no folder.
pub(super) fn is_meant(glob: Option<&GlobMatcher>, path: &Path) -> bool {
    glob.is_none_or(|glob| {
        let is_name = !glob.glob().glob().contains('/');
        let name = path.file_name().filter(|_| is_name);
        glob.is_match(path) || name.is_some_and(|name| glob.is_match(name))
    })
}
