//! `bench check SCENARIO...`: every problem of every file, without a device.

use std::{io::IsTerminal, path::PathBuf};

use serde_json::json;

use super::{Format, exit::Code, plan};
use crate::{
    safe::printable,
    scenario::{Problem, Problems, Severity, pair},
};

/// Checks scenario files, without a device
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Scenario files
    #[arg(required = true)]
    scenarios: Vec<PathBuf>,
    /// How problems are printed
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

pub fn main(args: &Args) -> anyhow::Result<Code> {
    let mut code = Code::Done;
    let mut all = Vec::new();
    for path in &args.scenarios {
        let (problems, cells) = match super::load(path) {
            Ok(scenario) => {
                let mut problems = scenario.warnings.clone();
                let facts = plan::facts(&scenario.device);
                let mut plans: Vec<_> = plan::sides(scenario).iter().map(|side| plan::of(side, &facts)).collect();
                // What has no partner is said by `bench plan`.
                let bad = if let [a, b] = &mut plans[..] { pair(a, b).err() } else { None };
                if let Some(bad) = bad {
                    code = Code::Scenario;
                    problems.problems.push(Problem::of_file(&problems.file, &bad.to_string(), None));
                    (problems, None)
                } else {
                    (problems, Some(plans.iter().map(|plan| plan.cells.len()).sum()))
                }
            }
            Err(problems) => {
                code = Code::Scenario;
                (problems, None)
            }
        };
        match args.format {
            Format::Json => all.push(json(path, &problems, cells)),
            Format::Human => {
                super::note_problems(&problems, std::io::stderr().is_terminal());
                if let Some(cells) = cells {
                    super::say(&format!("{}: ok, {}\n", printable(&path.display().to_string()), crate::words::count(cells, "cell")))?;
                }
            }
        }
    }
    if args.format == Format::Json {
        super::print(&format!("{}\n", serde_json::to_string_pretty(&all)?))?;
    }
    Ok(code)
}

fn json(path: &std::path::Path, problems: &Problems, cells: Option<usize>) -> serde_json::Value {
    let list: Vec<_> = problems
        .problems
        .iter()
        .map(|p| {
            let severity = if p.severity == Severity::Error { "error" } else { "warning" };
            json!({"severity": severity, "file": p.file, "line": p.line, "column": p.column, "message": p.message, "help": p.help})
        })
        .collect();
    json!({"file": path.display().to_string(), "ok": cells.is_some(), "cells": cells, "problems": list})
}
