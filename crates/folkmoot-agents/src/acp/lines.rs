//! The messages of an agent, one a line of its output (rules.md 11.2, 11.5).
//!
//! Lines are joined as bytes and decoded whole. What is no message is counted and skipped; one that is
//! too long costs only itself: whoever waits for an answer to it gets an error.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use futures_util::{Sink, Stream, sink, stream};
use serde_json::{Value, json};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};

/// The longest message, in bytes.
pub(super) const LONGEST: usize = 32 << 20;

/// How much of the beginning of a message that is too long is kept: enough to tell what it is.
const OPENING: usize = 512;

/// The messages that come, as text. `noise` counts the lines that are none.
pub(super) fn incoming(
    stdout: ChildStdout,
    noise: Arc<AtomicU64>,
) -> impl Stream<Item = io::Result<String>> + Send + 'static {
    messages(BufReader::with_capacity(64 << 10, stdout), noise)
}

fn messages(
    stdout: impl AsyncBufRead + Unpin + Send + 'static,
    noise: Arc<AtomicU64>,
) -> impl Stream<Item = io::Result<String>> + Send + 'static {
    stream::unfold((stdout, noise), |(mut stdout, noise)| async move {
        loop {
            let line = next_line(&mut stdout).await?;
            let is_blank = line.start.iter().all(u8::is_ascii_whitespace);
            match message(line) {
                Some(message) => return Some((Ok(message), (stdout, noise))),
                None if is_blank => {}
                None => {
                    noise.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    })
}

/// Where messages go. Whoever stops reading has not failed by that.
pub(super) fn outgoing(stdin: ChildStdin) -> impl Sink<String, Error = io::Error> + Send + 'static {
    sink::unfold(Some(stdin), |stdin, line: String| async move {
        let Some(mut stdin) = stdin else { return Ok(None) };
        let written = write(&mut stdin, line).await;
        Ok(written.is_ok().then_some(stdin))
    })
}

async fn write(stdin: &mut (impl AsyncWrite + Unpin), mut line: String) -> io::Result<()> {
    line.push('\n');
    stdin.write_all(line.as_bytes()).await?;
    stdin.flush().await
}

/// A line without its end.
struct Line {
    /// All of it, or the beginning of one that is too long.
    start: Vec<u8>,
    is_whole: bool,
}

/// Reads a line; nothing at the end. One that the end cuts off counts too.
async fn next_line(stdout: &mut (impl AsyncBufRead + Unpin)) -> Option<Line> {
    let mut line = Line { start: Vec::new(), is_whole: true };
    let mut has_begun = false;
    loop {
        let buffer = stdout.fill_buf().await.ok()?;
        if buffer.is_empty() {
            return has_begun.then_some(line);
        }
        has_begun = true;
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let part = &buffer[..end.unwrap_or(buffer.len())];
        if line.is_whole {
            line.start.extend_from_slice(part);
            if line.start.len() > LONGEST {
                line.start.truncate(OPENING);
                line.start.shrink_to_fit();
                line.is_whole = false;
            }
        }
        let count = part.len() + usize::from(end.is_some());
        stdout.consume(count);
        if end.is_some() {
            return Some(line);
        }
    }
}

/// The message in a line, if it is one.
fn message(line: Line) -> Option<String> {
    if !line.is_whole {
        return in_place_of(&line.start);
    }
    let text = String::from_utf8(line.start).ok()?;
    let value: Value = serde_json::from_str(&text).ok()?;
    let is_message = value.get("method").is_some_and(Value::is_string)
        || value.get("id").is_some()
            && (value.get("result").is_some() || value.get("error").is_some());
    (is_message && value["jsonrpc"] == "2.0").then_some(text)
}

/// What stands for a message that is too long, of which this is the beginning: a request that nobody
/// knows, so that it is answered with an error, or an error in place of an answer.
fn in_place_of(opening: &[u8]) -> Option<String> {
    let opening = String::from_utf8_lossy(opening);
    let (_, behind) = opening.split_once("\"id\":")?;
    let id = serde_json::Deserializer::from_str(behind).into_iter::<Value>().next()?.ok()?;
    let text = format!("the message is longer than {} MiB", LONGEST >> 20);
    let message = if opening.contains("\"method\":") {
        json!({ "jsonrpc": "2.0", "id": id, "method": "too_long", "params": { "why": text } })
    } else {
        json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32600, "message": text } })
    };
    Some(message.to_string())
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt as _;

    use super::*;

    /// The messages in `bytes` where the pipe hands over so many at once, and the count of the rest.
    async fn read(bytes: &[u8], at_once: usize) -> (Vec<String>, u64) {
        let noise = Arc::new(AtomicU64::new(0));
        let bytes = BufReader::with_capacity(at_once, io::Cursor::new(bytes.to_vec()));
        let read = messages(bytes, noise.clone());
        let found = read.map(|it| it.expect("it can be read")).collect().await;
        (found, noise.load(Ordering::Relaxed))
    }

    #[tokio::test]
    async fn lines_that_are_no_messages_are_counted_and_skipped_however_they_are_cut() {
        let sound = r#"{"jsonrpc":"2.0","method":"a","params":{"text":"研究🦀"}}"#;
        let answer = r#"{"jsonrpc":"2.0","id":1,"result":null}"#;
        let text = format!(
            "Welcome!\n\n{sound}\r\n{{}}\n[1]\nnull\n{{\"jsonrpc\":\"2.0\",\n{answer}\nby\u{7}e"
        );
        let mut bytes = text.into_bytes();
        bytes.extend(b"\xff\n");
        for at_once in [1, 3, 4097] {
            let (found, noise) = read(&bytes, at_once).await;
            assert_eq!((found, noise), (vec![format!("{sound}\r"), answer.to_owned()], 6));
        }
    }

    #[tokio::test]
    async fn a_message_that_is_too_long_costs_only_itself() {
        let long = "x".repeat(LONGEST);
        let text = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"fs/write_text_file\",\"params\":\"{long}\"}}\n\
             {{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":\"{long}\"}}\n\
             {{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":\"{long}\"}}\n\
             {{\"jsonrpc\":\"2.0\",\"id\":8,\"result\":1}}\n"
        );
        let (found, noise) = read(text.as_bytes(), 1 << 20).await;
        let [request, answer, sound] = &found[..] else { panic!("{found:?}") };
        assert!(request.contains(r#""id":7,"method":"too_long""#), "{request}");
        assert!(answer.contains(r#""id":"a","error""#), "{answer}");
        assert_eq!((&**sound, noise), (r#"{"jsonrpc":"2.0","id":8,"result":1}"#, 1));
    }
}
