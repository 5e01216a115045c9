//! Runs in virtual time, told to observers step by step, and what is written about them.

use std::{
    io::{self, Write},
    sync::{Arc, Mutex},
    time::Instant,
};

use folkmoot_core::{
    call::{FailureKind, Tokens, Usage},
    event::{Event, Record},
    key::Key,
    known::Entry,
    limits::Limits,
    programs::{Broadcast, Clocks},
    run::Run,
    sim::{Happening, Sim, World},
    spec::{Collaboration, Mail, Spec},
    team::{Agent, AgentId, Says, Script, ScriptedReply, Target, Team},
    time::Duration,
};

/// A reply after so many milliseconds that uses so many tokens; `!boom` fails.
pub(super) fn reply(ms: u64, text: &str, tokens: u64) -> ScriptedReply {
    let says = match text.strip_prefix('!') {
        Some(error) => Says::Error { text: error.into(), kind: FailureKind::Harness },
        None => Says::Text(text.into()),
    };
    let usage = Tokens { input: tokens, ..Tokens::default() };
    ScriptedReply { delay: Duration::from_millis(ms), says, usage }
}

/// An agent whose id is its name.
pub(super) fn agent(name: &str, replies: impl Into<Vec<ScriptedReply>>) -> Agent {
    Agent::new(name, Target::Script(Script { replies: replies.into(), ..Script::default() }))
}

/// A team of which everybody is asked at once.
pub(super) fn broadcast(rounds: u32, agents: Vec<Agent>) -> Spec {
    let ids: Vec<AgentId> = agents.iter().map(|agent| agent.id.clone()).collect();
    let broadcast = Broadcast { agents: ids, rounds, clocks: Clocks::default() };
    Spec {
        team: Team::new("test", agents),
        task: "TASK".into(),
        collaboration: Collaboration::Broadcast(broadcast),
        auto: None,
        limits: Limits::default(),
        workspace: None,
        warnings: Vec::new(),
        recipe: None,
        mail: Mail::Unknown,
    }
}

struct Scripted;

impl World for Scripted {
    fn answer(&mut self, spec: &Spec, _: &Run, _: &Key, entry: &Entry) -> Option<Happening> {
        let Target::Script(script) = &spec.team.agent(entry.call.agent()).target else {
            return None;
        };
        let reply = script.reply(entry.nth, "")?;
        let usage = Usage { tokens: reply.usage, ..Usage::default() };
        Some(Happening { after: reply.delay, outcome: reply.outcome(), usage })
    }
}

/// A run under way, and how much of it was told.
pub(super) struct Stage {
    pub(super) sim: Sim,
    told: usize,
    start: Instant,
}

impl Stage {
    pub(super) fn new(spec: Spec) -> Stage {
        Stage {
            sim: Sim::start(Arc::new(spec), 7, 0, &mut Scripted),
            told: 0,
            start: Instant::now(),
        }
    }

    /// Tells what was not told yet.
    pub(super) fn tell(&mut self, observer: impl FnOnce(&Spec, &Run, &[Record])) {
        observer(&self.sim.spec, &self.sim.run, &self.sim.log[self.told..]);
        self.told = self.sim.log.len();
    }

    /// Lets the next thing happen; false when there is nothing.
    pub(super) fn step(&mut self) -> bool {
        self.sim.run.ending().is_none() && self.sim.advance(&mut Scripted)
    }

    /// Lets an event happen now.
    pub(super) fn feed(&mut self, event: Event) {
        self.sim.feed(event, &mut Scripted);
    }

    /// Tells everything until the run ends.
    pub(super) fn play(&mut self, mut observer: impl FnMut(&Spec, &Run, &[Record])) {
        self.tell(&mut observer);
        while self.step() {
            self.tell(&mut observer);
        }
    }

    /// The instant at which the run has been active for so many milliseconds.
    pub(super) fn at(&self, ms: u64) -> Instant {
        self.start + std::time::Duration::from_millis(ms)
    }

    /// The instant of the last event.
    pub(super) fn now(&self) -> Instant {
        self.at(self.sim.run.at().0 / 1000)
    }
}

/// A writer whose text can be read by others.
#[derive(Clone, Debug, Default)]
pub(super) struct Written(Arc<Mutex<Vec<u8>>>);

impl Written {
    pub(super) fn text(&self) -> String {
        let bytes = self.0.lock().expect("no writer panics").clone();
        String::from_utf8(bytes).expect("only text is written")
    }
}

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no writer panics").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
