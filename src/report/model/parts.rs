//! Where the time of a phase goes, by part of the model and by processor.

use std::collections::{BTreeMap, BTreeSet};

use super::figures::{DASH, number};
use super::groups::{Group, readable};
use super::view::{Chart, Grid, LegendKey};
use super::why::{chosen, label};
use crate::report::ReportError;
use crate::report::charts::{Ends, MODEL, Piece, Stack, Swatch, key_svg, stacks};
use crate::report::load::{Cell, Layer, Run};

/// Bars of one phase.
const BARS: usize = 12;
/// In which processors stand in a bar.
const UNITS: [&str; 3] = ["npu", "gpu", "cpu"];

/// One phase of one cell by one method.
struct Bar<'a> {
    cell: &'a Cell,
    label: String,
    phase: &'a str,
    method: &'a str,
    layers: Vec<&'a Layer>,
}

/// What the values of a chart are: unit and meaning. Shares of one are no shares of another.
type Measure<'a> = (&'a str, &'a str);

/// One chart for each kind of value, with a bar for each backend, quantisation and phase. Networks whose operations are parts of no language
/// model have none.
pub fn parts(run: &Run, groups: &[Group]) -> Result<Vec<Chart>, ReportError> {
    let mut measures: BTreeMap<Measure, Vec<Bar>> = BTreeMap::new();
    for group in groups {
        for cell in chosen(group) {
            let mut bars: BTreeMap<(usize, &str, &str, Measure), Vec<&Layer>> = BTreeMap::new();
            for layer in run.layers.get(&cell.key).into_iter().flatten() {
                let measure = (&*layer.sort.value_unit, &*layer.sort.means);
                bars.entry((rank(&layer.sort.phase), &layer.sort.phase, &layer.sort.method, measure)).or_default().push(layer);
            }
            for ((_, phase, method, measure), layers) in bars {
                if layers.iter().any(|layer| !layer.sort.part.is_empty()) && layers.iter().any(|layer| layer.value > 0.0) {
                    let bar = Bar { cell, label: label(groups, group, cell), phase, method, layers };
                    measures.entry(measure).or_default().push(bar);
                }
            }
        }
    }
    measures.into_iter().map(|(measure, bars)| chart(measure, bars)).collect()
}

/// Prefill comes before decode, and what is not told apart last.
fn rank(phase: &str) -> usize {
    ["prefill", "decode"].iter().position(|known| *known == phase).unwrap_or(2)
}

fn chart(measure: Measure, mut bars: Vec<Bar>) -> Result<Chart, ReportError> {
    // Stable: within a phase the order of the cells stays.
    bars.sort_by_key(|bar| (rank(bar.phase), bar.phase));
    let words = measure_words(measure, bars[0].cell);
    let mut table = Grid {
        columns: ["Cell", "phase", "part", "on", "operations", "folded", &words, "share, %", "of it data movement, %", "method"]
            .map(str::to_owned)
            .to_vec(),
        text: true,
        ..Grid::default()
    };
    let (mut rows, mut used, mut faint, mut broken, mut cuts) = (Vec::new(), BTreeSet::new(), false, false, BTreeSet::new());
    for of_phase in bars.chunk_by(|a, b| a.phase == b.phase) {
        let (drawn, cut) = readable(of_phase, BARS, |bar| &bar.cell.backend, "bars of a phase");
        cuts.insert(cut);
        for (at, bar) in drawn.into_iter().enumerate() {
            let twice = of_phase.iter().filter(|other| other.label == bar.label).count() > 1;
            let stack = stack(bar, &mut used);
            faint |= stack.pieces.iter().any(|piece| piece.faint);
            broken |= !stack.breaks.is_empty();
            let method = if twice { format!(", {}", bar.method) } else { String::new() };
            let label = format!("{}{method}", bar.label);
            rows.push(Stack { heading: (at == 0).then(|| phase_words(bar.phase).to_owned()), label, ..stack });
        }
        table.rows.extend(of_phase.iter().flat_map(table_rows));
    }
    let mut legend: Vec<LegendKey> =
        used.into_iter().map(|at: usize| LegendKey { key: key_svg(MODEL[at].1), text: MODEL[at].0.to_owned() }).collect();
    let mut legend_words = |text: &str| legend.push(LegendKey { key: String::new(), text: text.to_owned() });
    if faint {
        legend_words("faint: data movement of the part");
    }
    if broken {
        legend_words("line across: another processor from here");
    }
    let methods: Vec<&str> = bars.iter().map(|bar| bar.method).collect::<BTreeSet<_>>().into_iter().collect();
    let work =
        if measure.1 == "thread-cycles" { " Cycles of all threads together: shares of the work, not of a length of time." } else { "" };
    let work = if broken && measure.0 == "cycles" {
        format!("{work} Cycles of different processors are no parts of one time: read shares within one processor.")
    } else {
        work.to_owned()
    };
    let caption = format!(
        "Each bar is 100 % of the {words} that the profile gives the operations of one phase. At the right: the processor, and data movement's share in all.{work} Of the largest workload; method {}.{}",
        methods.join("; "),
        cuts.into_iter().collect::<String>()
    );
    let title = format!("By part of the model, in {words}");
    let svg = stacks(
        &rows,
        Ends::Percent,
        &format!("% of the {words} of the phase"),
        &format!("{title}: {} bars, values in the table below", rows.len()),
    )?;
    Ok(Chart { title, caption, wide: true, svg, legend, table })
}

/// What a value is.
fn measure_words((unit, means): Measure, cell: &Cell) -> String {
    let unit = if unit == "us" { "µs" } else { unit };
    let of = if cell.class == "emulator" { " of the emulator" } else { "" };
    let means = means.replace('-', " ");
    match means.as_str() {
        "" => format!("{unit}{of}"),
        cycles if cycles.ends_with(unit) => format!("{cycles}{of}"),
        _ => format!("{unit}{of} of {means}"),
    }
}

fn phase_words(phase: &str) -> &str {
    if phase.is_empty() { "prefill and decode not told apart" } else { phase }
}

fn unit_rank(unit: &str) -> usize {
    UNITS.iter().position(|known| *known == unit).unwrap_or(UNITS.len())
}

/// The colour's number of a part of layers.csv.
fn family(part: &str) -> usize {
    let name = match part {
        "q_proj" | "k_proj" | "v_proj" | "qkv_proj" | "o_proj" => "q, k, v, o projections",
        "kv_cache" => "kv cache",
        "lm_head" => "lm head",
        "io" => "inputs and outputs",
        "subgraph" => "compiled subgraph, not told apart",
        other => other,
    };
    MODEL.iter().position(|(known, _)| *known == name).unwrap_or(MODEL.len() - 1)
}

fn sum<'a>(layers: impl IntoIterator<Item = &'a &'a Layer>) -> f64 {
    // The empty sum of floats is -0.0.
    layers.into_iter().map(|layer| layer.value).fold(0.0, |sum, value| sum + value)
}

fn stack(bar: &Bar, used: &mut BTreeSet<usize>) -> Stack {
    let whole = sum(&bar.layers);
    let mut sums: BTreeMap<(usize, &str, usize, bool), f64> = BTreeMap::new();
    for layer in &bar.layers {
        *sums.entry((unit_rank(&layer.sort.unit), &layer.sort.unit, family(&layer.sort.part), layer.sort.moves())).or_default() +=
            layer.value;
    }
    let (mut pieces, mut breaks, mut end, mut last) = (Vec::new(), Vec::new(), 0.0, None);
    for ((_, unit, family, faint), value) in sums.into_iter().filter(|(_, value)| *value > 0.0) {
        if last.is_some_and(|last| last != unit) {
            breaks.push(end);
        }
        let (name, swatch): (&str, Swatch) = MODEL[family];
        let to = end + 100.0 * value / whole;
        pieces.push(Piece { from: end, to, swatch, faint, label: name.to_owned() });
        used.insert(family);
        (end, last) = (to, Some(unit));
    }
    Stack { pieces, breaks, figure: format!("{}{}", units(bar, whole), movement(bar, whole)), ..Stack::default() }
}

/// `NPU`, or `NPU 92 %, CPU 8 %`.
fn units(bar: &Bar, whole: f64) -> String {
    let mut sums: BTreeMap<(usize, &str), f64> = BTreeMap::new();
    for layer in &bar.layers {
        *sums.entry((unit_rank(&layer.sort.unit), &layer.sort.unit)).or_default() += layer.value;
    }
    let name = |unit: &str| if unit.is_empty() { "unit not told".to_owned() } else { unit.to_uppercase() };
    if let [((_, unit), _)] = sums.iter().collect::<Vec<_>>()[..] {
        return name(unit);
    }
    let told: Vec<String> = sums.iter().map(|((_, unit), value)| format!("{} {} %", name(unit), percent(*value, whole))).collect();
    told.join(", ")
}

/// Nothing where the profile tells no classes of operations.
fn movement(bar: &Bar, whole: f64) -> String {
    if bar.layers.iter().all(|layer| layer.sort.class.is_empty()) {
        return String::new();
    }
    let moved = sum(bar.layers.iter().filter(|layer| layer.sort.moves()));
    format!(" · movement {} %", percent(moved, whole))
}

fn percent(value: f64, whole: f64) -> String {
    if whole > 0.0 { format!("{:.1}", 100.0 * value / whole) } else { DASH.into() }
}

/// Parts as the table has them, most expensive first.
fn table_rows(bar: &Bar) -> Vec<Vec<String>> {
    let whole = sum(&bar.layers);
    let mut found: BTreeMap<(&str, &str), Vec<&Layer>> = BTreeMap::new();
    for layer in &bar.layers {
        found.entry((&layer.sort.part, &layer.sort.unit)).or_default().push(layer);
    }
    let mut order: Vec<_> = found.into_iter().map(|(key, layers)| (key, sum(&layers), layers)).collect();
    order.sort_by(|a, b| b.1.total_cmp(&a.1));
    let row = |((part, unit), value, layers): ((&str, &str), f64, Vec<&Layer>)| {
        let folded = layers.iter().filter(|layer| layer.folded).count();
        let moved = sum(layers.iter().filter(|layer| layer.sort.moves()));
        let told = |word: &str| if word.is_empty() { DASH.to_owned() } else { word.to_owned() };
        vec![
            bar.label.clone(),
            phase_words(bar.phase).to_owned(),
            told(part),
            told(unit),
            (layers.len() - folded).to_string(),
            folded.to_string(),
            number(value),
            percent(value, whole),
            percent(moved, value),
            bar.method.to_owned(),
        ]
    };
    order.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::{MODEL, family};

    #[test]
    fn every_part_of_the_schema_has_its_colour() {
        let last = MODEL.len() - 1;
        let parts = [
            "embedding",
            "norm",
            "q_proj",
            "k_proj",
            "v_proj",
            "qkv_proj",
            "rope",
            "kv_cache",
            "attention",
            "o_proj",
            "residual",
            "mlp",
            "lm_head",
            "sampling",
            "io",
            "subgraph",
        ];
        assert!(parts.iter().all(|part| family(part) < last), "{parts:?}");
        assert!([family("other"), family(""), family("<b>")].iter().all(|at| *at == last));
    }
}
