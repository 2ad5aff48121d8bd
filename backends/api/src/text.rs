//! Text helpers for everything that reads a tool's output: cleaning, numbers and units.
//!
//! Liberal in what is taken as text (terminal colours, Windows line ends, UTF-16 of a PowerShell redirection), strict in what becomes a
//! number: `1,234` is neither 1234 nor 1.234, so that it is no number at all.

use std::io::{self, BufRead, Read};

use crate::reader::SourceFile;

/// Ten days: a longer time in a benchmark's output is a wrapped counter or a wrong unit.
const MAX_MS: f64 = 864e6;
/// No unit of this field does more than this of anything in a second.
const MAX_RATE: f64 = 1e9;

/// The text of a file: UTF-8, or UTF-16 with a byte-order mark (what PowerShell's `>` writes), then [`clean`]ed. A number that the file
/// ends in, see [`cut_number`], is left out.
pub fn of(file: &SourceFile) -> String {
    let mut text = clean(&decode(&file.bytes));
    text.truncate(text.len() - cut_number(&text).len());
    text
}

/// The number that a text ends in, without a line end behind it: `140` may be what is left of `140607`. Empty for any other end.
pub fn cut_number(text: &str) -> &str {
    let before = text.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '+' | '-' | 'e' | 'E'));
    let number = &text[before.len()..];
    if number.bytes().any(|byte| byte.is_ascii_digit()) { number } else { "" }
}

/// Bytes as text; what is not valid is replaced.
pub fn decode(bytes: &[u8]) -> String {
    let wide = |rest: &[u8], read: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = rest.chunks_exact(2).map(|pair| read([pair[0], pair[1]])).collect();
        String::from_utf16_lossy(&units)
    };
    match bytes {
        [0xff, 0xfe, rest @ ..] => wide(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => wide(rest, u16::from_be_bytes),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    }
}

/// A longer line is no line of a text: of a file without line ends, say.
const LONGEST_LINE: u64 = 1 << 20;

/// Calls `line` for every line, [`clean`]ed, with one line in memory at a time: for profiles of gigabytes. What is not valid UTF-8 is replaced. A
/// number that the file ends in, see [`cut_number`], is left out.
///
/// # Errors
/// What `from` says, and `InvalidData` for a line of more than 1 MiB.
pub fn each_line(from: &mut dyn BufRead, mut line: impl FnMut(&str)) -> io::Result<()> {
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        (&mut *from).take(LONGEST_LINE).read_until(b'\n', &mut bytes)?;
        let Some(last) = bytes.last() else { return Ok(()) };
        let whole = *last == b'\n';
        if !whole && bytes.len() as u64 == LONGEST_LINE {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a line of more than 1 MiB"));
        }
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_end_matches(['\r', '\n']);
        if !whole {
            line(&text[..text.len() - cut_number(text).len()]);
        } else if text.bytes().all(|b| matches!(b, b' '..=b'~' | b'\t')) {
            line(text);
        } else {
            clean(text).lines().for_each(&mut line);
        }
    }
}

/// Drops byte-order marks, terminal escapes and control characters, makes every line end (`\r\n`, `\r\r\n` of adb, the `\r` of a progress
/// line) a `\n`, and the no-break spaces of copied web pages plain spaces. Tabs and spaces stay: they can carry meaning.
pub fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' => skip_escape(&mut rest),
            '\r' => {
                while rest.peek() == Some(&'\r') {
                    rest.next();
                }
                if rest.peek() != Some(&'\n') {
                    out.push('\n');
                }
            }
            '\n' | '\t' => out.push(c),
            '\u{a0}' | '\u{2007}' | '\u{202f}' => out.push(' '),
            '\u{feff}' | '\u{200b}' => {}
            _ if c.is_control() => {}
            _ => out.push(c),
        }
    }
    out
}

/// Consumes what follows an ESC: `[` parameters and a final byte, `]` up to BEL or ST, else one character. Never past the end of the line.
fn skip_escape(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match rest.peek() {
        Some('[') => {
            rest.next();
            while let Some(&c) = rest.peek() {
                if !(' '..='~').contains(&c) {
                    return;
                }
                rest.next();
                if ('@'..='~').contains(&c) {
                    return;
                }
            }
        }
        Some(']') => {
            while let Some(&c) = rest.peek() {
                if c == '\n' {
                    return;
                }
                rest.next();
                if c == '\u{7}' {
                    return;
                }
                if c == '\u{1b}' {
                    rest.next_if_eq(&'\\');
                    return;
                }
            }
        }
        Some(c) if !c.is_control() => {
            rest.next();
        }
        _ => {}
    }
}

/// A finite decimal number, scientific notation allowed. A comma, `nan`, `inf`, a hexadecimal or anything behind the digits is `None`.
pub fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    let plain = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'+' | b'-' | b'e' | b'E'));
    if !plain || !text.bytes().any(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse::<f64>().ok().filter(|value| value.is_finite())
}

/// A whole number from 0 up to 10^9, as token counts and repetitions are.
pub fn count(text: &str) -> Option<f64> {
    number(text).filter(|&value| plausible_count(value))
}

/// A number and the word directly behind it: `3.5 ms`, `3.5ms`, `12 toks/sec`, `98 %`. The unit may be empty, what follows it is dropped.
pub fn quantity(text: &str) -> Option<(f64, &str)> {
    let text = text.trim_start();
    let token = text.split_whitespace().next()?;
    // `5e-3` belongs to the number, the `s` of `5s` does not, and `5e` is five of something called `e`.
    let mut end = token.bytes().take_while(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'+' | b'-')).count();
    if token[end..].starts_with(['e', 'E']) {
        let digits = token[end + 1..].trim_start_matches(['+', '-']);
        let length = digits.bytes().take_while(u8::is_ascii_digit).count();
        if length > 0 {
            end = token.len() - digits.len() + length;
        }
    }
    let value = number(&token[..end])?;
    let unit = &token[end..];
    if unit.starts_with(',') && unit.len() > 1 {
        return None;
    }
    if !unit.is_empty() {
        return Some((value, unit.trim_end_matches([',', ';', '.'])));
    }
    let unit = text[token.len()..].split_whitespace().next().unwrap_or("");
    Some((value, unit.trim_end_matches([',', ';', '.'])))
}

/// A duration in ms. `None` for a unit that is no time unit, an empty one included.
pub fn to_ms(value: f64, unit: &str) -> Option<f64> {
    let unit = unit.trim().trim_matches(['(', ')', '[', ']']).to_ascii_lowercase();
    let ms = match unit.as_str() {
        "ns" | "nsec" | "nsecs" | "nanosecond" | "nanoseconds" => value / 1e6,
        "us" | "usec" | "usecs" | "µs" | "μs" | "microsecond" | "microseconds" | "microsec" => value / 1e3,
        "ms" | "msec" | "msecs" | "millisecond" | "milliseconds" | "millisec" => value,
        "s" | "sec" | "secs" | "second" | "seconds" => value * 1e3,
        "min" | "mins" | "minute" | "minutes" => value * 60e3,
        _ => return None,
    };
    // 0.101519 s is 101.519 ms, not 101.51899999999999: no tool prints more than nine decimals of a ms.
    Some(if ms.abs() < 1e6 && ms.abs() > 1e-3 { (ms * 1e9).round() / 1e9 } else { ms })
}

/// Whether a duration in ms can be a measurement: above zero and under ten days.
pub fn plausible_ms(value: f64) -> bool {
    value > 0.0 && value <= MAX_MS
}

/// Whether a rate per second can be a measurement.
pub fn plausible_rate(value: f64) -> bool {
    value > 0.0 && value <= MAX_RATE
}

/// Whether a number can be a count.
pub fn plausible_count(value: f64) -> bool {
    (0.0..=1e9).contains(&value) && value.fract() == 0.0
}

/// Damaged copies of a file, for tests that no input makes a reader panic: cut behind every byte, and `flips` times a few bytes changed.
/// Deterministic (xorshift).
pub fn damaged(bytes: &[u8], flips: u32) -> impl Iterator<Item = Vec<u8>> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as usize % below.max(1)
    };
    let cut = (0..bytes.len()).map(|end| bytes[..end].to_vec());
    cut.chain((0..flips).map(move |_| {
        let mut copy = bytes.to_vec();
        for _ in 0..=random(8) {
            let at = random(copy.len());
            if let Some(byte) = copy.get_mut(at) {
                *byte = random(256) as u8;
            }
        }
        copy
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clean_makes_one_kind_of_text() {
        let cases = [
            ("\u{feff}a\r\nb\r\r\nc\rd", "a\nb\nc\nd"),
            ("\u{1b}[1;31mred\u{1b}[0m \u{1b}]0;title\u{7}x", "red x"),
            ("a\u{a0}b\u{200b}c\0d\te", "a bcd\te"),
            ("cut \u{1b}[1;3", "cut "),
            ("cut \u{1b}", "cut "),
            ("\u{1b}[31\nnext", "\nnext"),
        ];
        for (text, expected) in cases {
            assert_eq!(clean(text), expected, "{text:?}");
        }
    }

    #[test]
    fn utf16_of_powershell_is_read() {
        let little: Vec<u8> = [0xff, 0xfe].into_iter().chain("1 ms\r\n".encode_utf16().flat_map(u16::to_le_bytes)).collect();
        assert_eq!(of(&SourceFile { name: String::new(), bytes: little }), "1 ms\n");
        assert_eq!(decode(&[0xfe, 0xff, 0, b'x', 0]), "x");
    }

    #[test]
    fn a_number_at_the_very_end_may_be_half_of_one() {
        let cases = [
            ("avg (us): 140", "avg (us): "),
            ("avg (us): 2755.", "avg (us): "),
            ("a,b,1.5e-0", "a,b,"),
            ("avg (us): 140\n", "avg (us): 140\n"),
            ("P99 Latency: 0.1 s", "P99 Latency: 0.1 s"),
            ("to generate", "to generate"),
            ("[1, 2]", "[1, 2]"),
            ("12", ""),
        ];
        for (text, expected) in cases {
            assert_eq!(of(&SourceFile { name: String::new(), bytes: text.as_bytes().to_vec() }), expected, "{text:?}");
        }
    }

    #[test]
    fn lines_are_those_of_the_whole_text() {
        for bytes in
            [&b"\xef\xbb\xbfa\r\nb\r\r\n\n\x1b[1mc\x1b[0m\rd\ne 140"[..], b"", b"\n\n", b"one", b"\xff\xfeno UTF-16 here\nx", b"12"]
        {
            let mut lines = Vec::new();
            // A reader that gives three bytes at a time.
            each_line(&mut io::BufReader::with_capacity(3, bytes), |line| lines.push(line.to_owned())).unwrap();
            let mut text = clean(&String::from_utf8_lossy(bytes));
            text.truncate(text.len() - cut_number(&text).len());
            let whole: Vec<&str> = text.lines().collect();
            assert_eq!(
                lines.iter().filter(|l| !l.is_empty()).collect::<Vec<_>>(),
                whole.iter().filter(|l| !l.is_empty()).collect::<Vec<_>>()
            );
        }
        let endless = vec![b'x'; (1 << 20) + 1];
        assert!(each_line(&mut &endless[..], |_| ()).is_err());
    }

    #[test]
    fn number_is_strict() {
        let cases = [
            ("12", Some(12.0)),
            (" 1.5e+06 ", Some(1.5e6)),
            ("-3", Some(-3.0)),
            ("1,234", None),
            ("1.234,5", None),
            ("nan", None),
            ("inf", None),
            ("1e999", None),
            ("0x10", None),
            ("", None),
            ("e", None),
            ("12ms", None),
            ("1.2.3", None),
        ];
        for (text, expected) in cases {
            assert_eq!(number(text), expected, "{text:?}");
        }
        assert_eq!((count("128"), count("1.5"), count("-1"), count("1e10")), (Some(128.0), None, None, None));
    }

    #[test]
    fn quantity_splits_number_and_unit() {
        let cases = [
            ("3.5 ms", Some((3.5, "ms"))),
            (" 3.5ms, next", Some((3.5, "ms"))),
            ("196067 us, Prompt", Some((196_067.0, "us"))),
            ("1.2e-05 s", Some((1.2e-5, "s"))),
            ("5e", Some((5.0, "e"))),
            ("98 %", Some((98.0, "%"))),
            ("7", Some((7.0, ""))),
            ("7,", Some((7.0, ""))),
            ("1,234 ms", None),
            ("nan ms", None),
            ("UNKNOWN", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(quantity(text), expected, "{text:?}");
        }
    }

    #[test]
    fn units_become_milliseconds() {
        let cases = [
            (1500.0, "us", Some(1.5)),
            (1500.0, "US", Some(1.5)),
            (2.0, "ms", Some(2.0)),
            (0.5, "s", Some(500.0)),
            (2_000_000.0, "ns", Some(2.0)),
            (2.0, "(µs)", Some(0.002)),
            (2.0, "cycles", None),
            (2.0, "", None),
        ];
        for (value, unit, expected) in cases {
            assert_eq!(to_ms(value, unit), expected, "{unit}");
        }
        assert!(plausible_ms(1.0) && !plausible_ms(0.0) && !plausible_ms(f64::NAN) && !plausible_ms(1.8e16));
        assert!(plausible_rate(30.0) && !plausible_rate(-1.0) && !plausible_rate(f64::INFINITY));
    }
}
