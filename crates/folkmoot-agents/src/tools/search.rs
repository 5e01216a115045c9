//! Looking for a pattern in the files of the workspace.

use std::{fmt::Write as _, path::Path};

use regex::{Regex, RegexBuilder};
use serde::Deserialize;

use super::{
    Result,
    folder::{Folder, shown},
    other,
    walk::{Entry, glob, is_meant, walk},
};

/// The most matches that one call gives.
const MATCHES: usize = 200;

/// Files beyond this size are left out, in bytes.
const FILE: u64 = 4 << 20;

/// The most lines around a match.
const CONTEXT: usize = 10;

/// How much of a line is shown, in characters.
const LINE: usize = 400;

/// How large a compiled pattern may be, in bytes.
const PATTERN: usize = 1 << 20;

/// Arguments of `search`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Search {
    pattern: String,
    glob: Option<String>,
    #[serde(default)]
    context: usize,
}

impl Search {
    /// The lines that match, `path:line: text`; lines around them with a hyphen.
    pub(super) fn run(&self, folder: &Folder, goes_on: &dyn Fn() -> bool) -> Result<String> {
        let pattern = RegexBuilder::new(&self.pattern).size_limit(PATTERN).build();
        let pattern = pattern.map_err(|error| other(format!("bad_arguments: {error}")))?;
        let glob = glob(self.glob.as_deref())?;
        let mut found = Found { text: String::new(), matches: 0, too_large: 0 };
        walk(folder, Path::new("."), usize::MAX, &mut |Entry { path, metadata }| {
            if metadata.is_file() && is_meant(glob.as_ref(), &path) {
                if metadata.len() > FILE {
                    found.too_large += 1;
                } else if let Ok(bytes) = folder.bytes(&path, FILE) {
                    found.look(&path, &bytes, &pattern, self.context.min(CONTEXT));
                }
            }
            found.matches < MATCHES && goes_on()
        })?;
        Ok(found.told())
    }
}

struct Found {
    text: String,
    matches: usize,
    too_large: usize,
}

impl Found {
    fn look(&mut self, path: &Path, bytes: &[u8], pattern: &Regex, context: usize) {
        if bytes.contains(&0) {
            return;
        }
        let text = String::from_utf8_lossy(bytes);
        let lines: Vec<&str> = text.lines().collect();
        let path = shown(path);
        // The first line that has not been shown.
        let mut next = 0;
        for (at, line) in lines.iter().enumerate() {
            if self.matches == MATCHES || !pattern.is_match(line) {
                continue;
            }
            self.matches += 1;
            let from = at.saturating_sub(context).max(next);
            if context > 0 && next > 0 && from > next {
                self.text.push_str("--\n");
            }
            let to = (at + context + 1).min(lines.len());
            for (number, line) in (from + 1..).zip(lines.get(from..to).unwrap_or_default()) {
                let mark = if pattern.is_match(line) { ':' } else { '-' };
                let line: String = line.chars().take(LINE).collect();
                let _ = writeln!(self.text, "{path}{mark}{number}{mark} {line}");
            }
            next = next.max(to);
        }
    }

    fn told(mut self) -> String {
        if self.matches == MATCHES {
            let _ = writeln!(self.text, "[the first {MATCHES} matches; narrow it with glob]");
        }
        if self.too_large > 0 {
            let _ = writeln!(self.text, "[{} files beyond 4 MiB were left out]", self.too_large);
        }
        if self.text.is_empty() { "[no match]".to_owned() } else { self.text }
    }
}
