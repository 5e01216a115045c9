//! The body of a reply as it comes in.

use std::pin::Pin;

use bytes::Bytes;
use folkmoot_core::call::FailureKind;
use futures_util::{Stream, StreamExt};
use tokio::time::{Duration, Instant, timeout};

use super::{draft::Draft, error::malformed};
use crate::{patience::Patience, retry::Failure, sse::Reader};

/// The most bytes of one event.
const EVENT_LIMIT: usize = 8 << 20;

/// The most bytes of one reply.
const REPLY_LIMIT: usize = 64 << 20;

/// How long the proper end of a body is waited for behind its last event, so that the connection can
/// be used again.
const TAIL: Duration = Duration::from_millis(20);

/// The byte order mark.
const MARK: &[u8] = b"\xEF\xBB\xBF";

type Chunks<'a> = Pin<Box<dyn Stream<Item = Result<Bytes, Failure>> + Send + 'a>>;

/// A body under way, with bounds on its size and its silences.
pub(super) struct Body<'a> {
    chunks: Chunks<'a>,
    /// What was looked at and not taken yet.
    held: Vec<u8>,
    patience: &'a Patience,
    has_begun: bool,
    /// How many more bytes it may have.
    left: usize,
}

impl<'a> Body<'a> {
    /// The body that comes in `chunks`.
    pub(super) fn new(
        chunks: impl Stream<Item = Result<Bytes, Failure>> + Send + 'a,
        patience: &'a Patience,
    ) -> Body<'a> {
        let (chunks, held) = (Box::pin(chunks), Vec::new());
        Body { chunks, held, patience, has_begun: false, left: REPLY_LIMIT }
    }

    /// Its first byte that is no blank, the mark of an encoding left aside. Nothing is taken.
    pub(super) async fn first_byte(&mut self) -> Result<Option<u8>, Failure> {
        let (mut held, mut blank) = (Vec::new(), 0);
        loop {
            blank += blanks(&held[blank..]);
            let first = first_of(&held[blank..]);
            let chunk = if first.is_some() { None } else { self.next().await? };
            let Some(chunk) = chunk else {
                self.held = held;
                return Ok(first);
            };
            held.extend_from_slice(&chunk);
        }
    }

    /// All of it.
    pub(super) async fn collect(mut self) -> Result<Vec<u8>, Failure> {
        let mut whole = Vec::new();
        while let Some(chunk) = self.next().await? {
            whole.extend_from_slice(&chunk);
        }
        Ok(whole)
    }

    /// Reads events into `draft` until the reply is complete; what comes after that, or fails to
    /// come, changes nothing but the bill.
    pub(super) async fn read_events(mut self, draft: &mut Draft<'_>) -> Result<(), Failure> {
        let mut events = Events::new();
        while !draft.is_complete() {
            let Some(chunk) = self.next().await? else { return Err(cut_off()) };
            events.take(&chunk, draft)?;
        }
        let deadline = Instant::now() + self.patience.trailing;
        while events.are_welcome(draft) {
            let wait = deadline.saturating_duration_since(Instant::now());
            let Ok(Ok(Some(chunk))) = timeout(wait, self.next()).await else { return Ok(()) };
            events.take(&chunk, draft)?;
        }
        let _ = timeout(TAIL, async { while let Ok(Some(_)) = self.next().await {} }).await;
        Ok(())
    }

    async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        if !self.held.is_empty() {
            return Ok(Some(std::mem::take(&mut self.held).into()));
        }
        let wait = if self.has_begun { self.patience.idle } else { self.patience.first_byte };
        let chunk = timeout(wait, self.chunks.next()).await.map_err(|_| silence(wait))?;
        let Some(chunk) = chunk.transpose()? else { return Ok(None) };
        self.has_begun = true;
        self.left = self.left.checked_sub(chunk.len()).ok_or_else(|| {
            let text = format!("the reply is larger than {REPLY_LIMIT} bytes");
            Failure::new(FailureKind::Protocol, text)
        })?;
        Ok(Some(chunk))
    }
}

/// The events of a stream, as they add to a draft.
pub(super) struct Events {
    reader: Reader,
    /// Whether one was too large, so that nothing behind it can be read.
    has_broken: bool,
}

impl Events {
    /// Those of a new stream.
    pub(super) fn new() -> Events {
        Events { reader: Reader::new(EVENT_LIMIT), has_broken: false }
    }

    /// Whether more of them can be read and would be of use.
    pub(super) fn are_welcome(&self, draft: &Draft<'_>) -> bool {
        !draft.is_over() && !self.has_broken
    }

    /// Adds those that `chunk` completes, up to the end of the reply. What cannot be read behind a
    /// complete reply is no failure.
    pub(super) fn take(&mut self, chunk: &[u8], draft: &mut Draft<'_>) -> Result<(), Failure> {
        let mut events = Vec::new();
        let read = self.reader.read(chunk, &mut events);
        self.has_broken = read.is_err();
        for event in events {
            let was_complete = draft.is_complete();
            match draft.take_event(&event) {
                Err(_) if was_complete => {}
                result => result?,
            }
            if draft.is_over() {
                return Ok(());
            }
        }
        if draft.is_complete() { Ok(()) } else { read.map_err(malformed) }
    }
}

/// The stream ended before the reply.
pub(super) fn cut_off() -> Failure {
    Failure::new(FailureKind::Incomplete, "the reply was cut off: it has no end mark")
}

/// How many bytes at the beginning of `text` are blanks and marks of an encoding.
pub(super) fn blanks(text: &[u8]) -> usize {
    let mut rest = text.trim_ascii_start();
    while let Some(behind) = rest.strip_prefix(MARK) {
        rest = behind.trim_ascii_start();
    }
    text.len() - rest.len()
}

/// The first byte of a text without blanks before it, unless it may be that of a mark.
pub(super) fn first_of(text: &[u8]) -> Option<u8> {
    let is_cut_mark = text.len() < MARK.len() && MARK.starts_with(text);
    text.first().copied().filter(|_| !is_cut_mark)
}

/// The other side said nothing for too long.
pub(super) fn silence(wait: Duration) -> Failure {
    let text = format!("nothing came for {} s", wait.as_secs_f64());
    Failure::new(FailureKind::Timeout, text)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use folkmoot_core::call::{Answer, Usage};
    use folkmoot_runtime::backend::Delta;
    use folkmoot_stub::Completion;
    use futures_util::stream;
    use serde_json::json;
    use tokio::time::sleep;

    use super::{
        super::{Wire, chat::Chat, wire},
        *,
    };
    use crate::{known::Quirks, provider::Protocol};

    const CHAT: Chat = Chat { quirks: Quirks::USUAL };

    const HELLO: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"hello\"}}]}\n\n";
    const STOP: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    const USAGE: &str =
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2}}\n\n";
    const DONE: &str = "data: [DONE]\n\n";

    /// A chunk and the seconds after which it comes.
    type Timed<'a> = (u64, &'a str);

    /// Reads chunks that come as timed and then nothing, the connection left open.
    async fn read(timed: &[Timed<'_>]) -> (Result<Draft<'static>, Failure>, Duration) {
        let chunks = stream::iter(timed).then(|(seconds, chunk)| async move {
            sleep(Duration::from_secs(*seconds)).await;
            Ok(Bytes::from((*chunk).to_owned()))
        });
        read_from(chunks.chain(stream::pending())).await
    }

    async fn read_closed(text: &str) -> Result<Draft<'static>, Failure> {
        read_from(stream::iter([Ok(Bytes::from(text.to_owned()))])).await.0
    }

    async fn read_from(
        chunks: impl Stream<Item = Result<Bytes, Failure>> + Send,
    ) -> (Result<Draft<'static>, Failure>, Duration) {
        let start = Instant::now();
        let patience = Patience::default();
        let mut draft = Draft::new(&CHAT, &|_| {});
        let read = Body::new(chunks, &patience).read_events(&mut draft).await;
        (read.map(|()| draft), start.elapsed())
    }

    fn text(draft: Result<Draft<'_>, Failure>) -> String {
        let answer = draft.and_then(|draft| draft.finish("p", "call"));
        answer.map_or_else(|failure| format!("{:?}", failure.kind), |it| it.text.to_string())
    }

    #[tokio::test(start_paused = true)]
    async fn an_end_mark_ends_the_reply_at_once_though_the_connection_stays_open() {
        let (draft, took) = read(&[(0, HELLO), (1, STOP), (1, USAGE), (0, DONE)]).await;
        assert_eq!((text(draft), took), ("hello".to_owned(), Duration::from_secs(2) + TAIL));
        let (draft, took) = read(&[(0, HELLO), (1, DONE)]).await;
        assert_eq!((text(draft), took), ("hello".to_owned(), Duration::from_secs(1) + TAIL));
    }

    #[tokio::test(start_paused = true)]
    async fn behind_a_finish_reason_only_the_usage_is_waited_for_and_not_long() {
        let (draft, took) = read(&[(0, HELLO), (0, STOP), (1, USAGE)]).await;
        assert_eq!(took, Duration::from_secs(1) + TAIL);
        let usage = draft.expect("it is complete").usage(0);
        assert_eq!((usage.tokens.input, usage.estimated), (7, false));

        let ping = ": still here\n\n";
        let (draft, took) = read(&[(0, HELLO), (0, STOP), (1, ping), (1, ping), (1, ping)]).await;
        assert_eq!(took, Duration::from_secs(2));
        assert!(draft.expect("it is complete").usage(0).estimated);
    }

    #[tokio::test(start_paused = true)]
    async fn any_byte_keeps_a_reply_alive_and_silence_ends_it() {
        let ping = ":\n";
        let alive = [(500, ping), (119, HELLO), (119, ping), (119, STOP), (0, DONE)];
        assert_eq!(text(read(&alive).await.0), "hello");

        let (draft, took) = read(&[(0, HELLO), (1, ping)]).await;
        assert_eq!((text(draft), took), ("Timeout".to_owned(), Duration::from_secs(121)));
        let (draft, took) = read(&[]).await;
        assert_eq!((text(draft), took), ("Timeout".to_owned(), Duration::from_mins(10)));
    }

    #[tokio::test]
    async fn an_end_without_a_mark_is_no_end() {
        assert_eq!(text(read_closed(HELLO).await), "Incomplete");
        assert_eq!(text(read_closed("").await), "Incomplete");
        assert_eq!(text(read_closed(&format!("{HELLO}{STOP}")).await), "hello");
        let unfinished = format!("{HELLO}{}", STOP.trim_end());
        assert_eq!(text(read_closed(&unfinished).await), "Incomplete");
    }

    #[tokio::test]
    async fn what_comes_after_the_end_cannot_spoil_the_reply() {
        for after in ["data: {oops\n\n", "event: error\ndata: late\n\n", HELLO] {
            for end in [STOP, DONE] {
                for usage in ["", USAGE] {
                    let stream = format!("{HELLO}{end}{after}{usage}");
                    let draft = read_closed(&stream).await;
                    let is_over = draft.as_ref().is_ok_and(Draft::is_over);
                    assert_eq!(is_over, end == DONE || usage == USAGE, "{stream}");
                    assert_eq!(text(draft), "hello", "{stream}");
                }
            }
        }
    }

    #[tokio::test]
    async fn a_malformed_line_or_an_error_fails_the_reply_wherever_it_stands() {
        let cut = format!("{}{}\n\n", &HELLO[..30], " ".repeat(4000));
        for (bad, kind) in [
            (&*cut, "Protocol"),
            ("data: {oops\n\n", "Protocol"),
            ("data: 12\n\n", "Protocol"),
            ("data: {\"choices\": 3}\n\n", "Protocol"),
            ("data: {\"error\": {\"code\": 429, \"message\": \"slow\"}}\n\n", "RateLimited"),
            ("event: error\ndata: boom\n\n", "Transport"),
        ] {
            for stream in [format!("{bad}{HELLO}{STOP}"), format!("{HELLO}{bad}{STOP}{DONE}")] {
                assert_eq!(text(read_closed(&stream).await), kind, "{stream}");
            }
        }
    }

    #[tokio::test]
    async fn what_is_too_large_behind_a_complete_reply_does_no_harm_in_any_division() {
        let stream = [HELLO, STOP, "data: ", &"x".repeat(EVENT_LIMIT)].concat();
        let (reply, surplus) = stream.split_at(HELLO.len() + STOP.len());
        let parts = [reply, surplus].map(|part| Ok(Bytes::from(part.to_owned())));
        assert_eq!(text(read_closed(&stream).await), "hello");
        assert_eq!(text(read_from(stream::iter(parts)).await.0), "hello");
        assert_eq!(text(read_closed(surplus).await), "Protocol");
    }

    #[tokio::test]
    async fn blanks_before_a_reply_are_looked_at_once_each() {
        let blanks = (0..1 << 17).map(|_| " ").chain(["\u{feff}", "\n", "{"]);
        let chunks = stream::iter(blanks.map(|text| Ok(Bytes::from(text))));
        let patience = Patience::default();
        assert_eq!(Body::new(chunks, &patience).first_byte().await, Ok(Some(b'{')));
    }

    #[tokio::test]
    async fn a_reply_has_a_size_limit() {
        let chunk = Bytes::from(": much\n".repeat(1 << 20));
        let endless = stream::repeat_with(move || Ok(chunk.clone()));
        assert_eq!(text(read_from(endless).await.0), "Protocol");
    }

    /// What is shown of a stream that comes in `parts`, and what it comes to.
    async fn read_in(wire: &dyn Wire, parts: [Vec<u8>; 2]) -> (Vec<String>, Answer, Usage) {
        let shown = Mutex::new(Vec::new());
        let show = |delta: Delta<'_>| {
            shown.lock().expect("nothing panics in it").push(format!("{delta:?}"));
        };
        let patience = Patience::default();
        let mut draft = Draft::new(wire, &show);
        let chunks = stream::iter(parts.map(|part| Ok(part.into())));
        Body::new(chunks, &patience).read_events(&mut draft).await.expect("it is complete");
        let usage = draft.usage(0);
        let answer = draft.finish("p", "call").expect("it says something");
        (shown.into_inner().expect("nothing panics in it"), answer, usage)
    }

    #[tokio::test]
    async fn every_division_of_a_stream_shows_and_gives_the_same() {
        let completion = Completion {
            reasoning: Some("研究 first.".to_owned()),
            signature: Some("c2lnbmF0dXJl".to_owned()),
            tool_calls: vec![("c1".to_owned(), "look".to_owned(), json!({"at": "研"}))],
            ..Completion::text(["hel", "lo 世界"])
        };
        for (protocol, over) in [
            (Protocol::Chat, folkmoot_stub::Wire::Chat),
            (Protocol::Messages, folkmoot_stub::Wire::Messages),
            (Protocol::Gemini, folkmoot_stub::Wire::Gemini),
        ] {
            let wire = wire(protocol, Quirks::USUAL).expect("it is supported");
            let stream = completion.clone().over(over).frames().concat().replace('\n', "\r\n");
            let whole = read_in(&*wire, [stream.clone().into(), Vec::new()]).await;
            assert_eq!(*whole.1.text, *"hello 世界", "{protocol}");
            assert_eq!(whole.1.tool_calls[0].arguments, json!({"at": "研"}), "{protocol}");
            assert_eq!((whole.2.tokens.total(), whole.2.estimated), (15, false), "{protocol}");
            for at in 0..stream.len() {
                let (left, right) = stream.as_bytes().split_at(at);
                let divided = read_in(&*wire, [left.to_vec(), right.to_vec()]).await;
                assert_eq!(divided, whole, "{protocol} cut at {at}");
            }
        }
    }
}
