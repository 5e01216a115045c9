//! What one request to one target of an agent can take.

use super::most::Most;
use crate::{
    call::Tokens,
    limits::USUAL_OUTPUT,
    money::{Price, Rates},
    programs::roles::review::asks,
    team::{Agent, DEMO_USAGE, Model, Says, Script, ScriptedReply, Target},
};

/// How many tokens any model reads, at most, where another wrote one. A token of a text is on average
/// four bytes or less, and no tokenizer makes more tokens than bytes.
pub(super) const READ_AGAIN: u64 = 4;

/// How many bytes of a prompt a token holds at best.
const BEST_TOKEN: u64 = 16;

/// How much longer than what the demo was asked its reply can be, in bytes.
const DEMO_REPLY: u64 = 2048;

/// One target of an agent's chain.
pub(super) struct Asked<'a> {
    agent: &'a Agent,
    target: &'a Target,
    /// Whether a call is one attempt that may cost something, and its reply is bounded.
    is_metered: bool,
    /// Whether it hands out work with tools, of which none is a call of its own.
    pub(super) leads: bool,
}

impl<'a> Asked<'a> {
    pub(super) fn new(agent: &'a Agent, target: &'a Target, is_metered: bool) -> Asked<'a> {
        Asked { agent, target, is_metered, leads: false }
    }

    /// Whether it may ask for tools, or for the word of a person, so that a turn may take as many requests as the agent may. A
    /// model that has no tools asks for none.
    pub(super) fn has_tools(&self) -> bool {
        match self.target {
            Target::Model(_) | Target::Script(_) if self.leads => true,
            Target::Model(_) => !self.agent.grants.is_empty(),
            Target::Script(script) => replies(script).any(|it| tool_calls(it) > 0),
            // They use tools of their own.
            Target::Demo | Target::Cli(_) | Target::Acp(_) | Target::Team(_) => false,
            Target::A2a(_) => true,
        }
    }

    /// Tool calls of one reply at most.
    pub(super) fn tools(&self) -> Most {
        match self.target {
            Target::Model(_) | Target::Script(_) if self.leads => Most::NOTHING,
            Target::Model(_) if self.agent.grants.is_empty() => Most::NOTHING,
            Target::Model(_) => Most::UNKNOWN,
            Target::Script(script) => {
                Most::of(replies(script).map(tool_calls).max().unwrap_or_default())
            }
            Target::Demo | Target::Cli(_) | Target::Acp(_) | Target::A2a(_) | Target::Team(_) => {
                Most::NOTHING
            }
        }
    }

    /// Whether it may say that a person has to answer something first.
    pub(super) fn may_ask(&self) -> bool {
        match self.target {
            Target::Model(_)
            | Target::Demo
            | Target::Cli(_)
            | Target::Acp(_)
            | Target::A2a(_)
            | Target::Team(_) => true,
            Target::Script(script) => {
                let mut says = replies(script).filter_map(|it| it.outcome().ok());
                script.replies.is_empty() || says.any(|it| asks(&it))
            }
        }
    }

    /// Attempts of one request that may cost something. Scripts and the demo count too: in a rehearsal
    /// with faults they are tried again, as what they stand in for.
    pub(super) fn attempts(&self) -> u64 {
        if self.is_metered { 1 } else { u64::from(self.agent.retries) + 1 }
    }

    /// The most that a request of this size uses, all its attempts together; what its tokens cost is
    /// reckoned as in one of the size `priced_as`, which is no smaller.
    pub(super) fn request(&self, read: Most, priced_as: Most) -> Used {
        match self.target {
            Target::Model(_) => {
                let (window, output) = (self.window(), self.reply());
                let input = read.within(window);
                let total = (input + output).within(window);
                let cost = self.cost(priced_as, input, output);
                Used { input, output, total, cost }.times(self.attempts())
            }
            Target::Script(script) => {
                let most = |of: fn(&Tokens) -> u64| {
                    Most::from(replies(script).map(|it| of(&it.usage)).max().unwrap_or_default())
                };
                Used {
                    input: most(|it| it.read()),
                    output: most(|it| it.output),
                    total: most(|it| it.total()),
                    cost: Most::NOTHING,
                }
                .times(self.attempts())
            }
            Target::Demo => Used::exactly(DEMO_USAGE).times(self.attempts()),
            Target::Cli(_) | Target::Acp(_) | Target::A2a(_) => Used::UNKNOWN,
            // Its own calls are asked, not it.
            Target::Team(_) => Used::NOTHING,
        }
    }

    /// What it takes at most to read so much more in one request.
    pub(super) fn reading(&self, more: Most) -> Used {
        let Target::Model(_) = self.target else { return Used::NOTHING };
        let cost = self.cost(Most::UNKNOWN, more, Most::NOTHING);
        Used { input: more, output: Most::NOTHING, total: more, cost }.times(self.attempts())
    }

    /// The least that a request uses whose instructions and task have so many bytes.
    pub(super) fn least(&self, opening: u64) -> Tokens {
        match self.target {
            Target::Model(_) => {
                let input = (opening / BEST_TOKEN).max(1);
                let input = self.window().0.map_or(input, |window| input.min(window));
                Tokens { input, output: 1, ..Tokens::default() }
            }
            // It echoes, which uses nothing.
            Target::Script(script) if script.replies.is_empty() => Tokens::default(),
            Target::Script(script) => {
                let least = |of: fn(&Tokens) -> u64| replies(script).map(|it| of(&it.usage)).min();
                Tokens {
                    input: least(|it| it.read()).unwrap_or_default(),
                    output: least(|it| it.output).unwrap_or_default(),
                    ..Tokens::default()
                }
            }
            Target::Demo => DEMO_USAGE,
            // What it reads and writes is its own business.
            Target::Cli(_) | Target::Acp(_) | Target::A2a(_) | Target::Team(_) => Tokens::default(),
        }
    }

    /// The most tokens of a reply.
    pub(super) fn reply(&self) -> Most {
        let Target::Model(model) = self.target else { return Most::UNKNOWN };
        let usual = self.is_metered.then_some(USUAL_OUTPUT);
        Most(model.max_output_tokens.or(usual)).within(self.window())
    }

    /// The size of a reply to a request of this size.
    pub(super) fn said(&self, read: Most) -> Most {
        match self.target {
            Target::Model(_) => self.reply().times(READ_AGAIN),
            Target::Script(script) if script.replies.is_empty() => longest(script).or(read),
            Target::Script(script) => longest(script),
            Target::Demo => read + DEMO_REPLY,
            Target::Cli(_) | Target::Acp(_) | Target::A2a(_) | Target::Team(_) => Most::UNKNOWN,
        }
    }

    pub(super) fn window(&self) -> Most {
        Most(self.model().and_then(|model| model.context_window))
    }

    /// The model, if it is one.
    pub(super) fn model(&self) -> Option<&'a Model> {
        match self.target {
            Target::Model(model) => Some(model),
            Target::Script(_)
            | Target::Demo
            | Target::Cli(_)
            | Target::Acp(_)
            | Target::A2a(_)
            | Target::Team(_) => None,
        }
    }

    /// Whether nothing bounds its replies, and whether nothing bounds what it reads.
    pub(super) fn is_unbounded(&self) -> (bool, bool) {
        let Some(model) = self.model() else { return (false, false) };
        let reads = model.context_window.is_none() && self.has_tools() && self.agent.max_steps > 1;
        (self.reply() == Most::UNKNOWN, reads)
    }

    /// What a token costs at least.
    pub(super) fn cheapest(&self) -> Option<Rates> {
        self.price().map(|price| price.cheapest())
    }

    fn price(&self) -> Option<Price> {
        self.model().map_or_else(|| Some(Price::free()), |model| model.price.clone())
    }

    /// What so many tokens cost at most in a request of this size or less.
    fn cost(&self, size: Most, input: Most, output: Most) -> Most {
        let longest = size.within(self.window()).0.unwrap_or(u64::MAX);
        let cost = || {
            let rates = self.price()?.dearest(longest);
            let tokens = Tokens { input: input.0?, output: output.0?, ..Tokens::default() };
            Some(rates.of(tokens).0)
        };
        Most(cost())
    }
}

/// What requests use at most.
#[derive(Clone, Copy)]
pub(super) struct Used {
    pub(super) input: Most,
    pub(super) output: Most,
    pub(super) total: Most,
    /// As [`Money`](crate::money::Money) counts it.
    pub(super) cost: Most,
}

impl Used {
    /// Nothing at all.
    pub(super) const NOTHING: Used = Used {
        input: Most::NOTHING,
        output: Most::NOTHING,
        total: Most::NOTHING,
        cost: Most::NOTHING,
    };

    /// Nobody can tell beforehand.
    const UNKNOWN: Used = Used {
        input: Most::UNKNOWN,
        output: Most::UNKNOWN,
        total: Most::UNKNOWN,
        cost: Most::UNKNOWN,
    };

    fn exactly(tokens: Tokens) -> Used {
        let (input, output) = (tokens.read().into(), tokens.output.into());
        Used { input, output, total: tokens.total().into(), cost: Most::NOTHING }
    }

    pub(super) fn and(self, other: Used) -> Used {
        Used {
            input: self.input + other.input,
            output: self.output + other.output,
            total: self.total + other.total,
            cost: self.cost + other.cost,
        }
    }

    /// What bounds this and the other, whichever it turns out to be.
    pub(super) fn or(self, other: Used) -> Used {
        Used {
            input: self.input.or(other.input),
            output: self.output.or(other.output),
            total: self.total.or(other.total),
            cost: self.cost.or(other.cost),
        }
    }

    pub(super) fn times(self, times: u64) -> Used {
        Used {
            input: self.input.times(times),
            output: self.output.times(times),
            total: self.total.times(times),
            cost: self.cost.times(times),
        }
    }
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
        Says::Text(text) => text.len(),
        Says::Tools { calls, text } => {
            let calls = calls.iter().map(|it| it.name.len() + it.arguments.to_string().len());
            text.len() + calls.sum::<usize>()
        }
        Says::Json(value) => value.to_string().len(),
        Says::Error { .. } => 0,
    };
    Most::of(replies(script).map(size).max().unwrap_or_default())
}
