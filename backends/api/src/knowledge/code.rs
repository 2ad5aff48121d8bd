//! Error codes in lines of text. A code stands anywhere in a line: kernel messages are printed into the middle of other lines.

/// A number of a line that may be an error code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Number<'a> {
    /// As it stands in the line: `0x80000406`, `-6`, `5005`.
    pub text: &'a str,
    /// Its value, where it fits: of `0x138d` that is 5005.
    value: i64,
    /// A word such as `err` or `status` stands before it, or it is an error of FastRPC by its form (0x8...).
    pub introduced: bool,
    /// The line ends with it.
    pub last: bool,
}

impl Number<'_> {
    /// Whether it is this code. It has to be introduced or to end the line, since a path or a size may hold the same digits; a hexadecimal number of
    /// several bytes is a code wherever it stands.
    pub fn is(&self, code: &str) -> bool {
        let hexadecimal = self.text.starts_with("0x") || self.text.starts_with("0X");
        (self.introduced || self.last || (hexadecimal && self.value > 0xff)) && value(code).is_some_and(|value| value == self.value)
    }

    /// Whether it has the form of an error of FastRPC (0x8...).
    pub fn is_remote(&self) -> bool {
        self.value >= 0x8000_0000
    }
}

/// Words that introduce a code.
const INTRODUCTIONS: [&str; 8] = ["err", "error", "code", "status", "symbols", "statuscode", "transportstatus", "nerr"];

/// The numbers of a line, in order; of at most six decimal or eight hexadecimal digits.
pub fn numbers(line: &str) -> Vec<Number<'_>> {
    let words = words(line);
    let mut before = "";
    let mut found = Vec::new();
    for (place, &text) in words.iter().enumerate() {
        if let Some(value) = value(text) {
            let introduced = INTRODUCTIONS.iter().any(|word| before.eq_ignore_ascii_case(word)) || value >= 0x8000_0000;
            found.push(Number { text, value, introduced, last: place + 1 == words.len() });
        }
        before = text;
    }
    found
}

fn value(text: &str) -> Option<i64> {
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return (hex.len() <= 8).then(|| u32::from_str_radix(hex, 16).ok().map(i64::from)).flatten();
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    let plain = !digits.is_empty() && digits.len() <= 6 && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

/// The words and numbers of a line; a minus belongs to a number only behind a space, `=` or `:`.
fn words(line: &str) -> Vec<&str> {
    line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-'))
        .map(|word| {
            let number = word.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
            if number { word } else { word.trim_start_matches('-') }
        })
        .filter(|word| !word.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_introduced_or_last_or_hexadecimal() {
        let is = |line: &str, code: &str| numbers(line).iter().any(|number| number.is(code));
        for (line, code) in [
            ("context index[568761.9] qcom,fastrpc-cb a300000.remoteproc:glink = 0 : err 5005", "5005"),
            ("Failed to create context from binary with err 0x138d", "5005"),
            ("fastrpc_apps_user.c:4247: Error 0x80000406: open_dev (-1) failed", "0x80000406"),
            ("Unable to load Remote symbols 4000", "4000"),
            ("transportStatus = -1", "-1"),
            ("failed, 14001", "14001"),
        ] {
            assert!(is(line, code), "{line}");
        }
        for (line, code) in [
            ("Failed to load /data/14001/libQnnHtp.so", "14001"),
            ("5005 bytes could not be read", "5005"),
            ("err 15005", "5005"),
            ("err 99999999999999999999", "5005"),
            ("err 0x1234567890abcdef", "5005"),
            ("", "0"),
        ] {
            assert!(!is(line, code), "{line}");
        }
    }
}
