//! Refusing a run that could pass a limit, before any call (`--strict-budget`).

use folkmoot_core::{
    bounds::{Bounds, Fit, Unknown},
    call::Limit,
    diagnostic::{Diagnostic, quoted},
    money::Money,
};

use crate::terminal::plan::{amount, name};

/// A finding for each limit that a run could pass, or of which that cannot be ruled out.
pub(super) fn beyond(bounds: &Bounds) -> Vec<Diagnostic> {
    let beyond = bounds.against.iter().filter(|fit| fit.holds() != Some(true));
    beyond.map(|fit| over_budget(bounds, fit)).collect()
}

fn over_budget(bounds: &Bounds, fit: &Fit) -> Diagnostic {
    let who = fit.agent.as_ref().map_or_else(|| "the run".to_owned(), |name| quoted(name));
    let (what, allowed) = (name(fit.limit), amount(fit.limit, fit.allowed));
    let (message, help) = match fit.most {
        _ if fit.allowed == 0 => {
            (format!("{what}: the limit of {allowed} lets nothing start"), Some(way_out(fit)))
        }
        Some(most) => {
            let over = amount(fit.limit, most.saturating_sub(fit.allowed));
            let most = amount(fit.limit, most);
            let message =
                format!("{what}: {who} may take {most}, {over} more than the limit of {allowed}");
            (message, Some(way_out(fit)))
        }
        None => {
            let message =
                format!("{what}: nothing but the limit of {allowed} bounds what {who} may take");
            (message, what_would_bound(bounds, fit.limit))
        }
    };
    Diagnostic::error("over_budget", message).help(help)
}

fn way_out(fit: &Fit) -> String {
    let most = fit.most.unwrap_or_default();
    let (key, needed) = match fit.limit {
        Limit::Calls => ("limits.calls", most.to_string()),
        Limit::Tokens => ("limits.tokens", most.to_string()),
        Limit::Cost => ("limits.cost_usd", Money(most).usd().to_string()),
        Limit::Time => ("limits.time", amount(Limit::Time, most)),
    };
    let whose = fit.agent.as_ref().map_or_else(String::new, |it| format!(" of {}", quoted(it)));
    format!(
        "raise {key}{whose} to {needed}, or bound the work: fewer rounds, steps or tasks, shorter \
         replies (max_output_tokens); `folkmoot plan` shows what takes how much"
    )
}

fn what_would_bound(bounds: &Bounds, limit: Limit) -> Option<String> {
    // Money is not known where the tokens are not.
    let is_why = |unknown: &&Unknown| {
        unknown.of == limit || limit == Limit::Cost && unknown.of == Limit::Tokens
    };
    let why = bounds.unknown.iter().filter(is_why);
    let why: Vec<String> = why.map(|it| format!("{}: {}", it.message, it.help)).collect();
    (!why.is_empty()).then(|| why.join("; "))
}
