//! The server itself: as much of HTTP/1.1 as clients of model APIs use.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex},
    thread,
};

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::{oneshot, watch},
};

use crate::reply::{End, Reply, Step};

/// A running stub; it ends when dropped, and all its connections with it.
#[derive(Debug)]
pub struct Stub {
    address: SocketAddr,
    seen: watch::Sender<Seen>,
    _runs: oneshot::Sender<()>,
}

/// What the stub has seen so far.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The requests in the order in which they came.
    pub requests: Vec<Received>,
    /// How many connections were opened.
    pub connections: usize,
    /// How many requests are under way.
    pub under_way: usize,
    /// The most requests that were under way at once.
    pub most_at_once: usize,
    /// How many connections the client closed before their reply had ended.
    pub hung_up: usize,
}

/// A request.
#[derive(Clone, Debug, Default)]
pub struct Received {
    /// Its first line, for example `POST /v1/chat/completions HTTP/1.1`.
    pub line: String,
    /// Its headers, the names in lower case.
    pub headers: Vec<(String, String)>,
    /// Its body.
    pub bytes: Vec<u8>,
    /// Its body as JSON; null if it is none.
    pub body: Value,
    /// How many requests were under way when it came, itself included.
    pub under_way: usize,
}

impl Received {
    /// The value of a header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

type Answer = Arc<Mutex<dyn FnMut(&Received) -> Reply + Send>>;

impl Stub {
    /// A stub that gives `replies` one after the other; the last one repeats.
    pub fn start(replies: impl IntoIterator<Item = Reply>) -> Stub {
        let replies: Vec<_> = replies.into_iter().collect();
        let mut next = 0;
        Stub::answering(move |_| {
            let reply = replies.get(next).or(replies.last()).cloned();
            next += 1;
            reply.unwrap_or_else(|| Reply::status(500))
        })
    }

    /// A stub that thinks about each request.
    pub fn answering(answer: impl FnMut(&Received) -> Reply + Send + 'static) -> Stub {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
        let address = listener.local_addr().expect("it is bound");
        listener.set_nonblocking(true).expect("sockets can be made so");
        let seen = watch::Sender::new(Seen::default());
        let (runs, stops) = oneshot::channel();
        let server = serve(listener, Arc::new(Mutex::new(answer)), seen.clone());
        let run = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.expect("a runtime needs next to nothing");
            runtime.block_on(async move {
                tokio::select! {
                    () = server => {}
                    _ = stops => {}
                }
            });
        };
        thread::Builder::new().name("stub".to_owned()).spawn(run).expect("threads are to be had");
        Stub { address, seen, _runs: runs }
    }

    /// Where its API begins.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// What it has seen so far.
    pub fn seen(&self) -> Seen {
        self.seen.borrow().clone()
    }

    /// Waits until what it has seen is so.
    pub async fn until(&self, is_so: impl FnMut(&Seen) -> bool) {
        self.seen.subscribe().wait_for(is_so).await.expect("this stub holds the sender");
    }
}

async fn serve(listener: std::net::TcpListener, answer: Answer, seen: watch::Sender<Seen>) {
    let listener = TcpListener::from_std(listener).expect("a runtime is running");
    loop {
        let (stream, _) = listener.accept().await.expect("the listener stays open");
        seen.send_modify(|seen| seen.connections += 1);
        let connection =
            Connection { stream, unread: Vec::new(), answer: answer.clone(), seen: seen.clone() };
        tokio::spawn(connection.run());
    }
}

struct Connection {
    stream: TcpStream,
    unread: Vec<u8>,
    answer: Answer,
    seen: watch::Sender<Seen>,
}

impl Connection {
    /// Ends when either side has had enough; a connection that breaks is one that the client closed.
    async fn run(mut self) {
        let _ = self.stream.set_nodelay(true);
        while let Ok(Some(mut request)) = self.receive().await {
            self.seen.send_modify(|seen| {
                seen.under_way += 1;
                seen.most_at_once = seen.most_at_once.max(seen.under_way);
                request.under_way = seen.under_way;
                seen.requests.push(request.clone());
            });
            let reply = {
                let mut answer = self.answer.lock().expect("an answer that panics fails its test");
                answer(&request)
            };
            let goes_on = self.reply(&reply).await;
            self.seen.send_modify(|seen| {
                seen.under_way -= 1;
                seen.hung_up += usize::from(goes_on.is_err());
            });
            if !goes_on.unwrap_or(false) {
                break;
            }
        }
    }

    async fn receive(&mut self) -> io::Result<Option<Received>> {
        let head = loop {
            if let Some(end) = self.unread.windows(4).position(|it| it == b"\r\n\r\n") {
                break self.unread.drain(..end + 4).collect::<Vec<_>>();
            }
            if self.stream.read_buf(&mut self.unread).await? == 0 {
                return Ok(None);
            }
        };
        let mut request = parse(&String::from_utf8_lossy(&head));
        let length = request.header("content-length").and_then(|it| it.parse().ok()).unwrap_or(0);
        while self.unread.len() < length {
            if self.stream.read_buf(&mut self.unread).await? == 0 {
                return Ok(None);
            }
        }
        request.bytes = self.unread.drain(..length).collect();
        request.body = serde_json::from_slice(&request.bytes).unwrap_or_default();
        Ok(Some(request))
    }

    /// Carries out a reply; tells whether the connection can be used again.
    async fn reply(&mut self, reply: &Reply) -> io::Result<bool> {
        let mut unsent = reply.head();
        for step in &reply.steps {
            match step {
                Step::Begin => self.stream.write_all(&std::mem::take(&mut unsent)).await?,
                Step::Send(bytes) => {
                    unsent.extend(reply.framed(bytes));
                    self.stream.write_all(&std::mem::take(&mut unsent)).await?;
                }
                Step::Wait(door) => self.while_connected(door.pass()).await?,
            }
        }
        if reply.end == End::Proper && reply.is_chunked {
            unsent.extend(b"0\r\n\r\n");
        }
        self.stream.write_all(&unsent).await?;
        if reply.end == End::Never {
            self.while_connected(std::future::pending()).await?;
        }
        Ok(reply.end == End::Proper && reply.is_chunked)
    }

    /// Waits for `event`, or fails when the client closes the connection before.
    async fn while_connected(&mut self, event: impl Future<Output = ()>) -> io::Result<()> {
        tokio::pin!(event);
        loop {
            tokio::select! {
                () = &mut event => return Ok(()),
                read = self.stream.read_buf(&mut self.unread) => {
                    if read? == 0 {
                        return Err(io::ErrorKind::ConnectionAborted.into());
                    }
                }
            }
        }
    }
}

fn parse(head: &str) -> Received {
    let mut lines = head.lines();
    let line = lines.next().unwrap_or_default().to_owned();
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.trim().to_lowercase(), value.trim().to_owned()))
    };
    Received { line, headers: lines.filter_map(header).collect(), ..Received::default() }
}
