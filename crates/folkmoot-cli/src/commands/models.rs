use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};

use crate::{
    config::Config,
    exit::Exit,
    terminal::{stdout, tables},
    world::Global,
};

/// Lists who serves models, which of them can be used, and why not the others.
#[derive(Debug, Args)]
pub(crate) struct Models {}

impl Models {
    pub(crate) fn run(self, global: &Global) -> Result<Exit> {
        let config = Config::load()?;
        let providers = config.providers();
        let providers: Vec<Value> = providers
            .statuses()
            .map(|provider| {
                json!({
                    "provider": provider.name,
                    "usable": provider.is_usable(),
                    "why_not": provider.why_not,
                    "protocol": provider.protocol.to_string(),
                    "base_url": provider.base_url,
                    "key_variable": provider.key_variable,
                })
            })
            .collect();
        let catalog = config.catalog();
        if global.wants_json() {
            stdout::json(&json!({
                "default_model": catalog.default_model,
                "aliases": catalog.aliases,
                "providers": providers,
            }));
        } else {
            stdout::text(&tables::models(&catalog, &providers));
        }
        Ok(Exit::DONE)
    }
}
