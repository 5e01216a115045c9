use expect_test::expect;
use proptest::prelude::*;

use super::*;
use crate::verdict::Finding;

fn finding(severity: Severity, place: &str, text: &str) -> Finding {
    Finding { severity, place: place.into(), text: text.into() }
}

fn found(texts: &[&str]) -> Report {
    let findings = texts.iter().map(|text| finding(Severity::Major, "a.rs", text));
    Report { findings: findings.collect(), fixed: Vec::new() }
}

fn fixed(report: Report, names: &[&str]) -> Report {
    Report { fixed: names.iter().map(|name| (*name).to_owned()).collect(), ..report }
}

const REVIEWER: By = By { reviewer: "r", of_loop: 0 };

/// The ledger after one report a round, about work that changes each time.
fn after(reports: &[Report]) -> Ledger {
    let mut ledger = Ledger::new(Severity::Minor);
    for (round, report) in (1..).zip(reports) {
        ledger.add(REVIEWER, round, report, true);
    }
    ledger
}

/// How each finding stands, on a line.
fn states(ledger: &Ledger) -> String {
    let state = |it: &Entry| format!("{} {}", it.id(), it.state.as_str());
    ledger.entries().iter().map(state).collect::<Vec<_>>().join(", ")
}

#[test]
fn findings_are_named_in_order_of_first_sight_and_keep_their_names() {
    let ledger = after(&[found(&["it leaks", "no tests"]), found(&["bad name", "no tests"])]);
    assert_eq!(states(&ledger), "F1 fixed, F2 open, F3 new");
}

#[test]
fn a_finding_that_comes_back_is_reopened_and_then_open() {
    let leak = || found(&["it leaks"]);
    let mut reports = vec![leak(), found(&[]), leak()];
    assert_eq!(states(&after(&reports)), "F1 reopened");
    reports.push(leak());
    let ledger = after(&reports);
    expect![[r#"[(1, New), (2, Fixed), (3, Reopened), (4, Open)]"#]]
        .assert_eq(&format!("{:?}", ledger.entries()[0].history));
}

#[test]
fn what_is_named_as_fixed_is_fixed_unless_it_is_reported_all_the_same() {
    let both = found(&["it leaks", "no tests"]);
    let ledger = after(&[both.clone(), fixed(found(&["no tests"]), &[" f1 ", "F2"])]);
    assert_eq!(states(&ledger), "F1 fixed, F2 open");
    let mut ledger = after(&[both]);
    let unknown = ledger.add(REVIEWER, 2, &fixed(found(&[]), &["F3", "F0", "leak", "F2"]), false);
    assert_eq!(
        (states(&ledger), unknown.join(" ")),
        ("F1 open, F2 fixed".into(), "F3 F0 leak".into())
    );
}

#[test]
fn what_is_not_reported_again_is_fixed_only_if_the_work_has_changed() {
    let mut ledger = after(&[found(&["it leaks"])]);
    ledger.add(REVIEWER, 2, &found(&[]), false);
    assert_eq!(states(&ledger), "F1 open");
    ledger.add(REVIEWER, 3, &found(&[]), true);
    assert_eq!(states(&ledger), "F1 fixed");
}

#[test]
fn one_reviewer_does_not_fix_by_silence_what_another_found() {
    let mut ledger = after(&[found(&["it leaks"])]);
    let other = By { reviewer: "s", of_loop: 0 };
    ledger.add(other, 1, &found(&["no tests"]), true);
    assert_eq!(states(&ledger), "F1 new, F2 new");
    ledger.add(other, 2, &found(&["it leaks"]), true);
    assert_eq!(states(&ledger), "F1 open, F2 fixed");
}

#[test]
fn line_numbers_case_width_digits_and_punctuation_do_not_tell_findings_apart() {
    let places = [
        "src/a.rs",
        " src/a.rs:12 ",
        "src/a.rs:12:5",
        "src/a.rs:12-20",
        "src/a.rs#L12",
        "src/a.rs#L3-L9",
        "src/a.rs line 12",
        "src/a.rs, lines 3 to 9",
        "src/a.rs (line 12)",
        "src/a.rs(12,5)",
        "src/a.rs 第 3 行",
        "src/a.rs：3",
        "src/a.rs:12 (lines 4-5)",
        "src/a.rs, Ln 3",
        "src/a.rs L12",
    ];
    for place in places {
        assert_eq!(without_lines(place), "src/a.rs", "{place}");
    }
    for place in ["section 3", "v2", "a-1.rs", "第3章", "§4", "step2"] {
        assert_eq!(without_lines(place), place);
    }
    assert_eq!((without_lines("line 4"), without_lines("3"), without_lines("")), ("", "3", ""));
    let same = [
        "`parse` panics on 12 inputs.",
        "ＰＡＲＳＥ panics, on inputs",
        "Parse\u{200B} Panics\non 7 inputs!",
    ];
    let folded: BTreeSet<String> = same.iter().map(|text| folded(text)).collect();
    assert_eq!(folded.into_iter().collect::<Vec<_>>(), ["parsepanicsoninputs"]);
}

#[test]
fn a_text_that_holds_another_is_the_same_up_to_twice_its_length() {
    let same = |one: &str, other: &str| Identity::of("", one).is_same(&Identity::of("", other));
    assert!(same("abcd", "abcdefgh") && same("xxabcdxx", "abcd") && same("", "12 !"));
    assert!(!same("abcd", "abcdefghi") && !same("abcd", "abdc") && !same("", "a"));
    assert!(!Identity::of("a", "x").is_same(&Identity::of("b", "x")));
}

#[test]
fn a_run_is_clear_when_nothing_material_is_open_after_a_report() {
    assert!(Ledger::new(Severity::Minor).ends(0).is_empty());
    let nit = Report { findings: vec![finding(Severity::Nit, "", "odd")], fixed: Vec::new() };
    assert_eq!(after(std::slice::from_ref(&nit)).ends(0), [End::NoMaterialFindings]);
    let mut strict = Ledger::new(Severity::Nit);
    strict.add(REVIEWER, 1, &nit, true);
    assert!(strict.ends(0).is_empty());
}

#[test]
fn what_comes_back_twice_oscillates() {
    let (leak, none) = (found(&["it leaks", "no tests"]), found(&["no tests"]));
    let rounds = [leak.clone(), none.clone(), leak.clone(), none, leak];
    assert!(!after(&rounds[..4]).ends(0).contains(&End::Oscillation));
    assert!(after(&rounds).ends(0).contains(&End::Oscillation));
}

#[test]
fn a_number_that_does_not_fall_in_two_rounds_in_a_row_is_a_plateau() {
    let rounds = |numbers: &[usize]| {
        let texts = ["it leaks", "no tests", "bad name", "slow"];
        after(&numbers.iter().map(|it| found(&texts[..*it])).collect::<Vec<_>>()).ends(0)
    };
    for (numbers, ends) in [
        (&[2, 2][..], false),
        (&[2, 2, 2], true),
        (&[1, 2, 3], true),
        (&[3, 3, 2], false),
        (&[3, 3, 2, 2], false),
        (&[3, 3, 2, 2, 3], true),
    ] {
        assert_eq!(rounds(numbers) == [End::Plateau], ends, "{numbers:?}");
    }
}

#[test]
fn the_loops_of_a_run_have_plateaus_of_their_own() {
    let mut ledger = after(&[found(&["it leaks"]), found(&["it leaks"])]);
    ledger.add(By { reviewer: "s", of_loop: 1 }, 3, &found(&["no tests"]), true);
    assert!(ledger.ends(0).is_empty() && ledger.ends(1).is_empty());
}

#[test]
fn a_full_ledger_takes_nothing_more_in_and_stays_fast() {
    let words =
        |n: usize| format!("{} {}", "x".repeat(n % 50), (b'a' + (n % 26) as u8) as char).repeat(40);
    let reports: Vec<Report> = (0..8)
        .map(|round| Report {
            findings: (0..200)
                .map(|at| finding(Severity::Nit, &format!("p{}", round * 200 + at), &words(at)))
                .collect(),
            fixed: Vec::new(),
        })
        .collect();
    assert_eq!(after(&reports).entries().len(), MOST);
}

#[test]
fn the_result_tells_each_finding_and_each_round() {
    let ledger =
        after(&[found(&["it leaks", "no tests"]), fixed(found(&["it leaks", "slow"]), &["F2"])]);
    expect![[r#"[{"id":"F1","severity":"major","place":"a.rs","text":"it leaks","opened":1,"state":"open","history":[{"round":1,"state":"new"},{"round":2,"state":"open"}]},{"id":"F2","severity":"major","place":"a.rs","text":"no tests","opened":1,"state":"fixed","history":[{"round":1,"state":"new"},{"round":2,"state":"fixed"}]},{"id":"F3","severity":"major","place":"a.rs","text":"slow","opened":2,"state":"new","history":[{"round":2,"state":"new"}]}]"#]]
    .assert_eq(&json!(ledger.told()).to_string());
    expect![[r#"[{"round":1,"new":2,"fixed":0,"reopened":0,"open":2},{"round":2,"new":1,"fixed":1,"reopened":0,"open":2}]"#]]
    .assert_eq(&json!(ledger.told_rounds()).to_string());
}

/// Reports of texts that often hold one another.
fn reports() -> impl Strategy<Value = Vec<Report>> {
    let severity =
        prop_oneof![Just(Severity::Major), Just(Severity::Nit), Just(Severity::Blocking)];
    let finding = (severity, "(a|b)(:[0-9]|, line 3)?", "[ab]{1,9}[ .1]?[AB]{0,3}")
        .prop_map(|(severity, place, text)| finding(severity, &place, &text));
    let fixed = prop::collection::vec("F[0-9]", 0..3);
    let report = (prop::collection::vec(finding, 0..6), fixed)
        .prop_map(|(findings, fixed)| Report { findings, fixed });
    prop::collection::vec(report, 1..6)
}

proptest! {
    #[test]
    fn never_are_two_findings_of_a_ledger_the_same(reports in reports()) {
        let ledger = after(&reports);
        for (at, one) in ledger.entries.iter().enumerate() {
            for other in &ledger.entries[at + 1..] {
                prop_assert!(!one.identity.is_same(&other.identity), "{one:?} {other:?}");
            }
        }
    }

    #[test]
    fn the_order_within_a_report_changes_nothing_but_the_numbers_of_new_ones(reports in reports()) {
        // No names are given as fixed, since those depend on the numbers.
        let unnamed = |report: &Report| Report { fixed: Vec::new(), ..report.clone() };
        let reversed = |report: &Report| {
            let mut report = unnamed(report);
            report.findings.reverse();
            report
        };
        let plain = |ledger: &Ledger| {
            let mut all: Vec<String> = (ledger.entries.iter())
                .map(|it| format!("{:?} {:?} {:?}", it.identity, it.severity, it.history))
                .collect();
            all.sort();
            all
        };
        let one = after(&reports.iter().map(unnamed).collect::<Vec<_>>());
        let other = after(&reports.iter().map(reversed).collect::<Vec<_>>());
        prop_assert_eq!(plain(&one), plain(&other));
        prop_assert_eq!(one.rounds(), other.rounds());
    }

    #[test]
    fn blanks_lines_case_width_and_punctuation_change_nothing(reports in reports()) {
        let spelled = |report: &Report| {
            let findings = report.findings.iter().map(|it| {
                let wide: String = it.text.chars().map(|c| match c {
                    'a'..='z' | 'A'..='Z' => char::from_u32(c.to_ascii_uppercase() as u32 + 0xFEE0).unwrap_or(c),
                    c => c,
                }).collect();
                finding(it.severity, &format!("  {}:77  ", it.place), &format!("\t*{wide}*, 12!"))
            });
            Report { findings: findings.collect(), fixed: report.fixed.clone() }
        };
        let (one, other) = (after(&reports), after(&reports.iter().map(spelled).collect::<Vec<_>>()));
        prop_assert_eq!(states(&one), states(&other));
        prop_assert_eq!(one.rounds(), other.rounds());
    }

    #[test]
    fn every_reopening_follows_a_fix_and_counts_agree(reports in reports()) {
        let ledger = after(&reports);
        for entry in ledger.entries() {
            let states: Vec<State> = entry.history.iter().map(|it| it.1).collect();
            prop_assert_eq!(states.first(), Some(&State::New));
            prop_assert_eq!(states.last(), Some(&entry.state));
            for pair in states.windows(2) {
                prop_assert_eq!(pair[1] == State::Reopened, pair[0] == State::Fixed);
            }
        }
        let (mut open, mut new) = (0, 0);
        for round in ledger.rounds() {
            open = open + round.new + round.reopened - round.fixed;
            new += round.new;
            prop_assert_eq!(open, round.open);
        }
        prop_assert_eq!(new, ledger.entries().len());
    }
}
