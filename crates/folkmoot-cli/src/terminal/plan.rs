//! What a run can take, as people read it.

use std::fmt::Write;

use folkmoot_core::{
    bounds::{Bounds, Effective, Fit, Range, Share, Span, Take},
    call::Limit,
    money::Money,
    spec::Spec,
    team::Target,
    time::Duration,
};

use super::{
    figures,
    screen::{Screen, Tone},
    table::{Cell, Table, numbers, texts},
    tables,
};

/// How much of a list of names a cell has room for where lines have no bound.
const NAMES: usize = 40;

/// The phases of a run, its agents, and whether all of it fits the limits.
pub(crate) fn plan(screen: &Screen, spec: &Spec, bounds: &Bounds) -> String {
    let head = head(screen, spec, bounds);
    let phases = phases(screen, bounds);
    let agents = agents(screen, spec, bounds);
    let rest = [verdict(screen, bounds), unknown(screen, bounds), terms(screen, spec, bounds)];
    format!("{head}\n\n{phases}\n{agents}\n{}", rest.concat())
}

fn head(screen: &Screen, spec: &Spec, bounds: &Bounds) -> String {
    let calls = match bounds.total.calls {
        Range { min: 1, max: 1 } => "1 call".to_owned(),
        calls => format!("{} calls", range(calls)),
    };
    let row = figures::in_a_row(bounds);
    let team = screen.paint(Tone::Strong, screen.line(&spec.team.name));
    format!("{team} · {} · {calls}, {row}", spec.collaboration.name())
}

fn phases(screen: &Screen, bounds: &Bounds) -> String {
    let mut table = Table::new([
        texts("PHASE"),
        texts("WHO"),
        numbers("CALLS"),
        numbers("REQUESTS"),
        numbers("TOKENS"),
        numbers("COST"),
    ]);
    let mut row = |name: Cell, who: Cell, take: &Take| {
        let [calls, requests, tokens, cost] = taken(take);
        table.row([name, who, calls, requests, tokens, cost]);
    };
    for phase in &bounds.phases {
        let names = phase.agents.join(", ");
        let names = if phase.any { format!("any of {names}") } else { names };
        row(phase.name.as_str().into(), screen.words(&names, NAMES).into(), &phase.take);
    }
    row(Cell::from("all").in_tone(Tone::Strong), "".into(), &bounds.total);
    table.render(screen)
}

fn agents(screen: &Screen, spec: &Spec, bounds: &Bounds) -> String {
    let mut table = Table::new([
        texts("AGENT"),
        texts("MODEL"),
        numbers("CALLS"),
        numbers("REQUESTS"),
        numbers("TOKENS"),
        numbers("COST"),
        texts("LIMITS"),
    ]);
    for share in bounds.agents.iter().filter(|share| share.take.calls.max > 0) {
        let Share { id, name, take, limits } = share;
        let [calls, requests, tokens, cost] = taken(take);
        table.row([
            screen.line(name).into(),
            screen.line(&tables::chain(spec.team.agent(id))).into(),
            calls,
            requests,
            tokens,
            cost,
            in_words(limits).join(", ").into(),
        ]);
    }
    table.render(screen)
}

fn taken(take: &Take) -> [Cell; 4] {
    let Take { calls, requests, tokens, cost, .. } = take;
    let cost = match cost.max {
        Some(max) if max == cost.min => dollars(max),
        Some(max) => format!("{}–{}", at_least(cost.min), dollars(max)),
        None => UNKNOWN.to_owned(),
    };
    [range(*calls).into(), range(*requests).into(), span(*tokens).into(), cost.into()]
}

const UNKNOWN: &str = "unknown";

fn range(range: Range) -> String {
    span(Span { min: range.min, max: Some(range.max) })
}

fn span(span: Span) -> String {
    match span.max {
        Some(max) if max == span.min => figures::count(max),
        Some(max) => format!("{}–{}", figures::count(span.min), figures::count(max)),
        None => UNKNOWN.to_owned(),
    }
}

/// The lower end of a range; what is too little to be shown is nothing.
fn at_least(money: Money) -> String {
    let shown = dollars(money);
    if shown.trim_matches(['$', '0', '.']).is_empty() { "$0".to_owned() } else { shown }
}

fn dollars(money: Money) -> String {
    figures::dollars(money.usd())
}

/// An amount of what a limit bounds.
pub(crate) fn amount(limit: Limit, amount: u64) -> String {
    match limit {
        Limit::Calls | Limit::Tokens => figures::grouped(amount),
        Limit::Cost => dollars(Money(amount)),
        Limit::Time => figures::time_limit(Duration(amount)),
    }
}

/// What a limit bounds.
pub(crate) fn name(limit: Limit) -> &'static str {
    match limit {
        Limit::Calls => "calls",
        Limit::Tokens => "tokens",
        Limit::Cost => "money",
        Limit::Time => "time",
    }
}

fn in_words(limits: &Effective) -> Vec<String> {
    let Effective { calls, tokens, cost_usd, time, concurrency } = *limits;
    let time = time.map(Duration::from_secs_f64);
    [
        calls.map(|it| figures::things(it, "call")),
        tokens.map(|it| figures::things(it, "token")),
        cost_usd.map(figures::dollars),
        time.map(figures::time_limit),
        (concurrency < folkmoot_core::limits::CONCURRENCY)
            .then(|| format!("{concurrency} at once")),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The run's limits, and whether what can be taken fits every limit there is.
fn verdict(screen: &Screen, bounds: &Bounds) -> String {
    let mut lines = String::new();
    let limits = in_words(&bounds.limits);
    let limits = if limits.is_empty() { "none".to_owned() } else { limits.join(", ") };
    let at_once = figures::grouped(bounds.limits.concurrency);
    let at_once = if bounds.limits.concurrency < folkmoot_core::limits::CONCURRENCY {
        String::new()
    } else {
        format!("; by default {at_once} calls at once")
    };
    writeln!(lines, "limits   {limits}{at_once}").expect("a string takes any text");
    if bounds.fits == Some(true) && !bounds.against.is_empty() {
        let fits = screen.paint(Tone::Good, "fits");
        writeln!(
            lines,
            "{fits}     the worst case is within every limit on calls, tokens and money"
        )
        .expect("a string takes any text");
    }
    for fit in bounds.against.iter().filter(|fit| fit.holds() != Some(true)) {
        let may = screen.paint(Tone::Doubtful, "beyond");
        writeln!(lines, "{may}   {}", beyond(screen, fit)).expect("a string takes any text");
    }
    lines
}

fn beyond(screen: &Screen, fit: &Fit) -> String {
    let (name, allowed) = (name(fit.limit), amount(fit.limit, fit.allowed));
    let (whose, then) = match &fit.agent {
        None => ("the run's".to_owned(), "the run may be stopped"),
        Some(agent) => (format!("{}'s", screen.line(agent)), "its calls may be refused"),
    };
    match fit.most {
        _ if fit.allowed == 0 => format!("{name}: {whose} limit of {allowed} lets nothing start"),
        Some(most) => {
            let most = amount(fit.limit, most);
            format!("{name}: up to {most}, {whose} limit is {allowed}; {then}")
        }
        None => {
            format!("{name}: only {whose} limit of {allowed} bounds it; {then}")
        }
    }
}

fn unknown(screen: &Screen, bounds: &Bounds) -> String {
    let mark = screen.paint(Tone::Doubtful, "unknown");
    let lines = bounds.unknown.iter().map(|unknown| {
        format!("{mark}  {}: {}\n", screen.line(&unknown.message), screen.line(&unknown.help))
    });
    lines.collect()
}

/// What the figures rest on, if models take part.
fn terms(screen: &Screen, spec: &Spec, bounds: &Bounds) -> String {
    let speaks = |share: &&Share| share.take.calls.max > 0;
    let mut targets =
        bounds.agents.iter().filter(speaks).map(|share| &spec.team.agent(&share.id).target);
    if !targets.any(|target| matches!(target, Target::Model(_))) {
        return String::new();
    }
    let terms = "the upper bounds assume that each model stays within its window and its reply limit, and \
                 counts at most four times the tokens that another counts for the same text";
    format!("{}\n", screen.paint(Tone::Quiet, terms))
}
