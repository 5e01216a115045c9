//! The limits of a phase (orchestrate.md §6).

use serde_json::json;

use crate::{
    limits::Limits,
    money::Money,
    orchestrate::{
        Budget, Cards, Dollars, Event, Mark, Plan, PlanRequest, Refusals, Taken, Template,
    },
};

/// Three cards, side by side, of a phase with such limits.
fn cards(limits: Budget) -> Cards {
    let issues = json!([{ "id": "1" }, { "id": "2" }, { "id": "3" }]);
    let plan = Plan::new(&PlanRequest { issues, ..PlanRequest::default() }, |_| false);
    let template = Template { limits, ..Template::built_in(Some("demo")) };
    let by = Mark { at: 1, actor: "ann".into() };
    let mut cards = Cards::default();
    let made = cards.materialize(&by, &plan.expect("it is sound"), "t", &template);
    made.expect("they are made").1.into_iter().for_each(|row| cards.apply(row));
    cards
}

fn note(cards: &mut Cards, id: &str, event: Event) {
    let by = Mark { at: 1, actor: "engine".into() };
    cards.apply(by.row(&id.into(), event));
}

fn begun(run: &str) -> Event {
    let (run, agent, limits) = (run.into(), "codex".into(), Limits::default());
    let (authors, branch, base) = (Vec::new(), Some("b".into()), None);
    Event::Begun { run, agent, authors, branch, base, limits }
}

fn share(cards: &Cards, id: &str, calls: &[u64]) -> Result<Option<u64>, Refusals> {
    let taken = calls.iter().map(|calls| Taken { calls: *calls, ..Taken::default() });
    let card = cards.get(id).expect("it is there");
    cards.share(card, taken).map(|limits| limits.calls)
}

#[test]
fn a_run_may_use_an_even_share_of_what_is_left() {
    let mut cards = cards(Budget { calls: Some(10), ..Budget::default() });
    assert_eq!(share(&cards, "T001", &[]), Ok(Some(4)));
    note(&mut cards, "T001", begun("r1"));
    // What is under way counts as far as it may go, and its card needs no other run now.
    assert_eq!(share(&cards, "T002", &[4]), Ok(Some(3)));
    let done = Event::Executed { head: None, gates: [].into(), findings: Vec::new() };
    note(&mut cards, "T001", done);
    assert_eq!(share(&cards, "T002", &[1]), Ok(Some(5)), "what was not used comes back");
    assert_eq!(share(&cards, "T002", &[1, 9]).map_err(|it| it[0].code), Err("phase_exhausted"));
    assert_eq!(share(&cards, "T002", &[1, u64::MAX]).map_err(|it| it.len()), Err(1));
}

#[test]
fn shares_that_are_taken_one_after_the_other_never_pass_the_limit() {
    for limit in 0..40 {
        let mut cards = cards(Budget { calls: Some(limit), ..Budget::default() });
        let mut taken = Vec::new();
        for id in ["T001", "T002", "T003"] {
            if let Ok(Some(calls)) = share(&cards, id, &taken) {
                taken.push(calls);
                note(&mut cards, id, begun(id));
            }
        }
        assert_eq!(taken.iter().sum::<u64>(), limit);
    }
}

#[test]
fn each_limit_binds_and_what_has_none_is_not_bounded() {
    let dollars = Some(Dollars(Money::from_usd(3.0)));
    let cards = cards(Budget { tokens: Some(300), cost: dollars, calls: None });
    let card = cards.get("T001").expect("it is there");
    let wanted =
        Limits { tokens: Some(100), cost: Some(Money::from_usd(1.0)), ..Limits::default() };
    assert_eq!(cards.share(card, []), Ok(wanted));
    assert_eq!(Taken::at_most(&wanted).calls, u64::MAX);
    let spent = Taken { cost: Money::from_usd(3.0), ..Taken::default() };
    assert!(cards.share(card, [spent]).is_err());
    assert!(card.left([Taken { tokens: 299, ..Taken::default() }]).is_ok());
}

#[test]
fn limits_are_written_as_in_team_files() {
    let read = |text: &str| serde_json::from_str::<Budget>(text);
    let budget = read(r#"{"tokens": 9, "cost": 2.5}"#).expect("it can be read");
    assert_eq!(budget.cost, Some(Dollars(Money::from_usd(2.5))));
    assert_eq!(json!(budget), json!({ "tokens": 9, "cost": 2.5 }));
    for wrong in [r#"{"cost": -1}"#, r#"{"time": 3}"#, r#"{"calls": -1}"#, r#"{"calls": 1.5}"#] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}
