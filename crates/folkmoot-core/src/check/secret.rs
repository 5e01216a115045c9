//! Which variables and headers hold secrets, by their names and values (rules.md 14.6).

/// Whether what is called so is a secret.
pub fn is_secret(name: &str) -> bool {
    const IN: [&str; 9] = [
        "token",
        "secret",
        "passw",
        "passphrase",
        "credential",
        "cookie",
        "private",
        "authoriz",
        "authent",
    ];
    const AT_THE_END: [&str; 3] = ["key", "keys", "auth"];
    let name = name.to_lowercase();
    let words = name.split(|c: char| !c.is_alphanumeric());
    words.map(|word| word.trim_end_matches(|c: char| c.is_ascii_digit())).enumerate().any(
        |(nth, word)| {
            IN.iter().any(|it| word.contains(it))
                || AT_THE_END.iter().any(|it| word.ends_with(it))
                || word == "pass"
                || word == "pwd" && nth > 0
        },
    )
}

/// Whether a value may be looked for in every text: short ones, plain words, numbers and addresses stand
/// in many, and tell nothing.
pub fn tells(value: &str) -> bool {
    let value = value.trim();
    let length = value.chars().count();
    let is_address = value.split_once("://").is_some_and(|(_, rest)| !rest.contains('@'));
    let is_plain =
        value.chars().all(char::is_alphabetic) || value.chars().all(|c| c.is_ascii_digit());
    length >= 8 && !is_address && (length >= 20 || !is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_known_by_its_name() {
        for name in [
            "OPENAI_API_KEY",
            "MY_APIKEY2",
            "FOO_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "PGPASSWORD",
            "MYSQL_PWD",
            "DB_PASS",
            "GOOGLE_CREDENTIALS",
            "Authorization",
            "X-Api-Key",
            "Cookie",
            "BASIC_AUTH",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in ["PWD", "OLDPWD", "GIT_AUTHOR_NAME", "KEYBOARD", "PATH", "HOME", "COMPASS", "X"]
        {
            assert!(!is_secret(name), "{name}");
        }
    }

    #[test]
    fn what_stands_in_many_texts_is_not_looked_for() {
        for value in ["true", "1", "", "enabled", "production", "123456789", "https://a.example/v1"]
        {
            assert!(!tells(value), "{value}");
        }
        for value in ["sk-0123456789", "hunter2-", "correcthorsebatterystaple", "https://me:pw@a.b"]
        {
            assert!(tells(value), "{value}");
        }
    }
}
