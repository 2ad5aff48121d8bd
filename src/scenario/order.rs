//! In which order cells are launched. Pure, and the same for ever: a stored seed gives the same order in every version.

use super::checked::Order;

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

/// Blocks of a shuffled order: each holds every cell from 0 to `cells` once, so that drift (heat, other load) hits all cells alike
/// (rule R2). The order of a block depends on the seed and its number alone: asking for more blocks changes none before.
pub fn blocks(seed: u64, cells: usize, n_blocks: u32) -> Vec<Vec<usize>> {
    (0..n_blocks).map(|block| block_of(seed, cells, block)).collect()
}

fn block_of(seed: u64, cells: usize, block: u32) -> Vec<usize> {
    let mut random = SplitMix64(SplitMix64(seed).next() ^ u64::from(block).wrapping_mul(0xD1B5_4A32_D192_ED03));
    let mut order: Vec<usize> = (0..cells).collect();
    // Fisher and Yates, from the end.
    for i in (1..cells).rev() {
        order.swap(i, random.below(i as u64 + 1) as usize);
    }
    order
}

/// Every launch in order. Interleaved, a block is one launch of every cell in the order of [`blocks`]; sequential, a block is all
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

/// SplitMix64 (Steele, Lea, Flood 2014, <https://doi.org/10.1145/2660193.2660195>). Our own ten lines, because the order must not
/// change with a version of a crate.
struct SplitMix64(u64);
impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number under `n`. The bias of the plain multiplication is under n / 2^64.
    fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }
}
