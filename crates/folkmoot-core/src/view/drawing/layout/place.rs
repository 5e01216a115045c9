//! How far from the left slots stand.

use super::{BESIDE, Slot};

/// How often all layers are gone through, downwards and upwards.
const SWEEPS: usize = 6;

/// The middles of all slots, the leftmost side at 0.
pub(super) fn place(layers: &[Vec<usize>], slots: &[Slot]) -> Vec<i64> {
    let mut xs = vec![0; slots.len()];
    let none = Vec::new();
    for layer in layers {
        settle(layer, slots, &mut xs, |_| [&none, &none]);
    }
    for _ in 0..SWEEPS {
        for layer in layers {
            settle(layer, slots, &mut xs, |slot| [&slot.above, &none]);
        }
        for layer in layers.iter().rev() {
            settle(layer, slots, &mut xs, |slot| [&slot.below, &none]);
        }
    }
    for layer in layers {
        settle(layer, slots, &mut xs, |slot| [&slot.above, &slot.below]);
    }
    let left = slots.iter().zip(&xs).map(|(slot, x)| x - slot.left).min().unwrap_or_default();
    xs.iter().map(|x| x - left).collect()
}

/// Moves the slots of a layer as near as their order allows to the means of their neighbours: what
/// cannot all stand where it wants stands together where its mean wants to.
fn settle<'s>(
    layer: &[usize],
    slots: &'s [Slot],
    xs: &mut [i64],
    near: impl Fn(&'s Slot) -> [&'s Vec<usize>; 2],
) {
    // Each slot is told from where the one before it would push it, so that only the order matters.
    let mut pushed = 0;
    let mut offsets = Vec::with_capacity(layer.len());
    let mut blocks: Vec<Block> = Vec::new();
    for (at, slot) in layer.iter().enumerate() {
        if at > 0 {
            pushed += slots[layer[at - 1]].right + BESIDE + slots[*slot].left;
        }
        offsets.push(pushed);
        let wanted = wanted(*slot, slots, xs, near(&slots[*slot])) - pushed;
        let mut block = Block { sum: wanted, count: 1 };
        while let Some(before) = blocks.pop_if(|before| before.mean() >= block.mean()) {
            block = Block { sum: before.sum + block.sum, count: before.count + block.count };
        }
        blocks.push(block);
    }
    let places =
        blocks.iter().flat_map(|block| std::iter::repeat_n(block.mean(), block.count as usize));
    for ((slot, offset), place) in layer.iter().zip(offsets).zip(places) {
        xs[*slot] = place + offset;
    }
}

/// Slots that stand as close together as they can.
struct Block {
    sum: i64,
    count: i64,
}

impl Block {
    fn mean(&self) -> i64 {
        self.sum.div_euclid(self.count)
    }
}

/// Where a slot would stand if it were alone. Long links stay straight first of all.
fn wanted(slot: usize, slots: &[Slot], xs: &[i64], near: [&Vec<usize>; 2]) -> i64 {
    let weight = |it: usize| match (slots[slot].is_node, slots[it].is_node) {
        (true, true) => 1,
        (true, false) | (false, true) => 2,
        (false, false) => 8,
    };
    let near = || near.into_iter().flatten().copied();
    let weights: i64 = near().map(weight).sum();
    let sum: i64 = near().map(|it| xs[it] * weight(it)).sum();
    if weights == 0 { xs[slot] } else { sum.div_euclid(weights) }
}
