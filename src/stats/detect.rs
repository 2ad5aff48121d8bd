//! What a comparison can see at all, and what it would take to see more.

use super::location::mean;
use super::student::student;

/// Chance with which a change of the size of [`mde`] is found.
const POWER: f64 = 0.8;

/// Smallest true change that a 95 % interval with this standard error leaves 0 out for, four times out of five (two-sided): in the unit of the
/// error, so of logs in logs. `None` without degrees of freedom.
pub fn mde(error: f64, degrees: f64) -> Option<f64> {
    let found = (student(0.975, degrees) + student(POWER, degrees)) * error;
    found.is_finite().then_some(found)
}

/// Repetitions a side with which a change of the size `asked` would be found as often as [`mde`] says, when `n` a side give
/// the standard error `error`: the error falls with the root of the count. At least 2; `None` when `asked` is not above 0 or the error not known.
pub fn repetitions_for(asked: f64, error: f64, n: usize) -> Option<usize> {
    let per_one = error * (n as f64).sqrt();
    // Degrees of freedom grow with the repetitions; three rounds settle it.
    let needed = (0..3).fold(n as f64, |count, _| {
        let factor = student(0.975, (2.0 * count - 2.0).max(1.0)) + student(POWER, (2.0 * count - 2.0).max(1.0));
        (factor * per_one / asked).powi(2).max(2.0)
    });
    (asked > 0.0 && error.is_finite() && needed.is_finite()).then(|| needed.ceil() as usize)
}

/// Geometric mean: of ratios the one that does not depend on which side is below (Fleming and Wallace 1986). `None` unless every value is above
/// zero.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    mean(&super::centre::logs(values)?).map(f64::exp)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::reference::{EVEN, close};

    #[test]
    fn agrees_with_scipy() {
        // (st.t.ppf(.975, 38) + st.t.ppf(.8, 38)) * .01; st.gmean(EVEN)
        assert!((mde(0.01, 38.0).expect("an effect") - 0.028_755_769_203_799_148).abs() < 1e-10);
        close(geometric_mean(&EVEN), 7.616_497_115_057_699);
        assert_eq!(mde(0.01, 0.0), None);
        assert_eq!(geometric_mean(&[1.0, 0.0]), None);
    }

    #[test]
    fn as_many_repetitions_as_asked_for_find_it() {
        // Twenty a side with an error of 0.01 find 0.0288: to find half of it takes four times as many, and a few less for the degrees.
        let needed = repetitions_for(0.0144, 0.01, 20).expect("a number");
        assert!((76..=80).contains(&needed), "{needed}");
        let with_those = mde(0.01 * (20.0 / needed as f64).sqrt(), 2.0 * needed as f64 - 2.0).expect("an effect");
        assert!(with_those <= 0.0144 * 1.005, "{with_those}");
        assert_eq!(repetitions_for(0.0, 0.01, 20), None);
        assert_eq!(repetitions_for(0.02, 0.0, 20), Some(2));
        assert_eq!(repetitions_for(0.02, f64::NAN, 20), None);
    }
}
