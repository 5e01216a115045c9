//! The arguments of a tool call, as they come in pieces.

use serde_json::{Map, Value};

/// JSON text that grows; in time linear in its length it knows when its object is complete.
#[derive(Clone, Debug, Default)]
pub(super) struct Arguments {
    text: String,
    so_far: SoFar,
}

/// What the text is so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SoFar {
    /// Nothing but blanks.
    #[default]
    Blank,
    /// An object has begun: how many braces are open, and where in a string it is.
    Open { braces: usize, within: Within },
    /// Its last brace is closed, and it is JSON.
    Complete,
    /// No object, whatever follows.
    Broken,
}

/// Where a text is between its quotation marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Within {
    Nothing,
    String,
    Escape,
}

impl Arguments {
    /// Adds to the text.
    pub(super) fn push(&mut self, text: &str) {
        for (at, byte) in text.bytes().enumerate() {
            self.so_far = match self.so_far.then(byte) {
                // Read once, where it may be one for the first time; what follows can only break it.
                Some(so_far) => so_far,
                None if is_object(&format!("{}{}", self.text, &text[..=at])) => SoFar::Complete,
                None => SoFar::Broken,
            };
        }
        self.text.push_str(text);
    }

    /// Whether it is an object from beginning to end.
    pub(super) fn is_complete(&self) -> bool {
        self.so_far == SoFar::Complete
    }

    /// How many bytes it has.
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    /// The object, an empty one for no text; the text where it is none, so that the model can be told.
    pub(super) fn read(self) -> Value {
        if self.text.trim().is_empty() {
            return Value::Object(Map::new());
        }
        match serde_json::from_str(&self.text) {
            Ok(Value::Object(fields)) => Value::Object(fields),
            _ => Value::String(self.text),
        }
    }
}

fn is_object(text: &str) -> bool {
    serde_json::from_str::<Map<String, Value>>(text).is_ok()
}

impl SoFar {
    /// What it is with one more byte; nothing where that closes the last brace.
    fn then(self, byte: u8) -> Option<SoFar> {
        let is_blank = matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        let open = |braces, within| Some(SoFar::Open { braces, within });
        match (self, byte) {
            (SoFar::Blank, b'{') => open(1, Within::Nothing),
            (SoFar::Blank | SoFar::Complete, _) if is_blank => Some(self),
            (SoFar::Blank | SoFar::Complete | SoFar::Broken, _) => Some(SoFar::Broken),
            (SoFar::Open { braces, within: Within::Escape }, _) => open(braces, Within::String),
            (SoFar::Open { braces, within: Within::String }, byte) => match byte {
                b'\\' => open(braces, Within::Escape),
                b'"' => open(braces, Within::Nothing),
                _ => Some(self),
            },
            (SoFar::Open { braces, within: Within::Nothing }, byte) => match byte {
                b'"' => open(braces, Within::String),
                b'{' => open(braces + 1, Within::Nothing),
                b'}' if braces == 1 => None,
                b'}' => open(braces - 1, Within::Nothing),
                _ => Some(self),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pushed<'a>(pieces: impl IntoIterator<Item = &'a str>) -> Arguments {
        let mut arguments = Arguments::default();
        pieces.into_iter().for_each(|piece| arguments.push(piece));
        arguments
    }

    proptest! {
        #[test]
        fn they_are_complete_where_they_are_an_object_however_they_are_divided(
            text in "[ \n]{0,2}(\\{(\"[a}{\\\\\"]{0,3}\":?(\\{\\}|1|\"[}{]{0,2}\"),?){0,3}\\})?[ }x]{0,2}",
            at in 0_usize..40,
        ) {
            let (left, right) = text.split_at(at.min(text.len()));
            prop_assert_eq!(pushed([left, right]).is_complete(), is_object(&text));
            prop_assert_eq!(pushed([&*text]).is_complete(), is_object(&text));
        }
    }

    #[test]
    fn many_pieces_are_looked_at_once_each() {
        let long = format!("{{\"a\": \"{}", "x".repeat(1 << 20));
        let mut arguments = pushed([&*long]);
        for _ in 0..1 << 18 {
            arguments.push("}");
            assert!(!arguments.is_complete());
        }
        arguments.push("\"}");
        for _ in 0..1 << 18 {
            arguments.push(" ");
            assert!(arguments.is_complete());
        }
        assert_eq!(arguments.len(), long.len() + 2 + (1 << 19));
    }
}
