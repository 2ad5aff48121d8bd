//! Cells and figures of llama.cpp's tools.

use bench_backend_api::{ReadMeasurement, Unreadable, text};
use serde_json::Value;

/// Above any machine's tokens a second; 10^5 were seen for a model of 100 M parameters on a large GPU.
const MAX_TOK_S: f64 = 1e7;

/// Why a text is no measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bad {
    /// A decimal or thousands comma: ambiguous.
    Comma,
    /// `nan`, `inf`, or anything else.
    Text,
}

/// Where a figure stands: for error messages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    /// The file.
    pub(super) file: &'a str,
    /// The line, from 1.
    pub(super) line: usize,
}
impl Place<'_> {
    /// An error at this place.
    pub(super) fn error(self, message: &str) -> Unreadable {
        Unreadable { file: self.file.to_owned(), message: format!("line {}: {message}", self.line) }
    }

    /// The error for a comma inside a number.
    pub(super) fn comma(self, text: &str) -> Unreadable {
        self.error(&format!("`{}` has a comma inside a number, which is neither read as a decimal nor as a thousands sign", text.trim()))
    }
}

/// One number; a comma between digits is told apart, because it stops the reading of the whole file.
pub(super) fn number(text: &str) -> Result<f64, Bad> {
    if let Some(value) = text::number(text) {
        return Ok(value);
    }
    let parts: Vec<&str> = text.trim().split(',').collect();
    let has_comma =
        parts.windows(2).any(|pair| pair[0].ends_with(|c: char| c.is_ascii_digit()) && pair[1].starts_with(|c: char| c.is_ascii_digit()));
    Err(if has_comma { Bad::Comma } else { Bad::Text })
}

/// `avg ± std`, the sign in whatever encoding it survived, or one number alone.
pub(super) fn mean_std(cell: &str) -> Result<(f64, Option<f64>), Bad> {
    let cell = cell.replace("+/-", "±").replace("+-", "±").replace("Â±", "±").replace('\u{fffd}', "±");
    let mut parts = cell.split('±').map(str::trim).filter(|part| !part.is_empty());
    let mean = number(parts.next().ok_or(Bad::Text)?)?;
    let std = match parts.next().map(number) {
        None | Some(Err(Bad::Text)) => None,
        Some(Ok(std)) => Some(std),
        Some(Err(bad)) => return Err(bad),
    };
    if parts.next().is_some() { Err(Bad::Text) } else { Ok((mean, std)) }
}

/// What a test does: prompt tokens, generated tokens, tokens already in the context.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Test {
    /// Prompt tokens, 0 for none.
    pub(super) prompt: u32,
    /// Generated tokens, 0 for none.
    pub(super) generate: u32,
    /// Depth.
    pub(super) depth: u32,
}
impl Test {
    /// Reads `pp512`, `tg128`, `pp512+tg128`, `pp512 @ d4096`, and `pp 512` of 2023.
    pub(super) fn parse(cell: &str) -> Option<Self> {
        let cell: String = cell.to_ascii_lowercase().split_whitespace().collect();
        let (work, depth) = cell.split_once("@d").unwrap_or((&cell, "0"));
        let mut test = Self { depth: digits(depth)?, ..Self::default() };
        for part in work.split('+') {
            if let Some(count) = part.strip_prefix("pp") {
                test.prompt = digits(count)?;
            } else {
                test.generate = digits(part.strip_prefix("tg")?)?;
            }
        }
        (test.prompt > 0 || test.generate > 0).then_some(test)
    }

    /// The label, as the table prints it.
    pub(super) fn label(self) -> String {
        let work = match (self.prompt, self.generate) {
            (prompt, 0) => format!("pp{prompt}"),
            (0, generate) => format!("tg{generate}"),
            (prompt, generate) => format!("pp{prompt}+tg{generate}"),
        };
        if self.depth > 0 { format!("{work} @ d{}", self.depth) } else { work }
    }

    /// The metric that its one speed is. With both it is (prompt + generated) / time: neither prefill nor decode.
    pub(super) fn metric(self) -> &'static str {
        match (self.prompt, self.generate) {
            (_, 0) => "prefill_tok_s",
            (0, _) => "decode_tok_s",
            _ => "pg_tok_s",
        }
    }
}

fn digits(text: &str) -> Option<u32> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// Whether tokens a second can be a measurement.
pub(super) fn real_speed(tok_s: f64) -> bool {
    tok_s > 0.0 && tok_s < MAX_TOK_S
}

/// A JSON number, whole where it is whole, so that `4` threads are not written as `4.0`.
pub(super) fn number_value(value: f64) -> Option<Value> {
    if value.fract() == 0.0 && value.abs() < 9e15 {
        return Some(Value::from(value as i64));
    }
    serde_json::Number::from_f64(value).map(Value::Number)
}

/// A metric's value.
pub(super) fn metric(measurement: &ReadMeasurement, name: &str) -> Option<f64> {
    measurement.metrics.get(name).and_then(Value::as_f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_strict() {
        assert_eq!(mean_std("169.42 ± 1.75"), Ok((169.42, Some(1.75))));
        assert_eq!(mean_std("169.42 Â± 1.75"), Ok((169.42, Some(1.75))));
        assert_eq!(mean_std("169.42 ± nan"), Ok((169.42, None)));
        assert_eq!(mean_std("169,42 ± 1,75"), Err(Bad::Comma));
        assert_eq!(mean_std("inf ± nan"), Err(Bad::Text));
        assert_eq!(mean_std(""), Err(Bad::Text));
    }

    #[test]
    fn tests_of_all_ages() {
        let test = |prompt, generate, depth| Some(Test { prompt, generate, depth });
        let cases = [
            ("pp512", test(512, 0, 0), "pp512", "prefill_tok_s"),
            ("tg 128", test(0, 128, 0), "tg128", "decode_tok_s"),
            ("pp512+tg128", test(512, 128, 0), "pp512+tg128", "pg_tok_s"),
            (" pp512 @ d4096", test(512, 0, 4096), "pp512 @ d4096", "prefill_tok_s"),
        ];
        for (cell, expected, label, metric) in cases {
            let read = Test::parse(cell);
            assert_eq!(read, expected, "{cell}");
            let read = read.unwrap_or_default();
            assert_eq!((read.label().as_str(), read.metric()), (label, metric), "{cell}");
        }
        for other in ["", "pp", "512", "ppx", "pp512 @ d", "tg-1", "pp512+"] {
            assert_eq!(Test::parse(other), None, "{other}");
        }
    }
}
