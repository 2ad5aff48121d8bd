//! Figures as text: as many digits as the interval supports, and a dash for what is absent.

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

/// How often an interval of the median of `n` values holds it.
pub fn coverage(n: usize) -> f64 {
    let ramp: Vec<f64> = (0..n.min(stats::N_SMALL)).map(|i| i as f64).collect();
    stats::interval(&ramp, 0).map_or(0.0, |found| found.coverage)
}

/// How the interval of `n` values was made, in words.
pub fn interval_words(n: usize) -> String {
    match n {
        0 => "no values".into(),
        1 => "one value, no interval".into(),
        n if n < stats::N_SMALL => format!("order statistics of {n} values, coverage {:.1} %", coverage(n) * 100.0),
        n => format!("95 % bootstrap interval of the median of {n} values"),
    }
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
    let n = estimate.n.map_or_else(|| "number of values unknown".into(), interval_words);
    let spread = estimate.mad.map_or_else(String::new, |mad| format!("; MAD {}", number(mad)));
    Value { text: median(estimate), interval: interval(estimate), title: format!("{} exactly; {n}{spread}", estimate.median), mark: None }
}

/// A dash with its reason.
pub fn absent(reason: &str, notes: &mut Notes) -> Value {
    Value { text: DASH.into(), interval: None, title: reason.to_owned(), mark: Some(notes.mark(reason)) }
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
    fn small_numbers_of_values_say_what_they_cover() {
        assert_eq!(interval_words(5), "order statistics of 5 values, coverage 93.8 %");
        assert_eq!(interval_words(12), "95 % bootstrap interval of the median of 12 values");
        assert_eq!(interval_words(1), "one value, no interval");
    }

    #[test]
    fn a_reason_is_one_footnote() {
        let mut notes = Notes::default();
        assert_eq!([notes.mark("x"), notes.mark("y"), notes.mark("x")], ["a", "b", "a"]);
        assert_eq!(notes.into_notes().len(), 2);
        assert_eq!([mark_of(25), mark_of(26), mark_of(53)], ["z", "a1", "b2"]);
    }
}
