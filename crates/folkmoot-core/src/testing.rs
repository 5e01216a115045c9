//! Teams, worlds and rendered logs for the tests of this crate.

use std::{collections::BTreeMap, fmt::Write, sync::Arc};

use serde_json::json;

use crate::{
    call::{Call, FailureKind, Part, Tokens, Usage},
    event::{Event, Record, Settled},
    gate::Evidence,
    key::Key,
    known::Entry,
    limits::Limits,
    mail::Delivery,
    mcp::Pinned,
    programs::{
        Clocks,
        graph::{Edge, Graph, JudgeError, OnFailure, Remedy, Routing, Structure, USUAL_CAP},
    },
    render,
    run::Run,
    sim::{Happening, Sim, World},
    spec::{Collaboration, Mail, Spec},
    team::{Agent, AgentId, Says, Script, ScriptedReply, Target, Team},
    time::Duration,
    view,
};

/// An id that is also a name.
pub(crate) fn id(name: &str) -> AgentId {
    AgentId(name.into())
}

pub(crate) fn ids(names: &[&str]) -> Vec<AgentId> {
    names.iter().map(|name| id(name)).collect()
}

/// An agent with scripted replies: `!boom` fails, `~300 late` takes 300 ms.
pub(crate) fn agent(name: &str, replies: &[&str]) -> Agent {
    let replies = replies.iter().map(|reply| scripted(reply)).collect();
    Agent::new(name, Target::Script(Script { replies, ..Script::default() }))
}

fn scripted(text: &str) -> ScriptedReply {
    let (delay, text) = match text.strip_prefix('~').and_then(|rest| rest.split_once(' ')) {
        Some((ms, text)) => (Duration::from_millis(ms.parse().expect("a number")), text),
        None => (Duration::default(), text),
    };
    let says = match (text.strip_prefix('!'), serde_json::from_str(text)) {
        (Some(error), _) => Says::Error { text: error.into(), kind: FailureKind::Harness },
        (None, Ok(json)) if text.starts_with('{') => Says::Json(json),
        (None, _) => Says::Text(text.into()),
    };
    ScriptedReply { delay, says, usage: Tokens::default() }
}

/// A graph of these edges and nothing else.
pub(crate) fn graph(edges: Vec<Edge>) -> Graph {
    let has_loop = !Structure::of(&edges).loops.is_empty();
    Graph {
        edges,
        topology: None,
        cap: has_loop.then_some(USUAL_CAP),
        termination: None,
        judge: None,
        judge_error: JudgeError::Stop,
        on_failure: OnFailure { retry: 0, then: Remedy::Stop },
        nodes: BTreeMap::new(),
        result: None,
        routing: Routing::Engine,
        findings: None,
        clocks: Clocks::default(),
    }
}

pub(crate) fn spec(agents: Vec<Agent>, collaboration: Collaboration) -> Spec {
    Spec {
        team: Team::new("test", agents),
        task: "TASK".into(),
        collaboration,
        auto: None,
        limits: Limits::default(),
        workspace: None,
        warnings: Vec::new(),
        recipe: None,
        mail: Mail::default(),
    }
}

/// A message as it comes to a call.
pub(crate) fn letter(from: &str, body: &str) -> Delivery {
    Delivery {
        id: "m1".into(),
        from: from.into(),
        subject: None,
        body: body.into(),
        whole: None,
        refs: Vec::new(),
        reply_to: None,
        sent_at: 0,
        attempt: 1,
        phase_missed: false,
    }
}

/// A world in which scripted agents say what they are to say, and tools say what they were given.
pub(crate) struct Scripted;

impl World for Scripted {
    fn answer(&mut self, spec: &Spec, run: &Run, _: &Key, entry: &Entry) -> Option<Happening> {
        let reply = match &entry.call {
            Call::Person { .. } | Call::Team { .. } | Call::Exchange { .. } => return None,
            Call::Listing { .. } => ScriptedReply {
                says: Says::Json(Pinned::listed(&[tool("look", true), tool("change", false)])),
                ..ScriptedReply::text("")
            },
            Call::Tool { request, .. } => ScriptedReply::text(request.arguments.to_string()),
            Call::Gate { scripted, .. } => {
                let told = Evidence::of(scripted.unwrap_or(true)).answer();
                ScriptedReply {
                    says: Says::Json(told.json.unwrap_or_default()),
                    ..ScriptedReply::text("")
                }
            }
            Call::Agent { prompt, .. } => {
                let agent = spec.team.asked(&entry.call);
                let messages = render::messages(spec, run.known(), &agent, prompt);
                let last = messages.last().map_or("", |message| &*message.content);
                let Target::Script(script) = &agent.target else { return None };
                let echo = ScriptedReply::text(last);
                script.reply(entry.nth, last).unwrap_or(&echo).clone()
            }
        };
        let usage = Usage { tokens: reply.usage, ..Usage::default() };
        Some(Happening { after: reply.delay, outcome: reply.outcome(), usage })
    }
}

/// A tool that every server of a scripted world has.
pub(crate) fn tool(name: &str, repeatable: bool) -> Pinned {
    let (description, parameters) = (format!("does {name}").into(), json!({ "type": "object" }));
    Pinned { name: name.into(), description, parameters, repeatable }
}

/// Plays a scripted team to its end.
pub(crate) fn play(spec: Spec) -> Sim {
    Sim::start(Arc::new(spec), 0, 0, &mut Scripted).finish(&mut Scripted)
}

/// Plays a scripted team and compares its whole log and result with what is expected.
#[expect(clippy::needless_pass_by_value, reason = "reads better in the tests")]
pub(crate) fn check(spec: Spec, expected: expect_test::Expect) {
    expected.assert_eq(&story(&play(spec)));
}

/// A log a person can read, and what came of it.
pub(crate) fn story(sim: &Sim) -> String {
    let mut story = sim.log.iter().map(line).collect::<Vec<_>>().join("\n");
    let result = view::outcome("run", &sim.spec, &sim.run, true);
    let last = (result.status.as_str(), result.reason.unwrap_or_default());
    write!(story, "\n= {} {}: {:?}\n", last.0, last.1, result.answer).expect("to a string");
    if let Some(partial) = result.partial {
        writeln!(story, "  partial {:?}", partial.text).expect("to a string");
    }
    for round in result.rounds {
        writeln!(story, "  {round}").expect("to a string");
    }
    story
}

/// A record a person can read: its number, its time in milliseconds and what happened.
pub(crate) fn line(record: &Record) -> String {
    let what = match &record.event {
        Event::Started { .. } => "started".to_owned(),
        Event::Inherited { key, .. } => format!("inherited {key}"),
        Event::Prompted { key, text } => format!("prompted {key}: {text}"),
        Event::Resumed { .. } => "resumed".to_owned(),
        Event::Answered { key, settled, .. } => {
            format!("answered {key}: {}", settled_text(settled))
        }
        Event::Amended { key, text } => format!("amended {key}: {text}"),
        Event::CancelRequested => "cancel requested".to_owned(),
        Event::Ticked => "ticked".to_owned(),
        Event::Woken { .. } => "woken".to_owned(),
        Event::Saved { key, .. } => format!("saved {key}"),
        Event::Mailed { key, mail, .. } => {
            let from: Vec<&str> = mail.iter().map(|it| &*it.from).collect();
            format!("mailed {key}: from {}", from.join(", "))
        }
        Event::Asked { key, call, .. } => format!("asked {key} {}", request(call)),
        Event::Refused { key, fault, .. } => format!("refused {key}: {fault}"),
        Event::Withdrawn { key, fault, .. } => format!("withdrawn {key}: {fault}"),
        Event::Concluded { key, settled } => {
            format!("concluded {key}: {}", settled_text(settled))
        }
        Event::Ended { ending } => format!("ended {}", ending.reason),
    };
    format!("{:>3} {:>5} {what}", record.seq, record.at.0 / 1000)
}

fn settled_text(settled: &Settled) -> String {
    match settled {
        Settled::Answer(answer) => answer.text.to_string(),
        Settled::Fault(fault) => format!("({fault})"),
    }
}

fn request(call: &Call) -> String {
    let prompt = match call {
        Call::Agent { prompt, .. } | Call::Team { prompt, .. } | Call::Person { prompt, .. } => {
            prompt
        }
        Call::Tool { .. } => return "tool".to_owned(),
        Call::Listing { server, .. } => return format!("listing of {server}"),
        Call::Gate { gate, of, .. } => return format!("gate {gate} [of {of}]"),
        Call::Exchange { told, .. } => {
            let told: Vec<String> = told.iter().map(|it| it.key.to_string()).collect();
            return format!("exchange [{}]", told.join(" · "));
        }
    };
    let continues = prompt.continues.iter().map(|key| format!("after {key}"));
    let parts = prompt.parts.iter().map(|part| match part {
        Part::Task => "task".to_owned(),
        Part::Say(text) => format!("say {}…", text.chars().take(24).collect::<String>()),
        Part::Quote(key) => format!("quote {key}"),
        Part::Own(key) => format!("own {key}"),
        Part::Handed { key, label } => format!("quote {key} as {label}"),
        Part::Returned { key, .. } => format!("returned {key}"),
        Part::Told { text, .. } => format!("told {}…", text.chars().take(24).collect::<String>()),
        Part::Result(key) => format!("result {key}"),
        Part::Memory(keys) => {
            let keys: Vec<&str> = keys.iter().map(Key::as_str).collect();
            format!("memory {}", keys.join(" "))
        }
        Part::Findings(key) => format!("findings {key}"),
        Part::Mail(key) => format!("mail {key}"),
        Part::Board { since, replies, .. } => {
            let since = since.as_ref().map(|key| format!(" since {key}")).unwrap_or_default();
            let keys: Vec<&str> = replies.iter().map(Key::as_str).collect();
            format!("board{since}: {}", keys.join(" "))
        }
    });
    format!("[{}]", continues.chain(parts).collect::<Vec<_>>().join(" · "))
}
