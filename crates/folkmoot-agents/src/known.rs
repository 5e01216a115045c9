//! The providers that need no entry in the config.

use crate::provider::Protocol;

/// A well-known provider.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    /// Its name in `provider/model`.
    pub name: &'static str,
    /// How the names of its variables begin: `X_API_KEY`, `X_BASE_URL`.
    pub variables: &'static str,
    /// Other names of theirs, by their usual ending.
    pub other_variables: &'static [(&'static str, &'static str)],
    /// What it speaks unless the config says otherwise.
    pub protocol: Protocol,
    /// Where it answers in that protocol.
    pub base_url: &'static str,
    /// Where it answers in the protocol `chat`.
    pub chat_url: &'static str,
    /// What is special about it.
    pub quirks: Quirks,
}

/// In what a server differs from others; all but the first matter in the protocol `chat` only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quirks {
    /// It answers nobody without a key.
    pub needs_key: bool,
    /// It understands the request for usage at the end of a stream.
    pub stream_usage: bool,
    /// The field that bounds the reply.
    pub max_tokens: &'static str,
    /// It reports reasoning beside the other output tokens, not among them.
    pub reasoning_apart: bool,
}

impl Quirks {
    /// What most servers do.
    pub(crate) const USUAL: Quirks = Quirks {
        needs_key: true,
        stream_usage: true,
        max_tokens: "max_tokens",
        reasoning_apart: false,
    };
    const LOCAL: Quirks = Quirks { needs_key: false, ..Quirks::USUAL };
    const OPENAI: Quirks = Quirks { max_tokens: "max_completion_tokens", ..Quirks::USUAL };
    /// It sends usage unasked and refuses fields that it does not know.
    const MISTRAL: Quirks = Quirks { stream_usage: false, ..Quirks::USUAL };
    const XAI: Quirks = Quirks { reasoning_apart: true, ..Quirks::USUAL };
}

/// A provider that speaks `chat` and does nothing unusual.
const fn chat(name: &'static str, variables: &'static str, chat_url: &'static str) -> Known {
    Known {
        name,
        variables,
        other_variables: &[],
        protocol: Protocol::Chat,
        base_url: chat_url,
        chat_url,
        quirks: Quirks::USUAL,
    }
}

impl Known {
    const fn with(self, quirks: Quirks) -> Known {
        Known { quirks, ..self }
    }

    /// It speaks `chat` too, but `protocol` better.
    const fn rather(self, protocol: Protocol, base_url: &'static str) -> Known {
        Known { protocol, base_url, ..self }
    }

    const fn also(self, other_variables: &'static [(&'static str, &'static str)]) -> Known {
        Known { other_variables, ..self }
    }

    /// Where it answers in `protocol`, if it does.
    pub(crate) fn url(&self, protocol: Protocol) -> Option<&'static str> {
        let chat_url = (protocol == Protocol::Chat).then_some(self.chat_url);
        if protocol == self.protocol { Some(self.base_url) } else { chat_url }
    }

    /// The names of its variable with this ending; the first that is set counts.
    pub(crate) fn variables(&self, ending: &str) -> Vec<String> {
        let others = self.other_variables.iter().filter(|(usual, _)| *usual == ending);
        let usual = format!("{}_{ending}", self.variables);
        std::iter::once(usual).chain(others.map(|(_, name)| (*name).to_owned())).collect()
    }
}

/// The variables of Google's own programs, beside `GEMINI_…`.
const GOOGLE: &[(&str, &str)] =
    &[("API_KEY", "GOOGLE_API_KEY"), ("BASE_URL", "GOOGLE_GEMINI_BASE_URL")];

/// All of them, the best known first.
#[rustfmt::skip]
pub(crate) const KNOWN: &[Known] = &[
    chat("openai", "OPENAI", "https://api.openai.com/v1").with(Quirks::OPENAI),
    chat("anthropic", "ANTHROPIC", "https://api.anthropic.com/v1").rather(Protocol::Messages, "https://api.anthropic.com/v1"),
    chat("gemini", "GEMINI", "https://generativelanguage.googleapis.com/v1beta/openai").rather(Protocol::Gemini, "https://generativelanguage.googleapis.com/v1beta").also(GOOGLE),
    chat("deepseek", "DEEPSEEK", "https://api.deepseek.com/v1"),
    chat("dashscope", "DASHSCOPE", "https://dashscope.aliyuncs.com/compatible-mode/v1"),
    chat("moonshot", "MOONSHOT", "https://api.moonshot.cn/v1"),
    chat("zhipu", "ZHIPU", "https://open.bigmodel.cn/api/paas/v4"),
    chat("siliconflow", "SILICONFLOW", "https://api.siliconflow.cn/v1"),
    chat("volcengine", "ARK", "https://ark.cn-beijing.volces.com/api/v3"),
    chat("hunyuan", "HUNYUAN", "https://api.hunyuan.cloud.tencent.com/v1"),
    chat("qianfan", "QIANFAN", "https://qianfan.baidubce.com/v2"),
    chat("minimax", "MINIMAX", "https://api.minimaxi.com/v1"),
    chat("stepfun", "STEPFUN", "https://api.stepfun.com/v1"),
    chat("openrouter", "OPENROUTER", "https://openrouter.ai/api/v1"),
    chat("groq", "GROQ", "https://api.groq.com/openai/v1"),
    chat("mistral", "MISTRAL", "https://api.mistral.ai/v1").with(Quirks::MISTRAL),
    chat("xai", "XAI", "https://api.x.ai/v1").with(Quirks::XAI),
    chat("together", "TOGETHER", "https://api.together.xyz/v1"),
    chat("fireworks", "FIREWORKS", "https://api.fireworks.ai/inference/v1"),
    chat("cerebras", "CEREBRAS", "https://api.cerebras.ai/v1"),
    chat("nvidia", "NVIDIA", "https://integrate.api.nvidia.com/v1"),
    chat("perplexity", "PERPLEXITY", "https://api.perplexity.ai"),
    chat("ollama", "OLLAMA", "http://127.0.0.1:11434/v1").with(Quirks::LOCAL),
    chat("lmstudio", "LMSTUDIO", "http://127.0.0.1:1234/v1").with(Quirks::LOCAL),
    chat("llamacpp", "LLAMACPP", "http://127.0.0.1:8080/v1").with(Quirks::LOCAL),
    chat("vllm", "VLLM", "http://127.0.0.1:8000/v1").with(Quirks::LOCAL),
    chat("sglang", "SGLANG", "http://127.0.0.1:30000/v1").with(Quirks::LOCAL),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_providers_share_a_name_or_their_variables() {
        let names: BTreeSet<_> = KNOWN.iter().map(|known| known.name).collect();
        let variables: BTreeSet<_> = KNOWN.iter().map(|known| known.variables).collect();
        assert_eq!((names.len(), variables.len()), (KNOWN.len(), KNOWN.len()));
    }

    #[test]
    fn a_provider_answers_in_its_own_protocol_and_in_chat_each_at_its_address() {
        use Protocol::{Chat, Gemini, Messages, Responses};
        for known in KNOWN {
            assert_eq!(known.url(known.protocol), Some(known.base_url), "{}", known.name);
            assert_eq!(known.url(Chat), Some(known.chat_url), "{}", known.name);
            let others =
                [Messages, Gemini, Responses].into_iter().filter(|it| *it != known.protocol);
            assert_eq!(others.filter_map(|it| known.url(it)).count(), 0, "{}", known.name);
        }
    }

    #[test]
    fn only_servers_on_this_machine_go_without_a_key() {
        for known in KNOWN {
            let is_local = known.base_url.starts_with("http://127.0.0.1:");
            assert_eq!(known.quirks.needs_key, !is_local, "{}", known.name);
        }
    }
}
