//! What one turn of an agent can take, and how long its reply can be.
//!
//! All that multiplies inside a turn stands here: the requests that its tools need, and those to the
//! later targets of its chain. What one request takes, with its attempts, is the target's matter.

use super::{
    asked::{Asked, Used},
    forecast::Forecast,
    most::Most,
    take::{Cost, Range, Span, Take},
};
use crate::{
    call::{Tokens, Tool},
    limits::Limits,
    money::Money,
    programs::graph,
    render::{self, FRAME},
    spec::Spec,
    team::{Agent, Fallback, Nested, ScriptedReply, Target},
    tools,
    words::Language,
};

/// What the frame of a quote takes besides names, in bytes; also a line on who said nothing.
const QUOTE_FRAME: u64 = 128;

/// One agent, as far as bounds go. Sizes of texts are in bytes, the most tokens they can be read as.
pub(super) struct Member<'a> {
    pub(super) agent: &'a Agent,
    /// Its targets, in order; one at least.
    pub(super) chain: Vec<Asked<'a>>,
    /// What a turn takes, if a team answers for it.
    inner: Option<Inner>,
    /// How many of them are the economy's, at the end of the chain.
    economy: usize,
    /// What it is asked first: the frames, the system message and the task.
    pub(super) opening: Most,
    /// The same at least.
    opening_least: u64,
}

/// A turn of a whole team.
#[derive(Clone, Copy)]
struct Inner {
    take: Take,
    /// The longest chain of calls of which each waits for the one before.
    path: u64,
}

impl Inner {
    /// The least is what its team takes if nothing fails, the most what its limits leave of that. No
    /// script is followed through: its later turns go on where this one ends.
    fn of(nested: &Nested, around: &Limits) -> Inner {
        let Spec { team, collaboration, limits, .. } = &nested.spec;
        // Whatever else is under way around it may let its calls come one by one.
        let limits = Limits { time: None, concurrency: Some(1), ..limits.within(around) };
        let forecast = Forecast::of(collaboration, team, &limits, None);
        let total = forecast.total();
        let within = |it: Span, most| Span { max: Most(it.max).within(Most(most)).0, ..it };
        let started = within(total.started, limits.calls);
        let requests = total.requests.max.min(started.max.unwrap_or(u64::MAX));
        let take = Take {
            calls: Range { min: 1, max: 1 },
            requests: Range { max: requests, ..total.requests },
            started,
            input: within(total.input, limits.tokens),
            output: within(total.output, limits.tokens),
            tokens: within(total.tokens, limits.tokens),
            cost: Cost { max: total.cost.max.into_iter().chain(limits.cost).min(), ..total.cost },
        };
        Inner { take, path: forecast.path.max(1) }
    }
}

/// A turn whose first request is known.
pub(super) struct Turn {
    pub(super) take: Take,
    /// The size of the reply.
    pub(super) said: Most,
    /// The size of the conversation when it is over.
    pub(super) kept: Most,
}

/// The size of the tools that an agent is offered, in whichever language they take more.
fn longest(tools: impl Fn(Language) -> Vec<Tool>) -> usize {
    let sizes = [Language::English, Language::Chinese].map(|it| render::offered(&tools(it)));
    sizes[0].max(sizes[1]) as usize
}

impl<'a> Member<'a> {
    /// An agent of a run with these limits that works on `task`, if that is known.
    pub(super) fn new(agent: &'a Agent, limits: &Limits, task: Option<&str>) -> Member<'a> {
        let is_metered = limits.is_metered() || agent.limits.is_metered();
        let prompt = agent.prompt.as_deref().map_or(0, |it| it.trim_end().len());
        let identity = [Language::English, Language::Chinese]
            .map(|it| it.identity(&agent.name, !agent.grants.is_empty()));
        let [shorter, longer] = {
            let [one, other] = identity.map(|it| it.len());
            [one.min(other), one.max(other)]
        };
        let offered = longest(|language| tools::offered_to(agent, language));
        let system = Most::of(prompt + "\n\n".len() + longer + offered);
        // What its servers have is not known before they are asked.
        let system = if agent.servers.is_empty() { system } else { Most::UNKNOWN };
        let read = task.map_or(Most::UNKNOWN, |task| Most::of(task.len()));
        let least = prompt + shorter + task.map_or(0, str::len);
        let later = agent.fallbacks.iter().chain(&agent.economy).map(|fallback| &fallback.target);
        let targets = [&agent.target].into_iter().chain(later);
        Member {
            agent,
            // Under a limit of tokens or money a call is one attempt that may cost something, and its
            // reply is bounded.
            chain: targets.map(|target| Asked::new(agent, target, is_metered)).collect(),
            inner: agent.team().map(|nested| Inner::of(nested, &agent.limits)),
            economy: agent.economy.len(),
            opening: system + read + 2 * FRAME,
            opening_least: least as u64,
        }
    }

    /// Lets it hand out work with tools, of which none is a call of its own.
    pub(super) fn lead(&mut self) {
        if self.chain.iter().all(|target| target.leads) {
            return;
        }
        self.opening += Most::of(longest(graph::tools));
        self.chain.iter_mut().for_each(|target| target.leads = true);
    }

    /// A turn that begins with a request of this size.
    pub(super) fn turn(&self, read: Most) -> Turn {
        self.turn_priced(read, read)
    }

    /// The same where more may be [read](Member::reading), up to `longest` in all: what a token costs
    /// depends on the size of its request.
    pub(super) fn turn_priced(&self, read: Most, longest: Most) -> Turn {
        self.turn_and_more(read, longest, 0)
    }

    /// The same, at whose end it is asked as often again, whatever tools it wants then.
    pub(super) fn turn_and_more(&self, read: Most, longest: Most, more: u64) -> Turn {
        if let Some(Inner { take, .. }) = self.inner {
            return Turn { take, said: Most::UNKNOWN, kept: Most::UNKNOWN };
        }
        let used = self.steps() - 1;
        let steps = used + 1 + more;
        // Whoever answered is asked on; each other target was asked once more and failed, and the
        // economy's first is asked in place of another.
        let (usual, saving) = ((self.chain.len() - self.economy) as u64, self.economy as u64);
        let requests = match steps {
            1 => usual.max(saving),
            steps => steps + (usual - 1) + saving.saturating_sub(1),
        };
        let later = |it: &Asked| Most(it.window().0.filter(|_| steps > 1));
        // Behind what tools gave back, a target may be asked first late in the turn.
        let is_asked_late = steps > 1 && self.chain.len() > 1;
        let first = |it: &Asked| {
            if is_asked_late { it.request(later(it), later(it)) } else { it.request(read, longest) }
        };
        let all = |of: &[Asked]| of.iter().map(first).fold(Used::NOTHING, Used::and);
        let (usual, saving) = self.chain.split_at(self.chain.len() - self.economy);
        let firsts = match steps {
            1 => all(usual).or(all(saving)),
            _ => all(usual).and(all(saving)),
        };
        let further = self.chain.iter().map(|it| it.request(later(it), later(it)));
        let further = further.reduce(Used::or).unwrap_or(Used::NOTHING).times(steps - 1);
        let most = firsts.and(further);
        let tools = self.chain.iter().map(Asked::tools).fold(Most::NOTHING, Most::or);
        let span = |least: u64, most: Most| Span { min: least, max: most.0 };
        // Where nothing fails, the first target answers.
        let least = self.chain[0].least(self.opening_least);
        let cheapest = self.chain[0].cheapest().map_or(Money(0), |rates| rates.of(least));
        let take = Take {
            calls: Range { min: 1, max: 1 },
            requests: Range { min: 1, max: requests },
            started: span(1, tools.times(used) + requests + self.agent.servers.len() as u64),
            input: span(least.read(), most.input),
            output: span(least.output, most.output),
            tokens: span(least.total(), most.total),
            cost: Cost { min: cheapest, max: most.cost.0.map(Money) },
        };
        let said = self.said(read);
        let kept = if steps > 1 { Most::UNKNOWN } else { read + said + FRAME };
        Turn { take, said, kept }
    }

    /// The longest chain of calls in a turn, of which each waits for the one before.
    pub(super) fn path(&self) -> u64 {
        self.inner.map_or(1, |inner| inner.path)
    }

    /// What it takes to read so much more in one request, whoever of the chain is asked.
    pub(super) fn reading(&self, more: Most) -> Take {
        let all = self.chain.iter().map(|it| it.reading(more));
        let Used { input, total, cost, .. } = all.fold(Used::NOTHING, Used::and);
        let span = |most: Most| Span { min: 0, max: most.0 };
        Take {
            input: span(input),
            tokens: span(total),
            cost: Cost { min: Money(0), max: cost.0.map(Money) },
            ..Take::NOTHING
        }
    }

    /// The size of a reply to a request of this size.
    pub(super) fn said(&self, read: Most) -> Most {
        self.chain.iter().map(|it| it.said(read)).fold(Most::NOTHING, Most::or)
    }

    /// Whether its replies are as long as what it is shown.
    pub(super) fn repeats(&self) -> bool {
        let repeats = |it: &Asked| it.model().is_none() && it.said(Most::UNKNOWN) == Most::UNKNOWN;
        self.chain.iter().any(repeats)
    }

    /// Whether it may ask for tools.
    pub(super) fn has_tools(&self) -> bool {
        self.chain.iter().any(Asked::has_tools)
    }

    /// Answers of a turn at most, those that ask for tools among them.
    fn steps(&self) -> u64 {
        if self.has_tools() { u64::from(self.agent.max_steps.max(1)) } else { 1 }
    }

    /// The size of a quote of it.
    pub(super) fn quote(&self, said: Most) -> Most {
        let (name, id) = (self.agent.name.len() as u64, self.agent.id.as_str().len() as u64);
        escaped(said) + (QUOTE_FRAME + 8 * name + 3 * id)
    }

    /// The tokens of so many requests, exactly, if it follows a script: its replies come in order, each
    /// after as many attempts as a rehearsal may make.
    pub(super) fn in_order(&self, requests: Range) -> Option<Take> {
        let Target::Script(script) = &self.agent.target else { return None };
        // Under another label the script goes on as it is.
        let goes_on = |it: &Fallback| match &it.target {
            Target::Script(it) => it.replies == script.replies && it.rules == script.rules,
            Target::Model(_)
            | Target::Demo
            | Target::Cli(_)
            | Target::Acp(_)
            | Target::A2a(_)
            | Target::Team(_) => false,
        };
        if !self.agent.fallbacks.is_empty() || !self.agent.economy.iter().all(goes_on) {
            return None;
        }
        let attempts = self.chain.iter().map(Asked::attempts).max().unwrap_or(1);
        let span = |of: fn(&Tokens) -> u64| {
            let rules = || script.rules.iter().map(|rule| of(&rule.reply.usage));
            let sum = |requests, of_one: &dyn Fn(u64) -> u64| {
                in_turn(&script.replies, requests, |reply| of_one(of(&reply.usage)))
            };
            let least = |own| rules().fold(own, u64::min);
            let most = |own| rules().fold(own, u64::max);
            Span {
                min: sum(requests.min, &least).0.unwrap_or(u64::MAX),
                max: sum(requests.max, &most).times(attempts).0,
            }
        };
        let whole = Span { min: 0, max: None };
        Some(Take {
            calls: Range { min: 0, max: u64::MAX },
            requests: Range { min: 0, max: u64::MAX },
            started: whole,
            input: span(|it| it.read()),
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

/// A text in which nothing can be taken for a frame: one more byte for six at most.
pub(super) fn escaped(text: Most) -> Most {
    text + Most(text.0.map(|it| it.div_ceil(6)))
}
