//! stub
use crate::call::Answer;
/// Stub.
pub fn read(answer: &Answer, names: &[&str]) -> Option<usize> {
    let t = answer.text.trim().to_lowercase();
    let t = t.rsplit("vote:").next()?.trim();
    names.iter().position(|n| n.to_lowercase() == t)
}
