//! When a graph ends: its conditions and how replies are tested (graph.md §§9, 10).

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Map, Value, json};

use super::Reading;
use crate::{
    check::extensions::{Given, others},
    diagnostic::{Diagnostic, Place, quoted},
    extension::Rule,
    file::{
        graph::MATCHERS,
        item::{Content, Fields, Item},
    },
    programs::graph::{Condition, Group, Matchers, Member, Own, PARENT, Pattern, Test},
    team::AgentId,
    time::Duration,
    verdict::Review,
};

/// The kinds of conditions.
const KINDS: [&str; 5] = ["max_iterations", "timeout_ms", "converged", "result_matches", "stuck"];

impl Reading<'_> {
    /// The termination; nothing if there is none, or an error in it.
    pub(super) fn termination(&mut self) -> Option<Group> {
        let fields = self.given.fields("termination")?;
        if fields.get("any_of").is_none() && fields.get("all_of").is_none() {
            if !fields.is_faulty() {
                let message = "termination needs any_of or all_of".to_owned();
                self.tell("bad_condition", message, &fields.place);
            }
            return None;
        }
        Some(self.group(fields))
    }

    /// Where a judge is asked for, if one is.
    pub(super) fn asks_a_judge(&self) -> Option<Place> {
        let mut rest: Vec<&Fields> = self.given.fields("termination").into_iter().collect();
        while let Some(fields) = rest.pop() {
            if fields.get("converged").is_some() {
                return Some(fields.place_of("converged").clone());
            }
            let members = ["any_of", "all_of"].into_iter().flat_map(|key| fields.list(key));
            rest.extend(members.filter_map(Item::fields));
        }
        None
    }

    fn group(&mut self, fields: &Fields) -> Group {
        let mut members = |key| {
            let item = fields.get(key)?;
            if fields.list(key).is_empty() {
                let message = format!("{key} must not be empty");
                self.tell("bad_condition", message, &item.place);
            }
            let members = fields.list(key).iter().filter_map(Item::fields);
            Some(members.filter_map(|fields| self.member(fields)).collect())
        };
        Group { any_of: members("any_of"), all_of: members("all_of") }
    }

    fn member(&mut self, fields: &Fields) -> Option<Member> {
        let is_there = |key: &&str| fields.get(key).is_some() || fields.is_broken(key);
        let own = fields.others().iter().map(|(name, ..)| &**name);
        let mut kinds: Vec<&str> = KINDS.into_iter().filter(is_there).chain(own).collect();
        let is_group = ["any_of", "all_of"].iter().any(is_there);
        if is_group && kinds.is_empty() {
            return Some(Member::Group(self.group(fields)));
        }
        kinds.extend(["any_of", "all_of"].iter().filter(|key| is_there(key)));
        if kinds.len() != 1 {
            if !(kinds.is_empty() && fields.is_faulty()) {
                let found = if kinds.is_empty() { "none".to_owned() } else { kinds.join(", ") };
                let message = format!("a condition names exactly one kind; found {found}");
                self.tell("bad_condition", message, &fields.place);
            }
            return None;
        }
        let of = fields.get("loop").and_then(|item| self.named("loop", item));
        if fields.get("loop").is_some() && kinds[0] != "max_iterations" {
            let message = "loop stands only beside max_iterations".to_owned();
            self.tell("bad_condition", message, fields.key("loop"));
        }
        let test = match kinds[0] {
            "max_iterations" => {
                let rounds = u32::try_from(fields.whole("max_iterations")?).unwrap_or(u32::MAX);
                Test::MaxIterations { rounds, of }
            }
            "timeout_ms" => Test::Timeout(Duration::from_millis(fields.whole("timeout_ms")?)),
            "converged" => self.converged(fields)?,
            "result_matches" => self.result_matches(fields.fields("result_matches")?)?,
            "stuck" => self.stuck(fields.fields("stuck")?)?,
            name => self.own(name, fields)?,
        };
        Some(Member::One(Condition { test, written: self.written(fields) }))
    }

    fn converged(&mut self, fields: &Fields) -> Option<Test> {
        let criterion = fields.text("converged")?;
        let place = fields.place_of("converged").clone();
        if criterion.trim().is_empty() {
            let message =
                format!("converged must be a criterion in words; got {}", quoted(criterion));
            self.tell("bad_value", message, &place);
            return None;
        }
        let declared_by = self.roster.find(criterion.trim()).map(|agent| agent.id.clone());
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if declared_by.is_none() && criterion.trim().chars().all(is_word) {
            let name = quoted(criterion.trim());
            let message = format!("termination converged references unknown agent {name}");
            let help = self.nearest(criterion.trim());
            self.told.push(Diagnostic::warning("unknown_agent", message).at(&place).help(help));
        }
        Some(Test::Converged { criterion: criterion.clone(), declared_by })
    }

    fn result_matches(&mut self, fields: &Fields) -> Option<Test> {
        let agent = match fields.get("agent") {
            Some(item) if item.text().is_some_and(|name| name.trim() == PARENT) => {
                Some(AgentId::from(PARENT))
            }
            Some(item) => self.named("termination result_matches", item),
            None => {
                if !fields.is_broken("agent") {
                    let message = "result_matches needs an agent".to_owned();
                    self.tell("bad_condition", message, &fields.place);
                }
                None
            }
        };
        let matchers = self.matchers("result_matches", fields);
        Some(Test::Matches { agent: agent?, matchers: matchers? })
    }

    fn stuck(&mut self, fields: &Fields) -> Option<Test> {
        let agent = fields.get("agent").and_then(|item| self.named("stuck", item));
        let Some(repeats) = fields.whole("repeats") else {
            if !fields.is_broken("repeats") {
                let message = "repeats must be a whole number of at least 2; got nothing";
                self.tell("bad_value", message.to_owned(), &fields.place);
            }
            return None;
        };
        Some(Test::Stuck { repeats: u32::try_from(repeats).unwrap_or(u32::MAX), agent })
    }

    /// A condition of the team's own.
    fn own(&mut self, name: &str, fields: &Fields) -> Option<Test> {
        let extensions = self.extensions;
        // One that could not be read has been told of.
        let (name, kind) = extensions.registry.conditions().get_key_value(name)?;
        let (_, place, value) = others(fields).next()?;
        let Value::Object(values) = value else {
            let message = format!("{name} must be a map of parameters; got {value}");
            self.tell("bad_value", message, place);
            return None;
        };
        let needed = match &kind.rule {
            Rule::Expr(expression) => expression.parameters(),
            Rule::Code(_) => BTreeSet::new(),
        };
        let given = Given { of: name, defaults: &kind.params, needed, place };
        let values = values.iter().map(|(key, value)| (key.as_str(), place, value));
        let own = Own {
            name: name.clone(),
            params: given.with(values, self.told)?,
            rule: kind.rule.clone(),
            bound: kind.bound,
            describe: kind.describe.clone(),
        };
        let trials = self.trials.iter();
        self.told.extend(trials.filter_map(|trials| trials.of_condition(&own, place)));
        Some(Test::Own(Box::new(own)))
    }

    /// How a reply is tested, as `what` says.
    pub(super) fn matchers(&mut self, what: &str, fields: &Fields) -> Option<Matchers> {
        let is_there = |key: &str| fields.get(key).is_some() || fields.is_broken(key);
        let tests = MATCHERS.iter().map(|field| field.name).filter(|name| *name != "score_label");
        let tests: Vec<&str> = tests.collect();
        if !tests.iter().any(|key| is_there(key)) {
            if !fields.is_faulty() {
                let message = format!("{what} needs at least one of {}", tests.join(", "));
                self.tell("bad_condition", message, &fields.place);
            }
            return None;
        }
        if fields.text("contains").is_some_and(|text| text.is_empty()) {
            let message = "contains matches every reply".to_owned();
            self.tell("bad_condition", message, fields.place_of("contains"));
        }
        if fields.flag("no_changes") == Some(false) {
            let message = "no_changes must be true; got false".to_owned();
            self.tell("bad_value", message, fields.place_of("no_changes"));
        }
        Some(Matchers {
            contains: fields.text("contains").cloned(),
            regex: fields.get("regex").and_then(|item| self.pattern(item)),
            score_gte: fields.number("score_gte"),
            score_label: fields.text("score_label").cloned(),
            no_changes: fields.flag("no_changes") == Some(true),
            verdict: fields.text("verdict").map(|word| match &**word {
                "approve" => Review::Approve,
                _ => Review::Reject,
            }),
        })
    }

    /// A condition as its author wrote it, agents by their ids.
    fn written(&self, fields: &Fields) -> Value {
        let value = |key: &str, item: &Item| match &item.content {
            Content::Text(name) if matches!(key, "agent" | "loop") => {
                let agent = self.roster.find(name.trim());
                agent.map_or_else(|| json!(name), |agent| json!(agent.id))
            }
            Content::Text(text) => json!(text),
            Content::Flag(flag) => json!(flag),
            Content::Whole(number) => json!(number),
            Content::Number(number) => as_number(*number),
            Content::Fields(fields) => self.written(fields),
            Content::Time(_)
            | Content::Decimal(_)
            | Content::List(_)
            | Content::Variables(_)
            | Content::Named(_)
            | Content::Json(_) => Value::Null,
        };
        let entries = fields.names();
        let entries =
            entries.filter_map(|key| Some((key.to_owned(), value(key, fields.get(key)?))));
        let own = others(fields).map(|(name, _, value)| (name.to_owned(), value.clone()));
        Value::Object(entries.chain(own).collect::<Map<_, _>>())
    }

    fn pattern(&mut self, item: &Item) -> Option<Pattern> {
        let text = item.text()?;
        match Pattern::parse(text) {
            Ok(pattern) if pattern.matches("") => {
                let message = "regex matches every reply".to_owned();
                self.tell("bad_condition", message, &item.place);
                None
            }
            Ok(pattern) => Some(pattern),
            Err(why) => {
                let message = format!("invalid regex {}: {why}", quoted(text));
                self.tell("bad_condition", message, &item.place);
                None
            }
        }
    }
}

fn as_number(number: f64) -> Value {
    if number.fract() == 0.0 { json!(number as i64) } else { json!(number) }
}

/// A termination as a file would say it.
pub(super) fn as_written(group: &Group) -> Value {
    let member = |member: &Member| match member {
        Member::One(condition) => condition.written.clone(),
        Member::Group(group) => as_written(group),
    };
    let list = |members: &Option<Vec<Member>>| {
        members.as_ref().map(|members| members.iter().map(member).collect::<Vec<_>>())
    };
    let lists = [("any_of", list(&group.any_of)), ("all_of", list(&group.all_of))];
    let lists = lists.into_iter().filter_map(|(key, list)| Some((key.to_owned(), json!(list?))));
    Value::Object(lists.collect())
}

/// The words that approve, as people write them to be looked for.
pub(super) fn is_approval(text: &Arc<str>) -> bool {
    use crate::{call::Answer, verdict};
    verdict::REVIEWS.read(&Answer::text(text.clone())) == verdict::Reading::Value(Review::Approve)
}
