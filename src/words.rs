//! Words with numbers, and numbers in words.

use std::fmt::Display;

use unicode_width::UnicodeWidthStr;

/// `1 cell`, `2 cells`, `2 entries`, `2 launches`: a number with its noun, given in the singular.
pub fn count<N: Copy + Display + PartialEq + From<u8>>(n: N, what: &str) -> String {
    match what.strip_suffix('y') {
        _ if n == N::from(1) => format!("1 {what}"),
        Some(stem) => format!("{n} {stem}ies"),
        None if what.ends_with("ch") => format!("{n} {what}es"),
        None => format!("{n} {what}s"),
    }
}

/// A share in percent as a user writes one: `2 %`, `0.5 %`; no more than two digits after the point.
pub fn percent(share: f64) -> String {
    let digits = bounded(share * 100.0, 2);
    let digits = if digits.contains(['.']) && !digits.contains('e') { digits.trim_end_matches('0').trim_end_matches('.') } else { &digits };
    format!("{digits} %")
}

/// A share in percent with one digit after the point, without the sign of percent.
pub fn tenths(share: f64) -> String {
    bounded(share * 100.0, 1)
}

/// A share as a change, with its sign and without that of percent: `+1.3`.
pub fn signed(share: f64) -> String {
    let digits = tenths(share);
    if digits.starts_with('-') { digits } else { format!("+{digits}") }
}

/// A figure of four digits that count: more is known of none. In powers of ten where it is larger or smaller than anything that is measured here, so
/// that no table is torn apart by it.
pub fn figure(value: f64) -> String {
    let size = value.abs();
    if size >= 1e9 || (size > 0.0 && size < 1e-9) {
        return format!("{value:.3e}");
    }
    let magnitude = if size > 0.0 { size.log10().floor() as i32 } else { 0 };
    format!("{value:.*}", (3 - magnitude).clamp(0, 12) as usize)
}

/// A text with blanks up to a width in columns of a terminal, of which a Chinese sign takes two.
pub fn padded(text: &str, width: usize) -> String {
    text.to_owned() + &" ".repeat(width.saturating_sub(text.width()))
}

/// Lines of a table whose columns stand beneath one another: those that are `left` begin together, the others end together.
pub fn aligned<R: AsRef<[String]>>(rows: &[R], left: impl Fn(usize) -> bool) -> Vec<String> {
    let columns = rows.iter().map(|row| row.as_ref().len()).max().unwrap_or(0);
    let width = |at: usize| rows.iter().filter_map(|row| row.as_ref().get(at)).map(|cell| cell.width()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let cell = |(at, (cell, &width)): (usize, (&String, &usize))| {
        if left(at) { padded(cell, width) } else { " ".repeat(width - cell.width()) + cell }
    };
    let line = |row: &R| row.as_ref().iter().zip(&widths).enumerate().map(cell).collect::<Vec<_>>().join("  ");
    rows.iter().map(|row| line(row).trim_end().to_owned()).collect()
}

fn bounded(value: f64, decimals: usize) -> String {
    if value.abs() < 1e6 { format!("{value:.decimals$}") } else { format!("{value:.1e}") }
}

/// The share that `2%`, `2 %` or `0.02` says: from 0 to under 1.
pub fn share(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let (number, whole) = text.strip_suffix('%').map_or((text, 1.0), |number| (number.trim_end(), 100.0));
    let share = number.parse::<f64>().ok().map(|number| number / whole).filter(|share| (0.0..1.0).contains(share));
    share.ok_or_else(|| "write for instance 2% or 0.02, under 100 %".to_owned())
}

/// The same of what can't be 0.
pub fn share_above_0(text: &str) -> Result<f64, String> {
    share(text)
        .and_then(|share| if share > 0.0 { Ok(share) } else { Err("write for instance 2% or 0.02, above 0 and under 100 %".to_owned()) })
}

#[cfg(test)]
mod tests {
    use super::{aligned, count, figure, percent, share, share_above_0, signed, tenths};

    #[test]
    fn columns_stand_beneath_one_another() {
        let rows = [vec!["a".to_owned(), "1".to_owned(), "é".to_owned()], vec!["bcd".to_owned(), "20".to_owned()]];
        assert_eq!(aligned(&rows, |at| at != 1), ["a     1  é", "bcd  20"]);
        assert!(aligned::<Vec<String>>(&[], |_| true).is_empty());
        // A Chinese sign is two columns wide.
        let rows = [vec!["单元".to_owned(), "判定".to_owned(), "x".to_owned()], vec!["genie".to_owned(), "1".to_owned(), "y".to_owned()]];
        assert_eq!(aligned(&rows, |at| at != 1), ["单元   判定  x", "genie     1  y"]);
    }

    #[test]
    fn no_figure_tears_a_table_apart() {
        let all = [0.0, 0.012_345, 1.0, 99.996, 512.34, 12_345.6, -3.25, 0.000_002, 8.03e9, 1.7e308, -1e-300].map(figure);
        let wanted =
            ["0.000", "0.01235", "1.000", "100.00", "512.3", "12346", "-3.250", "0.000002000", "8.030e9", "1.700e308", "-1.000e-300"];
        assert_eq!(all, wanted);
        assert_eq!([0.013, -0.2, 0.0, 1e300].map(signed), ["+1.3", "-20.0", "+0.0", "+1.0e302"]);
        assert_eq!((tenths(0.018), tenths(1e7), percent(20_000.0)), ("1.8".to_owned(), "1.0e9".to_owned(), "2.0e6 %".to_owned()));
        assert!([f64::INFINITY, f64::NAN, f64::MAX].into_iter().all(|value| figure(value).len() < 12 && percent(value).len() < 12));
    }

    #[test]
    fn shares_are_read_and_told() {
        for (text, value, told) in [
            ("2%", 0.02, "2 %"),
            (" 0.5 % ", 0.005, "0.5 %"),
            ("0.02", 0.02, "2 %"),
            // 0.07 * 100 is 7.000000000000001.
            ("7%", 0.07, "7 %"),
            ("0.07", 0.07, "7 %"),
            ("20%", 0.2, "20 %"),
            ("0.125%", 0.001_25, "0.12 %"),
        ] {
            assert_eq!((share(text), share_above_0(text), percent(value)), (Ok(value), Ok(value), told.to_owned()), "{text}");
        }
        assert_eq!((share("0%"), share("0"), percent(0.0)), (Ok(0.0), Ok(0.0), "0 %".to_owned()));
        for bad in ["2", "1", "100%", "x%", "-1%", "-0.02", "101%", "nan%", "inf", "%", "", "2%%"] {
            assert!(share(bad).is_err(), "{bad}");
        }
        for zero in ["0%", "0", "-0"] {
            assert!(share_above_0(zero).is_err(), "{zero}");
        }
    }

    #[test]
    fn one_of_a_thing_is_no_plural() {
        let said = [(0, "cell"), (1, "cell"), (2, "cell"), (1, "entry"), (3, "entry"), (1, "launch"), (7, "launch")];
        let wanted = ["0 cells", "1 cell", "2 cells", "1 entry", "3 entries", "1 launch", "7 launches"];
        assert_eq!(said.map(|(n, what)| count(n, what)), wanted);
        assert_eq!(count(1_u64, "soak"), "1 soak");
    }
}
