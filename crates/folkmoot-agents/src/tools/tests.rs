//! What agents can do with the tools, and what they cannot: agents.md §6, rules.md 14.4.

use std::{
    fs,
    os::unix::fs::symlink,
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use folkmoot_core::{
    call::ToolCall,
    check::Environment,
    gate::Workspace,
    key::Key,
    team::{Agent, Target},
};
use folkmoot_runtime::place as runtime;
use serde_json::json;
use tempfile::TempDir;

use super::*;

/// A workspace with a folder beside it that is nobody's business.
struct Place {
    dir: TempDir,
    bench: Workbench,
    sandbox: Sandbox,
    grants: Vec<Arc<str>>,
    environment: Environment,
}

impl Place {
    fn new() -> Place {
        let dir = tempfile::tempdir().expect("a folder for the test");
        for name in ["workspace", "beside"] {
            fs::create_dir(dir.path().join(name)).expect("it can be made");
        }
        fs::write(dir.path().join("beside/secret"), "the secret").expect("it can be written");
        let closed = vec![dir.path().join("workspace/folkmoot.sqlite")];
        let path = std::env::var("PATH").unwrap_or_default();
        let bench = Workbench::new([("PATH".to_owned(), path)], closed, Reach::new());
        let (grants, environment) = (vec!["*".into()], Environment::default());
        Place { dir, bench, sandbox: Sandbox::Write, grants, environment }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join("workspace").join(name)
    }

    fn with(self, name: &str, text: &str) -> Place {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("it is in a folder")).expect("it can be made");
        fs::write(path, text).expect("it can be written");
        self
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect("it is there")
    }

    /// What a model reads of a call.
    async fn call(&self, name: &str, arguments: Value) -> String {
        let grants = self.grants.clone();
        let agent = Agent { grants, sandbox: self.sandbox, ..Agent::new("a", Target::Demo) };
        let folder = self.path("").to_str().expect("it is a text").into();
        let request = ToolRequest {
            run: "run".into(),
            key: Key::parse("a/tool-1"),
            attempt: 1,
            agent: agent.into(),
            call: ToolCall { id: "1".into(), name: name.into(), arguments },
            place: runtime::Place {
                workspace: Workspace { folder, sandbox: self.sandbox },
                environment: self.environment.clone(),
            },
        };
        match self.bench.call(request).await.outcome {
            Ok(answer) => answer.text.to_string(),
            Err(fault) => fault.to_string(),
        }
    }

    async fn read(&self, path: &str) -> String {
        self.call("file.read", json!({ "path": path })).await
    }

    async fn write(&self, path: &str, content: &str) -> String {
        self.call("file.write", json!({ "path": path, "content": content })).await
    }
}

#[tokio::test]
async fn a_file_is_read_with_the_numbers_of_its_lines() {
    let place = Place::new().with("a.txt", "one\r\ntwo\nthree");
    assert_eq!(place.read("a.txt").await, "     1\tone\n     2\ttwo\n     3\tthree\n");
    let part = place.call("file.read", json!({ "path": "a.txt", "offset": 2, "limit": 1 })).await;
    assert_eq!(part, "     2\ttwo\n[more follows; go on with offset 3]\n");
    let beyond = place.call("file.read", json!({ "path": "a.txt", "offset": 9 })).await;
    assert_eq!(beyond, "there is no line 9; it has 3");
    let place = place.with("empty", "");
    assert_eq!(place.read("empty").await, "[the file is empty]");
}

#[tokio::test]
async fn a_call_reads_no_more_than_it_may_and_tells_how_to_go_on() {
    let long = "x".repeat(1000) + "\n";
    let place = Place::new().with("long", &long.repeat(400)).with("line", &"y".repeat(1 << 20));
    let text = place.read("long").await;
    assert!(text.len() < 300 << 10 && text.ends_with("go on with offset 261]\n"), "{}", text.len());
    assert!(place.read("line").await.len() < 300 << 10);
}

#[tokio::test]
async fn binary_files_are_refused_and_foreign_bytes_are_marked() {
    let place = Place::new();
    fs::write(place.path("b"), b"a\0b").expect("it can be written");
    fs::write(place.path("gbk"), b"\xc4\xe3\xba\xc3\n").expect("it can be written");
    assert_eq!(place.read("b").await, "binary: \"b\" is no text");
    assert!(place.read("gbk").await.ends_with("[what is no UTF-8 was replaced by \u{fffd}]\n"));
}

#[tokio::test]
async fn paths_that_lead_out_are_refused_whatever_they_are_used_for() {
    let place = Place::new().with("a.txt", "A");
    symlink("/etc", place.path("notes")).expect("it can be made");
    symlink("../beside/secret", place.path("link")).expect("it can be made");
    symlink("../beside", place.path("folder")).expect("it can be made");
    for path in
        ["../beside/secret", "/etc/passwd", "notes/passwd", "link", "folder/secret", "a/../../x"]
    {
        let read = place.read(path).await;
        assert!(read.starts_with("outside_workspace: "), "{path}: {read}");
        let wrote = place.write(path, "broken in").await;
        assert!(wrote.starts_with("outside_workspace: "), "{path}: {wrote}");
    }
    let listed = place.call("file.list", json!({ "path": "folder" })).await;
    assert!(listed.starts_with("outside_workspace: "), "{listed}");
    let found = place.call("search", json!({ "pattern": "secret" })).await;
    assert_eq!(found, "[no match]");
    let ran = place.call("shell", json!({ "command": "true", "cwd": "folder" })).await;
    assert!(ran.starts_with("outside_workspace: "), "{ran}");
    let beside = fs::read_to_string(place.dir.path().join("beside/secret"));
    assert_eq!(beside.expect("it is there"), "the secret");
}

#[tokio::test]
async fn a_link_that_is_swapped_again_and_again_never_leads_out() {
    let place = Place::new().with("real/secret", "mine");
    let (swap, stop) = (place.path("swap"), Arc::new(AtomicBool::new(false)));
    let (beside, real) = (place.dir.path().join("beside"), place.path("real"));
    let swapper = thread::spawn({
        let stop = Arc::clone(&stop);
        move || {
            while !stop.load(Ordering::Relaxed) {
                for target in [&beside, &real] {
                    let _ = fs::remove_file(&swap);
                    let _ = symlink(target, &swap);
                }
            }
        }
    });
    for _ in 0..300 {
        let read = place.read("swap/secret").await;
        assert!(!read.contains("the secret"), "{read}");
        place.write("swap/new", "written").await;
    }
    stop.store(true, Ordering::Relaxed);
    swapper.join().expect("it swaps");
    assert!(!place.dir.path().join("beside/new").exists());
}

#[tokio::test]
async fn a_hard_link_from_elsewhere_keeps_what_it_was() {
    let place = Place::new();
    let beside = place.dir.path().join("beside/secret");
    fs::hard_link(&beside, place.path("twin")).expect("it can be made");
    assert_eq!(place.write("twin", "new").await, "wrote twin: 1 lines, 3 bytes");
    assert_eq!(place.text("twin"), "new");
    assert_eq!(fs::read_to_string(beside).expect("it is there"), "the secret");
}

#[tokio::test]
async fn neither_git_nor_folkmoots_own_files_can_be_written() {
    let place = Place::new().with(".git/config", "[core]").with("folkmoot.sqlite", "log");
    symlink(".git", place.path("innocent")).expect("it can be made");
    symlink("folkmoot.sqlite", place.path("db")).expect("it can be made");
    for path in [
        ".git/config",
        ".git/hooks/pre-commit",
        "innocent/config",
        "a/.git/x",
        ".GIT/config",
        "folkmoot.sqlite",
        "db",
    ] {
        let wrote = place.write(path, "x").await;
        assert!(wrote.starts_with("denied: "), "{path}: {wrote}");
    }
    assert_eq!(
        (place.text(".git/config"), place.text("folkmoot.sqlite")),
        ("[core]".into(), "log".into())
    );
}

#[tokio::test]
async fn a_pipe_is_no_file_and_keeps_nobody_waiting() {
    let place = Place::new();
    let made = std::process::Command::new("mkfifo").arg(place.path("pipe")).status();
    assert!(made.is_ok_and(|status| status.success()));
    assert_eq!(place.read("pipe").await, "not_a_file: \"pipe\"");
    assert!(place.write("pipe", "x").await.contains("it is no file"));
}

#[tokio::test]
async fn a_file_is_written_as_a_whole_with_its_folders_and_keeps_its_mode() {
    use fs::Permissions;
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new().with("run.sh", "old");
    fs::set_permissions(place.path("run.sh"), Permissions::from_mode(0o755))
        .expect("it can be set");
    assert_eq!(place.write("run.sh", "new\nlines\n").await, "wrote run.sh: 2 lines, 10 bytes");
    let mode = fs::metadata(place.path("run.sh")).expect("it is there").permissions().mode();
    assert_eq!((place.text("run.sh").as_str(), mode & 0o777), ("new\nlines\n", 0o755));
    place.write("新/文件.txt", "内容").await;
    assert_eq!(place.text("新/文件.txt"), "内容");
    let left: Vec<_> = fs::read_dir(place.path("")).expect("it is there").flatten().collect();
    assert!(left.iter().all(|entry| !entry.file_name().to_string_lossy().starts_with(".folkmoot")));
}

#[tokio::test]
async fn a_text_is_replaced_where_it_stands_once_or_everywhere() {
    let place = Place::new().with("a.rs", "let a = 1;\nlet b = 1;\n");
    let replace =
        |old: &str, all: bool| json!({ "path": "a.rs", "old": old, "new": "X", "all": all });
    let told = place.call("file.write", replace("= 1", false)).await;
    assert_eq!(told, "ambiguous: the old text occurs 2 times; give more of it, or all");
    let told = place.call("file.write", replace("nowhere", false)).await;
    assert_eq!(told, "not_found: the old text does not occur in the file");
    assert_eq!(
        place.call("file.write", replace("let a", false)).await,
        "wrote a.rs: 1 replaced, -1 +1 lines"
    );
    assert_eq!(
        place.call("file.write", replace("= 1", true)).await,
        "wrote a.rs: 2 replaced, -2 +2 lines"
    );
    assert_eq!(place.text("a.rs"), "X X;\nlet b X;\n");
    let told = place.call("file.write", json!({ "path": "a.rs" })).await;
    assert_eq!(told, "bad_arguments: give content, or old and new");
}

#[tokio::test]
async fn edits_side_by_side_are_all_in_the_file() {
    let text = (0..40).map(|n| format!("a{n};")).collect::<Vec<_>>().join("\n");
    let place = Place::new().with("e.txt", &text);
    let edit = |n: usize| {
        let arguments =
            json!({ "path": "e.txt", "old": format!("a{n};"), "new": format!("b{n};") });
        place.call("file.write", arguments)
    };
    let told = futures_util::future::join_all((0..40).map(edit)).await;
    assert!(told.iter().all(|it| it.starts_with("wrote ")), "{told:?}");
    assert_eq!(place.text("e.txt"), text.replace('a', "b"));
}

#[tokio::test]
async fn whoever_may_only_read_writes_nothing() {
    let place = Place { sandbox: Sandbox::ReadOnly, ..Place::new() };
    assert!(place.write("a", "x").await.starts_with("denied: the sandbox is read-only"));
    assert!(!place.path("a").exists());
}

#[tokio::test]
async fn what_is_not_granted_is_not_done_even_here() {
    let place = Place { grants: vec!["file.read".into()], ..Place::new().with("a", "A") };
    assert_eq!(place.call("file.list", json!({})).await, "a (1 bytes)\n");
    assert_eq!(place.write("a", "x").await, "denied: file.write");
    assert_eq!(place.call("shell", json!({ "command": "rm a" })).await, "denied: shell");
    assert_eq!(place.text("a"), "A");
}

#[tokio::test]
async fn folders_are_listed_without_what_their_ignore_files_name() {
    let place = Place::new()
        .with(".gitignore", "target/\n*.log\n")
        .with("target/big", "x")
        .with("a.log", "x")
        .with("src/.gitignore", "!keep.log\n")
        .with("src/keep.log", "kept")
        .with("src/main.rs", "fn main() {}")
        .with(".git/config", "[core]");
    let all = place.call("file.list", json!({})).await;
    assert_eq!(
        all,
        ".gitignore (14 bytes)\nsrc/\nsrc/.gitignore (10 bytes)\nsrc/keep.log (4 bytes)\nsrc/main.rs (12 bytes)\n"
    );
    let shallow = place.call("file.list", json!({ "depth": 1 })).await;
    assert_eq!(shallow, ".gitignore (14 bytes)\nsrc/\n");
    let some = place.call("file.list", json!({ "path": "src", "glob": "*.rs" })).await;
    assert_eq!(some, "src/main.rs (12 bytes)\n");
    let ignored = place.call("file.list", json!({ "path": "src", "glob": "*.log" })).await;
    assert_eq!(ignored, "src/keep.log (4 bytes)\n");
}

#[tokio::test]
async fn a_search_gives_places_and_the_lines_around_them() {
    let place =
        Place::new().with("a.txt", "one\nTWO\nthree\nfour\ntwo\n").with("b/c.txt", "x two\n");
    let found = place.call("search", json!({ "pattern": "(?i)two" })).await;
    assert_eq!(found, "a.txt:2: TWO\na.txt:5: two\nb/c.txt:1: x two\n");
    let found = place.call("search", json!({ "pattern": "TWO", "context": 1 })).await;
    assert_eq!(found, "a.txt-1- one\na.txt:2: TWO\na.txt-3- three\n");
    let found = place.call("search", json!({ "pattern": "two", "glob": "b/**" })).await;
    assert_eq!(found, "b/c.txt:1: x two\n");
    let broken = place.call("search", json!({ "pattern": "(" })).await;
    assert!(broken.starts_with("bad_arguments: "), "{broken}");
    let place = place.with("many", &"two\n".repeat(500));
    let found = place.call("search", json!({ "pattern": "two", "glob": "many" })).await;
    assert_eq!(found.lines().count(), 201);
}

#[tokio::test]
async fn arguments_that_are_none_are_told() {
    let place = Place::new();
    let told = place.call("file.read", json!({ "file": "a" })).await;
    assert!(told.starts_with("bad_arguments: unknown field `file`"), "{told}");
    assert_eq!(place.call("mail.send", json!({})).await, "not_found: there is no tool mail.send");
}

#[cfg(target_os = "linux")]
mod commands {
    use super::*;

    async fn shell(place: &Place, command: &str) -> String {
        place.call("shell", json!({ "command": command })).await
    }

    #[tokio::test]
    async fn a_command_tells_its_exit_code_and_both_outputs() {
        let place = Place::new();
        let told = shell(&place, "echo out; echo err >&2; exit 3").await;
        assert_eq!(told, "exit code 3\n--- stdout\nout\n--- stderr\nerr\n");
        let told = place.call("shell", json!({ "command": "sleep 9", "timeout_s": 0.1 })).await;
        assert_eq!(told, "timed out after 0.1 s\n");
    }

    #[tokio::test]
    async fn the_sandbox_of_the_agent_holds_for_its_commands() {
        let place = Place::new();
        let told = shell(&place, "echo x > in && cat in; echo y > ../beside/out").await;
        assert!(told.contains("x\n") && !place.dir.path().join("beside/out").exists(), "{told}");
        let place = Place { sandbox: Sandbox::ReadOnly, ..place };
        let told = shell(&place, "echo x > new").await;
        assert!(!told.starts_with("exit code 0") && !place.path("new").exists(), "{told}");
    }

    #[tokio::test]
    async fn a_command_has_none_of_our_variables_but_those_it_is_given() {
        let ours = [("PATH", "/usr/bin:/bin"), ("OPENAI_API_KEY", "sk-1"), ("EXTRA", "e")];
        let ours = ours.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let allow = Environment { allow: vec!["EXTRA".into()], ..Environment::default() };
        let bench = Workbench::new(ours, Vec::new(), Reach::new());
        let place = Place { bench, environment: allow, ..Place::new() };
        let told = shell(&place, "env").await;
        assert!(told.contains("EXTRA=e") && !told.contains("sk-1"), "{told}");
    }

    #[tokio::test]
    async fn what_is_between_the_beginning_and_the_end_of_an_output_is_left_out() {
        let told = shell(&Place::new(), "seq 1 100000").await;
        assert!(told.len() < 70 << 10 && told.contains("bytes left out]"), "{}", told.len());
        assert!(told.contains("\n1\n") && told.ends_with("100000\n"));
    }
}

#[tokio::test]
async fn private_addresses_are_fetched_at_no_hop() {
    let place = Place::new();
    for url in
        ["http://127.0.0.1:9/", "http://[::1]/", "http://localhost:9/", "http://169.254.169.254/x"]
    {
        let told = place.call("fetch", json!({ "url": url })).await;
        assert_eq!(told, "denied: the address is a private one", "{url}");
    }
    let told = place.call("fetch", json!({ "url": "file:///etc/passwd" })).await;
    assert_eq!(told, "denied: only http and https are fetched");
}
