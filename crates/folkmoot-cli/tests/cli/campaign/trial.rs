//! One run that is killed, resumed, killed again, and then left to come to its end.

use std::{
    any::Any,
    collections::{BTreeMap, BTreeSet},
    io::{BufRead, BufReader},
    process::{Child, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    thread,
    time::{Duration, Instant},
};

use folkmoot_core::sim::Random;
use serde_json::Value;

use super::{
    stored::{Stored, records},
    witness::{End, Whole, Witness},
};
use crate::bench::Bench;

/// A time after which a process hangs.
const PATIENCE: Duration = Duration::from_mins(2);

/// What is seen of a process from outside.
#[derive(Debug)]
pub(super) enum Sign {
    /// It asked a model.
    Asked,
    /// It showed this line on standard output.
    Line(String),
    /// It closed standard output.
    Over,
}

/// When a process is killed.
#[derive(Clone, Copy, Debug)]
enum Instants {
    /// So many microseconds after its start.
    After(u64),
    /// At its request of this number, from 1.
    AtRequest(usize),
    /// At that request, of which half a reply has come.
    AtHalfReply(usize),
    /// When it shows the record of this number, from 1.
    AtRecord(usize),
    /// Not at all.
    Never,
}

/// A run under fire.
pub(super) struct Trial<'a> {
    seed: u64,
    whole: &'a Whole,
    random: Random,
    witness: Witness,
    bench: Bench,
    /// What was there after the last kill.
    log: Vec<Stored>,
    /// How often a request may have been sent, by name.
    permitted: BTreeMap<String, usize>,
    told: Vec<String>,
}

impl<'a> Trial<'a> {
    pub(super) fn new(seed: u64, whole: &'a Whole) -> Trial<'a> {
        let witness = Witness::start();
        let bench = Bench::with_models(whole.team.file, &witness.stub);
        let permitted = whole.asked.iter().map(|id| (id.clone(), 1)).collect();
        let (random, log, told) = (Random::new(seed), Vec::new(), Vec::new());
        Trial { seed, whole, random, witness, bench, log, permitted, told }
    }

    /// Lives it to its end; gives how many processes were killed.
    pub(super) fn live(&mut self) -> usize {
        let wanted = 1 + self.random.below(3) as usize;
        let mut kills = 0;
        while kills < wanted && self.is_unfinished() {
            let when = self.instant();
            kills += usize::from(self.process(when));
        }
        if self.is_unfinished() {
            assert!(!self.process(Instants::Never), "it comes to its end");
        }
        self.judge();
        kills
    }

    fn is_unfinished(&self) -> bool {
        self.log.last().is_none_or(|last| last.event() != "ended")
    }

    fn instant(&mut self) -> Instants {
        let requests = self.whole.asked.len() as u64;
        match self.random.below(5) {
            0 | 1 => Instants::After(self.random.below(self.whole.micros)),
            2 => Instants::AtRequest(1 + self.random.below(requests) as usize),
            3 => Instants::AtHalfReply(1 + self.random.below(requests) as usize),
            _ => Instants::AtRecord(1 + self.random.below(self.whole.records as u64) as usize),
        }
    }

    /// Lets one process drive the run, and looks at what it leaves; whether it was killed.
    fn process(&mut self, when: Instants) -> bool {
        let (tell, signs) = channel();
        let half = match when {
            Instants::AtHalfReply(number) => Some(number - 1),
            Instants::After(_)
            | Instants::AtRequest(_)
            | Instants::AtRecord(_)
            | Instants::Never => None,
        };
        self.witness.attend(tell.clone(), half);
        let asked_before = self.witness.asked().len();
        let mut child = self.start(tell);
        let (died, shown) = watch(&mut child, &signs, when);
        let what = if self.log.is_empty() { "run" } else { "resume" };
        let log = records(&self.bench);
        self.told.push(format!("{what} {when:?}: killed {died}, {} records", log.len()));
        self.compare(&log, &shown, asked_before);
        if died {
            self.permit_again(&log);
        }
        self.log = log;
        died
    }

    fn start(&self, tell: Sender<Sign>) -> Child {
        let run = ["run", "team.yaml", self.whole.team.task, "--output", "stream-json"];
        let resume = ["resume", "last", "--output", "stream-json"];
        let arguments: &[&str] = if self.log.is_empty() { &run } else { &resume };
        let mut command = self.bench.folkmoot(arguments.iter().copied());
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = child.expect("the binary can be started");
        let stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        thread::spawn(move || {
            let lines = stdout.lines().map_while(Result::ok);
            // Whoever listened may have given up.
            lines.for_each(|line| drop(tell.send(Sign::Line(line))));
            let _ = tell.send(Sign::Over);
        });
        child
    }

    /// Nothing that was there is changed or gone, nothing was shown that is not there, and nothing was
    /// asked that had been answered.
    fn compare(&self, log: &[Stored], shown: &[Value], asked_before: usize) {
        assert!(log.starts_with(&self.log), "the log of the last process is not kept");
        for record in shown.iter().filter(|line| line["type"] == "record") {
            let at = record["seq"].as_u64().expect("a record has a number") as usize;
            let stored = log.get(at - 1).map(|stored| &stored.json["event"]);
            assert_eq!(stored, Some(&record["event"]), "record {at} was shown and is not stored");
        }
        let answered = answered(&self.log);
        for id in &self.witness.asked()[asked_before..] {
            assert!(!answered.contains(id), "{id} was answered and is asked again");
        }
    }

    /// What is open when a process dies may be asked once more.
    fn permit_again(&mut self, log: &[Stored]) {
        let answered = answered(log);
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
        asked.iter().for_each(|id| *times.entry(id).or_default() += 1);
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

        let (whole, estimated) = (&self.whole.end.usage, !bills.is_empty());
        let number = |usage: &Value, name: &str| usage["total"][name].as_u64().expect("a number");
        let cut_off: u64 = bills.iter().sum();
        assert_eq!(usage["calls"], whole["calls"]);
        assert_eq!(number(&usage, "prompt_tokens"), number(whole, "prompt_tokens") + cut_off);
        assert_eq!(number(&usage, "completion_tokens"), number(whole, "completion_tokens"));
        assert_eq!(usage["total"]["estimated"].as_bool().unwrap_or_default(), estimated);
    }

    /// What each attempt is estimated to have used that a kill cut off: one for each call that was open
    /// when the run was resumed.
    fn bills(&self) -> Vec<u64> {
        let mut open: BTreeSet<&str> = BTreeSet::new();
        let (mut due, mut bills) = (0, Vec::new());
        for record in &self.log {
            match record.event() {
                "asked" => drop(open.insert(record.key())),
                "resumed" => due += open.len(),
                "answered"
                    if record.json["fault"] == "lost"
                        || record.json["fault"]["fault"] == "lost" =>
                {
                    let usage = &record.json["usage"];
                    assert_eq!(usage["estimated"], true, "{}", record.text);
                    bills.push(usage["input"].as_u64().expect("the request was read"));
                }
                "answered" => drop(open.remove(record.key())),
                _ => {}
            }
        }
        assert_eq!(bills.len(), due, "a bill for each attempt that was cut off");
        bills
    }

    /// What happened, for whoever has to find out why it failed.
    pub(super) fn story(&self, why: &dyn Any) -> String {
        let why = why.downcast_ref::<String>().map(String::as_str);
        let log: Vec<&str> = self.log.iter().map(|record| record.text.as_str()).collect();
        format!(
            "seed {}: {}\nagain: FOLKMOOT_SEED={} cargo test -p folkmoot --test cli campaign\n\
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

/// The names of the requests whose answers are stored.
fn answered(log: &[Stored]) -> BTreeSet<String> {
    let answers = log.iter().filter(|record| record.event() == "answered");
    let texts = answers.filter_map(|record| record.json["answer"]["text"].as_str());
    let name = |text: &str| {
        let at = text.find('#').expect("every answer names its request");
        text[at..].chars().take(17).collect()
    };
    texts.map(name).collect()
}

/// Watches a process until its end, or kills it when it is time; whether it was killed, and the JSON
/// that it had shown by then.
fn watch(child: &mut Child, signs: &Receiver<Sign>, when: Instants) -> (bool, Vec<Value>) {
    let began = Instant::now();
    let patience = match when {
        Instants::After(micros) => Duration::from_micros(micros),
        Instants::AtRequest(_)
        | Instants::AtHalfReply(_)
        | Instants::AtRecord(_)
        | Instants::Never => PATIENCE,
    };
    let (mut requests, mut shown) = (0, Vec::new());
    let mut is_time = false;
    while !is_time {
        match signs.recv_timeout(patience.saturating_sub(began.elapsed())) {
            Ok(Sign::Asked) => requests += 1,
            Ok(Sign::Line(line)) => shown.extend(serde_json::from_str::<Value>(&line)),
            Ok(Sign::Over) | Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                assert!(matches!(when, Instants::After(_)), "it hangs");
                is_time = true;
            }
        }
        is_time |= match when {
            Instants::AtRequest(number) | Instants::AtHalfReply(number) => requests >= number,
            Instants::AtRecord(number) => shown.len() >= number,
            Instants::After(_) | Instants::Never => false,
        };
    }
    if is_time {
        child.kill().expect("it was not waited for");
    }
    let status = child.wait().expect("it can be waited for");
    let is_killed = status.code().is_none();
    assert!(is_killed || status.success(), "it ends well: {status}");
    // What it wrote before its death is still on its way.
    while is_time {
        match signs.recv_timeout(PATIENCE).expect("the pipe is closed") {
            Sign::Line(line) => shown.extend(serde_json::from_str::<Value>(&line)),
            Sign::Asked => {}
            Sign::Over => is_time = false,
        }
    }
    (is_killed, shown)
}
