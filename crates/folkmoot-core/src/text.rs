//! stub
/// Stub.
pub fn normalized(text: &str) -> String {
    text.trim().to_owned()
}
