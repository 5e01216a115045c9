//! What keeps a bound from being known, and what would make it known.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde::Serialize;

use super::{Share, Take, asked::Asked, forecast::Forecast};
use crate::{call::Limit, check::is_unset, diagnostic::quoted};

/// Something that has no bound.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unknown {
    /// What is not known because of it; with the tokens the money is not known either.
    pub of: Limit,
    /// What it is.
    pub message: String,
    /// What would bound it.
    pub help: String,
    /// The key of the config that would, where it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// All that keeps the bounds of a run from being known.
pub(super) fn all(
    forecast: &Forecast<'_>,
    has_task: bool,
    total: &Take,
    agents: &[Share],
) -> Vec<Unknown> {
    let speaks = |share: &&Share| share.take.calls.max > 0;
    let speakers = agents.iter().filter(speaks);
    let mut asked: Vec<(&Share, &Asked)> = Vec::new();
    for share in speakers.clone() {
        asked.extend(forecast.member(&share.id).chain.iter().map(|target| (share, target)));
    }
    let mut unknown = Vec::new();
    if total.tokens.max.is_none() && !has_task {
        unknown.push(Unknown {
            of: Limit::Tokens,
            message: "the task is not known, and every request holds it".into(),
            help: "give the task".into(),
            key: None,
        });
    }
    let echoes: BTreeSet<&Arc<str>> = forecast.echoes.iter().collect();
    for name in echoes.into_iter().filter(|_| total.tokens.max.is_none()) {
        unknown.push(Unknown {
            of: Limit::Tokens,
            message: format!(
                "{} repeats what it reads, and its words can come back to it",
                quoted(name)
            ),
            help: "give it replies of its own, or what reads them a context window".into(),
            key: None,
        });
    }
    for (model, names) in by_model(&asked, |it| it.is_unbounded().0) {
        unknown.push(match model {
            Some(model) => Unknown {
                of: Limit::Tokens,
                message: format!("nothing bounds a reply of {model}"),
                help: format!("set max_output_tokens.\"{model}\" in the config"),
                key: Some(format!("max_output_tokens.\"{model}\"")),
            },
            None => Unknown {
                of: Limit::Tokens,
                message: format!("the model of {names} is not known"),
                help: "give the team a model, or the config a default_model".into(),
                key: Some("default_model".into()),
            },
        });
    }
    for (model, names) in by_model(&asked, |it| it.is_unbounded().1) {
        let Some(model) = model else { continue };
        unknown.push(Unknown {
            of: Limit::Tokens,
            message: format!("nothing bounds what tools give {names} to read"),
            help: format!("set context_windows.\"{model}\" in the config"),
            key: Some(format!("context_windows.\"{model}\"")),
        });
    }
    for (model, _) in by_model(&asked, |it| it.model().is_some_and(|it| it.price.is_none())) {
        let Some(model) = model else { continue };
        unknown.push(Unknown {
            of: Limit::Cost,
            message: format!("the price of {model} is not known"),
            help: format!("give it in the config, under [prices.\"{model}\"]"),
            key: Some(format!("prices.\"{model}\"")),
        });
    }
    if forecast.is_open {
        unknown.push(Unknown {
            of: Limit::Calls,
            message: "the program asks whom it likes as often as it likes".into(),
            help: "nothing but the limits of the run bounds it: calls, tokens, cost_usd and time"
                .into(),
            key: None,
        });
        return unknown;
    }
    for share in speakers.filter(|share| share.take.started.max.is_none()) {
        unknown.push(Unknown {
            of: Limit::Calls,
            message: format!("nothing bounds how many tools {} calls", quoted(&share.name)),
            help: "a limit of calls, of the run or of the agent, does".into(),
            key: None,
        });
    }
    unknown
}

/// The models of which something is so, each with its agents; those that are not known come last.
fn by_model(
    asked: &[(&Share, &Asked)],
    is_so: impl Fn(&Asked) -> bool,
) -> Vec<(Option<String>, String)> {
    let mut found: BTreeMap<(bool, Option<String>), Vec<&Arc<str>>> = BTreeMap::new();
    for (share, asked) in asked.iter().filter(|(_, asked)| is_so(asked)) {
        let model = asked.model().filter(|it| !is_unset(it)).map(ToString::to_string);
        let names = found.entry((model.is_none(), model)).or_default();
        if names.last() != Some(&&share.name) {
            names.push(&share.name);
        }
    }
    let names = |names: Vec<&Arc<str>>| {
        names.into_iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ")
    };
    found.into_iter().map(|((_, model), agents)| (model, names(agents))).collect()
}
