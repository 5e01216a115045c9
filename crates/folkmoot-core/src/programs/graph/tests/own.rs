//! Conditions and guards of a team's own.

use super::*;
use crate::extension::{Expression, Kind, Rule};

fn own(name: &str, expr: &str) -> Own {
    Own {
        name: name.into(),
        rule: Rule::Expr(Expression::new(expr)),
        params: Parameters::new(),
        bound: false,
        describe: None,
    }
}

fn until(own: impl IntoIterator<Item = Own>) -> Option<Group> {
    let member = |own: Own| {
        let written = json!({ &*own.name: {} });
        Member::One(Condition { test: Test::Own(Box::new(own)), written })
    };
    Some(Group { any_of: Some(own.into_iter().map(member).collect()), all_of: None })
}

/// A review loop with these conditions, and what came of it.
fn review(own: impl IntoIterator<Item = Own>, reviews: &[&str]) -> (Status, String, Sim) {
    let graph = Graph { termination: until(own), ..graph(&REVIEW) };
    ended(team(vec![agent("coder", &["A", "B", "C"]), agent("reviewer", reviews)], graph))
}

fn ended(spec: Spec) -> (Status, String, Sim) {
    let sim = play(spec);
    let replayed = replay(&sim.log).unwrap_or_else(|divergence| panic!("{divergence}"));
    assert!(replayed == sim.run);
    let result = view::outcome("run", &sim.spec, &sim.run, true);
    (result.status, result.reason.unwrap_or_default(), sim)
}

const GOES_BACK: &str = "more\nNEXT: coder";

#[test]
fn a_condition_of_ones_own_ends_the_run_under_its_name() {
    let spec = {
        let own = own("two_reviews", "replies.reviewer | length >= 2 and last.coder == 'B'");
        let graph = Graph { termination: until([own]), ..graph(&REVIEW) };
        team(vec![agent("coder", &["A", "B", "C"]), agent("reviewer", &[GOES_BACK])], graph)
    };
    check(
        spec,
        expect![[r#"
          1     0 started
          2     0 asked coder/1 [task]
          3     0 answered coder/1: A
          4     0 asked reviewer/1 [task · quote coder/1 · say Say where your work goes…]
          5     0 answered reviewer/1: more
        NEXT: coder
          6     0 asked coder/2 [task · own coder/1 · quote reviewer/1 as loop]
          7     0 answered coder/2: B
          8     0 asked reviewer/2 [task · own reviewer/1 · quote coder/2 · say Say where your work goes…]
          9     0 answered reviewer/2: more
        NEXT: coder
         10     0 ended two_reviews
        = done two_reviews: Some("B")
          {"round":1,"kind":"graph","steps":[{"step":1,"agent":"coder","response":"A","next":["reviewer"]},{"step":2,"agent":"reviewer","response":"more\nNEXT: coder","next":["coder"],"options":["coder","parent"],"why":"line"}]}
          {"round":2,"kind":"graph","steps":[{"step":3,"agent":"coder","response":"B","next":["reviewer"]},{"step":4,"agent":"reviewer","response":"more\nNEXT: coder","next":[],"options":["coder","parent"],"why":"line"}]}
    "#]],
    );
}

#[test]
fn every_variable_is_what_the_log_tells() {
    let holds = [
        "round == 2 and steps == 4",
        "elapsed_ms == 300 and task == 'TASK'",
        "usage.calls == 4 and usage.tokens == 0",
        "verdict.reviewer == 'reject' and score.reviewer == 7.5",
        "verdict.coder is none and score.coder is none",
        "replies.coder == ['A', 'B'] and last.coder == 'B' and last['coder'] == 'B'",
        "replies | list == ['coder', 'reviewer']",
    ];
    for expr in holds {
        let at_end = format!("replies.reviewer | length == 2 and ({expr})");
        let reviews = ["more\nNEXT: coder", "~300 REJECTED\nscore: 7.5"];
        let (status, reason, sim) = review([own("it", &at_end)], &reviews);
        assert_eq!((status, &*reason), (Status::Done, "it"), "{expr}");
        assert_eq!(sim.run.ledger().run.calls, 4, "{expr}");
    }
}

#[test]
fn a_bound_of_ones_own_is_no_success_and_weaker_than_one() {
    let bound = |name| Own { bound: true, ..own(name, "round >= 2") };
    let (status, reason, _) = review([bound("enough")], &[GOES_BACK]);
    assert_eq!((status, &*reason), (Status::BoundReached, "enough"));
    let both = [bound("enough"), own("good", "round >= 2")];
    let (status, reason, sim) = review(both, &[GOES_BACK]);
    assert_eq!((status, &*reason), (Status::Done, "good"));
    let result = view::outcome("run", &sim.spec, &sim.run, true);
    assert_eq!(result.graph.expect("it is a graph")["also"], json!(["enough"]));
}

#[test]
fn what_cannot_be_evaluated_ends_the_run_and_is_named() {
    for (expr, why) in [
        ("last.reviewer | int > 3", "cannot parse"),
        ("range(99999) | list | length > 3", "it takes more than 100000 steps"),
        ("last.nobody == 'x'", "is not there"),
        ("last.reviewer", "it must give true or false; it gives a value of type string"),
        ("1 +", "unexpected end"),
    ] {
        let (status, reason, sim) = review([own("strange", expr)], &[GOES_BACK]);
        assert_eq!((status, &*reason), (Status::Failed, "error"), "{expr}");
        let result = view::outcome("run", &sim.spec, &sim.run, true);
        let [error] = &result.errors[..] else { panic!("{expr}: {:?}", result.errors) };
        assert!(error.error.contains("condition strange: "), "{}", error.error);
        assert!(error.error.contains(why), "{}", error.error);
        assert!(result.partial.is_some(), "what was done so far is kept");
    }
}

fn guarded(expr: &str, reviews: &[&str]) -> Spec {
    let mut graph = graph(&REVIEW);
    graph.edges[3].when = Some(Guard::Expr(Expression::new(expr)));
    team(vec![agent("coder", &["A", "B", "C"]), agent("reviewer", reviews)], graph)
}

#[test]
fn a_guard_of_ones_own_takes_an_edge() {
    let spec = guarded("score.reviewer >= 8", &["score: 5", "score: 9"]);
    let (status, reason, sim) = ended(spec);
    assert_eq!((status, &*reason), (Status::Done, "completed"));
    assert_eq!(sim.run.ledger().run.calls, 4);
}

#[test]
fn a_guard_that_cannot_be_evaluated_ends_the_run_and_is_named() {
    let (status, reason, sim) = ended(guarded("score.reviewer + 1 > 8", &["fine"]));
    assert_eq!((status, &*reason), (Status::Failed, "error"));
    let result = view::outcome("run", &sim.spec, &sim.run, true);
    assert!(result.errors[0].error.contains("guard of reviewer -> parent: "));
    assert_eq!(sim.run.ledger().run.calls, 2, "nobody is asked once more");
}

#[test]
fn a_choice_that_is_named_needs_no_guard() {
    let (status, reason, _) = ended(guarded("score.reviewer + 1 > 8", &["fine\nNEXT: parent"]));
    assert_eq!((status, &*reason), (Status::Done, "completed"));
}

#[test]
fn a_function_is_a_condition_as_good_as_an_expression() {
    let kind = Kind::new(|facts, params| {
        facts.replies(&"reviewer".into()).is_some_and(|it| it.count() as u64 == params["most"])
    });
    let params = json!({ "most": 2 }).as_object().cloned().unwrap_or_default();
    let (status, reason, _) =
        review([Own { rule: kind.rule, params, ..own("counted", "") }], &[GOES_BACK]);
    assert_eq!((status, &*reason), (Status::Done, "counted"));
}

#[test]
fn a_lead_that_routes_is_told_what_a_condition_means_and_ends_with_it() {
    let described =
        Own { describe: Some("the tester\nis content".into()), ..own("it", "round == 9") };
    let written = json!({ "it": {} });
    let condition = Condition { test: Test::Own(described.into()), written };
    assert_eq!(condition.shown(), "the tester\nis content");
    let plain =
        Condition { test: Test::Own(own("it", "true").into()), written: json!({ "it": {} }) };
    assert_eq!(plain.shown(), r#"{"it":{}}"#);
}
