//! What came of many simulated runs.

use std::collections::BTreeMap;

use folkmoot_core::{
    sim::survey::{Failure, Spread, Survey},
    spec::Warning,
    time::Duration,
};

use super::{
    figures,
    screen::{Screen, Tone},
    table::{Cell, Table, numbers, texts},
    tables,
};

/// How many failed runs are listed; JSON has more.
const LISTED: usize = 10;

/// How much is told of a failure, in columns.
const WORDS: usize = 160;

/// How the runs ended, what they took, and which failed, for standard output.
pub(crate) fn tables(screen: &Screen, survey: &Survey) -> String {
    let failures: Vec<&Failure> = survey.failures().take(LISTED).collect();
    let mut text = format!("{}\n{}", endings(screen, survey), spreads(screen, survey));
    if !failures.is_empty() {
        text = format!("{text}\n{}", listed(screen, &failures));
    }
    let more = (survey.failed + survey.broken) - failures.len() as u64;
    if more > 0 {
        text.extend(["and ", &figures::grouped(more), " more\n"]);
    }
    text
}

fn endings(screen: &Screen, survey: &Survey) -> String {
    let mut table =
        Table::new([texts("STATUS"), texts("REASON"), numbers("RUNS"), numbers("SHARE")]);
    for ((status, reason), count) in &survey.endings {
        let share = *count as f64 * 100.0 / survey.runs as f64;
        table.row([
            tables::status(*status),
            screen.line(reason).into(),
            figures::grouped(*count).into(),
            format!("{share:.1} %").into(),
        ]);
    }
    table.render(screen)
}

fn spreads(screen: &Screen, survey: &Survey) -> String {
    let mut table =
        Table::new([texts("A RUN TAKES"), numbers("MIN"), numbers("MEDIAN"), numbers("MAX")]);
    let time = |tenths: u64| figures::elapsed(Duration::from_millis(tenths * 100));
    let mut row = |what: &str, spread: &Spread, shown: fn(u64) -> String| {
        let cell = |number: Option<u64>| Cell::from(number.map(shown).unwrap_or_default());
        table.row([what.into(), cell(spread.min()), cell(spread.median()), cell(spread.max())]);
    };
    row("calls", &survey.calls, figures::grouped);
    row("tokens", &survey.tokens, figures::grouped);
    row("rounds", &survey.rounds, figures::grouped);
    row("time", &survey.tenths, time);
    table.render(screen)
}

fn listed(screen: &Screen, failures: &[&Failure]) -> String {
    let mut table = Table::new([numbers("SEED"), texts("STATUS"), texts("WHY")]);
    for failure in failures {
        let status = if failure.is_broken {
            Cell::from("broken").in_tone(Tone::Bad)
        } else {
            tables::status(failure.status)
        };
        table.row([
            failure.seed.to_string().into(),
            status,
            screen.words(&failure.why, WORDS).into(),
        ]);
    }
    table.render(screen)
}

/// What was asked for.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    /// The first seed.
    pub(crate) seed: u64,
    /// How many runs.
    pub(crate) runs: u64,
    /// What could go wrong, as it was asked for; empty if nothing.
    pub(crate) faults: String,
    /// What the checks warned of.
    pub(crate) warnings: &'a [Warning],
}

impl Asked<'_> {
    /// The flag that lets the same things go wrong.
    fn flag(&self) -> String {
        if self.faults.is_empty() { String::new() } else { format!(" --faults {}", self.faults) }
    }
}

/// What was played and what of it needs a person, for standard error. `kept` holds the ids of runs by
/// their seeds.
pub(crate) fn summary(
    screen: &Screen,
    survey: &Survey,
    asked: &Asked<'_>,
    kept: &BTreeMap<u64, String>,
) -> String {
    let mut lines = vec![headline(screen, survey, asked)];
    lines.extend(asked.warnings.iter().map(|warning| {
        let label = format!("warning[{}]", screen.line(&warning.code));
        let label = screen.paint(Tone::Doubtful, label);
        format!("{label}: {}", screen.words(&warning.message, WORDS))
    }));
    if survey.broken > 0 {
        let label = screen.paint(Tone::Bad, "error");
        let runs = figures::things(survey.broken, "run");
        lines.push(format!(
            "{label}: {runs} broke a rule that every run keeps: a fault of Folkmoot's own"
        ));
    }
    let help = screen.paint(Tone::Strong, "help");
    lines.extend(survey.failures().next().map(|first| {
        let shown =
            kept.get(&first.seed).map(|id| format!("see what happened with `folkmoot show {id}`"));
        let again = || format!("have it again with `--seed {}{}`", first.seed, asked.flag());
        format!("{help}: {}", shown.unwrap_or_else(again))
    }));
    lines.push(String::new());
    lines.join("\n")
}

fn headline(screen: &Screen, survey: &Survey, asked: &Asked<'_>) -> String {
    let runs = figures::things(survey.runs, "run");
    let (sign, tone, runs) = if survey.runs < asked.runs {
        (
            '!',
            Tone::Doubtful,
            format!("interrupted after {runs} of {}", figures::grouped(asked.runs)),
        )
    } else if survey.broken > 0 {
        ('✗', Tone::Bad, runs)
    } else {
        ('✓', Tone::Good, runs)
    };
    let last = asked.seed + (asked.runs - 1);
    let parts = [
        Some(screen.paint(tone, format!("{sign} {runs}"))),
        Some(format!("seeds {} to {last}", asked.seed)),
        Some(format!("faults {}", asked.faults)).filter(|_| !asked.faults.is_empty()),
        Some(format!("{} failed", figures::grouped(survey.failed))).filter(|_| survey.failed > 0),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}
