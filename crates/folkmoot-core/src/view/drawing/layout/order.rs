//! In which order slots stand within their layers.

use super::Slot;

/// How often all layers are gone through.
const SWEEPS: usize = 8;

/// Puts slots near the middle of their neighbours, downwards and upwards in turn; the order with the
/// fewest crossings counts.
pub(super) fn order(layers: &mut [Vec<usize>], slots: &[Slot]) {
    let mut places = vec![0; slots.len()];
    for layer in layers.iter() {
        number(layer, &mut places);
    }
    let mut best = layers.to_vec();
    let mut fewest = usize::MAX;
    for sweep in 0..SWEEPS {
        if sweep % 2 == 0 {
            for layer in layers.iter_mut() {
                sort(layer, &mut places, |slot| &slots[slot].above);
            }
        } else {
            for layer in layers.iter_mut().rev() {
                sort(layer, &mut places, |slot| &slots[slot].below);
            }
        }
        let crossings = layers.iter().map(|layer| crossings(layer, slots, &places)).sum();
        if crossings < fewest {
            fewest = crossings;
            best = layers.to_vec();
        }
        if fewest == 0 {
            break;
        }
    }
    layers.clone_from_slice(&best);
}

fn number(layer: &[usize], places: &mut [usize]) {
    layer.iter().enumerate().for_each(|(at, slot)| places[*slot] = at);
}

/// Sorts a layer by the mean places of neighbours; a slot without any stays where it is.
fn sort<'s>(
    layer: &mut [usize],
    places: &mut [usize],
    neighbours: impl Fn(usize) -> &'s Vec<usize>,
) {
    let mean = |slot: &usize| {
        let near = neighbours(*slot);
        let sum: usize = near.iter().map(|it| places[*it]).sum();
        // In parts, so that means of whole numbers are told apart.
        if near.is_empty() { places[*slot] << 16 } else { (sum << 16) / near.len() }
    };
    layer.sort_by_cached_key(mean);
    number(layer, places);
}

/// How many pairs of links between a layer and the one below cross.
fn crossings(layer: &[usize], slots: &[Slot], places: &[usize]) -> usize {
    let mut ends: Vec<usize> = Vec::new();
    for slot in layer {
        let from = ends.len();
        ends.extend(slots[*slot].below.iter().map(|it| places[*it]));
        ends[from..].sort_unstable();
    }
    // A tree of sums: how many ends so far lie to the right of the next one.
    let width = ends.iter().max().map_or(0, |last| last + 1);
    let mut sums = vec![0; width + 1];
    let mut crossings = 0;
    for (before, end) in ends.iter().enumerate() {
        let mut at = end + 1;
        let mut left = 0;
        while at > 0 {
            left += sums[at];
            at &= at - 1;
        }
        crossings += before - left;
        let mut at = end + 1;
        while at <= width {
            sums[at] += 1;
            at += at & at.wrapping_neg();
        }
    }
    crossings
}
