//! What a person is told when a run is over: the answer on standard output, everything else on
//! standard error.

use folkmoot_core::{
    limits::Limits,
    time::Duration,
    view::{Outcome, Status},
};
use serde_json::Value;

use super::{
    figures,
    screen::{Screen, Tone},
};

/// How many errors are listed; `show` has all of them.
const ERRORS: usize = 5;

/// How much of an error is told, in columns.
const WORDS: usize = 200;

/// The answer and nothing else, for standard output; empty if there is none.
pub(crate) fn answer(screen: &Screen, outcome: &Outcome) -> String {
    screen.text(outcome.answer.as_deref().unwrap_or_default())
}

/// How the run ended, what it took, what went wrong and how to go on, for standard error.
pub(crate) fn summary(screen: &Screen, limits: &Limits, outcome: &Outcome) -> String {
    let mut lines = vec![headline(screen, outcome)];
    if let Some(partial) = &outcome.partial {
        lines.push("without an answer; what there is:".to_owned());
        lines.extend(screen.text(&partial.text).lines().map(|line| format!("  {line}")));
    }
    lines.extend(outcome.warnings.iter().map(|warning| {
        let label =
            screen.paint(Tone::Doubtful, format!("warning[{}]", screen.line(&warning.code)));
        format!("{label}: {}", screen.words(&warning.message, WORDS))
    }));
    lines.extend(errors(screen, outcome));
    lines.extend(questions(screen, outcome));
    let help = screen.paint(Tone::Strong, "help");
    lines.extend(how_to_go_on(screen, limits, outcome).map(|text| format!("{help}: {text}")));
    lines.push(String::new());
    lines.join("\n")
}

/// What a person is asked.
fn questions(screen: &Screen, outcome: &Outcome) -> Vec<String> {
    let label = screen.paint(Tone::Doubtful, "question");
    let open = outcome.record.get("open_questions").and_then(Value::as_array);
    let told = open.into_iter().flatten().map(|question| {
        let text = |key: &str| question[key].as_str().unwrap_or_default();
        let (role, key) = (screen.line(text("role")), screen.line(text("key")));
        format!("{label}: {role} ({key}): {}", screen.text(text("text")))
    });
    told.collect()
}

/// How a run stands and what it took, in one line.
pub(crate) fn headline(screen: &Screen, outcome: &Outcome) -> String {
    let (sign, tone) = match outcome.status {
        Status::Done => ('✓', Tone::Good),
        Status::Failed | Status::Cancelled => ('✗', Tone::Bad),
        Status::BudgetExhausted
        | Status::BoundReached
        | Status::Deadline
        | Status::NeedsInput
        | Status::Running
        | Status::Interrupted => ('!', Tone::Doubtful),
    };
    let status = screen.paint(tone, format!("{sign} {}", words_of(outcome.status)));
    let reason = outcome.reason.as_deref().map(|it| screen.line(it));
    let usage = &outcome.meta.usage;
    let parts = [
        Some(status),
        reason.filter(|it| it != outcome.status.as_str()),
        Some(figures::elapsed(Duration::from_secs_f64(outcome.meta.elapsed_seconds))),
        Some(figures::things(usage.calls, "call")),
        figures::tokens_of(&usage.total),
        figures::cost(&usage.total),
        Some(format!("run {}", screen.line(&outcome.run_id))),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

fn words_of(status: Status) -> String {
    status.as_str().replace('_', " ")
}

fn errors(screen: &Screen, outcome: &Outcome) -> Vec<String> {
    let label = screen.paint(Tone::Bad, "error");
    let listed = outcome.errors.iter().take(ERRORS).map(|it| {
        let (agent, key) = (screen.line(&it.agent), screen.line(it.key.as_str()));
        format!("{label}: {agent} ({key}): {}", screen.words(&it.error, WORDS))
    });
    let mut lines: Vec<String> = listed.collect();
    let more = outcome.errors.len().saturating_sub(ERRORS) as u64;
    if more > 0 {
        lines.push(format!("{label}: {} more", figures::grouped(more)));
    }
    lines
}

/// What a person can do next, if the end was not what they wanted.
fn how_to_go_on(
    screen: &Screen,
    limits: &Limits,
    outcome: &Outcome,
) -> impl Iterator<Item = String> {
    let id = screen.line(&outcome.run_id);
    let advice = match outcome.status {
        Status::Done | Status::Cancelled => None,
        Status::Failed => (!outcome.errors.is_empty())
            .then(|| format!("ask what failed again with `folkmoot retry {id}`")),
        Status::NeedsInput => {
            let open = outcome.record.get("open_questions").and_then(Value::as_array);
            let key = if open.is_some_and(|open| open.len() > 1) { " --key KEY" } else { "" };
            Some(format!("answer with `folkmoot answer {id}{key} TEXT`"))
        }
        Status::BudgetExhausted => Some(spent(limits, outcome.reason.as_deref())),
        Status::BoundReached if outcome.record.contains_key("pattern") => {
            Some("it came to its ceiling of turns; raise `--max-rounds`".to_owned())
        }
        Status::Deadline if outcome.reason.as_deref() == Some("max_wall_time") => {
            Some("its time ran out; raise `--timeout`".to_owned())
        }
        Status::BoundReached if outcome.reason.as_deref() == Some("findings_remain") => {
            Some(format!("the last review is not content; `folkmoot retry {id}` tries again"))
        }
        Status::BoundReached if outcome.record.contains_key("board") => Some(
            "it came to its bound; raise `max_posts` or `max_turns` in the team file".to_owned(),
        ),
        Status::BoundReached => Some(
            "it came to its bound; raise `--rounds` of a strategy, or the bound in the team file"
                .to_owned(),
        ),
        Status::Deadline => {
            let time = limits.time.map(|it| format!(" of {}", figures::time_limit(it)));
            let time = time.unwrap_or_default();
            Some(format!("its time{time} ran out; raise `--deadline` or `limits.time`"))
        }
        Status::Running => Some(format!("it is under way: `folkmoot watch {id}`")),
        Status::Interrupted => Some(format!("go on with `folkmoot resume {id}`")),
    };
    let look = (outcome.status != Status::Done)
        .then(|| format!("see what happened with `folkmoot show {id}`"));
    advice.into_iter().chain(look)
}

/// Which limit ended the run, and what raises it.
fn spent(limits: &Limits, reason: Option<&str>) -> String {
    let (limit, flag, key) = match reason {
        Some("calls") => {
            (limits.calls.map(|it| figures::things(it, "call")), "--max-calls", "calls")
        }
        Some("tokens") => {
            (limits.tokens.map(|it| figures::things(it, "token")), "--max-tokens", "tokens")
        }
        Some("cost") => {
            (limits.cost.map(|it| figures::dollars(it.usd())), "--max-cost", "cost_usd")
        }
        Some("time") => (limits.time.map(figures::time_limit), "--deadline", "time"),
        Some(_) | None => {
            return "a limit of the run was reached; raise it under `limits`".to_owned();
        }
    };
    let limit = limit.map(|it| format!(" of {it}")).unwrap_or_default();
    format!("the limit{limit} does not allow another call; raise `{flag}` or `limits.{key}`")
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use folkmoot_agents::Secrets;
    use folkmoot_core::{
        event::Event,
        money::Money,
        spec::{Spec, Warning},
        view,
    };

    use super::*;
    use crate::terminal::testing::{Stage, agent, broadcast, reply};

    fn over(spec: Spec) -> (Outcome, Limits) {
        let mut stage = Stage::new(spec);
        stage.play(|_, _, _| {});
        (view::outcome("r1", &stage.sim.spec, &stage.sim.run, false), stage.sim.spec.limits)
    }

    #[expect(clippy::needless_pass_by_value, reason = "reads better in the tests")]
    fn check((outcome, limits): (Outcome, Limits), expected: Expect) {
        let screen = Screen::page(Secrets::default());
        let told =
            format!("{}\n---\n{}", answer(&screen, &outcome), summary(&screen, &limits, &outcome));
        expected.assert_eq(&told);
    }

    #[test]
    fn a_run_that_is_done_has_its_answer_on_its_own() {
        let mut spec = broadcast(1, vec![agent("a", [reply(1500, "# 结论\n\n42\n", 1_234)])]);
        spec.warnings.push(Warning { code: "no_judge".into(), message: "nobody\nchecks".into() });
        check(
            over(spec),
            expect![[r#"
            # 结论

            42

            ---
            ✓ done · answered · 1.5s · 1 call · 1,234 tokens · cost unknown · run r1
            warning[no_judge]: nobody checks
        "#]],
        );
    }

    #[test]
    fn a_run_that_failed_says_what_went_wrong_and_keeps_what_there_is() {
        let agents = (0..8).map(|n| agent(&format!("a{n}"), [reply(10, "!no such model", 0)]));
        check(
            over(broadcast(1, agents.collect())),
            expect![[r#"

                ---
                ✗ failed · all_failed · 0.0s · 8 calls · run r1
                error: a0 (round-1/a0): no such model
                error: a1 (round-1/a1): no such model
                error: a2 (round-1/a2): no such model
                error: a3 (round-1/a3): no such model
                error: a4 (round-1/a4): no such model
                error: 3 more
                help: ask what failed again with `folkmoot retry r1`
                help: see what happened with `folkmoot show r1`
            "#]],
        );
        let late = [reply(10, "first", 0), reply(10, "!down", 0)];
        check(
            over(broadcast(2, vec![agent("a", late)])),
            expect![[r#"

                ---
                ✗ failed · last_round_failed · 0.0s · 2 calls · run r1
                without an answer; what there is:
                  first
                error: a (round-2/a): down
                help: ask what failed again with `folkmoot retry r1`
                help: see what happened with `folkmoot show r1`
            "#]],
        );
    }

    #[test]
    fn a_limit_that_ended_a_run_is_named_with_what_raises_it() {
        let spec = || broadcast(2, vec![agent("a", [reply(10, "A", 7)])]);
        let limited = |limits| over(Spec { limits, ..spec() });
        let none = Limits::default();
        check(
            limited(Limits { calls: Some(1), ..none }),
            expect![[r#"

            ---
            ! budget exhausted · calls · 0.0s · 1 call · 7 tokens · cost unknown · run r1
            without an answer; what there is:
              A
            error: a (round-2/a): budget exhausted
            help: the limit of 1 call does not allow another call; raise `--max-calls` or `limits.calls`
            help: see what happened with `folkmoot show r1`
        "#]],
        );
        check(
            limited(Limits { tokens: Some(5), ..none }),
            expect![[r#"

            ---
            ! budget exhausted · tokens · 0.0s · 0 calls · run r1
            error: a (round-1/a): budget exhausted
            help: the limit of 5 tokens does not allow another call; raise `--max-tokens` or `limits.tokens`
            help: see what happened with `folkmoot show r1`
        "#]],
        );
        check(
            limited(Limits { cost: Some(Money(0)), ..none }),
            expect![[r#"

            ---
            ! budget exhausted · cost · 0.0s · 0 calls · run r1
            error: a (round-1/a): budget exhausted
            help: the limit of $0.00 does not allow another call; raise `--max-cost` or `limits.cost_usd`
            help: see what happened with `folkmoot show r1`
        "#]],
        );
        check(
            limited(Limits { time: Some(Duration::from_millis(5)), ..none }),
            expect![[r#"

            ---
            ! deadline · 0.0s · 1 call · run r1
            error: a (round-1/a): deadline
            help: its time of 5ms ran out; raise `--deadline` or `limits.time`
            help: see what happened with `folkmoot show r1`
        "#]],
        );
    }

    #[test]
    fn every_other_end_says_how_to_go_on() {
        let mut stage = Stage::new(broadcast(1, vec![agent("a", [reply(10, "A", 7)])]));
        let told = |stage: &Stage, alive| {
            (view::outcome("r1", &stage.sim.spec, &stage.sim.run, alive), stage.sim.spec.limits)
        };
        check(
            told(&stage, true),
            expect![[r#"

            ---
            ! running · 0.0s · 1 call · run r1
            help: it is under way: `folkmoot watch r1`
            help: see what happened with `folkmoot show r1`
        "#]],
        );
        check(
            told(&stage, false),
            expect![[r#"

            ---
            ! interrupted · 0.0s · 1 call · run r1
            help: go on with `folkmoot resume r1`
            help: see what happened with `folkmoot show r1`
        "#]],
        );
        let (mut outcome, limits) = told(&stage, false);
        outcome.status = Status::NeedsInput;
        check(
            (outcome.clone(), limits),
            expect![[r#"

            ---
            ! needs input · 0.0s · 1 call · run r1
            help: answer with `folkmoot answer r1 TEXT`
            help: see what happened with `folkmoot show r1`
        "#]],
        );
        outcome.status = Status::BoundReached;
        outcome.reason = Some("max_iterations".to_owned());
        check(
            (outcome, limits),
            expect![[r#"

                ---
                ! bound reached · max_iterations · 0.0s · 1 call · run r1
                help: it came to its bound; raise `--rounds` of a strategy, or the bound in the team file
                help: see what happened with `folkmoot show r1`
            "#]],
        );
        stage.feed(Event::CancelRequested);
        check(
            told(&stage, false),
            expect![[r#"

            ---
            ✗ cancelled · 0.0s · 1 call · run r1
            error: a (round-1/a): cancelled
            help: see what happened with `folkmoot show r1`
        "#]],
        );
    }

    #[test]
    fn hostile_text_is_shown_and_does_nothing() {
        let hostile = "\u{1b}]0;title\u{7}x\u{9b}2J\u{202e}\r!";
        let mut spec = broadcast(
            1,
            vec![
                agent("a", [reply(10, hostile, 0)]),
                agent("b", [reply(10, &format!("!{hostile}"), 0)]),
            ],
        );
        spec.team.agents[1].name = hostile.into();
        spec.warnings.push(Warning { code: hostile.into(), message: hostile.into() });
        check(
            over(spec),
            expect![[r#"
            ␛x␛�␍!
            ---
            ✓ done · answered · 0.0s · 2 calls · run r1
            warning[␛x␛�␍!]: ␛x␛� !
            error: ␛x␛�␍! (round-1/b): ␛x␛� !
        "#]],
        );
    }

    #[test]
    fn colours_are_the_terminals_and_secrets_are_nobodys() {
        let (outcome, limits) =
            over(broadcast(1, vec![agent("a", [reply(10, "sk-0123456789", 0)])]));
        let screen = Screen::page(Secrets::new(["sk-0123456789"]));
        assert_eq!(answer(&screen, &outcome), "***");
        assert!(!summary(&screen, &limits, &outcome).contains('\u{1b}'));
        let coloured = Screen::coloured(80);
        assert!(summary(&coloured, &limits, &outcome).starts_with("\u{1b}[32m✓ done\u{1b}[0m · "));
    }
}
