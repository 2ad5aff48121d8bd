//! Whether a cell's values hold still enough to be quoted.

use std::fmt;

use super::location::relative_spread;

/// Highest coefficient of variation that is still called stable.
pub const STABLE_SPREAD: f64 = 0.05;

/// Fewest values that a verdict can rest on.
const FEWEST: usize = 5;

/// A verdict on the spread of a sample.
#[derive(Debug, Clone, PartialEq)]
pub enum Stability {
    /// Spread at or under [`STABLE_SPREAD`].
    Stable {
        /// Coefficient of variation, 0 to 1.
        spread: f64,
    },
    /// Spread over [`STABLE_SPREAD`].
    Unstable {
        /// Coefficient of variation.
        spread: f64,
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
}

impl fmt::Display for Stability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stable { spread } | Self::Unstable { spread } => {
                let side = if matches!(self, Self::Stable { .. }) { "within" } else { "over" };
                write!(f, "{}: spread {:.1} %, {side} {:.0} %", self.word(), spread * 100.0, STABLE_SPREAD * 100.0)
            }
            Self::Unknown { reason } => write!(f, "unknown: {reason}"),
        }
    }
}

/// Verdict from the coefficient of variation: standard deviation (`n - 1`) over mean.
pub fn stability(values: &[f64]) -> Stability {
    if values.len() < FEWEST {
        return Stability::Unknown { reason: "fewer than 5 values" };
    }
    match relative_spread(values) {
        None => Stability::Unknown { reason: "values without a mean above zero" },
        Some(spread) if spread <= STABLE_SPREAD => Stability::Stable { spread },
        Some(spread) => Stability::Unstable { spread },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::reference::{EVEN, ODD};

    #[test]
    fn verdicts() {
        assert_eq!(stability(&ODD).to_string(), "stable: spread 2.6 %, within 5 %");
        assert_eq!(stability(&EVEN).to_string(), "unstable: spread 30.3 %, over 5 %");
        assert_eq!(stability(&ODD[..4]).word(), "unknown");
        assert_eq!(stability(&[0.0; 8]).word(), "unknown");
        assert_eq!(stability(&[f64::NAN; 8]).word(), "unknown");
        assert_eq!(stability(&[3.0; 5]), Stability::Stable { spread: 0.0 });
    }
}
