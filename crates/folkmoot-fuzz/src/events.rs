//! Event streams.

use folkmoot_agents::sse::{Event, Reader};

use crate::source::Choices;

/// However a stream is divided into chunks, it gives the same events up to one that is too large,
/// and holds no more than came.
///
/// The first byte chooses the limit, the second the chunks.
pub fn events(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let limit = 1 << (4 + choices.below(12));
    let size = 1 + usize::from(choices.byte());
    let stream = bytes.get(2..).unwrap_or_default();
    let whole = read(limit, [stream]);
    let (events, _) = &whole;
    for event in events {
        // What is not text becomes marks of three bytes each.
        assert!(event.data.len() <= 3 * limit && event.name.len() <= 3 * limit, "{event:?}");
    }
    assert_eq!(read(limit, stream.chunks(size)), whole, "in chunks of {size}");
    assert_eq!(read(limit, stream.chunks(1)), whole, "byte by byte");
    let (left, right) = stream.split_at(size.min(stream.len()));
    assert_eq!(read(limit, [left, &[], right]), whole, "cut at {size}");
}

fn read<'a>(limit: usize, chunks: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Event>, bool) {
    let (mut reader, mut events) = (Reader::new(limit), Vec::new());
    let read = chunks.into_iter().try_for_each(|chunk| reader.read(chunk, &mut events));
    (events, read.is_ok())
}
