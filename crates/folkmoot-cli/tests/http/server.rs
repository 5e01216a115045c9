//! The real server, and what is asked of it.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    time::Duration,
};

use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A folder with teams and a store, and a server over it.
pub(crate) struct Server {
    folder: TempDir,
    child: Child,
    /// Its address, with a slash at the end.
    pub(crate) url: String,
    token: String,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) status: StatusCode,
    pub(crate) text: String,
    pub(crate) kind: String,
}

impl Told {
    async fn of(response: Response) -> Told {
        let status = response.status();
        let kind = response.headers().get("content-type").map(|it| it.to_str().expect("text"));
        let kind = kind.unwrap_or_default().to_owned();
        Told { status, kind, text: response.text().await.expect("a body") }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The body, if this is how it ended.
    pub(crate) fn must_be(&self, status: u16) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", self.text);
        self.json()
    }
}

pub(crate) fn client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().expect("a client")
}

impl Server {
    /// A server of these teams, with these flags.
    pub(crate) fn with(teams: &[(&str, &str)], flags: &[&str]) -> Server {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("teams");
        std::fs::create_dir(&place).expect("it is made");
        std::fs::create_dir(folder.path().join("work")).expect("it is made");
        for (name, text) in teams {
            std::fs::write(place.join(format!("{name}.yaml")), text).expect("it is written");
        }
        let (child, url) = Server::started(&folder, flags);
        Server { folder, child, url, token: "run-token-0123456789".to_owned() }
    }

    fn started(folder: &TempDir, flags: &[&str]) -> (Child, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_folkmoot"));
        command
            .current_dir(folder.path())
            .args(["serve", "--listen", "127.0.0.1:0", "--json"])
            .args(["--teams", "teams", "--workspace", "work"])
            .args(flags)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", folder.path().join("home"))
            .env("USER", "user")
            .env("FOLKMOOT_DB", folder.path().join("runs.db"))
            .env("FOLKMOOT_TOKEN", "run-token-0123456789")
            .env("FOLKMOOT_READ_TOKEN", "read-token-0123456789")
            .stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut line = String::new();
        let out = child.stdout.take().expect("it has an output");
        BufReader::new(out).read_line(&mut line).expect("it says where it is");
        let told: Value = serde_json::from_str(&line).expect("it is JSON");
        (child, told["url"].as_str().expect("it has an address").to_owned())
    }

    /// Kills the server and starts it anew over the same store.
    pub(crate) fn restart(&mut self, flags: &[&str]) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
        (self.child, self.url) = Server::started(&self.folder, flags);
    }

    /// Starts the server anew that has ended.
    pub(crate) fn restart_ended(&mut self) {
        (self.child, self.url) = Server::started(&self.folder, &[]);
    }

    /// Asks the server to end, and waits until it has; gives its exit code.
    #[cfg(unix)]
    pub(crate) fn terminate(&mut self) -> Option<i32> {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
        self.child.wait().expect("it ends").code()
    }

    /// The same server, asked by somebody with another token.
    pub(crate) async fn ask_as(
        &self,
        token: &str,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Told {
        let url = format!("{}{}", self.url, path.trim_start_matches('/'));
        let mut request = client().request(method, url);
        if !token.is_empty() {
            request = request.bearer_auth(token);
        }
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        Told::of(request.send().await.expect("it answers")).await
    }

    pub(crate) async fn get(&self, path: &str) -> Told {
        self.ask_as(&self.token, Method::GET, path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Told {
        self.ask_as(&self.token, Method::POST, path, Some(body)).await
    }

    /// The request for a stream of the events of `run`.
    pub(crate) fn events(&self, run: &str, after: Option<u64>) -> reqwest::RequestBuilder {
        let url = format!("{}v1/runs/{run}/events", self.url);
        let request = client().get(url).bearer_auth(&self.token);
        match after {
            Some(after) => request.header("last-event-id", after.to_string()),
            None => request,
        }
    }

    /// A run of `team` that is under way, by its id.
    pub(crate) async fn begin(&self, team: &str) -> String {
        let told = self.post("/v1/runs", &json!({ "team": team, "prompt": "Go on" })).await;
        told.must_be(201)["run_id"].as_str().expect("it has an id").to_owned()
    }

    /// Waits until a run stands so.
    pub(crate) async fn until(&self, run: &str, status: &str) -> Value {
        for _ in 0..1_000 {
            let shown = self.get(&format!("/v1/runs/{run}")).await.must_be(200);
            if shown["run"]["status"] == status {
                return shown;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("the run {run} never is {status}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
