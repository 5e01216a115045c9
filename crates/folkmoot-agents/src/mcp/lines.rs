//! The messages of a server that is a program: one a line, both ways (rules.md 11.2, 11.5).

use std::{
    io,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU64, Ordering},
    },
};

use regex::bytes::Regex;
use rmcp::{
    RoleClient,
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader},
    sync::{Mutex, watch},
    time::{Instant, sleep_until},
};

use crate::process::{Exit, TRAILING};

/// The longest message, in bytes.
pub(super) const LONGEST: usize = 16 << 20;

/// How much of the beginning and of the end of a message that is too long is kept, to find out which
/// request it answers.
const ENDS: usize = 256;

/// Speaks with a program.
pub(super) struct Lines<W, R> {
    input: Arc<Mutex<Option<W>>>,
    output: BufReader<R>,
    /// The line under way.
    line: Line,
    noise: Arc<AtomicU64>,
    ended: watch::Receiver<Option<Exit>>,
    /// When nobody waits any longer for what an ended program has left in its pipe.
    over: Option<Instant>,
}

/// A line as far as it has come.
#[derive(Default)]
struct Line {
    bytes: Vec<u8>,
    /// The end of a line that is too long; of that one, `bytes` is the beginning.
    end: Vec<u8>,
    size: usize,
}

impl Line {
    fn push(&mut self, more: &[u8]) {
        self.size = self.size.saturating_add(more.len());
        if self.size <= LONGEST {
            return self.bytes.extend_from_slice(more);
        }
        if self.end.is_empty() {
            let from = self.bytes.len().saturating_sub(ENDS);
            self.end.extend_from_slice(&self.bytes[from..]);
            self.bytes.truncate(ENDS);
            self.bytes.shrink_to_fit();
        }
        let from = more.len().saturating_sub(ENDS);
        self.end.extend_from_slice(&more[from..]);
        let surplus = self.end.len().saturating_sub(ENDS);
        self.end.drain(..surplus);
    }

    /// The message it is. One that is too long costs the request that it answers, and nothing else.
    fn read(self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let message = if self.size <= LONGEST {
            if let Ok(message) = serde_json::from_slice(&self.bytes) {
                return Some(message);
            }
            // So does one that cannot be read, for example as it is too deep.
            is_answer(&self.bytes).then_some("the answer cannot be read".to_owned())?
        } else {
            format!("the answer has {} bytes, the most is {LONGEST}", self.size)
        };
        let end = if self.end.is_empty() { &self.bytes } else { &self.end };
        let id = answered(&self.bytes, end)?;
        let error = json!({ "code": -32000, "message": message });
        serde_json::from_value(json!({ "jsonrpc": "2.0", "id": id, "error": error })).ok()
    }
}

/// Whether a line that cannot be read is an answer all the same, and whole.
fn is_answer(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    let start = &line[..line.len().min(ENDS)];
    let has = |word: &[u8]| start.windows(word.len()).any(|it| it == word);
    line.ends_with(b"}") && has(b"\"result\"") && !has(b"\"method\"")
}

/// The request that a message answers which begins and ends so: its number stands before or behind all
/// that is long.
fn answered(start: &[u8], end: &[u8]) -> Option<u64> {
    static FIRST: LazyLock<Regex> = LazyLock::new(|| {
        let text = r#"^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d+)\s*,"#;
        Regex::new(text).expect("it is an expression")
    });
    static LAST: LazyLock<Regex> = LazyLock::new(|| {
        let text = r#",\s*"id"\s*:\s*(\d+)\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$"#;
        Regex::new(text).expect("it is an expression")
    });
    let found = FIRST.captures(start).or_else(|| LAST.captures(end))?;
    std::str::from_utf8(found.get(1)?.as_bytes()).ok()?.parse().ok()
}

impl<W, R: AsyncRead> Lines<W, R> {
    /// Speaks through these pipes of a program that tells when it has ended; counts what it says that is
    /// no message.
    pub(super) fn new(
        input: W,
        output: R,
        ended: watch::Receiver<Option<Exit>>,
        noise: Arc<AtomicU64>,
    ) -> Lines<W, R> {
        Lines {
            input: Arc::new(Mutex::new(Some(input))),
            output: BufReader::with_capacity(64 << 10, output),
            line: Line::default(),
            noise,
            ended,
            over: None,
        }
    }

    /// Waits until the program has ended, and what it left was given time to be read.
    async fn is_over(ended: &mut watch::Receiver<Option<Exit>>, over: &mut Option<Instant>) {
        let _ = ended.wait_for(Option::is_some).await;
        sleep_until(*over.get_or_insert_with(|| Instant::now() + TRAILING)).await;
    }
}

impl<W, R> Transport<RoleClient> for Lines<W, R>
where
    W: AsyncWrite + Send + Unpin + 'static,
    R: AsyncRead + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let input = self.input.clone();
        async move {
            let mut text = serde_json::to_vec(&message)?;
            text.push(b'\n');
            let mut input = input.lock().await;
            let input = input.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
            input.write_all(&text).await?;
            input.flush().await
        }
    }

    /// Nothing that was read is lost if the future is dropped.
    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let Lines { output, line, noise, ended, over, .. } = self;
            let buffer = tokio::select! {
                biased;
                buffer = output.fill_buf() => buffer.ok().filter(|buffer| !buffer.is_empty())?,
                () = Self::is_over(ended, over) => return None,
            };
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let count = end.unwrap_or(buffer.len());
            line.push(&buffer[..count]);
            output.consume(count + usize::from(end.is_some()));
            if end.is_some() {
                match std::mem::take(line).read() {
                    Some(message) => return Some(message),
                    None => drop(noise.fetch_add(1, Ordering::Relaxed)),
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        drop(self.input.lock().await.take());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The messages in `text`, whose pieces have so many bytes, and how many lines were none.
    async fn messages(text: &[u8], size: usize) -> (Vec<String>, u64) {
        let (mut writing, reading) = tokio::io::duplex(1 << 16);
        let (_tell, ended) = watch::channel(None);
        let noise = Arc::new(AtomicU64::new(0));
        let mut lines = Lines::new(tokio::io::sink(), reading, ended, noise.clone());
        let text = text.to_owned();
        let writer = tokio::spawn(async move {
            for piece in text.chunks(size) {
                writing.write_all(piece).await.expect("it is read");
            }
        });
        let mut heard = Vec::new();
        while let Some(message) = lines.receive().await {
            heard.push(serde_json::to_string(&message).expect("it is plain data"));
        }
        writer.await.expect("it wrote");
        (heard, noise.load(Ordering::Relaxed))
    }

    fn result(id: u64, text: &str) -> String {
        let content = json!([{ "type": "text", "text": text }]);
        let result = json!({ "content": content });
        json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string() + "\n"
    }

    #[tokio::test]
    async fn a_long_message_reads_alike_however_it_is_cut() {
        let text = result(1, &"𝄞é".repeat((5 << 20) / 6));
        let (whole, _) = messages(text.as_bytes(), 65536).await;
        assert!(whole.len() == 1 && whole[0].len() > 5 << 20);
        for size in [1, 3, 4097] {
            assert_eq!(messages(text.as_bytes(), size).await, (whole.clone(), 0), "{size}");
        }
    }

    #[tokio::test]
    async fn what_is_no_message_is_skipped_and_counted() {
        let noise =
            "Server v1.0\n\nWARN low disk\n{}\n{\"jsonrpc\": \"2.0\", \"id\": 1, \n\u{fffd}\n";
        let text = [noise, &result(1, "a"), noise, &result(2, "b"), "half a li"].concat();
        let (heard, skipped) = messages(text.as_bytes(), 7).await;
        assert_eq!((heard.len(), skipped), (2, 12));
    }

    #[tokio::test]
    async fn a_message_that_is_too_long_costs_the_request_that_it_answers() {
        let long = "x".repeat(LONGEST);
        let behind =
            format!("{{\"result\": {{\"a\": \"{long}\"}}, \"jsonrpc\": \"2.0\", \"id\": 8}}\n");
        let nobodys = format!("{long}\n");
        let text = [result(7, &long), behind, nobodys, result(9, "b")].concat();
        let (heard, skipped) = messages(text.as_bytes(), 65536).await;
        let ids: Vec<&str> = heard.iter().map(|it| &it[..24]).collect();
        let expected = ["7", "8", "9"].map(|id| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id}"));
        assert_eq!((ids.len(), skipped), (3, 1));
        assert!(
            ids.iter().zip(&expected).all(|(id, expected)| id.starts_with(&**expected)),
            "{ids:?}"
        );
        assert!(heard[0].contains("the most is") && heard[1].contains("the most is"));
    }

    #[tokio::test]
    async fn an_answer_that_is_too_deep_costs_the_request_that_it_answers() {
        let deep = [&"[".repeat(200_000), &*"]".repeat(200_000)].concat();
        let line = |id: u64| {
            format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":{deep}}}}}\n")
        };
        let asked =
            format!("{{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"x\",\"params\":{deep}}}\n");
        let (heard, skipped) =
            messages([line(7), asked, result(9, "b")].concat().as_bytes(), 4096).await;
        assert_eq!((heard.len(), skipped), (2, 1), "{heard:?}");
        assert!(heard[0].contains("\"id\":7") && heard[0].contains("cannot be read"), "{heard:?}");
    }
}
