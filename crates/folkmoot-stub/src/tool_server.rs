//! A stub MCP server on standard input and output, which can misbehave.
//!
//! It is run by the test that needs it: a test binary that is started again with [`SETTINGS`] in its
//! environment serves, instead of testing.

use std::{
    collections::BTreeSet,
    fs::OpenOptions,
    io::{BufRead, Write, stderr, stdin, stdout},
    process::exit,
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

/// The variable that holds the settings of a stub, a JSON object:
///
/// * `starts`: a file to which it adds its process id when it starts
/// * `noise`: whether it says lines that are no messages, before and between the others
/// * `stubborn`: whether it stays when its input ends
/// * `tools`: a file with the names of further tools, one a line, read whenever it lists them
/// * `log`: a file to which it adds a line for each notice and each call of a tool
pub const SETTINGS: &str = "FOLKMOOT_STUB_TOOLS";

/// Serves to the end of the input, if the environment says so; tells whether it did.
pub fn serve_tools_if_asked() -> bool {
    let Ok(settings) = std::env::var(SETTINGS) else { return false };
    let settings: Value = serde_json::from_str(&settings).expect("the settings are JSON");
    Arc::new(Server { settings, cancelled: Mutex::default(), told: Condvar::new() }).serve();
    true
}

/// The tools that it always has.
const NAMES: [&str; 12] = [
    "echo", "look", "slow", "forever", "hang", "late", "die", "big", "items", "image", "fail",
    "grow",
];

struct Server {
    settings: Value,
    /// The requests that were called off.
    cancelled: Mutex<BTreeSet<String>>,
    told: Condvar,
}

impl Server {
    fn serve(self: &Arc<Server>) {
        self.add_to("starts", &std::process::id().to_string());
        self.make_noise();
        for line in stdin().lock().lines() {
            let Ok(line) = line else { break };
            let message: Value = serde_json::from_str(&line).expect("the client speaks JSON");
            let server = self.clone();
            thread::spawn(move || server.hear(&message));
        }
        if self.settings["stubborn"] == true {
            loop {
                thread::park();
            }
        }
        // The last answers may be on their way.
        exit(0);
    }

    fn hear(&self, message: &Value) {
        let (id, params) = (&message["id"], &message["params"]);
        match message["method"].as_str().unwrap_or_default() {
            "initialize" => self.answer(
                id,
                &json!({
                    "protocolVersion": params["protocolVersion"],
                    "capabilities": { "tools": { "listChanged": true } },
                    "serverInfo": { "name": "stub", "version": "1" },
                }),
            ),
            "tools/list" => self.answer(id, &json!({ "tools": self.tools() })),
            "tools/call" => self.call(id, params),
            "notifications/cancelled" => {
                self.add_to("log", &format!("cancelled {}", params["requestId"]));
                let mut cancelled = self.cancelled.lock().unwrap_or_else(PoisonError::into_inner);
                cancelled.insert(params["requestId"].to_string());
                self.told.notify_all();
            }
            _ => {}
        }
    }

    fn tools(&self) -> Vec<Value> {
        let tool = |name: &str| {
            json!({
                "name": name,
                "description": format!("It does {name}."),
                "inputSchema": { "type": "object", "properties": { "text": { "type": "string" } } },
                "annotations": { "readOnlyHint": name == "look" },
            })
        };
        let file = self.settings["tools"].as_str().unwrap_or_default();
        let more = std::fs::read_to_string(file).unwrap_or_default();
        NAMES.into_iter().chain(more.lines()).map(tool).collect()
    }

    fn call(&self, id: &Value, params: &Value) {
        let (name, given) = (params["name"].as_str().unwrap_or_default(), &params["arguments"]);
        self.add_to("log", &format!("call {name} {}", params["_meta"]));
        let token = &params["_meta"]["progressToken"];
        let count = given["count"].as_u64().unwrap_or(1);
        let pause = || thread::sleep(Duration::from_millis(given["ms"].as_u64().unwrap_or(50)));
        match name {
            "slow" => {
                for step in 0..count {
                    pause();
                    self.progress(token, step);
                }
                self.text(id, "done");
            }
            "forever" => {
                for step in 0.. {
                    self.progress(token, step);
                    pause();
                }
            }
            "hang" => {}
            // It answers only what was called off.
            "late" => {
                let mut cancelled = self.cancelled.lock().unwrap_or_else(PoisonError::into_inner);
                while !cancelled.contains(&id.to_string()) {
                    cancelled = self.told.wait(cancelled).unwrap_or_else(PoisonError::into_inner);
                }
                self.text(id, "late");
            }
            "die" => {
                let _ = stderr().write_all(b"out of luck\n");
                exit(3);
            }
            "big" => self.text(id, &"word ".repeat(count as usize)),
            "items" => {
                let items: Vec<Value> = (0..count).map(|n| json!({ "n": n, "é": "ü" })).collect();
                self.text(id, &json!(items).to_string());
            }
            "image" => {
                let data = "QUJD".repeat(count as usize);
                let image = json!({ "type": "image", "mimeType": "image/png", "data": data });
                let structured = json!({ "picture": data, "name": "sun" });
                self.answer(id, &json!({ "content": [image], "structuredContent": structured }));
            }
            "fail" => {
                let content = json!([{ "type": "text", "text": "no such thing" }]);
                self.answer(id, &json!({ "content": content, "isError": true }));
            }
            "grow" => {
                self.add_to("tools", "further");
                self.say(&json!({
                    "jsonrpc": "2.0", "method": "notifications/tools/list_changed"
                }));
                self.text(id, "grown");
            }
            _ => self.text(id, given["text"].as_str().unwrap_or("nothing")),
        }
    }

    fn progress(&self, token: &Value, step: u64) {
        let params = json!({ "progressToken": token, "progress": step });
        self.say(&json!({
            "jsonrpc": "2.0", "method": "notifications/progress", "params": params
        }));
    }

    fn text(&self, id: &Value, text: &str) {
        self.answer(id, &json!({ "content": [{ "type": "text", "text": text }] }));
    }

    fn answer(&self, id: &Value, result: &Value) {
        self.make_noise();
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    }

    fn say(&self, message: &Value) {
        // One write, so that messages of several threads stay apart; nobody may listen any longer.
        let _ = stdout().lock().write_all(format!("{message}\n").as_bytes());
        let _ = stdout().lock().flush();
    }

    fn make_noise(&self) {
        if self.settings["noise"] == true {
            let noise = "Stub 1.0 is here\n\nWARN nothing much\n{}\n{\"jsonrpc\": \"2.0\", \n";
            let _ = stdout().lock().write_all(noise.as_bytes());
        }
    }

    fn add_to(&self, file: &str, line: &str) {
        let Some(file) = self.settings[file].as_str() else { return };
        let file = OpenOptions::new().create(true).append(true).open(file);
        let _ = file.expect("it can be opened").write_all(format!("{line}\n").as_bytes());
    }
}
