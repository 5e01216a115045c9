//! JSON as it leaves the process: complete, on one line, harmless to a terminal (rules.md 9.3).

use std::fmt::Write;

use serde::Serialize;

use super::filter;

/// `value` on one line.
pub(crate) fn line(value: &impl Serialize) -> String {
    escaped(&serde_json::to_string(value).expect("what is printed is plain data"))
}

/// `value` laid out for reading.
pub(crate) fn page(value: &impl Serialize) -> String {
    escaped(&serde_json::to_string_pretty(value).expect("what is printed is plain data"))
}

/// Escapes what serializers leave as it is: outside of strings JSON is plain ASCII, so whatever can
/// do harm stands inside one.
fn escaped(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        if filter::is_suspect(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(escaped, "\\u{unit:04x}").expect("a string takes any text");
            }
        } else {
            escaped.push(c);
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_could_do_harm_is_escaped() {
        let value = json!({ "\u{9b}31m": "研究员\u{7f}\u{202e}\u{e0041}\u{1b}[2J\n" });
        let expected = r#"{"\u009b31m":"研究员\u007f\u202e\udb40\udc41\u001b[2J\n"}"#;
        assert_eq!(line(&value), expected);
        assert!(page(&value).lines().count() > 1);
    }

    proptest! {
        #[test]
        fn data_is_complete_and_on_one_line(text in any::<String>()) {
            let printed = line(&text);
            prop_assert!(!printed.chars().any(filter::is_suspect));
            prop_assert!(!printed.contains('\n'));
            prop_assert_eq!(serde_json::from_str::<Value>(&printed).expect("it is JSON"), json!(text));
        }
    }
}
