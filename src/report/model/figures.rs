//! Figures as text: as many digits as the interval supports, and a dash for what is absent.

use std::collections::BTreeSet;

use super::groups::listed;
use super::view::Value;
use crate::report::load::{Cell, Estimate};
use crate::stats;

/// What stands where there is no value.
pub const DASH: &str = "—";

/// Decimals that keep two digits of the interval's half-width, or three digits of the value where there is no interval; never more than
/// four digits of the value: nothing here is known better.
fn decimals(value: f64, half_width: Option<f64>) -> usize {
    let magnitude = |x: f64| if x > 0.0 { x.log10().floor() as i32 } else { 0 };
    let by_value = magnitude(value.abs());
    let wanted = match half_width.filter(|half| *half > 0.0) {
        Some(half) => (1 - magnitude(half)).clamp(1 - by_value, 3 - by_value),
        None => 2 - by_value,
    };
    wanted.clamp(0, 6) as usize
}

/// A number on its own, three digits.
pub fn number(value: f64) -> String {
    format!("{value:.*}", decimals(value, None))
}

/// A median.
pub fn median(estimate: &Estimate) -> String {
    format!("{:.*}", estimate_decimals(estimate), estimate.median)
}

/// Its interval, unless it rests on one value.
pub fn interval(estimate: &Estimate) -> Option<String> {
    let (lo, hi) = estimate.interval.filter(|_| estimate.n != Some(1))?;
    let decimals = estimate_decimals(estimate);
    Some(format!("{lo:.decimals$}–{hi:.decimals$}"))
}

fn estimate_decimals(estimate: &Estimate) -> usize {
    let half = estimate.interval.filter(|_| estimate.n != Some(1)).map(|(lo, hi)| (hi - lo) / 2.0);
    decimals(estimate.median, half)
}

/// Median and interval in one line.
pub fn whole(estimate: &Estimate) -> String {
    interval(estimate).map_or_else(|| median(estimate), |ends| format!("{} [{ends}]", median(estimate)))
}

/// Fewest launches for an interval that holds the median in 95 %.
const FEWEST: usize = 6;

/// How the interval of the median of `n` launches was made: for a figure's title.
pub fn interval_words(n: usize) -> String {
    match n {
        0 => "no launches".into(),
        1 => "one launch, no interval".into(),
        n if n < stats::N_SMALL => format!("{} of {n} launches, holds the median in {}", ends_words(n).0, ends_words(n).1),
        n => format!("95 % bootstrap interval of the median of {n} launches"),
    }
}

/// Which values the ends of an interval of few launches are, and how often it holds the median, as `stats` makes it.
fn ends_words(n: usize) -> (&'static str, String) {
    let ramp: Vec<f64> = (0..n).map(|i| i as f64).collect();
    let Some(found) = stats::interval(&ramp, 0) else { return ("no value", "0 %".into()) };
    let ends = if found.lo > 0.0 { "second smallest to second largest" } else { "smallest to largest" };
    (ends, format!("{:.0} %", found.coverage * 100.0))
}

/// How the intervals of a table were made, for figures of these numbers of launches.
pub fn intervals_note(ns: &BTreeSet<usize>) -> String {
    let mut sentences = Vec::new();
    let few: Vec<usize> = ns.iter().copied().filter(|n| (2..stats::N_SMALL).contains(n)).collect();
    for kind in ["smallest to largest", "second smallest to second largest"] {
        let parts: Vec<String> =
            few.iter().filter(|n| ends_words(**n).0 == kind).rev().map(|n| format!("{} with {n} launches", ends_words(*n).1)).collect();
        if !parts.is_empty() {
            sentences.push(format!("Interval: {kind} launch, which holds the median in {}.", listed(&parts)));
        }
    }
    if ns.iter().any(|n| *n >= stats::N_SMALL) {
        sentences.push(format!("Interval of {} launches and more: 95 %, from the bootstrap.", stats::N_SMALL));
    }
    if ns.contains(&1) {
        sentences.push("A figure of one launch has no interval.".into());
    }
    if ns.last().is_some_and(|most| *most < FEWEST) {
        sentences.push(format!("For 95 % it takes {FEWEST} launches: read these figures as a first look."));
    }
    sentences.join(" ")
}

/// Footnotes of one table: each reason once, marked a, b, c...
#[derive(Debug, Default)]
pub struct Notes(Vec<String>);

impl Notes {
    /// The mark of a reason.
    pub fn mark(&mut self, reason: &str) -> String {
        let at = self.0.iter().position(|known| known == reason).unwrap_or_else(|| {
            self.0.push(reason.to_owned());
            self.0.len() - 1
        });
        mark_of(at)
    }

    /// All of them, in order.
    pub fn into_notes(self) -> Vec<super::view::Note> {
        self.0.into_iter().enumerate().map(|(at, text)| super::view::Note { mark: mark_of(at), text }).collect()
    }
}

fn mark_of(at: usize) -> String {
    let letter = char::from(b'a' + (at % 26) as u8);
    if at < 26 { letter.to_string() } else { format!("{letter}{}", at / 26) }
}

/// A metric of a cell for a table: the figure, or a dash whose reason is a footnote.
pub fn value(cell: &Cell, metric: &str, notes: &mut Notes) -> Value {
    let Some(estimate) = cell.metrics.get(metric) else {
        return absent(cell.absent.get(metric).map_or("not measured; the table gives no reason", String::as_str), notes);
    };
    let n = estimate.n.map_or_else(|| "number of launches unknown".into(), interval_words);
    let spread = estimate.mad.map_or_else(String::new, |mad| format!("; MAD {}", number(mad)));
    Value {
        text: median(estimate),
        exact: Some(estimate.median),
        interval: interval(estimate),
        title: format!("{} exactly; {n}{spread}", estimate.median),
        mark: None,
    }
}

/// A dash with its reason.
pub fn absent(reason: &str, notes: &mut Notes) -> Value {
    Value { text: DASH.into(), exact: None, interval: None, title: reason.to_owned(), mark: Some(notes.mark(reason)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(median: f64, lo: f64, hi: f64) -> Estimate {
        Estimate { median, interval: Some((lo, hi)), mad: None, n: Some(15) }
    }

    #[test]
    fn the_interval_decides_the_digits() {
        assert_eq!(whole(&estimate(812.437, 801.3, 826.1)), "812 [801–826]");
        assert_eq!(whole(&estimate(12.3449, 12.01, 12.69)), "12.34 [12.01–12.69]");
        assert_eq!(whole(&estimate(0.123_449, 0.12, 0.126)), "0.1234 [0.1200–0.1260]");
        assert_eq!(whole(&estimate(51234.5, 51234.1, 51234.9)), "51234 [51234–51235]");
        assert_eq!(whole(&estimate(19.9912, 19.949, 20.056)), "19.99 [19.95–20.06]");
        assert_eq!(whole(&estimate(812.0, 400.0, 1600.0)), "812 [400–1600]");
        assert_eq!(whole(&Estimate { median: 12.3449, interval: Some((12.3449, 12.3449)), mad: None, n: Some(1) }), "12.3");
    }

    #[test]
    fn numbers_have_three_digits() {
        assert_eq!([number(0.0), number(4.126), number(0.001_234_5), number(98765.4)], ["0.00", "4.13", "0.00123", "98765"]);
    }

    #[test]
    fn small_numbers_of_launches_say_what_they_cover() {
        assert_eq!(interval_words(3), "smallest to largest of 3 launches, holds the median in 75 %");
        assert_eq!(interval_words(9), "second smallest to second largest of 9 launches, holds the median in 96 %");
        assert_eq!(interval_words(12), "95 % bootstrap interval of the median of 12 launches");
        assert_eq!(interval_words(1), "one launch, no interval");
        let note = |ns: &[usize]| intervals_note(&ns.iter().copied().collect());
        assert_eq!(note(&[6]), "Interval: smallest to largest launch, which holds the median in 97 % with 6 launches.");
        assert!(
            note(&[2, 3])
                .starts_with("Interval: smallest to largest launch, which holds the median in 75 % with 3 launches and 50 % with 2")
        );
        assert!(note(&[2, 3]).ends_with("first look.") && !note(&[10, 9]).contains("first look"));
        assert!(note(&[1]).starts_with("A figure of one launch has no interval."));
        assert_eq!(note(&[]), "");
    }

    #[test]
    fn a_reason_is_one_footnote() {
        let mut notes = Notes::default();
        assert_eq!([notes.mark("x"), notes.mark("y"), notes.mark("x")], ["a", "b", "a"]);
        assert_eq!(notes.into_notes().len(), 2);
        assert_eq!([mark_of(25), mark_of(26), mark_of(53)], ["z", "a1", "b2"]);
    }
}
