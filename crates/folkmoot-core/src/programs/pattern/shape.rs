//! The three patterns as data over one program (collaborate.md §5).

use serde::{Deserialize, Serialize};

/// One of the ready-made patterns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// A draft is reviewed and revised until the reviewer has nothing more that blocks.
    Review,
    /// Three look at it from one angle each; one brings that together.
    Consensus,
    /// One speaks for it, one against it; one decides.
    Debate,
}

/// A part that somebody plays in a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Produces the work.
    Implementer,
    /// Finds what is wrong with it, or approves.
    Reviewer,
    /// Changes what was found.
    Reviser,
    /// Looks at the engineering.
    AnalystImpl,
    /// Looks at the design.
    AnalystDesign,
    /// Looks at security and reliability.
    AnalystSecurity,
    /// Brings the analyses together.
    Synthesizer,
    /// Speaks for it.
    Advocate,
    /// Speaks against it.
    Critic,
    /// Decides.
    Arbiter,
}

/// How a pattern goes.
#[derive(Debug)]
pub struct Shape {
    /// Its name.
    pub name: &'static str,
    /// What it is for, in one line.
    pub description: &'static str,
    /// The stages of its first cycle, in order.
    pub stages: &'static [Stage],
    /// The stage with which a further cycle begins, if there are any.
    pub(crate) again: Option<usize>,
    /// Whose replies are the work.
    pub(crate) products: &'static [Role],
    /// Whose word may end it.
    pub(crate) closes: Role,
    /// How many cycles it has unless told otherwise.
    cycles: u64,
    /// The fewest turns that make sense.
    pub least: u64,
}

/// What happens at once.
#[derive(Debug)]
pub struct Stage {
    /// Who speaks, side by side.
    pub roles: &'static [Role],
    /// Whether it is left out where the turns do not suffice for what must follow it.
    pub(crate) may_be_dropped: bool,
}

const fn stage(roles: &'static [Role]) -> Stage {
    Stage { roles, may_be_dropped: false }
}

static REVIEW: Shape = Shape {
    name: "review",
    description: "One works, one reviews, one revises, until nothing blocks any longer.",
    stages: &[stage(&[Role::Implementer]), stage(&[Role::Reviewer]), stage(&[Role::Reviser])],
    again: Some(1),
    products: &[Role::Implementer, Role::Reviser],
    closes: Role::Reviewer,
    cycles: 3,
    least: 1,
};

static CONSENSUS: Shape = Shape {
    name: "consensus",
    description: "Three analyse from one angle each, one brings their views together.",
    stages: &[
        stage(&[Role::AnalystImpl, Role::AnalystDesign, Role::AnalystSecurity]),
        stage(&[Role::Synthesizer]),
    ],
    again: Some(0),
    products: &[Role::Synthesizer],
    closes: Role::Synthesizer,
    cycles: 2,
    least: 4,
};

static DEBATE: Shape = Shape {
    name: "debate",
    description: "One argues for it, one against it, an arbiter rules.",
    stages: &[
        stage(&[Role::Advocate, Role::Critic]),
        Stage { may_be_dropped: true, ..stage(&[Role::Advocate, Role::Critic]) },
        stage(&[Role::Arbiter]),
    ],
    again: None,
    products: &[Role::Arbiter],
    closes: Role::Arbiter,
    cycles: 1,
    least: 3,
};

impl Form {
    /// All there are.
    pub const ALL: [Form; 3] = [Form::Review, Form::Consensus, Form::Debate];

    /// The pattern of this name, exactly.
    pub fn named(name: &str) -> Option<Form> {
        Form::ALL.into_iter().find(|form| form.shape().name == name)
    }

    /// How it goes.
    pub fn shape(self) -> &'static Shape {
        match self {
            Form::Review => &REVIEW,
            Form::Consensus => &CONSENSUS,
            Form::Debate => &DEBATE,
        }
    }

    /// Its roles, each once, in the order in which they first speak.
    pub fn roles(self) -> Vec<Role> {
        let mut roles = Vec::new();
        for role in self.shape().stages.iter().flat_map(|stage| stage.roles) {
            if !roles.contains(role) {
                roles.push(*role);
            }
        }
        roles
    }

    /// How many turns it has unless told otherwise.
    pub fn usual_ceiling(self) -> u64 {
        self.slots() * self.shape().cycles
    }

    /// The turns of one whole cycle.
    pub(crate) fn slots(self) -> u64 {
        self.shape().stages.iter().map(|stage| stage.roles.len() as u64).sum()
    }
}

impl Role {
    /// Its name in records, keys and files.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Implementer => "implementer",
            Role::Reviewer => "reviewer",
            Role::Reviser => "reviser",
            Role::AnalystImpl => "analyst_impl",
            Role::AnalystDesign => "analyst_design",
            Role::AnalystSecurity => "analyst_security",
            Role::Synthesizer => "synthesizer",
            Role::Advocate => "advocate",
            Role::Critic => "critic",
            Role::Arbiter => "arbiter",
        }
    }

    /// The alias that plays it unless another is named.
    pub fn usual_target(self) -> &'static str {
        match self {
            Role::Implementer | Role::Reviser | Role::AnalystImpl | Role::Advocate => "codex",
            Role::Reviewer | Role::AnalystSecurity | Role::Synthesizer | Role::Arbiter => "claude",
            Role::AnalystDesign | Role::Critic => "gemini",
        }
    }

    /// Whether it may use what the sandbox of the run allows; all others only read.
    pub(crate) fn works(self) -> bool {
        matches!(self, Role::Implementer | Role::Reviser)
    }
}
