//! The port through which a process of a team's own says who does what (extensions.md §4).

use std::sync::Arc;

use async_trait::async_trait;
use folkmoot_core::{
    call::{FailureKind, Fault, Usage},
    programs::controller::Briefing,
    spec::Spec,
};

use crate::backend::Response;

/// Whoever starts controllers.
pub trait Controllers: Send + Sync {
    /// Begins to talk to the controller of a run. Nothing is started before it is told anything.
    fn meet(&self, spec: &Spec) -> Arc<dyn Dialogue>;
}

/// A controller of one run. Dropping it ends the process with all that it has started.
#[async_trait]
pub trait Dialogue: Send + Sync {
    /// Tells the controller something; its answer is the line it says. That it says none is a fault.
    async fn tell(&self, briefing: Briefing) -> Response;
}

/// Nobody who starts any.
#[derive(Clone, Copy, Debug)]
pub struct NoControllers;

impl Controllers for NoControllers {
    fn meet(&self, _: &Spec) -> Arc<dyn Dialogue> {
        Arc::new(NoControllers)
    }
}

#[async_trait]
impl Dialogue for NoControllers {
    async fn tell(&self, _: Briefing) -> Response {
        let fault = Fault::failed(FailureKind::Unsupported, "nobody can start a controller");
        Response { outcome: Err(fault), usage: Usage::default() }
    }
}
