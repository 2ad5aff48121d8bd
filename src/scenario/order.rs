//! In which order cells are launched. Pure, and the same for ever: a stored seed gives the same order in every version.

use super::checked::Order;
use crate::random::SplitMix64;

/// One measured launch of a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scheduled {
    /// Number of the block from 0: a budget is looked at between blocks.
    pub block: u32,
    /// Places of the cells whose queries it answers, in the order in which it does: one, or those that share their launches.
    pub cells: Vec<usize>,
    /// Number of the launch within its cells, from 0.
    pub launch: u32,
}

/// A block of a shuffled order: it holds every cell from 0 to `cells` once, so that drift (heat, other load) hits all cells alike
/// (rule R2). It depends on the seed and its number alone: asking for more blocks changes none before.
pub(super) fn block_of(seed: u64, cells: usize, block: u32) -> Vec<usize> {
    let mut random = SplitMix64::new(SplitMix64::new(seed).next() ^ u64::from(block).wrapping_mul(0xD1B5_4A32_D192_ED03));
    let mut order: Vec<usize> = (0..cells).collect();
    // Fisher and Yates, from the end.
    for i in (1..cells).rev() {
        order.swap(i, random.below(i + 1));
    }
    order
}

/// The sides of an A/B run in the order in which they make a launch; a run with one side has no choice. Of two launches of a cell that follow one
/// another, 0 and 1, 2 and 3, one begins with the first side and one with the second, by the seed: neither side is always the warmed-up one, and
/// no rhythm of the device's own falls together with the change.
pub fn turns(seed: u64, scheduled: &Scheduled, sides: usize) -> Vec<usize> {
    let (two, half) = (u64::from(scheduled.launch / 2), scheduled.launch % 2 == 1);
    let group = scheduled.cells.iter().min().copied().unwrap_or_default();
    let salt = (group as u64).wrapping_mul(0x9FB2_1C65_1E98_DF25) ^ two.wrapping_mul(0xD1B5_4A32_D192_ED03);
    let turned = (SplitMix64::new(SplitMix64::new(seed ^ 0xAB).next() ^ salt).below(2) == 1) != half;
    if turned { (0..sides).rev().collect() } else { (0..sides).collect() }
}

/// The cells that share a launch in the order in which it asks their queries. Of as many launches as there are cells each cell comes first once, so that none is
/// always the one that finds the process fresh, and in another order in the launches after them.
fn turned(seed: u64, group: &[usize], launch: u32) -> Vec<usize> {
    let (n, first) = (group.len() as u32, group.first().copied().unwrap_or_default() as u64);
    if n < 2 {
        return group.to_vec();
    }
    let salt = SplitMix64::new(seed ^ 0x5A).next() ^ first.wrapping_mul(0x9FB2_1C65_1E98_DF25);
    let mut order: Vec<usize> = block_of(salt, group.len(), launch / n).into_iter().map(|i| group[i]).collect();
    order.rotate_left((launch % n) as usize);
    order
}

/// Every launch in order, of groups of cells that share their launches; a group of one is a cell by itself. Interleaved, a block is one launch of
/// every group in a shuffled order; sequential, a block is all launches of one group.
pub fn schedule(order: Order, seed: u64, groups: &[Vec<usize>], launches: u32) -> Vec<Scheduled> {
    let scheduled = |block: u32, group: usize, launch: u32| Scheduled { block, cells: turned(seed, &groups[group], launch), launch };
    let scheduled = &scheduled;
    match order {
        Order::Interleaved => (0..launches)
            .flat_map(|block| block_of(seed, groups.len(), block).into_iter().map(move |group| scheduled(block, group, block)))
            .collect(),
        Order::Sequential => {
            (0..groups.len()).flat_map(|group| (0..launches).map(move |launch| scheduled(group as u32, group, launch))).collect()
        }
    }
}
