//! A conversation with a team: the last message is the task, what was said before goes with it.

use folkmoot_core::words::Language;
use serde_json::json;

/// The task with what was said before, by role, as context only.
pub(crate) fn task<'a>(
    task: &str,
    earlier: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> String {
    // One line of JSON each: no message can pass for another, or for the task.
    let said = earlier.into_iter().map(|(role, text)| {
        let message = json!({ "role": role, "content": text });
        message.to_string()
    });
    let said = said.collect::<Vec<_>>().join("\n");
    match (said.is_empty(), Language::of(task)) {
        (true, _) => task.to_owned(),
        (false, Language::Chinese) => {
            format!("此前的对话，仅供参考，每行一条 JSON 消息：\n{said}\n\n任务：\n{task}")
        }
        (false, Language::English) => format!(
            "What was said before, as context only, one message of JSON a line:\n{said}\n\n\
             The task:\n{task}"
        ),
    }
}
