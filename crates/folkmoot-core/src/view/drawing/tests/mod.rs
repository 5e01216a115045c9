//! What pictures show, and that nothing foreign gets out of its place in them.

mod hostile;
mod runs;
mod teams;

use crate::{
    check::{Input, Source, check},
    file::models::Catalog,
    spec::Spec,
};

/// The spec of a sound team file.
fn spec(file: &str) -> Spec {
    let checked = check(&Input {
        source: Source::File(file.as_bytes()),
        path: None,
        name: "unnamed",
        overrides: &[],
        task: Some("TASK"),
        catalog: &Catalog::default(),
        list: &|_| Err("no such folder".into()),
        around: &[],
        variable: &|_| None,
        read: &|_| Err("no such file".into()),
        beside: &|_, _| Ok(None),
    });
    checked.spec.unwrap_or_else(|| panic!("refused: {:#?}", checked.diagnostics))
}
