//! Who may do what: tokens, their roles, and the file in which they are kept (server.md §1).

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use thiserror::Error;
use uuid::Uuid;

/// What the holder of a token may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Look at everything.
    Read,
    /// That, and change it.
    Run,
}

impl Role {
    /// The role by its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Read => "read",
            Role::Run => "run",
        }
    }
}

/// The tokens of a server. They are known by their hashes, so nothing that is printed holds one.
#[derive(Clone, Debug)]
pub struct Tokens {
    run: blake3::Hash,
    read: Option<blake3::Hash>,
}

/// Why there are no tokens.
#[derive(Debug, Error)]
pub enum TokenError {
    /// A token is blank, or holds what cannot stand in a header.
    #[error("a token is blank, or is more than visible ASCII characters")]
    Unusable,
    /// Both roles have the same.
    #[error("the same token is given for both roles")]
    Same,
    /// Others could read the file.
    #[error("{} can be read by others, so its tokens are none; remove it", .0.display())]
    Exposed(PathBuf),
    /// The file holds something else.
    #[error("{} holds no tokens; remove it", .0.display())]
    Foreign(PathBuf),
    /// It could not be read or written.
    #[error("tokens cannot be kept in {}: {source}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

impl Tokens {
    /// Tokens that somebody chose; without one to read, that one alone counts.
    pub fn given(run: &str, read: Option<&str>) -> Result<Tokens, TokenError> {
        let is_usable = |it: &str| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_graphic());
        if ![Some(run), read].into_iter().flatten().all(is_usable) {
            return Err(TokenError::Unusable);
        }
        if read == Some(run) {
            return Err(TokenError::Same);
        }
        let hash = |token: &str| blake3::hash(token.as_bytes());
        Ok(Tokens { run: hash(run), read: read.map(hash) })
    }

    /// The tokens that `file` keeps. If there is no such file, new ones are made and kept there; then
    /// the one that may do everything is given too, to be told once.
    pub fn kept(file: &Path) -> Result<(Tokens, Option<String>), TokenError> {
        let failed = |source| TokenError::Io { file: file.to_owned(), source };
        match fs::symlink_metadata(file) {
            Ok(found) if is_private(&found) => Ok((read(file)?, None)),
            Ok(_) => Err(TokenError::Exposed(file.to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let (run, read) = (random(), random());
                write(file, &format!("run {run}\nread {read}\n")).map_err(failed)?;
                Ok((Tokens::given(&run, Some(&read))?, Some(run)))
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// What the holder of `token` may do. It takes as long for any token (hashes are compared, and that in
    /// constant time).
    pub fn role(&self, token: &str) -> Option<Role> {
        let given = blake3::hash(token.as_bytes());
        let (is_run, is_read) = (self.run == given, self.read.is_some_and(|read| read == given));
        match (is_run, is_read) {
            (true, _) => Some(Role::Run),
            (false, true) => Some(Role::Read),
            (false, false) => None,
        }
    }
}

/// A token that nobody can guess: 244 random bits.
fn random() -> String {
    format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple())
}

fn read(file: &Path) -> Result<Tokens, TokenError> {
    let text = fs::read_to_string(file);
    let text = text.map_err(|source| TokenError::Io { file: file.to_owned(), source })?;
    let of = |role: Role| {
        let lines = text.lines().filter_map(|line| line.split_once(' '));
        lines.filter(|(name, _)| *name == role.as_str()).map(|(_, token)| token).next()
    };
    let run = of(Role::Run).ok_or_else(|| TokenError::Foreign(file.to_owned()))?;
    Tokens::given(run, of(Role::Read)).map_err(|_| TokenError::Foreign(file.to_owned()))
}

/// Writes a file that only its owner can read: whole, or not at all.
fn write(file: &Path, text: &str) -> io::Result<()> {
    let mut fresh = file.as_os_str().to_owned();
    fresh.push(format!(".{}", Uuid::new_v4().simple()));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut written = options.open(&fresh)?;
    written.write_all(text.as_bytes())?;
    written.sync_all()?;
    fs::rename(&fresh, file)
}

/// Whether it is a file that nobody but its owner can read.
fn is_private(found: &fs::Metadata) -> bool {
    #[cfg(unix)]
    let is_shared = std::os::unix::fs::MetadataExt::mode(found) & 0o077 != 0;
    #[cfg(not(unix))]
    let is_shared = false;
    found.is_file() && !is_shared
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_its_role_and_nothing_else_has_one() {
        let tokens = Tokens::given("run-token", Some("read-token")).expect("both are usable");
        assert_eq!(tokens.role("run-token"), Some(Role::Run));
        assert_eq!(tokens.role("read-token"), Some(Role::Read));
        for wrong in ["", "run", "run-token ", "RUN-TOKEN", "read-token\0"] {
            assert_eq!(tokens.role(wrong), None, "{wrong:?}");
        }
        assert!(!format!("{tokens:?}").contains("run-token"), "nothing that is printed holds one");
    }

    #[test]
    fn tokens_that_cannot_be_told_apart_or_sent_are_refused() {
        for (run, read) in
            [("", None), ("a b", None), ("a", Some("")), ("é", None), ("a", Some("a"))]
        {
            assert!(Tokens::given(run, read).is_err(), "{run:?} {read:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn tokens_are_made_once_and_only_their_owner_can_read_them() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("token");
        let (made, told) = Tokens::kept(&file).expect("it can be written");
        let told = told.expect("new ones are told");
        assert_eq!(made.role(&told), Some(Role::Run));
        let mode = file.metadata().expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let (again, untold) = Tokens::kept(&file).expect("it can be read");
        assert_eq!((again.role(&told), untold), (Some(Role::Run), None));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("it is ours");
        assert!(matches!(Tokens::kept(&file), Err(TokenError::Exposed(_))));
        fs::remove_file(&file).expect("it is ours");
        std::os::unix::fs::symlink("elsewhere", &file).expect("links can be made");
        assert!(matches!(Tokens::kept(&file), Err(TokenError::Exposed(_))));
    }
}
