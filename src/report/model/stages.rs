//! The parts of a load, of a prompt and of a decode step, each beginning where the last one ended.

use super::figures::{DASH, number};
use super::groups::{Group, listed, readable, workload};
use super::view::{Chart, Grid};
use super::why::{chosen, label};
use crate::report::ReportError;
use crate::report::charts::{Ends, Piece, STAGES, Stack, stacks};
use crate::report::load::{Cell, PhaseShare, Run};

/// Cells of one chart.
const CELLS: usize = 6;

/// Stages in the order of a request, and what one of them is.
const ORDER: [(&str, &str); 4] = [
    ("load", "One load, the model in the page cache"),
    ("load_cold", "One cold load"),
    ("prefill", "One prompt, until its first token"),
    ("decode", "One decode step"),
];

/// A cell with the parts of one of its stages.
type Of<'a> = (String, &'a Cell, Vec<&'a PhaseShare>);

/// One chart for each stage of this pass.
pub fn stages(run: &Run, groups: &[Group], pass: &str) -> Result<Vec<Chart>, ReportError> {
    let mut found = Vec::new();
    for (stage, title) in ORDER {
        let mut cells: Vec<Of> = Vec::new();
        for group in groups {
            for cell in chosen(group) {
                let parts = run.phases.get(&cell.key).into_iter().flatten().filter(|part| part.stage == stage && part.pass == pass);
                let parts: Vec<&PhaseShare> = parts.collect();
                if !parts.is_empty() {
                    cells.push((label(groups, group, cell), cell, parts));
                }
            }
        }
        if !cells.is_empty() {
            found.push(chart(&cells, stage, title, pass)?);
        }
    }
    Ok(found)
}

fn chart(cells: &[Of], stage: &str, title: &str, pass: &str) -> Result<Chart, ReportError> {
    let (drawn, cut) = readable(cells, CELLS, |(_, cell, _)| &cell.backend, "cells");
    let rows: Vec<Stack> = drawn
        .into_iter()
        .flat_map(|(label, cell, parts)| steps(&format!("{label}, {} tokens", workload((cell.prompt, cell.generate))), parts))
        .collect();
    let mut table = Grid {
        columns: ["Cell", "workload", "part", "launches", "ms", "interval, ms", "share, %", "method"].map(str::to_owned).to_vec(),
        text: true,
        ..Grid::default()
    };
    for (label, cell, parts) in cells {
        table.rows.extend(parts.iter().map(|part| {
            let ends = part.interval.filter(|_| part.n > 1);
            vec![
                label.clone(),
                workload((cell.prompt, cell.generate)),
                words(part),
                part.n.to_string(),
                number(part.ms),
                ends.map_or_else(|| DASH.to_owned(), |(lo, hi)| format!("{}–{}", number(lo), number(hi))),
                percent(part.share),
                part.method.clone(),
            ]
        }));
    }
    let made = if pass == "measure" {
        "Medians of the launches that were measured"
    } else {
        "One launch of the profile pass, which profiling slows: no figure of the measurement"
    };
    let has = |test: fn(&PhaseShare) -> bool| cells.iter().any(|(.., parts)| parts.iter().any(|part| test(part)));
    let mut more = String::new();
    for (wanted, sentence) in [
        (has(|part| part.phase.contains('/')), " Faint: part of the part above."),
        (has(|part| part.phase == "unaccounted"), " Grey: what no part accounts for."),
        (has(|part| part.method == "whole"), " In one piece: the runtime does not tell its parts apart."),
        (has(|part| part.method == "composed"), " Composed from graph times: a bound that no engine reaches."),
    ] {
        more.push_str(if wanted { sentence } else { "" });
    }
    let shared: Vec<&str> = cells.iter().filter(|(_, cell, _)| shares(cell)).map(|(label, ..)| label.as_str()).collect();
    if pass == "measure" && stage.starts_with("load") && !shared.is_empty() {
        more = format!(
            "{more} Launches that cells shared load once, which counts for the cell whose queries came first: {}.",
            listed(&shared)
        );
    }
    let title = title.to_owned();
    let caption =
        format!("{made}; in all: the sum of the parts. At the right ms, share of all of the launches' time, and method.{more}{cut}");
    let svg = stacks(&rows, Ends::Round, "ms", &format!("{title}, {pass}: its parts one behind the other, values in the table below"))?;
    Ok(Chart { title, caption, wide: true, svg, legend: Vec::new(), table })
}

fn shares(cell: &Cell) -> bool {
    cell.number("cells_a_launch").is_some_and(|cells| cells > 1.0)
}

/// A row for each part. A part of a part begins where that began.
fn steps(name: &str, parts: &[&PhaseShare]) -> Vec<Stack> {
    let whole: f64 = parts.iter().filter(|part| !part.phase.contains('/')).map(|part| part.ms).sum();
    let launches = parts.iter().map(|part| part.n).max().unwrap_or(0);
    let noun = if launches == 1 { "launch" } else { "launches" };
    let heading = format!("{name}: {} ms in all, {launches} {noun}", number(whole));
    let (mut rows, mut begun, mut end, mut inner) = (Vec::new(), 0.0, 0.0, 0.0);
    for part in parts {
        let nested = part.phase.contains('/');
        if !nested {
            (begun, end, inner) = (end, end + part.ms, end);
        }
        let from = if nested { inner } else { begun };
        if nested {
            inner += part.ms;
        }
        let swatch = STAGES[usize::from(part.phase == "unaccounted")];
        let piece = Piece { from, to: from + part.ms, swatch, faint: nested, label: String::new() };
        rows.push(Stack {
            heading: rows.is_empty().then(|| heading.clone()),
            label: words(part),
            pieces: vec![piece],
            figure: format!("{} ms · {} % · {}", number(part.ms), percent(part.share), part.method),
            ..Stack::default()
        });
    }
    rows
}

fn words(part: &PhaseShare) -> String {
    let name = part.phase.rsplit_once('/').map_or_else(|| part.phase.clone(), |(_, inner)| format!("↳ {inner}"));
    if part.method == "whole" { format!("{name}, in one piece") } else { name }
}

fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent > 0.0 && percent < 0.05 { "under 0.1".into() } else { format!("{percent:.1}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_follow_each_other_and_parts_of_parts_begin_with_them() {
        let part = |phase: &str, ms| PhaseShare {
            pass: "measure".into(),
            stage: "decode".into(),
            phase: phase.into(),
            n: 3,
            ms,
            interval: None,
            share: ms / 10.0,
            method: "events".into(),
        };
        let parts = [part("h2d", 2.0), part("execute", 7.0), part("execute/rpc", 1.0), part("execute/dsp", 6.0), part("unaccounted", 1.0)];
        let rows = steps("a", &parts.iter().collect::<Vec<_>>());
        let ends: Vec<(f64, f64)> = rows.iter().map(|row| (row.pieces[0].from, row.pieces[0].to)).collect();
        assert_eq!(ends, [(0.0, 2.0), (2.0, 9.0), (2.0, 3.0), (3.0, 9.0), (9.0, 10.0)]);
        assert_eq!(rows[0].heading.as_deref(), Some("a: 10.0 ms in all, 3 launches"));
        assert_eq!((rows[2].label.as_str(), rows[2].figure.as_str()), ("↳ rpc", "1.00 ms · 10.0 % · events"));
    }
}
