//! `folkmoot`: teams of AI agents that work on one task, with a record you can trust.
//!
//! This crate is how people ask: it reads flags, the environment and config files, passes plain
//! structs down, and prints what comes back. Nothing below it reads any of these.

mod commands;
mod config;
mod exit;
mod terminal;
mod world;

use std::process::ExitCode;

use clap::Parser;

use crate::{commands::Command, exit::Exit};

/// Teams of AI agents that work on one task, with a record you can trust.
#[derive(Debug, Parser)]
#[command(name = "folkmoot", version, about, propagate_version = true)]
struct Cli {
    #[command(flatten)]
    global: world::Global,
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    let Cli { global, command } = Cli::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let exit = match runtime {
        Ok(runtime) => {
            let exit = runtime.block_on(command.run(&global));
            // What still runs by now was abandoned; its clean-up must not hold up the end.
            runtime.shutdown_timeout(std::time::Duration::from_secs(2));
            exit
        }
        Err(error) => Err(error.into()),
    };
    exit.unwrap_or_else(|error| exit::report(&error, global.wants_json())).into()
}
