//! What would decide an undecided comparison.

use super::session::{Source, Spread};
use crate::{
    gate::unlike::Difference,
    stats::{self, FEWEST_FOR_EFFECT},
};

/// What is known of an undecided comparison.
pub struct Seen<'a> {
    /// Of the launches alone.
    pub effect: stats::Effect,
    /// Launches of the smaller side.
    pub launches: usize,
    /// Of sessions.
    pub spread: &'a Spread,
    /// What does not matter.
    pub tolerance: f64,
    /// What was not the same.
    pub differences: &'a [&'a Difference],
}

/// More launches or runs than these are no advice.
const MOST_LAUNCHES: f64 = 500.0;
const MOST_RUNS: f64 = 50.0;

/// What to do, the first being the first to do.
pub fn decide(seen: &Seen) -> Vec<String> {
    let mut advice = vec![more(seen)];
    for difference in seen.differences.iter().filter(|difference| difference.serious() && difference.changed()) {
        if difference.what.ends_with("at the start of launches") {
            advice.push(format!("a start in the same state: {}", difference.words()));
        } else if difference.what == "runtime" || difference.what == "load of the computer at the begin (1 min)" {
            advice.push(format!("the same in both, unless it is what is compared: {}", difference.words()));
        }
    }
    advice
}

/// How many more launches or runs.
///
/// An effect beyond the tolerance is decided once the interval leaves out 0, one within it once the interval is within it too. The variance
/// of the launches' part falls with their number, that of the sessions does not; an interval reaches two standard errors to a side.
fn more(seen: &Seen) -> String {
    let limit = seen.tolerance.max(0.0).ln_1p();
    let size = seen.effect.log.abs();
    let reach = if size > limit { size } else { limit - size };
    let wanted = (reach / 2.0).powi(2);
    let Some(launches) = seen.effect.error.map(|error| error * error) else {
        return format!("more launches: {FEWEST_FOR_EFFECT} a side at least, one says nothing about its noise");
    };
    let sessions = 2.0 * seen.spread.sd * seen.spread.sd;
    let least = if seen.launches < FEWEST_FOR_EFFECT { FEWEST_FOR_EFFECT } else { seen.launches + 1 };
    let needed = (seen.launches as f64 * launches / (wanted - sessions)).ceil();
    if sessions < wanted && needed <= MOST_LAUNCHES {
        let needed = (needed as usize).max(least);
        return format!("more launches: some {needed} a side (now {}), by the noise seen", seen.launches);
    }
    let runs = ((sessions + launches) / wanted).ceil();
    if runs > MOST_RUNS || !runs.is_finite() {
        let percent = 100.0 * size.exp_m1();
        return format!("the difference seen ({percent:.1} %) is about as large as the tolerance: only another tolerance decides");
    }
    let interleaved = "both interleaved in one session (`bench run --ab`)";
    if sessions < wanted {
        return format!("{interleaved}, or {runs} pairs of runs: the launches are too noisy for one");
    }
    let history = if seen.spread.source == Source::Assumed { ", or a history that shows less (`--history`)" } else { "" };
    let (runs, spread) = (runs.max(2.0), seen.spread.words());
    format!("{interleaved}, or {runs} pairs of runs{history}; not more launches, since sessions differ by {spread}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::unlike;

    fn seen(log: f64, error: Option<f64>, launches: usize, sd: f64) -> String {
        let spread = Spread { sd, degrees: None, source: Source::Assumed };
        let effect = stats::Effect { log, error, degrees: 10.0, interval: None };
        decide(&Seen { effect, launches, spread: &spread, tolerance: 0.02, differences: &[] }).remove(0)
    }

    /// By hand. Effect 3 %, error 2 %, 10 launches: wanted (0.03/2)^2 = 2.25e-4, launches 4e-4: 10 x 4e-4 / 2.25e-4 = 17.8.
    #[test]
    fn more_launches_where_they_help() {
        assert_eq!(seen(0.03, Some(0.02), 10, 0.0), "more launches: some 18 a side (now 10), by the noise seen");
        // No effect: the limit 0.0198 is to be reached: (0.0099)^2 = 9.80e-5; 10 x 4e-4 / 9.80e-5 = 40.8.
        assert_eq!(seen(0.0, Some(0.02), 10, 0.0), "more launches: some 41 a side (now 10), by the noise seen");
        // Sessions of 0.5 % take 5e-5 of it: 10 x 4e-4 / 4.80e-5 = 83.3.
        assert_eq!(seen(0.0, Some(0.02), 10, 0.005), "more launches: some 84 a side (now 10), by the noise seen");
        assert_eq!(seen(0.1, Some(0.001), 4, 0.0), "more launches: some 6 a side (now 4), by the noise seen");
        assert!(seen(0.1, None, 1, 0.0).starts_with("more launches: 6 a side at least"));
    }

    /// Sessions of 2 %: 8e-4 is over the 9.80e-5 wanted; (8e-4 + 1e-6) / 9.80e-5 = 8.17 pairs.
    #[test]
    fn more_sessions_where_launches_do_not_help() {
        let words = seen(0.0, Some(0.001), 20, 0.02);
        assert!(words.contains("--ab") && words.contains("9 pairs of runs") && words.contains("2.0 %, assumed"), "{words}");
        // ln 1.02 = 0.0198: the effect is the tolerance.
        let words = seen(0.0197, Some(0.02), 10, 0.0);
        assert_eq!(words, "the difference seen (2.0 %) is about as large as the tolerance: only another tolerance decides");
    }

    #[test]
    fn a_warmer_start_is_named() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("results/example-pc");
        let run = crate::gate::run::load(&folder).expect("the example");
        let key = run.cells.keys().next().expect("a cell");
        let mut cells = [run.cells[key].clone(), run.cells[key].clone()];
        for (cell, celsius) in cells.iter_mut().zip(["31", "37"]) {
            cell.state.insert("start_skin_c", vec![celsius.to_owned()]);
        }
        let found = unlike::of_cells(&cells[0], &cells[1]);
        let spread = Spread { sd: 0.0, degrees: None, source: Source::Assumed };
        let effect = stats::Effect { log: 0.03, error: Some(0.02), degrees: 10.0, interval: None };
        let words =
            decide(&Seen { effect, launches: 10, spread: &spread, tolerance: 0.02, differences: &found.iter().collect::<Vec<_>>() });
        assert_eq!(words[1], "a start in the same state: case at the start of launches: 31.0 °C in A, 37.0 °C in B");
    }
}
