//! What a run depends on.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{
    call::{Call, Tool},
    file::overrides::Override,
    gate::{Requirement, Workspace},
    known::Known,
    limits::Limits,
    mcp,
    programs::{
        Adaptive, Broadcast, Coded, Consensus, Controller, Debate, Dispatch, Graph, Pattern, Relay,
        Roles, Roundtable, Sequential, Stages, Supervise,
        graph::{self, Group, Own, PARENT, Routing, Test},
        roles::{Budget, Role},
    },
    scope::Program,
    team::{Agent, AgentId, Sandbox, Team},
    tools,
    words::Language,
};

/// Everything a run depends on besides its log: checked, complete, unchangeable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// Who takes part.
    pub team: Team,
    /// The task, as given.
    pub task: Arc<str>,
    /// How the team works on it.
    pub collaboration: Collaboration,
    /// Why `auto` chose this strategy, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto: Option<Choice>,
    /// The run's limits.
    #[serde(default)]
    pub limits: Limits,
    /// Where its tools are used, its gates looked at and its controller runs, if it has any that need a
    /// place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<Workspace>,
    /// What the checks warned of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// What it was made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipe: Option<Recipe>,
    /// Whether its agents get mail.
    #[serde(default, skip_serializing_if = "Mail::is_unknown")]
    pub mail: Mail,
}

/// Whether the agents of a run get mail (messaging.md §2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mail {
    /// The run is older than mail in runs is: it has neither that nor the tools of mail and boards.
    #[default]
    Unknown,
    /// They do.
    On,
    /// They do not; their tools they have.
    Off,
}

impl Mail {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
    fn is_unknown(&self) -> bool {
        *self == Mail::Unknown
    }
}

/// What a spec was made from, so that it can be made again with something changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recipe {
    /// The team.
    pub team: TeamSource,
    /// What the team is called if it does not say.
    pub name: Arc<str>,
    /// Where its file stood, if it came from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<Arc<str>>,
    /// What won over it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<Override>,
    /// The files it named, as they were then.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
}

/// Where a team came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TeamSource {
    /// A team file, its text.
    File(Arc<str>),
    /// Names of agents with the default model.
    Names(Vec<String>),
    /// Names of offline agents.
    DemoNames(Vec<String>),
    /// The built-in offline team.
    Demo,
    /// A team file that is not kept, since it gives these variables of its agents values, which stand
    /// in no log (agents.md §4).
    Withheld(BTreeMap<AgentId, Vec<Arc<str>>>),
}

impl Spec {
    /// The program that the run follows.
    pub fn program(&self) -> &dyn Program {
        match &self.collaboration {
            Collaboration::Broadcast(it) => it,
            Collaboration::Sequential(it) => it,
            Collaboration::Debate(it) => it,
            Collaboration::Supervisor(it) => it,
            Collaboration::Consensus(it) => it,
            Collaboration::Relay(it) => it,
            Collaboration::Adaptive(it) => it,
            Collaboration::Graph(it) => it,
            Collaboration::Stages(it) => it,
            Collaboration::Dispatch(it) => it,
            Collaboration::Roles(it) => it,
            Collaboration::Controller(it) => it,
            Collaboration::Coded(it) => it,
            Collaboration::Pattern(it) => it,
            Collaboration::Roundtable(it) => it,
        }
    }

    /// The tools that an agent is offered in each of its requests, as far as its servers are known.
    pub fn tools(&self, agent: &AgentId, known: &Known) -> Vec<Tool> {
        let (own, id) = self.of(agent);
        let leads = id.as_str() == PARENT && own.collaboration.is_led();
        let language = Language::of(&self.task);
        if leads {
            graph::tools(language)
        } else {
            let team = agent.team();
            let agent = self.team.agent(agent);
            let mut tools = tools::offered_to(agent, language);
            if self.mail == Mail::Unknown {
                tools.retain(|tool| !tools::is_of_service(&tool.name));
            }
            tools.extend(mcp::offered_to(agent, team, known));
            tools
        }
    }

    /// Whether the files of the workspace are saved before this call: it is a request to an agent that
    /// may change them, or such a change (agents.md §10).
    pub fn saves_before(&self, call: &Call) -> bool {
        // Nobody knows what the tools of a server do.
        let may_write = |agent| {
            let agent = self.team.agent(agent);
            let mut servers = agent.grants.iter().filter_map(|grant| mcp::granted_server(grant));
            agent.may_write() || agent.sandbox > Sandbox::ReadOnly && servers.next().is_some()
        };
        match call {
            Call::Agent { agent, .. } => may_write(agent),
            Call::Tool { agent, .. } => may_write(agent) && self.changes_files(call),
            Call::Team { .. }
            | Call::Person { .. }
            | Call::Gate { .. }
            | Call::Exchange { .. }
            | Call::Listing { .. } => false,
        }
    }

    /// Whether this call itself may change files: it uses a tool that does more than look, or is a
    /// request to a program. A model changes nothing but by its tools.
    pub(crate) fn changes_files(&self, call: &Call) -> bool {
        match call {
            Call::Agent { agent, target, .. } => {
                let agent = self.team.agent(agent).answered_by(*target);
                agent.may_write() && agent.target.coding_agent().is_some()
            }
            Call::Tool { request, .. } => !tools::only_looks(&request.name),
            Call::Team { .. }
            | Call::Person { .. }
            | Call::Gate { .. }
            | Call::Exchange { .. }
            | Call::Listing { .. } => false,
        }
    }

    /// The spec of the team that an agent belongs to, and what it is called there.
    pub(crate) fn of<'s, 'i>(&'s self, agent: &'i AgentId) -> (&'s Spec, Cow<'i, AgentId>) {
        let inner = agent.as_str().split_once('/').and_then(|(member, id)| {
            let nested = self.team.agent(&member.into()).team()?;
            Some((nested, AgentId::from(id)))
        });
        let Some((nested, id)) = inner else { return (self, Cow::Borrowed(agent)) };
        let (spec, id) = nested.spec.of(&id);
        (spec, Cow::Owned(id.into_owned()))
    }

    /// What keeps it from being followed, if anything does: checks let no such spec through, but a log
    /// may hold one.
    pub fn flaw(&self) -> Option<String> {
        let mut teams = self.team.everyone().filter_map(Agent::team);
        if let Some(flaw) = teams.find_map(|nested| nested.spec.flaw()) {
            return Some(flaw);
        }
        let lists = self.collaboration.agents();
        if lists.iter().any(Vec::is_empty) {
            return Some("nobody takes part".to_owned());
        }
        if let Some(absent) = self.collaboration.own_conditions().find(|own| own.rule.is_absent()) {
            return Some(format!("the code of condition \"{}\" is not here", absent.name));
        }
        if let Collaboration::Roles(_) = &self.collaboration {
            let absent = Role::ALL.into_iter().find(|role| !self.team.has(&role.agent()))?;
            return Some(format!("nobody is the {}", absent.name()));
        }
        if let Collaboration::Coded(Coded { name, program: None }) = &self.collaboration {
            return Some(format!("the code of program \"{name}\" is not here"));
        }
        let foreign = lists.concat().into_iter().find(|agent| !self.team.has(agent));
        foreign.map(|agent| format!("there is no agent \"{agent}\""))
    }
}

/// Something that a person should know and that stops nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// What kind, in one word.
    pub code: Arc<str>,
    /// What it is about.
    pub message: Arc<str>,
}

/// How a team works on a task: the closed set of programs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Collaboration {
    /// Independent views.
    Broadcast(Broadcast),
    /// One after the other.
    Sequential(Sequential),
    /// Opposition, then a judge.
    Debate(Debate),
    /// A plan, its parts, a report.
    Supervisor(Supervise),
    /// Proposals and votes.
    Consensus(Consensus),
    /// A draft from hand to hand.
    Relay(Relay),
    /// Chosen by the first answers.
    Adaptive(Adaptive),
    /// Handed along a graph.
    Graph(Graph),
    /// Along several, one after another.
    Stages(Stages),
    /// By a lead, as it sees fit.
    Dispatch(Dispatch),
    /// By roles, one after the other.
    Roles(Roles),
    /// As a process of the team's own says.
    Controller(Controller),
    /// As code of the caller's own says.
    Coded(Coded),
    /// By a ready-made pattern of roles.
    Pattern(Pattern),
    /// By what each leaves on a board.
    Roundtable(Roundtable),
}

impl Collaboration {
    /// The name of the strategy; of an adaptive one the name of where it begins.
    pub fn name(&self) -> &'static str {
        match self {
            Collaboration::Broadcast(_) => "broadcast",
            Collaboration::Sequential(_) => "sequential",
            Collaboration::Debate(_) | Collaboration::Adaptive(Adaptive::Debate(_)) => "debate",
            Collaboration::Supervisor(_) | Collaboration::Adaptive(Adaptive::Supervise(_)) => {
                "supervisor"
            }
            Collaboration::Consensus(_) => "consensus",
            Collaboration::Relay(_) => "relay",
            Collaboration::Graph(_) | Collaboration::Stages(_) => "graph",
            Collaboration::Dispatch(_) => "dispatch",
            Collaboration::Roles(_) => "roles",
            Collaboration::Controller(_) => "controller",
            Collaboration::Coded(_) => "program",
            Collaboration::Pattern(it) => it.form.shape().name,
            Collaboration::Roundtable(_) => "roundtable",
        }
    }

    /// What the system prompt of an agent tells of its place in the team's work.
    pub(crate) fn role(&self, team: &Team, agent: &AgentId, language: Language) -> Option<String> {
        match self {
            Collaboration::Graph(graph) => graph.role(team, agent, language),
            Collaboration::Stages(stages) => stages.role(team, agent, language),
            Collaboration::Pattern(pattern) => pattern.role(team, agent, language),
            Collaboration::Roles(_) => Role::named(agent.as_str()).map(|role| role.told(language)),
            Collaboration::Broadcast(_)
            | Collaboration::Sequential(_)
            | Collaboration::Debate(_)
            | Collaboration::Supervisor(_)
            | Collaboration::Consensus(_)
            | Collaboration::Relay(_)
            | Collaboration::Adaptive(_)
            | Collaboration::Dispatch(_)
            | Collaboration::Controller(_)
            | Collaboration::Coded(_)
            | Collaboration::Roundtable(_) => None,
        }
    }

    /// The tokens of a budget that its calls pay from, if it has one of its own.
    pub(crate) fn soft_tokens(&self) -> Option<u64> {
        let Collaboration::Roles(roles) = self else { return None };
        roles.budget.as_ref().map(Budget::total)
    }

    /// How many entries its board takes.
    pub(crate) fn max_posts(&self) -> u64 {
        if let Collaboration::Roundtable(it) = self { it.max_posts } else { u64::MAX }
    }

    /// Whether its program tells a public stream of what happens.
    pub(crate) fn tells_public(&self) -> bool {
        matches!(self, Collaboration::Roles(_))
    }

    /// The graphs that the work moves along, one after another, with the names of their stages.
    pub fn graphs(&self) -> Vec<(Option<&str>, &Graph)> {
        match self {
            Collaboration::Graph(graph) => vec![(None, graph)],
            Collaboration::Stages(it) => {
                it.stages.iter().map(|stage| (Some(&*stage.name), &stage.graph)).collect()
            }
            Collaboration::Broadcast(_)
            | Collaboration::Sequential(_)
            | Collaboration::Debate(_)
            | Collaboration::Supervisor(_)
            | Collaboration::Consensus(_)
            | Collaboration::Relay(_)
            | Collaboration::Adaptive(_)
            | Collaboration::Dispatch(_)
            | Collaboration::Roles(_)
            | Collaboration::Controller(_)
            | Collaboration::Coded(_)
            | Collaboration::Pattern(_)
            | Collaboration::Roundtable(_) => Vec::new(),
        }
    }

    /// Whether a lead hands out the work.
    pub(crate) fn is_led(&self) -> bool {
        let is_led = |(_, graph): &(_, &Graph)| graph.routing == Routing::Lead;
        matches!(self, Collaboration::Dispatch(_)) || self.graphs().iter().any(is_led)
    }

    /// What its edges require.
    pub fn requirements(&self) -> Vec<&Requirement> {
        let edges = self.graphs().into_iter().flat_map(|(_, graph)| &graph.edges);
        edges.filter_map(|edge| edge.requires.as_ref()).flat_map(|it| &it.all).collect()
    }

    /// The conditions of the team's own.
    pub(crate) fn own_conditions(&self) -> impl Iterator<Item = &Own> {
        let groups = self.graphs().into_iter().filter_map(|(_, graph)| graph.termination.as_ref());
        groups.flat_map(Group::conditions).filter_map(|condition| {
            let Test::Own(own) = &condition.test else { return None };
            Some(&**own)
        })
    }

    /// The same, to give them their code.
    pub(crate) fn own_conditions_mut(&mut self) -> Vec<&mut Own> {
        let graphs: Vec<&mut Graph> = match self {
            Collaboration::Graph(graph) => vec![graph],
            Collaboration::Stages(it) => it.stages.iter_mut().map(|it| &mut it.graph).collect(),
            Collaboration::Broadcast(_)
            | Collaboration::Sequential(_)
            | Collaboration::Debate(_)
            | Collaboration::Supervisor(_)
            | Collaboration::Consensus(_)
            | Collaboration::Relay(_)
            | Collaboration::Adaptive(_)
            | Collaboration::Dispatch(_)
            | Collaboration::Roles(_)
            | Collaboration::Controller(_)
            | Collaboration::Coded(_)
            | Collaboration::Pattern(_)
            | Collaboration::Roundtable(_) => Vec::new(),
        };
        graphs.into_iter().flat_map(Graph::own_conditions_mut).collect()
    }

    /// What the author of the condition that is called `reason` says of it.
    pub(crate) fn described(&self, reason: &str) -> Option<Arc<str>> {
        self.own_conditions().find(|own| &*own.name == reason)?.describe.clone()
    }

    /// The agents that it names, by the parts that they play; each part is somebody's.
    fn agents(&self) -> Vec<Vec<&AgentId>> {
        let all = |agents| Vec::from_iter(agents as &Vec<AgentId>);
        match self {
            Collaboration::Broadcast(it) => vec![all(&it.agents)],
            Collaboration::Sequential(it) => vec![all(&it.order)],
            Collaboration::Relay(it) => vec![all(&it.order)],
            Collaboration::Consensus(it) => vec![all(&it.agents), vec![&it.judge]],
            Collaboration::Debate(it) | Collaboration::Adaptive(Adaptive::Debate(it)) => {
                vec![all(&it.agents), vec![&it.judge]]
            }
            Collaboration::Supervisor(it) | Collaboration::Adaptive(Adaptive::Supervise(it)) => {
                vec![all(&it.workers), vec![&it.supervisor]]
            }
            Collaboration::Graph(_) | Collaboration::Stages(_) => {
                self.graphs().into_iter().map(|(_, graph)| graph.agents()).collect()
            }
            Collaboration::Dispatch(it) => vec![all(&it.agents)],
            Collaboration::Controller(it) => vec![all(&it.agents)],
            // The agents of roles have their names; what code asks is not known before.
            Collaboration::Roles(_) | Collaboration::Coded(_) => Vec::new(),
            Collaboration::Pattern(it) => it.agents(),
            Collaboration::Roundtable(it) => {
                let scribe = it.scribe.iter().map(|scribe| vec![scribe]);
                [all(&it.agents)].into_iter().chain(scribe).collect()
            }
        }
    }
}

/// What `auto` chose, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// `seed` or `adaptive`.
    pub rule: Arc<str>,
    /// The strategy.
    pub chose: Arc<str>,
    /// The reason in words.
    pub because: Arc<str>,
}
