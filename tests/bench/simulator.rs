//! Made-up devices, for the benchmark of the nightly gate (nights.rs) and its test (tests/nights.rs). Seeded: the same every time. Its
//! figures are the simulator's, not a phone's (rule R28).

#![allow(dead_code, reason = "benchmark and test use their parts")]

use bench::gate::{
    nights::{Night, judge},
    verdict::Verdict,
};

/// What a device does to a value. All in logs, so that 0.03 is 3 %.
#[derive(Clone, Copy)]
pub struct Device {
    /// Spread of launches within a night.
    pub noise: f64,
    /// Spread of nights.
    pub between: f64,
    /// Share of launches that are 10 to 50 % slower.
    pub outliers: f64,
    /// Autocorrelation of launches that follow each other.
    pub repeats: f64,
    /// How much slower the last launch of a session is than the first, by heat.
    pub drift: f64,
    /// Share of sessions that are throttled by 6 % from a random launch on.
    pub throttled: f64,
}

/// The issue's: 3 % noise, nights up to 0.3 % apart, 2 % outliers.
pub const USUAL: Device = Device { noise: 0.03, between: 0.003, outliers: 0.02, repeats: 0.0, drift: 0.0, throttled: 0.0 };

/// `SplitMix64`, as src/stats/src/random.rs.
pub struct Random(u64);
impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }
    pub fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((z ^ (z >> 31)) >> 34) as f64 + 0.5) / f64::from(1 << 30)
    }
    pub fn normal(&mut self) -> f64 {
        (-2.0 * self.unit().ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }
}

impl Device {
    /// A session of `n` launches at a level, in ms.
    pub fn session(&self, random: &mut Random, level: f64, n: usize) -> Vec<f64> {
        let night = level + self.between * random.normal();
        let step = if random.unit() < self.throttled { (random.unit() * n as f64) as usize } else { n };
        let mut noise = random.normal();
        let launch = |i: usize| {
            let own = noise;
            noise = self.repeats * noise + (1.0 - self.repeats * self.repeats).sqrt() * random.normal();
            let slow = if random.unit() < self.outliers { 0.1 + 0.4 * random.unit() } else { 0.0 };
            let heat = self.drift * i as f64 / (n - 1) as f64 + if i >= step { 0.06 } else { 0.0 };
            100.0 * (night + self.noise * own + slow + heat).exp()
        };
        (0..n).map(launch).collect()
    }
}

/// Nights of history that the gate is given.
pub const HISTORY: usize = 60;
/// The change that is asked for, and the one that is planted.
pub const ASKED: f64 = 0.02;
/// Repetitions a cell and night.
pub const LAUNCHES: usize = 20;

/// What the gate says over many nights of many cells.
#[derive(Default)]
pub struct Score {
    /// Cell-nights without a change.
    pub nights: usize,
    /// Of them by verdict: improved, unchanged, undecided, regressed.
    pub said: [usize; 4],
    /// Regressions of [`ASKED`] planted.
    pub planted: usize,
    /// Of them found in the first, by the second, by the third night.
    pub found: [usize; 3],
    /// In their first night: by verdict.
    pub first: [usize; 4],
    /// Nights that undecided ones say it would take, and those of them that say so.
    pub needed: (usize, usize),
    /// Sum of the minimum detectable effects.
    pub mde: f64,
}

/// Runs the gate over `nights` nights of `cells` cells; every `plant`-th night a regression is planted beside, for three nights.
pub fn score(device: &Device, seed: u64, cells: usize, nights: usize, plant: usize) -> Score {
    score_after(HISTORY, device, seed, (cells, nights, plant))
}

/// The same with `before` nights behind each.
pub fn score_after(before: usize, device: &Device, seed: u64, (cells, nights, plant): (usize, usize, usize)) -> Score {
    let mut random = Random::new(seed);
    let mut score = Score::default();
    for _ in 0..cells {
        let made = |random: &mut Random, level: f64| Night::of(&device.session(random, level, LAUNCHES), false).expect("values");
        let mut series: Vec<Night> = (0..before).map(|_| made(&mut random, 0.0)).collect();
        for night in 0..nights {
            let tonight = made(&mut random, 0.0);
            let history = &series[series.len() - before..];
            let said = judge(history, tonight, ASKED, 0.01);
            score.nights += 1;
            score.said[said.verdict as usize] += 1;
            score.mde += said.mde.unwrap_or(f64::INFINITY);
            if let Some(needed) = said.nights_needed {
                score.needed = (score.needed.0 + needed, score.needed.1 + 1);
            }
            if night % plant == 0 {
                let mut worse = history.to_vec();
                score.planted += 1;
                for look in 0..3 {
                    let tonight = made(&mut random, ASKED.ln_1p());
                    let said = judge(&worse, tonight, ASKED, 0.01).verdict;
                    if look == 0 {
                        score.first[said as usize] += 1;
                    }
                    if said == Verdict::Regressed {
                        score.found[look..].iter_mut().for_each(|found| *found += 1);
                        break;
                    }
                    worse.push(tonight);
                }
            }
            series.push(tonight);
        }
    }
    score
}
