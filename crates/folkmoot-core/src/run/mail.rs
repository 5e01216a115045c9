//! How mail comes to a call of a run (messaging.md §2).

use super::Run;
use crate::{
    call::{Call, Tokens},
    event::{Event, Reservation},
    key::Key,
    limits,
    mail::Delivery,
    render, scope,
    spec::{Mail, Spec},
    team::FIRST_TARGET,
};

impl Run {
    /// Whether `key`, which is about to begin, is a place where mail comes in: a request to an agent whose
    /// run takes mail. A later target is asked what the first one was, and a call that begins again has its
    /// mail. A fork takes over what came in its origin and is told of nothing else, for that is what it is
    /// compared with; another attempt is the same work gone on with.
    pub fn takes_mail(&self, spec: &Spec, key: &Key) -> bool {
        let is_fork = self.origin.as_ref().is_some_and(|origin| !origin.is_retried());
        let is_first = |call: &Call| matches!(call, Call::Agent { target: FIRST_TARGET, .. });
        let entry = self.known.get(key.as_str()).filter(|entry| entry.is_open());
        spec.mail == Mail::On
            && !is_fork
            && self.known.mail(key).is_empty()
            && entry.is_some_and(|entry| is_first(&entry.call))
    }

    /// The event by which `mail` comes to a call that is about to begin; none if the limits have no room
    /// for a request that is so much longer: then it stays where it is.
    pub fn mailed(&self, spec: &Spec, key: &Key, mail: Vec<Delivery>) -> Option<Event> {
        let entry = self.known.get(key.as_str()).filter(|entry| entry.is_open())?;
        let reserved = match entry.reserved {
            None => None,
            Some(aside) => {
                let grown = self.grown(spec, key, &mail, aside)?;
                let wants = scope::think(spec.program(), spec, &self.known, false).wants;
                let want = wants.iter().find(|want| want.key == *key)?;
                let fits = limits::can_grow(&self.levels(spec, want), aside, grown);
                Some(fits.then_some(grown)?)
            }
        };
        Some(Event::Mailed { key: key.clone(), mail, reserved })
    }

    /// What a call has to set aside with `mail`, if it may be that long at all.
    fn grown(
        &self,
        spec: &Spec,
        key: &Key,
        mail: &[Delivery],
        aside: Reservation,
    ) -> Option<Reservation> {
        let mut known = self.known.clone();
        known.add_mail(key, mail, self.seq);
        let worst = render::worst_case(spec, &known, &known.get(key.as_str())?.call);
        let input = worst.input.max(aside.tokens.input);
        let tokens = Tokens { input, ..aside.tokens };
        Some(Reservation { tokens, cost: worst.rates.map(|rates| rates.of(tokens)) })
    }
}
