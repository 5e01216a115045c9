//! A model server that does no more than it must: it says the same to everybody, after 50 ms.
//!
//! The stub of the tests notes and parses every request; here that would be measured too.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
};

use crate::teams::REPLY;

/// How long a model thinks.
pub(crate) const THINKS: Duration = Duration::from_millis(50);

/// What it is told to sleep: the timer strikes at full milliseconds, half of one late on the average.
const SLEEPS: Duration = Duration::from_micros(49_500);

/// How many connections may wait to be taken.
const BACKLOG: u32 = 4096;

/// A running server; it ends with the process.
pub(crate) struct Server {
    address: SocketAddr,
    first: Arc<Mutex<Option<Instant>>>,
}

impl Server {
    pub(crate) fn start() -> Server {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime needs next to nothing");
        let listener = runtime.block_on(async {
            let socket = TcpSocket::new_v4()?;
            socket.bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
            socket.listen(BACKLOG)
        });
        let listener = listener.expect("loopback has free ports");
        let address = listener.local_addr().expect("it is bound");
        let first = Arc::new(Mutex::new(None));
        let (noted, reply) = (first.clone(), Arc::new(reply()));
        thread::spawn(move || {
            runtime.block_on(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(serve(stream, reply.clone(), noted.clone()));
                }
            });
        });
        Server { address, first }
    }

    /// Where its API begins.
    pub(crate) fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// When the first request came since this was last asked.
    pub(crate) fn first_request(&self) -> Option<Instant> {
        self.first.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

async fn serve(
    mut stream: TcpStream,
    reply: Arc<Vec<u8>>,
    first: Arc<Mutex<Option<Instant>>>,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut unread = Vec::with_capacity(4096);
    loop {
        let Some(length) = length(&unread) else {
            if stream.read_buf(&mut unread).await? == 0 {
                return Ok(());
            }
            continue;
        };
        while unread.len() < length {
            stream.read_buf(&mut unread).await?;
        }
        first.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(Instant::now);
        unread.drain(..length);
        tokio::time::sleep(SLEEPS).await;
        stream.write_all(&reply).await?;
    }
}

/// How long the request is that begins here, if its head is complete.
fn length(unread: &[u8]) -> Option<usize> {
    let head = unread.windows(4).position(|it| it == b"\r\n\r\n")? + 4;
    let lines = std::str::from_utf8(&unread[..head]).ok()?.lines();
    let mut fields = lines.filter_map(|line| line.split_once(':'));
    let length = fields.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    Some(head + length.and_then(|(_, value)| value.trim().parse().ok()).unwrap_or(0))
}

/// A stream of chat completions in one piece.
fn reply() -> Vec<u8> {
    let words: Vec<&str> = REPLY.split_inclusive(' ').collect();
    let pieces = words.chunks(8).map(
        |words| json!({ "choices": [{ "index": 0, "delta": { "content": words.concat() } }] }),
    );
    let stop = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] });
    let usage = json!({ "choices": [], "usage": { "prompt_tokens": 50, "completion_tokens": 40 } });
    let events = pieces.chain([stop, usage]).map(|data| format!("data: {data}\n\n"));
    let body = events.collect::<String>() + "data: [DONE]\n\n";
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    format!("{head}{:x}\r\n{body}\r\n0\r\n\r\n", body.len()).into_bytes()
}
