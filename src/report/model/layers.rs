//! The operations that cost most.

use std::collections::{BTreeMap, BTreeSet};

use super::figures::number;
use super::groups::{Colours, workload};
use super::view::{Chart, Grid};
use crate::report::ReportError;
use crate::report::charts::{Bar, bars};
use crate::report::load::{Cell, Layer, Run};

/// Operations shown of a graph; the rest is one bar.
const TOP: usize = 8;
/// Charts of a panel.
const CHARTS: usize = 6;

/// Charts of the most expensive operations. One for each backend, quantisation and graph: other workloads run the same operations.
pub fn layers(run: &Run, cells: &[&Cell], colours: &Colours) -> Result<Vec<Chart>, ReportError> {
    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    for cell in cells.iter().filter(|cell| cell.counts()) {
        // In the order of the table, in which prefill comes before decode.
        let mut graphs: Vec<((&str, &str), Vec<&Layer>)> = Vec::new();
        for layer in run.layers.get(&cell.key).into_iter().flatten() {
            let key = (layer.graph.as_str(), layer.value_unit.as_str());
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
    Ok(found)
}

fn chart(cell: &Cell, graph: &str, unit: &str, layers: &[&Layer], colours: &Colours) -> Result<Option<Chart>, ReportError> {
    let total: f64 = layers.iter().map(|layer| layer.value).sum();
    if total <= 0.0 {
        return Ok(None);
    }
    let mut sums: BTreeMap<&str, (f64, Option<&str>)> = BTreeMap::new();
    for layer in layers {
        let sum = sums.entry(&layer.name).or_insert((0.0, layer.op_type.as_deref()));
        sum.0 += layer.value;
    }
    let mut order: Vec<(&str, f64, Option<&str>)> = sums.into_iter().map(|(name, (value, op))| (name, value, op)).collect();
    order.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
    let mut table = Grid { columns: ["Operation".into(), "type".into(), unit.to_owned(), "share, %".into()].to_vec(), ..Grid::default() };
    let share = |value: f64| value / total * 100.0;
    for (name, value, op) in order.iter().take(40) {
        table.rows.push(vec![(*name).to_owned(), op.unwrap_or("not printed").to_owned(), number(*value), number(share(*value))]);
    }
    let colour = colours.get(&cell.backend);
    let bar = |label: String, value: f64| Bar {
        label,
        colour,
        value: share(value),
        interval: None,
        figure: format!("{:.1} %", share(value)),
        new_group: false,
    };
    let mut rows: Vec<Bar> = order.iter().take(TOP).map(|(name, value, _)| bar((*name).to_owned(), *value)).collect();
    if order.len() > TOP {
        let rest: f64 = order[TOP..].iter().map(|(_, value, _)| value).sum();
        rows.push(Bar { new_group: true, ..bar(format!("{} others", order.len() - TOP), rest) });
    }
    let title = format!("{} {}: {graph}", cell.backend, cell.quant);
    let method = layers.first().map_or("", |layer| layer.method.as_str());
    let caption = format!(
        "Share of {} {unit} in this graph, {} operations, workload {}; {method}. One launch of the profile pass, hence no interval; its times are in no other figure.",
        number(total),
        order.len(),
        workload(cell)
    );
    let svg = bars(&rows, &format!("% of the graph's {unit}"), &format!("{title}: most expensive operations, values in the table below"))?;
    Ok(Some(Chart { title, caption, wide: true, svg, legend: Vec::new(), table }))
}
