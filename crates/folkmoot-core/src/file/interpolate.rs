//! Variables in texts that may have them (rules.md 13.5).

/// A placeholder that cannot be filled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfilled {
    /// The variable has no value, and no default stands beside it.
    Unset(String),
    /// It is no `${NAME}` and no `${NAME:-default}`.
    Malformed(String),
}

/// Fills `${NAME}` and `${NAME:-default}`, once: what is filled in is not read again. A default
/// serves where the variable is unset or empty, `$$` is a dollar sign, any other `$` itself.
///
/// All placeholders that cannot be filled come back together.
pub fn fill(
    text: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<String, Vec<Unfilled>> {
    let mut filled = String::with_capacity(text.len());
    let mut failures = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        filled.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(behind) = rest.strip_prefix('$') {
            filled.push('$');
            rest = behind;
        } else if let Some(inside) = rest.strip_prefix('{') {
            let (placeholder, behind) = inside.split_once('}').unwrap_or((inside, ""));
            let closed = inside.len() > placeholder.len();
            match value(placeholder, closed, variable) {
                Ok(value) => filled.push_str(&value),
                Err(failure) => failures.push(failure),
            }
            rest = behind;
        } else {
            filled.push('$');
        }
    }
    filled.push_str(rest);
    if failures.is_empty() { Ok(filled) } else { Err(failures) }
}

fn value(
    placeholder: &str,
    closed: bool,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<String, Unfilled> {
    let (name, default) = match placeholder.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (placeholder, None),
    };
    if !closed || !is_name(name) {
        return Err(Unfilled::Malformed(placeholder.to_owned()));
    }
    match (variable(name), default) {
        (Some(value), None) => Ok(value),
        (Some(value), Some(_)) if !value.is_empty() => Ok(value),
        (_, Some(default)) => Ok(default.to_owned()),
        (None, None) => Err(Unfilled::Unset(name.to_owned())),
    }
}

/// Whether a text can be the name of an environment variable.
pub fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str) -> Result<String, Vec<Unfilled>> {
        fill(text, &|name| match name {
            "HOST" => Some("a: b\nadmin: true # ${HOME}".into()),
            "EMPTY" => Some(String::new()),
            _ => None,
        })
    }

    #[test]
    fn placeholders_are_filled_once_and_their_values_never_read_again() {
        let value = "x a: b\nadmin: true # ${HOME} y".to_owned();
        assert_eq!(filled("x ${HOST} y"), Ok(value));
        assert_eq!(
            filled("${EMPTY}|${EMPTY:-d}|${NONE:-http://h:9/{x}"),
            Ok("|d|http://h:9/{x".into())
        );
        assert_eq!(filled("${NONE:-}"), Ok(String::new()));
    }

    #[test]
    fn other_dollars_are_themselves() {
        assert_eq!(filled("costs $5, $$5, $${HOST}, $"), Ok("costs $5, $5, ${HOST}, $".into()));
    }

    #[test]
    fn all_that_cannot_be_filled_is_told_at_once() {
        let unset = |name: &str| Unfilled::Unset(name.into());
        let malformed = |text: &str| Unfilled::Malformed(text.into());
        assert_eq!(
            filled("${A} ${HOST} ${B} ${a-b} ${} ${1A} ${open"),
            Err(vec![
                unset("A"),
                unset("B"),
                malformed("a-b"),
                malformed(""),
                malformed("1A"),
                malformed("open"),
            ])
        );
    }
}
