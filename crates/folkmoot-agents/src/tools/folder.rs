//! A workspace, and nothing beside it.
//!
//! Every file is opened below a handle of the workspace's folder, and the operating system refuses
//! what leads out of it, so a link that is changed between a look and the act leads nowhere new.

use std::{
    io::{self, Read},
    path::{Component, Path, PathBuf},
};

use cap_fs_ext::DirExt;
use cap_std::{
    ambient_authority,
    fs::{Dir, File, OpenOptions},
};
use folkmoot_core::{
    call::{FailureKind, Fault},
    diagnostic::quoted,
};
use uuid::Uuid;

use super::{Result, other};

/// A folder that agents work in.
#[derive(Debug)]
pub(super) struct Folder {
    root: Dir,
    /// Files and folders in it that nobody may write.
    closed: Vec<PathBuf>,
}

impl Folder {
    /// The folder at `path`, of which the files in `closed` are not for agents.
    pub(super) fn open(path: &Path, closed: &[PathBuf]) -> Result<Folder> {
        let unusable = |error| other(format!("the workspace cannot be opened: {error}"));
        let root = Dir::open_ambient_dir(path, ambient_authority()).map_err(unusable)?;
        let whole = path.canonicalize().map_err(unusable)?;
        let inside = closed.iter().filter_map(|file| {
            let parent = file.parent()?.canonicalize().ok()?;
            Some(parent.join(file.file_name()?).strip_prefix(&whole).ok()?.to_owned())
        });
        let closed = inside.collect();
        Ok(Folder { root, closed })
    }

    /// Opens a file for reading. Whatever is no file, a pipe or a device, is refused.
    pub(super) fn file(&self, path: &Path) -> Result<File> {
        let told = |error| fault_of(path, &error);
        let mut options = OpenOptions::new();
        options.read(true);
        // A pipe that nobody writes to would keep us waiting.
        #[cfg(unix)]
        cap_std::fs::OpenOptionsExt::custom_flags(&mut options, libc_nonblock());
        let file = self.root.open_with(path, &options).map_err(told)?;
        if file.metadata().map_err(told)?.is_file() {
            Ok(file)
        } else {
            Err(other(format!("not_a_file: {}", quoted(&shown(path)))))
        }
    }

    /// The first bytes of a file, at most so many.
    pub(super) fn bytes(&self, path: &Path, most: u64) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let read = self.file(path)?.take(most).read_to_end(&mut bytes);
        read.map_err(|error| fault_of(path, &error))?;
        Ok(bytes)
    }

    /// A folder in it.
    pub(super) fn dir(&self, path: &Path) -> Result<Dir> {
        self.root.open_dir(path).map_err(|error| fault_of(path, &error))
    }

    /// Where in it a path leads when all links are followed.
    pub(super) fn resolved(&self, path: &Path) -> Result<PathBuf> {
        self.root.canonicalize(path).map_err(|error| fault_of(path, &error))
    }

    /// Writes a file as a whole, or leaves it as it was; folders that lack are made.
    ///
    /// The new text takes the place of the old by a rename, so whoever else holds the file, by a hard
    /// link from elsewhere for instance, keeps what it was.
    pub(super) fn write(&self, path: &Path, text: &[u8]) -> Result<()> {
        let told = |error: io::Error| fault_of(path, &error);
        let path = self.place_of(path)?;
        let name = path.file_name().ok_or_else(|| other("a file needs a name"))?;
        if self.is_closed(&path) {
            let text = format!("denied: {} is not for agents", quoted(&shown(&path)));
            return Err(Fault::failed(FailureKind::Denied, text));
        }
        let mut parent = self.root.try_clone().map_err(told)?;
        for part in path.parent().into_iter().flat_map(Path::components) {
            let Component::Normal(part) = part else { continue };
            match parent.create_dir(part) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(told(error));
                }
                Ok(()) | Err(_) => {}
            }
            // The way is the real one: a link on it was put there just now.
            parent = parent.open_dir_nofollow(part).map_err(told)?;
        }
        let draft = format!(".folkmoot-{}", Uuid::new_v4());
        let put = put(&parent, name.as_ref(), draft.as_ref(), text);
        if put.is_err() {
            let _ = parent.remove_file(&draft);
        }
        put.map_err(told)
    }

    /// Where a file really is, or would be.
    fn place_of(&self, path: &Path) -> Result<PathBuf> {
        match self.root.canonicalize(path) {
            Ok(real) => return Ok(real),
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(fault_of(path, &error));
            }
            // A link to nowhere would be followed.
            Err(_) if self.root.symlink_metadata(path).is_ok() => {
                return Err(other(format!("not_found: {} leads nowhere", quoted(&shown(path)))));
            }
            Err(_) => {}
        }
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Ok(path.to_owned());
        };
        Ok(self.place_of(parent)?.join(name))
    }

    /// Whether the file at a real path is Git's or Folkmoot's own.
    fn is_closed(&self, path: &Path) -> bool {
        let is_git = |part: Component<'_>| part.as_os_str().eq_ignore_ascii_case(".git");
        path.components().any(is_git) || self.closed.iter().any(|closed| path.starts_with(closed))
    }
}

/// Puts a file with `text` in the place of `name`, by way of `draft`.
fn put(parent: &Dir, name: &Path, draft: &Path, text: &[u8]) -> io::Result<()> {
    use io::Write as _;
    let before = parent.symlink_metadata(name).ok();
    if before.as_ref().is_some_and(|it| !it.is_file()) {
        return Err(io::Error::other("it is no file"));
    }
    let mut file = parent.open_with(draft, OpenOptions::new().write(true).create_new(true))?;
    file.write_all(text)?;
    if let Some(before) = before {
        file.set_permissions(before.permissions())?;
    }
    file.sync_all()?;
    parent.rename(draft, parent, name)
}

#[cfg(unix)]
fn libc_nonblock() -> i32 {
    rustix::fs::OFlags::NONBLOCK.bits().cast_signed()
}

/// A path in the workspace, as an agent gives it.
pub(super) fn inside(given: &str) -> Result<PathBuf> {
    let mut path = PathBuf::new();
    for part in Path::new(given).components() {
        match part {
            Component::Normal(part) => path.push(part),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Err(outside(given));
            }
        }
    }
    Ok(if path.as_os_str().is_empty() { PathBuf::from(".") } else { path })
}

/// Why a path cannot be used.
pub(super) fn fault_of(path: &Path, error: &io::Error) -> Fault {
    let shown = shown(path);
    match error.kind() {
        io::ErrorKind::NotFound => {
            let text = format!("not_found: there is no {}", quoted(&shown));
            Fault::failed(FailureKind::NotFound, text)
        }
        // What leads out is refused without the operating system's having a say.
        io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => outside(&shown),
        _ => Fault::failed(FailureKind::Io, format!("{}: {error}", quoted(&shown))),
    }
}

fn outside(path: &str) -> Fault {
    let text = format!(
        "outside_workspace: {} leads out of the workspace; paths are relative to it",
        quoted(path)
    );
    Fault::failed(FailureKind::Denied, text)
}

/// A path as agents read it.
pub(super) fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
