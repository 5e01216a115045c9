//! Arithmetic with bounds that may be missing.

use std::{
    iter::Sum,
    ops::{Add, AddAssign},
};

/// At most so much, or nothing bounds it. What no longer fits a number has no bound either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Most(pub(crate) Option<u64>);

impl Most {
    pub(super) const NOTHING: Most = Most(Some(0));
    pub(super) const UNKNOWN: Most = Most(None);

    /// Something whose size is known.
    pub(super) fn of(size: usize) -> Most {
        Most(Some(size as u64))
    }

    /// The same, so many times.
    pub(super) fn times(self, times: u64) -> Most {
        if times == 0 { Most::NOTHING } else { Most(self.0.and_then(|it| it.checked_mul(times))) }
    }

    /// The same where something else bounds it too.
    pub(super) fn within(self, other: Most) -> Most {
        Most(self.0.into_iter().chain(other.0).min())
    }

    /// What bounds this and the other, whichever it turns out to be.
    pub(super) fn or(self, other: Most) -> Most {
        Most(self.0.zip(other.0).map(|(one, other)| one.max(other)))
    }
}

impl From<u64> for Most {
    fn from(most: u64) -> Most {
        Most(Some(most))
    }
}

impl Add for Most {
    type Output = Most;

    fn add(self, other: Most) -> Most {
        Most(self.0.zip(other.0).and_then(|(one, other)| one.checked_add(other)))
    }
}

impl Add<u64> for Most {
    type Output = Most;

    fn add(self, other: u64) -> Most {
        self + Most::from(other)
    }
}

impl AddAssign for Most {
    fn add_assign(&mut self, other: Most) {
        *self = *self + other;
    }
}

impl Sum for Most {
    fn sum<I: Iterator<Item = Most>>(all: I) -> Most {
        all.fold(Most::NOTHING, Add::add)
    }
}

/// For each of `all`, what the others come to.
pub(super) fn others(all: &[Most]) -> Vec<Most> {
    let unknown = all.iter().filter(|it| it.0.is_none()).count();
    let known: Option<u64> =
        all.iter().filter_map(|it| it.0).try_fold(0, |sum: u64, it| sum.checked_add(it));
    let rest = |own: &Most| match own.0 {
        Some(own) if unknown == 0 => Most(known.map(|all| all - own)),
        None if unknown == 1 => Most(known),
        Some(_) | None => Most::UNKNOWN,
    };
    all.iter().map(rest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_bound_stays_without_one_until_something_else_bounds_it() {
        let two = Most::from(2);
        assert_eq!(two + Most::UNKNOWN, Most::UNKNOWN);
        assert_eq!(two.or(Most::UNKNOWN), Most::UNKNOWN);
        assert_eq!(Most::UNKNOWN.within(two), two);
        assert_eq!(Most::UNKNOWN.times(0), Most::NOTHING);
        assert_eq!((two.or(3.into()), two.within(3.into())), (3.into(), two));
    }

    #[test]
    fn what_fits_no_number_has_no_bound() {
        let all = Most::from(u64::MAX);
        assert_eq!((all + 1, all.times(2), all + 0), (Most::UNKNOWN, Most::UNKNOWN, all));
    }

    #[test]
    fn the_others_are_all_but_oneself() {
        let of = |all: &[Option<u64>]| {
            let all: Vec<Most> = all.iter().copied().map(Most).collect();
            others(&all).into_iter().map(|it| it.0).collect::<Vec<_>>()
        };
        assert_eq!(of(&[Some(1), Some(2), Some(4)]), [Some(6), Some(5), Some(3)]);
        assert_eq!(of(&[Some(1), None]), [None, Some(1)]);
        assert_eq!(of(&[None, None]), [None, None]);
        assert_eq!(of(&[]), []);
    }
}
