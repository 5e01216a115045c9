//! The table of states: what each action does in each (orchestrate.md §4).

use std::sync::Arc;

use serde_json::json;

use crate::{
    limits::Limits,
    orchestrate::{
        Assignment, BranchState, Card, Cards, Event, Judgement, Mark, Plan, PlanRequest, Refusals,
        Role, Row, State, Template, Verdict,
    },
};

fn by(actor: &str) -> Mark {
    Mark { at: 1, actor: actor.into() }
}

fn cards_of(topology: &str) -> Cards {
    let issues = json!([{ "id": "1" }, { "id": "2" }]);
    let request =
        PlanRequest { issues, topology: Some(topology.to_owned()), ..PlanRequest::default() };
    let plan = Plan::new(&request, |_| false).expect("it is sound");
    let template = Template::built_in(Some("demo"));
    let mut cards = Cards::default();
    let made = cards.materialize(&by("ann"), &plan, "t", &template).expect("it is made");
    for row in made.1 {
        cards.apply(row);
    }
    cards
}

fn assignment(branch: Option<&str>) -> Assignment {
    let branch = branch.map(str::to_owned);
    Assignment { role: "implementer".to_owned(), agent: "codex".to_owned(), branch }
}

fn judgement(verdict: Verdict, commit: &str) -> Judgement {
    Judgement { verdict, commit: Some(commit.into()), findings: Vec::new() }
}

fn code<T>(refused: Result<T, Refusals>) -> &'static str {
    refused.err().map_or("", |it| it[0].code)
}

impl Cards {
    fn note(&mut self, event: Event) {
        self.apply(by("engine").row(&"T001".into(), event));
    }

    fn first(&self) -> Card {
        self.get("T001").expect("it is there").clone()
    }

    fn do_assign(&mut self, branch: Option<&str>) -> Result<State, Refusals> {
        let row = self.assign(&by("ann"), &self.first(), &assignment(branch), |_| true)?;
        self.apply(row);
        Ok(self.first().state)
    }

    fn do_review(
        &mut self,
        who: &str,
        head: &str,
        it: Option<&Judgement>,
    ) -> Result<State, Refusals> {
        let head: Option<Arc<str>> = Some(head.into());
        let rows: Vec<Row> = self.review(&by(who), &self.first(), None, head, it)?;
        for row in rows {
            self.apply(row);
        }
        Ok(self.first().state)
    }
}

fn begun() -> Event {
    let (run, agent, base) = ("r1".into(), "codex".into(), Some("base".into()));
    let branch = Some("folkmoot/p/T001".into());
    Event::Begun { run, agent, authors: Vec::new(), branch, base, limits: Limits::default() }
}

fn executed(findings: &[&str]) -> Event {
    let findings = findings.iter().map(|it| (*it).into()).collect();
    Event::Executed { head: Some("head".into()), gates: [].into(), findings }
}

/// Cards of which the first is in that state.
fn in_state(state: State) -> Cards {
    let mut cards = cards_of("pipeline");
    let events = match state {
        State::Planned => vec![],
        State::Implementing => vec![begun(), Event::Fell { why: "x".into() }],
        State::Reviewing => vec![begun(), executed(&[])],
        State::ChangesRequested => vec![begun(), executed(&["no"])],
        State::Failed => (0..3).flat_map(|_| [begun(), Event::Fell { why: "x".into() }]).collect(),
        State::Blocked => vec![Event::Blocked { by: vec!["T002".into()] }],
        State::Integrated => vec![begun(), executed(&[]), Event::Integrated { commit: None }],
        State::Cancelled => vec![Event::Cancelled],
    };
    for event in events {
        cards.note(event);
    }
    if state == State::Blocked {
        // The second card is the one that waits in a pipeline.
        cards = cards_of("pipeline");
        cards.apply(by("x").row(&"T002".into(), Event::Blocked { by: vec!["T001".into()] }));
    }
    cards
}

#[test]
fn every_action_does_in_every_state_what_the_table_says() {
    for state in State::ALL {
        let cards = in_state(state);
        let id = if state == State::Blocked { "T002" } else { "T001" };
        let card = cards.get(id).expect("it is there");
        assert_eq!(card.state, state);
        let assign = cards.assign(&by("ann"), card, &assignment(None), |_| true);
        let execute = cards.execute(&by("ann"), card);
        let waits = matches!(execute, Ok(Err(_)));
        let head: Option<Arc<str>> = Some("head".into());
        let review = cards.review(&by("ann"), card, None, head.clone(), None);
        let approve = judgement(Verdict::Approved, "head");
        let verdict = cards.review(&by("ann"), card, None, head, Some(&approve));
        let merge = cards.merge(card, Some("head"));
        let told = [code(assign), code(execute), code(review), code(verdict), code(merge)];
        let (unassigned, unreviewed) = ("must_be_assigned", "must_be_reviewing");
        let wanted = match state {
            State::Planned | State::Failed => ["", "", unassigned, unassigned, unreviewed],
            State::Implementing => ["", "", "", unreviewed, unreviewed],
            State::Reviewing => ["", "wrong_state", "", "", "not_approved"],
            State::ChangesRequested => ["", "", unassigned, unreviewed, unreviewed],
            State::Blocked => ["blocked_by_dependency", "", unassigned, unassigned, unreviewed],
            State::Integrated | State::Cancelled => ["terminal"; 5],
        };
        assert_eq!(told, wanted, "{state:?}");
        assert_eq!(waits, state == State::Blocked);
        let cancel = if state.is_final() { "terminal" } else { "" };
        assert_eq!(code(cards.cancel(&by("ann"), card)), cancel, "{state:?}");
    }
}

#[test]
fn a_card_that_waits_goes_on_by_itself_when_the_last_one_before_it_is_in() {
    let mut cards = in_state(State::Blocked);
    cards.note(begun());
    cards.note(executed(&[]));
    assert_eq!(cards.all()[1].state, State::Blocked, "reviewed is not integrated");
    cards.note(Event::Integrated { commit: Some("m".into()) });
    let second = &cards.all()[1];
    let last = second.events.last().expect("it has events");
    assert_eq!(
        (second.state, last.event, last.before),
        (State::Planned, "unblocked", Some(State::Blocked))
    );
}

#[test]
fn what_is_approved_is_enough_for_a_card_that_only_reads() {
    let mut cards = cards_of("star");
    let hub = |cards: &Cards| cards.unmet(&cards.all()[2]).len();
    assert_eq!(hub(&cards), 2);
    cards.note(begun());
    cards.note(executed(&[]));
    assert_eq!(hub(&cards), 2);
    cards
        .do_review("bob", "head", Some(&judgement(Verdict::Approved, "head")))
        .expect("it is taken");
    assert_eq!(hub(&cards), 1);
}

#[test]
fn a_verdict_is_about_the_last_commit_and_a_later_one_voids_it() {
    let mut cards = in_state(State::Reviewing);
    let approve = judgement(Verdict::Approved, "head");
    assert_eq!(
        code(cards.do_review("bob", "head", Some(&judgement(Verdict::Approved, "old")))),
        "stale_commit"
    );
    assert_eq!(code(cards.do_review("codex", "head", Some(&approve))), "own_work");
    assert!(!cards.first().is_approved());
    assert_eq!(cards.do_review("bob", "head", Some(&approve)), Ok(State::Reviewing));
    assert_eq!(cards.first().branch.state, BranchState::Approved);
    assert_eq!(code(cards.merge(&cards.first(), Some("head"))), "");
    assert_eq!(code(cards.merge(&cards.first(), Some("later"))), "stale_commit");
    cards.do_review("bob", "later", None).expect("it is looked at again");
    assert_eq!(cards.first().branch.state, BranchState::UnderReview);
    assert_eq!(code(cards.merge(&cards.first(), Some("later"))), "not_approved");
    cards
        .do_review("bob", "later", Some(&judgement(Verdict::Approved, "later")))
        .expect("it is taken");
    cards.do_assign(None).expect("it is given anew");
    assert_eq!(cards.first().review, None, "an approval of earlier work is void");
}

#[test]
fn reviewers_who_disagree_about_a_commit_put_it_to_a_person() {
    let (yes, no) = (Verdict::Approved, Verdict::ChangesRequested);
    for (first, second) in [(yes, no), (no, yes)] {
        let mut cards = in_state(State::Reviewing);
        cards.do_review("bob", "head", Some(&judgement(first, "head"))).expect("it is taken");
        let after = cards.do_review("eve", "head", Some(&judgement(second, "head")));
        assert_eq!(after, Ok(State::Reviewing));
        let waiting = cards.first().waiting_on.expect("somebody is asked");
        assert_eq!(&*waiting.reason, "conflict");
        assert_eq!(code(cards.merge(&cards.first(), Some("head"))), "not_approved");
    }
    let mut cards = in_state(State::Reviewing);
    cards.do_review("bob", "head", Some(&judgement(no, "head"))).expect("it is taken");
    assert_eq!(cards.first().state, State::ChangesRequested);
}

#[test]
fn a_merge_needs_its_gates_passed() {
    let mut cards = cards_of("pipeline");
    cards.note(begun());
    let gates = [("test".into(), crate::orchestrate::Passed::Unknown)].into();
    cards.note(Event::Executed { head: Some("head".into()), gates, findings: Vec::new() });
    cards
        .do_review("bob", "head", Some(&judgement(Verdict::Approved, "head")))
        .expect("it is taken");
    assert_eq!(code(cards.merge(&cards.first(), Some("head"))), "gates_not_passed");
}

#[test]
fn nobody_takes_a_card_that_a_run_works_on_or_a_branch_of_another() {
    let mut cards = cards_of("parallel-team");
    cards.note(begun());
    assert_eq!(code(cards.do_assign(None)), "busy");
    assert_eq!(code(cards.do_review("ann", "head", None)), "busy");
    let other = cards.all()[1].clone();
    let given = |branch| cards.assign(&by("ann"), &other, &assignment(Some(branch)), |_| true);
    assert_eq!(code(given("folkmoot/p/T001")), "branch_in_use");
    for branch in ["-f", "a b", "a/../b", "a..b", "a.lock", "/a", "a~1", "@{u}"] {
        assert_eq!(code(given(branch)), "bad_branch", "{branch}");
    }
    assert_eq!(
        code(cards.assign(&by("ann"), &other, &assignment(None), |_| false)),
        "unknown_agent"
    );
    let ghost = Assignment { role: "ghost".to_owned(), ..assignment(None) };
    assert_eq!(code(cards.assign(&by("ann"), &other, &ghost, |_| true)), "unknown_role");
}

#[test]
fn a_record_needs_a_branch_before_it_can_be_reviewed_and_is_never_executed() {
    let mut cards = Cards::default();
    let row = cards.plan(&by("ann"), "write release notes", None).expect("it is recorded");
    cards.apply(row);
    assert_eq!(code(cards.execute(&by("ann"), &cards.first())), "not_materialized");
    assert_eq!(code(cards.plan(&by("ann"), "x", Some("T001"))), "task_id_exists");
    assert_eq!(code(cards.plan(&by("ann"), "x", Some("../x"))), "bad_task_id");
    assert_eq!(code(cards.plan(&by("ann"), "  ", None)), "task_required");
    assert_eq!(cards.do_assign(None), Ok(State::Implementing));
    assert_eq!(
        code(cards.review(&by("ann"), &cards.first(), Some(""), None, None)),
        "branch_required"
    );
    let rows =
        cards.review(&by("ann"), &cards.first(), Some("feat/x"), None, None).expect("it has one");
    for row in rows {
        cards.apply(row);
    }
    assert_eq!(cards.first().state, State::Reviewing);
    assert_eq!(cards.meant(None, Some("feat/x")).map(|it| &*it.task_id), Ok("T001"));
    assert_eq!(code(cards.meant(Some("T999"), None)), "unknown_task_id");
}

#[test]
fn every_change_of_a_card_is_one_event_with_who_when_before_and_after() {
    let cards = in_state(State::Integrated);
    let mut state = None;
    for event in cards.first().events {
        assert_eq!(event.before, state, "{}", event.event);
        assert!(event.at > 0 && !event.actor.is_empty());
        state = Some(event.after);
    }
    assert_eq!(state, Some(State::Integrated));
}

#[test]
fn a_card_is_rolled_back_unless_it_is_final_or_another_run_works_on_it() {
    let back = |cards: &Cards, origin: &str| cards.roll_back(&cards.first(), origin);
    for state in [State::Reviewing, State::ChangesRequested, State::Failed] {
        assert_eq!(code(back(&in_state(state), "r1")), "", "{state:?}");
    }
    assert_eq!(code(back(&in_state(State::Integrated), "r1")), "terminal");
    let mut cards = cards_of("pipeline");
    cards.note(begun());
    assert_eq!(code(back(&cards, "r0")), "busy");
    assert_eq!(code(back(&cards, "r1")), "", "what was broken off is gone back in");
    cards.note(executed(&[]));
    let approve = judgement(Verdict::Approved, "head");
    cards.do_review("bob", "head", Some(&approve)).expect("it is taken");
    let (run, from, key) = ("r2".into(), "r1".into(), Some("stage-1".into()));
    let head = Some("back".into());
    cards.note(Event::RolledBack { run, from, key, limits: Limits::default(), head });
    let card = cards.first();
    assert_eq!((card.state, card.runs.len(), card.is_approved()), (State::Implementing, 2, false));
    assert_eq!((card.open_run.as_deref(), card.branch.head.as_deref()), (Some("r2"), Some("back")));
}

#[test]
fn every_refusal_names_a_way_out() {
    let mut told = Vec::new();
    for state in State::ALL {
        let cards = in_state(state);
        let card = cards.all().iter().find(|card| card.state == state).expect("it is there");
        let (by, head) = (by("codex"), Some(Arc::from("head")));
        let approve = judgement(Verdict::Approved, "other");
        told.extend(cards.assign(&by, card, &assignment(Some("a b")), |_| true).err());
        told.extend(cards.assign(&by, card, &assignment(None), |_| false).err());
        told.extend(cards.execute(&by, card).err());
        told.extend(cards.begin(card).err());
        told.extend(cards.review(&by, card, None, head.clone(), None).err());
        told.extend(cards.review(&by, card, None, head, Some(&approve)).err());
        told.extend(cards.merge(card, Some("head")).err());
        told.extend(cards.cancel(&by, card).err());
    }
    told.extend(Role::named("").err());
    told.extend(Verdict::named("yes").err());
    told.extend(Cards::default().meant(Some("T9"), None).err());
    let silent: Vec<_> = told.iter().flatten().filter(|it| it.help.is_none()).collect();
    assert!(silent.is_empty() && told.len() > 20, "{silent:#?}");
}
