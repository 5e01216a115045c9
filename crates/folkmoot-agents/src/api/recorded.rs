//! Replies of model servers that somebody has kept, read as they were when they came.

use folkmoot_core::call::{Answer, Fault, Usage};

use super::{
    Shape,
    body::{Events, blanks, cut_off, first_of},
    draft::Draft,
    error::{in_refusal, kind_of},
    page, shape_of, wire,
};
use crate::{
    known::Quirks,
    provider::{Protocol, Unusable},
    retry::Failure,
};

/// What a model server sent in reply to one request, to be read again without asking it: to see why
/// a reply was refused, or whether a server speaks a protocol as it should.
#[derive(Clone, Copy, Debug)]
pub struct Recorded<'a> {
    /// The status of the response.
    pub status: u16,
    /// The type of its body, such as `text/event-stream`; without one it is taken for a stream.
    pub content_type: &'a str,
    /// Its body, in any division.
    pub chunks: &'a [&'a [u8]],
}

impl Recorded<'_> {
    /// What it comes to, as the reply of a server that speaks `protocol`: the answer and what it used.
    pub fn read(&self, protocol: Protocol) -> Result<(Answer, Usage), Fault> {
        let Some(wire) = wire(protocol, Quirks::USUAL) else {
            let name = "recorded".to_owned();
            return Err(Fault::from(&Unusable::Protocol { name, protocol }));
        };
        let mut draft = Draft::new(&*wire, &|_| {});
        let read = self.read_into(&mut draft);
        let usage = draft.usage(0);
        let answer = read.and_then(|()| draft.finish("recorded", "call"));
        answer.map(|answer| (answer, usage)).map_err(|it| Fault::failed(it.kind, it.text))
    }

    fn read_into(&self, draft: &mut Draft<'_>) -> Result<(), Failure> {
        if !(200..300).contains(&self.status) {
            let words = in_refusal(&String::from_utf8_lossy(&self.chunks.concat()));
            let text = format!("{}; {words}", self.status);
            return Err(Failure::new(kind_of(self.status, &words), text));
        }
        let whole = self.chunks.concat();
        let first = first_of(&whole[blanks(&whole)..]);
        match shape_of(&self.content_type.to_lowercase(), first) {
            Shape::Whole => draft.take_whole(&whole),
            Shape::Events => self.read_events(draft),
            Shape::Page => Err(page(self.content_type)),
        }
    }

    fn read_events(&self, draft: &mut Draft<'_>) -> Result<(), Failure> {
        let mut events = Events::new();
        for chunk in self.chunks {
            if events.are_welcome(draft) {
                events.take(chunk, draft)?;
            }
        }
        if draft.is_complete() { Ok(()) } else { Err(cut_off()) }
    }
}

#[cfg(test)]
mod tests {
    use folkmoot_core::call::FailureKind;
    use folkmoot_stub::{Completion, Wire};

    use super::*;

    fn read(status: u16, content_type: &str, body: &str) -> Result<String, FailureKind> {
        let chunks = [body.as_bytes()];
        let recorded = Recorded { status, content_type, chunks: &chunks };
        match recorded.read(Protocol::Chat) {
            Ok((answer, _)) => Ok(answer.text.to_string()),
            Err(Fault::Failed { kind, .. }) => Err(kind),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_recorded_reply_is_read_as_one_that_comes() {
        let hello = Completion::text(["hel", "lo"]).over(Wire::Chat);
        let stream = hello.frames().concat();
        assert_eq!(read(200, "text/event-stream", &stream), Ok("hello".to_owned()));
        assert_eq!(read(200, "", &stream), Ok("hello".to_owned()));
        assert_eq!(read(200, "", &stream[..20]), Err(FailureKind::Incomplete));
        assert_eq!(read(200, "text/html", &stream), Ok("hello".to_owned()));
        assert_eq!(read(200, "text/html", "Please sign in"), Err(FailureKind::Config));
        let whole = r#"{"choices": [{"message": {"content": "hello"}, "finish_reason": "stop"}]}"#;
        assert_eq!(read(200, "application/json", whole), Ok("hello".to_owned()));
        assert_eq!(read(429, "application/json", "slow down"), Err(FailureKind::RateLimited));
    }

    #[test]
    fn a_recorded_reply_in_a_protocol_that_is_not_supported_says_so() {
        let recorded = Recorded { status: 200, content_type: "", chunks: &[] };
        let fault = recorded.read(Protocol::Responses).expect_err("it is not supported");
        assert!(fault.to_string().contains("protocol = \"chat\""), "{fault}");
    }
}
