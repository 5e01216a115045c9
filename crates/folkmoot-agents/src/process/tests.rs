//! What a confined program can do, tried with real ones.

use std::{fs, net::TcpListener, os::unix::fs::PermissionsExt, time::Instant};

use tempfile::TempDir;

use super::*;
use crate::testing::until;

/// A workspace with a file, and a folder beside it.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Place {
        let place = Place { folder: tempfile::tempdir().expect("a folder can be made") };
        for name in ["workspace", "beside"] {
            fs::create_dir(place.path(name)).expect("a folder can be made");
            fs::write(place.path(name).join("old.txt"), "old").expect("it can be written");
        }
        place
    }

    /// One for confined programs; where the system cannot confine any, they must be refused instead.
    async fn confining() -> Option<Place> {
        let place = Place::new();
        let Some(why) = unenforceable() else { return Some(place) };
        let refused = place.run(Sandbox::Write, "true", Duration::from_secs(20)).await;
        let error = refused.expect_err("it cannot be confined");
        assert_eq!(error.kind(), io::ErrorKind::Unsupported, "{why}");
        None
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    async fn sh(&self, sandbox: Sandbox, script: &str) -> Ran {
        self.run(sandbox, script, Duration::from_secs(20)).await.expect("it can be started")
    }

    async fn run(&self, sandbox: Sandbox, script: &str, time: Duration) -> io::Result<Ran> {
        let argv = ["sh", "-c", script].map(str::to_owned);
        let environment = std::env::vars().filter(|(name, _)| name == "PATH").collect();
        let workspace = &self.path("workspace");
        let kept = (1000, 1000);
        let dir = workspace;
        let (environment, merged) = (&environment, false);
        let (stdin, beyond): (&[u8], _) = (&[], Beyond::default());
        Process {
            argv: &argv,
            dir,
            environment,
            stdin,
            sandbox,
            beyond,
            workspace,
            time,
            kept,
            merged,
        }
        .run()
        .await
    }

    fn is_untouched(&self, name: &str) -> bool {
        let folder = self.path(name);
        let entries = fs::read_dir(&folder).expect("it can be read").count();
        let old = folder.join("old.txt");
        let mode = fs::metadata(&old).expect("it is there").permissions().mode() & 0o777;
        entries == 1 && fs::read(old).expect("it can be read") == b"old" && mode == 0o644
    }
}

/// Everything a shell can try in the folder `$D`.
const WRITES: &str = "
    echo new > $D/new.txt; echo more >> $D/old.txt; true > $D/old.txt; rm -f $D/old.txt
    mv $D/old.txt $D/moved.txt; ln $D/old.txt $D/hard.txt; ln -s $D/old.txt $D/soft.txt
    mkdir $D/folder; mkfifo $D/pipe; chmod 777 $D/old.txt; truncate -s 9 $D/old.txt
    cp /bin/sh $TMPDIR/sh; ln $D/old.txt $TMPDIR/hard.txt && echo x > $TMPDIR/hard.txt
    ln -s $D/old.txt $TMPDIR/soft.txt && echo x > $TMPDIR/soft.txt
    (cd $D && echo x > old.txt); echo x > $D/../beside/old.txt; echo x > ../beside/old.txt
    true";

#[tokio::test]
async fn output_and_code_of_a_program_come_back() {
    let Some(place) = Place::confining().await else { return };
    let ran = place.sh(Sandbox::ReadOnly, "echo out; echo err >&2; cat old.txt; exit 3").await;
    assert_eq!((ran.exit, &*ran.stdout, &*ran.stderr), (Exit::Code(3), "out\nold", "err\n"));
    let ran = place.sh(Sandbox::ReadOnly, "kill -9 $$").await;
    assert_eq!(ran.exit, Exit::Killed(Some(9)));
}

#[tokio::test]
async fn whoever_may_only_read_writes_nowhere_but_to_its_own_scratch_folder() {
    let Some(place) = Place::confining().await else { return };
    let ran = place.sh(Sandbox::ReadOnly, &format!("D=$PWD; {WRITES}")).await;
    assert_eq!(ran.exit, Exit::Code(0), "{ran:?}");
    assert!(place.is_untouched("workspace") && place.is_untouched("beside"), "{ran:?}");
    let scratch =
        place.sh(Sandbox::ReadOnly, "echo x > $TMPDIR/a && cat $TMPDIR/a; echo $TMPDIR").await;
    let folder = scratch.stdout.strip_prefix("x\n").expect("it may write there").trim_end();
    assert!(!Path::new(folder).exists(), "nothing of it is left");
}

#[tokio::test]
async fn whoever_may_write_does_so_in_the_workspace_only() {
    let Some(place) = Place::confining().await else { return };
    let ran = place.sh(Sandbox::Write, &format!("D=$PWD/../beside; {WRITES}")).await;
    assert_eq!(ran.exit, Exit::Code(0), "{ran:?}");
    // Modes are no contents, and Landlock does not see them.
    let old = place.path("beside/old.txt");
    fs::set_permissions(&old, fs::Permissions::from_mode(0o644)).expect("it is ours");
    assert!(place.is_untouched("beside"), "{ran:?}");
    let ran = place.sh(Sandbox::Write, "echo new > new.txt && mkdir -p a/b && rm old.txt").await;
    assert_eq!(ran.exit, Exit::Code(0), "{ran:?}");
    let made = ["new.txt", "a/b"].map(|name| place.path("workspace").join(name).exists());
    assert_eq!(made, [true, true]);
}

#[tokio::test]
async fn a_confined_program_reads_no_key_from_the_environment_of_who_started_it() {
    let Some(place) = Place::confining().await else { return };
    let script = format!("tr '\\0' '\\n' < /proc/{}/environ | grep -c .; true", std::process::id());
    for (level, is_hidden) in
        [(Sandbox::ReadOnly, true), (Sandbox::Write, true), (Sandbox::Full, false)]
    {
        let ran = place.sh(level, &script).await;
        assert_eq!(ran.stdout == "0\n", is_hidden, "{level:?} {ran:?}");
    }
}

#[tokio::test]
async fn at_level_full_nothing_is_confined() {
    let place = Place::new();
    place.sh(Sandbox::Full, "echo new > ../beside/old.txt").await;
    assert!(!place.is_untouched("beside"));
}

#[tokio::test]
async fn a_confined_program_reaches_no_server() {
    let Some(place) = Place::confining().await else { return };
    let server = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    server.set_nonblocking(true).expect("it can be told so");
    let port = server.local_addr().expect("it has one").port();
    let script = format!("git ls-remote git://127.0.0.1:{port}/x");
    for (level, is_reached) in
        [(Sandbox::ReadOnly, false), (Sandbox::Write, false), (Sandbox::Full, true)]
    {
        // Nobody answers, so whoever gets through waits until its time is over.
        let ran = place.run(level, &script, Duration::from_secs(3)).await;
        assert_eq!(ran.expect("git is there").exit == Exit::TimedOut, is_reached, "{level:?}");
        assert_eq!(server.accept().is_ok(), is_reached, "{level:?}");
    }
}

#[tokio::test]
async fn a_program_that_takes_too_long_ends_with_all_it_has_started() {
    let Some(place) = Place::confining().await else { return };
    let start = Instant::now();
    let script = "sleep 600 & (sleep 600 &) ; echo begun; sleep 600";
    let ran =
        place.run(Sandbox::Write, script, Duration::from_millis(700)).await.expect("it starts");
    assert_eq!((ran.exit, &*ran.stdout), (Exit::TimedOut, "begun\n"));
    assert!(start.elapsed() < Duration::from_secs(15));
    until(|| left_behind(&place).is_empty());
}

#[tokio::test]
async fn nobody_survives_by_leaving_the_group_or_by_hiding_its_mark() {
    let Some(place) = Place::confining().await else { return };
    for hidden in ["", "env -i "] {
        let script =
            format!("{hidden}setsid sleep 611 & {hidden}setsid setsid sleep 612 & sleep 0.2");
        let ran = place.sh(Sandbox::ReadOnly, &script).await;
        assert_eq!(ran.exit, Exit::Code(0), "{ran:?}");
        until(|| left_behind(&place).is_empty());
    }
}

#[tokio::test]
async fn orphans_of_a_program_are_reaped_also_if_they_end_by_themselves() {
    let Some(place) = Place::confining().await else { return };
    let mut orphans = Vec::new();
    for _ in 0..20 {
        let script = "(sleep 613 & echo $!); setsid setsid sleep 614 & echo $!";
        let ran = place.sh(Sandbox::ReadOnly, script).await;
        orphans.extend(ran.stdout.split_whitespace().map(|it| Path::new("/proc").join(it)));
    }
    assert_eq!(orphans.len(), 40);
    // One that ends while it is looked for is reaped at the end of the next program.
    for _ in 0..100 {
        place.sh(Sandbox::ReadOnly, "true").await;
        orphans.retain(|it| it.exists());
        if orphans.is_empty() {
            return;
        }
    }
    panic!("nobody reaps {orphans:?}");
}

#[tokio::test]
async fn the_end_of_one_program_ends_no_other_even_if_that_hides_its_mark() {
    let Some(place) = Place::confining().await else { return };
    let goes_on = "touch begun; exec env -i /bin/sh -c 'while [ ! -e done ]; do :; done'";
    let one_after_another = async {
        while !place.path("workspace/begun").exists() {
            tokio::task::yield_now().await;
        }
        // The first may come before the other has hidden its mark.
        for _ in 0..20 {
            place.sh(Sandbox::Write, "true").await;
        }
        place.sh(Sandbox::Write, "touch done").await
    };
    let (other, _) = tokio::join!(place.sh(Sandbox::Write, goes_on), one_after_another);
    assert_eq!(other.exit, Exit::Code(0), "{other:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_end_of_one_program_ends_no_other_that_is_just_being_started() {
    if Place::confining().await.is_none() {
        return;
    }
    let one_after_another = || async {
        let place = Place::new();
        for _ in 0..25 {
            assert_eq!(place.sh(Sandbox::ReadOnly, "true").await.exit, Exit::Code(0));
        }
    };
    let all = [(); 4].map(|()| tokio::spawn(one_after_another()));
    for one in all {
        one.await.expect("none is ended by another");
    }
}

#[tokio::test]
async fn whoever_no_longer_waits_ends_the_program() {
    let Some(place) = Place::confining().await else { return };
    let run = place.run(Sandbox::Write, "touch begun; sleep 600", Duration::from_mins(1));
    let begun = async {
        while !place.path("workspace/begun").exists() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        ran = run => panic!("it goes on: {ran:?}"),
        () = begun => {}
    }
    until(|| left_behind(&place).is_empty());
}

#[tokio::test]
async fn a_background_child_that_keeps_the_pipes_holds_nobody_up() {
    let Some(place) = Place::confining().await else { return };
    let start = Instant::now();
    let ran = place.sh(Sandbox::ReadOnly, "sleep 600 & echo done").await;
    assert_eq!((ran.exit, &*ran.stdout), (Exit::Code(0), "done\n"));
    assert!(start.elapsed() < Duration::from_secs(15));
}

#[tokio::test]
async fn output_of_any_size_is_read_and_bounded() {
    let Some(place) = Place::confining().await else { return };
    let ran = place.sh(Sandbox::ReadOnly, "yes abcdefg | head -c 20000000; echo end").await;
    assert_eq!(ran.exit, Exit::Code(0));
    assert!(ran.stdout.len() < 2100 && ran.stdout.ends_with("end\n"), "{}", ran.stdout.len());
    assert!(ran.stdout.contains("[19998004 bytes left out]"), "{}", ran.stdout);
}

#[tokio::test]
async fn a_program_that_does_not_exist_is_an_error() {
    let Some(place) = Place::confining().await else { return };
    let workspace = &place.path("workspace");
    let argv = ["no-such-program".to_owned()];
    let (environment, time, dir) = (&BTreeMap::new(), Duration::from_secs(5), workspace);
    let (sandbox, kept) = (Sandbox::ReadOnly, (10, 10));
    let (argv, merged) = (&argv, false);
    let (stdin, beyond): (&[u8], _) = (&[], Beyond::default());
    let process =
        Process { argv, dir, environment, stdin, sandbox, beyond, workspace, time, kept, merged };
    let error = process.run().await.expect_err("there is none");
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
}

/// The programs that still run in the workspace.
fn left_behind(place: &Place) -> Vec<String> {
    let workspace = place.path("workspace");
    let here = |entry: fs::DirEntry| {
        let process = entry.path();
        (fs::read_link(process.join("cwd")).ok()? == workspace).then_some(())?;
        Some(fs::read_to_string(process.join("cmdline")).unwrap_or_default())
    };
    fs::read_dir("/proc").expect("it is there").flatten().filter_map(here).collect()
}
