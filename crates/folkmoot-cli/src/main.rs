//! `folkmoot`: teams of AI agents that work on one task, with a record you can trust.
//!
//! This crate is how people ask: it reads flags, the environment and config files, passes plain
//! structs down, and prints what comes back. Nothing below it reads any of these.

mod app;
mod commands;
mod config;
mod exit;
mod office;
mod terminal;

use std::{process::ExitCode, sync::Arc, time::Duration};

use anyhow::Result;
use clap::Parser;

use crate::{
    app::{App, Global},
    commands::Command,
    exit::Exit,
};

/// Teams of AI agents that work on one task, with a record you can trust.
#[derive(Debug, Parser)]
#[command(name = "folkmoot", version, about, propagate_version = true)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    let Cli { global, command } = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return exit::misused(&error),
    };
    let app = Arc::new(App::new(global.printing(command.output())));
    let exit = run(command, &app).unwrap_or_else(|error| exit::report(&error, &app));
    exit.into()
}

fn run(command: Command, app: &Arc<App>) -> Result<Exit> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    // Output is waited for in here, where Ctrl-C is still listened to.
    let exit = runtime.block_on(async {
        let exit = command.run(app).await.unwrap_or_else(|error| exit::report(&error, app));
        folkmoot_agents::parted().await;
        // A reader that went away is no failure; anything else that kept output from arriving is.
        if app.close().is_ok() { exit } else { exit.or_failed() }
    });
    // What still runs by now was abandoned; its clean-up must not hold up the end.
    runtime.shutdown_timeout(Duration::from_secs(2));
    Ok(exit)
}
