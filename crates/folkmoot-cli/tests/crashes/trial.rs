//! One run that is killed, resumed, killed again, and then left to come to its end.

use std::{
    any::Any,
    collections::{BTreeMap, BTreeSet},
    process::Command,
};

use folkmoot_core::sim::Random;
use serde_json::Value;

use crate::bench::Bench;
use crate::{
    life::{Life, Moment},
    stored::{Stored, records},
    witness::{End, Whole, Witness},
};

/// How many processes were killed, and in which state of the run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Kills {
    pub(crate) all: usize,
    /// Before anything was recorded.
    pub(crate) early: usize,
    /// While they resumed what another kill had left.
    pub(crate) resuming: usize,
    /// With calls under way.
    pub(crate) asking: usize,
}

/// A run under fire.
pub(crate) struct Trial<'a> {
    pub(crate) seed: u64,
    pub(crate) whole: &'a Whole,
    pub(crate) random: Random,
    pub(crate) witness: Witness,
    pub(crate) bench: Bench,
    /// What was there when the last process had ended.
    pub(crate) log: Vec<Stored>,
    /// How often a request may have been sent, by name.
    permitted: BTreeMap<String, usize>,
    pub(crate) told: Vec<String>,
}

impl<'a> Trial<'a> {
    pub(crate) fn new(seed: u64, whole: &'a Whole) -> Trial<'a> {
        let witness = Witness::start();
        let bench = Bench::with_models(whole.team.file, &witness.stub);
        let permitted = whole.asked.iter().map(|id| (id.clone(), 1)).collect();
        let (random, log, told) = (Random::new(seed), Vec::new(), Vec::new());
        Trial { seed, whole, random, witness, bench, log, permitted, told }
    }

    /// Lives it to its end.
    pub(crate) fn live(&mut self) -> Kills {
        let wanted = 1 + self.random.below(3) as usize;
        let mut kills = Kills::default();
        while kills.all < wanted && self.is_unfinished() {
            let moment = Moment::random(&mut self.random, self.whole);
            let is_resuming = !self.log.is_empty();
            if self.process(moment) {
                kills.all += 1;
                kills.early += usize::from(self.log.is_empty());
                kills.resuming += usize::from(is_resuming);
                kills.asking += usize::from(!open(&self.log).is_empty());
            }
        }
        if self.is_unfinished() {
            self.process(Moment::AtEnd);
            assert!(!self.is_unfinished(), "it comes to its end");
        }
        self.judge();
        kills
    }

    fn is_unfinished(&self) -> bool {
        self.log.last().is_none_or(|last| last.event() != "ended")
    }

    /// Lets one process drive the run until a moment, and looks at what it leaves; whether it was
    /// killed.
    fn process(&mut self, until: Moment) -> bool {
        let asked_before = self.witness.asked().len();
        let mut life = Life::start(&mut self.command(), &self.witness, until);
        let is_killed = life.reaches(until) && life.kill();
        if !is_killed {
            assert_eq!(life.end(), Some(0), "it ends well");
        }
        let log = records(&self.bench);
        let what = if self.log.is_empty() { "run" } else { "resume" };
        let end = if is_killed { "killed" } else { "ended" };
        self.told.push(format!("{what} until {until:?}: {end} after record {}", log.len()));
        let before = std::mem::replace(&mut self.log, log);
        self.compare(&before, &life.shown, asked_before);
        if is_killed {
            self.permit_again();
        }
        is_killed
    }

    /// What goes on with the run.
    pub(crate) fn command(&self) -> Command {
        let run = ["run", "team.yaml", self.whole.team.task, "--output", "stream-json"];
        let resume = ["resume", "last", "--output", "stream-json"];
        let arguments: &[&str] = if self.log.is_empty() { &run } else { &resume };
        self.bench.folkmoot(arguments.iter().copied())
    }

    /// Nothing that was there is changed or gone, nothing was shown that is not there, and nothing was
    /// asked that had been answered.
    fn compare(&self, before: &[Stored], shown: &[Value], asked_before: usize) {
        assert!(self.log.starts_with(before), "the log of the last process is not kept");
        for record in shown.iter().filter(|line| line["type"] == "record") {
            let at = record["seq"].as_u64().expect("a record has a number") as usize;
            let stored = self.log.get(at - 1).map(|stored| &stored.json["event"]);
            assert_eq!(stored, Some(&record["event"]), "record {at} was shown and is not stored");
        }
        let answered = answered(before);
        for id in &self.witness.asked()[asked_before..] {
            assert!(!answered.contains(id), "{id} was answered and is asked again");
        }
    }

    /// What is not answered when a process dies may be asked once more.
    fn permit_again(&mut self) {
        let answered = answered(&self.log);
        for (id, times) in &mut self.permitted {
            *times += usize::from(!answered.contains(id));
        }
    }

    /// The run has come to where an undisturbed one comes, and each of its calls was paid for once, and
    /// once more for each attempt that was cut off.
    fn judge(&self) {
        let End { result, calls, usage } = End::of(&self.bench);
        assert_eq!(result, self.whole.end.result);
        assert_eq!(calls, self.whole.end.calls);
        self.bench.call(["verify", "last"]).must_be(0);
        self.bench.call(["replay", "last"]).must_be(0);
        assert_eq!(answered(&self.log), self.whole.asked, "what was answered");

        let mut times: BTreeMap<&str, usize> = BTreeMap::new();
        let asked = self.witness.asked();
        for id in &asked {
            *times.entry(id).or_default() += 1;
        }
        for (id, times) in &times {
            let most = self.permitted.get(*id).copied().unwrap_or_default();
            assert!(*times <= most, "{id} was asked {times} times, and may be {most} times");
        }
        let bills = self.bills();
        let repeated = asked.len() - times.len();
        assert!(
            repeated <= bills.len(),
            "{repeated} requests were repeated; {bills:?} were billed"
        );

        let whole = &self.whole.end.usage;
        let number = |usage: &Value, name: &str| usage["total"][name].as_u64().expect("a number");
        let cut_off: u64 = bills.iter().sum();
        assert_eq!(usage["calls"], whole["calls"]);
        assert_eq!(number(&usage, "prompt_tokens"), number(whole, "prompt_tokens") + cut_off);
        assert_eq!(number(&usage, "completion_tokens"), number(whole, "completion_tokens"));
        let is_estimated = usage["total"]["estimated"].as_bool().unwrap_or_default();
        assert_eq!(is_estimated, !bills.is_empty());
    }

    /// What each attempt is estimated to have used that a kill cut off: one for each call that was open
    /// when the run was resumed.
    fn bills(&self) -> Vec<u64> {
        let (mut due, mut bills) = (0, Vec::new());
        for (at, record) in self.log.iter().enumerate() {
            if record.event() == "resumed" {
                due += open(&self.log[..at]).len();
            } else if record.is_bill() {
                let usage = &record.json["usage"];
                assert_eq!(usage["estimated"], true, "{}", record.text);
                bills.push(usage["input"].as_u64().expect("the request was read"));
            }
        }
        assert_eq!(bills.len(), due, "a bill for each attempt that was cut off");
        bills
    }

    /// What happened, for whoever has to find out why it failed.
    pub(crate) fn story(&self, why: &dyn Any) -> String {
        let why = why.downcast_ref::<String>().map(String::as_str);
        let log: Vec<&str> = self.log.iter().map(|record| record.text.as_str()).collect();
        format!(
            "seed {}: {}\nagain: FOLKMOOT_SEED={} cargo test -p folkmoot --test crashes\n\
             task: {}\nprocesses:\n  {}\nasked: {:#?}\nlog:\n  {}",
            self.seed,
            why.unwrap_or("it panicked"),
            self.seed,
            self.whole.team.task,
            self.told.join("\n  "),
            self.witness.asked(),
            log.join("\n  "),
        )
    }
}

/// The calls without an answer.
pub(crate) fn open(log: &[Stored]) -> BTreeSet<&str> {
    let mut open = BTreeSet::new();
    for record in log {
        match record.event() {
            "asked" => drop(open.insert(record.key())),
            "withdrawn" => drop(open.remove(record.key())),
            "answered" if !record.is_bill() => drop(open.remove(record.key())),
            _ => {}
        }
    }
    open
}

/// The names of the requests whose answers, or faults, are stored.
fn answered(log: &[Stored]) -> BTreeSet<String> {
    let answers = log.iter().filter(|it| it.event() == "answered" && !it.is_bill());
    let texts =
        answers.map(|it| it.json["answer"]["text"].as_str().or(it.json["fault"]["text"].as_str()));
    let name = |text: Option<&str>| {
        let text = text.expect("an answer or fault has a text");
        let at = text.find('#').unwrap_or_else(|| panic!("{text:?} does not name its request"));
        text[at..].chars().take(17).collect()
    };
    texts.map(name).collect()
}
