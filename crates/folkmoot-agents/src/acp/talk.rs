//! What is said in one turn, from the first word to the last.

use std::{io, path::Path, sync::Arc, time::Duration};

use agent_client_protocol::{
    Agent, Client, Error, ErrorCode, Lines, is_incoming_transport_closed, on_receive_notification,
    on_receive_request,
    schema::ProtocolVersion,
    v1::{
        ConnectionTo,
        schema::{
            AuthMethod, CancelNotification, ClientCapabilities, ContentBlock,
            CreateTerminalRequest, CreateTerminalResponse, FileSystemCapabilities, Implementation,
            InitializeRequest, KillTerminalRequest, KillTerminalResponse, NewSessionRequest,
            PromptRequest, ReadTextFileRequest, ReadTextFileResponse, ReleaseTerminalRequest,
            ReleaseTerminalResponse, RequestPermissionRequest, RequestPermissionResponse,
            SessionId, SessionNotification, StopReason, TerminalOutputRequest, TextContent, Usage,
            WaitForTerminalExitRequest, WaitForTerminalExitResponse, WriteTextFileRequest,
            WriteTextFileResponse,
        },
    },
};
use folkmoot_core::call::FailureKind;
use futures_util::{Sink, Stream};
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::{
    GRACE,
    desk::{Desk, Piece},
};
use crate::cli::records;

/// How long it may take to introduce itself and to open a session: it may still have to be installed.
const OPENING: Duration = Duration::from_mins(2);

/// A turn that is over as it should be.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) usage: Option<Usage>,
}

/// Why there is no reply.
#[derive(Debug)]
pub(super) enum Silence {
    /// It ended before its turn did.
    Ended,
    /// It, or we, can say why.
    Told {
        /// What kind of failure.
        kind: FailureKind,
        /// In words.
        text: String,
    },
}

impl Silence {
    pub(super) fn told(kind: FailureKind, text: impl Into<String>) -> Silence {
        Silence::Told { kind, text: text.into() }
    }
}

/// Has a turn over these pipes. Once `left`, it is told so, and may take a moment to stop.
pub(super) async fn turn(
    (outgoing, incoming): (
        impl Sink<String, Error = io::Error> + Send + 'static,
        impl Stream<Item = io::Result<String>> + Send + 'static,
    ),
    desk: Arc<Desk>,
    tell: mpsc::Sender<Piece>,
    folder: &Path,
    prompt: String,
    left: &CancellationToken,
) -> Result<Said, Silence> {
    let (done, mut outcome) = oneshot::channel();
    let client = Client
        .v1()
        .name("folkmoot")
        .on_receive_notification(
            {
                let desk = desk.clone();
                async move |told: SessionNotification, _| {
                    if let Some(piece) = desk.hear(told) {
                        // Nobody may be looking on any more.
                        let _ = tell.send(piece).await;
                    }
                    Ok(())
                }
            },
            on_receive_notification!(),
        )
        .on_receive_request(
            {
                let desk = desk.clone();
                async move |asked: RequestPermissionRequest, reply, _| {
                    reply.respond(RequestPermissionResponse::new(desk.permit(&asked)))
                }
            },
            on_receive_request!(),
        )
        .on_receive_request(
            {
                let desk = desk.clone();
                async move |asked: ReadTextFileRequest, reply, cx: ConnectionTo<Agent>| {
                    let desk = desk.clone();
                    cx.spawn(async move {
                        let read = desk.read(asked).await;
                        reply.respond_with_result(read.map(ReadTextFileResponse::new))
                    })
                }
            },
            on_receive_request!(),
        )
        .on_receive_request(
            {
                let desk = desk.clone();
                async move |asked: WriteTextFileRequest, reply, cx: ConnectionTo<Agent>| {
                    let desk = desk.clone();
                    cx.spawn(async move {
                        let written = desk.write(asked).await;
                        reply.respond_with_result(written.map(|()| WriteTextFileResponse::new()))
                    })
                }
            },
            on_receive_request!(),
        )
        .on_receive_request(
            {
                let desk = desk.clone();
                async move |asked: CreateTerminalRequest, reply, cx: ConnectionTo<Agent>| {
                    let begun = desk.begin(&asked);
                    match begun {
                        Ok((id, running)) => {
                            cx.spawn(async move {
                                running.await;
                                Ok(())
                            })?;
                            reply.respond(CreateTerminalResponse::new(id))
                        }
                        Err(error) => reply.respond_with_error(error),
                    }
                }
            },
            on_receive_request!(),
        )
        .on_receive_request(
            {
                let desk = desk.clone();
                async move |asked: TerminalOutputRequest, reply, _| {
                    let terminal = desk.terminal(&asked.terminal_id);
                    reply.respond_with_result(terminal.map(|it| it.output()))
                }
            },
            on_receive_request!(),
        )
        .on_receive_request(
            {
                let desk = desk.clone();
                async move |asked: WaitForTerminalExitRequest, reply, cx: ConnectionTo<Agent>| {
                    let terminal = desk.terminal(&asked.terminal_id);
                    cx.spawn(async move {
                        match terminal {
                            Ok(terminal) => {
                                let ended = terminal.ended().await;
                                reply.respond(WaitForTerminalExitResponse::new(ended))
                            }
                            Err(error) => reply.respond_with_error(error),
                        }
                    })
                }
            },
            on_receive_request!(),
        )
        .on_receive_request(
            {
                let desk = desk.clone();
                async move |asked: KillTerminalRequest, reply, _| {
                    let terminal = desk.terminal(&asked.terminal_id);
                    let killed = terminal.map(|it| it.kill());
                    reply.respond_with_result(killed.map(|()| KillTerminalResponse::new()))
                }
            },
            on_receive_request!(),
        )
        .on_receive_request(
            {
                let desk = desk.clone();
                async move |asked: ReleaseTerminalRequest, reply, _| {
                    let known = desk.terminal(&asked.terminal_id);
                    let released = known.map(|_| desk.terminals.release(&asked.terminal_id));
                    reply.respond_with_result(released.map(|_| ReleaseTerminalResponse::new()))
                }
            },
            on_receive_request!(),
        );
    let talking = client.connect_with(Lines::new(outgoing, incoming), async |cx| {
        let _ = done.send(converse(&cx, &desk, folder, prompt, left).await);
        Ok(())
    });
    tokio::pin!(talking);
    let said = tokio::select! {
        biased;
        said = &mut outcome => said.ok(),
        _ = &mut talking => outcome.try_recv().ok(),
    };
    said.unwrap_or(Err(Silence::Ended))
}

/// Introduces us, opens a session, and asks.
async fn converse(
    cx: &ConnectionTo<Agent>,
    desk: &Desk,
    folder: &Path,
    prompt: String,
    left: &CancellationToken,
) -> Result<Said, Silence> {
    let opened = tokio::select! {
        opened = timeout(OPENING, open(cx, desk, folder)) => opened,
        () = left.cancelled() => return Err(gone()),
    };
    let session = opened.unwrap_or_else(|_| {
        let text = format!("it opened no session within {} s", OPENING.as_secs());
        Err(Silence::told(FailureKind::Timeout, text))
    })?;
    let text = ContentBlock::Text(TextContent::new(prompt));
    let asked = cx.send_request(PromptRequest::new(session.clone(), vec![text])).block_task();
    tokio::pin!(asked);
    tokio::select! {
        answered = &mut asked => {
            let answered = answered.map_err(|error| silence(&error, ""))?;
            let usage = answered.usage;
            ended(answered.stop_reason).map(|()| Said { usage })
        }
        () = left.cancelled() => {
            desk.close();
            let _ = cx.send_notification(CancelNotification::new(session));
            let _ = timeout(GRACE, &mut asked).await;
            Err(gone())
        }
    }
}

/// Nobody waits any longer, so nobody reads this.
fn gone() -> Silence {
    Silence::told(FailureKind::Other, "nobody waits for it")
}

async fn open(cx: &ConnectionTo<Agent>, desk: &Desk, folder: &Path) -> Result<SessionId, Silence> {
    let rights = &desk.rights;
    let files = FileSystemCapabilities::new()
        .read_text_file(rights.allow("file.read"))
        .write_text_file(rights.allow("file.write"));
    let can = ClientCapabilities::new().fs(files).terminal(rights.allow("shell"));
    let hello = InitializeRequest::new(ProtocolVersion::V1)
        .client_capabilities(can)
        .client_info(Implementation::new("folkmoot", env!("CARGO_PKG_VERSION")));
    // Another version than ours is an error here.
    let met = cx.send_request(hello).block_task().await.map_err(|error| silence(&error, ""))?;
    if let Some(info) = &met.agent_info {
        desk.introduce(format!("{} {}", info.name, info.version));
    }
    let ways: Vec<&str> = met.auth_methods.iter().map(AuthMethod::name).collect();
    let opened = cx.send_request(NewSessionRequest::new(folder)).block_task().await;
    let session = opened.map_err(|error| silence(&error, &ways.join(", ")))?.session_id;
    desk.open(&session);
    Ok(session)
}

/// What a stop means for the reply.
fn ended(reason: StopReason) -> Result<(), Silence> {
    let (kind, text) = match reason {
        StopReason::EndTurn => return Ok(()),
        StopReason::MaxTokens => {
            (FailureKind::Incomplete, "its reply was cut off at its limit of tokens".to_owned())
        }
        StopReason::MaxTurnRequests => {
            (FailureKind::Incomplete, "it stopped at its limit of requests in a turn".to_owned())
        }
        StopReason::Refusal => (FailureKind::Other, "it refused".to_owned()),
        StopReason::Cancelled => (FailureKind::Other, "its turn was cancelled".to_owned()),
        other => (FailureKind::Protocol, format!("it stopped for a reason of its own: {other:?}")),
    };
    Err(Silence::Told { kind, text })
}

/// What an error means, and how to log in if that is what it asks for.
fn silence(error: &Error, ways: &str) -> Silence {
    if is_incoming_transport_closed(error) {
        return Silence::Ended;
    }
    let details = error.data.as_ref().map(|data| match data.as_str() {
        Some(text) => format!(": {text}"),
        None => format!(": {data}"),
    });
    let text = format!("{}{}", error.message, details.unwrap_or_default());
    if error.code == ErrorCode::AUTH_REQUIRED {
        let offered = if ways.is_empty() { String::new() } else { format!("; it offers: {ways}") };
        let text = format!("{text}: log in with the program itself, or pass on its key{offered}");
        return Silence::told(FailureKind::Auth, text);
    }
    let is_misunderstood = [
        ErrorCode::PARSE_ERROR,
        ErrorCode::INVALID_REQUEST,
        ErrorCode::INVALID_PARAMS,
        ErrorCode::METHOD_NOT_FOUND,
    ]
    .contains(&error.code);
    let kind = if is_misunderstood { FailureKind::Protocol } else { records::kind_of(&text) };
    Silence::told(kind, text)
}
