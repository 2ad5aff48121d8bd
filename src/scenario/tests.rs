//! Tests of the scenario module, with a fake backend.

mod ab;
mod axes;
mod errors;
mod fake;
mod hostile;
mod planning;
mod prefer;
mod require;
mod sharing;
mod shipped;
mod state;

use std::path::Path;

use bench_backend_api::Backend;

use super::{Problem, Problems, Scenario, check_text};
use fake::Fake;

/// A scenario without a problem, in a folder of its own with the files that it names.
const GOOD: &str = r#"name = "good"
[device]
local = true
[models.tiny]
context = 128
chunk = 32
[matrix]
backend = ["alpha", "beta"]
model = ["tiny"]
quant = ["fp16", "w4a16"]
prompt-tokens = [32, 96]
gen-tokens = [16]
[measure]
repetitions = { min = 3, max = 3 }
"#;

/// A line of its model that gives it a shape, in place of `chunk = 32`.
const GEOMETRY: &str = "geometry = \"scenarios/models/tiny-llama.toml\"";

const ALPHA: Fake = Fake { id: "alpha" };
const BETA: Fake = Fake { id: "beta" };
const BACKENDS: [&dyn Backend; 2] = [&ALPHA, &BETA];

fn check_in(dir: &Path, text: &str) -> Result<Scenario, Problems> {
    check_text("s.toml", text, dir, &BACKENDS, &["reader"])
}

fn check(text: &str) -> Result<Scenario, Problems> {
    check_in(Path::new("."), text)
}

/// The problems of a text that must have some.
fn problems(text: &str) -> Vec<Problem> {
    check(text).expect_err("the scenario should have problems").problems
}

/// The good scenario with a piece replaced.
fn with(old: &str, new: &str) -> String {
    assert!(GOOD.contains(old), "{old} is not in the good scenario");
    GOOD.replace(old, new)
}

/// `line:column message / help` of the only problem.
fn only(text: &str) -> String {
    let list = problems(text);
    assert_eq!(list.len(), 1, "{list:#?}");
    line(&list[0])
}

fn line(p: &Problem) -> String {
    format!("{}:{} {} / {}", p.line.unwrap_or(0), p.column.unwrap_or(0), p.message, p.help.as_deref().unwrap_or("-"))
}
