//! Boards in the store: what `folkmoot board` and the tools `board.*` do (messaging.md §3).

use std::sync::Arc;

use folkmoot_core::{
    board::{Board, Cell, Change, Delta, Post, Refused, What},
    mail::Party,
    names::slug,
};
use serde_json::Value;
use thiserror::Error;

use crate::{
    engine::Engine,
    folds::{self, FoldError},
    store::StreamId,
};

/// Streams of boards begin with this.
const BOARD: &str = "board/";

/// The boards of one owner.
#[derive(Clone)]
pub struct Boards {
    engine: Engine,
    owner: Arc<str>,
}

/// Why a request to a board failed.
#[derive(Debug, Error)]
pub enum BoardError {
    /// The board says no.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// A name that cannot be one of a board.
    #[error("{0:?} cannot be the name of a board")]
    BadName(String),
    /// It could not be read or kept.
    #[error(transparent)]
    Kept(#[from] FoldError),
}

impl BoardError {
    /// The code of the failure.
    pub fn code(&self) -> &'static str {
        match self {
            BoardError::Refused(refused) => refused.code(),
            BoardError::BadName(_) => "bad_value",
            BoardError::Kept(_) => "unusable_store",
        }
    }
}

impl Boards {
    /// The boards of `owner` in the store of `engine`.
    pub fn new(engine: &Engine, owner: &str) -> Boards {
        Boards { engine: engine.clone(), owner: owner.into() }
    }

    /// Adds an entry; gives its number.
    pub async fn post(&self, by: &Party, board: &str, post: Post) -> Result<u64, BoardError> {
        let what = What::Posted(post.clone());
        let decide = |board: &Board| {
            if let Some(seq) = board.made(by.run.as_ref(), by.call.as_ref(), &what) {
                return Ok((seq, Vec::new()));
            }
            board.post(&post)?;
            Ok((board.version() + 1, vec![self.change(by, what.clone())]))
        };
        Ok(self.decided(board, decide).await?.0)
    }

    /// Sets a cell for somebody who saw it at version `expect`, 0 for a new one; gives its next version.
    pub async fn set(
        &self,
        by: &Party,
        board: &str,
        key: &str,
        value: &Value,
        expect: u64,
    ) -> Result<u64, BoardError> {
        let what = What::Set { key: key.into(), value: value.clone() };
        let decide = |board: &Board| {
            if let Some(version) = board.made(by.run.as_ref(), by.call.as_ref(), &what) {
                return Ok((version, Vec::new()));
            }
            board.set(key, value, expect)?;
            Ok((expect + 1, vec![self.change(by, what.clone())]))
        };
        Ok(self.decided(board, decide).await?.0)
    }

    /// A cell, with the board's number of changes.
    pub async fn get(&self, board: &str, key: &str) -> Result<(u64, Option<Cell>), BoardError> {
        let board = self.load(board).await?;
        Ok((board.version(), board.cell(key).cloned()))
    }

    /// What came after the change of number `after`.
    pub async fn show(
        &self,
        board: &str,
        after: u64,
        topic: Option<&str>,
        limit: usize,
    ) -> Result<Delta, BoardError> {
        Ok(self.load(board).await?.since(after, topic, limit))
    }

    async fn load(&self, board: &str) -> Result<Board, BoardError> {
        Ok(folds::load(self.engine.store(), &self.stream(board)?).await?.0)
    }

    async fn decided<T>(
        &self,
        board: &str,
        decide: impl Fn(&Board) -> Result<(T, Vec<Change>), Refused>,
    ) -> Result<(T, Board), BoardError> {
        Ok(folds::change(self.engine.store(), &self.stream(board)?, decide).await??)
    }

    fn change(&self, by: &Party, what: What) -> Change {
        let author = slug(&by.name).into();
        let (run, call) = (by.run.clone(), by.call.clone());
        Change { at: self.engine.wall(), author, run, call, what }
    }

    fn stream(&self, board: &str) -> Result<StreamId, BoardError> {
        let bad = || BoardError::BadName(board.to_owned());
        folds::stream(BOARD, &self.owner, board).ok_or_else(bad)
    }
}
