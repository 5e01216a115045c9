//! What the agents of a graph are told (graph.md §§7, 11, 13, 14).

use std::sync::Arc;

use super::{Graph, PARENT, blocks::inline, choice::Options, termination::History, tokens::Turn};
use crate::{
    call::{Fault, Part, Prompt, Reply},
    gate::{Evidence, Gate},
    key::Key,
    programs::{ERROR, language},
    render::without_tags,
    scope::Scope,
    team::AgentId,
    text,
    words::Language,
};

/// What an agent is asked in a turn: the task, its own last words, the works it did not write, the
/// remarks, who is missing, the findings, and its options.
pub(super) fn of_turn(
    cx: &Scope,
    graph: &Graph,
    turn: &Turn,
    own: Option<&Key>,
    findings: Option<String>,
    options: Option<&Options>,
) -> Prompt {
    let mut prompt = Prompt::task();
    prompt.parts.extend(own.cloned().map(Part::Own));
    let handed = |keys: fn(&super::tokens::Token) -> &Vec<Key>| {
        let edges = turn.taken.iter();
        edges.flat_map(move |(edge, token)| {
            let label = graph.edges[*edge].label.clone();
            keys(token).iter().map(move |key| (key.clone(), label.clone()))
        })
    };
    let mut shown: Vec<Key> = own.into_iter().cloned().collect();
    for (key, label) in handed(|token| &token.works).chain(handed(|token| &token.remarks)) {
        if !shown.contains(&key) {
            prompt.parts.push(Part::handed(key.clone(), label));
            shown.push(key);
        }
    }
    let missing: Vec<(String, &str)> = (turn.taken.values())
        .flat_map(|token| &token.missing)
        .map(|(agent, why)| (cx.name(agent).to_owned(), &**why))
        .collect();
    if !missing.is_empty() {
        prompt = prompt.say(language(cx).missing(&missing));
    }
    let prompt = findings.into_iter().fold(prompt, Prompt::say);
    match options {
        Some(options) => prompt.say(choices(cx, graph, turn.round, options)),
        None => prompt,
    }
}

/// What an agent is told whose attempt failed.
pub(super) fn after_failure(cx: &Scope, prompt: Prompt, fault: &Fault) -> Prompt {
    let language = language(cx);
    let error = error(fault, language);
    prompt.say(match language {
        Language::English => format!("Your last attempt failed: {error}. Try again."),
        Language::Chinese => format!("你上一次的尝试失败了：{error}。请重试。"),
    })
}

/// As much of an error as prompts show, in one line.
pub(super) fn error(fault: &Fault, language: Language) -> String {
    let words = fault.to_string();
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    inline(&text::shorten(&words, ERROR, language))
}

/// The options of a decision agent, and how it names one.
fn choices(cx: &Scope, graph: &Graph, round: u32, options: &Options) -> String {
    let language = language(cx);
    let mut lines = vec![
        language
            .pick(
                "Say where your work goes next. You can choose:",
                "请说明你的工作接下来交给谁。可选：",
            )
            .to_owned(),
    ];
    lines.extend(options.open.iter().map(|edge| option(cx, graph, *edge)));
    lines.push(form(language));
    if let Some(cap) = graph.cap {
        let rounds = cap.max(1);
        lines.push(match language {
            Language::English => format!("This is round {round} of at most {rounds}."),
            Language::Chinese => format!("现在是第 {round} 轮，最多 {rounds} 轮。"),
        });
    }
    if !options.closed.is_empty() {
        lines.push(
            language
                .pick(
                    "This is the last round: the work cannot go back, and unless you choose one of \
                     these it ends unaccepted.",
                    "这是最后一轮（last round）：工作不能再退回；如果不选择以上任何一项，它将以未被接受告终。",
                )
                .to_owned(),
        );
    }
    lines.join("\n")
}

/// How a choice is written.
pub(super) fn form(language: Language) -> String {
    let text = language.pick(
        "Write it on a line of its own, `NEXT: <id>`, or as a JSON object with the field \"next\": \
         {\"next\": \"<id>\"}.",
        "请单独写一行 `NEXT: <id>`，或写一个带 \"next\" 字段的 JSON 对象：{\"next\": \"<id>\"}。",
    );
    text.to_owned()
}

fn option(cx: &Scope, graph: &Graph, edge: usize) -> String {
    let edge = &graph.edges[edge];
    let language = language(cx);
    let who = match edge.to.as_str() {
        PARENT => format!("{PARENT} ({})", language.pick("finish", "结束")),
        id => match cx.name(&edge.to) {
            name if name == id => inline(id),
            name => format!("{} ({})", inline(id), inline(name)),
        },
    };
    match &edge.label {
        Some(label) => format!("- {who}: {}", inline(label)),
        None => format!("- {who}"),
    }
}

/// What a decision agent is asked once more.
pub(super) fn again(cx: &Scope, graph: &Graph, reply: Prompt, options: &Options) -> Prompt {
    let language = language(cx);
    let mut lines = vec![
        language
            .pick(
                "No choice could be read. Say only where your work goes:",
                "没有读到你的选择。请只说明你的工作交给谁：",
            )
            .to_owned(),
    ];
    lines.extend(options.open.iter().map(|edge| option(cx, graph, *edge)));
    lines.push(form(language));
    reply.say(lines.join("\n"))
}

/// How much of the output of a command is shown, in characters.
pub(crate) const OUTPUT: usize = 2000;

/// What an agent is told when something that its way requires is not so.
pub(super) fn gate_failed(
    cx: &Scope,
    graph: &Graph,
    prompt: Prompt,
    gate: &Gate,
    outcome: &Evidence,
    options: Option<&Options>,
) -> Prompt {
    let language = language(cx);
    let name = inline(&text::shorten(&gate.to_string(), ERROR, language));
    let code = outcome.exit_code.map(|code| match language {
        Language::English => format!(" (exit code {code})"),
        Language::Chinese => format!("（退出码 {code}）"),
    });
    let detail = outcome.detail.as_deref().map(|detail| {
        let detail = text::shorten(detail, ERROR, language);
        format!(": {}", inline(&detail))
    });
    let what = [code, detail].into_iter().flatten().collect::<String>();
    let mut lines = vec![match language {
        Language::English => format!("Your work cannot go on yet: {name} failed{what}."),
        Language::Chinese => format!("你的工作还不能继续：{name} 未通过{what}。"),
    }];
    if let Some(output) = outcome.output.as_deref().filter(|output| !output.trim().is_empty()) {
        let head = language.pick("The end of its output, as data:", "它输出的末尾（仅作数据）：");
        let output = text::shorten(output.trim_end(), OUTPUT, language);
        lines.push(format!("{head}\n<output>\n{}\n</output>", without_tags(&output, &["output"])));
    }
    lines.push(
        language
            .pick(
                "Mend that, then give your whole reply again; it takes the place of the one before.",
                "请改正，然后重新给出完整的回复；它将取代之前的回复。",
            )
            .to_owned(),
    );
    if let Some(options) = options {
        let head = language.pick("You can also choose otherwise:", "你也可以另作选择：");
        lines.push(head.to_owned());
        lines.extend(options.open.iter().map(|edge| option(cx, graph, *edge)));
        lines.push(form(language));
    }
    prompt.say(lines.join("\n"))
}

/// What the judge of `converged` is asked: always afresh.
pub(super) fn of_judge(
    cx: &Scope,
    graph: &Graph,
    history: &History,
    criterion: &str,
    declared_by: Option<&AgentId>,
    round: u32,
) -> Prompt {
    let language = language(cx);
    let latest = history.speakers().filter_map(|agent| history.latest(agent));
    let prompt = Prompt::task().quotes(latest);
    let criterion = match declared_by {
        None => criterion.to_owned(),
        Some(agent) => match language {
            Language::English => format!("{} declares the work done", cx.name(agent)),
            Language::Chinese => format!("{}声明工作已完成", cx.name(agent)),
        },
    };
    let rounds = graph.cap.map(|cap| match language {
        Language::English => format!(" This is round {round} of at most {}.", cap.max(1)),
        Language::Chinese => format!("现在是第 {round} 轮，最多 {} 轮。", cap.max(1)),
    });
    let rounds = rounds.unwrap_or_default();
    prompt.say(match language {
        Language::English => format!(
            "You are the judge. The criterion is: {criterion}.{rounds}\n\
             Does it hold now? Answer with a JSON object {{\"converged\": true}} or \
             {{\"converged\": false}}, or with a line `converged` or `not converged`."
        ),
        Language::Chinese => format!(
            "你是裁判。标准是：{criterion}。{rounds}\n\
             现在是否满足？请用 JSON 对象 {{\"converged\": true}} 或 {{\"converged\": false}} 回答，\
             或单独写一行“已收敛”或“未收敛”。"
        ),
    })
}

/// What the lead is asked about a step that failed.
pub(super) fn of_failure(cx: &Scope, agent: &AgentId, attempt: u32, fault: &Fault) -> Prompt {
    let (name, language) = (cx.name(agent), language(cx));
    let error = error(fault, language);
    Prompt::task().say(match language {
        Language::English => format!(
            "The step of {name} ({agent}) failed in attempt {attempt}: {error}.\n\
             Decide what is done: a JSON object {{\"decision\": \"retry\", \"prompt\": \"what to add\"}}, \
             {{\"decision\": \"skip\"}} or {{\"decision\": \"stop\"}}, or one of the words retry, skip, \
             stop on a line of its own."
        ),
        Language::Chinese => format!(
            "{name}（{agent}）的这一步在第 {attempt} 次尝试时失败：{error}。\n\
             请决定如何处理：用 JSON 对象 {{\"decision\": \"retry\", \"prompt\": \"补充的话\"}}、\
             {{\"decision\": \"skip\"}} 或 {{\"decision\": \"stop\"}} 回答，\
             或单独写一行：重试、跳过或停止。"
        ),
    })
}

/// What the lead is asked when the work has come to its end.
pub(super) fn of_closing(cx: &Scope, reason: &str, works: &[Reply]) -> Prompt {
    Prompt::task().quotes(works).say(match language(cx) {
        Language::English => format!(
            "<collaboration_state>\nstatus: ended\n\
             <termination_reason>{reason}</termination_reason>\n</collaboration_state>\n\
             The collaboration has ended. Write the closing answer to the task."
        ),
        Language::Chinese => format!(
            "<collaboration_state>\n状态：已结束（ended）\n\
             <termination_reason>{reason}</termination_reason>\n</collaboration_state>\n\
             协作已经结束。请写出对任务的最终回答。"
        ),
    })
}

/// Words for who is not heard.
pub(super) fn why(fault: &Fault) -> Arc<str> {
    fault.kind().into()
}
