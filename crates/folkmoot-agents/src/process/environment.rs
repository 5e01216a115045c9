//! What a child process gets of our environment (agents.md §4).

use std::collections::BTreeMap;

use folkmoot_core::check::Environment;

/// Variables that every child gets if we have them.
const BASELINE: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TERM",
    "TZ",
    "TMPDIR",
    // Their kin on Windows.
    "APPDATA",
    "COMSPEC",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "PATHEXT",
    "PROGRAMDATA",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "USERNAME",
    "USERPROFILE",
    "WINDIR",
];

/// The variables of a child, of which the parent has `ours`: a pure function of both, so that keys,
/// addresses and proxies of the caller do not leak.
pub(crate) fn environment(
    policy: &Environment,
    ours: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let is_passed = |name: &str| {
        policy.inherit
            || BASELINE.contains(&name)
            || name.starts_with("LC_")
            || policy.allow.iter().any(|allowed| **allowed == *name)
    };
    let passed = ours.iter().filter(|(name, _)| is_passed(name));
    let set = policy.set.iter().map(|(name, value)| (name.to_string(), value.to_string()));
    passed.map(|(name, value)| (name.clone(), value.clone())).chain(set).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours() -> BTreeMap<String, String> {
        let names = ["PATH", "LC_ALL", "OPENAI_API_KEY", "HTTPS_PROXY", "EDITOR", "path"];
        names.map(|name| (name.to_owned(), format!("our {name}"))).into()
    }

    fn names(policy: &Environment) -> Vec<String> {
        environment(policy, &ours()).into_keys().collect()
    }

    #[test]
    fn a_child_gets_a_baseline_and_no_keys() {
        assert_eq!(names(&Environment::default()), ["LC_ALL", "PATH"]);
    }

    #[test]
    fn what_is_allowed_is_passed_and_what_is_set_wins() {
        let policy = Environment {
            allow: vec!["EDITOR".into(), "NONE".into()],
            set: [("PATH".into(), "theirs".into()), ("NEW".into(), "1".into())].into(),
            inherit: false,
        };
        assert_eq!(names(&policy), ["EDITOR", "LC_ALL", "NEW", "PATH"]);
        assert_eq!(environment(&policy, &ours())["PATH"], "theirs");
    }

    #[test]
    fn everything_is_passed_only_on_request() {
        let policy = Environment { inherit: true, ..Environment::default() };
        assert_eq!(names(&policy).len(), 6);
    }
}
