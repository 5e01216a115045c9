//! What a file says, once it has the right shape.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::Value;

use crate::{decimal::Decimal, diagnostic::Place, time::Duration};

/// A value of the right shape, and where it stands.
#[derive(Clone, Debug)]
pub struct Item {
    /// Where it stands.
    pub place: Place,
    /// What it is.
    pub content: Content,
    /// Whether it stands there as a number or truth value, whatever is made of it.
    pub is_bare: bool,
}

/// What a value is.
#[derive(Clone, Debug)]
pub enum Content {
    /// A text.
    Text(Arc<str>),
    /// True or false.
    Flag(bool),
    /// A whole number.
    Whole(u64),
    /// A number.
    Number(f64),
    /// A decimal number.
    Decimal(Decimal),
    /// A length of time; `None` is no end.
    Time(Option<Duration>),
    /// Values in order. Of those with a wrong shape, records are empty and others left out.
    List(Vec<Item>),
    /// Environment variables.
    Variables(BTreeMap<Arc<str>, Arc<str>>),
    /// A map with known keys.
    Fields(Fields),
    /// Maps with known keys by name, and where each name stands.
    Named(Vec<(Arc<str>, Place, Fields)>),
    /// Anything that JSON can say.
    Json(Value),
}

/// A map with known keys. Keys whose values have a wrong shape are not in it, but remembered.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    /// Where the map stands.
    pub place: Place,
    /// The keys that are there, and where each stands.
    pub(super) entries: BTreeMap<&'static str, (Place, Item)>,
    /// The keys of a team's own that are there, with what stands at them.
    pub(super) others: Vec<(Arc<str>, Place, Item)>,
    /// The keys that are there with a fault in them.
    pub(super) broken: BTreeSet<&'static str>,
    /// Whether anything in the map is wrong, unknown keys included.
    pub(super) faulty: bool,
}

impl Fields {
    /// No keys.
    pub fn none(place: Place) -> Fields {
        Fields { place, ..Fields::default() }
    }

    /// The value of a key.
    pub fn get(&self, name: &str) -> Option<&Item> {
        self.entries.get(name).map(|(_, item)| item)
    }

    /// Where a key stands; the map itself if it is not there.
    pub fn key(&self, name: &str) -> &Place {
        self.entries.get(name).map_or(&self.place, |(key, _)| key)
    }

    /// Where the value of a key stands; the map itself if it is not there.
    pub fn place_of(&self, name: &str) -> &Place {
        self.get(name).map_or(&self.place, |item| &item.place)
    }

    /// The keys that are there.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.entries.keys().copied()
    }

    /// The keys of a team's own that are there, where each stands, and its value.
    pub fn others(&self) -> &[(Arc<str>, Place, Item)] {
        &self.others
    }

    /// Whether a key is there with a fault in it.
    pub fn is_broken(&self, name: &str) -> bool {
        self.broken.contains(name)
    }

    /// Whether anything in the map is wrong, so that what is absent may be a mistake as well.
    pub fn is_faulty(&self) -> bool {
        self.faulty
    }

    /// The text of a key.
    pub fn text(&self, name: &str) -> Option<&Arc<str>> {
        self.get(name)?.text()
    }

    /// The truth value of a key.
    pub fn flag(&self, name: &str) -> Option<bool> {
        match self.get(name)?.content {
            Content::Flag(flag) => Some(flag),
            _ => None,
        }
    }

    /// The whole number of a key.
    pub fn whole(&self, name: &str) -> Option<u64> {
        self.get(name)?.whole()
    }

    /// The number of a key.
    pub fn number(&self, name: &str) -> Option<f64> {
        match self.get(name)?.content {
            Content::Number(number) => Some(number),
            _ => None,
        }
    }

    /// The decimal number of a key.
    pub fn decimal(&self, name: &str) -> Option<Decimal> {
        match self.get(name)?.content {
            Content::Decimal(number) => Some(number),
            _ => None,
        }
    }

    /// The time of a key: absent, without end, or so long.
    pub fn time(&self, name: &str) -> Option<Option<Duration>> {
        match self.get(name)?.content {
            Content::Time(time) => Some(time),
            _ => None,
        }
    }

    /// The list of a key; empty if it is not there.
    pub fn list(&self, name: &str) -> &[Item] {
        match self.get(name).map(|item| &item.content) {
            Some(Content::List(items)) => items,
            _ => &[],
        }
    }

    /// The texts in the list of a key.
    pub fn texts(&self, name: &str) -> Vec<Arc<str>> {
        self.list(name).iter().filter_map(Item::text).cloned().collect()
    }

    /// The maps by name of a key, and where each name stands.
    pub fn named(&self, name: &str) -> &[(Arc<str>, Place, Fields)] {
        match self.get(name).map(|item| &item.content) {
            Some(Content::Named(named)) => named,
            _ => &[],
        }
    }

    /// The map of a key.
    pub fn fields(&self, name: &str) -> Option<&Fields> {
        self.get(name)?.fields()
    }
}

impl Item {
    /// The text it is.
    pub fn text(&self) -> Option<&Arc<str>> {
        match &self.content {
            Content::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The whole number it is.
    pub fn whole(&self) -> Option<u64> {
        match self.content {
            Content::Whole(number) => Some(number),
            _ => None,
        }
    }

    /// The map it is.
    pub fn fields(&self) -> Option<&Fields> {
        match &self.content {
            Content::Fields(fields) => Some(fields),
            _ => None,
        }
    }
}
