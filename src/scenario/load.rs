//! From a file to a checked scenario.

use std::{fs::File, io::Read, path::Path, sync::Arc};

use bench_backend_api::Backend;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_spanned::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};

use super::{
    ab::{in_both, overlay},
    check,
    checked::Scenario,
    problem::{Collector, Problem, Problems},
    schema::SCHEMA,
    source::SourceText,
    walk::Walk,
    wire,
};

type Document<'i> = Spanned<DeTable<'i>>;

/// A scenario is written by hand; what is larger than this is not one.
const MAX_BYTES: u64 = 8 << 20;

/// Reads and checks a scenario. `readers` are the ids that only `bench parse` knows, for a better message.
///
/// # Errors
/// Every problem of the file and of the files it names.
pub fn load(path: &Path, backends: &[&dyn Backend], readers: &[&str]) -> Result<Scenario, Problems> {
    let name = path.display().to_string();
    let text = read_text(path).map_err(|problem| Problems { file: problem.file.clone(), problems: vec![*problem], omitted: 0 })?;
    let dir = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    check_text(&name, &text, dir, backends, readers)
}

/// Checks a scenario's text, with `name` for messages; its paths are relative to `dir`.
///
/// # Errors
/// Every problem of the text and of the files it names.
pub fn check_text(name: &str, text: &str, dir: &Path, backends: &[&dyn Backend], readers: &[&str]) -> Result<Scenario, Problems> {
    let source = SourceText::new(name, text);
    let checked = |file: Option<(wire::File, Vec<String>)>, mut out: Collector| {
        let scenario = file.map(|(file, damaged)| check::check(file, damaged, text, dir, backends, readers, &mut out));
        let (problems, failed) = out.finish();
        match scenario {
            Some(scenario) if !failed => Ok(Scenario { warnings: problems, ..scenario }),
            _ => Err(problems),
        }
    };
    let mut out = Collector::new(Arc::clone(&source));
    let Some(mut document) = parse(text, &mut out) else { return checked(None, out) };
    let over = match document.get_ref().get(AB).map(Spanned::get_ref) {
        // It must be a table: the walk says so.
        Some(DeValue::Table(over)) => Some(over.clone()),
        _ => None,
    };
    if over.is_some() {
        document.get_mut().remove(AB);
    }
    let file = read(document.clone(), &SCHEMA, &mut out);
    let mut scenario = checked(file, out)?;
    if let Some(over) = over {
        let mut out = Collector::new(source);
        for (at, words) in in_both(document.get_ref(), &over) {
            let help = "name in [ab.matrix] only what the first side has not, or take it out of one of the two";
            out.warning(at, words, help.to_owned());
        }
        overlay(document.get_mut(), &over);
        let file = read(document, &SCHEMA, &mut out);
        let second = checked(file, out)?;
        let known = |problem: &&Problem| {
            scenario.warnings.problems.iter().any(|known| known.place() == problem.place() && known.message == problem.message)
        };
        let fresh: Vec<Problem> = second.warnings.problems.iter().filter(|problem| !known(problem)).cloned().collect();
        scenario.warnings.problems.extend(fresh);
        scenario.ab = Some(Box::new(second));
    }
    Ok(scenario)
}

/// The section with the second side of an A/B run.
const AB: &str = "ab";

/// Reads a file that should be text.
pub(super) fn read_text(path: &Path) -> Result<String, Box<Problem>> {
    let name = path.display().to_string();
    let fail = |message: &str, help: &str| Box::new(Problem::of_file(&name, message, Some(help.to_owned())));
    let unreadable = |e: std::io::Error| fail(&format!("can't be read: {e}"), "check the path; it is relative to where you are");
    let mut bytes = Vec::new();
    File::open(path).map_err(unreadable)?.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(fail("is over 8 MB long", "is it the right file?"));
    }
    String::from_utf8(bytes).map_err(|e| {
        let good = &e.as_bytes()[..e.utf8_error().valid_up_to()];
        let (line, column) = SourceText::new(&name, &String::from_utf8_lossy(good)).position(good.len());
        let problem = fail("not UTF-8 text", "save the file as UTF-8");
        Box::new(Problem { line: Some(line), column: Some(column), ..*problem })
    })
}

/// Reads a TOML document as a wire type with that schema: all syntax errors, or else all unknown keys, wrong types and missing keys. The second
/// result is the paths at which something was taken out. `None` when nothing could be made of it.
pub(super) fn read_toml<T: DeserializeOwned>(text: &str, schema: &Value, out: &mut Collector) -> Option<(T, Vec<String>)> {
    read(parse(text, out)?, schema, out)
}

fn parse<'i>(text: &'i str, out: &mut Collector) -> Option<Document<'i>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        for e in errors {
            out.error(e.span().unwrap_or_default(), format!("not TOML: {}", e.message().replace('\n', ", ")), None);
        }
        return None;
    }
    Some(table)
}

fn read<T: DeserializeOwned>(table: Document<'_>, schema: &Value, out: &mut Collector) -> Option<(T, Vec<String>)> {
    let (table, damaged) = Walk::document(schema, table, out);
    match T::deserialize(Deserializer::from(table)) {
        Ok(file) => Some((file, damaged)),
        Err(e) => {
            // The walk should have seen it; if it did not, serde's own words are better than none.
            out.error(e.span().unwrap_or_default(), e.message(), None);
            None
        }
    }
}
