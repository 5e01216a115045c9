//! Who takes part, where no file says so.

use folkmoot_core::team::{Agent, Target};

/// Names that hold each other, differ in script or letters, or need quoting.
pub(crate) const NAMES: [&str; 5] = ["ann", "ann b", "研究员", "Straße", "x.y-z_1"];

/// An agent of each name, with capabilities that hold each other too.
pub(crate) fn agents() -> Vec<Agent> {
    let capabilities = [&["rust", "rust tests"][..], &["tests"], &["写作", "测试"], &[], &["c++"]];
    let agents = NAMES.iter().zip(capabilities).map(|(name, capabilities)| Agent {
        capabilities: capabilities.iter().map(|it| (*it).into()).collect(),
        ..Agent::new(name, Target::Demo)
    });
    agents.collect()
}
