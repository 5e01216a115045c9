//! From the result of a tool to a text of bounded size that a model reads (rules.md 11.6).
//!
//! What is binary is named, never shown; what is too long is shown in part, with its size and a digest
//! of the whole. The whole itself is not kept: there is no store for it.

use std::fmt::Write as _;

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::{Map, Value};

/// The longest text that is kept as it is, in bytes, and the most that is shown of a longer one.
pub(super) const LONGEST: usize = 64 << 10;

/// How many levels of a value that is too long are looked at; deeper ones are left out whole.
const LEVELS: u32 = 32;

/// The text of a result.
pub(super) fn text(result: &CallToolResult) -> String {
    let mut parts: Vec<String> = result.content.iter().map(part).collect();
    let has_text = parts
        .iter()
        .zip(&result.content)
        .any(|(text, of)| matches!(of, ContentBlock::Text(_)) && !text.trim().is_empty());
    // A structured result also stands in the text, as a rule.
    if let Some(value) = result.structured_content.as_ref().filter(|_| !has_text) {
        parts.push(json(&without_binary(
            value,
            &result.content.iter().filter_map(bytes).map(|it| it.data).collect::<Vec<_>>(),
        )));
    }
    bounded(parts)
}

/// At most so much in all: each part its share, what shorter ones leave going to the others.
fn bounded(parts: Vec<String>) -> String {
    let whole: usize = parts.iter().map(String::len).sum();
    if whole <= LONGEST {
        return parts.join("\n");
    }
    let mut sizes: Vec<usize> = parts.iter().map(String::len).collect();
    sizes.sort_unstable();
    let (mut left, mut share) = (LONGEST, 0);
    for (nth, size) in sizes.iter().enumerate() {
        share = left / (sizes.len() - nth);
        left -= share.min(*size);
    }
    let parts: Vec<String> = parts.into_iter().map(|part| preview(part, share)).collect();
    parts.join("\n")
}

/// The text, or what of it fits into `most` bytes, with a note on the rest.
fn preview(text: String, most: usize) -> String {
    if text.len() <= most {
        return text;
    }
    let note = format!(
        "[{} bytes in all, blake3 {}; shown in part, and not kept]",
        text.len(),
        &blake3::hash(text.as_bytes()).to_hex()[..16]
    );
    let room = most.saturating_sub(note.len() + 1);
    let shown = match serde_json::from_str::<Value>(&text) {
        Ok(value @ (Value::Array(_) | Value::Object(_))) => smaller(&value, room),
        Ok(_) | Err(_) => ends(&text, room),
    };
    format!("{note}\n{shown}")
}

/// The beginning and the end of a text.
fn ends(text: &str, room: usize) -> String {
    let half = room.saturating_sub(8) / 2;
    let head = &text[..text.floor_char_boundary(half)];
    let tail = &text[text.ceil_char_boundary(text.len() - half)..];
    format!("{head}\n[…]\n{tail}")
}

/// A value with less in it that is still one, and fits.
fn smaller(value: &Value, room: usize) -> String {
    let sizes = [(1000, 4000), (200, 1000), (50, 400), (20, 100), (5, 40), (1, 20)];
    let mut tries =
        sizes.into_iter().map(|(items, letters)| json(&pruned(value, items, letters, LEVELS)));
    tries.find(|text| text.len() <= room).unwrap_or_else(|| "\"[…]\"".to_owned())
}

/// Of each list so many items, of each text so many letters.
fn pruned(value: &Value, items: usize, letters: usize, levels: u32) -> Value {
    let more = |count: usize, what: &str| Value::from(format!("[… {count} more {what}]"));
    match value {
        Value::Array(_) | Value::Object(_) if levels == 0 => "[…]".into(),
        Value::Array(all) => {
            let kept = all.iter().take(items).map(|it| pruned(it, items, letters, levels - 1));
            let rest = all.len().saturating_sub(items);
            kept.chain((rest > 0).then(|| more(rest, "items"))).collect()
        }
        Value::Object(all) => {
            let kept = all.iter().take(items);
            let kept =
                kept.map(|(name, it)| (name.clone(), pruned(it, items, letters, levels - 1)));
            let mut kept: Map<String, Value> = kept.collect();
            let rest = all.len().saturating_sub(items);
            kept.extend((rest > 0).then(|| ("…".to_owned(), more(rest, "fields"))));
            kept.into()
        }
        Value::String(text) if text.chars().nth(letters).is_some() => {
            let shown: String = text.chars().take(letters).collect();
            format!("{shown}[… {} bytes in all]", text.len()).into()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

fn part(content: &ContentBlock) -> String {
    if let Some(Bytes { what, kind, data }) = bytes(content) {
        return binary(&what, kind, data);
    }
    match content {
        ContentBlock::Text(it) => it.text.clone(),
        ContentBlock::ResourceLink(it) => format!("[resource {} at {}]", it.name, it.uri),
        ContentBlock::Resource(it) => match &it.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => {
                format!("[resource {uri}]\n{text}")
            }
            _ => UNKNOWN.to_owned(),
        },
        _ => UNKNOWN.to_owned(),
    }
}

/// What stands for content of kinds that are yet to come.
const UNKNOWN: &str = "[content of a kind that is not known]";

/// Bytes in a result, as base64.
struct Bytes<'a> {
    what: String,
    kind: &'a str,
    data: &'a str,
}

fn bytes(content: &ContentBlock) -> Option<Bytes<'_>> {
    match content {
        ContentBlock::Image(it) => {
            Some(Bytes { what: "image".to_owned(), kind: &it.mime_type, data: &it.data })
        }
        ContentBlock::Audio(it) => {
            Some(Bytes { what: "audio".to_owned(), kind: &it.mime_type, data: &it.data })
        }
        ContentBlock::Resource(it) => match &it.resource {
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                let kind = mime_type.as_deref().unwrap_or("");
                Some(Bytes { what: format!("resource {uri}"), kind, data: blob })
            }
            _ => None,
        },
        _ => None,
    }
}

/// What is said of bytes.
fn binary(what: &str, kind: &str, data: &str) -> String {
    let mut text = format!("[{what}");
    for more in [kind, &format!("{} bytes", data.len() / 4 * 3)] {
        let _ = write!(text, "{}{more}", if more.is_empty() { "" } else { ", " });
    }
    let hash = blake3::hash(data.as_bytes()).to_hex();
    format!("{text}, blake3 {}; not shown, and not kept]", &hash[..16])
}

/// How long a text without any blank is taken to be bytes, in bytes.
const BASE64: usize = 2048;

/// A value without the bytes that stand in it, those shown elsewhere among them.
fn without_binary(value: &Value, shown: &[&str]) -> Value {
    match value {
        Value::String(text) if shown.contains(&&**text) || is_base64(text) => {
            format!("[{} bytes of base64]", text.len()).into()
        }
        Value::Array(items) => items.iter().map(|item| without_binary(item, shown)).collect(),
        Value::Object(fields) => {
            let fields = fields.iter();
            let fields = fields.map(|(name, it)| (name.clone(), without_binary(it, shown)));
            Value::Object(fields.collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

fn is_base64(text: &str) -> bool {
    let behind = text.rsplit_once(";base64,").map_or(text, |(_, data)| data);
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=-_".contains(&byte);
    behind.len() > BASE64 && behind.bytes().all(is_digit)
}

fn json(value: &Value) -> String {
    value.to_string()
}
