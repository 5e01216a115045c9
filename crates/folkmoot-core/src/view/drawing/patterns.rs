//! The pictures of patterns.

use super::{Drawing, Kind, Way, team::name};
use crate::{
    programs::pattern::{Pattern, Role},
    team::Team,
};

pub(super) fn pattern(drawing: &mut Drawing, team: &Team, it: &Pattern) {
    let shape = it.form.shape();
    let begin = drawing.node(Kind::Outside, ["the task"]);
    let mut before = vec![begin];
    let mut stages: Vec<Vec<usize>> = Vec::new();
    for stage in shape.stages {
        let members: Vec<usize> =
            stage.roles.iter().map(|role| member(drawing, team, it, *role)).collect();
        for from in &before {
            for to in &members {
                drawing.link(*from, *to);
            }
        }
        before.clone_from(&members);
        stages.push(members);
    }
    let last = stages.last().cloned().unwrap_or_default();
    if let Some(again) = shape.again.and_then(|again| stages.get(again)) {
        for from in &last {
            for to in again {
                drawing.labelled(*from, *to, Way::Plain, ["again"]);
            }
        }
    }
    let end = drawing.node(Kind::Outside, ["the answer"]);
    let closing = (shape.stages.iter().zip(&stages))
        .find(|(stage, _)| stage.roles.contains(&shape.closes))
        .map(|(_, members)| members.clone());
    for from in closing.unwrap_or(last) {
        drawing.labelled(from, end, Way::Plain, ["may close it"]);
    }
    drawing.note(format!("at most {} turns", it.max_rounds));
    if let Some(planner) = &it.planner {
        drawing.note(format!("{} says first how it is to be done", name(team, planner)));
    }
    if let Some(judge) = &it.judge {
        drawing.note(format!("{} is asked if a review gives no signal", name(team, judge)));
    }
}

fn member(drawing: &mut Drawing, team: &Team, pattern: &Pattern, role: Role) -> usize {
    let part = pattern.cast.iter().find(|part| part.role == role);
    let agent = part.map_or(role.as_str(), |part| name(team, &part.agent));
    let target = part.map_or("", |part| &part.target);
    drawing.node(Kind::Agent, [agent, target])
}
