//! From prompts to the chat messages that a back-end is sent.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::call::ToolCall;

/// Who speaks in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Folkmoot's and the agent's own instructions.
    System,
    /// The task, and what others said.
    User,
    /// The agent itself, earlier.
    Assistant,
    /// A tool.
    Tool,
}

/// One chat message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub content: Arc<str>,
    /// The tool calls of an assistant's message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// The call that a tool's message answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<Arc<str>>,
    /// What the provider wants back with an assistant's message, if it goes to the same one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<Value>,
}
