//! Names of agents that cannot be told apart, written, or trusted.

use expect_test::expect;

use crate::Case;

fn team(names: &[&str]) -> String {
    let agents = names.iter().map(|name| serde_json::json!({ "name": name, "demo": true }));
    serde_json::json!({ "agents": agents.collect::<Vec<_>>() }).to_string()
}

fn codes(names: &[&str]) -> Vec<&'static str> {
    Case::new(&team(names)).check().diagnostics.iter().map(|told| told.code).collect()
}

#[test]
fn twins_are_refused_and_both_are_named() {
    Case::new(
        "agents:\n  - { name: Billing Desk, demo: true }\n  - { name: b, demo: true }\n  - { name: billing-desk, demo: true }\n  - { name: BILLING_DESK, demo: true }\n",
    )
    .tells(&expect![[r#"
        4:13 agents[2].name error[bad_name] Agents "Billing Desk" and "billing-desk" cannot be told apart | 2:13 the other one
        5:13 agents[3].name error[bad_name] Agents "billing-desk" and "BILLING_DESK" cannot be told apart | 4:13 the other one
    "#]]);
    for twins in
        [["a", "a"], ["straße", "STRASSE"], ["é", "e\u{301}"], ["Ａ", "a"], ["qa bot", "qabot"]]
    {
        assert_eq!(codes(&twins), ["bad_name"], "{twins:?}");
    }
    for apart in
        [["資料分析", "市場研究"], ["a1", "a2"], ["C++ (backend)", "C (backend)"], ["é", "e"]]
    {
        assert!(codes(&apart).is_empty(), "{apart:?}");
    }
}

#[test]
fn signs_of_any_script_are_letters_of_a_name_and_invisible_ones_are_not() {
    for name in ["C++ (backend)", "Q&A [fast]", "o'neil", "a -> b: c", "🤖", "研究员", "..a", "<b>"]
    {
        assert!(codes(&[name]).is_empty(), "{name}");
    }
    for name in [
        "a/b",
        "a\nb",
        "a\tb",
        "a\u{0}",
        "a\u{200b}b",
        "a\u{202e}b",
        "\u{feff}a",
        "",
        " ",
        ".",
        "..",
    ] {
        assert_eq!(codes(&[name]), ["bad_name"], "{name:?}");
    }
    Case::new(&team(&["a/b", "x\u{202e}y", " "])).tells(&expect![[r#"
        1:20 agents[0].name error[bad_name] Agent name "a/b" holds "/"; letters, digits, blanks and signs of any script are permitted, but no slash, line break, control or invisible character
        1:47 agents[1].name error[bad_name] Agent name "x\u{202e}y" holds U+202E; letters, digits, blanks and signs of any script are permitted, but no slash, line break, control or invisible character
        1:74 agents[2].name error[bad_name] an agent's name must not be blank
    "#]]);
}

#[test]
fn a_name_has_at_most_a_hundred_characters() {
    assert!(codes(&[&"é".repeat(100)]).is_empty());
    Case::new(&team(&[&"é".repeat(101)])).tells(&expect![[r#"
        1:20 agents[0].name error[bad_name] an agent's name has at most 100 characters; this has 101
    "#]]);
}

#[test]
fn the_lead_keeps_its_name() {
    Case::new(&team(&["Parent"])).tells(&expect![[r#"
        1:20 agents[0].name error[bad_name] Agent name "Parent" is reserved
    "#]]);
    assert!(codes(&["parents"]).is_empty());
}

#[test]
fn letters_of_scripts_that_look_alike_are_warned_of_in_one_word() {
    Case::new(&team(&["\u{410}gent"])).tells(&expect![[r#"
        1:20 agents[0].name warning[look_alike] Agent name "Аgent" mixes Latin and Cyrillic letters in one word
    "#]]);
    assert_eq!(codes(&["c\u{3bf}der"]), ["look_alike"]);
    for name in ["Агент", "α-tester", "GPT 研究员", "カタカナ漢字", "Straße"] {
        assert!(codes(&[name]).is_empty(), "{name}");
    }
}
