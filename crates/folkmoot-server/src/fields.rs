//! How the fields of small requests are read: all mistakes at once, unknown fields among them.

use folkmoot_core::{diagnostic::quoted, names::suggestion, refusal::Refusal};
use serde_json::{Map, Value};

/// The fields of a request, and what is wrong with them.
pub(crate) struct Fields<'a> {
    fields: &'a Map<String, Value>,
    told: Vec<Refusal>,
}

impl<'a> Fields<'a> {
    /// The fields of a request that knows these.
    pub(crate) fn new(fields: &'a Map<String, Value>, known: &[&str]) -> Fields<'a> {
        let unknown = fields.keys().filter(|name| !known.contains(&&***name)).map(|name| {
            let help = suggestion(name, known.iter().copied());
            let allowed = known.iter().map(|&it| it.to_owned()).collect();
            let message = format!("unknown field {}", quoted(name));
            Refusal { help, allowed, ..Refusal::new("unknown_field", message) }
        });
        Fields { fields, told: unknown.collect() }
    }

    /// Notes a mistake.
    pub(crate) fn wrong(&mut self, code: &'static str, message: impl Into<String>) {
        self.told.push(Refusal::new(code, message));
    }

    /// Notes that there is no action of that name.
    pub(crate) fn wrong_action(&mut self, action: &str, known: &[&str]) {
        let message = format!("there is no action {}", quoted(action));
        let allowed = known.iter().map(|&it| it.to_owned()).collect();
        self.told.push(Refusal { allowed, ..Refusal::new("unknown_action", message) });
    }

    /// The value of a field, if it is given and not null.
    pub(crate) fn value(&self, name: &str) -> Option<&'a Value> {
        self.fields.get(name).filter(|it| !it.is_null())
    }

    /// A text.
    pub(crate) fn text(&mut self, name: &str) -> Option<String> {
        let text = self.value(name)?.as_str().map(str::to_owned);
        if text.is_none() {
            self.wrong("bad_value", format!("{name} must be a text"));
        }
        text
    }

    /// A text that must be there.
    pub(crate) fn needed(&mut self, name: &str) -> String {
        if self.value(name).is_none() {
            self.wrong("missing_field", format!("{name} is missing"));
        }
        self.text(name).unwrap_or_default()
    }

    /// A whole number of at least 0.
    pub(crate) fn number(&mut self, name: &str) -> Option<u64> {
        let number = self.value(name)?.as_u64();
        if number.is_none() {
            self.wrong("bad_value", format!("{name} must be a whole number of at least 0"));
        }
        number
    }

    /// Yes or no.
    pub(crate) fn flag(&mut self, name: &str) -> bool {
        let Some(value) = self.value(name) else { return false };
        if !value.is_boolean() {
            self.wrong("bad_value", format!("{name} must be true or false"));
        }
        *value == Value::Bool(true)
    }

    /// A list of texts.
    pub(crate) fn texts(&mut self, name: &str) -> Vec<String> {
        let Some(value) = self.value(name) else { return Vec::new() };
        let items = value.as_array().into_iter().flatten();
        let texts: Option<Vec<String>> = items.map(|it| Some(it.as_str()?.to_owned())).collect();
        texts.filter(|_| value.is_array()).unwrap_or_else(|| {
            self.wrong("bad_value", format!("{name} must be a list of texts"));
            Vec::new()
        })
    }

    /// Refuses the request if anything is wrong with it.
    pub(crate) fn judged(self) -> Result<(), Refusal> {
        Refusal::all(self.told).map_or(Ok(()), Err)
    }
}
