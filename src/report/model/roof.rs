//! Decode rates under the roof that the memory sets (rule R25), and prefill rates beside the best one that was seen (rule R26).

use std::collections::{BTreeMap, BTreeSet};

use super::details::name;
use super::figures::{DASH, median, number};
use super::groups::{Colours, Group, listed, workload};
use super::machine::chip;
use super::view::{Chart, Grid, LegendKey};
use super::why::label;
use crate::report::ReportError;
use crate::report::charts::{Dot, line_svg, roofline};
use crate::report::load::{Cell, Run};

/// What can be drawn: no device moves more, and a table may hold anything.
const MOST: f64 = 1e9;

/// The picture, or why there is none; neither for a run of a bench that knew no roofs.
pub fn roof(groups: &[Group], colours: &Colours) -> Result<(Option<Chart>, Option<String>), ReportError> {
    let mut reasons: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    let mut table = Grid {
        columns: [
            "Cell",
            "tokens",
            "MB a token",
            "decode, tok/s",
            "roof, tok/s",
            "of the roof, %",
            "bandwidth at least, GB/s",
            "DRAM traffic, GB/s, measured",
            "peak, GB/s",
            "what to think of it",
        ]
        .map(str::to_owned)
        .to_vec(),
        text: true,
        ..Grid::default()
    };
    let (mut dots, mut peaks, mut legend, mut keys) = (Vec::new(), Vec::<f64>::new(), Vec::new(), Vec::new());
    for group in groups {
        for cell in group.counted() {
            let label = label(groups, group, cell);
            let field = |column: &str| cell.number(column);
            let (Some(mb), Some(peak), Some(rate)) = (field("decode_mb_per_tok"), field("peak_gb_s"), cell.metrics.get("decode_tok_s"))
            else {
                if let Some(reason) = cell.text("roof_note").and_then(|note| note.strip_prefix("not applicable: ")) {
                    reasons.entry(reason.to_owned()).or_default().insert(&cell.backend);
                }
                continue;
            };
            let shown = |column: &str| field(column).map_or_else(|| DASH.to_owned(), number);
            table.rows.push(vec![
                label.clone(),
                workload((cell.prompt, cell.generate)),
                number(mb),
                median(rate),
                shown("roof_tok_s"),
                field("roof_share").map_or_else(|| DASH.to_owned(), |share| format!("{:.1}", share * 100.0)),
                shown("decode_gb_s"),
                shown("traced_gb_s"),
                number(peak),
                cell.text("roof_note").unwrap_or(DASH).to_owned(),
            ]);
            if [mb, peak, rate.median].into_iter().all(|value| (1e-6..MOST).contains(&value)) {
                let (colour, style, ringed) = (colours.get(&cell.backend), group.style(cell), field("traced_gb_s").is_some());
                dots.push(Dot { colour, style, mb, tok_s: rate.median, ringed });
                if !peaks.contains(&peak) {
                    peaks.push(peak);
                }
                if !keys.contains(&label) {
                    legend.push(LegendKey { key: line_svg(colour, style), text: label.clone() });
                    keys.push(label);
                }
            }
        }
    }
    if dots.is_empty() {
        let told = |(reason, backends): (String, BTreeSet<&str>)| format!("{reason} ({})", listed(&Vec::from_iter(backends)));
        let told: Vec<String> = reasons.into_iter().map(told).collect();
        return Ok((None, (!told.is_empty()).then(|| format!("No roofline for decode here: {}.", told.join("; ")))));
    }
    let ringed = dots.iter().any(|dot| dot.ringed);
    let title = "Decode under the memory's roof".to_owned();
    let svg = roofline(&dots, &peaks, &format!("{title}: {} cells, values in the table below", dots.len()))?;
    let ring = if ringed { " A ring: a trace counted the cell's DRAM traffic; that figure is measured, and in the table." } else { "" };
    let caption = format!(
        "Line: peak bandwidth over the bytes that a token moves at least (MB: 10^6), which no engine can exceed. Points: medians of the launches; their bytes are derived from geometry and quantisation.{ring}"
    );
    Ok((Some(Chart { title, caption, wide: true, svg, legend, table }), None))
}

/// The fastest prefill of each model on each chip, by how it was come by, over all runs of the page.
#[derive(Debug, Default)]
pub struct Best(BTreeMap<[String; 4], (f64, String)>);

impl Best {
    /// Looks through the runs.
    pub fn of(runs: &[Run]) -> Self {
        let mut found = Self::default();
        for run in runs {
            for cell in run.cells.iter().filter(|cell| cell.counts()) {
                let Some(rate) = cell.metrics.get("prefill_tok_s").map(|rate| rate.median).filter(|rate| *rate > 0.0) else { continue };
                let what = format!("{} · {}, {} tokens", cell.backend, cell.quant, workload((cell.prompt, cell.generate)));
                let best = found.0.entry(key(run, cell)).or_insert_with(|| (rate, what.clone()));
                if rate > best.0 {
                    *best = (rate, what);
                }
            }
        }
        found
    }

    /// Each cell's share of the best; `None` where a set has fewer than two prefill rates.
    pub fn table(&self, run: &Run, group: &Group) -> Option<Grid> {
        let row = |cell: &&Cell| {
            let rate = cell.metrics.get("prefill_tok_s")?;
            let (best, what) = self.0.get(&key(run, cell))?;
            let method = cell.text("prefill_method").unwrap_or("measured").to_owned();
            Some(vec![name(group, cell), median(rate), format!("{:.1}", 100.0 * rate.median / best), method, what.clone()])
        };
        let rows: Vec<Vec<String>> = group.counted().iter().filter_map(row).collect();
        let columns = ["Cell", "prefill, tok/s", "of the best, %", "method", "the best"].map(str::to_owned).to_vec();
        let title = "Prefill: share of the best prefill of this model in this report on this chip (not of a peak of the chip, which nobody publishes)";
        (rows.len() > 1).then(|| Grid { title: title.into(), columns, rows, text: true, open: false })
    }
}

/// Class, chip, model and method: only within these is one rate a share of another.
fn key(run: &Run, cell: &Cell) -> [String; 4] {
    let chip = chip(&run.manifest, &cell.key.device, &cell.class);
    [cell.class.clone(), chip, cell.model.clone(), cell.text("prefill_method").unwrap_or_default().to_owned()]
}
