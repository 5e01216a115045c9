//! The teams, and what their models say: nothing but a function of the request.

use std::hash::{DefaultHasher, Hash, Hasher};

use folkmoot_stub::{Completion, Received};
use serde_json::{Value, json};

/// A team and its task.
pub(crate) struct Team {
    pub(crate) file: &'static str,
    pub(crate) task: &'static str,
}

/// Every strategy, half of them in Chinese.
pub(crate) const TEAMS: [Team; 8] = [
    Team {
        file: "
name: 评审组
agents:
  - { name: 产品, model: openai/stub }
  - { name: 研发, model: openai/stub }
  - { name: 运营, model: openai/stub }
collaboration: { strategy: broadcast, rounds: 2 }
",
        task: "第三季度先做哪个功能？",
    },
    Team {
        file: "
name: debaters
agents:
  - { name: bold, model: openai/stub, prompt: Argue for it. }
  - { name: careful, model: openai/stub, prompt: Argue against it. }
  - { name: judge, model: openai/stub }
collaboration: { strategy: debate, agents: [bold, careful], rounds: 2, judge: judge }
",
        task: "Should we move to microservices?",
    },
    Team {
        file: "
name: works
agents:
  - { name: supervisor, model: openai/stub }
  - { name: builder, model: openai/stub }
  - { name: tester, model: openai/stub }
  - { name: writer, model: openai/stub }
collaboration: { strategy: supervisor, supervisor: supervisor, workers: [builder, tester, writer] }
limits: { tokens: 10000000, calls: 40, concurrency: 2 }
",
        task: "Build the parser, with tests and a manual",
    },
    Team {
        file: "
name: 社团
agents:
  - { name: 主管, model: openai/stub }
  - { name: 策划, model: openai/stub }
  - { name: 宣传, model: openai/stub }
collaboration: { strategy: supervisor, supervisor: 主管, workers: [策划, 宣传] }
",
        task: "筹备社团的秋季招新",
    },
    Team {
        file: "
name: 委员会
agents:
  - { name: 甲, model: openai/stub }
  - { name: 乙, model: openai/stub }
  - { name: 丙, model: openai/stub }
collaboration: { strategy: consensus, judge: 甲 }
",
        task: "我们该用 SQLite 还是 Postgres？",
    },
    Team {
        file: "
name: chain
agents:
  - { name: analyst, model: openai/stub }
  - { name: designer, model: openai/stub }
  - { name: engineer, model: openai/stub }
collaboration: { strategy: sequential }
",
        task: "Write a function that parses durations",
    },
    Team {
        file: "
name: desk
agents:
  - { name: author, model: openai/stub }
  - { name: editor, model: openai/stub }
collaboration: { strategy: relay, order: [author, editor], rounds: 3 }
",
        task: "Write the introduction of our product",
    },
    // A fault that was handled is not tried again either.
    Team {
        file: "
name: 带病的小组
agents:
  - { name: 甲, model: openai/stub }
  - { name: broken, model: openai/stub }
  - { name: 乙, model: openai/stub }
collaboration: { strategy: broadcast, rounds: 2 }
",
        task: "给社团起三个名字",
    },
];

/// What the models say to a request, and report to have used for it.
pub(crate) struct Said {
    /// Names the request, and stands in what is said.
    pub(crate) id: String,
    pub(crate) text: String,
    pub(crate) read: u64,
    pub(crate) written: u64,
    /// Whether it is refused for good, with this text.
    pub(crate) is_fault: bool,
}

impl Said {
    pub(crate) fn to(request: &Received) -> Said {
        let mut hasher = DefaultHasher::new();
        request.bytes.hash(&mut hasher);
        let hash = hasher.finish();
        let id = format!("#{hash:016x}");
        let messages = request.body["messages"].as_array().expect("a request has messages");
        let text = says(&id, messages.last().expect("and one at least"));
        let first = messages[0]["content"].as_str().unwrap_or_default();
        let is_fault = first.contains("broken");
        Said { id, text, is_fault, read: 100 + hash % 997, written: 1 + hash % 89 }
    }

    /// It as it goes over the wire, in pieces.
    pub(crate) fn completion(&self) -> Completion {
        let middle = self.text.ceil_char_boundary(self.text.len() / 2);
        let (first, second) = self.text.split_at(middle);
        let usage = json!({
            "prompt_tokens": self.read, "completion_tokens": self.written,
            "total_tokens": self.read + self.written
        });
        Completion { usage: Some(usage), ..Completion::text([first, second]) }
    }
}

fn says(id: &str, last: &Value) -> String {
    let last = last["content"].as_str().expect("the last message is text");
    if last.contains("\"tasks\"") {
        return plan(id, last);
    }
    if last.contains("vote:") {
        return format!("理由见 {id}。\nvote:乙");
    }
    format!("{id}: 先看数据，再下结论。\nFirst the numbers, then the verdict.")
}

/// Two tasks at once, and one that waits for both.
fn plan(id: &str, last: &str) -> String {
    let workers = if last.contains("策划") {
        ["策划", "宣传", "策划"]
    } else {
        ["builder", "tester", "writer"]
    };
    let plan = json!({ "tasks": [
        { "id": "one", "description": format!("第一项 {id}"), "agent": workers[0] },
        { "id": "two", "description": format!("the second {id}"), "agent": workers[1] },
        { "id": "three", "description": "join them", "agent": workers[2],
          "depends_on": ["one", "two"] },
    ] });
    plan.to_string()
}
