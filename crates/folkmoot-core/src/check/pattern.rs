//! From the parameters of a pattern to its program with every role cast (collaborate.md §5).

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::Value;

use super::{
    Input, names,
    team::{BACK_ENDS, Builder, Chain, Named, alone, unset},
};
use crate::{
    diagnostic::{Diagnostic, Place, quoted},
    file::{
        collaboration::PATTERNS,
        item::{Content, Fields},
        models::{Resolved, Unresolved},
    },
    names as naming,
    programs::pattern::{Form, Part, Pattern, Role, USUAL_TIMEOUT},
    team::{Agent, AgentId, Sandbox, Target},
};

/// The name of the agent that judges a review.
const JUDGE: &str = "judge";

/// The name of the agent that plans, where `planner` asks for one.
const PLANNER: &str = "planner";

/// The roles of a pattern with who plays them.
pub(super) struct Cast {
    pub(super) agents: Vec<Agent>,
    /// The planner and the judge, if there are any.
    pub(super) staff: Vec<Agent>,
    /// The pattern itself, if nothing about it is wrong.
    pub(super) pattern: Option<Pattern>,
}

/// Whether a file asks for a pattern, and no flag for a strategy in its place.
pub(super) fn is_asked_for(file: &Fields) -> bool {
    let Some(given) = file.fields("collaboration") else { return false };
    let strategy = given.get("strategy");
    let is_flag = strategy.is_some_and(|item| item.place.span.is_none());
    given.get("pattern").is_some() && !is_flag
}

/// Fills in the pattern that `given` asks for; tells everything that keeps it from running.
pub(super) fn resolve(
    file: &Fields,
    given: &Fields,
    input: &Input<'_>,
    told: &mut Vec<Diagnostic>,
) -> Option<Cast> {
    let form = form(given, told)?;
    other_shapes(given, told);
    let literal = given.get("signals").is_some();
    let max_rounds = given.whole("max_rounds").unwrap_or_default();
    let max_rounds = if max_rounds == 0 { form.usual_ceiling() } else { max_rounds };
    let place = given.place_of("max_rounds");
    told.extend(too_few(form, literal, max_rounds).map(|few| few.at(place)));
    let providers = providers(given, form, told);
    let mut casting = Casting { form, file, given, input, providers, told };
    let (agents, parts) = casting.roles();
    let planner = casting.planner();
    let judge = casting.judge(&parts);
    let pattern = Pattern {
        form,
        cast: parts,
        max_rounds,
        timeout: given.time("timeout").unwrap_or(Some(USUAL_TIMEOUT)),
        planner: planner.as_ref().map(|planner| planner.id.clone()),
        judge: judge.as_ref().map(|judge| judge.id.clone()),
        literal,
    };
    let is_whole = !given.is_faulty();
    Some(Cast {
        agents,
        staff: planner.into_iter().chain(judge).collect(),
        pattern: Some(pattern).filter(|_| is_whole),
    })
}

fn form(given: &Fields, told: &mut Vec<Diagnostic>) -> Option<Form> {
    let item = given.get("pattern")?;
    let name = item.text()?;
    let form = Form::named(name);
    if form.is_none() {
        told.push(unknown_pattern(name).at(&item.place));
    }
    form
}

/// That there is no such pattern.
pub(crate) fn unknown_pattern(name: &str) -> Diagnostic {
    let message = format!("Unknown pattern {}; known: {}", quoted(name), PATTERNS.join(", "));
    let help = naming::suggestion(name, PATTERNS.iter().copied());
    Diagnostic::error("unknown_pattern", message).help(help)
}

/// That a pattern cannot do anything with so few turns, if that is so.
pub(crate) fn too_few(form: Form, literal: bool, max_rounds: u64) -> Option<Diagnostic> {
    let shape = form.shape();
    let least = if literal { 1 } else { shape.least };
    (max_rounds < least).then(|| {
        let name = shape.name;
        let message = format!("{name} needs at least {least} turns; max_rounds is {max_rounds}");
        let help = format!("0 is its usual number, {}", form.usual_ceiling());
        Diagnostic::error("max_rounds_too_small", message).help(help)
    })
}

/// That a pattern has no such role.
pub(crate) fn unknown_role(form: Form, name: &str) -> Diagnostic {
    let roles: Vec<&str> = form.roles().into_iter().map(Role::as_str).collect();
    let (pattern, role) = (form.shape().name, quoted(name));
    let message = format!("{pattern} has no role {role}; its roles: {}", roles.join(", "));
    Diagnostic::error("unknown_role", message).help(naming::suggestion(name, roles))
}

/// That providers are not what they must be.
pub(crate) fn no_providers() -> Diagnostic {
    let message = "providers must be an object of roles and targets, both texts, each role once";
    let help = r#"for example {"reviewer": "gemini"}"#.to_owned();
    Diagnostic::error("invalid_providers_json", message).help(help)
}

/// The targets by role, if `value` is an object of texts with each role once, or a text that is one.
pub(crate) fn targets(value: &Value) -> Option<BTreeMap<String, String>> {
    let Targets(given) = match value {
        Value::String(text) => serde_json::from_str(text).ok()?,
        _ => Targets::deserialize(value).ok()?,
    };
    let targets: BTreeMap<String, String> =
        given.iter().map(|(role, target)| (role.clone(), target.trim().to_owned())).collect();
    let is_sound = targets.len() == given.len() && targets.values().all(|it| !it.is_empty());
    is_sound.then_some(targets)
}

/// The fields of an object of texts in their order, also those that are there twice.
struct Targets(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Targets {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Targets, D::Error> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = Targets;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of texts")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Targets, A::Error> {
                let mut given = Vec::new();
                while let Some(field) = map.next_entry()? {
                    given.push(field);
                }
                Ok(Targets(given))
            }
        }

        from.deserialize_map(Fields)
    }
}

/// A collaboration has one shape at most.
fn other_shapes(given: &Fields, told: &mut Vec<Diagnostic>) {
    let others = given.names().filter(|name| {
        !["pattern", "providers", "max_rounds", "timeout", "planner", "judge", "signals"]
            .contains(name)
    });
    let found: Vec<Diagnostic> = others
        .map(|name| match name {
            "strategy" | "topology" | "flow" | "stages" | "program" => {
                let message = format!("pattern and {name} are given; a team works in one way");
                Diagnostic::error("two_shapes", message).at(given.key(name))
            }
            _ => {
                let message = format!("{name} has no effect in a pattern");
                Diagnostic::warning("ignored_parameter", message).at(given.key(name))
            }
        })
        .collect();
    told.extend(found);
}

fn providers(given: &Fields, form: Form, told: &mut Vec<Diagnostic>) -> BTreeMap<String, String> {
    let Some(item) = given.get("providers") else { return BTreeMap::new() };
    let Content::Json(value) = &item.content else { return BTreeMap::new() };
    let Some(targets) = targets(value) else {
        told.push(no_providers().at(&item.place));
        return BTreeMap::new();
    };
    let is_role = |name: &str| form.roles().iter().any(|role| role.as_str() == name);
    let unknown = targets.keys().filter(|name| !is_role(name));
    told.extend(unknown.map(|name| unknown_role(form, name).at(&item.place)));
    targets
}

/// Casts the roles.
struct Casting<'a> {
    form: Form,
    file: &'a Fields,
    given: &'a Fields,
    input: &'a Input<'a>,
    providers: BTreeMap<String, String>,
    told: &'a mut Vec<Diagnostic>,
}

impl<'a> Casting<'a> {
    /// Everybody who plays a role, and what was asked to answer for it.
    fn roles(&mut self) -> (Vec<Agent>, Vec<Part>) {
        let own: Vec<Named<'a>> = self.file.list("agents").iter().filter_map(Named::of).collect();
        names::check(&own, self.told);
        let roles = self.form.roles();
        let plays =
            |agent: &Named<'_>, name: &str| &**agent.name == name || agent.id().as_str() == name;
        for agent in &own {
            let planner = self.given.get(PLANNER).map(|_| PLANNER);
            let known = roles.iter().map(|role| role.as_str()).chain([JUDGE]).chain(planner);
            if !known.clone().any(|name| plays(agent, name)) {
                let place = agent.fields.key("name");
                self.told.push(unknown_role(self.form, agent.name).at(place));
            }
        }
        let nothing = Fields::none(self.file.place.clone());
        let (mut agents, mut parts) = (Vec::new(), Vec::new());
        for role in roles {
            let name = role.as_str().into();
            let absent = Named { name: &name, fields: &nothing };
            let agent = own.iter().find(|agent| plays(agent, role.as_str())).unwrap_or(&absent);
            let given = self.providers.get(role.as_str()).cloned();
            let (chain, target) = self.target(agent, given, role.usual_target());
            let mut made = self.builder().agent_with(agent, chain);
            made.sandbox = if role.works() { made.sandbox } else { Sandbox::ReadOnly };
            parts.push(Part { role, agent: made.id.clone(), target: target.into() });
            let (one, made_one) = (std::slice::from_ref(agent), std::slice::from_mut(&mut made));
            self.builder().check_costs(one, made_one);
            self.builder().check_unbounded(one, made_one);
            agents.push(made);
        }
        (agents, parts)
    }

    fn builder(&mut self) -> Builder<'_> {
        Builder { file: self.file, input: self.input, told: self.told }
    }

    /// What answers for a role, and its name as it is written: what the caller gave, else what the file
    /// says, else the usual one. A script of the file answers in its place and keeps the name.
    fn target(&mut self, agent: &Named<'_>, given: Option<String>, usual: &str) -> (Chain, String) {
        let (fields, own) = (agent.fields, agent.fields.text("model").map(ToString::to_string));
        let has_own = BACK_ENDS.into_iter().filter(|key| *key != "model").any(|key| {
            fields.is_broken(key) || fields.get(key).is_some() && fields.flag(key) != Some(false)
        });
        let place = given.as_ref().map(|_| self.given.place_of("providers").clone());
        let place = place.unwrap_or_else(|| fields.place_of("model").clone());
        if has_own {
            if let Some(given) = &given {
                self.check_known(given, &place);
            }
            let name = given.or(own).unwrap_or_else(|| usual.to_owned());
            let (target, fallbacks) = self.builder().chain(agent);
            let target = match target {
                Target::Script(script) => {
                    Target::Script(crate::team::Script { label: Some((&*name).into()), ..script })
                }
                target @ (Target::Model(_)
                | Target::Cli(_)
                | Target::Acp(_)
                | Target::A2a(_)
                | Target::Team(_)
                | Target::Demo) => target,
            };
            return ((target, fallbacks), name);
        }
        match (given, own) {
            (Some(given), _) => (self.named(&given, &place), given),
            (None, Some(_)) => {
                let chain = self.builder().chain(agent);
                let name = fields.text("model").map(ToString::to_string);
                (chain, name.unwrap_or_default())
            }
            (None, None) if fields.is_broken("model") => (alone(unset()), usual.to_owned()),
            (None, None) => (self.usual(usual), usual.to_owned()),
        }
    }

    /// What a name means that somebody gave; it never falls back.
    fn named(&mut self, name: &str, place: &Place) -> Chain {
        match self.input.catalog.resolve_alias(name) {
            Ok(Resolved { target, fallbacks }) => (target, fallbacks),
            Err(unresolved) => {
                self.told.push(unknown_provider(unresolved).at(place));
                alone(unset())
            }
        }
    }

    fn check_known(&mut self, name: &str, place: &Place) {
        let unresolved = self.input.catalog.resolve_alias(name).err();
        self.told.extend(unresolved.map(|it| unknown_provider(it).at(place)));
    }

    /// What a role's usual alias means, else the model of the team or of the machine.
    fn usual(&mut self, alias: &str) -> Chain {
        let unresolved = match self.input.catalog.resolve_alias(alias) {
            Ok(Resolved { target, fallbacks }) => return (target, fallbacks),
            Err(unresolved) => unresolved,
        };
        let own = self.file.text("model").map(ToString::to_string);
        let stand_in = own.or_else(|| self.input.catalog.default_model.clone());
        let is_unknown = ["unknown_model", "unknown_provider"].contains(&unresolved.code);
        match stand_in.filter(|_| is_unknown && !self.input.catalog.aliases.contains_key(alias)) {
            None => {
                let help = format!(
                    "give [aliases] of the config a target for {alias}, or set default_model"
                );
                self.told.push(unknown_provider(unresolved).help(help));
                alone(unset())
            }
            Some(model) => {
                let message = format!("{alias} is not known here, so {model} stands in for it");
                self.told.push(Diagnostic::warning("role_fallback", message));
                self.named(&model, &Place { span: None, path: "default_model".into() })
            }
        }
    }

    /// Who plans before the roles begin, if `planner` names a target for that: the agent of that name
    /// with it. It only looks.
    fn planner(&mut self) -> Option<Agent> {
        let given = self.given.text(PLANNER).map(ToString::to_string)?;
        let own: Vec<Named<'a>> = self.file.list("agents").iter().filter_map(Named::of).collect();
        let own = own.into_iter().find(|it| &**it.name == PLANNER || it.id().as_str() == PLANNER);
        let (nothing, name) = (Fields::none(self.file.place.clone()), PLANNER.into());
        let agent = own.unwrap_or(Named { name: &name, fields: &nothing });
        let (chain, _) = self.target(&agent, Some(given), "");
        let made = self.builder().agent_with(&agent, chain);
        Some(Agent { id: AgentId(PLANNER.into()), sandbox: Sandbox::ReadOnly, ..made })
    }

    /// Who judges a review, if anybody does: the agent of that name, or what `judge` names. It is
    /// neither who works nor who revises.
    fn judge(&mut self, parts: &[Part]) -> Option<Agent> {
        let own: Vec<Named<'a>> = self.file.list("agents").iter().filter_map(Named::of).collect();
        let own = own.into_iter().find(|it| &**it.name == JUDGE || it.id().as_str() == JUDGE);
        let given = self.given.text("judge").map(ToString::to_string);
        if own.is_none() && given.is_none() {
            return None;
        }
        if self.form != Form::Review {
            if let Some(given) = given {
                self.check_known(&given, &self.given.place_of("judge").clone());
            }
            let message = format!("nobody judges a {}", self.form.shape().name);
            self.told.push(Diagnostic::warning("ignored_parameter", message));
            return None;
        }
        let (nothing, name) = (Fields::none(self.file.place.clone()), JUDGE.into());
        let agent = own.unwrap_or(Named { name: &name, fields: &nothing });
        let is_named = given.is_some() || agent.fields.text("model").is_some();
        let has_judge = given.clone();
        let (chain, target) = self.target(&agent, given, "");
        if is_named {
            self.check_impartial(&target, parts, has_judge.is_some());
        }
        let made = self.builder().agent_with(&agent, chain);
        Some(Agent { id: AgentId(JUDGE.into()), sandbox: Sandbox::ReadOnly, ..made })
    }

    fn check_impartial(&mut self, target: &str, parts: &[Part], is_given: bool) {
        let catalog = self.input.catalog;
        let works = parts.iter().filter(|part| part.role.works());
        let mut same =
            works.filter(|part| catalog.meaning(&part.target) == catalog.meaning(target));
        if let Some(part) = same.next() {
            let message = format!("the judge cannot be the {}: {target}", part.role.as_str());
            let place = if is_given { self.given.place_of("judge") } else { &self.file.place };
            let help = "let another provider or model judge".to_owned();
            self.told.push(Diagnostic::error("invalid_judge", message).at(place).help(help));
        }
    }
}

/// That a name of a target means nothing, or cannot be asked.
fn unknown_provider(unresolved: Unresolved) -> Diagnostic {
    let Unresolved { code, message, help } = unresolved;
    let code = if code == "unknown_model" { "unknown_provider" } else { code };
    Diagnostic::error(code, message).help(help)
}
