//! What `check` prints of several files, and for code scanners.

use expect_test::expect;
use serde_json::{Value, json};

use crate::{
    bench::Bench,
    snapshot::{check, check_json},
};

const SOUND: &str = "agents: [{ name: a, demo: true }]\ncollaboration: { strategy: sequential }\n";
const DOUBTFUL: &str =
    "agents: [{ name: a, demo: true }]\ncollaboration: { strategy: broadcast, judge: a }\n";
const BAD: &str = "agnets: []\nagents: [{ name: 研究员, demo: yes }]\n";

fn three() -> Bench {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("teams")).expect("the folder can be written");
    bench.write("teams/sound team.yaml", SOUND);
    bench.write("doubtful.yaml", DOUBTFUL);
    bench.write("坏.yaml", BAD);
    bench
}

const FILES: [&str; 4] = ["./teams/sound team.yaml", "doubtful.yaml", "坏.yaml", "none.yaml"];

#[test]
fn each_of_several_files_has_a_report_and_one_with_errors_decides_the_exit_code() {
    let bench = three();
    check(
        &bench,
        bench.call(["check"].into_iter().chain(FILES)),
        expect![[r#"
        exit 2
        > ./teams/sound team.yaml: sound: a run takes 1 call
        > doubtful.yaml: sound: a run takes 1 call
        > 坏.yaml: not sound
        > none.yaml: not sound
        ! warning[ignored_parameter]: judge has no effect in broadcast
        !  --> doubtful.yaml:2:39
        !   |
        ! 2 | collaboration: { strategy: broadcast, judge: a }
        !   |                                       ^^^^^
        ! 
        ! 1 warning
        ! error[unknown_key]: unknown key "agnets"
        !  --> 坏.yaml:1:1
        !   |
        ! 1 | agnets: []
        !   | ^^^^^^
        !   |
        !   = help: did you mean "agents"?
        ! 
        ! error[bad_value]: demo must be true or false; got "yes"
        !  --> 坏.yaml:2:29
        !   |
        ! 2 | agents: [{ name: 研究员, demo: yes }]
        !   |                                ^^^
        ! 
        ! 2 errors
        ! error[unreadable_team]: cannot read the team file none.yaml: No such file or directory (os error 2)
        ! 
        ! 1 error
    "#]],
    );
    check(
        &bench,
        bench.call(["check", FILES[0], FILES[1]]),
        expect![[r#"
        exit 0
        > ./teams/sound team.yaml: sound: a run takes 1 call
        > doubtful.yaml: sound: a run takes 1 call
        ! warning[ignored_parameter]: judge has no effect in broadcast
        !  --> doubtful.yaml:2:39
        !   |
        ! 2 | collaboration: { strategy: broadcast, judge: a }
        !   |                                       ^^^^^
        ! 
        ! 1 warning
    "#]],
    );
}

#[test]
fn programs_get_a_list_of_reports_each_like_that_of_one_file() {
    let bench = three();
    let all = ["check", "--json"].into_iter().chain(FILES);
    let all = bench.call(all).must_be(2).json();
    assert_eq!(all["valid"], false);
    let files = all["files"].as_array().expect("it is a list");
    for (file, report) in FILES.iter().zip(files).take(3) {
        let mut alone = bench.call(["check", file, "--json"]).json();
        let fields = alone.as_object_mut().expect("a report is a map");
        fields.insert("file".into(), json!(file));
        assert_eq!(&alone, report);
    }
    check_json(
        &bench,
        files[3].clone(),
        expect![[r#"
        {
          "file": "none.yaml",
          "valid": false,
          "errors": [
            {
              "code": "unreadable_team",
              "message": "cannot read the team file none.yaml: No such file or directory (os error 2)"
            }
          ],
          "warnings": [],
          "hints": []
        }
    "#]],
    );
    let sound = bench.call(["check", FILES[0], FILES[1], "--format", "json"]).must_be(0).json();
    assert_eq!(sound["valid"], true);
}

#[test]
fn one_file_that_cannot_be_read_is_refused_as_ever() {
    let bench = Bench::new();
    for format in [&["--json"][..], &["--format", "json"]] {
        let called = ["check", "none.yaml"].into_iter().chain(format.iter().copied());
        let refused = bench.call(called).must_be(2).json();
        assert_eq!(refused["error"]["code"], "unreadable_team", "{refused}");
    }
    bench.call(["check"]).must_be(2);
}

#[test]
fn a_code_scanner_gets_every_finding_with_its_rule_and_its_place() {
    let bench = three();
    let log = ["check", "--format", "sarif"].into_iter().chain(FILES);
    let mut log = bench.call(log).must_be(2).json();
    is_as_the_format_wants(&log);
    let driver = log["runs"][0]["tool"]["driver"].as_object_mut().expect("there is a tool");
    assert_eq!(driver.shift_remove("version"), Some(json!(env!("CARGO_PKG_VERSION"))));
    check_json(
        &bench,
        log,
        expect![[r#"
        {
          "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
          "version": "2.1.0",
          "runs": [
            {
              "tool": {
                "driver": {
                  "name": "folkmoot",
                  "rules": [
                    {
                      "id": "bad_value",
                      "shortDescription": {
                        "text": "bad value"
                      }
                    },
                    {
                      "id": "ignored_parameter",
                      "shortDescription": {
                        "text": "ignored parameter"
                      }
                    },
                    {
                      "id": "unknown_key",
                      "shortDescription": {
                        "text": "unknown key"
                      }
                    },
                    {
                      "id": "unreadable_team",
                      "shortDescription": {
                        "text": "unreadable team"
                      }
                    }
                  ]
                }
              },
              "columnKind": "unicodeCodePoints",
              "artifacts": [
                {
                  "location": {
                    "uri": "teams/sound%20team.yaml"
                  }
                },
                {
                  "location": {
                    "uri": "doubtful.yaml"
                  }
                },
                {
                  "location": {
                    "uri": "%E5%9D%8F.yaml"
                  }
                },
                {
                  "location": {
                    "uri": "none.yaml"
                  }
                }
              ],
              "results": [
                {
                  "ruleId": "ignored_parameter",
                  "ruleIndex": 1,
                  "level": "warning",
                  "message": {
                    "text": "judge has no effect in broadcast"
                  },
                  "locations": [
                    {
                      "physicalLocation": {
                        "artifactLocation": {
                          "uri": "doubtful.yaml",
                          "index": 1
                        },
                        "region": {
                          "startLine": 2,
                          "startColumn": 39,
                          "endLine": 2,
                          "endColumn": 44
                        }
                      },
                      "logicalLocations": [
                        {
                          "fullyQualifiedName": "collaboration.judge"
                        }
                      ]
                    }
                  ]
                },
                {
                  "ruleId": "unknown_key",
                  "ruleIndex": 2,
                  "level": "error",
                  "message": {
                    "text": "unknown key \"agnets\"\nhelp: did you mean \"agents\"?"
                  },
                  "locations": [
                    {
                      "physicalLocation": {
                        "artifactLocation": {
                          "uri": "%E5%9D%8F.yaml",
                          "index": 2
                        },
                        "region": {
                          "startLine": 1,
                          "startColumn": 1,
                          "endLine": 1,
                          "endColumn": 7
                        }
                      },
                      "logicalLocations": [
                        {
                          "fullyQualifiedName": "agnets"
                        }
                      ]
                    }
                  ]
                },
                {
                  "ruleId": "bad_value",
                  "ruleIndex": 0,
                  "level": "error",
                  "message": {
                    "text": "demo must be true or false; got \"yes\""
                  },
                  "locations": [
                    {
                      "physicalLocation": {
                        "artifactLocation": {
                          "uri": "%E5%9D%8F.yaml",
                          "index": 2
                        },
                        "region": {
                          "startLine": 2,
                          "startColumn": 29,
                          "endLine": 2,
                          "endColumn": 32
                        }
                      },
                      "logicalLocations": [
                        {
                          "fullyQualifiedName": "agents[0].demo"
                        }
                      ]
                    }
                  ]
                },
                {
                  "ruleId": "unreadable_team",
                  "ruleIndex": 3,
                  "level": "error",
                  "message": {
                    "text": "cannot read the team file none.yaml: No such file or directory (os error 2)"
                  },
                  "locations": [
                    {
                      "physicalLocation": {
                        "artifactLocation": {
                          "uri": "none.yaml",
                          "index": 3
                        }
                      }
                    }
                  ]
                }
              ]
            }
          ]
        }
    "#]],
    );
    let sound = bench.call(["check", FILES[0], "--format", "sarif"]).must_be(0).json();
    is_as_the_format_wants(&sound);
    assert_eq!(sound["runs"][0]["results"], json!([]));
}

#[test]
fn a_file_named_by_its_whole_path_is_relative_to_the_folder_all_the_same() {
    let bench = three();
    let path = bench.path("坏.yaml").display().to_string();
    let log = bench.call(["check", &path, "--format", "sarif"]).must_be(2).json();
    let uri = &log["runs"][0]["artifacts"][0]["location"]["uri"];
    assert_eq!(uri, "%E5%9D%8F.yaml");
}

/// What the format requires of a log as this one is: its members, and that each index leads to what
/// is named beside it.
#[track_caller]
fn is_as_the_format_wants(log: &Value) {
    assert_eq!(log["version"], "2.1.0");
    let run = &log["runs"][0];
    assert_eq!(run["columnKind"], "unicodeCodePoints");
    let rules = run["tool"]["driver"]["rules"].as_array().expect("there are rules");
    for rule in rules {
        assert!(rule["id"].is_string() && rule["shortDescription"]["text"].is_string(), "{rule}");
    }
    for result in run["results"].as_array().expect("there are results") {
        let text = result["message"]["text"].as_str().expect("a result has a message");
        assert!(!text.is_empty());
        let rule = result["ruleIndex"].as_u64().expect("a result has a rule") as usize;
        assert_eq!(rules[rule]["id"], result["ruleId"]);
        let level = result["level"].as_str().expect("a result has a level");
        assert!(["error", "warning", "note"].contains(&level), "{level}");
        let place = &result["locations"][0]["physicalLocation"];
        let artifact = place["artifactLocation"]["index"].as_u64().expect("it is in a file");
        let uri = &run["artifacts"][artifact as usize]["location"]["uri"];
        assert_eq!(uri, &place["artifactLocation"]["uri"]);
        let uri = uri.as_str().expect("a file has an address");
        assert!(uri.is_ascii() && !uri.contains(' ') && !uri.starts_with('/'), "{uri}");
        if let Some(region) = place.get("region") {
            let number = |key: &str| region[key].as_u64().expect("a region has four numbers");
            let start = (number("startLine"), number("startColumn"));
            let end = (number("endLine"), number("endColumn"));
            assert!(start.0 > 0 && start.1 > 0 && start <= end, "{region}");
        }
    }
}
