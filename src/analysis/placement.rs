//! Where the operations of a model ran: counts and sums by unit, and those that ran elsewhere than asked.

use std::collections::{BTreeMap, BTreeSet};

use bench_backend_api::{Fallback, Layer, Parsed, Unit, ValueMeans};

/// The operations of one phase on one unit, by one method.
#[derive(Debug, Clone, PartialEq)]
pub struct Placed {
    /// `prefill`, `decode`, or empty.
    pub phase: String,
    /// `npu`, `gpu`, `cpu`; `None` when the profile does not say.
    pub unit: Option<String>,
    /// Operations; `None` when the profile has types of operations only.
    pub ops: Option<usize>,
    /// Of these, operations that became part of others.
    pub folded: usize,
    /// Sum of what is known, over the graphs of the phase.
    pub value: Option<f64>,
    /// `us` or `cycles`.
    pub value_unit: String,
    /// Of the sum over all units, 0 to 1.
    pub share: Option<f64>,
    /// Sum of the phase's values over what the tool prints for its graphs; `None` when it prints nothing for one of them.
    pub accounted: Option<f64>,
    /// As in layers.csv.
    pub method: String,
}

/// Whether an operation became part of another: 0 cycles are what QNN prints of it (formats/qnn.md, section 4); 0 us is only less than a
/// clock shows.
pub fn is_folded(layer: &Layer) -> bool {
    layer.value == Some(0.0) && layer.value_unit == "cycles"
}

/// Counts and sums by phase, method and unit, in the order of their first operations.
pub fn placement(layers: &[Layer]) -> Vec<Placed> {
    let mut phases: Vec<([&str; 3], Vec<&Layer>)> = Vec::new();
    for layer in layers {
        let key = [layer.phase.as_str(), &layer.method, &layer.value_unit];
        match phases.iter_mut().find(|(known, _)| *known == key) {
            Some((_, of)) => of.push(layer),
            None => phases.push((key, vec![layer])),
        }
    }
    phases.iter().flat_map(|(key, layers)| placed(*key, layers)).collect()
}

fn placed([phase, method, value_unit]: [&str; 3], layers: &[&Layer]) -> Vec<Placed> {
    let sum = |layers: &[&Layer]| layers.iter().filter_map(|layer| layer.value).reduce(|a, b| a + b);
    let whole = sum(layers).filter(|whole| *whole > 0.0);
    // Every operation of a graph carries the graph's total.
    let totals: BTreeMap<&str, Option<f64>> = layers.iter().map(|layer| (layer.graph.as_str(), layer.graph_total)).collect();
    let total = totals.into_values().sum::<Option<f64>>().filter(|total| *total > 0.0);
    let units: BTreeSet<Option<&str>> = layers.iter().map(|layer| layer.unit.as_deref()).collect();
    let row = |unit: Option<&str>| {
        let here: Vec<&Layer> = layers.iter().copied().filter(|layer| layer.unit.as_deref() == unit).collect();
        let types = here.iter().any(|layer| layer.value_means == Some(ValueMeans::WallTimeOfType));
        Placed {
            phase: phase.to_owned(),
            unit: unit.map(str::to_owned),
            ops: (!types).then_some(here.len()),
            folded: here.iter().filter(|layer| is_folded(layer)).count(),
            value: sum(&here),
            value_unit: value_unit.to_owned(),
            share: sum(&here).zip(whole).map(|(part, whole)| part / whole),
            accounted: whole.zip(total).map(|(sum, total)| sum / total),
            method: method.to_owned(),
        }
    };
    units.into_iter().map(row).collect()
}

/// Operations that ran on another unit than the one asked for, or on none: those that the runtime tells of, then those that a profile shows.
/// Each once.
pub fn fallbacks(asked: Unit, parsed: &Parsed) -> Vec<Fallback> {
    let elsewhere = |unit: Option<&str>| asked != Unit::Hybrid && unit != Some(asked.as_str());
    let mut found: Vec<Fallback> = parsed.fallbacks.iter().filter(|told| elsewhere(told.unit.as_deref())).cloned().collect();
    let mut known: BTreeSet<String> = found.iter().map(|told| told.op.clone()).collect();
    for layer in parsed.layers.iter().filter(|layer| layer.unit.is_some() && elsewhere(layer.unit.as_deref())) {
        if known.insert(layer.name.clone()) {
            found.push(Fallback {
                op: layer.name.clone(),
                op_type: layer.op_type.clone(),
                unit: layer.unit.clone(),
                reason: None,
                source: layer.method.clone(),
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(name: &str, phase: &str, unit: Option<&str>, value: Option<f64>) -> Layer {
        Layer {
            name: name.to_owned(),
            phase: phase.to_owned(),
            unit: unit.map(str::to_owned),
            value,
            value_unit: "cycles".to_owned(),
            method: "m".to_owned(),
            graph_total: Some(100.0),
            ..Layer::default()
        }
    }

    #[test]
    fn counts_and_sums_are_those_of_the_units() {
        let layers = [
            op("a", "prefill", Some("npu"), Some(60.0)),
            op("b", "prefill", Some("npu"), Some(0.0)),
            op("c", "prefill", Some("cpu"), Some(20.0)),
            op("d", "prefill", Some("cpu"), None),
            op("e", "decode", None, None),
        ];
        let rows: Vec<_> =
            placement(&layers).into_iter().map(|p| (p.phase, p.unit, p.ops, p.folded, p.value, p.share, p.accounted)).collect();
        let (prefill, decode) = ("prefill".to_owned(), "decode".to_owned());
        // 60 of 80, 20 of 80; 80 of the 100 that the tool prints.
        assert_eq!(
            rows,
            [
                (prefill.clone(), Some("cpu".to_owned()), Some(2), 0, Some(20.0), Some(0.25), Some(0.8)),
                (prefill, Some("npu".to_owned()), Some(2), 1, Some(60.0), Some(0.75), Some(0.8)),
                (decode, None, Some(1), 0, None, None, None),
            ]
        );
        let types = placement(&[Layer { value_means: Some(ValueMeans::WallTimeOfType), ..op("Conv", "", Some("cpu"), Some(1.0)) }]);
        assert_eq!((types[0].ops, types[0].share), (None, Some(1.0)), "a type of operation is no operation");
        assert_eq!(placement(&[]), []);
    }

    #[test]
    fn what_ran_elsewhere_is_told_once() {
        let told = Fallback { op: "c".to_owned(), unit: Some("cpu".to_owned()), reason: Some("why".to_owned()), ..Fallback::default() };
        let nowhere = Fallback { op: "z".to_owned(), ..Fallback::default() };
        let layers = vec![
            op("a", "", Some("npu"), None),
            op("c", "", Some("cpu"), None),
            op("d", "prefill", Some("cpu"), None),
            op("d", "decode", Some("cpu"), None),
            op("e", "", None, None),
        ];
        let parsed = Parsed { fallbacks: vec![told, nowhere], layers, ..Parsed::default() };
        let names = |asked| fallbacks(asked, &parsed).into_iter().map(|f| (f.op, f.reason)).collect::<Vec<_>>();
        assert_eq!(names(Unit::Npu), [("c".to_owned(), Some("why".to_owned())), ("z".to_owned(), None), ("d".to_owned(), None)]);
        // Asked for the CPU, the one on the NPU is elsewhere.
        assert_eq!(names(Unit::Cpu), [("z".to_owned(), None), ("a".to_owned(), None)]);
        assert_eq!(names(Unit::Hybrid), []);
    }
}
