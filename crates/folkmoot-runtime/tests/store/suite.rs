//! The rules that every store keeps.

use std::{pin::pin, process::Command, sync::Arc, time::Duration};

use folkmoot_runtime::store::{
    Append, Claim, Head, Lapse, MAX_BODY, MAX_PENDING, Owner, Row, Store, StoreError, StreamId,
    Watch,
};
use futures_util::{future::join_all, poll};

use crate::{HOUR, all, bodies, head, in_time, push, stream, texts};

/// Runs every case with every store.
macro_rules! cases {
    ($($(#[$attribute:meta])* $case:ident)*) => {
        mod memory {
            use folkmoot_runtime::store::MemoryStore;
            $($(#[$attribute])*
            #[tokio::test]
            async fn $case() {
                super::$case(&MemoryStore::new()).await;
            })*
        }

        mod sqlite {
            use crate::OnDisk;
            $($(#[$attribute])*
            #[tokio::test]
            async fn $case() {
                super::$case(&OnDisk::new().store).await;
            })*
        }
    };
}

cases! {
    a_stream_gives_back_what_was_appended
    an_append_that_does_not_follow_the_end_changes_nothing
    an_append_is_taken_whole_or_not_at_all
    a_stream_is_read_in_pages
    what_was_never_written_is_empty
    streams_do_not_touch_each_other
    streams_are_listed_newest_first
    a_prefix_is_plain_text
    a_summary_stays_until_it_is_replaced
    a_claimed_stream_is_written_by_its_owner_alone
    a_claim_that_was_given_back_does_not_count
    a_new_stream_is_claimed_with_its_first_rows_and_given_back_with_its_last
    what_is_there_already_is_not_founded_again
    a_claim_belongs_to_one_stream
    a_claim_that_ran_out_is_taken_over_and_cannot_write
    a_claim_that_ran_out_counts_while_nobody_takes_it
    a_write_without_a_claim_ends_one_that_ran_out
    #[cfg(target_os = "linux")]
    a_claim_ends_with_its_process
    #[cfg(target_os = "linux")]
    a_claim_of_a_process_with_a_used_id_does_not_count
    a_claim_of_a_living_process_counts
    a_claim_from_another_machine_counts_until_it_runs_out
    of_many_starters_at_once_one_wins
    a_post_is_made_once
    a_post_needs_a_stream
    a_post_is_done_together_with_its_rows
    a_post_can_be_done_without_rows
    posts_that_wait_are_bounded
    a_watch_wakes_for_what_comes_after_it
    a_watch_does_not_wait_for_what_is_there
    a_watch_tells_rows_from_posts
    watching_then_reading_misses_nothing
    writers_at_the_same_time_lose_nothing
    a_stream_is_verified_as_a_whole
    a_removed_stream_is_gone
}

async fn claim(store: &dyn Store, name: &str, ttl: Duration) -> Claim {
    store.claim(&stream(name), Owner::this("test"), ttl).await.expect("nobody holds it")
}

async fn a_stream_gives_back_what_was_appended(store: &dyn Store) {
    let wild = ["{}", "", "\"\u{0}\u{1b}[31m\"", "研究员 🦀 e\u{301}", "'; DROP TABLE records; --"];
    let end = push(store, "run/1", &wild[..2]).await;
    assert_eq!(end.seq, 2);
    let end = push(store, "run/1", &wild[2..]).await;

    let rows = all(store, &stream("run/1")).await;
    assert_eq!(texts(&rows), wild);
    assert_eq!(rows.iter().map(|row| row.seq).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    assert_eq!(Head::origin(&stream("run/1")).accept_all(&rows), Ok(end));
}

async fn an_append_that_does_not_follow_the_end_changes_nothing(store: &dyn Store) {
    let run = stream("run/1");
    let end = push(store, "run/1", &["a", "b"]).await;

    for after in [0, 1, 3, u64::MAX] {
        let error = store.append(Append::new(&run, after, bodies(&["x"]))).await;
        assert!(
            matches!(error, Err(StoreError::Conflict { head, .. }) if head == end),
            "{error:?}"
        );
    }
    let error = store.append(Append::new(&stream("run/2"), 1, bodies(&["x"]))).await;
    assert!(matches!(error, Err(StoreError::Conflict { head, .. }) if head.seq == 0), "{error:?}");

    assert_eq!(texts(&all(store, &run).await), ["a", "b"]);
    assert_eq!(store.list("", None, 10).await.expect("it lists").len(), 1);
}

async fn an_append_is_taken_whole_or_not_at_all(store: &dyn Store) {
    let long = "x".repeat(MAX_BODY + 1);
    let error = store.append(Append::new(&stream("run/1"), 0, bodies(&["a", &long, "c"]))).await;

    assert!(matches!(error, Err(StoreError::TooLarge { .. })), "{error:?}");
    assert_eq!(store.entry(&stream("run/1")).await.expect("it looks"), None);
    assert_eq!(push(store, "run/1", &[&long[1..]]).await.seq, 1);
}

async fn a_stream_is_read_in_pages(store: &dyn Store) {
    let run = stream("run/1");
    push(store, "run/1", &["a", "b", "c", "d", "e"]).await;
    let page = async |after, limit| {
        let rows = store.read(&run, after, limit).await.expect("the stream is sound");
        texts(&rows).concat()
    };

    assert_eq!(page(0, 2).await, "ab");
    assert_eq!(page(2, 2).await, "cd");
    assert_eq!(page(4, 2).await, "e");
    assert_eq!(page(1, usize::MAX).await, "bcde");
    for after in [5, 6, u64::MAX] {
        assert_eq!(page(after, 2).await, "", "after {after}");
    }
    assert_eq!(page(0, 0).await, "");
}

async fn what_was_never_written_is_empty(store: &dyn Store) {
    let run = stream("run/1");

    assert_eq!(store.read(&run, 0, 10).await.expect("it reads"), []);
    assert_eq!(store.entry(&run).await.expect("it looks"), None);
    assert_eq!(store.list("", None, 10).await.expect("it lists"), []);
    assert_eq!(store.pending(&run).await.expect("it reads"), []);
    assert!(matches!(store.verify(&run).await, Err(StoreError::NotFound { .. })));
}

async fn streams_do_not_touch_each_other(store: &dyn Store) {
    for round in ["1", "2", "3"] {
        for name in ["run/1", "run/2", "board/1"] {
            push(store, name, &[&format!("{name} {round}")]).await;
        }
    }

    let rows = all(store, &stream("run/2")).await;
    assert_eq!(texts(&rows), ["run/2 1", "run/2 2", "run/2 3"]);
    assert_eq!(rows[2].seq, 3);
}

async fn streams_are_listed_newest_first(store: &dyn Store) {
    for name in ["run/b", "board/x", "run/c", "run/a"] {
        push(store, name, &["1"]).await;
    }
    push(store, "run/b", &["2"]).await;
    claim(store, "run/never-written", HOUR).await;

    let first = store.list("run/", None, 2).await.expect("it lists");
    assert_eq!(names(&first), ["run/a", "run/c"]);
    let rest = store.list("run/", Some(first[1].number), 2).await.expect("it lists");
    assert_eq!(names(&rest), ["run/b"]);
    assert_eq!(rest[0].head, head(store, &stream("run/b")).await);
    assert_eq!(store.list("run/", Some(rest[0].number), 2).await.expect("it lists"), []);
    assert_eq!(store.list("", None, usize::MAX).await.expect("it lists").len(), 4);
}

fn names(entries: &[folkmoot_runtime::store::Entry]) -> Vec<&str> {
    entries.iter().map(|entry| entry.stream.as_str()).collect()
}

async fn a_prefix_is_plain_text(store: &dyn Store) {
    for name in ["run/a%", "run/ab", "Run/a_", "跑/é", "跑/e", "n/\0a", "n/\0b"] {
        push(store, name, &["1"]).await;
    }
    let found = async |prefix| {
        let entries = store.list(prefix, None, 10).await.expect("it lists");
        names(&entries).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };

    assert_eq!(found("run/a%").await, ["run/a%"]);
    assert_eq!(found("run/a_").await, Vec::<String>::new());
    assert_eq!(found("run/").await, ["run/ab", "run/a%"]);
    assert_eq!(found("跑/").await, ["跑/e", "跑/é"]);
    assert_eq!(found("n/\0a").await, ["n/\0a"]);
}

async fn a_summary_stays_until_it_is_replaced(store: &dyn Store) {
    let run = stream("run/1");
    let summary = async || store.entry(&run).await.expect("it looks").expect("it is there").summary;
    push(store, "run/1", &["a"]).await;
    assert_eq!(summary().await, None);

    let one = Append::new(&run, 1, bodies(&["b"])).summary("{\"calls\":1}");
    store.append(one).await.expect("it follows");
    push(store, "run/1", &["c"]).await;
    assert_eq!(summary().await.as_deref(), Some("{\"calls\":1}"));

    let late = Append::new(&run, 2, Vec::new()).summary("{\"calls\":9}");
    assert!(matches!(store.append(late).await, Err(StoreError::Conflict { .. })));
    assert_eq!(summary().await.as_deref(), Some("{\"calls\":1}"));

    let rebuilt = Append::new(&run, 3, Vec::new()).summary("{\"calls\":2}");
    assert_eq!(store.append(rebuilt).await.expect("it follows").seq, 3);
    assert_eq!(summary().await.as_deref(), Some("{\"calls\":2}"));
}

async fn a_claimed_stream_is_written_by_its_owner_alone(store: &dyn Store) {
    let run = stream("run/1");
    let claim = claim(store, "run/1", HOUR).await;
    assert_eq!(claim.took_over, None);

    let again = store.claim(&run, Owner::this("other"), HOUR).await;
    let Err(StoreError::Held { by, .. }) = again else { panic!("{again:?}") };
    assert_eq!(*by, Owner::this("test"));
    let foreign = store.append(Append::new(&run, 0, bodies(&["x"]))).await;
    assert!(matches!(foreign, Err(StoreError::Held { .. })), "{foreign:?}");
    assert!(store.remove(&run).await.is_err());

    store.append(Append::under(&claim, 0, bodies(&["a"]))).await.expect("the owner may");
    store.renew(&claim).await.expect("the claim counts");
    let entry = store.entry(&run).await.expect("it looks").expect("it is there");
    assert_eq!(entry.owner, Some(Owner::this("test")));
    assert_eq!(texts(&all(store, &run).await), ["a"]);
}

async fn a_claim_that_was_given_back_does_not_count(store: &dyn Store) {
    let run = stream("run/1");
    let first = claim(store, "run/1", HOUR).await;
    store.release(first.clone()).await.expect("it counts");

    let late = store.append(Append::under(&first, 0, bodies(&["x"]))).await;
    assert!(matches!(late, Err(StoreError::Superseded { by: None, .. })), "{late:?}");
    assert!(matches!(store.renew(&first).await, Err(StoreError::Superseded { .. })));
    push(store, "run/1", &["a"]).await;
    assert_eq!(store.entry(&run).await.expect("it looks").expect("it is there").owner, None);

    let second = claim(store, "run/1", HOUR).await;
    assert_eq!(second.took_over, None);
    assert!(second.fence > first.fence);
    store.release(first).await.expect("giving back twice is harmless");
    store.append(Append::under(&second, 1, bodies(&["b"]))).await.expect("the second counts");
}

async fn a_new_stream_is_claimed_with_its_first_rows_and_given_back_with_its_last(
    store: &dyn Store,
) {
    let (run, founder) = (stream("run/1"), Owner::this("founder"));
    let first = Append::founding(&run, founder.clone(), HOUR, bodies(&["a"]));
    store.append(first).await.expect("there is no such stream");

    let other = store.claim(&run, Owner::this("other"), HOUR).await;
    assert!(matches!(other, Err(StoreError::Held { by, .. }) if *by == founder));
    let claim = Claim::on_new(&run);
    store.append(Append::under(&claim, 1, bodies(&["b"]))).await.expect("it is the claim");
    store.append(Append::under(&claim, 2, bodies(&["c"])).last()).await.expect("it still is");

    assert!(store.append(Append::under(&claim, 3, bodies(&["x"]))).await.is_err());
    assert_eq!(store.claim(&run, Owner::this("other"), HOUR).await.expect("it is free").fence, 2);
    assert_eq!(texts(&all(store, &run).await), ["a", "b", "c"]);
}

async fn what_is_there_already_is_not_founded_again(store: &dyn Store) {
    push(store, "run/written", &["a"]).await;
    let claim = claim(store, "run/claimed", HOUR).await;
    store.release(claim).await.expect("it counts");

    for name in ["run/written", "run/claimed"] {
        let before = all(store, &stream(name)).await;
        let founding = Append::founding(&stream(name), Owner::this("late"), HOUR, bodies(&["x"]));
        let refused = store.append(founding).await;
        assert!(matches!(refused, Err(StoreError::Conflict { .. })), "{name}: {refused:?}");
        assert_eq!(all(store, &stream(name)).await, before);
    }
}

async fn a_claim_belongs_to_one_stream(store: &dyn Store) {
    let one = claim(store, "run/1", HOUR).await;
    let two = claim(store, "run/2", HOUR).await;
    store.append(Append::under(&two, 0, bodies(&["b"]))).await.expect("it follows");

    assert_eq!(head(store, &one.stream).await.seq, 0);
    let unknown = Claim { stream: stream("run/3"), ..one };
    assert!(matches!(store.renew(&unknown).await, Err(StoreError::Superseded { .. })));
    store.release(unknown).await.expect("there is nothing to give back");
}

async fn a_claim_that_ran_out_is_taken_over_and_cannot_write(store: &dyn Store) {
    let late = claim(store, "run/1", Duration::ZERO).await;
    store.append(Append::under(&late, 0, bodies(&["a"]))).await.expect("it is the last claim");
    let taker = Owner::this("taker");
    let new = store.claim(&stream("run/1"), taker.clone(), HOUR).await.expect("it ran out");

    let note = new.took_over.clone().expect("the first was not given back");
    assert_eq!((note.from, note.why), (Some(Owner::this("test")), Lapse::Expired));
    let refused = store.append(Append::under(&late, 1, bodies(&["x"]))).await;
    let Err(StoreError::Superseded { by: Some(by), .. }) = refused else { panic!("{refused:?}") };
    assert_eq!(*by, taker);
    store.release(late).await.expect("it no longer counts");
    store.append(Append::under(&new, 1, bodies(&["b"]))).await.expect("the new claim counts");
    assert_eq!(texts(&all(store, &stream("run/1")).await), ["a", "b"]);
}

async fn a_claim_that_ran_out_counts_while_nobody_takes_it(store: &dyn Store) {
    let claim = claim(store, "run/1", Duration::ZERO).await;

    store.renew(&claim).await.expect("nobody took it");
    store.append(Append::under(&claim, 0, bodies(&["a"]))).await.expect("nobody took it");
    let entry = store.entry(&claim.stream).await.expect("it looks").expect("it is there");
    assert_eq!(entry.owner, None, "to others it has run out");
}

async fn a_write_without_a_claim_ends_one_that_ran_out(store: &dyn Store) {
    let late = claim(store, "run/1", Duration::ZERO).await;
    push(store, "run/1", &["a"]).await;

    let refused = store.append(Append::under(&late, 1, bodies(&["x"]))).await;
    assert!(matches!(refused, Err(StoreError::Superseded { .. })), "{refused:?}");
}

#[cfg(target_os = "linux")]
async fn taken_over_at_once(store: &dyn Store, owner: Owner) {
    let run = stream("run/1");
    let late = store.claim(&run, owner.clone(), HOUR).await.expect("nobody holds it");
    store.append(Append::under(&late, 0, bodies(&["a"]))).await.expect("it is the last claim");

    let entry = store.entry(&run).await.expect("it looks").expect("it is there");
    assert_eq!(entry.owner, None, "it shows as interrupted");
    let new = claim(store, "run/1", HOUR).await;
    let note = new.took_over.expect("the first was not given back");
    assert_eq!((note.from, note.why), (Some(owner), Lapse::Ended));
}

#[cfg(target_os = "linux")]
async fn a_claim_ends_with_its_process(store: &dyn Store) {
    let mut child = Command::new("true").spawn().expect("every system has `true`");
    child.wait().expect("it ends");
    taken_over_at_once(store, Owner { process: child.id(), ..Owner::this("ended") }).await;
}

#[cfg(target_os = "linux")]
async fn a_claim_of_a_process_with_a_used_id_does_not_count(store: &dyn Store) {
    let this = Owner::this("test");
    taken_over_at_once(store, Owner { started: this.started - 1, ..this }).await;
}

async fn a_claim_of_a_living_process_counts(store: &dyn Store) {
    let held = async |name: &str, owner: Owner| {
        store.claim(&stream(name), owner, HOUR).await.expect("nobody holds it");
        let second = store.claim(&stream(name), Owner::this("second"), HOUR).await;
        assert!(matches!(second, Err(StoreError::Held { .. })), "{second:?}");
    };

    held("run/own", Owner::this("test")).await;
    held("run/unknown-start", Owner { started: 0, ..Owner::this("test") }).await;
    #[cfg(target_os = "linux")]
    {
        // The first process of the system, whoever runs these tests.
        let stat = std::fs::read_to_string("/proc/1/stat").expect("there is a first process");
        let started = stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(19));
        let started = started.and_then(|ticks| ticks.parse().ok()).expect("a number");
        held("run/other", Owner { process: 1, started, ..Owner::this("init") }).await;
    }
}

async fn a_claim_from_another_machine_counts_until_it_runs_out(store: &dyn Store) {
    let foreign = Owner { process: 0, boot: "another".into(), ..Owner::this("far") };
    for (name, boot) in [("run/1", "another"), ("run/2", "")] {
        let owner = Owner { boot: boot.into(), ..foreign.clone() };
        store.claim(&stream(name), owner, HOUR).await.expect("nobody holds it");
        let second = store.claim(&stream(name), Owner::this("test"), HOUR).await;
        assert!(matches!(second, Err(StoreError::Held { .. })), "{second:?}");
    }

    store.claim(&stream("run/3"), foreign, Duration::ZERO).await.expect("nobody holds it");
    let why = claim(store, "run/3", HOUR).await.took_over.map(|note| note.why);
    assert_eq!(why, Some(Lapse::Expired));
}

async fn of_many_starters_at_once_one_wins(store: &dyn Store) {
    let run = stream("run/1");
    let starters = (0..16).map(|_| store.claim(&run, Owner::this("starter"), HOUR));

    let (won, lost): (Vec<_>, Vec<_>) =
        join_all(starters).await.into_iter().partition(Result::is_ok);
    assert_eq!((won.len(), lost.len()), (1, 15));
    assert!(lost.iter().all(|lost| matches!(lost, Err(StoreError::Held { .. }))), "{lost:?}");
}

async fn a_post_is_made_once(store: &dyn Store) {
    let run = stream("run/1");
    push(store, "run/1", &["a"]).await;
    let _claimed = claim(store, "run/1", HOUR).await;
    let post = async |id, body| store.post(&run, id, body).await;

    let first = post("c1", "cancel").await.expect("anyone may post");
    assert_eq!((first.number, first.outcome.clone()), (1, None));
    assert_eq!(post("c1", "cancel").await.expect("it is the same"), first);
    let differs = post("c1", "amend").await;
    assert!(matches!(differs, Err(StoreError::PostDiffers { .. })), "{differs:?}");
    let second = post("c2", "cancel").await.expect("another id is another post");
    assert_eq!(second.number, 2);

    assert_eq!(store.pending(&run).await.expect("it reads"), [first, second]);
}

async fn a_post_needs_a_stream(store: &dyn Store) {
    claim(store, "run/claimed", HOUR).await;
    for name in ["run/unknown", "run/claimed"] {
        let error = store.post(&stream(name), "c1", "cancel").await;
        assert!(matches!(error, Err(StoreError::NotFound { .. })), "{error:?}");
    }
}

async fn a_post_is_done_together_with_its_rows(store: &dyn Store) {
    let run = stream("run/1");
    push(store, "run/1", &["a"]).await;
    let claim = claim(store, "run/1", HOUR).await;
    for id in ["c1", "c2"] {
        store.post(&run, id, "cancel").await.expect("anyone may post");
    }

    let wrong = Append::under(&claim, 0, bodies(&["x"])).done("c1", "\"lost\"");
    assert!(store.append(wrong).await.is_err());
    assert_eq!(store.pending(&run).await.expect("it reads").len(), 2);

    let right = Append::under(&claim, 1, bodies(&["cancelled"])).done("c1", "\"ok\"");
    store.append(right).await.expect("it follows");
    let again = store.post(&run, "c1", "cancel").await.expect("it was made before");
    assert_eq!(again.outcome.as_deref(), Some("\"ok\""));
    let waiting = store.pending(&run).await.expect("it reads");
    assert_eq!(waiting.iter().map(|post| &*post.id).collect::<Vec<_>>(), ["c2"]);
}

async fn a_post_can_be_done_without_rows(store: &dyn Store) {
    let run = stream("run/1");
    let end = push(store, "run/1", &["a"]).await;
    store.post(&run, "c1", "amend").await.expect("anyone may post");

    let done = Append::new(&run, 1, Vec::new()).done("c1", "\"no\"").done("never posted", "\"?\"");
    assert_eq!(store.append(done).await.expect("it follows"), end);
    let late = Append::new(&run, 1, Vec::new()).done("c1", "\"yes\"");
    store.append(late).await.expect("it follows");
    let post = store.post(&run, "c1", "amend").await.expect("it was made before");
    assert_eq!(post.outcome.as_deref(), Some("\"no\""), "the first outcome stays");
}

async fn posts_that_wait_are_bounded(store: &dyn Store) {
    let run = stream("run/1");
    push(store, "run/1", &["a"]).await;
    let ids: Vec<String> = (0..MAX_PENDING).map(|number| number.to_string()).collect();
    for made in join_all(ids.iter().map(|id| store.post(&run, id, "b"))).await {
        made.expect("there is room");
    }

    let full = store.post(&run, "one more", "b").await;
    assert!(matches!(full, Err(StoreError::InboxFull { .. })), "{full:?}");
    store.post(&run, "0", "b").await.expect("an old one is no new one");
    push_done(store, &run, "0").await;
    store.post(&run, "one more", "b").await.expect("there is room again");
}

async fn push_done(store: &dyn Store, stream: &StreamId, id: &str) {
    let after = head(store, stream).await.seq;
    store.append(Append::new(stream, after, Vec::new()).done(id, "1")).await.expect("it follows");
}

async fn a_watch_wakes_for_what_comes_after_it(store: &dyn Store) {
    let run = stream("run/1");
    push(store, "run/1", &["a"]).await;
    let mut watch = store.watch(&run).await.expect("it can be watched");
    assert!(poll!(pin!(watch.changed())).is_pending(), "what was there before is no news");

    push(store, "run/1", &["b"]).await;
    assert!(poll!(pin!(watch.changed())).is_ready(), "what this process wrote is told at once");
    store.post(&run, "c1", "cancel").await.expect("anyone may post");
    in_time(watch.changed()).await;
    push_done(store, &run, "c1").await;
    in_time(watch.changed()).await;

    let mut early = store.watch(&stream("run/2")).await.expect("it need not exist");
    push(store, "run/2", &["a"]).await;
    in_time(early.changed()).await;
}

async fn a_watch_does_not_wait_for_what_is_there(store: &dyn Store) {
    push(store, "run/1", &["a", "b"]).await;
    let mut watch: Watch = store.watch(&stream("run/1")).await.expect("it can be watched");

    in_time(watch.rows(0)).await;
    in_time(watch.rows(1)).await;
    let third = watch.rows(2);
    push(store, "run/1", &["c"]).await;
    in_time(third).await;
}

async fn a_watch_tells_rows_from_posts(store: &dyn Store) {
    let run = stream("run/1");
    push(store, "run/1", &["a"]).await;
    let mut watch = store.watch(&run).await.expect("it can be watched");

    push(store, "run/1", &["b"]).await;
    let mut posts = pin!(watch.posts(0));
    assert!(poll!(posts.as_mut()).is_pending(), "a row is no post");
    store.post(&run, "c1", "cancel").await.expect("anyone may post");
    in_time(posts).await;
}

/// Subscribers that join at full speed see every row once and in order (rules.md 9.1, 9.2).
async fn watching_then_reading_misses_nothing(store: &dyn Store) {
    const ROWS: u64 = 200;
    let run = stream("run/1");
    let write = async {
        for number in 1..=ROWS {
            push(store, "run/1", &[&number.to_string()]).await;
        }
    };
    let follow = async |mut after: u64| {
        let mut watch = store.watch(&run).await.expect("it can be watched");
        let mut seen = Vec::new();
        while after < ROWS {
            watch.rows(after).await;
            let rows = store.read(&run, after, 7).await.expect("the stream is sound");
            after = rows.last().map_or(after, |row| row.seq);
            seen.extend(rows);
        }
        seen
    };

    let ((), whole, part) = in_time(async { tokio::join!(write, follow(0), follow(50)) }).await;
    let numbers = |rows: &[Row]| rows.iter().map(|row| row.seq).collect::<Vec<_>>();
    assert_eq!(numbers(&whole), (1..=ROWS).collect::<Vec<_>>());
    assert_eq!(numbers(&part), (51..=ROWS).collect::<Vec<_>>());
}

async fn writers_at_the_same_time_lose_nothing(store: &dyn Store) {
    let writer = async |writer: u32| {
        for number in 0..25 {
            push(store, "run/1", &[&format!("{writer} {number} a"), "b"]).await;
        }
    };
    join_all((0..8).map(writer)).await;

    let rows = all(store, &stream("run/1")).await;
    assert_eq!(rows.len(), 8 * 25 * 2);
    for writer in 0..8 {
        let own: Vec<_> =
            rows.iter().filter(|row| row.body.starts_with(&format!("{writer} "))).collect();
        let wanted: Vec<_> = (0..25).map(|number| format!("{writer} {number} a")).collect();
        assert_eq!(own.iter().map(|row| &*row.body).collect::<Vec<_>>(), wanted);
        assert!(own.iter().all(|row| &*rows[row.seq as usize].body == "b"), "pairs stay together");
    }
}

async fn a_stream_is_verified_as_a_whole(store: &dyn Store) {
    let many: Vec<Arc<str>> = (0..2_500).map(|number| number.to_string().into()).collect();
    let run = stream("run/1");
    let end = store.append(Append::new(&run, 0, many)).await.expect("it follows");

    assert_eq!(end.seq, 2_500);
    assert_eq!(store.verify(&run).await.expect("it is sound"), end);
}

async fn a_removed_stream_is_gone(store: &dyn Store) {
    let run = stream("run/1");
    push(store, "run/1", &["a"]).await;
    push(store, "run/2", &["b"]).await;
    store.post(&run, "c1", "cancel").await.expect("anyone may post");
    let claim = claim(store, "run/1", HOUR).await;
    let held = store.remove(&run).await;
    assert!(matches!(held, Err(StoreError::Held { .. })), "{held:?}");

    store.release(claim.clone()).await.expect("it counts");
    store.remove(&run).await.expect("nobody holds it");
    store.remove(&run).await.expect("it is gone already");
    assert_eq!(store.entry(&run).await.expect("it looks"), None);
    assert_eq!(store.pending(&run).await.expect("it reads"), []);
    assert!(store.append(Append::under(&claim, 1, bodies(&["x"]))).await.is_err());
    assert_eq!(texts(&all(store, &stream("run/2")).await), ["b"]);
    assert_eq!(push(store, "run/1", &["new"]).await.seq, 1);
}
