use anyhow::Result;
use clap::Args;
use folkmoot_agents::{ProviderStatus, Providers};
use folkmoot_core::file::models::{Catalog, DEMO, Resolved};
use serde_json::{Map, Value, json};

use crate::{
    app::App,
    exit::Exit,
    terminal::tables::{self, ModelRow},
};

/// Lists what models can be asked, who serves them, and why the others cannot.
#[derive(Debug, Args)]
pub(crate) struct Models {}

impl Models {
    pub(crate) fn run(self, app: &App) -> Result<Exit> {
        let config = app.config()?;
        let (catalog, providers) = (config.catalog(), config.providers());
        if app.wants_json() {
            app.print_json(&json!({
                "default_model": catalog.default_model,
                "aliases": catalog.aliases,
                "programs": programs(&catalog, &providers),
                "providers": providers.statuses().map(provider).chain([demo()]).collect::<Vec<_>>(),
            }));
        } else {
            app.print(&table(app, &catalog, &providers));
        }
        Ok(Exit::DONE)
    }
}

/// A provider as programs read it.
pub(super) fn provider(provider: &ProviderStatus) -> Value {
    json!({
        "provider": provider.name,
        "usable": provider.is_usable(),
        "why_not": provider.why_not,
        "protocol": provider.protocol.to_string(),
        "base_url": provider.base_url,
        "key_variable": provider.key_variable,
    })
}

/// The aliases that stand for coding agents, as programs read them.
fn programs(catalog: &Catalog, providers: &Providers) -> Map<String, Value> {
    let told = catalog.programs.iter().map(|(name, target)| {
        let why_not = providers.lack(target);
        let usable = why_not.is_none();
        let told = json!({ "program": target.label(), "usable": usable, "why_not": why_not });
        (name.clone(), told)
    });
    told.collect()
}

/// The provider that is built in.
fn demo() -> Value {
    json!({ "provider": DEMO, "usable": true, "why_not": null })
}

/// The names of the config first, then who serves models.
fn table(app: &App, catalog: &Catalog, providers: &Providers) -> String {
    let default =
        catalog.default_model.iter().map(|target| ("(default)".to_owned(), target.clone()));
    let aliases = catalog.aliases.iter().map(|(name, chain)| (name.clone(), chain.join(" → ")));
    let programs = catalog
        .programs
        .iter()
        .map(|(name, target)| (name.clone(), target.label().unwrap_or_default()));
    let named = default.chain(aliases).chain(programs).map(|(name, target)| {
        let lacks = lacks(catalog, providers, &name, &target);
        (name, target, lacks)
    });
    let served = providers.statuses().map(|status| {
        let address = status.base_url.clone().unwrap_or_default();
        (format!("{}/…", status.name), address, status.why_not.clone())
    });
    let demo = (format!("{DEMO}/…"), "built in, offline".to_owned(), None);
    let rows: Vec<(String, String, Option<String>)> = named.chain(served).chain([demo]).collect();
    let rows: Vec<ModelRow> = rows
        .iter()
        .map(|(name, target, lacks)| ModelRow {
            name,
            target,
            price: catalog.prices.get(target),
            lacks: lacks.as_deref(),
        })
        .collect();
    tables::models(&app.page(), &rows)
}

/// What is missing before a name can be asked.
fn lacks(catalog: &Catalog, providers: &Providers, name: &str, target: &str) -> Option<String> {
    let is_name = catalog.aliases.contains_key(name) || catalog.programs.contains_key(name);
    let meant = if is_name { name } else { target };
    match catalog.resolve(meant) {
        Err(unresolved) => Some(unresolved.message),
        Ok(Resolved { target, .. }) => providers.lack(&target),
    }
}
