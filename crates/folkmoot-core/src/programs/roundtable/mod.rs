//! The round table: agents act on what others left on a board, and nobody is addressed (messaging.md §4).
//!
//! The board is a fold of the replies in the order in which the log has them. Whether an agent is asked
//! for its n-th turn follows from what came before that turn alone, so a turn that was asked stays wanted.

mod record;
pub(crate) mod table;

use serde::{Deserialize, Serialize};

use self::table::{Said, Table};
use crate::{
    call::{Fault, Limit, Part, Prompt, Reply},
    event::{Ending, Text},
    key::Key,
    programs::Clocks,
    scope::{Moment, Program, Scope, Step, Want},
    team::AgentId,
};

/// How many entries end a round table, unless told otherwise.
pub const USUAL_POSTS: u64 = 40;

/// How many turns an agent has at most, unless told otherwise.
pub const USUAL_TURNS: u64 = 20;

/// How many turns may fail in a row before an agent leaves.
const FAILURES: u32 = 3;

/// Agents around a board that is this run's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Roundtable {
    /// Who sits there.
    pub agents: Vec<AgentId>,
    /// The most entries.
    pub max_posts: u64,
    /// The most turns of each agent.
    pub max_turns: u64,
    /// Who words the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scribe: Option<AgentId>,
    /// The clocks of a turn.
    pub clocks: Clocks,
}

impl Program for Roundtable {
    fn run(&self, cx: &Scope) -> Step<Ending> {
        let mut course = Course::new(self);
        let ending = self.go(cx, &mut course);
        cx.tell(|account| record::tell(cx, &course, account));
        ending
    }
}

/// How far a round table has come.
struct Course<'a> {
    seats: Vec<Seat<'a>>,
    table: Table,
    /// The replies that changed the board or tried to, in the order of the log.
    replies: Vec<Key>,
    /// Who said what in its n-th turn.
    rounds: Vec<Vec<Reply>>,
    now: Moment,
    end: Option<End>,
}

/// One agent at the table.
struct Seat<'a> {
    agent: &'a AgentId,
    turns: u64,
    /// The version of the board that its latest turn saw, and how many replies had made it.
    seen: (u64, usize),
    /// Its latest turn.
    latest: Option<Key>,
    /// Whether its latest turn was anything but a pass.
    again: bool,
    failures: u32,
    has_left: bool,
    away: Option<Away>,
}

/// A turn that has begun.
struct Away {
    reply: Option<Reply>,
    at: Moment,
    wants: Vec<Want>,
}

/// Why it is over.
#[derive(Clone, Copy)]
enum End {
    Quiet,
    Bound,
    Stopped(Option<Limit>),
    Deserted,
}

impl<'a> Course<'a> {
    fn new(table: &'a Roundtable) -> Course<'a> {
        let seat = |agent| Seat {
            agent,
            turns: 0,
            seen: (0, 0),
            latest: None,
            again: true,
            failures: 0,
            has_left: false,
            away: None,
        };
        Course {
            seats: table.agents.iter().map(seat).collect(),
            table: Table::new(table.max_posts),
            replies: Vec::new(),
            rounds: Vec::new(),
            now: Moment::default(),
            end: None,
        }
    }

    /// The seat whose turn ended first of those that are not taken in yet.
    fn first_back(&self) -> Option<usize> {
        let back = self.seats.iter().enumerate().filter_map(|(n, seat)| {
            let away = seat.away.as_ref()?;
            away.reply.as_ref().map(|_| (away.at.seq, n))
        });
        back.min().map(|(_, n)| n)
    }

    /// Takes in what a turn brought; gives why it is over if that stops the run.
    fn take_in(&mut self, cx: &Scope, n: usize) -> Option<End> {
        let seat = &mut self.seats[n];
        let Away { reply, at, .. } = seat.away.take()?;
        let reply = reply?;
        self.now = self.now.max(at);
        let round = seat.turns as usize;
        if self.rounds.len() < round {
            self.rounds.resize_with(round, Vec::new);
        }
        self.rounds[round - 1].push(reply.clone());
        seat.latest = Some(reply.key.clone());
        let stopped = reply.fault().and_then(stopped);
        let said = reply.contribution().map_or(Said::Nothing, |answer| {
            self.table.put(seat.agent, cx.name(seat.agent), answer, at.at)
        });
        seat.again = said != Said::Pass;
        seat.failures = if said == Said::Nothing { seat.failures + 1 } else { 0 };
        seat.has_left = seat.failures >= FAILURES;
        if said == Said::Something {
            self.replies.push(reply.key);
        }
        stopped
    }
}

/// Why it is over if a call came to this, and that stops the run.
fn stopped(fault: &Fault) -> Option<End> {
    match fault {
        Fault::Deadline => Some(End::Stopped(Some(Limit::Time))),
        Fault::OverBudget { limit, .. } if fault.stops_run() => Some(End::Stopped(Some(*limit))),
        Fault::Cancelled => Some(End::Stopped(None)),
        Fault::OverBudget { .. }
        | Fault::Failed { .. }
        | Fault::TimedOut
        | Fault::Lost
        | Fault::Unwanted => None,
    }
}

impl Roundtable {
    /// Turn after turn, until nobody has anything to add.
    fn go(&self, cx: &Scope, course: &mut Course) -> Step<Ending> {
        let end = loop {
            if let Some(end) = self.seat_all(cx, course) {
                break end;
            }
            let Some(n) = course.first_back() else {
                let away = course.seats.iter_mut().filter_map(|seat| seat.away.take());
                let wants = away.flat_map(|away| away.wants).collect();
                return cx.wait_for(wants);
            };
            if let Some(end) = course.take_in(cx, n) {
                break end;
            }
        };
        self.conclude(cx, course, end)
    }

    /// Asks whoever is idle and has something to look at; gives why it is over, if it is.
    fn seat_all(&self, cx: &Scope, course: &mut Course) -> Option<End> {
        if course.table.is_full() {
            return Some(End::Bound);
        }
        let version = course.table.board().version();
        for n in 0..course.seats.len() {
            let seat = &course.seats[n];
            let is_due = seat.again || seat.seen.0 < version;
            if seat.has_left || seat.away.is_some() || !is_due {
                continue;
            }
            if seat.turns >= self.max_turns {
                return Some(End::Bound);
            }
            let prompt = prompt(cx, seat, &course.replies);
            let (agent, name) = (seat.agent, format!("turn-{}", seat.turns + 1));
            let place = self.clocks.each(cx).at(agent.as_str());
            let ((step, at), wants) =
                cx.tentatively(|| cx.branch(course.now, || place.ask(&name, agent, prompt)));
            let seat = &mut course.seats[n];
            seat.turns += 1;
            seat.seen = (version, course.replies.len());
            seat.away = Some(Away { reply: step.ok(), at, wants });
        }
        if course.seats.iter().all(|seat| seat.has_left) {
            return Some(End::Deserted);
        }
        course.seats.iter().all(|seat| seat.away.is_none()).then_some(End::Quiet)
    }

    /// Lets the scribe word what is on the board, if there is one, and ends.
    fn conclude(&self, cx: &Scope, course: &mut Course, mut end: End) -> Step<Ending> {
        course.end = Some(end);
        cx.go_to(course.now);
        let told = course.table.told();
        let mut answer = Some(Text::Literal(told.into())).filter(|_| !course.table.is_empty());
        let is_asked = matches!(end, End::Quiet | End::Bound) && answer.is_some();
        if let Some(scribe) = self.scribe.as_ref().filter(|_| is_asked) {
            let replies = course.replies.clone();
            let prompt = with_board(Prompt::task(), None, replies, scribe).say(
                cx.language().pick(
                    "The round table is over. Write the final answer to the task from what is on the board.",
                    "圆桌讨论已结束。请根据公告板上的内容写出任务的最终答案。",
                ),
            );
            let reply = self.clocks.each(cx).ask("scribe", scribe, prompt)?;
            if reply.contribution().is_some() {
                answer = Some(Text::Replies(vec![reply.key]));
            } else if let Some(stopped) = reply.fault().and_then(stopped) {
                end = stopped;
                course.end = Some(end);
            }
        }
        let ending = match end {
            End::Quiet => Ending::done("quiescent", Vec::new()),
            End::Bound => Ending::bound("max_rounds", Vec::new()),
            End::Stopped(Some(Limit::Time)) => {
                Ending::at_limit(Limit::Time, "max_wall_time", Vec::new())
            }
            End::Stopped(Some(limit)) => Ending::at_limit(limit, "budget_exceeded", Vec::new()),
            End::Stopped(None) => Ending::failed("cancelled", course.replies.clone()),
            End::Deserted => Ending::failed("consecutive_failures", course.replies.clone()),
        };
        let answer = answer.filter(|_| ending.answer.is_some());
        Ok(Ending { answer, ..ending })
    }
}

/// What an agent is asked in its next turn.
fn prompt(cx: &Scope, seat: &Seat, replies: &[Key]) -> Prompt {
    let name = cx.name(seat.agent);
    let told = match cx.language() {
        crate::words::Language::English => format!(
            "You are {name}, one of several at a round table. Nobody leads and nobody is addressed: all read \
             the same board and add to it. Reply with one JSON object, \
             {{\"posts\": [{{\"topic\": \"…\", \"text\": \"…\", \"refs\": []}}], \
             \"cells\": [{{\"key\": \"…\", \"expect\": 0, \"value\": …}}]}}; \
             expect is the version of the cell that you saw, 0 for a new one. \
             If you have nothing to add, reply with PASS alone."
        ),
        crate::words::Language::Chinese => format!(
            "你是 {name}，圆桌的一员。没有主持人，也不指名任何人：所有人读同一块公告板，并在上面添加内容。\
             请回复一个 JSON 对象：{{\"posts\": [{{\"topic\": \"…\", \"text\": \"…\", \"refs\": []}}], \
             \"cells\": [{{\"key\": \"…\", \"expect\": 0, \"value\": …}}]}}；\
             expect 是你看到的单元格版本，新建为 0。如果没有要补充的，只回复 PASS。"
        ),
    };
    let new = replies[seat.seen.1..].to_vec();
    with_board(Prompt::task().say(told), seat.latest.clone(), new, seat.agent)
}

fn with_board(mut prompt: Prompt, since: Option<Key>, replies: Vec<Key>, of: &AgentId) -> Prompt {
    prompt.parts.push(Part::Board { since, replies, of: of.clone() });
    prompt
}

#[cfg(test)]
mod tests;
