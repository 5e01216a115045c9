//! Event streams, read as bytes.
//!
//! Follows the published grammar of `text/event-stream` in full: however the bytes are divided into
//! chunks, and whichever line ends they use, the events are the same (rules.md 10.3). Deliberately
//! absent: reconnection; a reply that was cut off is asked for anew.

use std::sync::Arc;

/// One event of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// Its type; empty where the stream names none.
    pub name: String,
    /// Its data lines, joined by line feeds.
    pub data: String,
    /// The last id that the stream has named so far; all events until the next one share it.
    pub id: Arc<str>,
    /// The last reconnection time that the stream has named so far, in milliseconds.
    pub retry_ms: Option<u64>,
}

/// An event is larger than the reader allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event is larger than {limit} bytes")]
pub struct TooLarge {
    limit: usize,
}

/// Reads events from the chunks of a stream, each chunk in time linear in its length.
///
/// An event counts when the blank line behind it has come; one that the stream's end leaves
/// unfinished never does.
#[derive(Debug)]
pub struct Reader {
    limit: usize,
    /// The line under way, without its end.
    line: Vec<u8>,
    /// The event under way.
    event: Event,
    data: Option<Vec<u8>>,
    is_first_line: bool,
    /// The last byte was a carriage return, so a line feed belongs to the same line end.
    after_return: bool,
}

impl Reader {
    /// A reader for a new stream whose events have at most `limit` bytes.
    pub fn new(limit: usize) -> Reader {
        Reader {
            limit,
            line: Vec::new(),
            event: Event::default(),
            data: None,
            is_first_line: true,
            after_return: false,
        }
    }

    /// Takes the next bytes and adds the events they complete, also those before one that is too
    /// large; nothing can be read behind that one.
    pub fn read(&mut self, mut chunk: &[u8], events: &mut Vec<Event>) -> Result<(), TooLarge> {
        if self.after_return && !chunk.is_empty() {
            self.after_return = false;
            chunk = chunk.strip_prefix(b"\n").unwrap_or(chunk);
        }
        while let Some(end) = chunk.iter().position(|byte| matches!(byte, b'\r' | b'\n')) {
            self.grow(&chunk[..end])?;
            events.extend(self.end_line());
            let rest = &chunk[end + 1..];
            self.after_return = chunk[end] == b'\r' && rest.is_empty();
            let is_pair = chunk[end] == b'\r' && rest.first() == Some(&b'\n');
            chunk = if is_pair { &rest[1..] } else { rest };
        }
        self.grow(chunk)
    }

    fn grow(&mut self, bytes: &[u8]) -> Result<(), TooLarge> {
        let held = self.line.len() + self.data.as_ref().map_or(0, Vec::len);
        if held + bytes.len() > self.limit {
            return Err(TooLarge { limit: self.limit });
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self) -> Option<Event> {
        let line = std::mem::take(&mut self.line);
        let mut text = &line[..];
        if std::mem::take(&mut self.is_first_line) {
            text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
        }
        if text.is_empty() {
            return self.end_event();
        }
        let (field, value) = match text.iter().position(|byte| *byte == b':') {
            Some(colon) => (&text[..colon], &text[colon + 1..]),
            None => (text, &text[text.len()..]),
        };
        self.set(field, value.strip_prefix(b" ").unwrap_or(value));
        None
    }

    /// Comments have an empty field name; they and unknown fields say nothing.
    fn set(&mut self, field: &[u8], value: &[u8]) {
        match field {
            b"data" => match &mut self.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => self.data = Some(value.to_vec()),
            },
            b"event" => self.event.name = text_of(value),
            b"id" if !value.contains(&0) => self.event.id = text_of(value).into(),
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                self.event.retry_ms = text_of(value).parse().ok().or(self.event.retry_ms);
            }
            _ => {}
        }
    }

    fn end_event(&mut self) -> Option<Event> {
        let name = std::mem::take(&mut self.event.name);
        let data = text_of(&self.data.take()?);
        Some(Event { name, data, ..self.event.clone() })
    }
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read_in<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<Event> {
        read_within(1 << 20, chunks).expect("the limit is far")
    }

    /// The events of a stream, or how many come before one that is too large.
    fn read_within<'a>(
        limit: usize,
        chunks: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Vec<Event>, usize> {
        let (mut reader, mut events) = (Reader::new(limit), Vec::new());
        let read = chunks.into_iter().try_for_each(|chunk| reader.read(chunk, &mut events));
        read.map_err(|_| events.len())?;
        Ok(events)
    }

    fn data_of(stream: &str) -> Vec<String> {
        read_in([stream.as_bytes()]).into_iter().map(|event| event.data).collect()
    }

    #[test]
    fn any_line_end_ends_a_line() {
        for stream in ["data: a\n\ndata: b\n\n", "data: a\r\rdata: b\r\r"] {
            assert_eq!(data_of(stream), ["a", "b"], "{stream:?}");
        }
        assert_eq!(data_of("data: a\r\n\r\ndata: b\r\n\r\n"), ["a", "b"]);
        assert_eq!(data_of("data: a\n\rdata: b\r\n\n"), ["a", "b"]);
    }

    #[test]
    fn an_event_counts_as_soon_as_its_blank_line_has_begun_to_end() {
        let (mut reader, mut events) = (Reader::new(100), Vec::new());
        reader.read(b"data: a\r\n\r", &mut events).expect("it is short");
        assert_eq!(events.len(), 1);
        reader.read(b"\n", &mut events).expect("it is short");
        assert_eq!(events.len(), 1);
    }

    #[test]
    fn an_event_that_the_end_leaves_unfinished_is_dropped() {
        assert_eq!(data_of("data: a\n\ndata: b\n"), ["a"]);
        assert_eq!(data_of("data: a\n\ndata: b"), ["a"]);
    }

    #[test]
    fn data_lines_are_joined_and_one_blank_behind_the_colon_is_no_part_of_them() {
        assert_eq!(data_of("data:a\ndata:  b\ndata\ndata: \n\n"), ["a\n b\n\n"]);
    }

    #[test]
    fn a_byte_order_mark_is_skipped_only_at_the_start() {
        assert_eq!(data_of("\u{feff}data: a\n\n\u{feff}data: b\n\n"), ["a"]);
    }

    #[test]
    fn comments_and_unknown_fields_say_nothing() {
        assert_eq!(data_of(": ping\n\ncolour: red\ndata: a\n:\nDATA: b\n\n"), ["a"]);
    }

    #[test]
    fn a_name_belongs_to_one_event_and_needs_data() {
        let events = read_in([&b"event: x\n\ndata: a\n\nevent: y\ndata: b\n\n"[..]]);
        let names: Vec<_> = events.iter().map(|event| &*event.name).collect();
        assert_eq!(names, ["", "y"]);
    }

    #[test]
    fn ids_and_reconnection_times_last_until_the_stream_names_others() {
        let stream = "id: 1\nretry: 20\ndata: a\n\nid: 2\0\nretry: 3x\ndata: b\n\nid\ndata: c\n\n";
        let events = read_in([stream.as_bytes()]);
        let marks: Vec<_> = events.iter().map(|it| (&*it.id, it.retry_ms)).collect();
        assert_eq!(marks, [("1", Some(20)), ("1", Some(20)), ("", Some(20))]);
    }

    #[test]
    fn many_events_do_not_hold_a_long_id_once_each() {
        let stream = format!("id: {}\n{}", "x".repeat(1 << 19), "data\n\n".repeat(1 << 16));
        let events = read_in([stream.as_bytes()]);
        assert_eq!(events.len(), 1 << 16);
        assert!(events.iter().all(|event| Arc::ptr_eq(&event.id, &events[0].id)));
    }

    #[test]
    fn broken_text_is_replaced_and_disturbs_nothing_else() {
        let events = read_in([&b"data: a\xffb\n\ndata: c\n\n"[..]]);
        let data: Vec<_> = events.into_iter().map(|event| event.data).collect();
        assert_eq!(data, ["a\u{fffd}b", "c"]);
    }

    #[test]
    fn an_event_may_be_as_large_as_the_limit_and_no_larger() {
        let line = |length: usize| [b"data:".as_slice(), &vec![b'x'; length], b"\n\n"].concat();
        let read = |stream: &[u8]| read_within(15, [stream]).map(|events| events.len());
        assert_eq!(read(&line(10)), Ok(1));
        assert_eq!(read(&line(11)), Err(0));
        assert_eq!(read(&b"data: 12345\n".repeat(3)), Err(0));
        assert_eq!(read(&b"data: 12345\n\n".repeat(9)), Ok(9));
        let told = Reader::new(15).read(&line(11), &mut Vec::new());
        assert_eq!(
            told.map_err(|it| it.to_string()),
            Err("an event is larger than 15 bytes".into())
        );
    }

    #[test]
    fn events_before_one_that_is_too_large_come_however_the_stream_is_divided() {
        let stream = b"data: a\n\ndata: b\n\ndata: much too large\n\n";
        assert_eq!(read_within(15, [&stream[..]]), Err(2));
        assert_eq!(read_within(15, stream.chunks(1)), Err(2));
    }

    const TRICKY: &str = "\u{feff}: hello\r\nid: 7\r\rdata: {\"text\": \"研究 🦀\"}\r\n\
        data: more\n\revent: error\nretry: 9\ndata:\r\n\r\n\n\ndata: [DONE]\r\rdata: lost";

    #[test]
    fn every_division_in_two_gives_the_same_events() {
        let whole = read_in([TRICKY.as_bytes()]);
        assert_eq!(whole.len(), 3);
        for at in 0..=TRICKY.len() {
            let (left, right) = TRICKY.as_bytes().split_at(at);
            assert_eq!(read_in([left, right]), whole, "cut at {at}");
        }
        assert_eq!(read_in(TRICKY.as_bytes().chunks(1)), whole);
    }

    const PIECES: [&str; 11] = [
        "\r",
        "\n",
        "\r\n",
        "data:",
        "data: x",
        " ",
        "id: 4",
        "event:e",
        "retry:1",
        ":",
        "é\u{feff}",
    ];

    proptest! {
        #[test]
        fn any_stream_in_any_division_gives_the_same_events(
            pieces in proptest::collection::vec(
                prop_oneof![
                    9 => proptest::sample::select(&PIECES[..]).prop_map(str::to_owned),
                    1 => any::<String>(),
                ],
                0..40,
            ),
            sizes in proptest::collection::vec(0_usize..9, 1..60),
        ) {
            let stream = pieces.concat().into_bytes();
            let mut rest = &stream[..];
            let mut chunks = Vec::new();
            for size in sizes {
                let (chunk, others) = rest.split_at(size.min(rest.len()));
                chunks.push(chunk);
                rest = others;
            }
            chunks.push(rest);
            prop_assert_eq!(read_in(chunks), read_in([&stream[..]]));
        }
    }
}
