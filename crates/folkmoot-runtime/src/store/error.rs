//! What can go wrong with a store.

use std::{error::Error, path::PathBuf, sync::Arc};

use super::{Broken, Head, MAX_BODY, MAX_PENDING, Owner, StreamId};

/// Why a store did not do what it was asked.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// The stream does not end where the caller thought. Read on from there and decide anew.
    #[error("{stream}: ends at record {}, not at {after}", .head.seq)]
    Conflict {
        /// The stream.
        stream: StreamId,
        /// Where the caller thought it ends.
        after: u64,
        /// Where it ends.
        head: Head,
    },
    /// The caller's claim was given back or taken over. Stop driving the stream.
    #[error("{stream}: this process no longer owns it{}", .by.as_ref().map(|by| format!("; {by} does")).unwrap_or_default())]
    Superseded {
        /// The stream.
        stream: StreamId,
        /// Who owns it now.
        by: Option<Box<Owner>>,
    },
    /// Another process drives the stream. Leave it a post, or wait.
    #[error("{stream}: {by} owns it")]
    Held {
        /// The stream.
        stream: StreamId,
        /// Who does.
        by: Box<Owner>,
    },
    /// There is no such stream.
    #[error("{stream}: not found")]
    NotFound {
        /// Its name.
        stream: StreamId,
    },
    /// The same id was posted before with another body.
    #[error("{stream}: post `{id}` was made before with another body")]
    PostDiffers {
        /// The stream.
        stream: StreamId,
        /// The id.
        id: Arc<str>,
    },
    /// Too many posts wait in the stream. Try again when its writer has dealt with some.
    #[error("{stream}: {MAX_PENDING} posts are waiting already")]
    InboxFull {
        /// The stream.
        stream: StreamId,
    },
    /// A body is longer than [`MAX_BODY`].
    #[error("{stream}: a record must not be longer than {MAX_BODY} bytes")]
    TooLarge {
        /// The stream.
        stream: StreamId,
    },
    /// A stream is not as it was written. What comes before the damage can be forked.
    #[error("{stream}: {broken}; {}", sound_part(.broken))]
    Broken {
        /// The stream.
        stream: StreamId,
        /// Where and how.
        #[source]
        broken: Broken,
    },
    /// The file as a whole is damaged.
    #[error("store {}: damaged: {what}; restore a copy, or salvage it with `sqlite3 FILE .recover`", .path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What the database says of it.
        what: Arc<str>,
    },
    /// The file was written by a later version of this program. Update.
    #[error("store {}: has format {found}; this version of folkmoot knows formats up to {known}: update it", .path.display())]
    NewerVersion {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The latest format that is known here.
        known: u32,
    },
    /// The file is something else; it was not touched.
    #[error("store {}: the file exists and is no store of folkmoot; choose another", .path.display())]
    NotAStore {
        /// The file.
        path: PathBuf,
    },
    /// A file of the store was removed, moved or replaced while it was open. What was kept until then can
    /// be resumed once the files are back; leave them alone while runs are under way.
    #[error("store {}: the file was removed or replaced while it was in use", .path.display())]
    Moved {
        /// The file, or the log beside it.
        path: PathBuf,
    },
    /// The file may be read and not written.
    #[error("store {}: the file, or its folder, is read-only", .path.display())]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// There is no room left. Make some; what was there before is unharmed.
    #[error("store {}: the disk is full; what was recorded before is unharmed", .path.display())]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// Another program has kept the file to itself for very long.
    #[error("store {}: another program has kept it locked for too long; close that program and try again", .path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// The store was closed while it was asked.
    #[error("the store was closed")]
    Closed,
    /// The file cannot be read or written.
    #[error("store {}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: Arc<dyn Error + Send + Sync>,
    },
}

fn sound_part(broken: &Broken) -> String {
    match broken.seq {
        0 | 1 => "nothing of it is sound: restore a copy".to_owned(),
        2 => "record 1 is sound and can be forked".to_owned(),
        seq => format!("records 1 to {} are sound and can be forked", seq - 1),
    }
}
