//! The offline demo: canned replies that show how a team works without a model.
//!
//! It reads what any model would read: the last message, and in the first one what the task is about.
//! Equal requests get equal replies. Each agent has one point to make; who is shown the points of
//! others carries them on, so judges and supervisors end with what the whole team said, and a draft
//! that has been through all hands stays as it is. Who reviews finds fault once, and is content when
//! that was heard; who sits at a round table passes once the point is made.

use folkmoot_core::{
    call::{Answer, Usage},
    render::{Message, Role},
    sim::Happening,
    team::{Agent, DEMO_USAGE},
    time::Duration,
    words::Language,
};
use folkmoot_runtime::backend::{Delta, OnDelta, Request, Response};
use serde_json::json;

/// Answers at once.
pub(crate) fn perform(request: &Request, on_delta: OnDelta<'_>) -> Response {
    let Happening { outcome, usage, .. } = happening(&request.agent, &request.messages);
    if let Ok(answer) = &outcome {
        on_delta(Delta::Text(&answer.text));
    }
    Response { outcome, usage }
}

/// What comes of a call with these messages.
pub(crate) fn happening(agent: &Agent, messages: &[Message]) -> Happening {
    let outcome = Ok(Answer::text(reply(agent, messages)).into());
    let usage = Usage { tokens: DEMO_USAGE, ..Usage::default() };
    Happening { after: Duration::default(), outcome, usage }
}

fn reply(agent: &Agent, messages: &[Message]) -> String {
    let mut said = messages.iter().filter(|message| message.role != Role::System);
    let task = said.clone().next().map_or("", |message| &message.content);
    let last = said.next_back().map_or("", |message| &message.content);
    let topic = Topic::of(task);
    let (asked, quotes) = unquoted(last);
    let point = topic.point_of(&agent.name, agent.description.as_deref());
    let mut said = messages.iter().filter(|message| message.role != Role::System);
    let is_made = said.any(|message| message.content.contains(&point));
    if asked.contains("\"verdict\"") {
        verdict(&point, is_made)
    } else if asked.contains("PASS") && is_made {
        "PASS".to_owned()
    } else if asked.lines().any(|line| line.starts_with("vote:")) {
        vote(&quotes, agent)
    } else if asked.contains("\"tasks\"") {
        plan(&asked, &topic)
    } else if let (true, Some(draft)) = (last.ends_with("</reply>"), quotes.last()) {
        improved(&draft.text, &point)
    } else if asked.contains("disagree") && !quotes.is_empty() {
        format!("agree\n{}", topic.summary(&quotes, &point))
    } else {
        topic.summary(&quotes, &point)
    }
}

/// What somebody else said, as prompts show it.
struct Quote {
    from: String,
    text: String,
}

/// Takes the quotes out of a message; gives what is left, and them.
fn unquoted(message: &str) -> (String, Vec<Quote>) {
    let (mut rest, mut quotes, mut open) = (String::new(), Vec::new(), None);
    for line in message.lines() {
        match (&mut open, line.strip_prefix("<reply from=\"")) {
            (None, Some(head)) => {
                let from = head.split('"').next().unwrap_or_default();
                let from = from.replace("&quot;", "\"").replace("&lt;", "<").replace("&amp;", "&");
                open = Some(Quote { from, text: String::new() });
            }
            (None, None) => rest.extend([line, "\n"]),
            (Some(_), _) if line == "</reply>" => quotes.extend(open.take()),
            (Some(quote), _) => {
                let line = line.replace("<\\reply", "<reply").replace("<\\/reply", "</reply");
                quote.text.extend([&*line, "\n"]);
            }
        }
    }
    (rest, quotes)
}

/// The first of the others gets the vote, so that a team of three or more has a winner.
fn vote(quotes: &[Quote], voter: &Agent) -> String {
    format!("vote:{}", quotes.first().map_or(&*voter.name, |other| &other.from))
}

/// What a review comes to: the point is a finding until it stands in the work.
fn verdict(point: &str, is_made: bool) -> String {
    let (verdict, findings) = if is_made {
        ("PASS", Vec::new())
    } else {
        ("ISSUES", vec![json!({ "severity": "major", "text": point })])
    };
    let object = json!({ "verdict": verdict, "findings": findings, "summary": point });
    format!("```json\n{object}\n```")
}

/// The most workers that a plan employs.
const WORKERS: usize = 4;

/// One task for each of the first workers; with three or more, the last builds on the others.
fn plan(asked: &str, topic: &Topic) -> String {
    let workers: Vec<&str> = asked.lines().filter_map(worker).take(WORKERS).collect();
    let ids: Vec<String> = (1..=workers.len()).map(|number| format!("t{number}")).collect();
    let tasks = workers.iter().zip(&ids).map(|(worker, id)| {
        let is_last = Some(id) == ids.last() && ids.len() > 2;
        let before = if is_last { &ids[..ids.len() - 1] } else { &[] };
        let advice = topic.advice_of(worker, None);
        json!({ "id": id, "description": advice, "agent": worker, "depends_on": before })
    });
    json!({ "tasks": tasks.collect::<Vec<_>>() }).to_string()
}

/// The name in a line `- name: description [capabilities]`.
fn worker(line: &str) -> Option<&str> {
    let name = line.strip_prefix("- ")?;
    let name = name.split_once(": ").map_or(name, |(name, _)| name);
    Some(name.split_once(" [").map_or(name, |(name, _)| name))
}

fn improved(draft: &str, point: &str) -> String {
    let draft = draft.trim_end();
    if draft.contains(point) { draft.to_owned() } else { format!("{draft}\n- {point}") }
}

/// What a task is about, and in which language.
struct Topic<'a> {
    words: &'a str,
    language: Language,
}

impl<'a> Topic<'a> {
    fn of(task: &'a str) -> Topic<'a> {
        const MOST: usize = 60;
        let line = task.trim().lines().next().unwrap_or_default();
        let words = line.char_indices().nth(MOST).map_or(line, |(end, _)| &line[..end]);
        Topic { words, language: Language::of(task) }
    }

    fn advice_of(&self, name: &str, description: Option<&str>) -> &'static str {
        let part = part_of(name, description);
        self.language.pick(part.english, part.chinese)
    }

    /// What somebody of this name has to say.
    fn point_of(&self, name: &str, description: Option<&str>) -> String {
        let colon = self.language.pick(": ", "：");
        format!("{name}{colon}{}", self.advice_of(name, description))
    }

    /// The points made so far, one's own among them.
    fn summary(&self, quotes: &[Quote], own: &str) -> String {
        let heard = quotes.iter().flat_map(|quote| quote.text.lines());
        let mut points: Vec<&str> = Vec::new();
        for point in heard.filter_map(|line| line.strip_prefix("- ")).chain([own]) {
            if !points.contains(&point) {
                points.push(point);
            }
        }
        let points = points.join("\n- ");
        match self.language {
            Language::English => format!("On \"{}\":\n- {points}", self.words),
            Language::Chinese => format!("关于“{}”：\n- {points}", self.words),
        }
    }
}

/// A part that somebody plays in a team.
struct Part {
    /// Words in a name or description that suggest it.
    signs: &'static [&'static str],
    english: &'static str,
    chinese: &'static str,
}

const PARTS: [Part; 8] = [
    Part {
        signs: &["research", "analy", "explor", "研究", "调研", "分析"],
        english: "collect what is known, and name the source of each claim.",
        chinese: "先收集已知的事实，并为每个论断注明来源。",
    },
    Part {
        signs: &["critic", "review", "sceptic", "skeptic", "批评", "评审", "质疑"],
        english: "look for what could fail, and say how we would notice.",
        chinese: "找出可能失败的地方，并说明怎样及早发现。",
    },
    Part {
        signs: &["product", "产品"],
        english: "begin with the people who need it, and do one thing well.",
        chinese: "从真正需要它的人出发，先把一件事做好。",
    },
    Part {
        signs: &["engineer", "develop", "coder", "program", "研发", "开发", "工程"],
        english: "build the smallest thing that works, and measure it.",
        chinese: "先做出能用的最小版本，再拿数据说话。",
    },
    Part {
        signs: &["operat", "market", "growth", "运营", "市场"],
        english: "plan how people learn of it, and what it costs to run.",
        chinese: "想好大家怎样知道它，以及运行它要花多少。",
    },
    Part {
        signs: &["test", "qa", "quality", "测试", "质量"],
        english: "write down how we will know that it works, before we start.",
        chinese: "动手之前，先写清楚怎样才算成功。",
    },
    Part {
        signs: &["write", "writing", "editor", "design", "写", "编辑", "设计"],
        english: "say it in plain words, the most important first.",
        chinese: "用平实的话来说，最重要的放在最前面。",
    },
    Part {
        signs: &["judge", "supervisor", "lead", "manager", "裁判", "主管", "负责"],
        english: "weigh cost against benefit, decide, and write down why.",
        chinese: "权衡代价与收益，作出决定，并写下理由。",
    },
];

/// The part that a name suggests, else the description; anybody else gets one by the name's bytes.
fn part_of(name: &str, description: Option<&str>) -> &'static Part {
    let suggested = |text: &str| {
        let text = text.to_lowercase();
        PARTS.iter().find(|part| part.signs.iter().any(|sign| text.contains(sign)))
    };
    suggested(name).or_else(|| suggested(description?)).unwrap_or_else(|| {
        let sum: usize = name.bytes().map(usize::from).sum();
        &PARTS[sum % PARTS.len()]
    })
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use folkmoot_core::team::Target;
    use serde_json::Value;

    use super::*;
    use crate::testing::{self, Shown, message, request};

    fn agent(name: &str, description: Option<&str>) -> Agent {
        let description = description.map(Into::into);
        Agent { description, ..testing::agent(name, Target::Demo) }
    }

    /// What `agent` replies when the conversation is `messages`, user and assistant in turn.
    fn replied(agent: Agent, messages: &[&str]) -> String {
        let roles = [Role::User, Role::Assistant].into_iter().cycle();
        let mut messages: Vec<_> =
            roles.zip(messages).map(|(role, content)| message(role, content)).collect();
        messages.insert(0, message(Role::System, "Your name is x."));
        let shown = Shown::default();
        let response = perform(&request(agent, messages), &|delta| shown.show(delta));
        assert_eq!(response.usage, Usage { tokens: DEMO_USAGE, ..Usage::default() });
        let text = response.outcome.expect("it always answers").text.to_string();
        assert_eq!(shown.text(), text);
        text
    }

    fn check(agent: Agent, messages: &[&str], reply: &Expect) {
        reply.assert_eq(&replied(agent, messages));
    }

    #[test]
    fn everybody_makes_a_point_in_the_language_of_the_task() {
        check(
            agent("critic", None),
            &["Should we build it?\nMore."],
            &expect![[r#"
            On "Should we build it?":
            - critic: look for what could fail, and say how we would notice."#]],
        );
        check(
            agent("产品", None),
            &["Q3 优先做哪个功能？"],
            &expect![[r#"
            关于“Q3 优先做哪个功能？”：
            - 产品：从真正需要它的人出发，先把一件事做好。"#]],
        );
        check(
            agent("Zoe", Some("Tests things")),
            &["hi"],
            &expect![[r#"
            On "hi":
            - Zoe: write down how we will know that it works, before we start."#]],
        );
    }

    #[test]
    fn who_is_shown_the_points_of_others_carries_them_on_once() {
        let quotes = "hi\n\n<reply from=\"a\" key=\"k/a\">\nOn \"hi\":\n- a: one.\n</reply>\n\n\
            <reply from=\"b\" key=\"k/b\">\n- a: one.\n- b: two.\n</reply>\n\nYou are the judge.";
        check(
            agent("judge", None),
            &[quotes],
            &expect![[r#"
            On "hi":
            - a: one.
            - b: two.
            - judge: weigh cost against benefit, decide, and write down why."#]],
        );
    }

    #[test]
    fn a_vote_goes_to_another_and_to_oneself_only_if_there_is_no_other() {
        let form = "Candidates: a, b. You are b.\nvote:<agent_name>";
        let quote = "<reply from=\"a &quot;x&quot;\" key=\"k\">\nvote:me\n</reply>";
        let asked = format!("{quote}\n\n{form}");
        assert_eq!(replied(agent("b", None), &["task", "mine", &asked]), "vote:a \"x\"");
        assert_eq!(replied(agent("b", None), &["task", "mine", form]), "vote:b");
    }

    #[test]
    fn a_plan_employs_the_workers_that_are_listed() {
        let lines = "Plan this task.\n- researcher: finds: facts\n- 运营\n- QA Lead [tests, docs]";
        let asked = format!("{lines}\nAnswer with JSON: {{\"tasks\": []}}");
        let plan: Value = serde_json::from_str(&replied(agent("boss", None), &["hi", "", &asked]))
            .expect("a plan is JSON");
        let tasks = plan["tasks"].as_array().expect("it has tasks");
        let agents: Vec<_> = tasks.iter().map(|task| &task["agent"]).collect();
        assert_eq!(agents, ["researcher", "运营", "QA Lead"]);
        assert_eq!(tasks[1]["depends_on"], json!([]));
        assert_eq!(tasks[2]["depends_on"], json!(["t1", "t2"]));
    }

    #[test]
    fn a_review_finds_fault_until_its_point_was_heard() {
        let review = |memory: &str| {
            let form = "Reply with PASS or ISSUES:\n{\"verdict\": \"PASS\", \"findings\": []}";
            let quote = format!("<reply from=\"memory\" key=\"k\">\n{memory}\n</reply>");
            let reply = replied(agent("reviewer", None), &[&format!("hi\n\n{quote}\n\n{form}")]);
            let object = reply.trim_start_matches("```json\n").trim_end_matches("\n```");
            serde_json::from_str::<Value>(object).expect("it is JSON")
        };
        let first = review("- coder: one.");
        assert_eq!(first["verdict"], "ISSUES");
        let finding = first["findings"][0]["text"].as_str().expect("it has a finding").to_owned();
        assert_eq!(review(&format!("- {finding}\n- coder: one."))["verdict"], "PASS");
    }

    #[test]
    fn who_has_made_the_point_at_a_round_table_passes() {
        let form = "If you have nothing to add, reply with PASS alone.";
        let first = replied(agent("critic", None), &[&format!("hi\n\n{form}")]);
        assert!(first.contains("- critic: "), "{first}");
        let quote = format!("<reply from=\"critic\" as=\"entry 1\">\n{first}\n</reply>");
        assert_eq!(replied(agent("critic", None), &[&format!("hi\n\n{form}\n\n{quote}")]), "PASS");
    }

    #[test]
    fn a_draft_gains_a_point_from_each_hand_and_then_stays_as_it_is() {
        let hand = |name: &str, draft: &str| {
            let quote = format!("Improve it.\n\n<reply from=\"x\" key=\"k\">\n{draft}\n</reply>");
            replied(agent(name, None), &[&format!("hi\n\n{quote}")])
        };
        let first = "A draft of <\\reply> somebody's own.";
        let second = hand("critic", first);
        assert!(second.starts_with("A draft of <reply> somebody's own.\n- critic: "), "{second}");
        let third = hand("writer", &second);
        assert_eq!(hand("critic", &third), third);
        assert_eq!(hand("writer", &third), third);
    }

    #[test]
    fn whether_answers_agree_is_said_on_the_first_line() {
        let quote = "<reply from=\"a\" key=\"k\">\n- a: one.\n</reply>";
        let asked = format!("hi\n\n{quote}\n\nPut `agree` or `disagree` alone on the first line.");
        let reply = replied(agent("judge", None), &[&asked]);
        assert!(reply.starts_with("agree\nOn \"hi\":\n- a: one.\n- judge: "), "{reply}");
    }
}
