//! `bench check SCENARIO...`: every problem of every file, without a device.

use std::{io::IsTerminal, path::PathBuf};

use serde_json::json;

use super::{Format, exit::Code};
use crate::scenario::{Problems, Severity};

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
                let warnings = scenario.warnings.clone();
                let own = crate::registry::commands(&scenario.commands);
                let plan = scenario.plan(&crate::registry::with(&own), &super::plan::facts(&scenario));
                (warnings, Some(plan.cells.len()))
            }
            Err(problems) => {
                code = Code::Scenario;
                (problems, None)
            }
        };
        match args.format {
            Format::Json => all.push(json(path, &problems, cells)),
            Format::Human => {
                super::note(problems.render(std::io::stderr().is_terminal()).trim_end());
                if let Some(cells) = cells {
                    super::print(&format!("{}: ok, {}\n", path.display(), crate::words::count(cells, "cell")))?;
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
