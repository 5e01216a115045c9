//! What is legal but probably not meant (strategies.md §10).

use std::sync::Arc;

use crate::{
    bounds::Bounds,
    check::team::is_unset,
    diagnostic::{Diagnostic, Place, quoted},
    file::item::Fields,
    programs::{Adaptive, Broadcast, Consensus, Debate, Supervise},
    spec::Collaboration,
    team::{AgentId, Target, Team},
};

/// More rounds of a debate gain little.
const ENOUGH_ROUNDS: u32 = 4;

/// More independent answers gain little.
const ENOUGH_AGENTS: usize = 15;

/// What is looked at.
pub(super) struct Lints<'a> {
    /// The file.
    pub(super) file: &'a Fields,
    /// Its collaboration.
    pub(super) given: &'a Fields,
    /// The team.
    pub(super) team: &'a Team,
}

impl Lints<'_> {
    /// All warnings.
    pub(super) fn warnings(&self, work: &Collaboration, bounds: &Bounds) -> Vec<Diagnostic> {
        let mut warnings = match work {
            Collaboration::Broadcast(broadcast) => {
                self.many_agents(broadcast).into_iter().collect()
            }
            Collaboration::Debate(debate) | Collaboration::Adaptive(Adaptive::Debate(debate)) => {
                self.debate(debate)
            }
            Collaboration::Consensus(Consensus { agents, judge, .. }) => self.judged(agents, judge),
            Collaboration::Supervisor(supervise)
            | Collaboration::Adaptive(Adaptive::Supervise(supervise)) => self.supervised(supervise),
            Collaboration::Sequential(_)
            | Collaboration::Relay(_)
            | Collaboration::Graph(_)
            | Collaboration::Stages(_)
            | Collaboration::Dispatch(_)
            | Collaboration::Roles(_)
            | Collaboration::Controller(_)
            | Collaboration::Coded(_)
            | Collaboration::Pattern(_)
            | Collaboration::Roundtable(_) => Vec::new(),
        };
        let by_name = self.given.text("strategy").is_none_or(|it| it.eq_ignore_ascii_case("auto"));
        if by_name && !matches!(work, Collaboration::Supervisor(_)) {
            warnings.extend(self.name_case("supervisor"));
        }
        warnings.extend(self.small_budget(bounds));
        warnings
    }

    fn debate(&self, debate: &Debate) -> Vec<Diagnostic> {
        let mut warnings = self.judged(&debate.agents, &debate.judge);
        if debate.rounds > ENOUGH_ROUNDS {
            let rounds = debate.rounds;
            let message =
                format!("a debate gains little after {ENOUGH_ROUNDS} rounds; it has {rounds}");
            warnings.push(self.warning("many_rounds", message, "rounds"));
        }
        warnings
    }

    fn judged(&self, agents: &[AgentId], judge: &AgentId) -> Vec<Diagnostic> {
        let mut warnings = Vec::new();
        warnings.extend(self.name_case("judge"));
        let first = agents.first().and_then(|agent| self.model(agent));
        let shared =
            |model: &Arc<str>| agents.iter().all(|agent| self.model(agent).as_ref() == Some(model));
        if let Some(model) = first.filter(shared) {
            let message = format!("All participants share model {}", quoted(&model));
            warnings.push(self.warning("one_model", message, "strategy"));
        }
        let model = self.model(judge);
        let others = || agents.iter().filter(|agent| *agent != judge);
        let shared = model.is_some() && others().any(|agent| self.model(agent) == model);
        if agents.contains(judge) && shared {
            let name = quoted(&self.team.agent(judge).name);
            let message = format!("The judge {name} is a participant");
            warnings.push(self.warning("judge_takes_part", message, "judge"));
        }
        warnings
    }

    fn supervised(&self, supervise: &Supervise) -> Vec<Diagnostic> {
        let mut warnings: Vec<_> = self.name_case("supervisor").into_iter().collect();
        let bare = |id: &AgentId| {
            let worker = self.team.agent(id);
            worker.capabilities.is_empty() && worker.description.is_none()
        };
        if supervise.workers.len() > 1 && supervise.workers.iter().all(bare) {
            let message = "no worker has capabilities or a description: tasks go to who has fewest";
            warnings.push(self.warning("no_capabilities", message.into(), "workers"));
        }
        warnings
    }

    fn many_agents(&self, Broadcast { agents, .. }: &Broadcast) -> Option<Diagnostic> {
        let count = agents.len();
        let message =
            format!("a broadcast gains little above {ENOUGH_AGENTS} agents; it has {count}");
        (count > ENOUGH_AGENTS).then(|| self.warning("many_agents", message, "agents"))
    }

    /// A name that is almost the one by which defaults are found.
    fn name_case(&self, role: &str) -> Option<Diagnostic> {
        let almost = |name: &str| name != role && name.to_lowercase() == role;
        let index = self.team.agents.iter().position(|agent| almost(&agent.name))?;
        if self.given.get(role).is_some() {
            return None;
        }
        let name = quoted(&self.team.agents[index].name);
        let message = format!("{name} is not found as the {role}: the name counts case included");
        let help = format!("name it \"{role}\", or say {role}: {name}");
        let agent = self.file.list("agents").get(index).and_then(|item| item.fields());
        let place = agent.map_or(&self.file.place, |agent| agent.place_of("name"));
        Some(Diagnostic::warning("name_case", message).at(place).help(help))
    }

    fn small_budget(&self, bounds: &Bounds) -> Option<Diagnostic> {
        let limits = self.file.fields("limits")?;
        let calls = limits.whole("calls").filter(|calls| *calls < bounds.total.calls.min)?;
        let least = bounds.total.calls.min;
        let message = format!("calls is {calls}, but the work takes at least {least}");
        let warning = Diagnostic::warning("budget_below_minimum", message);
        Some(warning.at(limits.place_of("calls")))
    }

    /// The model that answers for an agent, or that its script stands in for.
    fn model(&self, agent: &AgentId) -> Option<Arc<str>> {
        match &self.team.agent(agent).target {
            Target::Model(model) if is_unset(model) => None,
            Target::Model(model) => Some(model.to_string().into()),
            Target::Script(script) => script.label.clone(),
            target @ (Target::Cli(_) | Target::Acp(_) | Target::A2a(_)) => {
                target.label().map(Into::into)
            }
            Target::Demo | Target::Team(_) => None,
        }
    }

    fn warning(&self, code: &'static str, message: String, parameter: &str) -> Diagnostic {
        Diagnostic::warning(code, message).at(self.place(parameter))
    }

    /// Where a parameter stands, else the strategy, else the collaboration.
    fn place(&self, parameter: &str) -> &Place {
        let given = [parameter, "strategy"].into_iter().find(|name| self.given.get(name).is_some());
        self.given.place_of(given.unwrap_or(parameter))
    }
}
