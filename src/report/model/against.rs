//! A metric against what was varied: TTFT against prompt length, decode rate against the depth of the context.

use super::figures::whole;
use super::groups::{BEHIND, Colours, Group, Timing, readable};
use super::view::{Chart, Grid, LegendKey};
use crate::report::ReportError;
use crate::report::charts::{Curve, Plot, curves, line_svg};
use crate::report::load::Cell;

/// Lines of one chart.
const LINES: usize = 8;

/// What is drawn against what.
pub struct Against {
    /// How the chart's title begins.
    pub title: &'static str,
    metric: &'static str,
    axis: &'static str,
    along: &'static str,
    x: fn(&Cell) -> i64,
    how: fn(Timing) -> String,
    more: &'static str,
}

/// TTFT against prompt length.
pub const LENGTH: Against = Against {
    title: "Time to first token against prompt length",
    metric: "ttft_ms",
    axis: "TTFT, ms",
    along: "prompt tokens",
    x: |cell| cell.prompt,
    how: |timing| timing.words(),
    more: "",
};

/// Decode rate against the depth at the end of a query.
pub const DEPTH: Against = Against {
    title: "Decode rate against context depth",
    metric: "decode_tok_s",
    axis: "tokens per second",
    along: "depth of the last step, tokens",
    x: depth,
    how: |timing| timing.decode_words().to_owned(),
    more: " A rate is the mean over the steps from the prompt's end to that depth. A static graph attends over the context that it was compiled for, whatever the depth: a level line then says nothing of deeper contexts.",
};

/// Tokens that the last step attends over; of a table without it, the prompt and all generated tokens but the last.
fn depth(cell: &Cell) -> i64 {
    cell.number("kv_depth").map_or(cell.prompt + cell.generate - 1, |tokens| tokens as i64)
}

/// One line for each backend, quantisation and generated length that was run with several prompts; `None` where none was.
pub fn against(
    group: &Group,
    cells: &[&Cell],
    colours: &Colours,
    what: &Against,
    scope: &str,
    timing: Timing,
) -> Result<Option<Chart>, ReportError> {
    let many = cells.iter().any(|cell| cell.generate != cells[0].generate);
    let label = |cell: &Cell| if many { format!("{}, {} tokens out", group.label(cell), cell.generate) } else { group.label(cell) };
    let mut series: Vec<(String, Vec<&Cell>)> = Vec::new();
    for cell in cells.iter().copied().filter(|cell| cell.metrics.contains_key(what.metric)) {
        match series.iter_mut().find(|(known, _)| *known == label(cell)) {
            Some((_, cells)) => cells.push(cell),
            None => series.push((label(cell), vec![cell])),
        }
    }
    if !series.iter().any(|(_, cells)| cells.len() > 1) {
        return Ok(None);
    }
    let mut table = Grid { columns: ["Series", what.along, what.axis].map(str::to_owned).to_vec(), ..Grid::default() };
    let (drawn, cut) = readable(&series, LINES, |(_, cells)| &cells[0].backend, "lines");
    let (behind, cut) = if cells.len() > BEHIND {
        (drawn.clone(), cut.replace("the table has", "the comparison above has"))
    } else {
        (series.iter().collect(), cut)
    };
    for (label, cells) in behind {
        let row = |cell: &&Cell| vec![label.clone(), (what.x)(cell).to_string(), whole(&cell.metrics[what.metric])];
        table.rows.extend(cells.iter().map(row));
    }
    let (mut lines, mut legend) = (Vec::new(), Vec::new());
    for (label, cells) in drawn {
        let mut line = Curve { colour: colours.get(&cells[0].backend), style: group.style(cells[0]), ..Curve::default() };
        for cell in cells {
            let estimate = &cell.metrics[what.metric];
            line.points.push(((what.x)(cell).max(1) as f64, estimate.median));
            line.intervals.push(estimate.interval.filter(|_| estimate.n != Some(1)));
        }
        legend.push(LegendKey { key: line_svg(line.colour, line.style), text: label.clone() });
        lines.push(line);
    }
    let title = format!("{}{scope}", what.title);
    let named = format!("{title}: {} lines, values in the table below", lines.len());
    let svg = curves(&lines, Plot::Lengths, what.along, what.axis, &named)?;
    let caption = format!(
        "Median with interval at each length that was run; {}. Between the points nothing was measured.{}{cut}",
        (what.how)(timing),
        what.more
    );
    Ok(Some(Chart { title, caption, wide: false, svg, legend, table }))
}
