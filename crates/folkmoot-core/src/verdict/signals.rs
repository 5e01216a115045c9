//! What the roles of a pattern say in prose about how it is to go on (collaborate.md §8.4).

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::{
    Object, Severity, VERDICTS, Verdict,
    clean::{Sentence, prose, sentences, spoken},
    forms::Closed,
    lines::unlisted,
};
use crate::{call::Answer, text::is_invisible};

/// One of the patterns that are looked for.
macro_rules! pattern {
    ($pattern:expr) => {{
        static PATTERN: LazyLock<Regex> =
            LazyLock::new(|| Regex::new($pattern).expect("the pattern is sound"));
        &*PATTERN
    }};
}

/// What a reply says about how it is to go on. Of several that a role may give, the first here counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Signal {
    /// A person has to say something first.
    NeedsInput,
    /// The work cannot stay as it is.
    Blocking,
    /// Something is still open between those who were heard.
    Conflict,
    /// The work is accepted.
    Approval,
    /// Only lesser findings are left.
    NoBlocking,
    /// A decision.
    Ruling(Ruling),
}

impl Signal {
    /// Its word in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Signal::NeedsInput => "needs_input",
            Signal::Blocking => "blocking",
            Signal::Conflict => "conflict",
            Signal::Approval => "approval",
            Signal::NoBlocking => "no_blocking",
            Signal::Ruling(_) => "ruling",
        }
    }
}

/// What an arbiter decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ruling {
    /// Do it.
    Adopt,
    /// Leave it.
    Reject,
    /// Do it differently.
    Modify,
}

impl Ruling {
    const ALL: [Ruling; 3] = [Ruling::Adopt, Ruling::Reject, Ruling::Modify];

    /// Its word in replies and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Ruling::Adopt => "ADOPT",
            Ruling::Reject => "REJECT",
            Ruling::Modify => "MODIFY",
        }
    }

    fn named(word: &str) -> Option<Ruling> {
        Ruling::ALL.into_iter().find(|it| it.as_str().eq_ignore_ascii_case(word))
    }
}

/// All that a reply says about how it is to go on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signals {
    /// The signals, each once, the one that counts before others first.
    pub given: Vec<Signal>,
    /// What is asked of a person, if it says.
    pub question: Option<String>,
    /// What it calls open.
    pub conflicts: Vec<String>,
    /// What it finds, and how bad that is if it says.
    pub findings: Vec<(Option<Severity>, String)>,
    /// Whether it says something in a form that cannot be read; then it gives no signal.
    pub is_unreadable: bool,
}

impl Signals {
    /// Whether it gives `signal`.
    pub fn has(&self, signal: Signal) -> bool {
        self.given.contains(&signal)
    }

    /// The ruling, if there is one.
    pub fn ruling(&self) -> Option<Ruling> {
        self.given.iter().find_map(|signal| match signal {
            Signal::Ruling(ruling) => Some(*ruling),
            Signal::NeedsInput
            | Signal::Blocking
            | Signal::Conflict
            | Signal::Approval
            | Signal::NoBlocking => None,
        })
    }
}

/// Reads the signals of a reply: those of its object if it has one, else those of its sentences.
pub fn signals(answer: &Answer) -> Signals {
    read(answer, in_prose)
}

/// The same by plain keywords: the words count anywhere and in any case, whatever stands around them,
/// and nobody but a person who asked for it wants to be read so (collaborate.md §12).
pub fn literal_signals(answer: &Answer) -> Signals {
    let mut read = read(answer, literally);
    read.given.retain(|signal| *signal != Signal::NoBlocking);
    read
}

fn read(answer: &Answer, words: fn(&str) -> Signals) -> Signals {
    const KEYS: [&str; 4] = ["verdict", "findings", "conflicts", "question"];
    // A run is read again and again, and most replies signal nothing.
    if answer.json.is_none() && !may_signal(&answer.text) {
        return Signals::default();
    }
    let may_be_object = answer.json.is_some() || answer.text.contains(['{', '｛']);
    let object = may_be_object.then(|| Object::before_words(answer, "verdict", &KEYS));
    let mut read = match object.unwrap_or(Ok(None)) {
        Ok(Some(object)) => in_object(&object).unwrap_or_else(unreadable),
        Ok(None) => words(&answer.text),
        Err(_) => unreadable(),
    };
    read.given.sort_unstable();
    read.given.dedup();
    read
}

/// Whether a text holds an object, a word of any signal, or what may hide one.
fn may_signal(text: &str) -> bool {
    let words = pattern!(concat!(
        r"(?i)[{\x{FF5B}]|needs|blocking|critical|conflict|converged|lgtm|approved|issues\s+found",
        r"|发现|阻塞|严重|\[(?:major|minor|nit|info)|adopt|reject|modify",
    ));
    words.is_match(text) || text.chars().any(is_invisible)
}

fn unreadable() -> Signals {
    Signals { is_unreadable: true, ..Signals::default() }
}

/// The signals of an object; nothing if its verdict is none. A blocking finding blocks whatever the
/// verdict says, and lesser ones without a verdict do not.
fn in_object(object: &Object) -> Option<Signals> {
    let findings = object.findings();
    let blocks = findings.iter().flatten().any(|finding| finding.severity.blocks());
    let closed = Closed::new(VERDICTS.words, VERDICTS.labels);
    let verdict = match object.get("verdict") {
        None => None,
        Some(word) => Some(closed.meaning(word.as_str()?).value()?),
    };
    let mut given = Vec::new();
    given.extend(blocks.then_some(Signal::Blocking));
    given.extend(match verdict {
        Some(Verdict::NeedsInput) => Some(Signal::NeedsInput),
        Some(_) if blocks => None,
        Some(Verdict::Approve) => Some(Signal::Approval),
        Some(Verdict::RequestChanges) => Some(Signal::Blocking),
        Some(Verdict::Adopt) => Some(Signal::Ruling(Ruling::Adopt)),
        Some(Verdict::Reject) => Some(Signal::Ruling(Ruling::Reject)),
        Some(Verdict::Modify) => Some(Signal::Ruling(Ruling::Modify)),
        Some(Verdict::NoBlocking) => Some(Signal::NoBlocking),
        None => (findings.is_some() && !blocks).then_some(Signal::NoBlocking),
    });
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let listed = object.get("conflicts").and_then(Value::as_array);
    let conflicts: Vec<String> = listed.into_iter().flatten().map(text).collect();
    given.extend((!conflicts.is_empty()).then_some(Signal::Conflict));
    let question = object.get("question").and_then(Value::as_str).map(str::trim);
    let question = question.filter(|text| !text.is_empty()).map(str::to_owned);
    given.extend(question.is_some().then_some(Signal::NeedsInput));
    let findings = findings.into_iter().flatten().map(|it| (Some(it.severity), it.text));
    Some(Signals { given, question, conflicts, findings: findings.collect(), is_unreadable: false })
}

/// The word that a reply begins with, without what decorates it, and what stands behind.
pub fn first_word(answer: &Answer) -> (String, String) {
    let spoken = spoken(&answer.text);
    let text = spoken.trim_start_matches(|c: char| !c.is_alphanumeric());
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    let rest = text[end..].trim_start_matches(|c: char| !c.is_alphanumeric());
    (text[..end].trim_end_matches('_').to_owned(), rest.trim_end().to_owned())
}

fn in_prose(text: &str) -> Signals {
    let prose = undecorated(&prose(text));
    let said: Vec<Sentence> = sentences(&prose).collect();
    let is_open = !conflicts(&prose).is_empty();
    let mut given = Vec::new();
    given.extend(asks(&prose).then_some(Signal::NeedsInput));
    given.extend(is_open.then_some(Signal::Conflict));
    given.extend(said.iter().any(|it| approves(it.text)).then_some(Signal::Approval));
    given.extend(ruling(&said).map(Signal::Ruling));
    let mut findings = Vec::new();
    if judges(&prose) {
        let rest = without_no_blocking(&prose);
        let blocks = blocks(&rest);
        let none_blocks = rest.len() < prose.len() || !blocks && tag().is_match(&rest);
        given.extend(blocks.then_some(Signal::Blocking));
        given.extend(none_blocks.then_some(Signal::NoBlocking));
        findings = found(text);
    }
    let conflicts = if is_open { conflicts(&undecorated(&spoken(text))) } else { Vec::new() };
    Signals { given, question: question(text), conflicts, findings, is_unreadable: false }
}

/// Whether a text holds a word or tag that says how bad something is.
fn judges(prose: &str) -> bool {
    pattern!(r"(?i)blocking|critical|阻塞|严重|\[(?:major|minor|nit|info)\]").is_match(prose)
}

fn literally(text: &str) -> Signals {
    const APPROVALS: [&str; 7] = [
        "converged",
        "lgtm",
        "approved",
        "no issues found",
        "no remaining issues found",
        "没有发现问题",
        "未发现问题",
    ];
    const BLOCKS: [&str; 5] = ["blocking", "critical", "阻塞问题", "阻塞性问题", "严重问题"];
    let lower = text.to_lowercase();
    let any = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let rulings = Ruling::ALL.into_iter();
    let mut rulings = rulings.filter(|it| lower.contains(&it.as_str().to_lowercase()));
    let ruling = rulings.next().filter(|_| rulings.next().is_none());
    let mut given = Vec::new();
    given.extend(any(&["needs_input"]).then_some(Signal::NeedsInput));
    given.extend(any(&BLOCKS).then_some(Signal::Blocking));
    given.extend(any(&["conflict:"]).then_some(Signal::Conflict));
    given.extend(any(&APPROVALS).then_some(Signal::Approval));
    given.extend(ruling.map(Signal::Ruling));
    Signals { given, question: question(text), findings: found(text), ..Signals::default() }
}

/// `prose` without marks of emphasis, headings, lists and escapes, and without emoji. An underscore
/// inside a word belongs to it.
fn undecorated(prose: &str) -> String {
    let decoration = pattern!(concat!(
        r"[*#~\p{So}\p{Sk}\x{FE00}-\x{FE0F}\x{20E3}]",
        r"|(?-u:\b)_+|_+(?-u:\b)",
    ));
    let prose = prose.replace('\\', "");
    let bare = decoration.replace_all(&prose, "");
    let lines = bare.lines().map(|line| unlisted(line).unwrap_or(line).trim());
    lines.collect::<Vec<_>>().join("\n")
}

/// Whether a person is asked, as the word by itself says anywhere.
fn asks(prose: &str) -> bool {
    pattern!(r"(?:^|[^\p{Latin}\p{N}_])NEEDS_INPUT(?:[^\p{Latin}\p{N}_]|$)").is_match(prose)
}

/// What stands behind the word that asks, up to the end of the paragraph.
fn question(text: &str) -> Option<String> {
    if !text.contains("NEEDS") {
        return None;
    }
    let spoken = spoken(text);
    let (_, behind) = spoken.split_once("NEEDS_INPUT")?;
    let behind = behind.trim_start_matches([':', '：', '*', '_', '`', ' ']);
    let paragraph = behind.split("\n\n").next().unwrap_or_default().trim();
    (!paragraph.is_empty()).then(|| paragraph.to_owned())
}

/// What blocks: a tag, or the word directly before what it is said of.
fn blocking() -> &'static Regex {
    pattern!(concat!(
        r"(?i)\[(?:blocking|critical)\]",
        r"|(?:^|[^\p{Latin}\p{N}_])(?:blocking|critical)\s+",
        r"(?:issue|problem|bug|concern|finding)s?(?:[^\p{Latin}\p{N}_]|$)",
        r"|阻塞问题|阻塞性问题|严重问题",
    ))
}

/// Whether something blocks in what is left without [denials](without_no_blocking). What is called
/// non-blocking does not.
fn blocks(rest: &str) -> bool {
    let harmless = pattern!(r"(?i)(?-u:\b)non[-\s]?(?:blocking|critical)(?-u:\b)");
    blocking().is_match(&harmless.replace_all(rest, ""))
}

/// The tags of findings that do not block.
fn tag() -> &'static Regex {
    pattern!(r"(?i)\[(?:major|minor|nit|info)\]")
}

/// `prose` without what says that nothing blocks.
fn without_no_blocking(prose: &str) -> String {
    let none = pattern!(concat!(
        r"(?i)(?-u:\b)no\s+(?:(?:remaining|more|further)\s+)?(?:blocking|critical)(?-u:\b)",
        r"(?:\s*(?:,|/|or|and|nor)\s*(?:blocking|critical)(?-u:\b))*",
        r"(?:\s+(?:issue|problem|bug|concern|finding)s?(?-u:\b))?",
        r"(?:\s*(?:/|or|nor)\s*(?:blocking|critical)(?:\s+(?:issue|problem|bug|concern|finding)s?)?(?-u:\b))*",
        r"|(?:无|没有|未发现|不存在)\s*(?:任何)?\s*(?:阻塞|严重)(?:性)?(?:的)?(?:问题)?",
        r"(?:\s*(?:或者?|和|及|与|、)\s*(?:阻塞|严重)(?:性)?(?:的)?(?:问题)?)*",
    ));
    none.replace_all(prose, "").into_owned()
}

/// Whether a sentence accepts the work, unmistakably.
fn approves(sentence: &str) -> bool {
    let words = pattern!(concat!(
        r"(?:^|[^\p{Latin}\p{N}_])(CONVERGED|LGTM|APPROVED)(?:[^\p{Latin}\p{N}_]|$)",
        r"|((?i:(?-u:\b)no\s+(?:remaining\s+)?issues\s+found(?-u:\b)))",
        r"|(没有发现问题|未发现问题)",
        r"|^((?i:converged))\s*[:：]",
    ));
    if !words.is_match(sentence) {
        return false;
    }
    if is_question(sentence) || is_conditional(sentence) || takes_back(sentence) {
        return false;
    }
    let places = words.captures_iter(sentence).filter_map(|found| found.iter().flatten().nth(1));
    places.into_iter().any(|word| !is_negated(&sentence[..word.start()]))
}

/// Whether the remark behind the word that leads a sentence says no.
fn takes_back(sentence: &str) -> bool {
    pattern!(r"(?i)^(?:converged|lgtm|approved)\s*[:：]\s*(?:(?:no|not|false)(?-u:\b)|否)")
        .is_match(sentence)
}

fn is_question(sentence: &str) -> bool {
    sentence.contains(['?', '？'])
}

fn is_conditional(sentence: &str) -> bool {
    pattern!(concat!(
        r"(?i)(?-u:\b)(?:once|if|after|when|until|unless|provided|before|but|except)(?-u:\b)",
        r"|如果|只要|除非|之后|但",
    ))
    .is_match(sentence)
}

/// Whether what stands before a word in its sentence denies it.
fn is_negated(before: &str) -> bool {
    pattern!(r"(?i)(?-u:\b)(?:no|not|never|cannot|without)(?-u:\b)|n['’]t(?-u:\b)|不|未|没")
        .is_match(before)
}

/// The ruling: behind the last label; else the word that is or leads a sentence; else the only one in
/// capitals. Two different ones in the same form are none.
fn ruling(said: &[Sentence]) -> Option<Ruling> {
    let is_told = pattern!(r"(?i)adopt|reject|modify");
    let said: Vec<&Sentence> = said.iter().filter(|it| is_told.is_match(it.text)).collect();
    let mut labelled = said.iter().filter_map(|it| {
        let found = pattern!(r"(?i)^verdict\s*[:：]\s*([a-z]+)(.*)$").captures(it.text)?;
        let ruling = Ruling::named(&found[1])?;
        let other = pattern!(r"(?i)^\s*(?:or|and|/|\|)\s*(?:adopt|reject|modify)(?-u:\b)");
        Some((!other.is_match(&found[2])).then_some(ruling))
    });
    if let Some(ruling) = labelled.next_back() {
        return ruling;
    }
    let leading: Vec<Ruling> = said.iter().filter_map(|it| leads(it.text)).collect();
    if !leading.is_empty() {
        return only(leading);
    }
    let word = pattern!(r"(?:^|[^\p{Latin}\p{N}_])(ADOPT|REJECT|MODIFY)(?:[^\p{Latin}\p{N}_]|$)");
    let stated = said.iter().filter(|it| !is_question(it.text)).flat_map(|it| {
        let found = word.captures_iter(it.text).filter_map(|found| found.get(1));
        let free = found.filter(|word| !is_negated(&it.text[..word.start()]));
        free.filter_map(|word| Ruling::named(word.as_str())).collect::<Vec<_>>()
    });
    only(stated.collect())
}

/// The ruling that a sentence is, or that leads it before a punctuation mark.
fn leads(sentence: &str) -> Option<Ruling> {
    let found = pattern!(r"(?i)^(adopt|reject|modify)\s*(?:$|[.,:;!—–(。，：；！（-])");
    let found = found.captures(sentence).filter(|_| !is_question(sentence))?;
    Ruling::named(&found[1])
}

fn only(rulings: Vec<Ruling>) -> Option<Ruling> {
    let mut rulings = rulings.into_iter();
    let first = rulings.next()?;
    rulings.all(|it| it == first).then_some(first)
}

/// What stands behind the word that calls something open.
fn conflicts(prose: &str) -> Vec<String> {
    let open = sentences(prose).filter_map(|it| {
        let behind = it.text.strip_prefix("CONFLICT")?.trim_start();
        Some(behind.strip_prefix([':', '：'])?.trim().to_owned())
    });
    open.collect()
}

/// The lines that tell a finding: those with a tag or a word that blocks.
fn found(text: &str) -> Vec<(Option<Severity>, String)> {
    let spoken = spoken(text);
    let severity = pattern!(r"(?i)\[?(?-u:\b)(blocking|critical|major|minor|nit|info)(?-u:\b)\]?");
    let lines = spoken.lines().map(str::trim).filter_map(|line| {
        let rest = without_no_blocking(line);
        let tells = blocks(&rest) || tag().is_match(&rest);
        let named = severity.captures(&rest).and_then(|it| Severity::parse(&it[1]));
        tells.then(|| (named, unlisted(line).unwrap_or(line).to_owned()))
    });
    lines.collect()
}

#[cfg(test)]
mod tests;
