//! The command line, proved on the real binary.

mod bench;
mod boards;
mod check;
#[cfg(unix)]
mod clis;
mod config;
mod conformance;
mod controllers;
#[cfg(unix)]
mod cut;
mod delivered;
mod doctor;
mod drawings;
mod evidence;
mod examples;
mod exported;
mod failover;
mod faults;
mod fork;
mod graph_files;
mod graphs;
#[cfg(unix)]
mod held;
mod help;
mod imported;
mod instructions;
mod led;
mod limits;
#[cfg(unix)]
mod machine;
mod mail;
mod matching;
mod members;
mod models;
mod orchestrate;
#[cfg(target_os = "linux")]
mod orphans;
mod patterns;
mod plan;
mod posted;
#[cfg(unix)]
mod processes;
mod readme;
mod records;
mod remote;
mod reports;
#[cfg(unix)]
mod resuming;
mod retry;
mod roles;
mod running;
#[cfg(target_os = "linux")]
mod secrets;
mod servers;
mod simulate;
mod snapshot;
mod targets;
#[cfg(unix)]
mod tools;
#[cfg(unix)]
mod undone;
mod usage;
#[cfg(unix)]
mod variables;
