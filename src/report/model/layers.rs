//! The operations that cost most.

use std::collections::{BTreeMap, BTreeSet};

use super::figures::{DASH, number};
use super::groups::{Colours, listed, workload};
use super::view::{Chart, Grid};
use crate::report::ReportError;
use crate::report::charts::{Bar, bars};
use crate::report::load::{Cell, Layer, Run};

/// Operations shown of a graph; the rest is one bar.
const TOP: usize = 8;
/// Charts of a panel.
const CHARTS: usize = 6;

/// Charts of the most expensive operations, and what to say of backends that have none. One chart for each backend, quantisation and
/// phase, of the largest workload: the others run the same operations, and fewer times.
pub fn layers(run: &Run, cells: &[&Cell], colours: &Colours) -> Result<(Vec<Chart>, Option<String>), ReportError> {
    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    let counted: Vec<&Cell> = cells.iter().copied().filter(|cell| cell.counts()).collect();
    let mut order = counted.clone();
    // Stable: within a workload the order of the panel stays.
    order.sort_by_key(|cell| std::cmp::Reverse((cell.prompt, cell.generate)));
    for cell in order {
        // In the order of the table, in which prefill comes before decode.
        let mut graphs: Vec<((&str, &str), Vec<&Layer>)> = Vec::new();
        for layer in run.layers.get(&cell.key).into_iter().flatten() {
            let key = (&*layer.sort.graph, &*layer.sort.value_unit);
            match graphs.iter_mut().find(|(known, _)| *known == key) {
                Some((_, layers)) => layers.push(layer),
                None => graphs.push((key, vec![layer])),
            }
        }
        for ((graph, unit), layers) in graphs {
            if found.len() < CHARTS && seen.insert((&cell.backend, &cell.quant, graph.to_owned())) {
                found.extend(chart(cell, graph, unit, &layers, colours)?);
            }
        }
    }
    let profiled = |backend: &str| counted.iter().any(|cell| cell.backend == backend && run.layers.contains_key(&cell.key));
    let without: BTreeSet<&str> = counted.iter().map(|cell| cell.backend.as_str()).filter(|backend| !profiled(backend)).collect();
    let without: Vec<&str> = without.into_iter().collect();
    let note = (!found.is_empty() && !without.is_empty()).then(|| format!("No times per operation from {}.", listed(&without)));
    Ok((found, note))
}

fn chart(cell: &Cell, graph: &str, unit: &str, layers: &[&Layer], colours: &Colours) -> Result<Option<Chart>, ReportError> {
    let total: f64 = layers.iter().map(|layer| layer.value).sum();
    if total <= 0.0 {
        return Ok(None);
    }
    let unit = if cell.class == "emulator" { format!("{unit} of the emulator") } else { unit.to_owned() };
    // What stands beside a name is that of the first operation of this name.
    let mut sums: BTreeMap<&str, (f64, &Layer)> = BTreeMap::new();
    for layer in layers {
        sums.entry(&layer.name).or_insert((0.0, layer)).0 += layer.value;
    }
    let mut order: Vec<(&str, f64, &Layer)> = sums.into_iter().map(|(name, (value, layer))| (name, value, layer)).collect();
    order.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
    let share = |value: f64| value / total * 100.0;
    let told: [(&str, Told); 4] = [
        ("type", |layer| &layer.sort.op_type),
        ("part", |layer| &layer.sort.part),
        ("kind", |layer| &layer.sort.kind),
        ("on", |layer| &layer.sort.unit),
    ];
    // A column that no operation fills is left out.
    let told: Vec<_> = told.into_iter().filter(|(_, of)| order.iter().any(|(.., layer)| !of(layer).is_empty())).collect();
    let mut columns = vec!["Operation as printed".to_owned(), unit.clone(), "share, %".into()];
    columns.extend(told.iter().map(|(word, _)| (*word).to_owned()));
    let mut table = Grid { columns, ..Grid::default() };
    for (name, value, layer) in order.iter().take(40) {
        let mut row = vec![(*name).to_owned(), number(*value), number(share(*value))];
        row.extend(told.iter().map(|(_, of)| if of(layer).is_empty() { DASH.to_owned() } else { of(layer).to_owned() }));
        table.rows.push(row);
    }
    let bar = |label: String, value: f64| Bar {
        label,
        colour: colours.get(&cell.backend),
        value: share(value),
        interval: None,
        figure: format!("{:.1} %", share(value)),
        heading: None,
    };
    let top: Vec<&str> = order.iter().take(TOP).map(|(name, ..)| *name).collect();
    let mut rows: Vec<Bar> = order.iter().take(TOP).map(|(name, value, _)| bar(label(name, &top), *value)).collect();
    if order.len() > TOP {
        let rest: f64 = order[TOP..].iter().map(|(_, value, _)| value).sum();
        rows.push(Bar { heading: Some(String::new()), ..bar(format!("{} others", order.len() - TOP), rest) });
    }
    let title = format!("{} · {}: {}", cell.backend, cell.quant, if graph.is_empty() { "whole graph" } else { graph });
    let caption = format!(
        "{} {unit} in {} operations, {}; workload {}, method {}.",
        large(total),
        order.len(),
        executions(layers),
        workload((cell.prompt, cell.generate)),
        layers.first().map_or("unknown", |layer| &*layer.sort.method),
    );
    let svg = bars(&rows, &format!("% of the {unit}"), &format!("{title}: most expensive operations, values in the table below"))?;
    Ok(Some(Chart { title, caption, wide: true, svg, legend: Vec::new(), table }))
}

/// What a table tells of an operation.
type Told = fn(&Layer) -> &str;

/// A number that may have many digits.
fn large(value: f64) -> String {
    if value >= 1e6 { format!("{} million", number(value / 1e6)) } else { number(value) }
}

/// How many executions a value is the mean of.
fn executions(layers: &[&Layer]) -> String {
    let counts: BTreeSet<i64> = layers.iter().filter_map(|layer| layer.count).collect();
    match (counts.first(), counts.last()) {
        (Some(1), Some(1)) => "one execution".into(),
        (Some(least), Some(most)) if least == most => format!("mean of {most} executions of the graph"),
        (Some(least), Some(most)) => format!("mean of {least} to {most} executions"),
        _ => "number of executions not printed".into(),
    }
}

/// A name without what a compiler adds to it, unless two of the bars would then be called the same.
fn label(name: &str, all: &[&str]) -> String {
    let short = readable(name);
    if all.iter().filter(|other| readable(other) == short).count() > 1 { name.to_owned() } else { short }
}

/// `layers.0.softmax:OpId_82` is `layer 0 softmax`.
fn readable(name: &str) -> String {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let name = name.trim();
    let plain = match name.rsplit_once("OpId_") {
        Some((before, id)) if number(id) => before.trim_end_matches([':', ' ', '_']),
        _ => name,
    };
    let plain = if plain.is_empty() { name } else { plain };
    match plain.strip_prefix("layers.").and_then(|rest| rest.split_once(['.', '/'])) {
        Some((layer, rest)) if number(layer) => format!("layer {layer} {rest}"),
        _ => plain.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{label, readable};

    #[test]
    fn names_lose_what_the_compiler_added() {
        for (name, wanted) in [
            ("layers.0.softmax:OpId_82", "layer 0 softmax"),
            ("layers.1.q/rope/real:OpId_47", "layer 1 q/rope/real"),
            ("Input OpId_2", "Input"),
            ("OpId_2", "OpId_2"),
            ("past_key_0_out:OpId_71", "past_key_0_out"),
            ("layers.x.y", "layers.x.y"),
            ("", ""),
        ] {
            assert_eq!(readable(name), wanted);
        }
        assert_eq!(label("a:OpId_1", &["a:OpId_1", "a:OpId_2"]), "a:OpId_1", "two of one name keep their numbers");
    }
}
