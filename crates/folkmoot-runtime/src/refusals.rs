//! What failed, as every caller is told it: one code and one way out, whoever asked.

use std::error::Error;

use folkmoot_core::{key::Key, orchestrate::Refusals, refusal::Refusal};

use crate::{
    boards::BoardError, engine::EngineError, export::FileError, mail::MailError,
    orchestrate::DeskError, store::StoreError,
};

/// The way out if runs cannot be kept where they are.
pub const ELSEWHERE: &str = "`--db FILE`, or the variable FOLKMOOT_DB, keeps runs in another file";

/// The message, with those of its causes that it does not hold already.
pub fn told(error: &(dyn Error + 'static)) -> String {
    let mut told = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if !told.contains(&text) {
            told = format!("{told}: {text}");
        }
        cause = error.source();
    }
    told
}

/// All that is wrong, as one refusal.
pub fn all(refusals: Refusals) -> Refusal {
    Refusal::all(refusals).unwrap_or_else(|| Refusal::new("refused", "it is refused"))
}

impl From<&EngineError> for Refusal {
    fn from(error: &EngineError) -> Refusal {
        let (code, help) = kind(error);
        Refusal { help, ..Refusal::new(code, told(error)) }
    }
}

impl From<EngineError> for Refusal {
    fn from(error: EngineError) -> Refusal {
        (&error).into()
    }
}

impl From<&FileError> for Refusal {
    fn from(error: &FileError) -> Refusal {
        let code = match error {
            FileError::Io { .. } => "unreadable_file",
            FileError::Flawed { .. } => "broken_record",
        };
        Refusal::new(code, told(error))
    }
}

impl From<MailError> for Refusal {
    fn from(error: MailError) -> Refusal {
        Refusal::new(error.code(), told(&error))
    }
}

impl From<BoardError> for Refusal {
    fn from(error: BoardError) -> Refusal {
        let help = match &error {
            BoardError::Refused(folkmoot_core::board::Refused::Conflict {
                version, value, ..
            }) => Some(format!("it holds {value}; set it with --expect {version}")),
            BoardError::Refused(folkmoot_core::board::Refused::BadValue { .. })
            | BoardError::BadName(_)
            | BoardError::Kept(_) => None,
        };
        Refusal { help, ..Refusal::new(error.code(), told(&error)) }
    }
}

impl From<DeskError> for Refusal {
    fn from(error: DeskError) -> Refusal {
        match error {
            DeskError::Refused(refusals) => all(refusals),
            DeskError::Kept(error) => Refusal::new("unusable_store", told(&error)),
            DeskError::Engine(error) => error.into(),
        }
    }
}

/// Which calls may have been meant.
fn meant(near: &[Key]) -> String {
    let names: Vec<String> = near.iter().map(|key| format!("\"{key}\"")).collect();
    match &names[..] {
        [] => "`folkmoot show RUN` lists the calls".to_owned(),
        [name] => format!("did you mean {name}?"),
        [names @ .., last] => format!("did you mean {} or {last}?", names.join(", ")),
    }
}

fn kind(error: &EngineError) -> (&'static str, Option<String>) {
    match error {
        EngineError::NoSuchRun(_) => ("unknown_run", Some("`folkmoot runs` lists them".into())),
        EngineError::Ambiguous { .. } => ("ambiguous_run", None),
        EngineError::NotTakenOver { .. } => {
            ("not_taken_over", Some("`folkmoot show RUN` lists the calls".into()))
        }
        EngineError::NoSuchCall { near, .. } => ("unknown_call", Some(meant(near))),
        EngineError::NothingToRetry { run, last } => {
            let last = last.iter().map(|key| format!("; the last one was {key}"));
            let help = format!("`folkmoot retry {run} --from KEY` asks again from a call on");
            ("nothing_to_retry", Some(last.fold(help, |help, last| help + &last)))
        }
        EngineError::Withheld { .. } => {
            let help = "--with-secrets exports it as it is, for whoever may know the secret";
            ("secret_in_record", Some(help.into()))
        }
        EngineError::Owned { .. } => {
            let help = "`folkmoot watch` follows it, `folkmoot cancel` stops it";
            ("run_is_owned", Some(help.into()))
        }
        EngineError::Ended(_) => {
            let help = "`folkmoot fork` goes on from it with something changed";
            ("run_has_ended", Some(help.into()))
        }
        EngineError::Diverged { .. } => ("diverged", None),
        EngineError::Unreadable { .. } | EngineError::Unsound { .. } => ("unreadable_record", None),
        EngineError::Store(StoreError::Broken { .. } | StoreError::Corrupt { .. })
        | EngineError::Unkept {
            source: StoreError::Broken { .. } | StoreError::Corrupt { .. },
            ..
        } => ("broken_record", None),
        EngineError::Unkept { run, source: StoreError::Superseded { .. }, .. } => {
            ("run_is_owned", Some(format!("`folkmoot watch {run}` follows it")))
        }
        EngineError::Unkept { run, .. } => {
            let help = format!("fix that, then `folkmoot resume {run}` goes on from there");
            ("store", Some(help))
        }
        // Nobody was asked anything yet: what cannot be kept later is told as unkept.
        EngineError::Store(
            StoreError::ReadOnly { .. }
            | StoreError::Full { .. }
            | StoreError::Busy { .. }
            | StoreError::Io { .. },
        ) => ("unusable_store", Some(ELSEWHERE.into())),
        EngineError::Store(_) => ("store", None),
    }
}
