//! Findings in the format of code scanners, SARIF 2.1.0.
//!
//! A rule is no more than a code here; what it means stands in the reference. There are no fixes
//! that a program could apply: a suggestion is words, and stands in the message.

use std::{
    collections::BTreeSet,
    fmt::Write,
    path::{Component, Path},
};

use folkmoot_core::diagnostic::{Diagnostic, Position, Severity, Span};
use serde_json::{Value, json};

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// A file, and what was found in it.
pub(crate) struct Findings<'a> {
    /// Where it is.
    pub(crate) file: &'a Path,
    /// Its text, in which the findings have their places.
    pub(crate) text: &'a str,
    /// Everything found.
    pub(crate) found: &'a [Diagnostic],
}

/// The log of one check of these files, made in `folder`.
pub(crate) fn log(files: &[Findings], folder: &Path) -> Value {
    let all = files.iter().flat_map(|it| it.found);
    let codes: BTreeSet<&str> = all.map(|it| it.code).collect();
    let codes: Vec<&str> = codes.into_iter().collect();
    let uris: Vec<String> = files.iter().map(|it| uri(it.file, folder)).collect();
    let artifacts: Vec<Value> =
        uris.iter().map(|uri| json!({ "location": { "uri": uri } })).collect();
    let results: Vec<Value> = (files.iter().zip(&uris).enumerate())
        .flat_map(|(at, (file, uri))| {
            let artifact = json!({ "uri": uri, "index": at });
            file.found.iter().map(move |it| match &it.file {
                None => (artifact.clone(), file.text, it),
                // What a file names stands beside it.
                Some(other) => {
                    let beside = file.file.parent().unwrap_or(Path::new("")).join(&*other.path);
                    (json!({ "uri": self::uri(&beside, folder) }), &*other.text, it)
                }
            })
        })
        .map(|(artifact, text, found)| {
            let rule = codes.binary_search(&found.code).expect("the codes are those of all");
            result(found, rule, &artifact, text)
        })
        .collect();
    let rules: Vec<Value> = codes.iter().map(|code| rule(code)).collect();
    let driver =
        json!({ "name": "folkmoot", "version": env!("CARGO_PKG_VERSION"), "rules": rules });
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": driver },
            "columnKind": "unicodeCodePoints",
            "artifacts": artifacts,
            "results": results,
        }],
    })
}

fn rule(code: &str) -> Value {
    let words = code.replace('_', " ");
    json!({ "id": code, "shortDescription": { "text": words } })
}

fn result(found: &Diagnostic, rule: usize, artifact: &Value, text: &str) -> Value {
    let help = found.help.as_ref().map(|help| format!("\nhelp: {help}"));
    let message = format!("{}{}", found.message, help.unwrap_or_default());
    let mut place = place(found.at, artifact, text);
    if let Some(path) = &found.path {
        place["logicalLocations"] = json!([{ "fullyQualifiedName": path }]);
    }
    let mut result = json!({
        "ruleId": found.code,
        "ruleIndex": rule,
        "level": level(found.severity),
        "message": literal(&message),
        "locations": [place],
    });
    let also = found.also.iter().map(|(span, words)| {
        let mut place = self::place(Some(*span), artifact, text);
        place["message"] = literal(words);
        place
    });
    let also: Vec<Value> = also.collect();
    if !also.is_empty() {
        result["relatedLocations"] = json!(also);
    }
    result
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Hint => "note",
    }
}

/// A message without placeholders, whose braces are doubled as the format wants it.
fn literal(text: &str) -> Value {
    json!({ "text": text.replace('{', "{{").replace('}', "}}") })
}

fn place(at: Option<Span>, artifact: &Value, text: &str) -> Value {
    let mut physical = json!({ "artifactLocation": artifact });
    if let Some(span) = at {
        let (start, end) = (Position::of(text, span.start), Position::of(text, span.end));
        physical["region"] = json!({
            "startLine": start.line,
            "startColumn": start.column,
            "endLine": end.line,
            "endColumn": end.column,
        });
    }
    json!({ "physicalLocation": physical })
}

/// Where a file is, relative to `folder` if it stands in there.
fn uri(file: &Path, folder: &Path) -> String {
    let file = file.strip_prefix(folder).unwrap_or(file);
    let parts = file.components().filter_map(|part| match part {
        Component::Normal(part) => Some(encoded(part.as_encoded_bytes())),
        Component::ParentDir => Some("..".to_owned()),
        Component::Prefix(drive) => Some(drive.as_os_str().to_string_lossy().into_owned()),
        Component::RootDir | Component::CurDir => None,
    });
    let path = parts.collect::<Vec<_>>().join("/");
    if file.is_absolute() { format!("file:///{path}") } else { path }
}

/// Bytes as a part of a URI's path: all but letters, digits and `-._~` by their numbers.
fn encoded(bytes: &[u8]) -> String {
    let mut encoded = String::new();
    for byte in bytes {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(*byte));
            }
            byte => write!(encoded, "%{byte:02X}").expect("a string takes any text"),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn files_are_named_relative_to_the_folder_and_in_plain_characters() {
        let folder = Path::new("/home/me/work");
        for (file, wanted) in [
            ("team.yaml", "team.yaml"),
            ("./teams/a b.yaml", "teams/a%20b.yaml"),
            ("../other/团队.yaml", "../other/%E5%9B%A2%E9%98%9F.yaml"),
            ("c:d#e?.yaml", "c%3Ad%23e%3F.yaml"),
            ("100%.yaml", "100%25.yaml"),
            ("/home/me/work/sub/team.yaml", "sub/team.yaml"),
            ("/etc/team.yaml", "file:///etc/team.yaml"),
        ] {
            assert_eq!(uri(Path::new(file), folder), wanted);
        }
    }

    #[test]
    fn a_finding_has_its_place_its_rule_and_its_suggestion() {
        let text = "界a: {\n}\n";
        let first = Diagnostic::warning("odd_key", "\"a\" is odd in {…}")
            .spanning(Span::from(3..4))
            .help("write b".to_owned())
            .also(Some(Span::from(6..7)), "ends {here}");
        let second = Diagnostic::hint("bad_day", "it is Monday");
        let found = [first, second];
        let log =
            log(&[Findings { file: Path::new("t.yaml"), text, found: &found }], Path::new("/"));
        let run = &log["runs"][0];
        let shown = json!([run["tool"]["driver"]["rules"], run["results"]]);
        let shown = serde_json::to_string_pretty(&shown).expect("plain data");
        expect![[r#"
            [
              [
                {
                  "id": "bad_day",
                  "shortDescription": {
                    "text": "bad day"
                  }
                },
                {
                  "id": "odd_key",
                  "shortDescription": {
                    "text": "odd key"
                  }
                }
              ],
              [
                {
                  "ruleId": "odd_key",
                  "ruleIndex": 1,
                  "level": "warning",
                  "message": {
                    "text": "\"a\" is odd in {{…}}\nhelp: write b"
                  },
                  "locations": [
                    {
                      "physicalLocation": {
                        "artifactLocation": {
                          "uri": "t.yaml",
                          "index": 0
                        },
                        "region": {
                          "startLine": 1,
                          "startColumn": 2,
                          "endLine": 1,
                          "endColumn": 3
                        }
                      }
                    }
                  ],
                  "relatedLocations": [
                    {
                      "physicalLocation": {
                        "artifactLocation": {
                          "uri": "t.yaml",
                          "index": 0
                        },
                        "region": {
                          "startLine": 1,
                          "startColumn": 5,
                          "endLine": 1,
                          "endColumn": 6
                        }
                      },
                      "message": {
                        "text": "ends {{here}}"
                      }
                    }
                  ]
                },
                {
                  "ruleId": "bad_day",
                  "ruleIndex": 0,
                  "level": "note",
                  "message": {
                    "text": "it is Monday"
                  },
                  "locations": [
                    {
                      "physicalLocation": {
                        "artifactLocation": {
                          "uri": "t.yaml",
                          "index": 0
                        }
                      }
                    }
                  ]
                }
              ]
            ]"#]]
        .assert_eq(&shown);
    }
}
