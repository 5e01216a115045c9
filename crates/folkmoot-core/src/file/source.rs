//! From the bytes of a file to its text.

use crate::diagnostic::{Diagnostic, Span};

/// The largest file that is read, in bytes.
pub const MAX_BYTES: usize = 1 << 20;

const BOM: &str = "\u{feff}";

/// The text of a file without its byte order mark, or as much of it as is text, and what is wrong
/// with the rest.
pub fn decode(bytes: &[u8]) -> (&str, Option<Diagnostic>) {
    if bytes.len() > MAX_BYTES {
        return ("", Some(Diagnostic::error("too_large", "the file is larger than 1 MiB")));
    }
    if let Some(encoding) = wide_encoding(bytes) {
        let message = format!("the file is {encoding}; save it as UTF-8");
        return ("", Some(Diagnostic::error("not_utf8", message)));
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => (text.strip_prefix(BOM).unwrap_or(text), None),
        Err(error) => (sound_part(bytes, error.valid_up_to()), Some(broken(bytes, &error))),
    }
}

fn sound_part(bytes: &[u8], length: usize) -> &str {
    let text = std::str::from_utf8(&bytes[..length]).expect("valid up to here");
    text.strip_prefix(BOM).unwrap_or(text)
}

fn broken(bytes: &[u8], error: &std::str::Utf8Error) -> Diagnostic {
    let at = sound_part(bytes, error.valid_up_to()).len();
    let byte = bytes[error.valid_up_to()];
    let message = format!("the file is not UTF-8: byte 0x{byte:02x} begins no character");
    Diagnostic::error("not_utf8", message).spanning(Span { start: at, end: at })
}

/// Tells UTF-16 and UTF-32 by their marks, or by the zero bytes of the first characters.
fn wide_encoding(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0, 0, 0xfe, 0xff, ..] | [0xff, 0xfe, 0, 0, ..] | [0, 0, 0, _, ..] | [_, 0, 0, 0, ..] => {
            Some("UTF-32")
        }
        [0xfe, 0xff, ..] | [0xff, 0xfe, ..] | [0, _, ..] | [_, 0, ..] => Some("UTF-16"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaint(bytes: &[u8]) -> String {
        decode(bytes).1.expect("refused").message
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_text() {
        assert_eq!(decode("\u{feff}name: a".as_bytes()), ("name: a", None));
        assert_eq!(decode(b"name: a"), ("name: a", None));
        assert_eq!(decode(b""), ("", None));
    }

    #[test]
    fn other_encodings_are_named() {
        let wide = |text: &str| text.encode_utf16().collect::<Vec<_>>();
        let little: Vec<u8> = wide("name").iter().flat_map(|unit| unit.to_le_bytes()).collect();
        let big: Vec<u8> = wide("\u{feff}名").iter().flat_map(|unit| unit.to_be_bytes()).collect();
        assert_eq!(complaint(&little), "the file is UTF-16; save it as UTF-8");
        assert_eq!(complaint(&big), "the file is UTF-16; save it as UTF-8");
        assert_eq!(complaint(b"\xff\xfe\0\0n\0\0\0"), "the file is UTF-32; save it as UTF-8");
    }

    #[test]
    fn a_stray_byte_is_shown_with_its_place() {
        let (text, complaint) = decode(b"\xef\xbb\xbfa: caf\xe9\n");
        let complaint = complaint.expect("Latin-1 is refused");
        assert_eq!(complaint.message, "the file is not UTF-8: byte 0xe9 begins no character");
        assert_eq!(text, "a: caf");
        assert_eq!(complaint.located(text).column, Some(7));
    }

    #[test]
    fn a_mebibyte_is_read_and_a_byte_more_is_not() {
        let bytes = vec![b'#'; MAX_BYTES + 1];
        assert_eq!(decode(&bytes[1..]).1, None);
        assert_eq!(complaint(&bytes), "the file is larger than 1 MiB");
    }
}
