//! The patterns of the failure tables: literal text, `*` for any text, `{name}` for text that is kept, `^` and `$` for the ends of the line.
//! A pattern without capitals matches letters of either case, one with a capital matches exactly ("smart case"). Small enough to be read at a glance in
//! a table, and no input makes it slow.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The most characters of a line that are kept under a name.
const LONGEST: usize = 120;

/// One pattern.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Pattern {
    /// It has a capital letter: case counts.
    exact: bool,
    /// The line begins with the first literal.
    at_start: bool,
    /// Nothing follows the last part.
    at_end: bool,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    Any,
    Kept(String),
}

impl TryFrom<String> for Pattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let rest = text.strip_prefix('^').unwrap_or(&text);
        let at_start = rest.len() != text.len();
        let body = rest.strip_suffix('$').unwrap_or(rest);
        let at_end = body.len() != rest.len();
        let mut parts = Vec::new();
        let mut left = body;
        while !left.is_empty() {
            let next = if let Some(after) = left.strip_prefix('*') {
                (Part::Any, after)
            } else if let Some((name, after)) = left.strip_prefix('{').and_then(|open| open.split_once('}')) {
                (Part::Kept(name.to_owned()), after)
            } else {
                let end = left.find(['*', '{']).unwrap_or(left.len());
                if end == 0 {
                    return Err(format!("pattern `{text}`: a `{{` is not closed"));
                }
                (Part::Literal(left[..end].to_owned()), &left[end..])
            };
            if !matches!(next.0, Part::Literal(_)) && !matches!(parts.last(), None | Some(Part::Literal(_))) {
                return Err(format!("pattern `{text}`: text has to stand between two gaps"));
            }
            parts.push(next.0);
            left = next.1;
        }
        if !parts.iter().any(|part| matches!(part, Part::Literal(word) if word.len() > 2)) {
            return Err(format!("pattern `{text}`: it matches nearly anything"));
        }
        let exact = parts.iter().any(|part| matches!(part, Part::Literal(word) if word.bytes().any(|byte| byte.is_ascii_uppercase())));
        Ok(Self { exact, at_start, at_end, parts })
    }
}

impl Pattern {
    /// What stands under each name in a line that matches. `lower` is the line in lower case (ASCII), of the same length.
    pub(super) fn matches<'p>(&'p self, line: &str, lower: &str) -> Option<BTreeMap<&'p str, String>> {
        let text = if self.exact { line } else { lower };
        let mut kept = BTreeMap::new();
        let mut at = 0;
        let mut gap: Option<&Part> = None;
        for (i, part) in self.parts.iter().enumerate() {
            let Part::Literal(word) = part else {
                gap = Some(part);
                continue;
            };
            let anchored = i == 0 && self.at_start;
            let last = i + 1 == self.parts.len() && self.at_end;
            let found = match (anchored, last) {
                (true, _) => text.starts_with(word.as_str()).then_some(0),
                (false, true) => text.len().checked_sub(word.len()).filter(|&start| start >= at && text.ends_with(word.as_str())),
                (false, false) => text[at..].find(word.as_str()).map(|offset| at + offset),
            }?;
            if let Some(Part::Kept(name)) = gap.take() {
                kept.insert(name.as_str(), short(&line[at..found]));
            }
            at = found + word.len();
            if last && at != text.len() {
                return None;
            }
        }
        if let Some(Part::Kept(name)) = gap {
            // Nothing follows in the pattern: the word ends where the line's word does.
            let rest = &line[at..];
            let end = rest.find(|c: char| c.is_whitespace() || ",;\"')".contains(c)).unwrap_or(rest.len());
            kept.insert(name.as_str(), short(&rest[..end]));
        }
        Some(kept)
    }

    /// The names that it keeps.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| if let Part::Kept(name) = part { Some(name.as_str()) } else { None })
    }
}

fn short(text: &str) -> String {
    text.trim().chars().filter(|c| !c.is_control()).take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(pattern: &str, line: &str) -> Option<Vec<(String, String)>> {
        let pattern = Pattern::try_from(pattern.to_owned()).unwrap();
        let found = pattern.matches(line, &line.to_ascii_lowercase())?;
        Some(found.into_iter().map(|(name, text)| (name.to_owned(), text)).collect())
    }

    #[test]
    fn text_gaps_names_and_ends() {
        let pair = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        let killed = "lmkd: Kill 'com.x' (4711), uid 10";
        assert_eq!(kept("kill '{process}' ({pid}), uid", killed), Some(vec![pair("pid", "4711"), pair("process", "com.x")]));
        assert_eq!(kept("library \"{lib}\" not found", "a library \"libQnnHtp.so\" not found b"), Some(vec![pair("lib", "libQnnHtp.so")]));
        assert_eq!(kept("detected {version}", "Detected v2.19, expected"), Some(vec![pair("version", "v2.19")]));
        assert_eq!(kept("qnn*failed", "QNN: it Failed"), Some(vec![]));
        assert_eq!(kept("qnn*failed", "failed: QNN"), None);
        assert_eq!((kept("^killed$", "Killed"), kept("^Killed$", "killed")), (Some(vec![]), None));
        assert_eq!((kept("^killed$", "Killed it"), kept("^killed$", "I killed")), (None, None));
        assert_eq!((kept("denied$", "x denied, denied"), kept("denied$", "denied, x")), (Some(vec![]), None));
        // The end of the pattern must not overlap its beginning.
        assert_eq!((kept("^aaa*aaa$", "aaaa"), kept("^aaa*aaa$", "aaaaaa")), (None, Some(vec![])));
        assert_eq!((kept("failed é {name}", "FAILED é ÄÖ x"), kept("failed", "")), (Some(vec![pair("name", "ÄÖ")]), None));
    }

    #[test]
    fn patterns_that_say_nothing_are_refused() {
        for text in ["", "*", "ab", "{a}{b}xyz", "xyz*{b}", "abc{open", "^$"] {
            assert!(Pattern::try_from(text.to_owned()).is_err(), "{text}");
        }
    }
}
