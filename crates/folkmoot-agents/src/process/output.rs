//! What is kept of streams of any length: the beginning and the end.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use tokio::io::{AsyncRead, AsyncReadExt};

/// A text of bounded size. Where its beginning is kept, a note stands in place of what was left out.
#[derive(Clone, Debug)]
pub(crate) struct Excerpt {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    /// How many bytes each of both may hold.
    room: (usize, usize),
    left_out: u64,
}

impl Excerpt {
    /// One that keeps so many bytes of the beginning and of the end.
    pub(crate) fn new(head: usize, tail: usize) -> Excerpt {
        Excerpt { head: Vec::new(), tail: VecDeque::new(), room: (head, tail), left_out: 0 }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let (first, rest) = bytes.split_at(bytes.len().min(self.room.0 - self.head.len()));
        self.head.extend_from_slice(first);
        self.tail.extend(rest);
        let surplus = self.tail.len().saturating_sub(self.room.1);
        self.tail.drain(..surplus);
        self.left_out += surplus as u64;
    }

    /// Whether something was left out.
    pub(crate) fn is_cut(&self) -> bool {
        self.left_out > 0
    }

    /// The text; what is no UTF-8 is replaced.
    pub(crate) fn text(&self) -> String {
        let (front, back) = self.tail.as_slices();
        if self.left_out == 0 {
            return String::from_utf8_lossy(&[&self.head, front, back].concat()).into_owned();
        }
        let tail = [front, back].concat();
        let cut = tail.iter().take_while(|byte| **byte & 0xC0 == 0x80).count();
        let [head, tail] = [&*self.head, &tail[cut..]].map(String::from_utf8_lossy);
        if self.room.0 == 0 {
            return tail.into_owned();
        }
        format!("{head}\n[{} bytes left out]\n{tail}", self.left_out)
    }
}

/// Reads a stream, if there is one, to its end, into a text that may have other sources. One that
/// breaks ends there.
pub(super) async fn read(stream: Option<impl AsyncRead + Unpin>, into: &Mutex<Excerpt>) {
    let Some(mut stream) = stream else { return };
    let mut buffer = vec![0; 16 << 10];
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        into.lock().unwrap_or_else(PoisonError::into_inner).push(&buffer[..count]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(head: usize, tail: usize, parts: &[&str]) -> String {
        let mut excerpt = Excerpt::new(head, tail);
        for part in parts {
            excerpt.push(part.as_bytes());
        }
        excerpt.text()
    }

    #[test]
    fn what_fits_is_kept_as_it_is_however_it_comes() {
        assert_eq!(kept(4, 4, &["研", "究", "ab"]), "研究ab");
        assert_eq!(kept(0, 3, &["abc"]), "abc");
    }

    #[test]
    fn of_more_the_beginning_and_the_end_are_kept() {
        assert_eq!(kept(2, 3, &["abcd", "efgh"]), "ab\n[3 bytes left out]\nfgh");
        assert_eq!(kept(0, 3, &["abcd", "efgh"]), "fgh");
        assert_eq!(kept(0, 8, &["研究报告"]), "究报告"[3..]);
    }
}
