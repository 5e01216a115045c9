//! What one turn of an agent can take, and how long its reply can be.
//!
//! All that multiplies inside a turn stands here: the requests that its tools need, the attempts of
//! a request, what one request and one reply have at most.

use super::{
    most::Most,
    take::{Cost, Range, Span, Take},
};
use crate::{
    call::Tokens,
    limits::{Limits, USUAL_OUTPUT},
    money::{Money, Price},
    render::FRAME,
    team::{Agent, DEMO_USAGE, Model, Says, Script, ScriptedReply, Target},
    words::Language,
};

/// How many tokens any model reads, at most, where another wrote one. A token of a text is on average
/// four bytes or less, and no tokenizer makes more tokens than bytes.
pub(super) const READ_AGAIN: u64 = 4;

/// How many bytes of a prompt a token holds at best.
const BEST_TOKEN: u64 = 16;

/// What the frame of a quote takes besides names, in bytes; also a line on who said nothing.
const QUOTE_FRAME: u64 = 128;

/// How much longer than what the demo was asked its reply can be, in bytes.
const DEMO_REPLY: u64 = 2048;

/// One agent, as far as bounds go. Sizes of texts are in bytes, the most tokens they can be read as.
pub(super) struct Member<'a> {
    pub(super) agent: &'a Agent,
    /// Whether a limit of tokens or money holds for it: then a call is one attempt that may cost
    /// something, and its reply is bounded.
    is_metered: bool,
    /// What it is asked first: the frames, the system message and the task.
    pub(super) opening: Most,
    /// The same at least.
    opening_least: u64,
}

/// A turn whose first request is known.
pub(super) struct Turn {
    pub(super) take: Take,
    /// The size of the reply.
    pub(super) said: Most,
    /// The size of the conversation when it is over.
    pub(super) kept: Most,
}

impl<'a> Member<'a> {
    /// An agent of a run with these limits that works on `task`, if that is known.
    pub(super) fn new(agent: &'a Agent, limits: &Limits, task: Option<&str>) -> Member<'a> {
        let is_metered =
            [limits, &agent.limits].iter().any(|it| it.tokens.is_some() || it.cost.is_some());
        let prompt = agent.prompt.as_deref().map_or(0, |it| it.trim_end().len());
        let identity = [Language::English, Language::Chinese].map(|it| it.identity(&agent.name));
        let [shorter, longer] = {
            let [one, other] = identity.map(|it| it.len());
            [one.min(other), one.max(other)]
        };
        let system = Most::of(prompt + "\n\n".len() + longer);
        let read = task.map_or(Most::UNKNOWN, |task| Most::of(task.len()));
        let least = prompt + shorter + task.map_or(0, str::len);
        Member {
            agent,
            is_metered,
            opening: system + read + 2 * FRAME,
            opening_least: least as u64,
        }
    }

    /// A turn that begins with a request of this size.
    pub(super) fn turn(&self, read: Most) -> Turn {
        let (requests, tools) = (self.requests(), self.tools());
        let later = Most(self.window().0.filter(|_| requests > 1));
        let most = self.request(read).and(self.request(later).times(requests - 1));
        let least = self.least();
        let span = |least: u64, most: Most| Span { min: least, max: most.0 };
        let (reads, writes) = (least.input + least.cached, least.output);
        let take = Take {
            calls: Range { min: 1, max: 1 },
            requests: Range { min: 1, max: requests },
            started: span(1, tools.times(requests - 1) + requests),
            input: span(reads, most.input),
            output: span(writes, most.output),
            tokens: span(reads + writes, most.total),
            cost: Cost { min: self.cheapest(least), max: self.dearest(most.input, most.output) },
        };
        let said = self.said(read);
        let kept = if requests > 1 { Most::UNKNOWN } else { read + said + FRAME };
        Turn { take, said, kept }
    }

    /// What it takes to read so much more in one request.
    pub(super) fn reading(&self, more: Most) -> Take {
        let Target::Model(_) = &self.agent.target else { return Take::NOTHING };
        let input = more.times(self.attempts());
        let span = Span { min: 0, max: input.0 };
        let max = self.dearest(input, Most::NOTHING);
        Take { input: span, tokens: span, cost: Cost { min: Money(0), max }, ..Take::NOTHING }
    }

    /// The size of a quote of it.
    pub(super) fn quote(&self, said: Most) -> Most {
        let (name, id) = (self.agent.name.len() as u64, self.agent.id.as_str().len() as u64);
        escaped(said) + (QUOTE_FRAME + 8 * name + 3 * id)
    }

    /// Requests of a turn at most. A model that has no tools asks for none.
    fn requests(&self) -> u64 {
        let has_tools = match &self.agent.target {
            Target::Model(_) => !self.agent.grants.is_empty(),
            Target::Script(script) => replies(script).any(|it| tool_calls(it) > 0),
            Target::Demo => false,
        };
        if has_tools { u64::from(self.agent.max_steps.max(1)) } else { 1 }
    }

    /// Tool calls of one reply at most.
    fn tools(&self) -> Most {
        match &self.agent.target {
            Target::Model(_) if self.agent.grants.is_empty() => Most::NOTHING,
            Target::Model(_) => Most::UNKNOWN,
            Target::Script(script) => {
                Most::of(replies(script).map(tool_calls).max().unwrap_or_default())
            }
            Target::Demo => Most::NOTHING,
        }
    }

    /// Attempts of one request that may cost something.
    fn attempts(&self) -> u64 {
        match &self.agent.target {
            Target::Model(_) if !self.is_metered => u64::from(self.agent.retries) + 1,
            Target::Model(_) | Target::Script(_) | Target::Demo => 1,
        }
    }

    /// The most that a request of this size uses, all its attempts together.
    fn request(&self, read: Most) -> Used {
        match &self.agent.target {
            Target::Model(_) => {
                let (window, output) = (self.window(), self.reply());
                let input = read.within(window);
                let total = (input + output).within(window);
                Used { input, output, total }.times(self.attempts())
            }
            Target::Script(script) => {
                let most = |of: fn(&Tokens) -> u64| {
                    Most::from(replies(script).map(|it| of(&it.usage)).max().unwrap_or_default())
                };
                Used {
                    input: most(|it| it.input.saturating_add(it.cached)),
                    output: most(|it| it.output),
                    total: most(|it| it.total()),
                }
            }
            Target::Demo => Used::exactly(DEMO_USAGE),
        }
    }

    /// The least that a request uses.
    fn least(&self) -> Tokens {
        match &self.agent.target {
            Target::Model(_) => {
                let input = (self.opening_least / BEST_TOKEN).max(1);
                let input = self.window().0.map_or(input, |window| input.min(window));
                Tokens { input, cached: 0, output: 1 }
            }
            // It echoes, which uses nothing.
            Target::Script(script) if script.replies.is_empty() => Tokens::default(),
            Target::Script(script) => {
                let least = |of: fn(&Tokens) -> u64| replies(script).map(|it| of(&it.usage)).min();
                Tokens {
                    input: least(|it| it.input.saturating_add(it.cached)).unwrap_or_default(),
                    cached: 0,
                    output: least(|it| it.output).unwrap_or_default(),
                }
            }
            Target::Demo => DEMO_USAGE,
        }
    }

    /// The most tokens of a reply.
    fn reply(&self) -> Most {
        let Target::Model(model) = &self.agent.target else { return Most::UNKNOWN };
        let usual = self.is_metered.then_some(USUAL_OUTPUT);
        Most(model.max_output_tokens.or(usual)).within(self.window())
    }

    /// The size of a reply to a request of this size.
    pub(super) fn said(&self, read: Most) -> Most {
        match &self.agent.target {
            Target::Model(_) => self.reply().times(READ_AGAIN),
            Target::Script(script) if script.replies.is_empty() => longest(script).or(read),
            Target::Script(script) => longest(script),
            Target::Demo => read + DEMO_REPLY,
        }
    }

    fn window(&self) -> Most {
        Most(self.model().and_then(|model| model.context_window))
    }

    /// The model behind it, if it is one.
    pub(super) fn model(&self) -> Option<&'a Model> {
        match &self.agent.target {
            Target::Model(model) => Some(model),
            Target::Script(_) | Target::Demo => None,
        }
    }

    /// Whether nothing bounds its replies, and whether nothing bounds what it reads.
    pub(super) fn is_unbounded(&self) -> (bool, bool) {
        let Some(model) = self.model() else { return (false, false) };
        let reads = model.context_window.is_none() && self.requests() > 1;
        (self.reply() == Most::UNKNOWN, reads)
    }

    fn price(&self) -> Option<Price> {
        self.model().map_or(Some(Price::FREE), |model| model.price)
    }

    fn dearest(&self, input: Most, output: Most) -> Option<Money> {
        Some(self.price()?.dearest(input.0?, output.0?))
    }

    fn cheapest(&self, tokens: Tokens) -> Money {
        self.price().map_or(Money(0), |price| price.cheapest(tokens.input, tokens.output))
    }

    /// The tokens of so many requests, exactly, if it follows a script: its replies come in order.
    pub(super) fn in_order(&self, requests: Range) -> Option<Take> {
        let Target::Script(script) = &self.agent.target else { return None };
        let span = |of: fn(&Tokens) -> u64| {
            let rules = || script.rules.iter().map(|rule| of(&rule.reply.usage));
            let sum = |requests, of_one: &dyn Fn(u64) -> u64| {
                in_turn(&script.replies, requests, |reply| of_one(of(&reply.usage)))
            };
            let least = |own| rules().fold(own, u64::min);
            let most = |own| rules().fold(own, u64::max);
            Span {
                min: sum(requests.min, &least).0.unwrap_or(u64::MAX),
                max: sum(requests.max, &most).0,
            }
        };
        let whole = Span { min: 0, max: None };
        Some(Take {
            calls: Range { min: 0, max: u64::MAX },
            requests: Range { min: 0, max: u64::MAX },
            started: whole,
            input: span(|it| it.input.saturating_add(it.cached)),
            output: span(|it| it.output),
            tokens: span(|it| it.total()),
            cost: Cost { min: Money(0), max: None },
        })
        .filter(|_| !script.replies.is_empty())
    }
}

/// The sum over the first replies; the last one repeats.
fn in_turn(replies: &[ScriptedReply], count: u64, of: impl Fn(&ScriptedReply) -> u64) -> Most {
    let first = replies.iter().zip(0..count).map(|(reply, _)| Most::from(of(reply))).sum::<Most>();
    let more = count.saturating_sub(replies.len() as u64);
    first + replies.last().map_or(Most::NOTHING, |last| Most::from(of(last)).times(more))
}

/// What requests use at most.
#[derive(Clone, Copy)]
struct Used {
    input: Most,
    output: Most,
    total: Most,
}

impl Used {
    fn exactly(tokens: Tokens) -> Used {
        let input = Most::from(tokens.input) + tokens.cached;
        Used { input, output: tokens.output.into(), total: tokens.total().into() }
    }

    fn and(self, other: Used) -> Used {
        Used {
            input: self.input + other.input,
            output: self.output + other.output,
            total: self.total + other.total,
        }
    }

    fn times(self, times: u64) -> Used {
        Used {
            input: self.input.times(times),
            output: self.output.times(times),
            total: self.total.times(times),
        }
    }
}

/// A text in which nothing can be taken for a frame: one more byte for six at most.
pub(super) fn escaped(text: Most) -> Most {
    text + Most(text.0.map(|it| it.div_ceil(6)))
}

fn replies(script: &Script) -> impl Iterator<Item = &ScriptedReply> {
    script.replies.iter().chain(script.rules.iter().map(|rule| &rule.reply))
}

fn tool_calls(reply: &ScriptedReply) -> usize {
    match &reply.says {
        Says::Tools { calls, .. } => calls.len(),
        Says::Text(_) | Says::Json(_) | Says::Error { .. } => 0,
    }
}

fn longest(script: &Script) -> Most {
    let size = |reply: &ScriptedReply| match &reply.says {
        Says::Text(text) | Says::Tools { text, .. } => text.len(),
        Says::Json(value) => value.to_string().len(),
        Says::Error { .. } => 0,
    };
    Most::of(replies(script).map(size).max().unwrap_or_default())
}
