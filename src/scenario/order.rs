//! In which order cells are launched. Pure, and the same for ever: a stored seed gives the same order in every version.

use super::checked::Order;
use crate::random::SplitMix64;

/// One measured launch of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scheduled {
    /// Number of the block from 0: a budget is looked at between blocks.
    pub block: u32,
    /// Place of the cell.
    pub cell: usize,
    /// Number of the launch within its cell, from 0.
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
    let salt = (scheduled.cell as u64).wrapping_mul(0x9FB2_1C65_1E98_DF25) ^ two.wrapping_mul(0xD1B5_4A32_D192_ED03);
    let turned = (SplitMix64::new(SplitMix64::new(seed ^ 0xAB).next() ^ salt).below(2) == 1) != half;
    if turned { (0..sides).rev().collect() } else { (0..sides).collect() }
}

/// Every launch in order. Interleaved, a block is one launch of every cell in a shuffled order; sequential, a block is all
/// launches of one cell.
pub fn schedule(order: Order, seed: u64, cells: usize, launches: u32) -> Vec<Scheduled> {
    match order {
        Order::Interleaved => (0..launches)
            .flat_map(|block| block_of(seed, cells, block).into_iter().map(move |cell| Scheduled { block, cell, launch: block }))
            .collect(),
        Order::Sequential => {
            (0..cells).flat_map(|cell| (0..launches).map(move |launch| Scheduled { block: cell as u32, cell, launch })).collect()
        }
    }
}
