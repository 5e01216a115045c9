//! Reading, listing and writing files.

use std::{
    fmt::Write as _,
    io::{BufRead, BufReader},
    path::Path,
};

use folkmoot_core::diagnostic::quoted;
use serde::Deserialize;

use super::{
    Result,
    folder::{Folder, fault_of, inside, shown},
    other,
    walk::{glob, is_meant, walk},
};

/// The most bytes that one call reads.
const READ: usize = 256 << 10;

/// The largest file that parts are replaced in.
const REPLACED: u64 = 16 << 20;

/// The most entries that one call lists.
const ENTRIES: usize = 2000;

/// Arguments of `file.read`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Read {
    path: String,
    /// The first line, from 1.
    offset: Option<usize>,
    /// How many lines.
    limit: Option<usize>,
}

/// The lines of a file, each with its number.
pub(super) fn read(folder: &Folder, wanted: &Read) -> Result<String> {
    let path = inside(&wanted.path)?;
    let mut file = BufReader::new(folder.file(&path)?);
    let first = wanted.offset.unwrap_or(1).max(1);
    let last = wanted.limit.map_or(usize::MAX, |limit| first.saturating_add(limit));
    let (mut text, mut replaced, mut line) = (String::new(), false, Vec::new());
    for number in 1.. {
        line.clear();
        // A line may be longer than all that is shown.
        let room = (READ - text.len().min(READ)) as u64 + 1;
        let read = std::io::Read::take(&mut file, room).read_until(b'\n', &mut line);
        if read.map_err(|error| fault_of(&path, &error))? == 0 {
            if number <= first && first > 1 {
                return Err(other(format!("there is no line {first}; it has {}", number - 1)));
            }
            break;
        }
        if line.contains(&0) {
            return Err(other(format!("binary: {} is no text", quoted(&wanted.path))));
        }
        if number < first {
            continue;
        }
        let is_full = text.len() + line.len() > READ;
        if number >= last || is_full {
            let more = format!("[more follows; go on with offset {number}]");
            let _ = writeln!(text, "{more}");
            break;
        }
        replaced |= std::str::from_utf8(&line).is_err();
        let shown = String::from_utf8_lossy(&line);
        let _ = writeln!(text, "{number:>6}\t{}", shown.trim_end_matches(['\n', '\r']));
    }
    if replaced {
        text.push_str("[what is no UTF-8 was replaced by \u{fffd}]\n");
    }
    Ok(if text.is_empty() { "[the file is empty]".to_owned() } else { text })
}

/// Arguments of `file.list`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct List {
    path: Option<String>,
    glob: Option<String>,
    depth: Option<usize>,
}

/// What is in a folder, one entry a line.
pub(super) fn list(folder: &Folder, wanted: &List, goes_on: &dyn Fn() -> bool) -> Result<String> {
    let from = inside(wanted.path.as_deref().unwrap_or("."))?;
    let glob = glob(wanted.glob.as_deref())?;
    let (mut text, mut count) = (String::new(), 0);
    walk(folder, &from, wanted.depth.unwrap_or(usize::MAX), &mut |entry| {
        if !is_meant(glob.as_ref(), &entry.path) {
            return goes_on();
        }
        count += 1;
        if count > ENTRIES {
            let _ =
                writeln!(text, "[more than {ENTRIES} entries; narrow it with path, glob or depth]");
            return false;
        }
        let path = shown(&entry.path);
        let _ = match entry.metadata.file_type() {
            it if it.is_dir() => writeln!(text, "{path}/"),
            it if it.is_symlink() => writeln!(text, "{path} (link)"),
            it if it.is_file() => writeln!(text, "{path} ({} bytes)", entry.metadata.len()),
            _ => writeln!(text, "{path} (no file)"),
        };
        goes_on()
    })?;
    Ok(if text.is_empty() { "[nothing there]".to_owned() } else { text })
}

/// Arguments of `file.write`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Write {
    path: String,
    content: Option<String>,
    old: Option<String>,
    new: Option<String>,
    #[serde(default)]
    all: bool,
}

/// Writes a file; gives what has changed in numbers.
pub(super) fn write(folder: &Folder, wanted: &Write) -> Result<String> {
    let path = inside(&wanted.path)?;
    match (&wanted.content, &wanted.old, &wanted.new) {
        (Some(content), None, None) => {
            folder.write(&path, content.as_bytes())?;
            Ok(format!("wrote {}: {} lines, {} bytes", wanted.path, lines(content), content.len()))
        }
        (None, Some(old), Some(new)) => replace(folder, &path, old, new, wanted.all),
        _ => Err(other("bad_arguments: give content, or old and new")),
    }
}

fn replace(folder: &Folder, path: &Path, old: &str, new: &str, all: bool) -> Result<String> {
    let bytes = folder.bytes(path, REPLACED + 1)?;
    if bytes.len() as u64 > REPLACED {
        return Err(other("too_large: parts are replaced in files of up to 16 MiB"));
    }
    let text = String::from_utf8(bytes).map_err(|_| other("binary: it is no UTF-8"))?;
    let found = if old.is_empty() { 0 } else { text.matches(old).count() };
    if found == 0 {
        return Err(other("not_found: the old text does not occur in the file"));
    }
    if found > 1 && !all {
        let text = format!("ambiguous: the old text occurs {found} times; give more of it, or all");
        return Err(other(text));
    }
    folder.write(path, text.replace(old, new).as_bytes())?;
    let (gone, come) = (lines(old) * found, lines(new) * found);
    Ok(format!("wrote {}: {found} replaced, -{gone} +{come} lines", shown(path)))
}

fn lines(text: &str) -> usize {
    text.lines().count()
}
