//! stub
/// Stub.
pub fn normalized(text: &str) -> String {
    text.trim().to_owned()
}

/// s
pub fn shorten(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}
