//! Whether a cell's values hold still enough to be quoted.

use std::fmt;

use super::centre::logs;
use super::location::relative_spread;
use super::order::{Drift, autocorrelation, drift, effective_size};
use super::steps::steps;
use super::student::student;

/// Highest coefficient of variation that is still called stable.
pub const STABLE_SPREAD: f64 = 0.05;

/// Fewest values that a verdict can rest on.
const FEWEST: usize = 5;

/// Level of what is no chance in the order of the values.
const LEVEL: f64 = 0.01;

/// Smallest change of level within a run that matters, in logs.
const LEAST_STEP: f64 = 0.02;

/// Fewest values on a side of a step.
const FEWEST_OF_A_LEVEL: usize = 3;

/// A verdict on a sample in the order in which it was measured.
#[derive(Debug, Clone, PartialEq)]
pub enum Stability {
    /// Nothing speaks against it.
    Stable {
        /// Coefficient of variation, 0 to 1.
        spread: f64,
    },
    /// Something does.
    Unstable {
        /// What does.
        reasons: Vec<String>,
    },
    /// No verdict.
    Unknown {
        /// Why not.
        reason: &'static str,
    },
}

impl Stability {
    /// The word that stands in tables.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Stable { .. } => "stable",
            Self::Unstable { .. } => "unstable",
            Self::Unknown { .. } => "unknown",
        }
    }

    /// The reasons in words.
    pub fn reason(&self) -> String {
        match self {
            Self::Stable { spread } => format!("spread {:.1} % (within {:.0} %)", spread * 100.0, STABLE_SPREAD * 100.0),
            Self::Unstable { reasons } => reasons.join("; "),
            Self::Unknown { reason } => (*reason).to_owned(),
        }
    }
}

impl fmt::Display for Stability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.word(), self.reason())
    }
}

/// Verdict on values in the order in which they were measured, from their spread (coefficient of variation: standard deviation with `n - 1` over
/// mean), drift, steps and from how much each repeats the one before.
pub fn stability(values: &[f64]) -> Stability {
    if values.len() < FEWEST {
        return Stability::Unknown { reason: "fewer than 5 values" };
    }
    let Some(spread) = relative_spread(values) else {
        return Stability::Unknown { reason: "values without a mean above zero" };
    };
    let mut reasons = Vec::new();
    if spread > STABLE_SPREAD {
        reasons.push(format!("spread {:.1} % (over {:.0} %)", spread * 100.0, STABLE_SPREAD * 100.0));
    }
    if let Some(found) = drift(values).filter(Drift::is_marked) {
        reasons.push(format!("drifts by {:+.1} % from the first to the last", found.change * 100.0));
    }
    let steps = logs(values).map(|logs| steps(&logs, LEVEL, FEWEST_OF_A_LEVEL)).unwrap_or_default();
    for step in steps.iter().filter(|step| step.size.abs() >= LEAST_STEP) {
        reasons.push(format!("steps by {:+.1} % at value {} of {}", step.size.exp_m1() * 100.0, step.at + 1, values.len()));
    }
    // One-sided at the level; less can't be told from chance.
    let plain = student(1.0 - LEVEL, f64::INFINITY) / (values.len() as f64).sqrt();
    if autocorrelation(values, 1).is_some_and(|r| r > plain) {
        let size = effective_size(values).unwrap_or(1.0);
        reasons.push(format!("each repeats the one before: {} count as {size:.0}", values.len()));
    }
    if reasons.is_empty() { Stability::Stable { spread } } else { Stability::Unstable { reasons } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::{EVEN, ODD};

    #[test]
    fn verdicts() {
        assert_eq!(stability(&ODD).to_string(), "stable: spread 2.6 % (within 5 %)");
        assert_eq!(stability(&EVEN).to_string(), "unstable: spread 30.3 % (over 5 %)");
        assert_eq!(stability(&ODD[..4]).word(), "unknown");
        assert_eq!(stability(&[0.0; 8]).word(), "unknown");
        assert_eq!(stability(&[f64::NAN; 8]).word(), "unknown");
        assert_eq!(stability(&[3.0; 5]), Stability::Stable { spread: 0.0 });
    }

    #[test]
    fn every_reason_is_told() {
        // By hand: a rise of 0.2 % a launch; and a fall after the twelfth from a median of 50.2 to one of sqrt(46.2 * 46.3) = 46.25.
        let rising: Vec<f64> = (0..20).map(|i| 50.0 * 1.002_f64.powi(i)).collect();
        let words = stability(&rising).to_string();
        assert!(words.starts_with("unstable: drifts by +3.9 % from the first to the last"), "{words}");
        let throttled: Vec<f64> = (0..20).map(|i| if i < 12 { 50.0 } else { 46.0 } + f64::from(i * 7 % 5) * 0.1).collect();
        let words = stability(&throttled).to_string();
        assert!(words.contains("steps by -7.9 % at value 13 of 20") && words.contains("20 count as"), "{words}");
        assert!(!words.contains("spread"), "{words}");
    }
}
