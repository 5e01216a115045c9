//! Which question of a run an answer is for (collaborate.md §11).

use folkmoot_core::{key::Key, known::Known, refusal::Refusal};

/// The open question that is meant: the one of that key, or the only one.
pub fn meant(known: &Known, run: &str, key: Option<&str>) -> Result<Key, Refusal> {
    let open: Vec<String> = known.questions().map(|(key, _)| key.to_string()).collect();
    match (key, &open[..]) {
        (_, []) => Err(no_question(run)),
        (None, [only]) => Ok(Key::parse(only)),
        (Some(key), _) if open.iter().any(|it| it == key) => Ok(Key::parse(key)),
        (None, _) => {
            let message = format!("run {run} asks {} questions", open.len());
            let help = format!("say with --key which one is meant: {}", open.join(", "));
            let refusal = Refusal::new("ambiguous_question", message).help(help);
            Err(Refusal { allowed: open, ..refusal })
        }
        (Some(key), _) => {
            let message = format!("run {run} has no open question {key}");
            let help = format!("open: {}", open.join(", "));
            let refusal = Refusal::new("unknown_question", message).help(help);
            Err(Refusal { allowed: open, ..refusal })
        }
    }
}

/// What is told where nobody is asked anything.
pub fn no_question(run: &str) -> Refusal {
    let help = format!("`folkmoot show {run}` tells how it stands");
    Refusal::new("no_open_question", format!("run {run} asks nobody anything")).help(help)
}
