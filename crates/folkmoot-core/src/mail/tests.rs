use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::{
    State::{Acknowledged, Leased, Pending},
    *,
};

const SECOND: u64 = 1_000_000;

/// A mailbox with what was appended to it.
#[derive(Default)]
struct Bench {
    mailbox: Mailbox,
    rows: Vec<Row>,
    sent: u32,
    leases: u32,
}

impl Bench {
    fn add(&mut self, rows: impl IntoIterator<Item = Row>) {
        for row in rows {
            self.mailbox.apply(row.clone());
            self.rows.push(row);
        }
    }

    fn send(
        &mut self,
        now: u64,
        from: &str,
        draft: Draft,
        busy: &[&str],
    ) -> Result<Sending, Refused> {
        let id = format!("m{}", self.sent + 1).into();
        let (from, to) = (from.into(), "b".into());
        let message = Message { id, from, to, draft, sent_at: now, run: None, call: None };
        let busy = busy.iter().map(|run| (*run).into()).collect();
        let sending = self.mailbox.send(message, busy)?;
        self.sent += u32::from(sending.row.is_some());
        self.add(sending.row.clone());
        Ok(sending)
    }

    fn read(&mut self, now: u64) -> Option<Reading> {
        self.leases += 1;
        let lease = format!("l{}", self.leases).into();
        let by = Party { name: "b".into(), ..Party::default() };
        let reading =
            self.mailbox.read(now, None, Some(10), &lease, &by).expect("ten seconds are fine")?;
        self.add(reading.row.clone());
        Some(reading)
    }

    fn state(&self, id: &str, now: u64) -> State {
        self.mailbox.get(id).expect("it was sent").state(now)
    }
}

fn says(body: &str) -> Draft {
    Draft { body: body.into(), max_attempts: ATTEMPTS, ..Draft::default() }
}

#[test]
fn what_came_first_is_read_first_and_what_is_lent_holds_up_nothing() {
    let mut bench = Bench::default();
    for body in ["m1", "m2", "m3"] {
        bench.send(0, "a", says(body), &[]).expect("it is fine");
    }
    let read: Vec<_> = (0..4).map(|_| bench.read(1).map(|it| it.message.draft.body)).collect();
    assert_eq!(read, [Some("m1".into()), Some("m2".into()), Some("m3".into()), None]);
}

#[test]
fn a_lease_that_runs_out_delivers_again_and_only_the_latest_token_settles() {
    let mut bench = Bench::default();
    bench.send(0, "a", says("x"), &[]).expect("it is fine");
    let first = bench.read(0).expect("it is there");
    assert_eq!((first.attempt, bench.read(9 * SECOND)), (1, None), "it is lent");
    let second = bench.read(10 * SECOND).expect("the lease has run out");
    assert_eq!((second.attempt, &second.message), (2, &first.message));
    let late = bench.mailbox.ack(11 * SECOND, "m1", &first.lease);
    assert_eq!(late.map_err(|it| it.code()), Err("lease_lost"));
    let row = bench.mailbox.ack(11 * SECOND, "m1", &second.lease).expect("it is held");
    bench.add(row);
    assert_eq!(bench.mailbox.ack(12 * SECOND, "m1", &second.lease), Ok(None), "once more");
    assert_eq!(
        (bench.read(99 * SECOND), bench.state("m1", 99 * SECOND)),
        (None, State::Acknowledged)
    );
}

#[test]
fn what_is_given_back_too_often_is_dead_until_a_person_revives_it() {
    let mut bench = Bench::default();
    bench.send(0, "a", Draft { max_attempts: 2, ..says("x") }, &[]).expect("it is fine");
    for now in [0, 5 * SECOND] {
        let held = bench.read(now).expect("it is there");
        let row = bench.mailbox.nack(now, "m1", &held.lease, 5).expect("it is held");
        bench.add([row]);
        assert_eq!(bench.read(now + SECOND), None, "not yet, or never");
    }
    assert_eq!((bench.state("m1", 60 * SECOND), bench.read(60 * SECOND)), (State::Dead, None));
    assert_eq!(
        bench.mailbox.cancel(60 * SECOND, "m1", "a").map_err(|it| it.code()),
        Err("wrong_state")
    );
    let row = bench.mailbox.revive(60 * SECOND, "m1").expect("it is dead");
    bench.add([row]);
    assert_eq!(bench.read(60 * SECOND).map(|it| it.attempt), Some(3));
}

#[test]
fn the_same_key_is_one_message_and_another_text_under_it_a_conflict() {
    let mut bench = Bench::default();
    let draft = Draft { key: Some("k".into()), ..says("x") };
    let first = bench.send(0, "p", draft.clone(), &[]).expect("it is fine");
    let again = bench.send(7, "p", draft.clone(), &[]).expect("it is the same");
    assert_eq!((&again.id, again.row), (&first.id, None));
    bench.send(7, "q", draft.clone(), &[]).expect("another sender, another message");
    let other = bench.send(7, "p", Draft { body: "y".into(), ..draft.clone() }, &[]);
    assert_eq!(other.map_err(|it| it.code()), Err("idempotency_conflict"));
    let later = bench.send(7, "p", Draft { deliver: Deliver::DelayS(1), ..draft }, &[]);
    assert_eq!(later.map_err(|it| it.code()), Err("idempotency_conflict"), "when is part of it");
    assert_eq!(bench.mailbox.letters().len(), 2);
}

#[test]
fn a_message_is_hidden_until_it_is_due() {
    let mut bench = Bench::default();
    bench.send(0, "a", Draft { deliver: Deliver::DelayS(3600), ..says("x") }, &[]).expect("fine");
    bench.send(0, "a", Draft { deliver: Deliver::At(50), ..says("y") }, &[]).expect("fine");
    assert_eq!(bench.read(49), None);
    assert_eq!(bench.read(50).map(|it| it.message.draft.body), Some("y".into()));
    assert_eq!(bench.read(3600 * SECOND - 1).map(|it| it.attempt), Some(2), "y again, x not yet");
    assert_eq!(bench.read(3600 * SECOND).map(|it| it.message.draft.body), Some("x".into()));
}

#[test]
fn what_waits_for_a_task_or_a_phase_is_read_when_that_has_come_or_never_will() {
    let mut bench = Bench::default();
    let phase = Deliver::OnPhase { phase: "coding_complete".into(), run: "r1".into() };
    bench
        .send(0, "a", Draft { deliver: Deliver::AfterCurrent, ..says("x") }, &["r2"])
        .expect("fine");
    bench.send(0, "a", Draft { deliver: phase, ..says("y") }, &[]).expect("fine");
    bench.send(0, "a", Draft { deliver: Deliver::AfterCurrent, ..says("z") }, &[]).expect("fine");
    assert_eq!(bench.read(1).map(|it| it.message.draft.body), Some("z".into()), "b is idle");
    assert_eq!(bench.read(1), None);
    let rows = bench.mailbox.releases(2, |letter| match letter.message.draft.deliver {
        Deliver::OnPhase { .. } => Some(Came::Never),
        _ => None,
    });
    bench.add(rows);
    let missed = bench.read(3).expect("its phase can no longer come");
    assert_eq!((&*missed.message.draft.body, missed.phase_missed), ("y", true));
    let rows = bench.mailbox.releases(4, |_| Some(Came::Yes));
    bench.add(rows);
    let came = bench.read(5).expect("its task is over");
    assert_eq!((&*came.message.draft.body, came.phase_missed), ("x", false));
}

#[test]
fn what_nobody_reads_in_time_expires_and_what_is_lent_then_does_when_it_comes_back() {
    let mut bench = Bench::default();
    bench.send(0, "a", Draft { ttl_s: Some(1), ..says("x") }, &[]).expect("it is fine");
    assert_eq!((bench.read(SECOND), bench.state("m1", SECOND)), (None, State::Expired));
    bench.send(2 * SECOND, "a", Draft { ttl_s: Some(1), ..says("y") }, &[]).expect("it is fine");
    let held = bench.read(2 * SECOND).expect("it is there");
    assert_eq!(bench.state("m2", 5 * SECOND), State::Leased);
    let row = bench.mailbox.nack(5 * SECOND, "m2", &held.lease, 0).expect("it is held");
    bench.add([row]);
    assert_eq!((bench.read(5 * SECOND), bench.state("m2", 5 * SECOND)), (None, State::Expired));
}

#[test]
fn a_call_that_asks_again_gets_what_it_holds() {
    let mut bench = Bench::default();
    bench.send(0, "a", says("x"), &[]).expect("it is fine");
    let by = Party { name: "b".into(), run: Some("r".into()), call: Some("step-1/mail-1".into()) };
    let read = |bench: &Bench, lease: &str| bench.mailbox.read(0, None, None, &lease.into(), &by);
    let first = read(&bench, "l1").expect("fine").expect("it is there");
    bench.add(first.row);
    let again = read(&bench, "l2").expect("fine").expect("it holds it");
    assert_eq!((&*again.lease, again.attempt, again.row), ("l1", 1, None));
}

fn of_run(call: &str) -> Party {
    Party { name: "b".into(), run: Some("r1".into()), call: Some(call.into()) }
}

impl Bench {
    fn lend(&mut self, now: u64, call: &str, most: usize) -> Vec<Reading> {
        self.leases += 1;
        let lease = format!("l{}", self.leases).into();
        let lent = self.mailbox.lend(now, &lease, &of_run(call), most);
        self.add(lent.iter().filter_map(|it| it.row.clone()).collect::<Vec<_>>());
        lent
    }
}

fn ids(lent: &[Reading]) -> Vec<&str> {
    lent.iter().map(|it| &*it.message.id).collect()
}

#[test]
fn a_call_is_lent_what_may_come_at_once_and_again_what_it_holds() {
    let mut bench = Bench::default();
    for n in 0..25 {
        bench.send(n, "a", says("x"), &[]).expect("it is fine");
    }
    assert_eq!(bench.lend(30, "c1", usize::MAX).len(), AT_ONCE);
    let held = bench.lend(31, "c1", 2);
    assert_eq!(
        (ids(&held), held[0].row.as_ref()),
        (vec!["m1", "m2"], None),
        "it holds them already"
    );
    let rest = bench.lend(32, "c2", usize::MAX);
    assert_eq!(ids(&rest), ["m21", "m22", "m23", "m24", "m25"]);
    let lent: Vec<Lent> = rest.iter().map(Lent::from).collect();
    bench.add(bench.mailbox.delivered(33, &lent[..1], 7));
    let letter = bench.mailbox.get("m21").expect("it is there");
    assert_eq!(
        letter.read.as_ref().map(|(_, _, record)| *record),
        Some(7),
        "that of the run's log"
    );
    bench.add(bench.mailbox.ack_all(34, &lent[..2]));
    bench.add(bench.mailbox.nack_all(34, &lent[2..3]));
    bench.add(bench.mailbox.extend_all(200 * SECOND, &lent[3..4]));
    let states = ["m21", "m22", "m23", "m24", "m25"].map(|id| bench.state(id, 301 * SECOND));
    assert_eq!(states, [Acknowledged, Acknowledged, Pending, Leased, Pending]);
    assert_eq!(
        bench.mailbox.ack_all(301 * SECOND, &lent).len(),
        1,
        "all others are settled or lost"
    );
    let again = bench.mailbox.lend_again(
        301 * SECOND,
        &"l".into(),
        &of_run("c2"),
        &["m22".into(), "m25".into(), "m1".into()],
    );
    assert_eq!(
        (ids(&again), again[0].attempt),
        (vec!["m25"], 2),
        "what another call had is not its own"
    );
    bench.add(bench.mailbox.overdue(301 * SECOND, |id| id == "m1" || id == "m24"));
    assert_eq!(bench.state("m1", 301 * SECOND), Acknowledged, "its lease had run out");
    assert_eq!(bench.state("m24", 301 * SECOND), Leased, "its lease has not");
}

#[test]
fn what_comes_at_once_fits_and_a_longer_message_comes_without_its_middle() {
    let mut bench = Bench::default();
    let long = "好".repeat(20_000);
    for text in [&"x".repeat(20_000), &"y".repeat(20_000), &long, "z"] {
        bench.send(0, "a", says(text), &[]).expect("it is fine");
    }
    assert_eq!(ids(&bench.lend(1, "c1", usize::MAX)), ["m1"]);
    assert_eq!(ids(&bench.lend(1, "c2", usize::MAX)), ["m2"]);
    let alone = bench.lend(1, "c3", usize::MAX);
    assert_eq!(ids(&alone), ["m3", "m4"], "what is left out of it makes room");
    let told = Delivery::of(&alone[0]);
    assert_eq!(told.whole, Some(60_000));
    assert!(told.bytes() <= MAX_DELIVERY && told.bytes() > MAX_DELIVERY / 2, "{}", told.bytes());
    assert!(told.body.starts_with('好') && told.body.ends_with('好'));
    let refs = (0..100).map(|_| "r".repeat(1000).into()).collect();
    bench.send(2, "a", Draft { refs, ..says(&"w".repeat(60_000)) }, &[]).expect("it is fine");
    let last = bench.lend(2, "c4", usize::MAX);
    assert_eq!(ids(&last), ["m5"]);
    let told = Delivery::of(&last[0]);
    assert!(
        told.refs.len() == 4 && told.bytes() <= MAX_DELIVERY,
        "{} {}",
        told.refs.len(),
        told.bytes()
    );
}

#[test]
fn only_the_sender_takes_back_and_only_what_nobody_has() {
    let mut bench = Bench::default();
    bench.send(0, "a", says("x"), &[]).expect("it is fine");
    let foreign = bench.mailbox.cancel(0, "m1", "c");
    assert_eq!(foreign.map_err(|it| it.code()), Err("not_available"));
    let row = bench.mailbox.cancel(0, "m1", "a").expect("it is pending");
    bench.add([row]);
    assert_eq!((bench.read(0), bench.state("m1", 0)), (None, State::Cancelled));
}

#[test]
fn every_limit_holds_at_its_edge() {
    let huge = "x".repeat(MAX_BODY);
    for (draft, fits) in [
        (says(" \n"), false),
        (says(&huge), true),
        (says(&format!("{huge}x")), false),
        (Draft { ttl_s: Some(0), ..says("x") }, false),
        (Draft { ttl_s: Some(MAX_WAIT), ..says("x") }, true),
        (Draft { ttl_s: Some(MAX_WAIT + 1), ..says("x") }, false),
        (Draft { deliver: Deliver::DelayS(MAX_WAIT + 1), ..says("x") }, false),
        (Draft { max_attempts: 0, ..says("x") }, false),
        (Draft { max_attempts: 100, ..says("x") }, true),
        (Draft { max_attempts: 101, ..says("x") }, false),
        (Draft { refs: vec!["r".into(); 101], ..says("x") }, false),
        (Draft { key: Some("k".repeat(1025).into()), ..says("x") }, false),
    ] {
        assert_eq!(draft.check().is_ok(), fits, "{:?}", draft.ttl_s);
    }
    for (lease, fits) in [(0, false), (1, true), (MAX_LEASE, true), (MAX_LEASE + 1, false)] {
        let read = Mailbox::default().read(0, None, Some(lease), &"l".into(), &Party::default());
        assert_eq!(read.is_ok(), fits, "{lease}");
    }
}

#[test]
fn rows_read_back_as_they_were_written() {
    let mut bench = Bench::default();
    let phase = Deliver::OnPhase { phase: "p".into(), run: "r".into() };
    bench
        .send(5, "甲", Draft { deliver: phase, key: Some("k".into()), ..says("你好") }, &[])
        .expect("fine");
    assert_eq!(
        serde_json::to_value(&bench.rows[0]).expect("plain data"),
        json!({
            "at": 5, "event": "sent", "message": {
                "id": "m1", "from": "甲", "to": "b", "body": "你好", "key": "k",
                "deliver": { "on_phase": { "phase": "p", "run": "r" } }, "max_attempts": 5, "sent_at": 5,
            },
        })
    );
    let text = serde_json::to_string(&bench.rows[0]).expect("plain data");
    assert_eq!(serde_json::from_str::<Row>(&text).expect("it was written so"), bench.rows[0]);
}

/// What a person would say of a mailbox who keeps a list.
#[derive(Clone, Debug)]
struct Simple {
    body: u32,
    due: u64,
    dies: u64,
    left: u32,
    /// The current lease and its end.
    lent: Option<(Arc<str>, u64)>,
    is_done: bool,
}

#[derive(Clone, Debug)]
enum Act {
    Send { key: Option<u8>, delay: u64, ttl: Option<u64>, attempts: u32 },
    Read,
    Ack(usize),
    Nack(usize, u64),
    Extend(usize),
    Pass(u64),
    Crash,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        3 => (prop::option::of(0..4_u8), 0..4_u64, prop::option::of(1..20_u64), 1..4_u32)
            .prop_map(|(key, delay, ttl, attempts)| Act::Send { key, delay, ttl, attempts }),
        4 => Just(Act::Read),
        3 => (0..6_usize).prop_map(Act::Ack),
        2 => (0..6_usize, 0..5_u64).prop_map(|(nth, delay)| Act::Nack(nth, delay)),
        1 => (0..6_usize).prop_map(Act::Extend),
        3 => (0..8_u64).prop_map(Act::Pass),
        1 => Just(Act::Crash),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Nothing is lost, order is kept, each message comes at least once until it is done with and never
    /// again after, and what is sent twice under one key is one message; wherever the engine dies.
    #[test]
    fn it_does_what_somebody_with_a_list_would_do(acts in prop::collection::vec(act(), 1..60)) {
        let (mut bench, mut list) = (Bench::default(), Vec::<Simple>::new());
        let (mut keys, mut tokens) = (BTreeMap::new(), Vec::<(usize, Arc<str>)>::new());
        let mut now = 1;
        for act in acts {
            match act {
                Act::Pass(seconds) => now += seconds * SECOND,
                Act::Crash => {
                    let mut again = Mailbox::default();
                    bench.rows.iter().cloned().for_each(|row| again.apply(row));
                    prop_assert_eq!(&again, &bench.mailbox);
                    bench.mailbox = again;
                }
                Act::Send { key, delay, ttl, attempts } => {
                    let body = key.map_or(list.len() as u32, |key| 1_000 + u32::from(key));
                    let draft = Draft {
                        key: key.map(|key| key.to_string().into()),
                        deliver: Deliver::DelayS(delay),
                        ttl_s: ttl,
                        max_attempts: attempts,
                        ..says(&body.to_string())
                    };
                    let sent = bench.send(now, "a", draft.clone(), &[]);
                    let before = key.and_then(|key| keys.get(&key).cloned());
                    match before {
                        Some(before) if before == draft => prop_assert!(sent.expect("the same").row.is_none()),
                        Some(_) => prop_assert_eq!(sent.map_err(|it| it.code()), Err("idempotency_conflict")),
                        None => {
                            prop_assert!(sent.expect("it is fine").row.is_some());
                            key.map(|key| keys.insert(key, draft));
                            let dies = ttl.map_or(u64::MAX, |ttl| now + ttl * SECOND);
                            let due = now + delay * SECOND;
                            list.push(Simple { body, due, dies, left: attempts, lent: None, is_done: false });
                        }
                    }
                }
                Act::Read => {
                    let free = |it: &Simple| it.lent.as_ref().is_none_or(|(_, until)| *until <= now);
                    let next = list.iter().position(|it| {
                        !it.is_done && free(it) && it.left > 0 && it.due <= now && now < it.dies
                    });
                    let read = bench.read(now);
                    let body = read.as_ref().map(|it| it.message.draft.body.to_string());
                    prop_assert_eq!(&body, &next.map(|next| list[next].body.to_string()));
                    if let (Some(next), Some(read)) = (next, read) {
                        list[next].left -= 1;
                        list[next].lent = Some((read.lease.clone(), now + 10 * SECOND));
                        tokens.push((next, read.lease));
                    }
                }
                Act::Ack(nth) | Act::Nack(nth, _) | Act::Extend(nth) => {
                    let Some((at, token)) = tokens.iter().rev().nth(nth).cloned() else { continue };
                    let id = format!("m{}", at + 1);
                    let letter = &mut list[at];
                    let holds = letter.lent.as_ref().is_some_and(|(it, until)| *it == token && *until > now);
                    let is_done_by_it = letter.is_done
                        && letter.lent.as_ref().is_some_and(|(it, _)| *it == token);
                    let row = match act {
                        Act::Ack(_) => bench.mailbox.ack(now, &id, &token),
                        Act::Nack(_, delay) => bench.mailbox.nack(now, &id, &token, delay).map(Some),
                        _ => bench.mailbox.extend(now, &id, &token, Some(20)).map(Some),
                    };
                    if is_done_by_it && matches!(act, Act::Ack(_)) {
                        prop_assert_eq!(row, Ok(None));
                    } else if holds && !letter.is_done {
                        bench.add(row.expect("it is held"));
                        match act {
                            Act::Ack(_) => letter.is_done = true,
                            Act::Nack(_, delay) => (letter.lent, letter.due) = (None, now + delay * SECOND),
                            _ => letter.lent = Some((token, now + 20 * SECOND)),
                        }
                    } else {
                        prop_assert_eq!(row.map_err(|it| it.code()), Err("lease_lost"));
                    }
                }
            }
        }
    }
}
