//! No interleaving of calls overspends at any level of the tree.

use proptest::{collection::vec, option::weighted, prelude::*};

use super::*;
use crate::{
    call::{Call, Prompt},
    money::Price,
    sim::Random,
    team::FIRST_TARGET,
    time::Time,
};

const CALLS: usize = 64;
const AGENTS: usize = 5;
const SCOPES: usize = 3;

/// More than any call sets aside.
const LARGEST: u64 = 3000 + USUAL_OUTPUT;

/// A call that wants to start, and what comes of it.
#[derive(Clone, Debug)]
struct Plan {
    agent: usize,
    /// The part of the run it belongs to; parts nest, so it counts against those before it too.
    scope: usize,
    worst: WorstCase,
    /// How much it uses of what was set aside, in hundredths.
    share: u64,
    /// When it is given a turn: the lowest go first.
    turn: u64,
}

fn limits() -> impl Strategy<Value = Limits> {
    (
        weighted(0.3, 0..40_u64),
        weighted(0.5, prop_oneof![Just(0), Just(1), 0..60_000_u64]),
        weighted(0.5, prop_oneof![Just(0), 0..200_000_u64]),
        weighted(0.3, 0..9_u64),
        weighted(0.3, prop_oneof![Just(0), Just(1), 0..30_000_u64]),
    )
        .prop_map(|(calls, tokens, cost, concurrency, soft_tokens)| Limits {
            calls,
            tokens,
            soft_tokens,
            cost: cost.map(|cost| Money(cost * 1_000_000)),
            time: None,
            concurrency,
        })
}

fn plan() -> impl Strategy<Value = Plan> {
    let rates = Price::new(1.0, 4.0).dearest(u64::MAX);
    let worst = (0..3000_u64, weighted(0.7, 0..2000_u64), any::<bool>(), any::<bool>());
    let worst = worst.prop_map(move |(input, output, can_shrink, is_priced)| WorstCase {
        input,
        output,
        can_shrink,
        rates: is_priced.then_some(rates),
    });
    (0..AGENTS, 0..=SCOPES, worst, 0..=100_u64, any::<u64>())
        .prop_map(|(agent, scope, worst, share, turn)| Plan { agent, scope, worst, share, turn })
}

/// The books of a run and what is under way in it.
struct Books {
    ledger: Ledger,
    /// Of the run, its parts and its agents.
    limits: (Limits, Vec<Limits>, Vec<Limits>),
    open: Vec<(Plan, Entry)>,
}

impl Books {
    fn scopes(plan: &Plan) -> Vec<Key> {
        (0..plan.scope).map(|scope| Key::parse(&scope.to_string())).collect()
    }

    fn agent(of: usize) -> AgentId {
        AgentId(of.to_string().into())
    }

    fn levels(&self, plan: &Plan) -> Vec<Level<'_>> {
        let (run, scopes, agents) = &self.limits;
        let run = Level { owner: Owner::Run, limits: run, spent: self.ledger.run };
        let scopes = Books::scopes(plan).into_iter().zip(scopes).map(|(key, limits)| Level {
            owner: Owner::Scope,
            limits,
            spent: self.ledger.scopes.get(&key).copied().unwrap_or_default(),
        });
        let spent = self.ledger.agents.get(&Books::agent(plan.agent)).copied().unwrap_or_default();
        let agent = Level { owner: Owner::Agent, limits: &agents[plan.agent], spent };
        [run].into_iter().chain(scopes).chain([agent]).collect()
    }

    fn start(&mut self, plan: Plan, reserved: Option<Reservation>) {
        let entry = Entry {
            call: Call::Agent {
                agent: Books::agent(plan.agent),
                target: FIRST_TARGET,
                prompt: Prompt::default(),
            },
            reserved,
            scopes: Books::scopes(&plan),
            outcome: None,
            refused: false,
            inherited: false,
            withdrawn: false,
            attempt: 1,
            nth: 1,
            asked: 1,
            settled: 0,
            asked_at: Time::default(),
            settled_at: Time::default(),
            expires: None,
            usages: vec![Usage::default()],
        };
        self.ledger.start(&entry);
        self.open.push((plan, entry));
    }

    /// Settles one of the calls under way with no more than was set aside for it.
    fn settle(&mut self, at: usize) {
        let (plan, entry) = self.open.swap_remove(at % self.open.len());
        let aside = entry.reserved.unwrap_or_default().tokens;
        let part = |of: u64| of * plan.share / 100;
        let tokens =
            Tokens { cached: part(aside.input), output: part(aside.output), ..Tokens::default() };
        let cost = plan.worst.rates.map(|rates| rates.of(tokens));
        self.ledger.bill(&entry, Usage::default(), Usage { tokens, cost, estimated: false });
        self.ledger.settle(&entry);
    }

    fn check(&self) {
        let (run, scopes, agents) = &self.limits;
        check(run, &self.ledger.run);
        for (scope, limits) in scopes.iter().enumerate() {
            let spent = self.ledger.scopes.get(scope.to_string().as_str());
            check(limits, &spent.copied().unwrap_or_default());
        }
        for (agent, limits) in agents.iter().enumerate() {
            let spent = self.ledger.agents.get(&Books::agent(agent));
            check(limits, &spent.copied().unwrap_or_default());
        }
    }
}

fn check(limits: &Limits, spent: &Spent) {
    assert!(limits.calls.is_none_or(|most| spent.calls <= most));
    assert!(limits.concurrency.unwrap_or(CONCURRENCY) >= spent.open);
    let taken = spent.tokens.total() + spent.reserved.total();
    assert!(limits.tokens.is_none_or(|most| taken <= most), "{taken} of {:?}", limits.tokens);
    // One call may take more than is left, two never.
    let one = limits.soft_tokens.map_or(0, |most| most + LARGEST);
    assert!(limits.soft_tokens.is_none_or(|_| taken == 0 || taken < one), "{taken} of {one}");
    let taken = spent.cost + spent.reserved_cost;
    assert!(limits.cost.is_none_or(|most| taken <= most), "{taken} of {:?}", limits.cost);
}

proptest! {
    #[test]
    fn parallel_calls_overspend_nowhere_and_none_waits_in_vain(
        run in limits(),
        scopes in vec(limits(), SCOPES),
        agents in vec(limits(), AGENTS),
        mut waiting in vec(plan(), CALLS),
        order in vec(any::<usize>(), CALLS),
    ) {
        let mut books = Books { ledger: Ledger::default(), limits: (run, scopes, agents), open: Vec::new() };
        waiting.sort_by_key(|plan| plan.turn);
        let mut order = order.into_iter().cycle();
        while !waiting.is_empty() || !books.open.is_empty() {
            let mut later = Vec::new();
            for plan in waiting {
                match admit(&books.levels(&plan), || plan.worst) {
                    Admission::Granted(reserved) => books.start(plan, reserved),
                    Admission::Later(_) => later.push(plan),
                    Admission::Refused(fault) => prop_assert_eq!(fault.to_string(), "budget exhausted"),
                    Admission::Diverged => prop_assert!(false, "there is no program"),
                }
                books.check();
            }
            prop_assert!(later.is_empty() || !books.open.is_empty(), "waits for nothing");
            if !books.open.is_empty() {
                books.settle(order.next().expect("it goes round"));
                books.check();
            }
            waiting = later;
        }
        let spent = books.ledger.run;
        prop_assert_eq!((spent.open, spent.reserved, spent.reserved_cost), (0, Tokens::default(), Money(0)));
        let agents = books.ledger.agents.values();
        prop_assert_eq!(spent.tokens.total(), agents.map(|it| it.tokens.total()).sum::<u64>());
    }
}

/// Calls that come one after the other under a soft limit of tokens, until one is refused; gives what
/// each used, and whether the sum was inside.
fn consume(total: u64, uses: impl IntoIterator<Item = u64>) -> Vec<(u64, bool)> {
    let limits = Limits { soft_tokens: Some(total), ..Limits::default() };
    let mut spent = Spent::default();
    let mut consumed = Vec::new();
    for uses in uses {
        let worst = WorstCase { input: uses, output: Some(0), can_shrink: false, rates: None };
        let level = Level { owner: Owner::Scope, limits: &limits, spent };
        match admit(&[level], || worst) {
            Admission::Granted(aside) => {
                assert_eq!(aside.map(|it| it.tokens.total()), Some(uses));
                spent.tokens.input += uses;
                consumed.push((uses, spent.tokens.total() <= total));
            }
            Admission::Refused(fault) => {
                assert!(spent.tokens.total() >= total, "only a rest of nothing refuses");
                let (limit, of) = (Limit::Tokens, Owner::Scope);
                assert_eq!(fault, Fault::OverBudget { limit, of });
                break;
            }
            Admission::Later(_) | Admission::Diverged => panic!("nothing else is under way"),
        }
    }
    consumed
}

#[test]
fn equal_to_a_soft_limit_is_inside_and_one_more_is_outside() {
    assert_eq!(consume(150, [150, 1]), [(150, true)]);
    assert_eq!(consume(150, [151, 1]), [(151, false)]);
    assert_eq!(consume(150, [149, 500, 1]), [(149, true), (500, false)]);
    assert_eq!(consume(0, [0]), []);
}

#[test]
fn a_million_calls_in_a_hundred_thousand_orders_pass_a_soft_limit_by_one_call_at_the_most() {
    let mut random = Random::new(8);
    for _ in 0..100_000 {
        let total = random.below(1000);
        let uses: Vec<u64> = (0..10).map(|_| random.below(400)).collect();
        let consumed = consume(total, uses);
        let outside = consumed.iter().filter(|(_, is_inside)| !is_inside).count();
        assert!(outside <= 1 && consumed.iter().rev().skip(1).all(|(_, is_inside)| *is_inside));
    }
}
