//! What is kept of a stream of any length: its beginning and its end.

use std::collections::VecDeque;

use tokio::io::{AsyncRead, AsyncReadExt};

/// A text of bounded size, with a note in place of what was left out.
#[derive(Clone, Debug)]
pub(super) struct Excerpt {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    /// How many bytes each of both may hold.
    room: (usize, usize),
    left_out: u64,
}

impl Excerpt {
    /// One that keeps so many bytes of the beginning and of the end.
    pub(super) fn new(head: usize, tail: usize) -> Excerpt {
        Excerpt { head: Vec::new(), tail: VecDeque::new(), room: (head, tail), left_out: 0 }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        let (first, rest) = bytes.split_at(bytes.len().min(self.room.0 - self.head.len()));
        self.head.extend_from_slice(first);
        self.tail.extend(rest);
        let surplus = self.tail.len().saturating_sub(self.room.1);
        self.tail.drain(..surplus);
        self.left_out += surplus as u64;
    }

    /// Reads a stream, if there is one, to its end. One that breaks ends there.
    pub(super) async fn read(&mut self, stream: Option<impl AsyncRead + Unpin>) {
        let Some(mut stream) = stream else { return };
        let mut buffer = vec![0; 16 << 10];
        while let Ok(count) = stream.read(&mut buffer).await
            && count > 0
        {
            self.push(&buffer[..count]);
        }
    }

    /// The text; what is no UTF-8 is replaced.
    pub(super) fn text(&self) -> String {
        let (front, back) = self.tail.as_slices();
        if self.left_out == 0 {
            return String::from_utf8_lossy(&[&self.head, front, back].concat()).into_owned();
        }
        let tail = [front, back].concat();
        let [head, tail] = [&self.head, &tail].map(|bytes| String::from_utf8_lossy(bytes));
        let note = format!("[{} bytes left out]", self.left_out);
        if head.is_empty() { format!("{note}\n{tail}") } else { format!("{head}\n{note}\n{tail}") }
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
        assert_eq!(kept(0, 3, &["abcd", "efgh"]), "[5 bytes left out]\nfgh");
    }
}
