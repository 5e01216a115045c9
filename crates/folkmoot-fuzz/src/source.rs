//! Choices that are read off the bytes of an input.

/// Where choices come from; when the bytes are used up, every choice is the first.
pub(crate) struct Choices<'a>(&'a [u8]);

impl<'a> Choices<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Choices<'a> {
        Choices(bytes)
    }

    /// Whether nothing is left to be chosen.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next byte.
    pub(crate) fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *first
    }

    /// A number below `limit`, which is not 0.
    pub(crate) fn below(&mut self, limit: u8) -> u8 {
        self.byte() % limit
    }

    /// A number of any size, small ones in one byte.
    pub(crate) fn number(&mut self) -> u64 {
        match self.byte() {
            small @ 0..=0xf0 => small.into(),
            large => (0..large & 7).fold(0, |number, _| number << 8 | u64::from(self.byte())),
        }
    }

    /// Yes, once in so many bytes.
    pub(crate) fn one_in(&mut self, n: u8) -> bool {
        self.byte() % n == n - 1
    }

    /// One of `items`, of which there are some.
    pub(crate) fn pick<T: Clone>(&mut self, items: &[T]) -> T {
        items[usize::from(self.byte()) % items.len()].clone()
    }

    /// A text up to the next line end.
    pub(crate) fn text(&mut self) -> String {
        let end = self.0.iter().position(|byte| *byte == b'\n').unwrap_or(self.0.len());
        let (text, rest) = self.0.split_at(end);
        self.0 = rest.get(1..).unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    }
}
