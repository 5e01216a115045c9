//! stub
use crate::call::Answer;
/// s
pub fn read(a: &Answer) -> Option<String> {
    a.text.strip_prefix("agree\n").map(str::to_owned)
}
