//! Who answered in whose place (agents.md §3).

use crate::{
    call::{Call, Fault},
    diagnostic::quoted,
    key::Key,
    known::Entry,
    run::Run,
    spec::{Spec, Warning},
    team::AgentId,
};

/// The calls that a later target answered in place of one that failed, for each pair of targets of an
/// agent in one warning, in the order of asking.
pub(super) fn warnings(spec: &Spec, run: &Run) -> Vec<Warning> {
    let mut told: Vec<Told> = Vec::new();
    for (key, entry) in run.known().in_order() {
        let Some(rescue) = Told::of(run, key, entry) else { continue };
        let is_same =
            |it: &&mut Told| (it.agent, it.of, it.by) == (rescue.agent, rescue.of, rescue.by);
        if let Some(same) = told.iter_mut().find(is_same) {
            same.more += 1;
        } else {
            told.push(rescue);
        }
    }
    told.iter().map(|it| it.warning(spec)).collect()
}

/// Who answered for whom.
struct Told<'a> {
    agent: &'a AgentId,
    /// The target that failed.
    of: u32,
    /// The target that answered.
    by: u32,
    /// The first call that failed, and how.
    key: &'a str,
    why: &'a Fault,
    /// How many others there were.
    more: u32,
}

impl<'a> Told<'a> {
    /// What there is to tell of a call: something if it was made because another had failed, and was
    /// answered.
    fn of(run: &'a Run, key: &'a Key, entry: &'a Entry) -> Option<Told<'a>> {
        let Call::Agent { agent, target: by, .. } = &entry.call else { return None };
        let key = key.as_str().strip_suffix(&format!("/target-{by}"))?;
        let failed = run.known().get(key).filter(|_| matches!(entry.outcome, Some(Ok(_))))?;
        let Call::Agent { target: of, .. } = &failed.call else { return None };
        Some(Told { agent, of: *of, by: *by, key, why: failed.fault()?, more: 0 })
    }

    fn warning(&self, spec: &Spec) -> Warning {
        let agent = spec.team.agent(self.agent);
        let label = |number: u32| {
            let label = agent.answered_by(number).target.label();
            label.unwrap_or_else(|| format!("target {number}"))
        };
        let (by, of, name) = (label(self.by), label(self.of), quoted(&agent.name));
        let more = match self.more {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        let (key, why) = (self.key, self.why);
        let message = format!("{name}: {by} answered in place of {of} ({key}: {why}{more})");
        Warning { code: "failed_over".into(), message: message.into() }
    }
}
