//! The roles: what each may do, and what it is told (agents.md §7).

use crate::{
    team::{AgentId, MAX_STEPS},
    words::Language,
};

/// A part in the work of a role team.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Finds out what is there.
    Explorer,
    /// Makes a plan of it.
    Planner,
    /// Carries it out.
    Coder,
    /// Looks at what was done.
    Reviewer,
    /// Does everything, on the fast path.
    General,
}

impl Role {
    /// All of them, in the order in which they speak; the fast path's last.
    pub const ALL: [Role; 5] =
        [Role::Explorer, Role::Planner, Role::Coder, Role::Reviewer, Role::General];

    /// The name by which a team file gives it to an agent.
    pub fn name(self) -> &'static str {
        match self {
            Role::Explorer => "explorer",
            Role::Planner => "planner",
            Role::Coder => "coder",
            Role::Reviewer => "reviewer",
            Role::General => "general",
        }
    }

    /// The role of that name.
    pub fn named(name: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.name() == name)
    }

    /// The agent that has it.
    pub(crate) fn agent(self) -> AgentId {
        self.name().into()
    }

    /// The tools that it may use.
    pub fn grants(self) -> &'static [&'static str] {
        match self {
            Role::Explorer => &["search", "fetch", "file.read"],
            Role::Planner => &["file.read", "search"],
            Role::Coder => &["shell", "file.read", "file.write"],
            Role::Reviewer => &["shell", "file.read"],
            Role::General => &["*"],
        }
    }

    /// How many model calls one turn of it may take.
    pub fn max_steps(self) -> u32 {
        match self {
            Role::Explorer | Role::Reviewer => 10,
            Role::Planner => 8,
            Role::Coder | Role::General => MAX_STEPS,
        }
    }

    /// Whether it may write as far as the request allows; all others only read.
    pub fn may_write(self) -> bool {
        matches!(self, Role::Coder | Role::General)
    }

    /// What the run's public stream is told when it is done; nothing on the fast path.
    pub(super) fn phase(self) -> Option<&'static str> {
        match self {
            Role::Explorer => Some("exploration_complete"),
            Role::Planner => Some("planning_complete"),
            Role::Coder => Some("coding_complete"),
            Role::Reviewer => Some("review_complete"),
            Role::General => None,
        }
    }

    /// What its system prompt tells: its part in the work, and how to ask a person.
    pub(crate) fn told(self, language: Language) -> String {
        let parts = [self.brief(language), Some(language.pick(ASKING, ASKING_CHINESE))];
        parts.into_iter().flatten().collect::<Vec<_>>().join("\n")
    }

    /// Its part in the work: nothing of who does everything, so that it is the same whether or not a
    /// file names it.
    pub(super) fn brief(self, language: Language) -> Option<&'static str> {
        let (english, chinese) = match self {
            Role::Explorer => (
                "Your role is explorer: find out what is there that matters for the task, and sum it \
                 up. Change nothing.",
                "你的角色是探索者：查明与任务有关的现状并加以概括。不要改动任何东西。",
            ),
            Role::Planner => (
                "Your role is planner: make a plan for the task, step by step, out of what was found. \
                 Change nothing.",
                "你的角色是规划者：根据已查明的情况，为任务制定逐步的计划。不要改动任何东西。",
            ),
            Role::Coder => (
                "Your role is coder: carry the plan out. If a review found issues, mend all of them and \
                 nothing else.",
                "你的角色是编码者：执行计划。如果评审发现了问题，请全部修复，不要做别的改动。",
            ),
            Role::Reviewer => (
                "Your role is reviewer: look at what was done, whether it does what the task asks. \
                 Change nothing.",
                "你的角色是评审者：检查所做的工作是否符合任务要求。不要改动任何东西。",
            ),
            Role::General => return None,
        };
        Some(language.pick(english, chinese))
    }

    /// How its reply is to end.
    pub(super) fn form(self, language: Language) -> &'static str {
        match self {
            Role::Reviewer => language.pick(REVIEW, REVIEW_CHINESE),
            Role::Explorer | Role::Planner | Role::Coder | Role::General => {
                language.pick(HAND_OFF, HAND_OFF_CHINESE)
            }
        }
    }
}

const ASKING: &str = "If you cannot go on without an answer of the user, reply with nothing but one line: \
    NEEDS_INPUT: and your question. That stops the run until it is answered, and so does a question in \
    the JSON object {\"verdict\": \"needs_input\", \"question\": \"…\"}.";

const ASKING_CHINESE: &str = "如果没有用户的答复就无法继续，请只回复一行：NEEDS_INPUT: 和你的问题。运行会停下，\
    直到得到答复；写在 JSON 对象 {\"verdict\": \"needs_input\", \"question\": \"…\"} 中的问题也有同样的作用。";

const HAND_OFF: &str = "When you are done, end with a JSON object in a fenced block; whoever goes on \
    sees nothing else of your work:\n\
    {\"summary\": \"what came of it\", \"artifacts\": [\"each file that matters\"], \"decisions\": \
    [\"…\"], \"errors\": [\"what failed\"]}";

const HAND_OFF_CHINESE: &str = "完成后，请以一个放在代码块中的 JSON 对象结尾；后续角色只能看到它：\n\
    {\"summary\": \"结果概要\", \"artifacts\": [\"每个重要的文件\"], \"decisions\": [\"…\"], \"errors\": \
    [\"失败之处\"]}";

const REVIEW: &str = "When you are done, reply with PASS or ISSUES, as a JSON object in the last fenced \
    block; severity is blocking, critical, major, minor, nit or info:\n\
    {\"verdict\": \"PASS\", \"findings\": [{\"severity\": \"…\", \"text\": \"…\"}], \"summary\": \"what \
    came of it\", \"artifacts\": [], \"decisions\": [], \"errors\": []}";

const REVIEW_CHINESE: &str = "完成后，请回复 PASS 或 ISSUES，写成最后一个代码块中的 JSON 对象；severity 为 \
    blocking、critical、major、minor、nit 或 info：\n\
    {\"verdict\": \"PASS\", \"findings\": [{\"severity\": \"…\", \"text\": \"…\"}], \"summary\": \"结果概要\", \
    \"artifacts\": [], \"decisions\": [], \"errors\": []}";

/// What a reviewer is asked whose reply could not be read.
pub(super) fn once_more(language: Language) -> &'static str {
    language.pick(
        "Your review could not be read. Reply with the one word PASS or ISSUES on a line of its own; \
         after ISSUES list what is wrong.",
        "未能读出你的评审结论。请单独一行只写 PASS 或 ISSUES；若为 ISSUES，请在其后列出问题。",
    )
}

/// What a role is asked whose steps or tokens are used up.
pub(super) fn hand_off_now(language: Language) -> &'static str {
    language.pick(
        "You have used up what you may use, and there are no more tools. Hand off now what you have, \
         and say what is missing.",
        "你的可用额度已用尽，不能再使用工具。请立即交接已有的成果，并说明还缺什么。",
    )
}
