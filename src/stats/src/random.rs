//! The one source of pseudo-random numbers: order of launches, prompts, resampling.

/// `SplitMix64` (Steele, Lea and Flood 2014, <https://doi.org/10.1145/2660193.2660195>; the constants of Vigna's public-domain version).
///
/// Our own few lines instead of a crate, so that a stored seed gives the same order, prompts and intervals in every version.
#[derive(Debug, Clone)]
pub struct SplitMix64(u64);
impl SplitMix64 {
    /// A generator; equal seeds give equal numbers for ever.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in `0..bound` by multiplication (Lemire 2019 without the rejection: the bias is under `bound` / 2^64).
    pub const fn below(&mut self, bound: usize) -> usize {
        ((self.next() as u128 * bound as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_the_published_one() {
        // First outputs for seed 1234567, from the reference C program (prng.di.unimi.it/splitmix64.c).
        let mut random = SplitMix64::new(1_234_567);
        assert_eq!(
            [random.next(), random.next(), random.next()],
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }
}
