use std::sync::Arc;

use anyhow::{Context as _, Result};
use clap::{Args, Subcommand};
use folkmoot_core::{
    mail::{ATTEMPTS, Deliver, Draft, Party},
    time::Duration,
};
use folkmoot_runtime::{
    mail::{Mail as Mailboxes, Which},
    told,
};
use serde_json::{Value, json};

use super::team::from_stdin_if_asked;
use crate::{
    app::{self, App},
    exit::{Exit, Refusal},
    terminal::mail as pages,
};

/// Sends and reads mail: mailboxes of people and agents that outlive every run.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  folkmoot mail send coder \"The parser is yours.\" --subject parser
  folkmoot mail send tester - --after-current < notes.txt
  folkmoot mail inbox --as coder
  folkmoot mail read --as coder")]
pub(crate) struct Mail {
    #[command(subcommand)]
    action: Action,
    /// Who you are: the name of an agent, or your own [default: the user's name]
    #[arg(long = "as", global = true, value_name = "NAME")]
    me: Option<String>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Sends a message
    Send(Box<Send>),
    /// Lists the messages that may be read
    Inbox(Inbox),
    /// Reads a message: the oldest, or the one that is named; it is done with once it is printed
    Read(Read),
    /// Is done with a message that is lent to you
    Ack(Ack),
    /// Gives back a message that is lent to you
    Nack(Nack),
}

#[derive(Debug, Args)]
struct Send {
    /// To whom
    #[arg(required_unless_present_any = ["revive", "cancel"])]
    to: Option<String>,
    /// What it says; `-` reads it from standard input
    #[arg(required_unless_present_any = ["revive", "cancel"], allow_hyphen_values = true)]
    body: Option<String>,
    /// What it is about
    #[arg(long, value_name = "TEXT")]
    subject: Option<String>,
    /// What it refers to: a file, a call, another message; may be given several times
    #[arg(long = "ref", value_name = "TEXT")]
    refs: Vec<String>,
    /// The message that it answers
    #[arg(long, value_name = "ID")]
    reply_to: Option<String>,
    /// Your own name for it: under one name it is sent once
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Delivers it when the addressee has finished the runs that it is at
    #[arg(long, group = "when")]
    after_current: bool,
    /// Delivers it from a moment on, as in 2026-01-31T09:00:00Z
    #[arg(long, value_name = "TIME", group = "when")]
    at: Option<String>,
    /// Delivers it after so long
    #[arg(long, value_name = "TIME", group = "when")]
    delay: Option<String>,
    /// Delivers it when a phase of --run is over, as `coding_complete`
    #[arg(long, value_name = "NAME", group = "when", requires = "run")]
    on_phase: Option<String>,
    /// The run whose phase is meant
    #[arg(long, value_name = "RUN", requires = "on_phase")]
    run: Option<String>,
    /// Lets it expire if nobody has read it after so long
    #[arg(long, value_name = "TIME")]
    ttl: Option<String>,
    /// How often it is delivered before it counts as undeliverable
    #[arg(long, value_name = "N", default_value_t = ATTEMPTS)]
    max_attempts: u32,
    /// Lets an undeliverable message be delivered anew
    #[arg(long, value_name = "ID", conflicts_with = "to")]
    revive: Option<String>,
    /// Takes back a message of yours that nobody has read
    #[arg(long, value_name = "ID", conflicts_with_all = ["to", "revive"])]
    cancel: Option<String>,
}

#[derive(Debug, Args)]
struct Inbox {
    /// Lists those too that may not be read yet
    #[arg(long)]
    future: bool,
    /// Lists those too that are lent, done with, expired, undeliverable or taken back
    #[arg(long)]
    all: bool,
    /// Lists what you have sent instead, and who read it
    #[arg(long, conflicts_with_all = ["future", "all"])]
    sent: bool,
    /// The most messages to list
    #[arg(long, default_value_t = 20, value_name = "N")]
    limit: usize,
}

#[derive(Debug, Args)]
struct Read {
    /// The message; the oldest unless given
    id: Option<String>,
    /// Keeps it for so long instead, to be settled by `ack` or `nack`
    #[arg(long, value_name = "TIME")]
    lease: Option<String>,
}

#[derive(Debug, Args)]
struct Ack {
    /// The message
    id: String,
    /// The token that it came with
    lease: String,
    /// Keeps it for so long from now on instead
    #[arg(long, value_name = "TIME")]
    extend: Option<String>,
}

#[derive(Debug, Args)]
struct Nack {
    /// The message
    id: String,
    /// The token that it came with
    lease: String,
    /// Lets it be read again only after so long
    #[arg(long, value_name = "TIME", default_value = "0")]
    delay: String,
}

impl Mail {
    pub(crate) async fn run(self, app: &App) -> Result<Exit> {
        let mail = Mailboxes::new(&app.engine()?, &app.owner()?);
        let me = self.me.unwrap_or_else(app::user);
        match self.action {
            Action::Send(it) => it.run(app, &mail, &me).await,
            Action::Inbox(it) => it.run(app, &mail, &me).await,
            Action::Read(it) => it.run(app, &mail, &me).await,
            Action::Ack(it) => it.run(app, &mail, &me).await,
            Action::Nack(it) => it.run(app, &mail, &me).await,
        }
    }
}

impl Send {
    async fn run(self, app: &App, mail: &Mailboxes, me: &str) -> Result<Exit> {
        if let Some(id) = &self.revive {
            mail.revive(id).await.map_err(Refusal::from)?;
            return Ok(tell(app, &json!({ "id": id, "state": "PENDING" }), "can be read again"));
        }
        if let Some(id) = &self.cancel {
            mail.cancel(me, id).await.map_err(Refusal::from)?;
            return Ok(tell(app, &json!({ "id": id, "state": "CANCELLED" }), "is taken back"));
        }
        let to = self.to.clone().unwrap_or_default();
        let draft = self.draft()?;
        let from = Party { name: me.into(), ..Party::default() };
        let sent = mail.send(&from, &to, draft).await.map_err(Refusal::from)?;
        let text = if sent.duplicate { "had been sent already" } else { "is sent" };
        Ok(tell(app, &json!(sent), text))
    }

    fn draft(self) -> Result<Draft> {
        let text = |text: Option<String>| text.map(Arc::<str>::from);
        let deliver = match (self.after_current, self.at, self.delay, self.on_phase) {
            (true, ..) => Deliver::AfterCurrent,
            (_, Some(at), ..) => Deliver::At(moment(&at)?),
            (_, _, Some(delay), _) => Deliver::DelayS(seconds("--delay", &delay)?),
            (_, _, _, Some(phase)) => {
                let run = self.run.unwrap_or_default().into();
                Deliver::OnPhase { phase: phase.into(), run }
            }
            (false, None, None, None) => Deliver::Now,
        };
        Ok(Draft {
            body: from_stdin_if_asked(self.body.unwrap_or_default())?.into(),
            subject: text(self.subject),
            refs: self.refs.into_iter().map(Into::into).collect(),
            reply_to: text(self.reply_to),
            key: text(self.key),
            deliver,
            ttl_s: self.ttl.map(|ttl| seconds("--ttl", &ttl)).transpose()?,
            max_attempts: self.max_attempts,
        })
    }
}

impl Inbox {
    async fn run(self, app: &App, mail: &Mailboxes, me: &str) -> Result<Exit> {
        let Inbox { future, all, sent, limit } = self;
        let headers = if sent {
            mail.sent(me, limit).await
        } else {
            mail.inbox(me, Which { future, all }, limit).await
        };
        let headers = headers.map_err(Refusal::from)?;
        if app.wants_json() {
            app.print_json(&headers.iter().map(told::header).collect::<Vec<Value>>());
        } else {
            app.print(&pages::headers(&app.page(), &headers, sent, app::now()));
        }
        Ok(Exit::DONE)
    }
}

impl Read {
    async fn run(self, app: &App, mail: &Mailboxes, me: &str) -> Result<Exit> {
        let lease_s = self.lease.as_deref().map(|lease| seconds("--lease", lease)).transpose()?;
        let by = Party { name: me.into(), ..Party::default() };
        let reading = mail.read(&by, self.id.as_deref(), lease_s).await.map_err(Refusal::from)?;
        let Some(reading) = reading else {
            if app.wants_json() {
                app.print_json(&Value::Null);
            } else {
                app.tell("there is nothing to read");
            }
            return Ok(Exit::DONE);
        };
        let message = &reading.message;
        if app.wants_json() {
            app.print_json(&told::reading(&reading));
        } else {
            app.print(&pages::message(&app.page(), &reading, lease_s.is_some()));
        }
        if lease_s.is_none() {
            // What could not be printed was not read: it comes again.
            app.printed().context("it could not be printed, so it comes again")?;
            mail.ack(me, &message.id, &reading.lease).await.map_err(Refusal::from)?;
        }
        Ok(Exit::DONE)
    }
}

impl Ack {
    async fn run(self, app: &App, mail: &Mailboxes, me: &str) -> Result<Exit> {
        let Ack { id, lease, extend } = self;
        if let Some(extend) = extend {
            let lease_s = seconds("--extend", &extend)?;
            mail.extend(me, &id, &lease, Some(lease_s)).await.map_err(Refusal::from)?;
            return Ok(tell(app, &json!({ "id": id, "state": "LEASED" }), "is yours for longer"));
        }
        mail.ack(me, &id, &lease).await.map_err(Refusal::from)?;
        Ok(tell(app, &json!({ "id": id, "state": "ACKNOWLEDGED" }), "is done with"))
    }
}

impl Nack {
    async fn run(self, app: &App, mail: &Mailboxes, me: &str) -> Result<Exit> {
        let Nack { id, lease, delay } = self;
        let delay_s = seconds("--delay", &delay)?;
        let state = mail.nack(me, &id, &lease, delay_s).await.map_err(Refusal::from)?;
        Ok(tell(app, &json!({ "id": id, "state": state }), "is given back"))
    }
}

/// Tells what became of a message.
fn tell(app: &App, told: &Value, text: &str) -> Exit {
    if app.wants_json() {
        app.print_json(told);
    } else {
        app.tell(&format!("message {} {text}", told["id"].as_str().unwrap_or_default()));
    }
    Exit::DONE
}

/// A flag's time in whole seconds.
fn seconds(flag: &str, text: &str) -> Result<u64> {
    let Some(time) = Duration::parse(text) else {
        let message = format!("{flag} {text:?} is no time");
        let help = "seconds, or as in 30m, 2h, 1d";
        return Err(Refusal::new("bad_value", message).help(help).into());
    };
    Ok(time.as_secs_f64().ceil() as u64)
}

/// A moment in microseconds since 1970.
fn moment(text: &str) -> Result<u64> {
    told::moment(text).ok_or_else(|| {
        let message = format!("--at {text:?} is no moment");
        Refusal::new("bad_value", message).help("as in 2026-01-31T09:00:00Z").into()
    })
}
