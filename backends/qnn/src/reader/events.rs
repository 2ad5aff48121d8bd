//! The lines of a QNN profile's text: headings of sections, and events with a value and a unit.

use bench_backend_api::text::quantity;

/// Where in the text a line stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    None,
    Init,
    Compose,
    Finalize,
    DeInit,
    Average,
    Min,
    Max,
    Overall,
    /// Single executions.
    Runs,
    Other,
}

/// A line with a value.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Without `Backend (` and `)`.
    pub key: String,
    /// `None` for `UNKNOWN`.
    pub value: Option<f64>,
    /// In lower case.
    pub unit: String,
}

/// A row of an operation; the details of linting (`Wait (Scheduler) time`) are none.
pub fn is_op(entry: &Entry) -> bool {
    let lower = entry.key.to_ascii_lowercase();
    let detail = ["wait (", "overlap ", "overlap(", "accelerator (", "accelerator("].iter().any(|start| lower.starts_with(start));
    match entry.unit.as_str() {
        "cycles" => !detail,
        "us" => entry.key.contains("OpId_"),
        _ => false,
    }
}

/// What linting says of the operation above it, as a name with its unit and a value: `Wait (Scheduler) time: 32 cycles`, `Resources: HVX, DMA`.
pub fn detail(entry: &Entry) -> Option<(&'static str, String)> {
    let lower = entry.key.to_ascii_lowercase();
    if lower == RESOURCES {
        return Some((RESOURCES, entry.unit.clone()));
    }
    let name = [("wait (", "wait_cycles"), ("overlap (wait", "overlap_wait_cycles"), ("overlap time", "overlap_cycles")];
    let (_, name) = name.into_iter().find(|(start, _)| lower.starts_with(start))?;
    Some((name, entry.value.filter(|_| entry.unit == "cycles")?.to_string()))
}

/// The line with the parts of the accelerator that an operation uses, which is a list and no number.
pub const RESOURCES: &str = "resources";

/// Splits a line into key, value and unit. The value stands behind the last colon, since names of operations hold colons.
pub fn entry(line: &str) -> Option<Result<Entry, String>> {
    let (key, value) = line.rsplit_once(':')?;
    let mut key = key.trim();
    if key.eq_ignore_ascii_case(RESOURCES) {
        return Some(Ok(Entry { key: key.to_owned(), value: None, unit: value.trim().to_owned() }));
    }
    // Loggers: `event[1]: RPC (execute) time, duration: 29.409 ms`, `Init Event Name: RPC (load binary) time, Event Data: 16303 us`.
    let mut assumed = "";
    for (end, unit) in [(", duration", ""), (", count", "count"), (", cycles", "cycles"), (", Event Data", "")] {
        if let Some(rest) = key.strip_suffix(end) {
            assumed = unit;
            key = rest.rfind("event[").and_then(|at| rest[at..].split_once("]: ")).map_or(rest, |(_, name)| name);
            key = key.split_once("Event Name: ").map_or(key, |(_, name)| name);
        }
    }
    let key = key.trim();
    let key = key.strip_prefix("Backend (").and_then(|inner| inner.strip_suffix(')')).unwrap_or(key).trim();
    if key.is_empty() {
        return None;
    }
    let words: Vec<&str> = value.split_whitespace().collect();
    if words.len() > 3 || words.is_empty() {
        return None;
    }
    if words[0].eq_ignore_ascii_case("UNKNOWN") {
        let unit = words.get(1).map_or(assumed, |unit| unit).to_ascii_lowercase();
        return is_unit(&unit).then(|| Ok(Entry { key: key.to_owned(), value: None, unit }));
    }
    match quantity(value) {
        Some((value, unit)) => {
            let unit = if unit.is_empty() { assumed } else { unit }.to_ascii_lowercase();
            is_unit(&unit).then(|| Ok(Entry { key: key.to_owned(), value: Some(value), unit }))
        }
        None if words.get(1).is_some_and(|unit| is_unit(&unit.to_ascii_lowercase())) => {
            Some(Err(format!("{key}: `{}` is not a plain number, the value is left out", words[0])))
        }
        None => None,
    }
}

pub fn is_unit(unit: &str) -> bool {
    matches!(unit, "us" | "µs" | "ms" | "s" | "sec" | "ns" | "cycles" | "cycle" | "count" | "bytes" | "inf/sec" | "inf/s" | "%")
}

/// The section that a heading opens. Underlines, and what Markdown makes of them, are dropped first.
pub fn heading(line: &str) -> Option<Heading> {
    let text = line.trim_matches(|c: char| c.is_whitespace() || matches!(c, '-' | '=' | '#' | '*' | '_'));
    let text = text.strip_suffix(':')?.trim_end();
    let lower = text.to_ascii_lowercase();
    if let Some(rest) = lower.strip_prefix("graph ") {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let name = text["graph ".len() + digits..].trim();
        let name = name.strip_prefix('(').and_then(|name| name.strip_suffix(')')).unwrap_or(name);
        return (digits > 0).then(|| Heading::Graph(if name.is_empty() { text.to_owned() } else { name.to_owned() }));
    }
    let section = match lower.as_str() {
        "total inference time" => return Some(Heading::Nothing),
        _ if !lower.contains("stat") => return None,
        _ if lower.starts_with("init ") => Section::Init,
        _ if lower.starts_with("compose ") => Section::Compose,
        _ if lower.starts_with("finalize ") => Section::Finalize,
        _ if lower.starts_with("de-init ") || lower.starts_with("deinit ") => Section::DeInit,
        _ if lower.starts_with("execute ") && lower.contains("average") => Section::Average,
        _ if lower.starts_with("execute ") && lower.contains("min") => Section::Min,
        _ if lower.starts_with("execute ") && lower.contains("max") => Section::Max,
        _ if lower.starts_with("execute ") && lower.contains("overall") => Section::Overall,
        "execute stats" => Section::Runs,
        _ if lower.starts_with("qnn ") && lower.ends_with("statistics") => return Some(Heading::Title),
        _ if lower.ends_with("stats") || lower.contains("stats (") => Section::Other,
        _ => return None,
    };
    Some(Heading::Section(section))
}

pub enum Heading {
    Section(Section),
    Graph(String),
    Title,
    Nothing,
}
