//! Which language is asked for, and what of a scenario's problems is said in it.

use std::path::Path;

use bench_backend_api::Cell;
use clap::ValueEnum;

use crate::{
    lang::{self, Lang},
    scenario::{Plan, Problems, Scenario},
};

/// The environment's word for it.
pub const VARIABLE: &str = "BENCH_LANG";

/// The language that a command line asks for, before it is parsed: help and errors of the parser are in it. What is said wrongly the parser tells.
pub fn asked(args: impl Iterator<Item = String>, variable: Option<String>) -> Lang {
    let args: Vec<String> = args.take_while(|arg| arg != "--").collect();
    let given = args.iter().enumerate().find_map(|(at, arg)| match arg.strip_prefix("--lang") {
        Some("") => args.get(at + 1).cloned(),
        Some(rest) => rest.strip_prefix('=').map(str::to_owned),
        None => None,
    });
    given.or(variable).and_then(|word| Lang::from_str(&word, true).ok()).unwrap_or_default()
}

/// A name of a scenario stays, even where it looks like a word of ours.
pub fn keep_scenario(scenario: &Scenario) {
    let matrix = &scenario.matrix;
    lang::keep(matrix.backend.iter().chain(&matrix.model).chain(&scenario.device.serial).map(String::as_str));
}

/// So does one of a plan.
pub fn keep_plan(plan: &Plan) {
    let of = |cell: &'_ Cell| [cell.backend.clone(), cell.model.name.clone()];
    let names: Vec<String> = plan.cells.iter().flat_map(|planned| of(&planned.cell)).collect();
    lang::keep(names.iter().map(String::as_str));
}

/// So does one that the table of a run folder has.
pub fn keep_run(folder: &Path) {
    let path = folder.join("cells.csv");
    if lang::spoken() == Lang::En || !path.is_file() {
        return;
    }
    let Ok(mut table) = csv::ReaderBuilder::new().flexible(true).from_path(path) else { return };
    let columns: Vec<usize> = match table.headers() {
        Ok(head) => ["backend", "model", "device"].iter().filter_map(|name| head.iter().position(|column| column == *name)).collect(),
        Err(_) => return,
    };
    for row in table.records().map_while(Result::ok) {
        lang::keep(columns.iter().filter_map(|at| row.get(*at)));
    }
}

/// Says what is wrong with a scenario, on standard error. What it quotes of the file stays as it is.
pub fn note_problems(problems: &Problems, colour: bool) {
    let said = |text: &String| lang::say(text).into_owned();
    let mut told = problems.clone();
    for problem in &mut told.problems {
        problem.message = said(&problem.message);
        problem.help = problem.help.as_ref().map(said);
    }
    let text = told.render(colour);
    let lines = text.trim_end().lines().map(|line| match line.strip_prefix("  help: ") {
        // A full-width colon has its space within.
        Some(help) => format!("  {}{help}", lang::say("help: ").replace("： ", "：")),
        None if line.starts_with("and ") => lang::say(line).into_owned(),
        None => line.to_owned(),
    });
    super::write_note(&lines.collect::<Vec<_>>().join("\n"));
}

#[cfg(test)]
mod tests {
    use super::{Lang, asked};

    #[test]
    fn the_command_line_goes_before_the_environment() {
        let of = |line: &str, variable: Option<&str>| asked(line.split(' ').map(str::to_owned), variable.map(str::to_owned));
        for (line, variable, lang) in [
            ("bench plan x", None, Lang::En),
            ("bench plan x --lang zh", None, Lang::Zh),
            ("bench --lang=ZH plan x", None, Lang::Zh),
            ("bench plan x", Some("zh"), Lang::Zh),
            ("bench --lang en plan x", Some("zh"), Lang::En),
            ("bench plan --lang", Some("zh"), Lang::Zh),
            ("bench plan --language zh", None, Lang::En),
            ("bench plan --lang xy", None, Lang::En),
            ("bench plan -- --lang zh", None, Lang::En),
        ] {
            assert_eq!(of(line, variable), lang, "{line} {variable:?}");
        }
    }
}
