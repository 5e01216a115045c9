//! A run as a Markdown page: who said what, what it came to, what it cost.

use std::fmt::Write;

use serde_json::Value;

use super::{CallView, Outcome, Spending, calls, outcome, prices};
use crate::{run::Run, spec::Spec, time::Duration};

/// Folds a run into a Markdown report. `alive` tells whether somebody drives it.
///
/// What agents said stands in block quotes, so that no text of theirs can pass for the report's own, and
/// without HTML and links, so that it does nothing where the page is shown (rules.md 16.3).
pub fn report(run_id: &str, spec: &Spec, run: &Run, alive: bool) -> String {
    let outcome = outcome(run_id, spec, run, alive);
    let mut page = String::new();
    head(&mut page, spec, &outcome);
    section(&mut page, "Task", &quoted(&outcome.prompt));
    match (&outcome.answer, &outcome.partial) {
        (Some(answer), _) => section(&mut page, "Answer", &quoted(answer)),
        (None, Some(partial)) => {
            section(&mut page, "Without an answer: what there is", &quoted(&partial.text));
        }
        (None, None) => section(&mut page, "Answer", "None."),
    }
    votes(&mut page, &outcome);
    findings(&mut page, &outcome);
    teams(&mut page, &outcome);
    section(&mut page, "What was said", &said(spec, run));
    list(
        &mut page,
        "Errors",
        outcome.errors.iter().map(|it| {
            format!("{} ({}): {}", code(it.key.as_str()), inline(&it.agent), inline(&it.error))
        }),
    );
    list(
        &mut page,
        "Warnings",
        outcome.warnings.iter().map(|it| format!("`{}`: {}", it.code, inline(&it.message))),
    );
    costs(&mut page, &outcome);
    let prices = prices::lines(spec, run.known());
    list(&mut page, "Prices, for a million tokens", prices.into_iter());
    page
}

fn head(page: &mut String, spec: &Spec, outcome: &Outcome) {
    let team = if spec.team.name.is_empty() { "Team" } else { &*spec.team.name };
    let status = outcome.status.as_str().replace('_', " ");
    let described = |reason: &str| match spec.collaboration.described(reason) {
        Some(words) => format!(" ({reason}: {})", inline(&words)),
        None => format!(" ({reason})"),
    };
    let reason = outcome.reason.as_deref().map(described).unwrap_or_default();
    let took = Duration::from_secs_f64(outcome.meta.elapsed_seconds);
    line(page, &format!("# {}: {}", inline(team), outcome.strategy));
    line(page, "");
    line(page, &format!("Run `{}`: **{status}**{reason} after {took}.", outcome.run_id));
    if let Some(origin) = &outcome.origin {
        let what = if origin.retried { "Another attempt at" } else { "Forked from" };
        line(page, "");
        line(page, &format!("{what} run {}, event {}.", inline(&origin.run_id), origin.seq));
    }
    if let Some(auto) = &outcome.meta.auto {
        line(page, "");
        line(page, &format!("`auto` chose {}: {}.", auto.chose, inline(&auto.because)));
    }
}

fn said(spec: &Spec, run: &Run) -> String {
    let mut said = String::new();
    for call in calls(spec, run) {
        line(&mut said, &format!("### {}", title(&call)));
        line(&mut said, "");
        let text = match (&call.reply, &call.fault) {
            (Some(reply), _) => quoted(reply),
            (None, Some(fault)) => format!(
                "**{}**: {}",
                call.state,
                inline(fault["error"].as_str().unwrap_or_default())
            ),
            (None, None) => "*no answer yet*".to_owned(),
        };
        line(&mut said, &text);
        line(&mut said, "");
    }
    said
}

fn title(call: &CallView) -> String {
    let mut title = inline(&call.agent);
    if let Some(tool) = &call.tool {
        write!(title, " uses {}", inline(tool)).expect("a string takes any text");
    }
    write!(title, " · {}", code(call.key.as_str())).expect("a string takes any text");
    if let Some(model) = call.fallback() {
        write!(title, " · {}", inline(model)).expect("a string takes any text");
    }
    if let Some(seconds) = call.elapsed_seconds {
        write!(title, " · {}", Duration::from_secs_f64(seconds)).expect("a string takes any text");
    }
    if call.usage.total_tokens > 0 {
        write!(title, " · {}", spending(&call.usage)).expect("a string takes any text");
    }
    title
}

/// How each ballot of a vote was read.
fn votes(page: &mut String, outcome: &Outcome) {
    let Some(vote) = outcome.rounds.iter().find(|round| round["step"] == "vote") else { return };
    let Some(ballots) = vote["ballots"].as_object() else { return };
    let rows = ballots.iter().map(|(voter, ballot)| {
        let read = ballot["vote"].as_str().or(ballot["invalid"].as_str());
        let read = read.or(ballot["error"].as_str()).unwrap_or_default();
        format!("| {} | {} |", cell(voter), cell(read))
    });
    let rows: Vec<String> = rows.collect();
    let turnout = &vote["turnout"];
    let head = format!("{} of {} ballots were valid.", turnout["valid"], turnout["asked"]);
    section(
        page,
        "Votes",
        &format!("{head}\n\n| voter | read as |\n|---|---|\n{}", rows.join("\n")),
    );
}

/// How each turn of a team went; what was said in it stands among all that was said.
fn teams(page: &mut String, outcome: &Outcome) {
    let row = |(key, turn): (&String, &Value)| {
        let text = |field: &str| cell(turn[field].as_str().unwrap_or_default());
        let status = text("status").replace("\\_", " ");
        let rounds = turn["rounds"].as_array().map_or(0, Vec::len);
        let (agent, strategy, reason) = (text("agent"), text("strategy"), text("reason"));
        let key = code(&key.replace('|', "\\|"));
        format!("| {key} | {agent} | {strategy} | {status} | {reason} | {rounds} |")
    };
    let rows: Vec<String> = outcome.nested.iter().map(row).collect();
    if !rows.is_empty() {
        let head =
            "| turn | team | strategy | status | reason | rounds |\n|---|---|---|---|---|--:|";
        section(page, "Teams", &format!("{head}\n{}", rows.join("\n")));
    }
}

/// What reviewers found, how it stands, and what each round brought.
fn findings(page: &mut String, outcome: &Outcome) {
    let Some(all) = &outcome.findings else { return };
    let text = |value: &Value| cell(value.as_str().unwrap_or_default());
    let named = |it: &Value, id: String| match it["stage"].as_str() {
        Some(stage) => format!("{} {id}", cell(stage)),
        None => id,
    };
    let row = |it: &Value| {
        let history = it["history"].as_array().into_iter().flatten();
        let history = history.map(|it| format!("{} {}", it["round"], text(&it["state"])));
        let id = named(it, text(&it["id"]));
        let (severity, place) = (text(&it["severity"]), text(&it["place"]));
        let history = history.collect::<Vec<_>>().join(", ");
        format!("| {id} | {severity} | {place} | {} | {history} |", text(&it["text"]))
    };
    let rows: Vec<String> = all.iter().map(row).collect();
    let head = "| finding | severity | place | what | by round |\n|---|---|---|---|---|";
    let table = format!("{head}\n{}", rows.join("\n"));
    let table = if rows.is_empty() { "None.".to_owned() } else { table };
    section(page, "Findings", &table);
    let round = |it: &Value| {
        let counts = ["new", "fixed", "reopened", "open"].map(|key| it[key].to_string());
        format!("| {} | {} |", named(it, it["round"].to_string()), counts.join(" | "))
    };
    let rounds = outcome.rounds_of_findings.iter().flatten();
    let rounds: Vec<String> = rounds.map(round).collect();
    if !rounds.is_empty() {
        let head = "| round | new | fixed | reopened | open |\n|---|--:|--:|--:|--:|";
        line(page, &format!("\n{head}\n{}", rounds.join("\n")));
    }
}

fn costs(page: &mut String, outcome: &Outcome) {
    let usage = &outcome.meta.usage;
    let mut rows =
        vec!["| agent | tokens read | written | cost |".to_owned(), "|---|--:|--:|--:|".to_owned()];
    rows.extend(usage.agents.iter().map(|(agent, it)| row(&cell(agent), it)));
    rows.push(row(&format!("**all**, {} calls", usage.calls), &usage.total));
    section(page, "Use", &rows.join("\n"));
}

fn row(who: &str, spending: &Spending) -> String {
    let about = if spending.estimated { "~" } else { "" };
    let cost = spending.cost_usd.map_or_else(|| "unknown".to_owned(), |usd| format!("${usd:.4}"));
    let cost = if spending.total_tokens == 0 { "–".to_owned() } else { cost };
    format!(
        "| {who} | {about}{} | {about}{} | {cost} |",
        spending.prompt_tokens, spending.completion_tokens
    )
}

fn spending(spending: &Spending) -> String {
    let about = if spending.estimated { "~" } else { "" };
    format!("{about}{} tokens", spending.total_tokens)
}

fn line(page: &mut String, text: &str) {
    page.push_str(text);
    page.push('\n');
}

fn section(page: &mut String, title: &str, text: &str) {
    line(page, &format!("\n## {title}\n\n{}", text.trim_end()));
}

fn list(page: &mut String, title: &str, items: impl Iterator<Item = String>) {
    let items: Vec<String> = items.map(|item| format!("- {item}")).collect();
    if !items.is_empty() {
        section(page, title, &items.join("\n"));
    }
}

fn quoted(text: &str) -> String {
    // A carriage return alone ends a line of Markdown, too.
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let lines: Vec<String> =
        text.lines().map(|line| format!("> {}", harmless(line)).trim_end().to_owned()).collect();
    if lines.is_empty() { "> *(blank)*".to_owned() } else { lines.join("\n") }
}

/// A line of foreign Markdown in which nothing acts: no HTML, no links, no images. The rest of its markup
/// stays, as people read it better so. Code gets the same signs: where it ends is the renderer's to say.
fn harmless(line: &str) -> String {
    let mut safe = String::with_capacity(line.len());
    let mut is_escaped = false;
    let mut rest = line.chars().peekable();
    while let Some(character) = rest.next() {
        let next = rest.peek();
        let acts = match character {
            '<' => next.is_some_and(|it| it.is_ascii_alphabetic() || matches!(it, '/' | '!' | '?')),
            ']' => next.is_some_and(|it| matches!(it, '(' | '[' | ':')),
            _ => false,
        };
        if acts && !is_escaped {
            safe.push('\\');
        }
        is_escaped = character == '\\' && !is_escaped;
        safe.push(character);
    }
    safe
}

/// Foreign text as code inside a line: behind more backticks than it has in a row itself.
fn code(text: &str) -> String {
    let text = text.replace(['\n', '\r'], " ");
    let longest = text.split(|it| it != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest + 1);
    let gap = if longest > 0 { " " } else { "" };
    format!("{fence}{gap}{text}{gap}{fence}")
}

/// Foreign text inside a line: no line breaks, no markup.
pub(super) fn inline(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\r' => safe.push(' '),
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '|' => {
                safe.extend(['\\', character]);
            }
            _ => safe.push(character),
        }
    }
    safe
}

fn cell(text: &str) -> String {
    inline(text)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::{
        programs::{Clocks, Consensus},
        spec::Collaboration,
        testing::{agent, ids, play, spec},
    };

    #[test]
    fn foreign_markdown_keeps_its_form_and_nothing_in_it_acts() {
        for (foreign, shown) in [
            ("**so** a < b, x[1], `c`, - [ ] done", "**so** a < b, x[1], `c`, - [ ] done"),
            ("<img src=x onerror=alert(1)>", r"\<img src=x onerror=alert(1)>"),
            (r"\<b>\\<b>\\\<b>", r"\<b>\\\<b>\\\<b>"),
            ("</p><!-- x --><?php ?><A>", r"\</p>\<!-- x -->\<?php ?>\<A>"),
            ("<javascript:alert(1)>", r"\<javascript:alert(1)>"),
            ("[a](javascript:x) ![b][c] [c]: data:x", r"[a\](javascript:x) ![b\][c] [c\]: data:x"),
            (r"[a\](x) [a\\](x)", r"[a\](x) [a\\\](x)"),
            ("一\r<b>二</b>\r\n```\n<i>", "一\n> \\<b>二\\</b>\n> ```\n> \\<i>"),
        ] {
            assert_eq!(quoted(foreign), format!("> {shown}"), "{foreign}");
        }
    }

    #[test]
    fn a_key_cannot_end_the_code_it_stands_in() {
        for (key, shown) in [
            ("task/a", "`task/a`"),
            ("task/a`<b>`", "`` task/a`<b>` ``"),
            ("a```b``", "```` a```b`` ````"),
            ("a\n\n<b>", "`a  <b>`"),
        ] {
            assert_eq!(code(key), shown);
        }
    }

    #[test]
    fn a_report_tells_who_said_what_how_votes_were_read_and_what_it_cost() {
        let consensus = Consensus {
            agents: ids(&["a", "b_b"]),
            judge: "a".into(),
            self_votes: true,
            clocks: Clocks::default(),
        };
        let agents = vec![
            agent("a", &["# PA\nmore", "vote:a", "VERDICT"]),
            agent("b_b", &["PB", "!down | out"]),
        ];
        let sim = play(spec(agents, Collaboration::Consensus(consensus)));
        expect![[r#"
            # test: consensus

            Run `r1`: **done** (majority) after 0ms.

            ## Task

            > TASK

            ## Answer

            > # PA
            > more

            ## Votes

            1 of 2 ballots were valid.

            | voter | read as |
            |---|---|
            | a | a |
            | b\_b | down \| out |

            ## What was said

            ### a · `propose/a` · 0ms

            > # PA
            > more

            ### b\_b · `propose/b_b` · 0ms

            > PB

            ### a · `vote/a` · 0ms

            > vote:a

            ### b\_b · `vote/b_b` · 0ms

            **failed**: down \| out

            ## Errors

            - `vote/b_b` (b\_b): down \| out

            ## Use

            | agent | tokens read | written | cost |
            |---|--:|--:|--:|
            | **all**, 4 calls | 0 | 0 | – |
        "#]]
        .assert_eq(&report("r1", &sim.spec, &sim.run, false));
    }
}
