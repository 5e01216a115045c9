//! Files are saved and put back to the byte, and nothing else is touched (agents.md §10).

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    process::Command,
};

use tempfile::TempDir;

use super::*;

struct Place {
    folder: TempDir,
    archive: Archive,
}

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir().expect("a folder can be made");
        fs::create_dir(folder.path().join("work")).expect("it can be made");
        let path = std::env::var("PATH").expect("there is one");
        let archive = Archive::new(folder.path().join("archive"), &path);
        Place { folder, archive }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("work").join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("it has one")).expect("they can be made");
        fs::write(path, text).expect("it can be written");
    }

    fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.path(name)).ok()
    }

    async fn save(&self) -> String {
        match self.archive.save("r1", &self.path("")).await {
            Files::Tree(tree) => tree.to_string(),
            Files::Unsaved(why) => panic!("{why}"),
        }
    }

    async fn put_back(&self, tree: &str, changes: Changes) -> Result<PutBack, NotPutBack> {
        let folder = &self.path("");
        let putting = Putting { folder, tree, origin: "r1", run: "r2", changes };
        self.archive.put_back(putting).await
    }

    #[track_caller]
    fn git(&self, arguments: &[&str]) {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
        let mut git = Command::new("git");
        let git = git.args(identity).args(arguments).current_dir(self.path(""));
        let output = git.output().expect("git is there");
        assert!(output.status.success(), "{output:?}");
    }
}

#[tokio::test]
async fn files_links_and_modes_come_back_and_what_is_new_goes() {
    let place = Place::new();
    place.write("a.txt", "a\r\nb\n");
    place.write("bin/run", [0, 159, 146, 150]);
    place.write("empty", "");
    place.write("a name\nof 两 lines", "x");
    fs::set_permissions(place.path("bin/run"), fs::Permissions::from_mode(0o755)).expect("set");
    symlink("/etc/hostname", place.path("link")).expect("it can be made");
    let before = place.save().await;
    assert_eq!(place.save().await, before, "the same files have the same name");

    place.write("a.txt", "changed");
    fs::remove_file(place.path("link")).expect("it is there");
    fs::remove_dir_all(place.path("bin")).expect("it is there");
    place.write("bin", "a file where a folder was");
    fs::remove_file(place.path("empty")).expect("it is there");
    place.write("empty/but/not", "a folder where a file was");
    let after = place.save().await;
    let put = place.put_back(&before, Changes::Discarded).await.expect("it can be");
    let PutBack::Restored(kept) = put else { panic!("{put:?}") };
    assert_eq!(kept.tree, after);
    assert_eq!(place.read("a.txt").as_deref(), Some("a\r\nb\n"));
    assert_eq!(fs::read(place.path("bin/run")).expect("it is back"), [0, 159, 146, 150]);
    let mode = place.path("bin/run").metadata().expect("it is back").permissions().mode();
    assert_eq!(mode & 0o111, 0o111);
    assert_eq!(fs::read_link(place.path("link")).expect("it is back"), Path::new("/etc/hostname"));
    assert_eq!(place.read("empty").as_deref(), Some(""));
    assert_eq!(place.save().await, before);
    let again = place.put_back(&before, Changes::Respected).await.expect("it can be");
    assert_eq!(again, PutBack::Unchanged);
}

#[tokio::test]
async fn a_change_that_keeps_size_and_second_is_seen() {
    let place = Place::new();
    for n in 0..20 {
        place.write("a.txt", format!("{n:02}"));
        let tree = place.save().await;
        place.write("a.txt", format!("{:02}", n + 50));
        assert_ne!(place.save().await, tree, "{n}");
    }
}

#[tokio::test]
async fn what_somebody_changed_since_the_run_left_stands_in_the_way_and_is_named() {
    let place = Place::new();
    place.write("a.txt", "before");
    let before = place.save().await;
    place.write("a.txt", "by the run");
    place.archive.leave("r1", &place.path("")).await;
    place.write("mine.txt", "mine");
    let refused = place.put_back(&before, Changes::Respected).await.expect_err("it is refused");
    assert_eq!(refused.to_string(), "they have changed since: mine.txt");
    assert_eq!(place.read("a.txt").as_deref(), Some("by the run"));
    fs::remove_file(place.path("mine.txt")).expect("it is there");
    let put = place.put_back(&before, Changes::Respected).await;
    assert!(matches!(put, Ok(PutBack::Restored(_))), "{put:?}");
    assert_eq!(place.read("a.txt").as_deref(), Some("before"));
}

#[tokio::test]
async fn what_is_ignored_or_a_repository_of_its_own_is_left_alone() {
    let place = Place::new();
    place.write(".gitignore", "target/\n*.key\n");
    place.write("target/big", "big");
    place.write("my.key", "secret");
    place.write("a.txt", "a");
    place.write("inner/file", "theirs");
    Command::new("git")
        .args(["init", "-q"])
        .current_dir(place.path("inner"))
        .output()
        .expect("git is there");
    let before = place.save().await;
    for name in ["target/big", "my.key", "inner/file", "a.txt"] {
        place.write(name, "new");
    }
    let put = place.put_back(&before, Changes::Discarded).await;
    assert!(matches!(put, Ok(PutBack::Restored(_))), "{put:?}");
    let now = ["target/big", "my.key", "inner/file", "a.txt"].map(|name| place.read(name));
    assert_eq!(now.map(Option::unwrap_or_default), ["new", "new", "new", "a"]);
}

#[tokio::test]
async fn who_ignores_what_was_saved_does_not_hide_it() {
    let place = Place::new();
    place.write("a.txt", "before");
    let before = place.save().await;
    place.write(".gitignore", "*\n");
    place.write("a.txt", "after");
    let put = place.put_back(&before, Changes::Discarded).await;
    assert!(matches!(put, Ok(PutBack::Restored(_))), "{put:?}");
    assert_eq!(place.read("a.txt").as_deref(), Some("before"));
}

#[tokio::test]
async fn nothing_that_a_repository_says_is_run() {
    let place = Place::new();
    place.git(&["init", "-q"]);
    let evil = "touch ../evil; cat";
    for (key, value) in [
        ("core.fsmonitor", "touch ../evil; false"),
        ("core.hooksPath", "."),
        ("filter.evil.clean", evil),
        ("filter.evil.smudge", evil),
        ("filter.evil.required", "true"),
        ("core.autocrlf", "true"),
    ] {
        place.git(&["config", key, value]);
    }
    for hook in ["post-index-change", "post-checkout", "pre-commit", "reference-transaction"] {
        place.write(hook, "#!/bin/sh\ntouch ../evil\n");
        fs::set_permissions(place.path(hook), fs::Permissions::from_mode(0o755)).expect("set");
    }
    place.write(".gitattributes", "* text=auto eol=crlf ident filter=evil\n");
    place.write("a.txt", "one\n$Id$\r\n");
    let index = fs::read(place.path(".git/index")).ok();
    let before = place.save().await;
    place.write("a.txt", "two\n");
    let put = place.put_back(&before, Changes::Discarded).await;
    assert!(matches!(put, Ok(PutBack::Restored(_))), "{put:?}");
    assert_eq!(place.read("a.txt").as_deref(), Some("one\n$Id$\r\n"));
    assert!(!place.folder.path().join("evil").exists());
    assert_eq!(fs::read(place.path(".git/index")).ok(), index);
    assert!(!place.path(".git/refs/folkmoot").exists());
}

#[tokio::test]
async fn a_link_to_elsewhere_leads_nothing_out() {
    let place = Place::new();
    place.write("folder/file", "before");
    let before = place.save().await;
    let outside = place.folder.path().join("outside");
    fs::create_dir(&outside).expect("it can be made");
    fs::write(outside.join("file"), "theirs").expect("it can be written");
    fs::remove_dir_all(place.path("folder")).expect("it is there");
    symlink(&outside, place.path("folder")).expect("it can be made");
    let put = place.put_back(&before, Changes::Discarded).await;
    assert!(matches!(put, Ok(PutBack::Restored(_))), "{put:?}");
    assert_eq!(fs::read_to_string(outside.join("file")).expect("it is there"), "theirs");
    assert_eq!(place.read("folder/file").as_deref(), Some("before"));
    assert!(place.path("folder").symlink_metadata().expect("it is there").is_dir());
}

#[tokio::test]
async fn what_cannot_be_saved_is_told() {
    let place = Place::new();
    let unsaved = |files| match files {
        Files::Unsaved(why) => why.to_string(),
        Files::Tree(tree) => panic!("{tree}"),
    };
    let archive = Archive::new(place.folder.path().join("archive"), "/nowhere");
    let why = unsaved(archive.save("r1", &place.path("")).await);
    assert_eq!(why, "git is not installed, or not in PATH");
    let big = fs::File::create(place.path("big")).expect("it can be made");
    big.set_len((1 << 30) + 1).expect("it takes no room");
    let why = unsaved(place.archive.save("r1", &place.path("")).await);
    assert_eq!(why, "it holds more than 1024 MiB");
    let unknown =
        place.put_back("4b825dc642cb6eb9a060e54bf8d69288fbee4904", Changes::Discarded).await;
    assert!(matches!(unknown, Err(NotPutBack::Failed(_) | NotPutBack::NotKept)), "{unknown:?}");
    for tree in ["", "--upload-pack=x", "HEAD", "../../x"] {
        let put = place.put_back(tree, Changes::Discarded).await;
        assert!(matches!(put, Err(NotPutBack::NotKept)), "{tree}: {put:?}");
    }
}

#[tokio::test]
async fn the_archive_may_lie_in_the_workspace() {
    let place = Place::new();
    let path = std::env::var("PATH").expect("there is one");
    let archive = Archive::new(place.path("state"), &path);
    place.write("a.txt", "a");
    let one = archive.save("r1", &place.path("")).await;
    assert_eq!(archive.save("r1", &place.path("")).await, one);
    assert!(matches!(one, Files::Tree(_)), "{one:?}");
}
