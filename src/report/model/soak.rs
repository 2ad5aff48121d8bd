//! Soaks: how long each cell kept its pace, what throttled, and when.

use super::details::{field, name};
use super::figures::{DASH, number};
use super::groups::{Colours, Group, readable};
use super::lines::thinned;
use super::timeline::{part, words};
use super::view::{Chart, Grid, LegendKey, SoakView};
use crate::device::zones::Domain;
use crate::report::ReportError;
use crate::report::charts::{Bar, Curve, Line, Plot, Strip, bars, curves, line_svg, strips};
use crate::report::load::{Cell, Run, Soak};

/// Cells with strips of their own: each takes much of a page.
const MOST: usize = 4;
/// Lines of one chart.
const LINES: usize = 8;

/// Columns of `cells.csv` and their headings.
const COLUMNS: [(&str, &str); 20] = [
    ("soak_ended", "ended"),
    ("soak_check_tokens", "tokens"),
    ("soak_s", "seconds"),
    ("soak_tok_s", "tok/s at the start"),
    ("sustained_ratio", "sustained ratio"),
    ("soak_minute_1_tok_s", "tok/s, minute 1"),
    ("soak_minute_1_rank", "rank, minute 1"),
    ("soak_minute_30_tok_s", "tok/s, minute 30"),
    ("soak_minute_30_rank", "rank, minute 30"),
    ("time_to_throttle_s", "throttles after, s"),
    ("first_throttle", "first to throttle"),
    ("throttled_fraction", "share throttled"),
    ("steady_state_s", "steady after, s"),
    ("peak_npu_c", "peak NPU, °C"),
    ("peak_cpu_c", "peak CPU, °C"),
    ("peak_skin_c", "peak skin, °C"),
    ("rise_c_per_min_60s", "rise in 60 s, °C/min"),
    ("rise_c_per_min_5min", "rise in 5 min, °C/min"),
    ("latency_temp_ms_per_c", "ITL per °C, ms"),
    ("latency_temp_rho", "rank correlation"),
];

/// The soaks of a set; `None` where there was none.
pub fn soak(run: &Run, group: &Group, colours: &Colours) -> Result<Option<SoakView>, ReportError> {
    let cells: Vec<&Cell> = group.cells.iter().copied().filter(|cell| cell.text("soak_ended").is_some()).collect();
    if cells.is_empty() {
        return Ok(None);
    }
    let having: Vec<(&Cell, &Soak)> =
        cells.iter().filter_map(|cell| Some((*cell, run.soaks.get(&cell.key).filter(|soak| soak.seconds > 0.0)?))).collect();
    let mut charts: Vec<Chart> = minutes(group, &cells, colours)?.into_iter().collect();
    if !having.is_empty() {
        charts.push(throughput(group, &having, colours)?);
    }
    let (drawn, cut) = readable(&having, MOST, |(cell, _)| &cell.backend, "cells");
    for (cell, soak) in drawn {
        charts.push(one(group, cell, soak, if cut.is_empty() { "" } else { " Not every soak is drawn; soak.csv has them all." })?);
    }
    let events = events(group, &having);
    Ok(Some(SoakView { table: table(group, &cells), charts, events: (!events.rows.is_empty()).then_some(events) }))
}

fn table(group: &Group, cells: &[&Cell]) -> Grid {
    let used: Vec<&(&str, &str)> = COLUMNS.iter().filter(|(column, _)| cells.iter().any(|cell| cell.text(column).is_some())).collect();
    let value = |cell: &Cell, column: &str| match cell.number(column) {
        Some(figure) if !column.ends_with("_rank") => number(figure),
        _ => field(cell, column),
    };
    let rows = cells.iter().map(|cell| {
        let values = used.iter().map(|(column, _)| value(cell, column));
        std::iter::once(name(group, cell)).chain(values).collect()
    });
    Grid {
        title: "What the soak says".into(),
        columns: std::iter::once("Cell").chain(used.iter().map(|(_, word)| *word)).map(str::to_owned).collect(),
        rows: rows.collect(),
        text: true,
        open: true,
    }
}

fn of(soak: &Soak, column: &str) -> Vec<(f64, f64)> {
    soak.series.get(column).cloned().unwrap_or_default()
}

/// Rate of the first minute beside that of the thirtieth; `None` where no soak lasted that long.
fn minutes(group: &Group, cells: &[&Cell], colours: &Colours) -> Result<Option<Chart>, ReportError> {
    const MINUTES: [(&str, &str); 2] = [("soak_minute_1_tok_s", "minute 1"), ("soak_minute_30_tok_s", "minute 30")];
    let rate = |cell: &Cell, column| cell.number(column).filter(|rate| *rate >= 0.0);
    let having: Vec<&Cell> = cells.iter().copied().filter(|cell| MINUTES.iter().all(|(column, _)| rate(cell, column).is_some())).collect();
    if having.is_empty() {
        return Ok(None);
    }
    let mut table = Grid { columns: ["Cell", "minute 1, tok/s", "minute 30, tok/s"].map(str::to_owned).to_vec(), ..Grid::default() };
    let figure = |cell: &Cell, column| rate(cell, column).map_or_else(|| DASH.to_owned(), number);
    table.rows.extend(
        having
            .iter()
            .map(|cell| std::iter::once(name(group, cell)).chain(MINUTES.iter().map(|(column, _)| figure(cell, column))).collect()),
    );
    let (drawn, cut) = readable(&having, LINES, |cell| &cell.backend, "cells");
    let mut rows = Vec::new();
    for cell in drawn {
        rows.extend(MINUTES.iter().enumerate().map(|(at, (column, words))| Bar {
            label: (*words).to_owned(),
            colour: colours.get(&cell.backend),
            value: rate(cell, column).unwrap_or_default(),
            interval: None,
            figure: figure(cell, column),
            heading: (at == 0).then(|| name(group, cell)),
        }));
    }
    let title = "Thermal soak: minute 1 against minute 30".to_owned();
    let named = format!("{title}: horizontal bars of {} cells; the values are in the table below", rows.len() / 2);
    let caption = format!("Tokens over one minute of the soak, of one launch a cell, hence no interval. One axis from zero.{cut}");
    Ok(Some(Chart {
        title,
        caption,
        wide: false,
        svg: bars(&rows, "tokens per second, higher is better", &named)?,
        legend: Vec::new(),
        table,
    }))
}

fn throughput(group: &Group, having: &[(&Cell, &Soak)], colours: &Colours) -> Result<Chart, ReportError> {
    let mut table =
        Grid { columns: ["Cell", "windows", "first, tok/s", "least", "most", "last"].map(str::to_owned).to_vec(), ..Grid::default() };
    for (cell, soak) in having {
        let points = of(soak, "tok_s");
        let values = || points.iter().map(|point| point.1);
        let end = |point: Option<&(f64, f64)>| point.map_or_else(|| DASH.to_owned(), |point| number(point.1));
        let (least, most) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
        table.rows.push(vec![
            name(group, cell),
            points.len().to_string(),
            end(points.first()),
            number(least),
            number(most),
            end(points.last()),
        ]);
    }
    let (drawn, cut) = readable(having, LINES, |(cell, _)| &cell.backend, "cells");
    let (mut lines, mut legend) = (Vec::new(), Vec::new());
    for (cell, soak) in drawn {
        let points = thinned(&of(soak, "tok_s"));
        let line = Curve { colour: colours.get(&cell.backend), style: group.style(cell), points, intervals: Vec::new() };
        legend.push(LegendKey { key: line_svg(line.colour, line.style), text: name(group, cell) });
        lines.push(line);
    }
    let title = "Throughput over the soak".to_owned();
    let named = format!("{title}: {} lines, ends and extremes in the table below", lines.len());
    let svg = curves(&lines, Plot::Time, "seconds since the first measured query", "tokens per second", &named)?;
    let caption = format!(
        "Tokens over the length of each window, prefill and the time between queries included. One launch a cell, hence no interval.{cut}"
    );
    Ok(Chart { title, caption, wide: false, svg, legend, table })
}

/// One cell's windows as strips.
fn one(group: &Group, cell: &Cell, soak: &Soak, cut: &str) -> Result<Chart, ReportError> {
    let line =
        |label: &str, column: &str, part: usize, dashed: bool| Line { label: label.to_owned(), part, dashed, points: of(soak, column) };
    let heat = [Domain::Npu, Domain::Cpu, Domain::Gpu, Domain::Ddr, Domain::Skin, Domain::Battery];
    let all = [
        ("Tokens per second", true, vec![line("tokens/s", "tok_s", 1, false), line("decode", "decode_tok_s", 0, false)]),
        ("Gap between tokens, ms", true, vec![line("p50", "itl_p50_ms", 0, false), line("p99", "itl_p99_ms", 5, false)]),
        ("Temperature, °C", false, heat.map(|d| line(words(d), &format!("{d}_c"), part(d), false)).to_vec()),
        (
            "Clock, MHz",
            true,
            vec![
                line("CPU", "cpu_mhz", 0, false),
                line("NPU", "npu_mhz", 1, false),
                line("GPU", "gpu_mhz", 3, false),
                line("DDR", "ddr_mhz", 5, false),
            ],
        ),
        ("Lowest CPU cap, % of the maximum", true, vec![line("cap", "cpu_cap_pct", 0, true)]),
        ("Power of the device, W", true, vec![line("mean", "watts", 4, false)]),
    ];
    let mut drawn = Vec::new();
    for (title, from_zero, lines) in all {
        let lines: Vec<Line> = lines.into_iter().filter(|line| !line.points.is_empty()).collect();
        if !lines.is_empty() {
            drawn.push(Strip { title: title.to_owned(), lines, from_zero });
        }
    }
    let mut table = Grid { columns: ["Quantity", "line", "windows", "least", "most"].map(str::to_owned).to_vec(), ..Grid::default() };
    for strip in &drawn {
        for line in &strip.lines {
            let values = || line.points.iter().map(|point| point.1);
            let ends = [values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max)].map(number);
            let [least, most] = ends;
            table.rows.push(vec![strip.title.clone(), line.label.clone(), line.points.len().to_string(), least, most]);
        }
    }
    for line in drawn.iter_mut().flat_map(|strip| &mut strip.lines) {
        line.points = thinned(&line.points);
    }
    let title = format!("{} in the soak", name(group, cell));
    let named = format!("{title}: {} strips on one time axis, extremes in the table below", drawn.len());
    let svg = strips(&drawn, &[], soak.seconds, "seconds since the first measured query", &named)?;
    let caption = format!("Means of windows of {} s; of zones of one part the hottest.{cut}", number(soak.window_s));
    Ok(Chart { title, caption, wide: true, svg, legend: Vec::new(), table })
}

fn events(group: &Group, having: &[(&Cell, &Soak)]) -> Grid {
    let mut grid = Grid {
        title: "What happened in the soaks: throttling, wrong tokens, slow tokens, early ends".into(),
        columns: ["Cell", "second", "what", "°C", "in words"].map(str::to_owned).to_vec(),
        text: true,
        ..Grid::default()
    };
    for (cell, soak) in having {
        for event in &soak.events {
            let temp = event.temp_c.map_or_else(|| DASH.to_owned(), number);
            grid.rows.push(vec![name(group, cell), number(event.t_s), event.kind.clone(), temp, event.what.clone()]);
        }
    }
    grid
}
