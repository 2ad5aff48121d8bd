//! JSON (`-o json`: an array that is printed test by test) and JSONL (`-o jsonl`), alone or between lines of log.

use serde_json::{Map, Value};

/// What is JSON in a text.
#[derive(Debug, Default)]
pub(super) struct Documents {
    /// Objects, with the line where each begins.
    pub(super) objects: Vec<(usize, Map<String, Value>)>,
    /// Line and reason where reading stopped inside an object.
    pub(super) broken: Option<(usize, String)>,
    /// Line of an array that never ends: llama-bench stopped between two tests, or before the first.
    pub(super) open: Option<usize>,
    /// Line of an array without a test.
    pub(super) empty: Option<usize>,
}

/// Whether a line can begin a document.
fn begins(line: &str) -> bool {
    let line = line.trim();
    let next = |rest: &str| rest.trim_start().chars().next();
    match line.split_at_checked(1) {
        Some(("{", rest)) => next(rest).is_none_or(|c| matches!(c, '"' | '}')),
        Some(("[", rest)) => next(rest).is_none_or(|c| matches!(c, '{' | ']')),
        _ => false,
    }
}

/// Finds every document of a text.
pub(super) fn read(text: &str) -> Documents {
    let mut found = Documents::default();
    let mut at = 0;
    let mut line = 0;
    while at < text.len() {
        let rest = &text[at..];
        let length = rest.find('\n').map_or(rest.len(), |end| end + 1);
        line += 1;
        if !begins(&rest[..length]) {
            at += length;
            continue;
        }
        let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        if let Some(Ok(value)) = stream.next() {
            let end = stream.byte_offset();
            found.take(value, line, &rest[..end]);
            let tail = &rest[end..];
            let end = end + tail.find('\n').map_or(tail.len(), |end| end + 1);
            line += rest[..end].matches('\n').count().saturating_sub(1);
            at += end;
            continue;
        }
        let ours = rest.contains("\"n_prompt\"") || rest.contains("\"build_commit\"") || rest[..length].trim() == "[";
        if ours && salvage(rest, line, &mut found) {
            return found;
        }
        at += length;
    }
    found
}

impl Documents {
    fn take(&mut self, value: Value, line: usize, source: &str) {
        match value {
            Value::Object(fields) => self.objects.push((line, fields)),
            Value::Array(values) => {
                if values.is_empty() {
                    self.empty = Some(line);
                }
                // Each test of a pretty array begins with a line of its own.
                let mut starts = source.lines().enumerate().filter(|(_, text)| matches!(text.trim(), "{" | "[{" | "}, {" | "},{"));
                for value in values {
                    let start = starts.next().map_or(line, |(at, _)| line + at);
                    if let Value::Object(fields) = value {
                        self.objects.push((start, fields));
                    }
                }
            }
            _ => {}
        }
    }
}

/// Reads object by object what is no JSON as a whole: log lines in between, `inf` and `nan`, an end that is missing. False if nothing of it
/// is JSON.
fn salvage(text: &str, first: usize, found: &mut Documents) -> bool {
    let mut kept = String::new();
    let mut lines = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let start = line.trim_start().chars().next();
        let json = start.is_some_and(|c| matches!(c, '{' | '}' | '[' | ']' | '"' | '-') || c.is_ascii_digit());
        if json && !line.trim_start().starts_with("[ Prompt") {
            lines.push((kept.len(), first + at));
            kept.push_str(&finite(line));
            kept.push('\n');
        }
    }
    // Without the last line's end, a value that is cut there is an end of the text for the parser too.
    kept.pop();
    let line_at = |offset: usize| lines.iter().rev().find(|(start, _)| *start <= offset).map_or(first, |(_, line)| *line);
    let mut at = 0;
    let mut open = None;
    let before = found.objects.len();
    while let Some(c) = kept[at..].chars().next() {
        match c {
            '[' if open.is_none() && found.objects.len() == before => open = Some(line_at(at)),
            ']' if open.is_some() => {
                if found.objects.len() == before {
                    found.empty = open;
                }
                return true;
            }
            '{' => {
                let mut stream = serde_json::Deserializer::from_str(&kept[at..]).into_iter::<Map<String, Value>>();
                match stream.next() {
                    Some(Ok(fields)) => {
                        found.objects.push((line_at(at), fields));
                        at += stream.byte_offset();
                        continue;
                    }
                    Some(Err(error)) => {
                        let reason = error.to_string().split(" at line ").next().unwrap_or("").to_owned();
                        let inside = kept[at..].split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum::<usize>();
                        let line = line_at((at + inside).min(kept.len().saturating_sub(1)));
                        let reason =
                            if error.is_eof() { format!("the JSON is cut off: {reason}") } else { format!("broken JSON: {reason}") };
                        found.broken = Some((line, reason));
                        return true;
                    }
                    None => break,
                }
            }
            c if c == ',' || c.is_whitespace() => {}
            _ => break,
        }
        at += c.len_utf8();
    }
    found.open = open;
    open.is_some() || found.objects.len() > before
}

/// `std::to_string` prints `nan` and `inf`, which are no JSON: they become `null`, and so no metric.
fn finite(line: &str) -> String {
    if !line.contains("nan") && !line.contains("inf") {
        return line.to_owned();
    }
    let mut out = String::with_capacity(line.len());
    let (mut inside, mut escaped) = (false, false);
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        let word = ["-nan(ind)", "-nan", "nan", "-inf", "inf"].iter().find(|word| !inside && rest.starts_with(**word));
        if let Some(word) = word {
            out.push_str("null");
            rest = &rest[word.len()..];
            continue;
        }
        if c == '"' && !escaped {
            inside = !inside;
        }
        escaped = inside && c == '\\' && !escaped;
        out.push(c);
        rest = &rest[c.len_utf8()..];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_found_between_lines_of_log() {
        let text = "load_backend: loaded\n[\n  {\n    \"n_prompt\": 8,\nggml-hex: noise\n    \"avg_ts\": inf\n  },\n  {\n    \"n_prompt\": 9\n  }\n]\nbye\n";
        let found = read(text);
        let lines: Vec<usize> = found.objects.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [3, 8]);
        assert!(found.broken.is_none() && found.open.is_none() && found.empty.is_none());
        assert!(found.objects[0].1["avg_ts"].is_null());
    }

    #[test]
    fn ends_that_are_missing() {
        assert_eq!(read("[\n").open, Some(1));
        assert_eq!(read("[\n]\n").empty, Some(1));
        let cut = read("[\n  {\n    \"n_prompt\": 8\n  },\n");
        assert_eq!((cut.objects.len(), cut.open), (1, Some(1)));
        let broken = read("[\n  {\n    \"n_prompt\": 8,\n    \"avg_\n").broken.unwrap_or_default();
        assert!(broken.0 == 4 && broken.1.contains("cut off"), "{broken:?}");
    }

    #[test]
    fn lines_of_a_whole_array() {
        let found = read("\n[\n  {\n    \"n_prompt\": 8\n  },\n  {\n    \"n_prompt\": 9\n  }\n]\n{\"n_prompt\": 1}\n");
        let lines: Vec<usize> = found.objects.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [3, 6, 10]);
    }
}
