//! How a graph ends, and what its answer is (graph.md §§9, 13, 15).

use serde::{Deserialize, Serialize};

use super::{
    Graph, Routing, Structure, prompt,
    termination::Reason,
    tokens::End,
    walk::{Begin, Walk},
};
use crate::{
    call::Reply,
    event::{Ending, Text},
    key::Key,
    scope::{Program, Scope, Step},
    team::{AgentId, Team},
    words::Language,
};

/// What a graph has come to.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Walked {
    how: How,
    /// The work: the answer, if nobody words another.
    pub(super) works: Vec<Key>,
    /// How many steps there were, those of earlier stages included.
    steps: u64,
}

/// How a graph has ended.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum How {
    /// All work came to its end.
    Completed,
    /// A condition held, or the cap was reached.
    Stopped(Reason),
    /// No work came to its end, or whether it has ended cannot be told.
    Failed,
    /// The run was stopped from outside.
    Halted,
}

impl Program for Graph {
    fn run(&self, cx: &Scope) -> Step<Ending> {
        match (self.routing, cx.spec().team.lead()) {
            (Routing::Lead, Some(lead)) => Ok(self.led(cx, lead, &Begin::default())?.0),
            (Routing::Engine | Routing::Lead, _) => close(cx, &self.walk(cx, &Begin::default())?),
        }
    }
}

/// Graphs one after another.
///
/// 1. Each stage is a graph of its own, with its own rounds and clock.
/// 2. The first agents of a later stage see the works of the one before.
/// 3. A stage that fails, or ends at a bound, ends the run, unless it says otherwise.
/// 4. Where the lead routes, each stage is a conversation of its own, and the last one's answer is all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stages {
    /// The stages in order.
    pub stages: Vec<Stage>,
}

/// One graph of several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// Its name.
    pub name: std::sync::Arc<str>,
    /// The graph.
    pub graph: Graph,
    /// Whether the next stage follows though this one ended at a bound.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub goes_on: bool,
}

impl Program for Stages {
    fn run(&self, cx: &Scope) -> Step<Ending> {
        let mut last = Walked { how: How::Completed, works: Vec::new(), steps: 0 };
        for (at, stage) in self.stages.iter().enumerate() {
            let begin = Begin {
                stage: Some(&stage.name),
                steps: last.steps,
                works: std::mem::take(&mut last.works),
            };
            let place = cx.at(&stage.name);
            if let (Routing::Lead, Some(lead)) = (stage.graph.routing, cx.spec().team.lead()) {
                let (ending, walked) = stage.graph.led(&place, lead, &begin)?;
                let goes_on = ending.done || ending.bound && stage.goes_on;
                if !goes_on || at + 1 == self.stages.len() {
                    return Ok(ending);
                }
                last = walked;
                continue;
            }
            last = stage.graph.walk(&place, &begin)?;
            let ends = match &last.how {
                How::Completed => false,
                How::Stopped(reason) => reason.is_bound() && !stage.goes_on,
                How::Failed | How::Halted => true,
            };
            if ends {
                break;
            }
        }
        close(cx, &last)
    }
}

impl Stages {
    /// What the system prompt of an agent tells of its places.
    pub(crate) fn role(&self, team: &Team, agent: &AgentId, language: Language) -> Option<String> {
        let roles = self.stages.iter().filter_map(|it| it.graph.role(team, agent, language));
        let roles: Vec<String> = roles.collect();
        (!roles.is_empty()).then(|| roles.join("\n\n"))
    }
}

impl Graph {
    /// Lets the work move until it has come to its end.
    fn walk(&self, cx: &Scope, begin: &Begin) -> Step<Walked> {
        let structure = Structure::of(&self.edges);
        let mut walk = Walk::new(self, &structure, cx, begin);
        let gone = walk.go();
        walk.tell();
        gone?;
        Ok(walk.walked())
    }
}

impl Walk<'_, '_> {
    /// What it has come to.
    pub(super) fn walked(&self) -> Walked {
        let ended = |how| self.tokens.ended.iter().any(|it| it.how == how);
        let how = if self.halted {
            How::Halted
        } else if self.failed {
            How::Failed
        } else if let Some(stop) = &self.stop {
            How::Stopped(stop.reason.clone())
        } else if self.is_capped() {
            How::Stopped(Reason::MaxIterations)
        } else if ended(End::Normally) {
            How::Completed
        } else {
            How::Failed
        };
        let is_delivered = matches!(how, How::Completed | How::Stopped(_));
        let works = self.tokens.works(|end| !is_delivered || end != End::Failed);
        let named = self.graph.result.as_ref().and_then(|agent| self.history.latest(agent));
        let works = named.filter(|_| is_delivered).map_or(works, |reply| vec![reply.key.clone()]);
        Walked { how, works, steps: self.journal.steps() }
    }
}

impl Walked {
    /// The end of a run with this answer.
    pub(super) fn ending(&self, answer: Text) -> Ending {
        let (reason, is_bound) = match &self.how {
            How::Completed => ("completed", false),
            How::Stopped(reason) => (reason.as_str(), reason.is_bound()),
            How::Failed | How::Halted => return Ending::failed("error", self.works.clone()),
        };
        let ending = if is_bound { Ending::bound } else { Ending::done };
        let ending = ending(reason, Vec::new());
        Ending { answer: Some(answer), ..ending }
    }
}

/// The end of a run: the lead's closing answer where there is a lead, else the works.
fn close(cx: &Scope, walked: &Walked) -> Step<Ending> {
    let is_delivered = matches!(walked.how, How::Completed | How::Stopped(_));
    let mut answer = walked.works.clone();
    if let Some(lead) = cx.spec().team.lead().filter(|_| is_delivered) {
        let replies: Vec<Reply> = answer.iter().filter_map(|key| cx.reply(key)).collect();
        let reason = walked.ending(Text::Replies(Vec::new())).reason;
        let question = prompt::of_closing(cx, &reason, &replies);
        let closing = cx.at("lead").ask("final", &lead.id, question)?;
        if closing.contribution().is_some() {
            answer = vec![closing.key];
        }
    }
    Ok(walked.ending(Text::Replies(answer)))
}
