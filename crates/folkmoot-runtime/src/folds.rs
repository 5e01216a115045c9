//! Streams that are folded anew for each request, and whose next rows are decided on the fold.

use folkmoot_core::{
    board::{Board, Change},
    mail::{Mailbox, Row},
    names::slug,
    orchestrate::{Cards, Phases, Plan, Row as CardRow},
};
use serde::{Serialize, de::DeserializeOwned};
use thiserror::Error;

use crate::store::{Append, Store, StoreError, StreamId};

/// How many rows are read at a time.
const PAGE: usize = 1_000;

/// How often a request is decided anew because somebody else wrote meanwhile.
const AGAIN: usize = 1_000;

/// What a stream comes to.
pub(crate) trait Fold: Default {
    /// What a row of the stream says.
    type Row: Serialize + DeserializeOwned;

    /// Takes the next row.
    fn apply(&mut self, row: Self::Row);
}

impl Fold for Mailbox {
    type Row = Row;

    fn apply(&mut self, row: Row) {
        self.apply(row);
    }
}

impl Fold for Board {
    type Row = Change;

    fn apply(&mut self, change: Change) {
        self.apply(change);
    }
}

impl Fold for Cards {
    type Row = CardRow;

    fn apply(&mut self, row: CardRow) {
        self.apply(row);
    }
}

impl Fold for Phases {
    type Row = Plan;

    fn apply(&mut self, plan: Plan) {
        self.apply(plan);
    }
}

/// A stream could not be read or written.
#[derive(Debug, Error)]
pub enum FoldError {
    /// It could not be read or kept.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A row that this version cannot take.
    #[error("{stream}: row {seq} cannot be read: {why}")]
    Unreadable {
        /// The stream.
        stream: StreamId,
        /// The row.
        seq: u64,
        /// Why not.
        why: String,
    },
}

/// The stream of that kind which `owner` calls `name`, unless that can be no name. Names that agents'
/// ids do not tell apart are one.
pub(crate) fn stream(kind: &str, owner: &str, name: &str) -> Option<StreamId> {
    let is_name = !name.trim().is_empty()
        && name.chars().count() <= 100
        && !name.chars().any(|c| c.is_control() || c == '/');
    is_name.then(|| format!("{kind}{owner}/{}", slug(name)).into())
}

/// Folds a stream; gives the number of its last row too.
pub(crate) async fn load<F: Fold>(
    store: &dyn Store,
    stream: &StreamId,
) -> Result<(F, u64), FoldError> {
    let (mut fold, mut at) = (F::default(), 0);
    loop {
        let rows = store.read(stream, at, PAGE).await?;
        if rows.is_empty() {
            return Ok((fold, at));
        }
        for row in rows {
            at = row.seq;
            let told = serde_json::from_str(&row.body).map_err(|error| {
                let (stream, seq) = (stream.clone(), row.seq);
                FoldError::Unreadable { stream, seq, why: error.to_string() }
            })?;
            fold.apply(told);
        }
    }
}

/// Appends what is decided on what the stream comes to, and gives what it comes to then; decides anew
/// where somebody else was faster.
pub(crate) async fn change<F: Fold, T, Refused>(
    store: &dyn Store,
    stream: &StreamId,
    decide: impl Fn(&F) -> Result<(T, Vec<F::Row>), Refused>,
) -> Result<Result<(T, F), Refused>, FoldError> {
    let mut tries = 0;
    loop {
        let (mut fold, end) = load::<F>(store, stream).await?;
        let (decided, rows) = match decide(&fold) {
            Ok(decided) => decided,
            Err(refused) => return Ok(Err(refused)),
        };
        if rows.is_empty() {
            return Ok(Ok((decided, fold)));
        }
        let body = |row| serde_json::to_string(row).expect("a row is plain data").into();
        let append = Append::new(stream, end, rows.iter().map(body).collect());
        tries += 1;
        match store.append(append).await {
            Err(StoreError::Conflict { .. }) if tries < AGAIN => {}
            Err(error) => return Err(error.into()),
            Ok(_) => {
                for row in rows {
                    fold.apply(row);
                }
                return Ok(Ok((decided, fold)));
            }
        }
    }
}
