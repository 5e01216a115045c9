//! What follows a stage, once it is recorded: four layers in this order, of which the first that decides
//! gives the reason (collaborate.md §9).
//!
//! 1. [Limits](limits): three failures in a row, the turns, the time, the budget.
//! 2. [Signals](signals): what those said whose word counts.
//! 3. [A product that no longer changes](stable), in a review.
//! 4. [The judge](judged) of a review, if it has one.

use super::{
    Form, Role,
    course::{At, Course, Plan, Question, Turn, stop},
    prompt,
};
use crate::{
    call::{Fault, Limit},
    event::Ending,
    key::Key,
    scope::{Scope, Step},
    verdict::{self, Signal},
};

/// How many failed turns in a row end a run.
const MOST_FAILURES: usize = 3;

/// How a pattern has ended, in the words of its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    pub(super) state: State,
    pub(super) reason: &'static str,
    /// The layer that decided; none if somebody cancelled it.
    pub(super) layer: Option<Layer>,
    /// Whether it came to what it was for.
    pub(super) converged: bool,
    /// The limit of time or cost that it came to.
    limit: Option<Limit>,
}

/// How a pattern stands when it is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Complete,
    Failed,
    Cancelled,
}

/// What decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layer {
    Limits,
    Signals,
    StableProduct,
    Judge,
}

impl State {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            State::Complete => "COMPLETE",
            State::Failed => "FAILED",
            State::Cancelled => "CANCELLED",
        }
    }
}

impl Layer {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Layer::Limits => "limits",
            Layer::Signals => "signals",
            Layer::StableProduct => "stable_product",
            Layer::Judge => "judge",
        }
    }
}

impl End {
    /// It has come to what it was for.
    fn converged(reason: &'static str, layer: Layer) -> End {
        End { state: State::Complete, reason, layer: Some(layer), converged: true, limit: None }
    }

    /// It has not, and there is nothing to be had from it.
    fn failed(reason: &'static str, layer: Layer) -> End {
        End { state: State::Failed, converged: false, ..End::converged(reason, layer) }
    }

    /// It stops with what there is, if there is anything.
    fn short(course: &Course, reason: &'static str, limit: Option<Limit>) -> End {
        let is_there = course.products().next().is_some();
        let state = if is_there { State::Complete } else { State::Failed };
        End { state, converged: false, limit, ..End::converged(reason, Layer::Limits) }
    }

    /// The same as the kernel records it.
    pub(super) fn ending(self, course: &Course) -> Ending {
        let product: Vec<Key> =
            course.products().next().map(|turn| turn.reply.key.clone()).into_iter().collect();
        match (self.state, self.limit) {
            (State::Complete, _) if self.converged => Ending::done(self.reason, product),
            (State::Complete | State::Failed, Some(limit)) => {
                Ending::at_limit(limit, self.reason, product)
            }
            (State::Complete | State::Failed, None) if self.reason == MAX_ROUNDS => {
                Ending::bound(self.reason, product)
            }
            (State::Complete | State::Failed | State::Cancelled, _) => {
                Ending::failed(self.reason, product)
            }
        }
    }
}

/// What follows a stage.
pub(super) enum Next {
    /// Another one.
    Stage(At),
    /// People are asked first.
    Ask(Vec<Question>),
    /// Nothing.
    End(End),
}

const MAX_ROUNDS: &str = "max_rounds";
const MAX_WALL_TIME: &str = "max_wall_time";
const NEEDS_INPUT: &str = "needs_input";
const PATTERN_COMPLETE: &str = "pattern_complete";

/// Decides what follows the stage at `at`, which is the last one.
pub(super) fn after(cx: &Scope, course: &mut Course, at: &At) -> Step<Next> {
    let plan = course.plan(at);
    let said = signals(cx, course, &plan);
    if let Some(end) = limits(cx, course, &plan) {
        return Ok(match said {
            Told::Asks(NEEDS_INPUT, questions) if may_ask(course, end) => {
                asks(course, end.reason, Layer::Limits, questions)
            }
            // A limit keeps its reason even if the last reply approved.
            Told::Done(_) if end.state == State::Complete => {
                Next::End(End { converged: true, ..end })
            }
            Told::Asks(..) | Told::Done(_) | Told::GoOn | Told::Nothing => Next::End(end),
        });
    }
    match said {
        Told::Done(end) => return Ok(Next::End(end)),
        Told::Asks(reason, questions) => {
            return Ok(asks(course, reason, Layer::Signals, questions));
        }
        Told::GoOn => {}
        Told::Nothing if is_stable(course) => {
            let end = End::converged("stable_output", Layer::StableProduct);
            return Ok(Next::End(end));
        }
        Told::Nothing => {
            if let Some(next) = judged(cx, course)? {
                return Ok(next);
            }
        }
    }
    Ok(match plan {
        Plan::Stage(next) => Next::Stage(next),
        Plan::Full => Next::End(End::short(course, MAX_ROUNDS, None)),
        // By plain keywords who closes it may fail.
        Plan::Over if course.products().next().is_some() => {
            Next::End(End::converged(PATTERN_COMPLETE, Layer::Signals))
        }
        Plan::Over => Next::End(End::failed(PATTERN_COMPLETE, Layer::Signals)),
    })
}

/// Whether a question that comes with a limit is asked. By plain keywords a limit hides it, and nobody
/// is asked where nothing can follow.
fn may_ask(course: &Course, end: End) -> bool {
    let is_own = matches!(end.reason, MAX_ROUNDS | MAX_WALL_TIME) && course.stopped.is_none();
    is_own && !course.pattern.literal
}

fn asks(course: &mut Course, reason: &'static str, layer: Layer, questions: Vec<Question>) -> Next {
    course.asks_because = Some((reason, layer.as_str()));
    Next::Ask(questions)
}

/// Layer 1.
fn limits(cx: &Scope, course: &Course, plan: &Plan) -> Option<End> {
    if let Some(end) = course.stopped.as_ref().and_then(|fault| stopped(course, fault)) {
        return Some(end);
    }
    if course.failures >= MOST_FAILURES {
        return Some(End::failed("consecutive_failures", Layer::Limits));
    }
    if matches!(plan, Plan::Full) {
        return Some(End::short(course, MAX_ROUNDS, None));
    }
    let is_late = course.is_late(cx);
    is_late.then(|| End::short(course, MAX_WALL_TIME, Some(Limit::Time)))
}

/// How it ends when nothing more may be asked.
fn stopped(course: &Course, fault: &Fault) -> Option<End> {
    match fault {
        Fault::Cancelled => {
            let failed = End::failed("cancelled", Layer::Limits);
            Some(End { state: State::Cancelled, layer: None, ..failed })
        }
        Fault::Deadline => Some(End::short(course, MAX_WALL_TIME, Some(Limit::Time))),
        Fault::OverBudget { limit, .. } => {
            Some(End::short(course, "budget_exceeded", Some(*limit)))
        }
        Fault::Failed { .. } | Fault::TimedOut | Fault::Lost | Fault::Unwanted => None,
    }
}

/// What the signals of a stage come to.
enum Told {
    /// It is over.
    Done(End),
    /// People are asked, and why.
    Asks(&'static str, Vec<Question>),
    /// It goes on, whatever else might end it.
    GoOn,
    /// They come to nothing.
    Nothing,
}

/// Layer 2.
fn signals(cx: &Scope, course: &Course, plan: &Plan) -> Told {
    let last = course.last_stage();
    let has = |signal| last.iter().any(|turn| turn.counts == Some(signal));
    if course.pattern.literal && has(Signal::Approval) {
        return Told::Done(End::converged("explicit_converged", Layer::Signals));
    }
    let asking: Vec<Question> =
        last.iter().filter(|turn| turn.counts == Some(Signal::NeedsInput)).map(asked).collect();
    if !asking.is_empty() {
        return Told::Asks(NEEDS_INPUT, asking);
    }
    if has(Signal::Blocking) {
        return Told::GoOn;
    }
    let Some(closing) = last.iter().find(|turn| course.closes(turn.role) && !turn.has_failed())
    else {
        return Told::Nothing;
    };
    if course.pattern.literal {
        return literally(course, plan);
    }
    let may_follow = matches!(plan, Plan::Stage(_));
    match (course.pattern.form, closing.counts) {
        (_, Some(Signal::Approval)) => {
            Told::Done(End::converged("explicit_converged", Layer::Signals))
        }
        (Form::Review, Some(Signal::NoBlocking)) => {
            Told::Done(End::converged("no_blocking_findings", Layer::Signals))
        }
        (Form::Review, _) => Told::Nothing,
        (Form::Consensus, Some(Signal::Conflict)) if may_follow => Told::GoOn,
        (Form::Consensus, None) if closing.says.is_unreadable && may_follow => Told::GoOn,
        (Form::Consensus, Some(Signal::Conflict)) => unresolved(closing),
        (Form::Consensus, None) if closing.says.is_unreadable => unresolved(closing),
        (Form::Consensus, _) => Told::Done(End::converged(PATTERN_COMPLETE, Layer::Signals)),
        (Form::Debate, Some(Signal::Ruling(_))) => {
            Told::Done(End::converged("verdict", Layer::Signals))
        }
        (Form::Debate, _) => {
            let text = prompt::without_ruling(cx.language());
            Told::Asks("no_verdict", vec![question(closing, text.to_owned())])
        }
    }
}

/// By plain keywords consensus and debate go through all their cycles, whatever is open, and are done.
fn literally(course: &Course, plan: &Plan) -> Told {
    match (course.pattern.form, plan) {
        (Form::Review, _) | (_, Plan::Stage(_) | Plan::Full) => Told::Nothing,
        (Form::Consensus | Form::Debate, Plan::Over) => {
            let reason = if course.ruling().is_some() { "verdict" } else { PATTERN_COMPLETE };
            Told::Done(End::converged(reason, Layer::Signals))
        }
    }
}

/// What a turn asks of a person.
fn asked(turn: &Turn) -> Question {
    let whole = || turn.reply.text().map(|text| text.trim().to_owned());
    let text = turn.says.question.clone().or_else(whole);
    question(turn, text.unwrap_or_default())
}

fn unresolved(closing: &Turn) -> Told {
    let open: Vec<&str> =
        closing.says.conflicts.iter().map(|it| it.trim()).filter(|it| !it.is_empty()).collect();
    let text = if open.is_empty() { asked(closing).text } else { open.join("\n") };
    Told::Asks("unresolved_conflict", vec![question(closing, text)])
}

fn question(turn: &Turn, text: String) -> Question {
    Question { turn: turn.number, role: turn.role, of: turn.reply.clone(), text }
}

/// Layer 3: whether the work has not changed since the one before. A reviewer's prose is no work.
fn is_stable(course: &Course) -> bool {
    let is_new = |turn: &Turn| course.last_stage().iter().any(|it| it.number == turn.number);
    let mut products = course.products();
    let (Some(last), Some(before)) = (products.next(), products.next()) else { return false };
    let same = || match (last.reply.text(), before.reply.text()) {
        (Some(last), Some(before)) => verdict::work(last) == verdict::work(before),
        (Some(_) | None, _) => false,
    };
    course.pattern.form == Form::Review && is_new(last) && same()
}

/// Layer 4: once a round, where the reviewer gave no signal.
fn judged(cx: &Scope, course: &mut Course) -> Step<Option<Next>> {
    let Some(judge) = &course.pattern.judge else { return Ok(None) };
    let reviewed = course.last_stage().iter().find(|turn| turn.role == Role::Reviewer);
    let Some(turn) = reviewed.filter(|turn| !turn.has_failed() && turn.counts.is_none()) else {
        return Ok(None);
    };
    if course.judged == turn.round {
        return Ok(None);
    }
    let (round, stage, asking) = (turn.round, turn.stage, question(turn, String::new()));
    let place = cx.at(format!("stage-{stage}")).before(course.deadline());
    let reply = place.ask("judge", judge, prompt::of_judge(cx, course, turn))?;
    course.judged = round;
    course.judge_calls += u64::from(place.was_asked("judge"));
    course.stopped = stop(std::slice::from_ref(&reply));
    let Some((word, rest)) = reply.contribution().map(verdict::first_word) else {
        return Ok(limits(cx, course, &Plan::Over).map(Next::End));
    };
    let end = match &*word {
        "COMPLETE" => End::converged("judge", Layer::Judge),
        "FAILED" => End::failed("judge", Layer::Judge),
        "NEEDS_INPUT" => {
            let text = if rest.is_empty() { word } else { rest };
            return Ok(Some(asks(
                course,
                "judge",
                Layer::Judge,
                vec![Question { text, ..asking }],
            )));
        }
        _ => return Ok(limits(cx, course, &Plan::Over).map(Next::End)),
    };
    Ok(Some(Next::End(end)))
}
