//! What the stub does with a request.

use serde_json::Value;
use tokio::sync::watch;

use crate::Completion;

/// One reply: a status, headers, and what becomes of the body step by step.
#[derive(Clone, Debug)]
pub struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) steps: Vec<Step>,
    pub(crate) end: End,
    pub(crate) is_chunked: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// The head goes out even if nothing of the body follows yet.
    Begin,
    /// These bytes, in one write.
    Send(Vec<u8>),
    /// Nothing until the door is open.
    Wait(Door),
}

/// How the body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Properly.
    Proper,
    /// The connection is closed in the middle of it.
    Cut,
    /// Not at all: the connection stays open and silent.
    Never,
}

impl Reply {
    /// A reply without a body.
    pub fn status(status: u16) -> Reply {
        Reply { status, headers: Vec::new(), steps: Vec::new(), end: End::Proper, is_chunked: true }
    }

    /// A well-formed chat stream that says `text`, with usage and end mark.
    pub fn text(text: &str) -> Reply {
        Reply::stream(&Completion::text([text]))
    }

    /// `completion` as a well-formed stream, one event a write.
    pub fn stream(completion: &Completion) -> Reply {
        Reply::sse(completion.frames())
    }

    /// `completion` as one JSON body, though a stream was asked for.
    pub fn whole(completion: &Completion) -> Reply {
        Reply::json(200, &completion.whole())
    }

    /// A JSON body.
    pub fn json(status: u16, body: &Value) -> Reply {
        Reply::status(status).header("content-type", "application/json").send(body.to_string())
    }

    /// An event stream of these data, one event a write.
    pub fn events<Data: AsRef<str>>(data: impl IntoIterator<Item = Data>) -> Reply {
        Reply::sse(data.into_iter().map(|data| format!("data: {}\n\n", data.as_ref())))
    }

    /// An event stream of these very bytes, one piece a write.
    pub fn sse<Piece: Into<Vec<u8>>>(pieces: impl IntoIterator<Item = Piece>) -> Reply {
        let reply = Reply::status(200).header("content-type", "text/event-stream");
        pieces.into_iter().fold(reply, Reply::send)
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Reply {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Goes on with these bytes, in one write.
    #[must_use]
    pub fn send(mut self, bytes: impl Into<Vec<u8>>) -> Reply {
        self.steps.push(Step::Send(bytes.into()));
        self
    }

    /// Sends what there is, the head at least, and goes on when `door` is open.
    #[must_use]
    pub fn wait_for(mut self, door: &Door) -> Reply {
        self.steps.extend([Step::Begin, Step::Wait(door.clone())]);
        self
    }

    /// Does nothing at all, not even send the head, before `door` is open.
    #[must_use]
    pub fn behind(mut self, door: &Door) -> Reply {
        self.steps.insert(0, Step::Wait(door.clone()));
        self
    }

    /// Closes the connection in the middle of the body.
    #[must_use]
    pub fn cut(mut self) -> Reply {
        self.end = End::Cut;
        self
    }

    /// Leaves the body unfinished and the connection open.
    #[must_use]
    pub fn left_open(mut self) -> Reply {
        self.end = End::Never;
        self
    }

    /// Marks the end of the body by nothing but the end of the connection.
    #[must_use]
    pub fn until_close(mut self) -> Reply {
        self.is_chunked = false;
        self
    }

    /// The bytes that go out before the body.
    pub(crate) fn head(&self) -> Vec<u8> {
        let framing = if self.is_chunked {
            ("transfer-encoding", "chunked")
        } else {
            ("connection", "close")
        };
        let own = self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let lines = own.chain([framing]).map(|(name, value)| format!("{name}: {value}\r\n"));
        let lines: String = lines.collect();
        format!("HTTP/1.1 {} Stub\r\n{lines}\r\n", self.status).into_bytes()
    }

    /// `bytes` as they go out as a piece of the body.
    pub(crate) fn framed(&self, bytes: &[u8]) -> Vec<u8> {
        if !self.is_chunked || bytes.is_empty() {
            return bytes.to_vec();
        }
        [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
    }
}

/// Holds replies back until the test opens it; then it stays open.
#[derive(Clone, Debug)]
pub struct Door(watch::Sender<bool>);

impl Door {
    /// A closed door.
    pub fn closed() -> Door {
        Door(watch::Sender::new(false))
    }

    /// Lets everybody go on.
    pub fn open(&self) {
        self.0.send_replace(true);
    }

    pub(crate) async fn pass(&self) {
        self.0.subscribe().wait_for(|is_open| *is_open).await.expect("this door holds the sender");
    }
}
