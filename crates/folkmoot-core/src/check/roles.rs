//! From what a file says of a role team to one with everything filled in (agents.md §§7, 8).

use std::collections::BTreeMap;

use crate::{
    check::{
        Input, graph,
        programs::PROGRAM,
        team::{self, Named, Needed},
    },
    decimal::Decimal,
    diagnostic::{Diagnostic, quoted},
    file::{collaboration::ROLES, item::Fields},
    names,
    programs::{
        Clocks, Roles,
        roles::{Budget, Path, Role, USUAL_THRESHOLD, Weighing},
    },
    team::{Agent, AgentId, ECONOMY, Fallback, Sandbox, Script, Target},
};

/// The program of this page.
pub(super) const NAME: &str = "roles";

/// What of an agent makes it a role, and what `general` therefore may not have.
const SETTINGS: [&str; 4] = ["grants", "max_steps", "prompt", "prompt_file"];

/// The alias that answers when the budget runs low, unless a model is given.
const ECONOMY_ALIAS: &str = "economy";

/// How many times the tokens of one agent a role team has, unless given.
const USUAL_MULTIPLIER: &str = "1.5";

/// Whether this program is asked for, and no flag asks for a strategy in its place.
pub(super) fn is_asked_for(given: &Fields) -> bool {
    let is_flag = |key: &str| given.get(key).is_some_and(|item| item.place.span.is_none());
    let name = given.text(PROGRAM).map_or("", |name| name.trim());
    name == NAME && (is_flag(PROGRAM) || !is_flag("strategy"))
}

/// Casts the roles of a team.
pub(super) struct Casting<'a> {
    /// The file.
    pub(super) file: &'a Fields,
    /// Its collaboration.
    pub(super) given: &'a Fields,
    /// All that is checked.
    pub(super) input: &'a Input<'a>,
    /// What is wrong with them.
    pub(super) told: &'a mut Vec<Diagnostic>,
}

impl<'a> Casting<'a> {
    /// The agents with each role, made of those that the file has, and the program.
    pub(super) fn cast(&mut self, agents: &[Agent]) -> Option<(Vec<Agent>, Roles)> {
        self.tell_others();
        let mut roles = Roles {
            weighing: self.weighing(),
            budget: self.budget(),
            clocks: self.clocks(),
            ..Roles::usual()
        };
        let needed = roles.agents(self.input.task);
        let mut cast = Vec::new();
        for role in Role::ALL {
            let given = agents.iter().find(|agent| agent.id == role.agent());
            let agent = given.map(|it| self.given(role, it.clone(), &mut roles.hand_off_at));
            let needed = if needed.contains(&role) { Needed::Yes } else { Needed::No };
            cast.push(agent.unwrap_or_else(|| self.usual(role, needed)));
        }
        self.check_others();
        if roles.budget.is_some() {
            self.save(&mut cast);
        }
        let is_other = |agent: &&Agent| Role::named(agent.id.as_str()).is_none();
        cast.extend(agents.iter().filter(is_other).cloned());
        Some((cast, roles))
    }

    /// What else is said of how the team works: that is another way of working, or has no effect. A
    /// program that a flag asks for wins over both.
    fn tell_others(&mut self) {
        let is_flag = |key: &str| self.given.get(key).is_some_and(|it| it.place.span.is_none());
        let wins = |key: &str| is_flag(PROGRAM) && !is_flag(key);
        let known = |key: &str| {
            [PROGRAM, "timeout", "call_timeout"].contains(&key)
                || ROLES.iter().any(|field| field.name == key)
        };
        for key in self.given.names().filter(|key| !known(key) && !wins(key)) {
            let told = if key == "strategy" || graph::knows(key) {
                let message = format!("a collaboration is one thing; found program and {key}");
                Diagnostic::error("bad_config", message)
            } else {
                let message = format!("{key} has no effect in {NAME}");
                Diagnostic::warning("ignored_parameter", message)
            };
            self.told.push(told.at(self.given.key(key)));
        }
        let of_budget = ["multiplier", "economy_model"];
        if self.given.get("single_agent_budget").is_some() {
            return;
        }
        for key in of_budget.into_iter().filter(|key| self.given.get(key).is_some()) {
            let message = format!("{key} has no effect without single_agent_budget");
            let told = Diagnostic::warning("ignored_parameter", message);
            self.told.push(told.at(self.given.key(key)));
        }
    }

    fn weighing(&self) -> Weighing {
        let path = self.given.text("path").map(|path| match &**path {
            "single" => Path::Single,
            _ => Path::Roles,
        });
        Weighing {
            threshold: self.given.whole("complexity_threshold").unwrap_or(USUAL_THRESHOLD),
            complexity: self.given.whole("complexity"),
            path,
            intents: self.given.texts("intents"),
            past_steps: self.given.whole("past_steps"),
        }
    }

    fn budget(&self) -> Option<Budget> {
        let single = self.given.whole("single_agent_budget")?;
        let usual = || Decimal::parse(USUAL_MULTIPLIER).expect("it is a decimal number");
        Some(Budget { single, multiplier: self.given.decimal("multiplier").unwrap_or_else(usual) })
    }

    fn clocks(&self) -> Clocks {
        Clocks {
            timeout: self.given.time("timeout").unwrap_or(Clocks::default().timeout),
            call_timeout: self.given.time("call_timeout").flatten(),
        }
    }

    /// What the file says of an agent.
    fn fields(&self, role: Role) -> Option<&'a Fields> {
        let file: &'a Fields = self.file;
        let named = file.list("agents").iter().filter_map(Named::of);
        named.filter(|named| named.id() == role.agent()).map(|named| named.fields).next()
    }

    /// The agent of a role that the file does not have.
    fn usual(&mut self, role: Role, needed: Needed) -> Agent {
        let agent = team::unnamed(role.name(), self.file, self.input, needed, self.told);
        self.as_role(role, agent, None)
    }

    /// An agent that the file has for a role.
    fn given(
        &mut self,
        role: Role,
        mut agent: Agent,
        hand_off_at: &mut BTreeMap<AgentId, u64>,
    ) -> Agent {
        let Some(fields) = self.fields(role) else { return agent };
        if role == Role::General {
            let told = not_allowed(fields);
            self.told.extend(told);
        } else if let Some(tokens) = agent.limits.tokens.take() {
            // It is soft: the role hands off, and is not stopped.
            hand_off_at.insert(agent.id.clone(), tokens);
        }
        self.as_role(role, agent, Some(fields))
    }

    /// The agent with what its role gives it, where the file says nothing else.
    fn as_role(&self, role: Role, mut agent: Agent, fields: Option<&Fields>) -> Agent {
        let is_left = |key: &str| fields.is_none_or(|fields| fields.get(key).is_none());
        if is_left("grants") {
            agent.grants = role.grants().iter().map(|grant| (*grant).into()).collect();
        }
        if is_left("max_steps") {
            agent.max_steps = role.max_steps();
        }
        let ceiling = team::ceiling(self.file);
        agent.sandbox = if role.may_write() { ceiling } else { Sandbox::ReadOnly };
        agent
    }

    /// Agents of other names are roles of the author's own: they must say what they may do, and have no
    /// part in this program.
    fn check_others(&mut self) {
        let named = self.file.list("agents").iter().filter_map(Named::of);
        for named in named.filter(|named| Role::named(named.id().as_str()).is_none()) {
            let name = quoted(named.name);
            let told = if named.fields.list("grants").is_empty() {
                let known = Role::ALL.map(Role::name);
                let help = names::suggestion(named.name, known)
                    .unwrap_or_else(|| format!("the roles are {}", known.join(", ")));
                let message = format!("{name} is no known role: it needs grants of its own");
                Diagnostic::error("role_config_required", message).help(help)
            } else {
                let message = format!("{name} has no part in {NAME}");
                Diagnostic::warning("unused_agent", message)
            };
            self.told.push(told.at(named.fields.place_of("name")));
        }
    }

    /// What answers for each agent when the budget runs low: scripts and the demo go on as they are, a
    /// script under another label.
    fn save(&mut self, cast: &mut [Agent]) {
        let catalog = self.input.catalog;
        let (name, place) = match self.given.get("economy_model") {
            Some(item) => (item.text().cloned().unwrap_or_default(), item.place.clone()),
            None if catalog.aliases.contains_key(ECONOMY_ALIAS) => {
                (ECONOMY_ALIAS.into(), self.given.key(PROGRAM).clone())
            }
            None => return,
        };
        let asks_models = cast.iter().any(|agent| matches!(agent.target, Target::Model(_)));
        let models = if asks_models {
            team::economy(&name, &place, self.file, self.input, self.told)
        } else {
            Vec::new()
        };
        for agent in cast {
            let alone = |target| vec![Fallback { number: ECONOMY, target }];
            agent.economy = match &agent.target {
                Target::Model(_) => models.clone(),
                Target::Script(script) => {
                    alone(Target::Script(Script { label: Some(name.clone()), ..script.clone() }))
                }
                Target::Demo => alone(Target::Demo),
                // No model could do what it does.
                Target::Cli(_) | Target::Acp(_) | Target::A2a(_) | Target::Team(_) => Vec::new(),
            };
        }
    }
}

/// What `general` may not have: it does everything, so that it is the same whether or not a file names it.
fn not_allowed(fields: &Fields) -> Vec<Diagnostic> {
    let tell = |key: &str, at| {
        let message = format!("general has no {key} of its own: it does everything, as it is");
        Diagnostic::error("role_config_not_allowed", message).at(at)
    };
    let settings = SETTINGS.into_iter().filter(|key| fields.get(key).is_some());
    let mut told: Vec<_> = settings.map(|key| tell(key, fields.key(key))).collect();
    let limits = fields.fields("limits").filter(|limits| limits.get("tokens").is_some());
    told.extend(limits.map(|limits| tell("tokens", limits.key("tokens"))));
    told
}
