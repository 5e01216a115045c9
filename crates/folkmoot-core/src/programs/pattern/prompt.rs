//! What each role is told (collaborate.md §7): role and brief in its system prompt; then the task, what
//! people answered, what it needs of what others said, and the form of the reply.

use super::{
    Role,
    course::{Answered, At, Course, Turn},
};
use crate::{
    call::{Part, Prompt},
    programs::quoted,
    scope::Scope,
    words::Language,
};

/// Role and brief.
pub(super) fn brief(role: Role, language: Language) -> String {
    let text = match role {
        Role::Implementer => language.pick(
            "You are the implementer: produce the work that the task asks for, complete and ready to use.",
            "你是实现者：请完成任务所要求的成果，要完整、可以直接使用。",
        ),
        Role::Reviewer => language.pick(
            "You are the reviewer: list what is wrong with the work, each finding with a severity, or \
             accept the work.",
            "你是评审者：请列出成果中的问题，每条注明严重程度；若没有问题，就予以认可。",
        ),
        Role::Reviser => language.pick(
            "You are the reviser: change only what the review found, and give back the whole work.",
            "你是修订者：只修改评审中提出的问题，并给出完整的成果。",
        ),
        Role::AnalystImpl => language.pick(
            "You are an analyst. Your angle is engineering: how to build it, at what effort and risk.",
            "你是分析者，负责工程角度：如何实现，成本与风险如何。",
        ),
        Role::AnalystDesign => language.pick(
            "You are an analyst. Your angle is design and architecture.",
            "你是分析者，负责设计与架构角度。",
        ),
        Role::AnalystSecurity => language.pick(
            "You are an analyst. Your angle is security and reliability.",
            "你是分析者，负责安全与可靠性角度。",
        ),
        Role::Synthesizer => language.pick(
            "You are the synthesizer: bring the analyses together. Say where they agree, where they \
             conflict and how to resolve that, what you recommend, and which risks are left.",
            "你是综合者：请汇总各方分析，说明一致之处、冲突之处及解决办法、你的建议，以及剩余的风险。",
        ),
        Role::Advocate => language.pick(
            "You are the advocate: make the best case for the proposal.",
            "你是正方：请为这项提议作最有力的论证。",
        ),
        Role::Critic => language.pick(
            "You are the critic: make the best case against the proposal.",
            "你是反方：请对这项提议作最有力的反驳。",
        ),
        Role::Arbiter => language.pick(
            "You are the arbiter: weigh the arguments of both sides, then rule.",
            "你是裁决者：请权衡双方的论点，然后作出裁决。",
        ),
    };
    text.to_owned()
}

/// The same of the judge.
pub(super) fn brief_of_judge(language: Language) -> String {
    let text = language.pick(
        "You are the judge of a review: say whether it should go on.",
        "你是评审过程的裁判：请判断评审是否还要继续。",
    );
    text.to_owned()
}

/// The same of the planner.
pub(super) fn brief_of_planner(language: Language) -> String {
    let text = language.pick(
        "You are the planner: say how the task is to be done. You change nothing yourself.",
        "你是规划者：请说明任务应当如何完成。你自己不做任何改动。",
    );
    text.to_owned()
}

/// What every role learns.
fn stopping(language: Language) -> &'static str {
    language.pick(
        "If you cannot go on without an answer of the user, write NEEDS_INPUT: and your question; that \
         stops the run until it is answered. So does an object with the key \"question\".",
        "如果没有用户的答复就无法继续，请写 NEEDS_INPUT: 和你的问题；运行会停下，直到得到答复。\
         带有 \"question\" 键的对象也有同样的作用。",
    )
}

/// The wanted form of the reply; only a role that closes learns the words that do.
fn form(role: Role, language: Language) -> &'static str {
    match role {
        Role::Implementer | Role::Reviser => language.pick(
            "Reply with the work itself.",
            "请直接给出成果本身。",
        ),
        Role::Reviewer => language.pick(
            "Begin each finding with [BLOCKING], [CRITICAL], [MAJOR], [MINOR] or [NIT]; only the first \
             two keep the work from being accepted. If nothing is left to be done, write CONVERGED: and \
             why, as a sentence of its own.",
            "每条问题以 [BLOCKING]、[CRITICAL]、[MAJOR]、[MINOR] 或 [NIT] 开头；只有前两种会阻止成果被接受。\
             如果没有需要再做的事，请单独写一句 CONVERGED: 并说明理由。",
        ),
        Role::AnalystImpl | Role::AnalystDesign | Role::AnalystSecurity => language.pick(
            "Reply with your analysis from your angle.",
            "请从你的角度给出分析。",
        ),
        Role::Synthesizer => language.pick(
            "Begin each sentence about something that stays open with CONFLICT: and name both sides. If \
             nothing stays open, you may write CONVERGED: and why, as a sentence of its own.",
            "凡是仍未解决的分歧，请单独成句，以 CONFLICT: 开头并写明双方意见。\
             如果没有未决之处，可以单独写一句 CONVERGED: 并说明理由。",
        ),
        Role::Advocate => language.pick(
            "Number your arguments A1, A2, …",
            "请将你的论点编号为 A1、A2……",
        ),
        Role::Critic => language.pick(
            "Number your arguments C1, C2, …",
            "请将你的论点编号为 C1、C2……",
        ),
        Role::Arbiter => language.pick(
            "Give your reasons, then rule in a line of its own: Verdict: ADOPT, Verdict: REJECT or \
             Verdict: MODIFY.",
            "请先说明理由，再单独用一行作出裁决：Verdict: ADOPT、Verdict: REJECT 或 Verdict: MODIFY。",
        ),
    }
}

/// What a role is asked in its turn.
pub(super) fn of_turn(cx: &Scope, course: &Course, role: Role, at: &At) -> Prompt {
    let language = cx.language();
    let prompt = answered(course, language, with_plan(course, language, Prompt::task()));
    let prompt = match role {
        Role::Implementer => prompt,
        Role::Reviewer => {
            let earlier: Vec<&Turn> = course.said(Role::Reviewer).collect();
            as_findings(language, with_product(course, language, prompt), earlier)
        }
        Role::Reviser => {
            let latest = course.said(Role::Reviewer).next_back();
            as_findings(language, with_product(course, language, prompt), latest)
        }
        Role::AnalystImpl | Role::AnalystDesign | Role::AnalystSecurity => {
            let label = language.pick("the last synthesis", "上一轮的综合");
            course
                .said(Role::Synthesizer)
                .next_back()
                .into_iter()
                .fold(prompt, |prompt, turn| quote(prompt, turn, label))
        }
        Role::Advocate | Role::Critic if at.index == 0 => prompt,
        Role::Synthesizer | Role::Advocate | Role::Critic => {
            heard(cx, prompt, course.of_stage(0, at.round))
        }
        Role::Arbiter => {
            let openings = heard(cx, prompt, course.of_stage(0, at.round));
            heard(cx, openings, course.of_stage(1, at.round))
        }
    };
    let rebuts = at.index == 1 && matches!(role, Role::Advocate | Role::Critic);
    let prompt = if rebuts { prompt.say(rebuttal(language)) } else { prompt };
    prompt.say(form(role, language)).say(stopping(language))
}

/// All that a role is told of its part, for tests.
#[cfg(test)]
pub(super) fn instructions(role: Role, language: Language) -> String {
    [&*brief(role, language), form(role, language), stopping(language)].join("\n")
}

fn rebuttal(language: Language) -> &'static str {
    language.pick(
        "These were the openings. Answer the other side's arguments, and strengthen your own.",
        "以上是双方的开场陈述。请回应对方的论点，并加强自己的论点。",
    )
}

/// What the planner is asked.
pub(super) fn of_planner(language: Language) -> Prompt {
    Prompt::task().say(language.pick(
        "Look at what is there, then reply with a plan: the steps in order, the files that each touches, \
         and how to tell that it works. Others carry it out.",
        "请先了解现状，然后给出计划：按顺序列出步骤、各步骤涉及的文件，以及如何确认它有效。由他人来执行。",
    ))
}

fn with_plan(course: &Course, language: Language, mut prompt: Prompt) -> Prompt {
    let plan = course.planned.as_ref().filter(|reply| reply.contribution().is_some());
    let label = language.pick("the plan", "计划");
    prompt.parts.extend(plan.map(|reply| Part::handed(reply.key.clone(), Some(label.into()))));
    prompt
}

/// What the judge is asked about a review.
pub(super) fn of_judge(cx: &Scope, course: &Course, review: &Turn) -> Prompt {
    let language = cx.language();
    let prompt = with_product(course, language, answered(course, language, Prompt::task()));
    as_findings(language, prompt, [review]).say(language.pick(
        "The review says neither that the work is accepted nor what keeps it from being so. Begin your \
         reply with one of these words: CONTINUE (revise it), COMPLETE (it is good enough), NEEDS_INPUT \
         (the user must say something first) or FAILED (it leads nowhere). Then say why.",
        "这份评审既没有认可成果，也没有说明不能认可的理由。请以下列词语之一开头：CONTINUE（继续修订）、\
         COMPLETE（已经足够好）、NEEDS_INPUT（需要用户先答复）或 FAILED（没有希望）。然后说明理由。",
    ))
}

/// What a person is asked where the arbiter has not ruled.
pub(super) fn without_ruling(language: Language) -> &'static str {
    language.pick(
        "The arbiter has not ruled. What should decide: ADOPT, REJECT or MODIFY?",
        "裁决者没有作出裁决。应当以什么为准：ADOPT、REJECT 还是 MODIFY？",
    )
}

fn answered(course: &Course, language: Language, prompt: Prompt) -> Prompt {
    course.answers.iter().fold(prompt, |prompt, Answered { question, reply }| {
        let (role, text) = (question.role.as_str(), &question.text);
        let answer = reply.text().map_or("", |text| text);
        prompt.say(match language {
            Language::English => {
                format!(
                    "The {role} asked the user: {text}\nThe user answered, and that holds: {answer}"
                )
            }
            Language::Chinese => format!("{role} 问用户：{text}\n用户的答复，以此为准：{answer}"),
        })
    })
}

fn with_product(course: &Course, language: Language, prompt: Prompt) -> Prompt {
    let label = language.pick("the work as it is", "当前成果");
    course.products().next().into_iter().fold(prompt, |prompt, turn| quote(prompt, turn, label))
}

fn as_findings<'a>(
    language: Language,
    prompt: Prompt,
    reviews: impl IntoIterator<Item = &'a Turn>,
) -> Prompt {
    let label = language.pick("findings", "评审意见");
    reviews.into_iter().fold(prompt, |prompt, turn| quote(prompt, turn, label))
}

fn quote(mut prompt: Prompt, turn: &Turn, label: &str) -> Prompt {
    prompt.parts.push(Part::handed(turn.reply.key.clone(), Some(label.into())));
    prompt
}

/// What the members of a stage said, and who is missing.
fn heard(cx: &Scope, prompt: Prompt, turns: Vec<&Turn>) -> Prompt {
    let replies: Vec<_> = turns.into_iter().map(|turn| &turn.reply).collect();
    quoted(cx, prompt, replies)
}
