//! Rows of `layers.csv`: the operations of a profile with their places in the model.

use std::collections::BTreeMap;

use bench_backend_api::{Layer, Workload};

use super::tables::Row;
use crate::analysis::{
    layers::{By, Mapped, map},
    placement::is_folded,
};

/// The rows of one launch, each made of `base`, in the order of the profile.
pub fn rows(layers: &[Layer], workload: Workload, base: &Row) -> Vec<Row> {
    let generates = matches!(workload, Workload::Generate { .. });
    let mut sums: BTreeMap<_, f64> = BTreeMap::new();
    for layer in layers {
        *sums.entry(sum_key(layer)).or_default() += layer.value.unwrap_or(0.0);
    }
    let row = |(layer, mapped): (&Layer, Mapped)| {
        let mut row = base.clone();
        row.set("graph", &layer.graph).set("phase", &layer.phase).set("index", layer.index).set("name", &layer.name);
        row.maybe("op_type", layer.op_type.as_ref()).maybe("block", mapped.block).maybe("part", mapped.part);
        row.maybe("part_by", mapped.part_by.map(By::as_str)).maybe("op_kind", mapped.kind.map(|kind| &kind.name));
        row.maybe("op_class", mapped.kind.map(|kind| kind.class.as_str())).maybe("unit", layer.unit.as_ref()).number("value", layer.value);
        row.set("value_unit", &layer.value_unit).maybe("value_means", layer.value_means).maybe("folded", is_folded(layer).then_some(1));
        let sum = sums.get(&sum_key(layer)).copied().unwrap_or(0.0);
        row.number("share", layer.value.filter(|_| sum > 0.0).map(|v| v / sum)).maybe("count", layer.count);
        row.number("graph_total", layer.graph_total);
        let details: Vec<String> = layer.details.iter().map(|(key, value)| format!("{key}={value}")).collect();
        row.set("details", details.join(";")).set("method", &layer.method);
        row
    };
    layers.iter().zip(map(layers, generates)).map(row).collect()
}

/// What is added up: values of one graph, phase, unit and method. Cycles and times, two profiles of one graph, are no parts of one whole.
fn sum_key(layer: &Layer) -> [&str; 4] {
    [&layer.graph, &layer.phase, &layer.value_unit, &layer.method]
}
