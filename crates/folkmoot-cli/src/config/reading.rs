//! From the text of a config file to a value, or to everything that is wrong with it.

use std::ops::Range;

use folkmoot_core::names::nearest;
use serde::de::DeserializeOwned;
use toml::{
    Spanned,
    de::{DeTable, DeValue, Deserializer, Error},
};

/// How many faults are told at once; more help nobody, and each costs a reading.
const ENOUGH: usize = 100;

/// Something that is wrong, and where.
#[derive(Debug)]
pub(super) struct Fault {
    /// The bytes concerned.
    pub(super) span: Range<usize>,
    /// What is wrong. The line itself is never shown, as it may hold a key.
    pub(super) message: String,
}

/// Reads `text`.
///
/// What is wrong is taken out, and what is left is read again, until nothing is wrong: so all faults
/// are found although each reading stops at the first.
pub(super) fn read<T: DeserializeOwned>(text: &str) -> Result<T, Vec<Fault>> {
    let mut table = DeTable::parse(text).map_err(|error| vec![fault(&error)])?;
    let (mut faults, mut lossy) = (Vec::new(), Vec::new());
    loop {
        let error = match T::deserialize(Deserializer::from(table.clone())) {
            Ok(value) if faults.is_empty() => return Ok(value),
            Ok(_) => return Err(in_order(faults)),
            Err(error) => fault(&error),
        };
        let span = error.span.clone();
        // A table may well lack what was taken out of it.
        if !(error.message.starts_with("missing field") && lossy.contains(&span)) {
            faults.push(error);
        }
        let place = table.span();
        match take_out(table.get_mut(), &place, &span) {
            Some(lost) if lossy.len() < ENOUGH => lossy.push(lost),
            Some(_) | None => return Err(in_order(faults)),
        }
    }
}

fn in_order(mut faults: Vec<Fault>) -> Vec<Fault> {
    faults.sort_by_key(|fault| fault.span.start);
    faults
}

fn fault(error: &Error) -> Fault {
    Fault { span: error.span().unwrap_or_default(), message: with_nearest(error.message()) }
}

/// Takes the innermost entry that `span` is about out of `table`, which stands at `place`; gives the
/// place of the table that lost it.
fn take_out(
    table: &mut DeTable<'_>,
    place: &Range<usize>,
    span: &Range<usize>,
) -> Option<Range<usize>> {
    let is_in = |outer: Range<usize>| outer.start <= span.start && span.end <= outer.end;
    let named = table.keys().find(|key| is_in(key.span())).cloned();
    if named.is_none()
        && let Some(inner) = table.iter_mut().find_map(|(_, value)| take_out_of(value, span))
    {
        return Some(inner);
    }
    let key = named.or_else(|| {
        let mut entries = table.iter();
        entries.find(|(_, value)| is_in(value.span())).map(|(key, _)| key.clone())
    })?;
    table.remove(&key);
    Some(place.clone())
}

/// The same for the tables inside `value`.
fn take_out_of(value: &mut Spanned<DeValue<'_>>, span: &Range<usize>) -> Option<Range<usize>> {
    let place = value.span();
    match value.get_mut() {
        DeValue::Table(table) => take_out(table, &place, span),
        DeValue::Array(items) => items.iter_mut().find_map(|item| take_out_of(item, span)),
        DeValue::String(_)
        | DeValue::Integer(_)
        | DeValue::Float(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_) => None,
    }
}

/// The words of a fault, and the known word that was probably meant: ``unknown field `x`, expected
/// one of `y`, `z` ``.
fn with_nearest(message: &str) -> String {
    let mut quoted = message.split('`').skip(1).step_by(2);
    let word = quoted.next().filter(|_| message.starts_with("unknown "));
    match word.and_then(|word| nearest(word, quoted)) {
        Some(meant) => format!("{message}; did you mean `{meant}`?"),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use expect_test::{Expect, expect};
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Shelf {
        #[serde(default)]
        #[expect(dead_code, reason = "it is only read")]
        books: BTreeMap<String, Book>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Book {
        #[expect(dead_code, reason = "it is only read")]
        pages: u32,
        #[serde(default)]
        #[expect(dead_code, reason = "it is only read")]
        sequels: Vec<Book>,
    }

    fn check(text: &str, expected: &Expect) {
        let told = |it: Fault| format!("{}: {}\n", &text[it.span], it.message);
        let faults = read::<Shelf>(text).expect_err("it is wrong");
        expected.assert_eq(&faults.into_iter().map(told).collect::<String>());
    }

    #[test]
    fn all_faults_are_told_at_once_and_none_that_only_follows_from_another() {
        check(
            "[books.a]\npages = 'many'\nautor = 1\n[books.b]\npages = 1\npagse = 2\n\
             sequels = [{ pages = 2 }, { pages = [] }]\n[book]\n[books]\nc = 3\nd = {}\n",
            &expect![[r#"
                'many': invalid type: string "many", expected u32
                autor: unknown field `autor`, expected `pages` or `sequels`
                pagse: unknown field `pagse`, expected `pages` or `sequels`; did you mean `pages`?
                []: invalid type: sequence, expected u32
                book: unknown field `book`, expected `books`; did you mean `books`?
                3: invalid type: integer `3`, expected struct Book
                {}: missing field `pages`
            "#]],
        );
    }

    #[test]
    fn a_text_that_is_no_toml_is_told_of_as_such() {
        check(
            "[books\n",
            &expect![[r#"
            : unclosed table, expected `]`
        "#]],
        );
    }

    #[test]
    fn what_is_sound_is_read_with_or_without_a_mark_and_with_any_line_end() {
        for text in ["", "[books.a]\npages = 1\n", "\u{feff}[books.a]\r\npages = 1\r\n"] {
            read::<Shelf>(text).expect("it is sound");
        }
    }
}
