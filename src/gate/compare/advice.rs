//! What would decide an undecided comparison.

use serde::Serialize;

use super::session::{ASSUMED_WORD, Source, Spread};
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

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "do", rename_all = "lowercase")]
pub enum Advice {
    /// More launches in both.
    Launches {
        /// So many a side, about.
        needed: usize,
        /// So many there were.
        now: usize,
    },
    /// Both interleaved in one session, or more pairs of runs.
    Sessions {
        /// So many pairs, about.
        pairs: usize,
        /// What sessions are taken to differ by, in words; absent where it is the launches that are too noisy.
        spread: Option<String>,
    },
    /// A computer that does nothing else, or both interleaved.
    Quiet,
    /// Another tolerance: the difference seen is about the tolerance itself.
    Tolerance,
    /// The same state or version in both.
    Same {
        /// Which, in words.
        what: String,
    },
}

/// More launches than these are no advice.
const MOST_LAUNCHES: f64 = 500.0;

impl Advice {
    /// In words, for several rows at once: their counts are given as a range.
    pub fn words(all: &[&Self]) -> String {
        let range = |count: fn(&Self) -> Option<usize>| {
            let counts = || all.iter().filter_map(|advice| count(advice));
            let (least, most) = (counts().min().unwrap_or(0), counts().max().unwrap_or(0));
            if least == most { least.to_string() } else { format!("{least} to {most}") }
        };
        match all.first() {
            Some(Self::Launches { .. }) => {
                let needed = range(|advice| if let Self::Launches { needed, .. } = advice { Some(*needed) } else { None });
                let now = range(|advice| if let Self::Launches { now, .. } = advice { Some(*now) } else { None });
                format!("more launches: some {needed} a side (now {now}), by the noise seen")
            }
            Some(Self::Sessions { spread, .. }) => {
                let pairs = range(|advice| if let Self::Sessions { pairs, .. } = advice { Some(*pairs) } else { None });
                let why = spread.as_ref().map_or_else(
                    || "the launches are too noisy for one".to_owned(),
                    |spread| format!("more launches do not help, since sessions differ by {spread}"),
                );
                let history = if spread.as_ref().is_some_and(|words| words.ends_with(ASSUMED_WORD)) {
                    ", or a history that shows less (`--history`)"
                } else {
                    ""
                };
                format!("both interleaved in one session (`bench run --ab`), or some {pairs} pairs of runs{history}; {why}")
            }
            Some(Self::Quiet) => {
                "a computer that does nothing else, or both interleaved in one session (`bench run --ab`); or what its sessions differ by (`--history`)"
                    .to_owned()
            }
            Some(Self::Tolerance) => "another tolerance: the difference seen is about the tolerance itself".to_owned(),
            Some(Self::Same { what }) => what.clone(),
            None => String::new(),
        }
    }
}

/// What to do, the first being the first to do.
pub fn decide(seen: &Seen) -> Vec<Advice> {
    let mut advice = vec![more(seen)];
    for difference in seen.differences.iter().filter(|difference| difference.serious() && difference.changed()) {
        if difference.what.ends_with("at the start of launches") {
            advice.push(Advice::Same { what: format!("a start in the same state: {}", difference.words()) });
        } else if difference.what == "runtime" || difference.what.starts_with("load of the computer") {
            advice.push(Advice::Same { what: format!("the same in both, unless it is what is compared: {}", difference.words()) });
        }
    }
    advice
}

/// How many more launches or runs.
///
/// An effect beyond the tolerance is decided once the interval leaves out 0, one within it once the interval is within it too. The variance
/// of the launches' part falls with their number, that of the sessions does not; an interval reaches two standard errors to a side.
fn more(seen: &Seen) -> Advice {
    let (limit, size, now) = (seen.tolerance.max(0.0).ln_1p(), seen.effect.log.abs(), seen.launches);
    let Some(launches) = seen.effect.error.map(|error| error * error) else {
        return Advice::Launches { needed: FEWEST_FOR_EFFECT, now };
    };
    if seen.spread.source == Source::Unknown {
        return Advice::Quiet;
    }
    let reach = if size > limit { size } else { limit - size };
    if reach < 0.1 * limit || reach <= 0.0 {
        return Advice::Tolerance;
    }
    let wanted = (reach / 2.0).powi(2);
    let sessions = 2.0 * seen.spread.sd * seen.spread.sd;
    let needed = (now as f64 * launches / (wanted - sessions)).ceil();
    if sessions < wanted && needed <= MOST_LAUNCHES {
        let least = if now < FEWEST_FOR_EFFECT { FEWEST_FOR_EFFECT } else { now + 1 };
        return Advice::Launches { needed: (needed as usize).max(least), now };
    }
    let pairs = ((sessions + launches) / wanted).ceil().max(2.0) as usize;
    Advice::Sessions { pairs, spread: (sessions >= wanted).then(|| seen.spread.words()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::unlike;

    fn seen(log: f64, error: Option<f64>, launches: usize, sd: f64) -> Advice {
        let spread = Spread { sd, degrees: None, source: Source::Assumed };
        let effect = stats::Effect { log, error, degrees: 10.0, interval: None };
        decide(&Seen { effect, launches, spread: &spread, tolerance: 0.02, differences: &[] }).remove(0)
    }

    /// By hand. Effect 3 %, error 2 %, 10 launches: wanted (0.03/2)^2 = 2.25e-4, launches 4e-4: 10 x 4e-4 / 2.25e-4 = 17.8.
    #[test]
    fn more_launches_where_they_help() {
        let more = |needed, now| Advice::Launches { needed, now };
        assert_eq!(seen(0.03, Some(0.02), 10, 0.0), more(18, 10));
        // No effect: the limit 0.0198 is to be reached: (0.0099)^2 = 9.80e-5; 10 x 4e-4 / 9.80e-5 = 40.8.
        assert_eq!(seen(0.0, Some(0.02), 10, 0.0), more(41, 10));
        // Sessions of 0.5 % take 5e-5 of it: 10 x 4e-4 / 4.80e-5 = 83.3.
        assert_eq!(seen(0.0, Some(0.02), 10, 0.005), more(84, 10));
        assert_eq!(seen(0.1, Some(0.001), 4, 0.0), more(6, 4));
        assert_eq!(seen(0.1, None, 1, 0.0), more(6, 1));
        // ln 1.02 = 0.0198: the effect is the tolerance.
        assert_eq!(seen(0.0197, Some(0.02), 10, 0.0), Advice::Tolerance);
    }

    /// Sessions of 2 %: 8e-4 is over the 9.80e-5 wanted; (8e-4 + 1e-6) / 9.80e-5 = 8.17 pairs. Launches of 10 %: 10 x 0.01 / 9.80e-5 is
    /// over 500, 0.01 / 9.80e-5 = 102.02 pairs.
    #[test]
    fn more_sessions_where_launches_do_not_help() {
        assert_eq!(seen(0.0, Some(0.001), 20, 0.02), Advice::Sessions { pairs: 9, spread: Some("2.0 %, assumed".to_owned()) });
        assert_eq!(seen(0.0, Some(0.1), 10, 0.0), Advice::Sessions { pairs: 103, spread: None });
    }

    #[test]
    fn several_rows_are_told_in_one_line() {
        let more = |needed| Advice::Launches { needed, now: 6 };
        assert_eq!(Advice::words(&[&more(18), &more(7), &more(9)]), "more launches: some 7 to 18 a side (now 6), by the noise seen");
        let words = Advice::words(&[&seen(0.0, Some(0.001), 20, 0.02)]);
        assert!(words.contains("some 9 pairs of runs, or a history") && words.ends_with("sessions differ by 2.0 %, assumed"), "{words}");
        assert!(!Advice::words(&[&seen(0.0, Some(0.1), 10, 0.0)]).contains("--history"));
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
        assert_eq!(Advice::words(&[&words[1]]), "a start in the same state: case at the start of launches: 31.0 °C in A, 37.0 °C in B");
    }
}
