//! Replies of model servers, in every protocol.

use folkmoot_agents::{Protocol, Recorded};
use folkmoot_core::{
    call::{Answer, Fault, Usage},
    event::Settled,
};

/// Whatever a server sends and however it is divided, it comes to the same answer or the same fault,
/// and what it comes to can be kept.
///
/// The first line says how it comes, as in `200 event-stream 7`: its status, its type, the size of
/// its chunks.
pub fn reply(bytes: &[u8]) {
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    let (head, body) = (&bytes[..end], bytes.get(end + 1..).unwrap_or_default());
    let head = String::from_utf8_lossy(head);
    let mut words = head.split(' ');
    let status = words.next().and_then(|it| it.parse().ok()).unwrap_or(200);
    let content_type = words.next().unwrap_or_default();
    let size = words.next().and_then(|it| it.parse().ok()).unwrap_or(1).max(1);
    for protocol in [Protocol::Chat, Protocol::Messages, Protocol::Gemini] {
        let read = |chunks: &[&[u8]]| Recorded { status, content_type, chunks }.read(protocol);
        let whole = read(&[body]);
        let chunks: Vec<&[u8]> = body.chunks(size).collect();
        assert_eq!(read(&chunks), whole, "{protocol} in chunks of {size}");
        check(whole);
    }
}

fn check(read: Result<(Answer, Usage), Fault>) {
    match read {
        Ok((answer, usage)) => {
            assert!(!answer.is_blank(), "a blank reply is an answer");
            assert!(usage.tokens.total() > 0, "it is free");
            let settled = Settled::from(Ok(answer.into()));
            let json = serde_json::to_string(&settled).expect("it is plain data");
            let read: Settled = serde_json::from_str(&json).expect("it can be read back");
            assert_eq!(read, settled, "what was written is not what is read");
        }
        Err(fault) => {
            let text = fault.to_string();
            assert!(!text.trim().is_empty(), "{fault:?} says nothing");
            assert!(text.chars().count() < 2000, "{} characters of error", text.chars().count());
        }
    }
}
