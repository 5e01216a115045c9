//! A program that is code of the caller's own (extensions.md §5).

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{
    event::Ending,
    scope::{Program, Scope, Step},
};

/// A program that a registry has, by which a team works that names it.
#[derive(Clone, Serialize, Deserialize)]
pub struct Coded {
    /// Its name, by which alone a log knows it.
    pub name: Arc<str>,
    #[serde(skip)]
    pub(crate) program: Option<Arc<dyn Program>>,
}

impl Program for Coded {
    fn run(&self, cx: &Scope) -> Step<Ending> {
        match &self.program {
            Some(program) => program.run(cx),
            // Nobody follows such a spec; that it is one is told when it is loaded.
            None => Ok(Ending::failed("error", Vec::new())),
        }
    }
}

impl PartialEq for Coded {
    /// Programs are known by their names.
    fn eq(&self, other: &Coded) -> bool {
        self.name == other.name
    }
}

impl fmt::Debug for Coded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Coded").field(&self.name).finish()
    }
}
