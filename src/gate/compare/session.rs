//! What sessions differ by: the standard deviation of the logarithm of a figure from one run to the next, beyond the noise of launches.

use std::{collections::BTreeMap, path::Path};

use serde::Serialize;

use crate::{
    gate::{
        busy::{self, own_memory},
        history::{self, ScanError, Wanted, method},
        run::{Cell, Key, Run},
    },
    results::schema::{METRICS, Metric},
    stats,
    words::tenths,
};

/// Where a spread comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// Nobody knows it: [`ASSUMED`].
    Assumed,
    /// The user said it.
    Stated,
    /// Seen in a history of runs.
    History,
    /// Nobody can tell: a computer that may have been busy with something else.
    Unknown,
    /// There is one session: both sides of an A/B run were measured in it, pair by pair.
    Interleaved,
}

/// Standard deviation of sessions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Spread {
    /// Of the natural logarithm: 0.005 is half a percent; infinite (null in JSON) where nobody can tell.
    pub sd: f64,
    /// Degrees of freedom behind it; absent when it is not estimated.
    pub degrees: Option<f64>,
    /// Where it comes from.
    pub source: Source,
}

/// What is assumed by class: of a phone or board what they show in a room without climate control; of a computer, which is shared, twice
/// as much. So two runs alone prove a difference of some 3 % on a phone, and never that there is none within 2 %: that takes a history
/// that shows less, or interleaving.
pub const ASSUMED: [(&str, f64); 4] = [("phone", 0.01), ("board", 0.01), ("pc", 0.02), ("emulator", 0.02)];

/// The same of memory, in which no temperature and no clock is.
const ASSUMED_OF_MEMORY: f64 = 0.005;

/// What is assumed of a metric on a device of this class.
pub fn assumed(class: &str, metric: &str) -> f64 {
    let of_class = ASSUMED.iter().find(|(name, _)| *name == class).or(ASSUMED.last()).map_or(0.0, |(_, sd)| *sd);
    if own_memory(metric) { ASSUMED_OF_MEMORY } else { of_class }
}

/// How what is assumed is marked.
pub const ASSUMED_WORD: &str = "assumed";

/// Fewest runs of a history whose spread is taken.
pub const FEWEST: usize = 5;

/// What is known of sessions.
#[derive(Debug, Clone, Default)]
pub struct Sessions {
    /// The user's word, for all.
    pub stated: Option<f64>,
    /// Runs of the past.
    pub seen: BTreeMap<(Key, &'static str), Spread>,
    /// One of the two runs shared its computer, so that nothing can be assumed.
    pub busy: bool,
}

impl Sessions {
    /// The spread for a metric of a cell: what the user stated, else what was seen, else what is assumed of the class. Of a busy computer neither what
    /// quiet nights showed nor what is assumed of it holds.
    pub fn of(&self, key: &Key, class: &str, metric: &'static str) -> Spread {
        if let Some(sd) = self.stated {
            return Spread { sd, degrees: None, source: Source::Stated };
        }
        if self.busy && busy::touches(metric) {
            return Spread { sd: f64::INFINITY, degrees: None, source: Source::Unknown };
        }
        let seen = self.seen.get(&(key.clone(), metric)).cloned();
        seen.unwrap_or(Spread { sd: assumed(class, metric), degrees: None, source: Source::Assumed })
    }

    /// What the nights of a folder differ by in the cells of the two runs, which are themselves no nights of it. A night is what a history takes
    /// for one: finished, no side of an A/B run, no copy. It has to be of the scenario of A or B, and of the cell's device, processor, class and method:
    /// of A's cell where both have one.
    ///
    /// From the differences of nights that follow each other, since a lasting change (a new runtime) is no noise: 1.4826 x the median of their
    /// sizes over the root of 2. The launches' noise is in it too, which makes it too wide rather than too narrow.
    pub fn learn(&mut self, history: &Path, (a, b): (&Run, &Run), metrics: &[&'static str]) -> Result<Learnt, ScanError> {
        let mut scan = history::scan(history)?;
        let own = |run: &Run, night: &history::Run| run.id == night.id || run.manifest["run"] == *night.id;
        scan.runs.retain(|night| !own(a, night) && !own(b, night) && [a, b].iter().any(|run| run.scenario == night.scenario));
        let metrics: Vec<&'static Metric> = METRICS.iter().filter(|metric| metrics.contains(&metric.name)).collect();
        let wanted = Wanted { metrics: &metrics, cell: "", device: None, scenario: None, nights: None };
        let (lines, mut remarks) = history::collect(&mut scan, wanted);
        remarks.extend(scan.left_out.iter().map(|left| format!("left out of the history: {}: {}", left.name, left.why)));
        // A comes last, so that it has the last word.
        for (run, (metric, lines)) in [b, a].into_iter().flat_map(|run| metrics.iter().zip(&lines).map(move |of| (run, of))) {
            let chip = history::chip(&run.manifest["device"]);
            for line in lines.iter().filter(|line| line.key.scenario == run.scenario && line.key.chip == chip) {
                let of = &line.key;
                let key = Key { device: of.device.clone(), cell: of.cell.clone() };
                let same = |cell: &Cell| cell.field("device_class") == of.class && method(metric, |name| cell.field(name)) == of.method;
                let logs: Vec<f64> = history::nights(line, metric, &scan.runs).iter().map(|(_, night)| night.at).collect();
                if run.cells.get(&key).is_some_and(same) {
                    self.seen.extend(spread_of(&logs).map(|spread| ((key, metric.name), spread)));
                }
            }
        }
        Ok(Learnt { nights: scan.runs.len(), remarks })
    }
}

/// What a folder had to learn from.
#[derive(Debug)]
pub struct Learnt {
    /// Its nights of the scenarios of the two runs.
    pub nights: usize,
    /// What is odd about it, and what in it is no night, in words.
    pub remarks: Vec<String>,
}

/// Of the logs of one figure in the order of time.
fn spread_of(logs: &[f64]) -> Option<Spread> {
    if logs.len() < FEWEST {
        return None;
    }
    let steps: Vec<f64> = logs.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    let sd = 1.4826 * stats::median(&steps)? / std::f64::consts::SQRT_2;
    // A median of absolute values knows as much as 37 % as many squares (Rousseeuw and Croux 1993).
    Some(Spread { sd, degrees: Some((0.37 * steps.len() as f64).max(1.0)), source: Source::History })
}

impl Spread {
    /// Of an A/B run.
    pub const INTERLEAVED: Self = Self { sd: 0.0, degrees: None, source: Source::Interleaved };

    /// The 95 % interval of the log of a ratio of two runs, its own error and two sessions taken together; degrees of freedom after Welch and
    /// Satterthwaite.
    pub fn widen(&self, log: f64, error: f64, degrees: f64) -> (f64, f64) {
        let (launches, sessions) = (error * error, 2.0 * self.sd * self.sd);
        let parts = [(launches, degrees), (sessions, self.degrees.unwrap_or(f64::INFINITY))];
        let below: f64 = parts.iter().map(|(variance, degrees)| variance * variance / degrees.max(1.0)).sum();
        let both = launches + sessions;
        let degrees = if below > 0.0 { both * both / below } else { f64::INFINITY };
        let half = if both > 0.0 { both.sqrt() * stats::student(0.975, degrees) } else { 0.0 };
        (log - half, log + half)
    }

    /// In words, after "sessions differ by".
    pub fn words(&self) -> String {
        let percent = format!("{} %", tenths(self.sd));
        match self.source {
            Source::Assumed => format!("{percent}, {ASSUMED_WORD}"),
            Source::Stated => format!("{percent}, as stated"),
            Source::History => format!("{percent}, seen in the history"),
            Source::Unknown => "by nobody knows how much, the computer was busy".to_owned(),
            Source::Interleaved => "nothing, both were measured in one".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, wanted: f64) {
        assert!((found - wanted).abs() < 1e-6, "{found} is not {wanted}");
    }

    /// By hand: sqrt(0.004^2 + 2 x 0.005^2) = 0.00812404; 0.016^2/... with infinite degrees the factor is 1.959964.
    #[test]
    fn sessions_widen_an_interval_by_their_share() {
        let spread = Spread { sd: 0.005, degrees: None, source: Source::Assumed };
        let (lo, hi) = spread.widen(0.01, 0.004, f64::INFINITY);
        close(hi - 0.01, 1.959_964 * 0.008_124_038);
        close(0.01 - lo, hi - 0.01);
        // Without sessions it is Welch's: t(0.975, 10) = 2.228139.
        let none = Spread { sd: 0.0, ..spread };
        close(none.widen(0.0, 0.004, 10.0).1, 2.228_139 * 0.004);
        assert_eq!(none.widen(0.3, 0.0, 10.0), (0.3, 0.3));
        // Few nights of a history count as few: (2 x 0.005^2)^2 / 4 below, so 4 degrees, t = 2.776445.
        let few = Spread { sd: 0.005, degrees: Some(4.0), source: Source::History };
        close(few.widen(0.0, 0.0, 10.0).1, 2.776_445 * 0.005 * std::f64::consts::SQRT_2);
    }

    /// Steps by hand: 0.01, 0.02, 0.01, 0.03, 0.02; median 0.02; 1.4826 x 0.02 / 1.41421 = 0.0209671.
    #[test]
    fn a_history_gives_its_spread_and_a_step_does_not_matter() {
        let spread = spread_of(&[1.00, 1.01, 0.99, 1.00, 0.97, 0.99]).expect("a spread");
        close(spread.sd, 0.020_967_1);
        close(spread.degrees.unwrap_or_default(), 1.85);
        let stepped = spread_of(&[1.00, 1.01, 0.99, 2.00, 1.97, 1.99]).expect("a spread");
        close(stepped.sd, 0.020_967_1);
        assert_eq!(spread_of(&[1.0, 1.1, 1.0, 1.1]), None, "too few");
    }

    #[test]
    fn the_users_word_goes_before_history_and_history_before_what_is_assumed() {
        let key = Key { device: "d".to_owned(), cell: "c".to_owned() };
        let seen = Spread { sd: 0.001, degrees: Some(3.0), source: Source::History };
        let mut sessions = Sessions { stated: None, seen: BTreeMap::from([((key.clone(), "ttft_ms"), seen.clone())]), busy: false };
        assert_eq!(sessions.of(&key, "phone", "ttft_ms"), seen);
        assert_eq!(sessions.of(&key, "phone", "e2e_ms").words(), "1.0 %, assumed");
        assert_eq!(sessions.of(&key, "pc", "e2e_ms").words(), "2.0 %, assumed");
        assert_eq!(sessions.of(&key, "pc", "peak_mem_mb").words(), "0.5 %, assumed");
        // Of a shared computer nothing is assumed, and what quiet nights showed is not its own.
        sessions.busy = true;
        assert_eq!(sessions.of(&key, "pc", "ttft_ms").source, Source::Unknown);
        assert_eq!(sessions.of(&key, "pc", "e2e_ms").source, Source::Unknown);
        assert_eq!(sessions.of(&key, "pc", "peak_mem_mb").source, Source::Assumed);
        sessions.stated = Some(0.004);
        assert_eq!(sessions.of(&key, "phone", "ttft_ms").words(), "0.4 %, as stated");
    }
}
