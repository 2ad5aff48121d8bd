//! From an effect with its interval to one word.
//!
//! Effects are natural logs of ratios, turned so that above 0 is always worse: +0.02 is 2 % more milliseconds or 2 % fewer tokens a second.

use serde::{Deserialize, Serialize};

/// What a comparison says. The order is from best to worst: the worst of several is their maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Better by more than the tolerance.
    Improved,
    /// Whatever the difference is, it lies within the tolerance.
    Unchanged,
    /// The data do not tell.
    Undecided,
    /// Worse by more than the tolerance.
    Regressed,
}

impl Verdict {
    /// As it is written in tables.
    pub fn word(self) -> &'static str {
        match self {
            Self::Improved => "improved",
            Self::Unchanged => "unchanged",
            Self::Undecided => "undecided",
            Self::Regressed => "regressed",
        }
    }
}

/// How much worse one side is, as the log of a ratio, with the interval that the verdict rests on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// Best estimate.
    pub log: f64,
    /// Lower end of the interval.
    pub lo: f64,
    /// Upper end of the interval.
    pub hi: f64,
}

impl Effect {
    /// From the plain log of B over A and its interval: turned over where higher is better, so that above 0 is worse.
    pub fn oriented(log: f64, lo: f64, hi: f64, higher_is_better: bool) -> Self {
        if higher_is_better { Self { log: -log, lo: -hi, hi: -lo } } else { Self { log, lo, hi } }
    }

    /// The plain ratio B over A, turned back: best estimate, lower and upper end.
    pub fn ratio(self, higher_is_better: bool) -> (f64, f64, f64) {
        let plain = Self::oriented(self.log, self.lo, self.hi, higher_is_better);
        (plain.log.exp(), plain.lo.exp(), plain.hi.exp())
    }

    /// The verdict at a tolerance (0.02 for 2 %).
    ///
    /// Two questions, and each word answers one of them. Is there a difference? Regressed or improved: the interval leaves out 0 on that side
    /// and the best estimate is beyond the tolerance. The interval needs not be beyond it as a whole: that would
    /// let a true loss just above the tolerance pass for ever. Is there none that matters? Unchanged: the whole interval is
    /// within the tolerance, which is the equivalence test of two one-sided tests (Schuirmann 1987), here at the level of the interval and so
    /// stricter than the usual 90 %. An interval that merely holds 0 is no proof of sameness: few or noisy values would always be "unchanged".
    /// Everything else is undecided. The two answers exclude each other; with a tolerance of 0 nothing can be unchanged.
    ///
    /// The limit is symmetric in logs: `ln(1 + tolerance)` on both sides.
    pub fn verdict(self, tolerance: f64) -> Verdict {
        let limit = tolerance.max(0.0).ln_1p();
        let Self { log, lo, hi } = self;
        // Comparisons with NaN are false: what is no number is undecided.
        if lo > 0.0 && log > limit {
            Verdict::Regressed
        } else if hi < 0.0 && log < -limit {
            Verdict::Improved
        } else if -limit < lo && hi < limit {
            Verdict::Unchanged
        } else {
            Verdict::Undecided
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ln 1.02 = 0.0198026...: by hand.
    #[test]
    fn each_word_has_its_place() {
        let cases = [
            (0.030, 0.010, 0.050, Verdict::Regressed),
            (-0.030, -0.050, -0.010, Verdict::Improved),
            (0.001, -0.019, 0.019, Verdict::Unchanged),
            // A proven difference that does not matter is no regression.
            (0.010, 0.005, 0.015, Verdict::Unchanged),
            // Proven, but nobody knows whether it matters.
            (0.015, 0.005, 0.025, Verdict::Undecided),
            // Large, but not proven.
            (0.030, -0.001, 0.061, Verdict::Undecided),
            (-0.030, -0.061, 0.001, Verdict::Undecided),
            // On either side of the limit.
            (0.0198, 0.010, 0.030, Verdict::Undecided),
            (0.0199, 0.010, 0.030, Verdict::Regressed),
            (0.000, -0.500, 0.500, Verdict::Undecided),
            (f64::NAN, f64::NAN, f64::NAN, Verdict::Undecided),
            (0.030, f64::NAN, 0.050, Verdict::Undecided),
        ];
        for (log, lo, hi, verdict) in cases {
            assert_eq!(Effect { log, lo, hi }.verdict(0.02), verdict, "{log} [{lo}, {hi}]");
        }
    }

    #[test]
    fn without_a_tolerance_every_proven_difference_counts_and_nothing_is_the_same() {
        assert_eq!(Effect { log: 1e-4, lo: 1e-5, hi: 2e-4 }.verdict(0.0), Verdict::Regressed);
        assert_eq!(Effect { log: 0.0, lo: 0.0, hi: 0.0 }.verdict(0.0), Verdict::Undecided);
        assert_eq!(Effect { log: 0.0, lo: 0.0, hi: 0.0 }.verdict(-1.0), Verdict::Undecided);
    }

    /// B has 100 tok/s instead of 110: by hand, ln(100/110) = -0.0953102.
    #[test]
    fn above_zero_is_worse_whichever_way_the_metric_goes() {
        let rate = Effect::oriented(-0.095_310_2, -0.11, -0.08, true);
        assert_eq!((rate.log, rate.lo, rate.hi), (0.095_310_2, 0.08, 0.11));
        assert_eq!(rate.verdict(0.02), Verdict::Regressed);
        let (ratio, lo, hi) = rate.ratio(true);
        assert!((ratio - 100.0 / 110.0).abs() < 1e-6 && lo < ratio && ratio < hi, "{lo} {ratio} {hi}");
        let time = Effect::oriented(-0.095_310_2, -0.11, -0.08, false);
        assert_eq!(time.verdict(0.02), Verdict::Improved);
    }

    #[test]
    fn the_worst_is_the_maximum() {
        use Verdict::{Improved, Regressed, Unchanged, Undecided};
        assert_eq!([Unchanged, Regressed, Undecided, Improved].into_iter().max(), Some(Regressed));
        assert_eq!([Unchanged, Undecided, Improved].into_iter().max(), Some(Undecided));
        assert_eq!(serde_json::to_string(&Undecided).expect("json"), format!("\"{}\"", Undecided.word()));
    }
}
