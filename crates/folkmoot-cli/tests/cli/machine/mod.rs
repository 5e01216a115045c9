//! Faults of the machine under the real process: no room, no rights, locks, files that go astray, clocks
//! that are set. Each is told clearly, and when it is over nothing is lost (rules.md §7).

mod clocks;
mod files;
mod locks;
mod rights;
mod room;

use folkmoot_stub::{Door, Stub};

use crate::{
    bench::{Bench, Called, until},
    held::{Held, asked, held},
};

/// A run that was killed while its second call was under way, and the door before the answer to it.
fn killed() -> (Bench, Stub, Door) {
    let Held { run, bench, stub, door } = held("text");
    run.kill();
    until(&stub, |seen| seen.hung_up == 1);
    (bench, stub, door)
}

/// Goes on with a run whose second call was under way when its process ended: the first is not asked
/// again, and the record is whole.
#[track_caller]
fn goes_on(bench: &Bench, stub: &Stub, door: &Door) {
    door.open();
    let resumed = bench.call(["resume", "last", "--json"]).must_be(0).json();
    assert_eq!(resumed["final"], "two");
    let asked = asked(stub);
    assert_eq!(asked[..2], ["first", "second"]);
    assert!(asked[2..].iter().all(|name| name == "second"), "{asked:?}");
    is_whole(bench);
}

/// The record of the last run is as it was written, and decides as recorded.
#[track_caller]
fn is_whole(bench: &Bench) {
    bench.call(["verify", "last"]).must_be(0);
    bench.call(["replay", "last"]).must_be(0);
}

/// A command that was refused, and told all of this.
#[track_caller]
fn refused(called: Called, exit: i32, parts: &[&str]) {
    let told = called.must_be(exit).stderr;
    for part in parts {
        assert!(told.contains(part), "{part:?} is not told: {told}");
    }
}
