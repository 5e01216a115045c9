//! The words in which findings are asked for and shown (convergence.md §1).

use super::blocks::inline;
use crate::{
    call::Prompt,
    findings::{Entry, Ledger},
    programs::language,
    scope::Scope,
    text::shorten,
    verdict::{Reading, Report},
    words::Language,
};

/// How much of one finding is shown, in characters.
const FINDING: usize = 400;

/// How much of all findings is shown, in characters.
pub(crate) const SHOWN: usize = 6000;

/// What who closes a loop is told: the findings so far, and how to report.
pub(super) fn for_reviewer(cx: &Scope, ledger: &Ledger) -> String {
    let language = language(cx);
    let list = list(ledger.entries().iter(), language);
    let known = list.map(|list| {
        let head =
            language.pick("The findings so far, and how they stand:", "目前的问题及其状态：");
        format!("{head}\n{list}\n")
    });
    format!("{}{}", known.unwrap_or_default(), form(language))
}

/// What others of a loop are told: the findings that are open, if there are any.
pub(super) fn for_author(cx: &Scope, ledger: &Ledger) -> Option<String> {
    let language = language(cx);
    let list = list(ledger.open(), language)?;
    let head = language.pick("Open findings of the review:", "评审中尚未解决的问题：");
    Some(format!("{head}\n{list}"))
}

/// What who closes a loop is asked whose report cannot be read.
pub(super) fn once_more(cx: &Scope, prompt: Prompt, reading: &Reading<Report>) -> Prompt {
    let language = language(cx);
    let why = match reading {
        Reading::Unreadable(why) => inline(&why.to_string()),
        Reading::Value(_) | Reading::None | Reading::Ambiguous(_) => {
            language.pick("there is no such object", "没有这样的对象").to_owned()
        }
    };
    let head = match language {
        Language::English => format!("Your findings could not be read: {why}. Report them only."),
        Language::Chinese => format!("没有读到你的评审问题：{why}。请只报告问题。"),
    };
    prompt.say(format!("{head}\n{}", form(language)))
}

/// How findings are reported.
fn form(language: Language) -> &'static str {
    language.pick(
        "Report everything that is wrong with the work as it is now, as a JSON object in the last \
         fenced block of your reply:\n\
         ```json\n\
         {\"findings\": [{\"severity\": \"major\", \"place\": \"where\", \"text\": \"what\"}], \"fixed\": [\"F1\"]}\n\
         ```\n\
         Severities, from high to low: blocking, critical, major, minor, nit. List again, in the same \
         words, what still holds of the findings above; name in \"fixed\" what no longer does. If \
         nothing is wrong, \"findings\" is []. Where you also choose who goes on, \"next\" stands in \
         the same object.",
        "请报告当前工作中的所有问题，写成一个 JSON 对象，放在回复的最后一个代码块里：\n\
         ```json\n\
         {\"findings\": [{\"severity\": \"major\", \"place\": \"位置\", \"text\": \"问题\"}], \"fixed\": [\"F1\"]}\n\
         ```\n\
         严重程度从高到低：blocking、critical、major、minor、nit。上面列出的问题若仍然存在，请用同样的措辞再次列出；\
         已经解决的写进 \"fixed\"。如果没有问题，\"findings\" 写成 []。如果你还要选择交给谁，\"next\" 写在同一个对象里。",
    )
}

/// The findings, one a line, in a frame that none of them can close.
fn list<'a>(entries: impl Iterator<Item = &'a Entry>, language: Language) -> Option<String> {
    let line = |entry: &Entry| {
        let text = shorten(&entry.text, FINDING, language);
        let what = match &*entry.place {
            "" => inline(&text),
            place => format!("{}: {}", inline(&shorten(place, FINDING, language)), inline(&text)),
        };
        format!("- {} ({}, {}) {what}", entry.id(), entry.state.as_str(), entry.severity.as_str())
    };
    // What is open comes first, so that it is what is left when they are too many.
    let (open, fixed): (Vec<&Entry>, Vec<&Entry>) = entries.partition(|it| it.state.is_open());
    let lines: Vec<String> = open.into_iter().chain(fixed).map(line).collect();
    let list = lines.join("\n");
    (!lines.is_empty())
        .then(|| format!("<findings>\n{}\n</findings>", shorten(&list, SHOWN, language)))
}
