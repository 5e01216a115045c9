//! By which prices a run was reckoned (rules.md 15.2).

use std::collections::BTreeMap;

use super::report::inline;
use crate::{
    known::Known,
    money::Price,
    spec::Spec,
    team::{Model, Target},
};

/// A line for each model that used anything: its prices, their date, and which of them held how often.
pub(super) fn lines(spec: &Spec, known: &Known) -> Vec<String> {
    let mut used: BTreeMap<String, (Model, BTreeMap<Option<u64>, u64>)> = BTreeMap::new();
    for entry in known.charged() {
        let Target::Model(model) = &spec.team.asked(&entry.call).target else { continue };
        let tokens = entry.usages.iter().map(|usage| usage.tokens);
        for tokens in tokens.filter(|tokens| tokens.total() > 0) {
            let tier = model.price.as_ref().and_then(|price| price.tier(tokens.read()));
            let (_, tiers) =
                used.entry(model.to_string()).or_insert_with(|| (model.clone(), BTreeMap::new()));
            *tiers.entry(tier.map(|tier| tier.tokens)).or_default() += 1;
        }
    }
    let line = |(name, (model, tiers)): (&String, &(Model, BTreeMap<_, _>))| match &model.price {
        Some(price) => format!("{}: {}", inline(name), of(price, tiers)),
        None => format!("{}: not known", inline(name)),
    };
    used.iter().map(line).collect()
}

fn of(price: &Price, tiers: &BTreeMap<Option<u64>, u64>) -> String {
    let parts = tiers.iter().map(|(tier, count)| {
        let calls = if *count == 1 { "1 call".to_owned() } else { format!("{count} calls") };
        match price.above.iter().find(|it| Some(it.tokens) == *tier) {
            Some(it) => format!(
                "{calls} of more than {} tokens at ${} read and ${} written",
                it.tokens, it.input, it.output
            ),
            None => format!("{calls} at ${} read and ${} written", price.input, price.output),
        }
    });
    let as_of = price.as_of.as_ref().map(|day| format!("; as of {}", inline(day)));
    parts.collect::<Vec<_>>().join(", ") + &as_of.unwrap_or_default()
}
