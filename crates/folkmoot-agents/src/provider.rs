//! Who serves models, where, and under which key.

use std::{collections::BTreeMap, fmt, sync::Arc};

use folkmoot_core::{
    call::{FailureKind, Fault},
    check::is_unset,
    names::nearest,
    team::Target,
};
use folkmoot_runtime::secrets::Secrets;
use reqwest::{
    Url,
    header::{HeaderMap, HeaderName, HeaderValue},
};
use serde::{Deserialize, Deserializer, de::Error};

use crate::{
    api::{Wire, wire},
    cli::installed,
    gate::Gate,
    known::{KNOWN, Known, Quirks},
    secret::Secret,
};

/// A wire format of model APIs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// Chat completions, as most servers speak them.
    Chat,
    /// The responses of `OpenAI`; not supported yet.
    Responses,
    /// The messages of Anthropic.
    Messages,
    /// The generated contents of Google.
    Gemini,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Protocol::Chat => "chat",
            Protocol::Responses => "responses",
            Protocol::Messages => "messages",
            Protocol::Gemini => "gemini",
        })
    }
}

/// An entry `[providers.NAME]` of the config (agents.md §1).
///
/// Of a well-known provider it holds what differs, and wins over the environment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table of settings")]
pub struct ProviderConfig {
    /// Its wire format; `chat` unless the provider is known for another.
    pub protocol: Option<Protocol>,
    /// Where its API begins, for example `http://127.0.0.1:8000/v1`; in `messages` and `gemini` the
    /// version at its end may be left out.
    pub base_url: Option<String>,
    /// The variable that holds its key; a config never holds a key itself.
    #[serde(deserialize_with = "variable")]
    pub key_env: Option<String>,
    /// Headers that each request carries besides the usual ones.
    pub headers: BTreeMap<String, String>,
    /// Whether it may be asked to report usage at the end of a stream; some servers of `chat` refuse
    /// the field.
    pub stream_usage: Option<bool>,
}

/// Reads the name of a variable. What is none is not shown: it may be the key itself.
fn variable<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let name = String::deserialize(deserializer)?;
    let is_name = |name: &str| {
        !name.starts_with(|c: char| c.is_ascii_digit())
            && !name.is_empty()
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    if !is_name(&name) || is_like_a_key(&name) {
        return Err(D::Error::custom(
            "key_env is the name of the variable that holds the key, in letters, digits and `_`; \
             this is none, and is not shown in case it is the key itself",
        ));
    }
    Ok(Some(name))
}

/// Some keys are written as a name could be, but no one names a variable so.
fn is_like_a_key(name: &str) -> bool {
    let has = |kind: fn(&char) -> bool| name.chars().any(|c| kind(&c));
    name.len() >= 32
        && has(char::is_ascii_digit)
        && has(char::is_ascii_lowercase)
        && has(char::is_ascii_uppercase)
}

/// Every provider that is known or configured, and where coding agents are found.
#[derive(Debug)]
pub struct Providers {
    entries: Vec<Entry>,
    /// The variable `PATH`.
    path: Option<String>,
}

#[derive(Debug)]
struct Entry {
    status: ProviderStatus,
    provider: Result<Arc<Provider>, Unusable>,
}

/// What there is to say about a provider before it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderStatus {
    /// Its name.
    pub name: String,
    /// Its wire format.
    pub protocol: Protocol,
    /// Where it answers, as far as that is known and fit to be shown.
    pub base_url: Option<String>,
    /// The variable that holds its key, if it may have one.
    pub key_variable: Option<String>,
    /// Why it cannot be used; nothing if it can.
    pub why_not: Option<String>,
}

impl ProviderStatus {
    /// Whether it can be used.
    pub fn is_usable(&self) -> bool {
        self.why_not.is_none()
    }
}

/// Why a provider cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// Nobody knows it.
    #[error("unknown provider \"{name}\"{}", did_you_mean(.nearest.as_deref()))]
    Unknown {
        /// The name.
        name: String,
        /// The known name that was probably meant.
        nearest: Option<String>,
    },
    /// Its key is missing.
    #[error("provider \"{name}\" has no key: {variable} is not set")]
    NoKey {
        /// The provider.
        name: String,
        /// The variable that should hold the key.
        variable: String,
    },
    /// Its wire format is not supported.
    #[error(
        "provider \"{name}\" speaks `{protocol}`, which is not supported yet; \
         `protocol = \"chat\"` in [providers.{name}] uses its chat-compatible address"
    )]
    Protocol {
        /// The provider.
        name: String,
        /// What it speaks.
        protocol: Protocol,
    },
    /// Its address is missing or wrong.
    #[error(
        "provider \"{name}\" needs a base_url: an http or https address without user and password"
    )]
    Address {
        /// The provider.
        name: String,
    },
    /// A header of it, or its key, cannot be sent.
    #[error("provider \"{name}\": the header `{header}` holds what no header can hold")]
    Header {
        /// The provider.
        name: String,
        /// The header.
        header: String,
    },
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |nearest| format!("; did you mean \"{nearest}\"?"))
}

impl From<&Unusable> for Fault {
    fn from(unusable: &Unusable) -> Fault {
        let kind = match unusable {
            Unusable::NoKey { .. } => FailureKind::Auth,
            Unusable::Protocol { .. } => FailureKind::Unsupported,
            Unusable::Unknown { .. } | Unusable::Address { .. } | Unusable::Header { .. } => {
                FailureKind::Config
            }
        };
        Fault::failed(kind, unusable.to_string())
    }
}

impl Providers {
    /// The well-known providers and the `configured` ones; `env` looks up a variable.
    pub fn new(
        configured: &BTreeMap<String, ProviderConfig>,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Providers {
        let env = |name: &str| env(name).filter(|value| !value.trim().is_empty());
        let none = ProviderConfig::default();
        let known = KNOWN.iter().map(|known| {
            let config = configured.get(known.name).unwrap_or(&none);
            resolve(known.name, Some(known), config, &env)
        });
        let is_known = |name: &str| KNOWN.iter().any(|known| known.name == name);
        let own = configured.iter().filter(|(name, _)| !is_known(name));
        let own = own.map(|(name, config)| resolve(name, None, config, &env));
        Providers { entries: known.chain(own).collect(), path: env("PATH") }
    }

    /// The variables that hold keys of providers, well-known or configured, whether they are set or not.
    pub fn key_variables(&self) -> impl Iterator<Item = String> {
        let known = KNOWN.iter().flat_map(|known| known.variables("API_KEY"));
        let configured = self.entries.iter().filter_map(|it| it.status.key_variable.clone());
        known.chain(configured)
    }

    /// What there is to say about each provider, the well-known ones first.
    pub fn statuses(&self) -> impl Iterator<Item = &ProviderStatus> {
        self.entries.iter().map(|entry| &entry.status)
    }

    /// Whether the provider `name` can be used, so that it can be said before anything starts.
    pub fn check(&self, name: &str) -> Result<(), Unusable> {
        self.find(name).map(|_| ())
    }

    /// Why `target` cannot be asked, so that it can be said before anything starts; nothing if it can,
    /// or if it is not known what it is.
    pub fn lack(&self, target: &Target) -> Option<String> {
        match target {
            Target::Model(model) if is_unset(model) => None,
            Target::Model(model) => self.check(&model.provider).err().map(|it| it.to_string()),
            Target::Cli(cli) => installed::lack(cli, self.path.as_deref()?),
            Target::Acp(acp) => {
                installed::lack_of(acp, acp.command.first()?, self.path.as_deref()?)
            }
            Target::Script(_) | Target::Demo | Target::A2a(_) | Target::Team(_) => None,
        }
    }

    pub(crate) fn find(&self, name: &str) -> Result<&Arc<Provider>, Unusable> {
        match self.entries.iter().find(|entry| entry.status.name == name) {
            Some(entry) => entry.provider.as_ref().map_err(Clone::clone),
            None => Err(Unusable::Unknown {
                name: name.to_owned(),
                nearest: nearest(name, self.statuses().map(|status| &*status.name))
                    .map(str::to_owned),
            }),
        }
    }
}

fn resolve(
    name: &str,
    known: Option<&Known>,
    config: &ProviderConfig,
    env: &dyn Fn(&str) -> Option<String>,
) -> Entry {
    let known_protocol = known.map_or(Protocol::Chat, |known| known.protocol);
    let protocol = config.protocol.unwrap_or(known_protocol);
    let variables = |ending| known.map_or_else(Vec::new, |known| known.variables(ending));
    // What such a variable holds is in the provider's own protocol.
    let from_env = || {
        variables("BASE_URL").iter().filter(|_| protocol == known_protocol).find_map(|it| env(it))
    };
    let moved = config.base_url.clone().or_else(from_env);
    let base_url = moved.as_deref().or_else(|| known?.url(protocol));
    let key_variables = config.key_env.clone().map_or_else(|| variables("API_KEY"), |it| vec![it]);
    let key_variable = key_variables.iter().find(|it| env(it).is_some()).or(key_variables.first());
    let key_variable = key_variable.cloned();
    let key = key_variable.as_deref().and_then(env).map(|key| Secret::new(&key));
    let mut quirks = known.map_or(Quirks::USUAL, |known| known.quirks);
    // A server in the place of a well-known one may well ask for no key.
    quirks.needs_key =
        config.key_env.is_some() || (known.is_some() && quirks.needs_key && moved.is_none());
    quirks.stream_usage = config.stream_usage.unwrap_or(quirks.stream_usage);

    let url = base_url.and_then(address);
    let provider = match (wire(protocol, quirks), &url, &key_variable) {
        (None, ..) => Err(Unusable::Protocol { name: name.to_owned(), protocol }),
        (_, _, Some(variable)) if key.is_none() && quirks.needs_key => {
            Err(Unusable::NoKey { name: name.to_owned(), variable: variable.clone() })
        }
        (_, None, _) => Err(Unusable::Address { name: name.to_owned() }),
        (Some(wire), Some(url), _) => {
            Provider::new(name, url, wire, key, &config.headers).map(Arc::new)
        }
    };
    let status = ProviderStatus {
        name: name.to_owned(),
        protocol,
        base_url: url.map(shown),
        key_variable,
        why_not: provider.as_ref().err().map(Unusable::to_string),
    };
    Entry { status, provider }
}

fn address(base_url: &str) -> Option<Url> {
    let url = Url::parse(base_url.trim()).ok()?;
    let is_plain = url.username().is_empty() && url.password().is_none();
    (matches!(url.scheme(), "http" | "https") && url.has_host() && is_plain).then_some(url)
}

/// The address without what may be a key.
fn shown(mut url: Url) -> String {
    url.set_query(None);
    url.set_fragment(None);
    url.to_string()
}

/// A provider that can be asked.
#[derive(Debug)]
pub(crate) struct Provider {
    base_url: Url,
    /// How it is asked.
    pub wire: Box<dyn Wire>,
    /// What each request carries, the key among it.
    pub headers: HeaderMap,
    /// Holds back calls while it asks to wait.
    pub gate: Gate,
    secrets: Secrets,
}

impl Provider {
    fn new(
        name: &str,
        base_url: &Url,
        wire: Box<dyn Wire>,
        key: Option<Secret>,
        own_headers: &BTreeMap<String, String>,
    ) -> Result<Provider, Unusable> {
        let mut headers = HeaderMap::new();
        let mut secrets = Vec::new();
        for (header, value) in wire.headers() {
            headers.insert(*header, HeaderValue::from_static(value));
        }
        let own = own_headers.iter().map(|(name, value)| (name.as_str(), Secret::new(value), ""));
        let (key_header, scheme) = wire.key_header();
        let key = key.map(|key| (key_header, key, scheme));
        for (header, secret, scheme) in key.into_iter().chain(own) {
            let unfit = || Unusable::Header { name: name.to_owned(), header: header.to_owned() };
            let field = HeaderName::try_from(header).map_err(|_| unfit())?;
            let value = format!("{scheme}{}", secret.reveal());
            let mut value = HeaderValue::try_from(value).map_err(|_| unfit())?;
            value.set_sensitive(true);
            headers.insert(field, value);
            secrets.push(secret);
        }
        let secrets = Secrets::new(secrets.iter().map(Secret::reveal));
        Ok(Provider { base_url: base_url.clone(), wire, headers, gate: Gate::default(), secrets })
    }

    /// Where `model` is asked.
    pub(crate) fn url(&self, model: &str) -> Url {
        self.wire.url(&self.base_url, model)
    }

    /// Where it is asked which models it has.
    pub(crate) fn models_url(&self) -> Url {
        self.wire.models_url(&self.base_url)
    }

    /// `text` with every secret of this provider masked.
    pub(crate) fn masked(&self, text: &str) -> String {
        self.secrets.mask(text).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use reqwest::header::AUTHORIZATION;

    use super::*;

    fn providers(config: &[(&str, ProviderConfig)], env: &[(&str, &str)]) -> Providers {
        let config = config.iter().map(|(name, config)| ((*name).to_owned(), config.clone()));
        let value = |name: &str| env.iter().find(|(known, _)| *known == name);
        Providers::new(&config.collect(), &|name| value(name).map(|(_, value)| (*value).to_owned()))
    }

    fn at(base_url: &str) -> ProviderConfig {
        ProviderConfig { base_url: Some(base_url.to_owned()), ..ProviderConfig::default() }
    }

    fn refusal(providers: &Providers, name: &str) -> String {
        providers.find(name).expect_err("it is unusable").to_string()
    }

    #[test]
    fn a_well_known_provider_needs_its_key_and_nothing_else() {
        let without = providers(&[], &[("DEEPSEEK_API_KEY", " ")]);
        let missing = "provider \"deepseek\" has no key: DEEPSEEK_API_KEY is not set";
        assert_eq!(refusal(&without, "deepseek"), missing);
        let with = providers(&[], &[("DEEPSEEK_API_KEY", "sk-1\n")]);
        let deepseek = with.find("deepseek").expect("it has a key");
        assert_eq!(deepseek.url("m").as_str(), "https://api.deepseek.com/v1/chat/completions");
        assert_eq!(deepseek.headers[AUTHORIZATION], "Bearer sk-1");
    }

    #[test]
    fn local_servers_and_servers_elsewhere_go_without_a_key() {
        let moved = [("OPENAI_BASE_URL", "http://127.0.0.1:9/v1/")];
        let providers = providers(&[("groq", at("http://10.0.0.7"))], &moved);
        let url = |name| providers.find(name).map(|provider| provider.url("m").to_string());
        assert_eq!(url("ollama"), Ok("http://127.0.0.1:11434/v1/chat/completions".to_owned()));
        assert_eq!(url("openai"), Ok("http://127.0.0.1:9/v1/chat/completions".to_owned()));
        assert_eq!(url("groq"), Ok("http://10.0.0.7/chat/completions".to_owned()));
        assert!(url("mistral").is_err());
    }

    #[test]
    fn the_config_wins_over_the_environment() {
        let env = [("OPENAI_BASE_URL", "http://env/v1"), ("OPENAI_API_KEY", "k"), ("MINE", "m")];
        let config = ProviderConfig { key_env: Some("MINE".to_owned()), ..at("http://config/v1") };
        let providers = providers(&[("openai", config)], &env);
        let openai = providers.find("openai").expect("it is usable");
        assert_eq!(openai.url("m").host_str(), Some("config"));
        assert_eq!(openai.headers[AUTHORIZATION], "Bearer m");
    }

    #[test]
    fn a_key_that_an_entry_names_must_be_there() {
        let office = ProviderConfig { key_env: Some("OFFICE".to_owned()), ..at("http://10.0.0.7") };
        let providers = providers(&[("office", office), ("open", at("http://10.0.0.8"))], &[]);
        assert_eq!(
            refusal(&providers, "office"),
            "provider \"office\" has no key: OFFICE is not set"
        );
        assert_eq!(providers.check("open"), Ok(()));
    }

    #[test]
    fn anthropic_and_gemini_need_their_usual_variables_and_nothing_else() {
        let env = [("ANTHROPIC_API_KEY", "sk-ant"), ("GEMINI_API_KEY", "AIza")];
        let providers = providers(&[], &env);
        let anthropic = providers.find("anthropic").expect("it has a key");
        assert_eq!(anthropic.url("m").as_str(), "https://api.anthropic.com/v1/messages");
        assert_eq!(anthropic.headers["x-api-key"], "sk-ant");
        assert_eq!(anthropic.headers["anthropic-version"], "2023-06-01");
        assert!(!anthropic.headers.contains_key(AUTHORIZATION));
        let gemini = providers.find("gemini").expect("it has a key");
        let url = "https://generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent?alt=sse";
        assert_eq!(gemini.url("m").as_str(), url);
        assert_eq!(gemini.headers["x-goog-api-key"], "AIza");
    }

    #[test]
    fn gemini_takes_the_variables_of_googles_own_programs_too() {
        let google = ("GOOGLE_API_KEY", "from-google");
        let at = ("GOOGLE_GEMINI_BASE_URL", "http://10.0.0.7/gateway");
        let both = providers(&[], &[google, at, ("GEMINI_API_KEY", "AIza")]);
        let key = |providers: &Providers| {
            providers.find("gemini").expect("it is usable").headers["x-goog-api-key"].clone()
        };
        let variable = |providers: &Providers| {
            let mut statuses = providers.statuses();
            statuses.find(|it| it.name == "gemini").expect("it is known").key_variable.clone()
        };
        assert_eq!(
            (key(&both), variable(&both).as_deref()),
            ("AIza".parse().expect("it is one"), Some("GEMINI_API_KEY"))
        );
        let gemini = both.find("gemini").expect("it is usable");
        assert!(gemini.url("m").as_str().starts_with("http://10.0.0.7/gateway/v1beta/models/m:"));
        let one = providers(&[], &[google]);
        assert_eq!(
            (key(&one), variable(&one).as_deref()),
            ("from-google".parse().expect("it is one"), Some("GOOGLE_API_KEY"))
        );
        let none = providers(&[], &[]);
        assert_eq!(variable(&none).as_deref(), Some("GEMINI_API_KEY"));
    }

    #[test]
    fn a_provider_speaks_chat_where_the_config_says_so() {
        let env = [
            ("ANTHROPIC_API_KEY", "k"),
            ("ANTHROPIC_BASE_URL", "http://messages"),
            ("GEMINI_API_KEY", "k"),
        ];
        let chat = ProviderConfig { protocol: Some(Protocol::Chat), ..ProviderConfig::default() };
        let asked = providers(&[("anthropic", chat.clone()), ("gemini", chat)], &env);
        let anthropic = asked.find("anthropic").expect("it speaks chat too");
        assert_eq!(anthropic.url("m").as_str(), "https://api.anthropic.com/v1/chat/completions");
        assert_eq!(anthropic.headers[AUTHORIZATION], "Bearer k");
        let gemini = asked.find("gemini").expect("it speaks chat too");
        assert!(gemini.url("m").path().ends_with("/openai/chat/completions"));
    }

    #[test]
    fn any_server_may_speak_any_protocol_that_is_supported() {
        let speaking =
            |protocol| ProviderConfig { protocol: Some(protocol), ..at("http://10.0.0.7") };
        let config = [
            ("mine", speaking(Protocol::Messages)),
            ("deepseek", speaking(Protocol::Gemini)),
            ("openai", speaking(Protocol::Responses)),
            ("groq", ProviderConfig { base_url: None, ..speaking(Protocol::Messages) }),
        ];
        let providers = providers(&config, &[("GROQ_API_KEY", "k")]);
        let url = |name| providers.find(name).map(|provider| provider.url("m").to_string());
        assert_eq!(url("mine"), Ok("http://10.0.0.7/v1/messages".to_owned()));
        assert!(url("deepseek").is_ok_and(|url| url.starts_with("http://10.0.0.7/v1beta/models/")));
        assert_eq!(url("groq"), Err(Unusable::Address { name: "groq".to_owned() }));
        let unsupported = url("openai").expect_err("it is not supported");
        let Fault::Failed { kind, text } = Fault::from(&unsupported) else { panic!("it failed") };
        assert_eq!(kind, FailureKind::Unsupported);
        assert!(text.contains("protocol = \"chat\""), "{text}");
    }

    #[test]
    fn unknown_names_come_with_the_nearest_one() {
        let providers = providers(&[("office", at("http://10.0.0.7"))], &[]);
        let misspelt = refusal(&providers, "ofice");
        assert_eq!(misspelt, "unknown provider \"ofice\"; did you mean \"office\"?");
        assert_eq!(refusal(&providers, "zzzzzz"), "unknown provider \"zzzzzz\"");
    }

    #[test]
    fn only_plain_web_addresses_are_addresses() {
        for bad in ["127.0.0.1:8000/v1", "ftp://host/v1", "http://", "http://user:pw@host/v1", ""] {
            let text = refusal(&providers(&[("office", at(bad))], &[]), "office");
            assert!(text.contains("needs a base_url") && !text.contains("pw"), "{bad}: {text}");
        }
        let none = providers(&[("office", ProviderConfig::default())], &[]);
        assert!(none.check("office").is_err());
    }

    #[test]
    fn a_query_in_the_address_is_kept_and_not_shown() {
        let providers = providers(&[("azure", at("https://host/openai/v1?api-version=1"))], &[]);
        let azure = providers.find("azure").expect("it is usable");
        assert_eq!(
            azure.url("m").as_str(),
            "https://host/openai/v1/chat/completions?api-version=1"
        );
        let status = providers.statuses().last().expect("there are some");
        assert_eq!(status.base_url.as_deref(), Some("https://host/openai/v1"));
    }

    #[test]
    fn keys_and_headers_print_nowhere() {
        let headers = BTreeMap::from([("X-Token".to_owned(), "hushhush".to_owned())]);
        let config = ProviderConfig { headers, ..ProviderConfig::default() };
        let providers = providers(&[("openai", config)], &[("OPENAI_API_KEY", "sk-1234")]);
        let openai = providers.find("openai").expect("it is usable");
        let printed = format!("{openai:?} {:?}", providers.statuses().next());
        assert!(!printed.contains("sk-1234") && !printed.contains("hushhush"), "{printed}");
        assert_eq!(openai.masked("bad key sk-1234, hushhush"), "bad key ***, ***");
    }

    #[test]
    fn a_key_that_no_header_can_hold_is_refused_without_showing_it() {
        let text = refusal(&providers(&[], &[("OPENAI_API_KEY", "a\u{7}b")]), "openai");
        assert!(text.contains("`authorization`") && !text.contains('\u{7}'), "{text}");
    }

    #[test]
    fn statuses_tell_what_can_be_used_and_why_the_rest_cannot() {
        let providers = providers(&[], &[("XAI_API_KEY", "k")]);
        let usable: Vec<_> = providers.statuses().filter(|it| it.is_usable()).collect();
        let names: Vec<_> = usable.iter().map(|it| &*it.name).collect();
        assert_eq!(names, ["xai", "ollama", "lmstudio", "llamacpp", "vllm", "sglang"]);
        let openai = providers.statuses().next().expect("there are some");
        assert_eq!(openai.key_variable.as_deref(), Some("OPENAI_API_KEY"));
        assert!(openai.why_not.as_deref().expect("no key").contains("OPENAI_API_KEY"));
    }
}
