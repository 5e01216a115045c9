//! What must hold for any input of the readers and for any run: the bodies of the fuzz targets.
//!
//! Each takes bytes that may be anything and panics where something does not hold. The programs in
//! `fuzz/fuzz_targets` feed them what libFuzzer makes up; the test `corpus` feeds them, with every
//! `cargo test`, what it has found worth keeping.

mod events;
mod export;
mod log;
mod names;
mod plan;
mod reply;
mod run;
mod source;
mod team_file;
mod verdict;

pub use self::{
    events::events, export::export, log::log, plan::plan, reply::reply, run::run,
    team_file::team_file, verdict::verdict,
};

/// Something that must hold whatever the bytes are.
pub type Target = fn(&[u8]);

/// All targets, by the names of their programs and of their folders in `fuzz/corpus`.
pub const TARGETS: &[(&str, Target)] = &[
    ("events", events),
    ("export", export),
    ("log", log),
    ("plan", plan),
    ("reply", reply),
    ("run", run),
    ("team_file", team_file),
    ("verdict", verdict),
];
