//! What the page of a large run is made of, from its tables, as `report.py` has pandas do it: reading, launches, distributions of gaps, series with
//! their ends and extremes, windows of the drawings, sums by part, the largest operations. RUN in, seconds and figures as JSON out; `report.py` runs
//! it and holds the figures against those of pandas.

use std::{collections::BTreeMap, path::Path, sync::Arc, time::Instant};

use bench::{
    report::load::{Layer, Phase, Run, Series, Sort, load},
    stats::{extremes, quantiles},
};
use serde_json::{Value, json};

/// Windows of a drawing, as in the page.
const WINDOWS: usize = 120;
/// Operations of a phase that are told.
const LARGEST: usize = 10;

fn main() {
    // Cargo adds --bench.
    let Some(dir) = std::env::args().skip(1).find(|argument| !argument.starts_with("--")) else {
        println!("aggregate: needs a run folder, which tests/bench/report.py makes");
        return;
    };
    let begun = Instant::now();
    let run = load(Path::new(&dir)).expect("a run");
    let figures = figures(&run);
    println!("{}", json!([begun.elapsed().as_secs_f64(), figures]));
}

fn figures(run: &Run) -> Value {
    let gaps: Vec<[f64; 4]> = run.gaps.values().map(|gaps| quantiles(gaps, [0.5, 0.9, 0.99, 1.0]).expect("gaps")).collect();
    let all: Vec<(&(String, String), &Series)> = run.timelines.values().flat_map(|timeline| &timeline.series).collect();
    let facts: Vec<(&str, Facts)> = all.iter().map(|((_, name), series)| (name.as_str(), facts(series))).collect();
    let of = |name: &'static str| facts.iter().filter(move |(known, _)| *known == name).map(|(_, facts)| facts);
    let operations: Vec<Operations> = run.layers.values().map(|layers| operations(layers)).collect();
    let launches = || run.launches.values().flat_map(|launches| &launches.ttft_ms);
    let decodes = run.timelines.values().flat_map(|timeline| &timeline.phases).filter(|stretch| stretch.phase == Phase::Decode);
    json!({
        "cells": run.cells.len(),
        "launches": launches().count(),
        "ttft_ms": launches().sum::<f64>(),
        "gaps": gaps.len() * 4,
        "p99_ms": gaps.iter().map(|of| of[2]).sum::<f64>() / gaps.len() as f64,
        "stretches": decodes.count(),
        "series": facts.len(),
        "rows": facts.iter().map(|(_, facts)| facts.count).sum::<usize>(),
        "drawn": facts.iter().map(|(_, facts)| facts.drawn).sum::<usize>() > 0,
        "parts": operations.iter().map(|of| of.parts).sum::<usize>(),
        "parts_sum": operations.iter().map(|of| of.sum).sum::<f64>(),
        "largest": operations.iter().map(|of| of.largest).sum::<usize>(),
        "largest_sum": operations.iter().map(|of| of.largest_sum).sum::<f64>(),
        "peak_kb": of("rss_kb").map(|facts| facts.most).fold(0.0, f64::max),
        "dip_mhz": of("DDR").map(|facts| facts.least).fold(f64::INFINITY, f64::min),
    })
}

/// What a table under a drawing says of a series, and of how many points the drawing is made.
struct Facts {
    count: usize,
    least: f64,
    most: f64,
    drawn: usize,
}

fn facts(series: &Series) -> Facts {
    let drawn = extremes(&series.points, WINDOWS);
    // They keep the least and the most of each window, and so of all: report.py holds them against those of all points.
    let (least, most) =
        drawn.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), (_, value)| (least.min(*value), most.max(*value)));
    Facts { count: series.points.len(), least, most, drawn: drawn.len() }
}

/// How many parts the operations of a cell make, and how many of its largest are told; each with the sum.
struct Operations {
    parts: usize,
    sum: f64,
    largest: usize,
    largest_sum: f64,
}

fn operations(layers: &[Layer]) -> Operations {
    // By sort first, of which there are few; they mostly come in one order, block by block.
    let mut sorts: Vec<(&Arc<Sort>, Vec<f64>)> = Vec::new();
    let mut at = 0;
    for layer in layers {
        let is = |of: &(&Arc<Sort>, _)| Arc::ptr_eq(of.0, &layer.sort);
        at = if sorts.get(at + 1).is_some_and(is) { at + 1 } else { sorts.iter().position(is).unwrap_or(sorts.len()) };
        if at == sorts.len() {
            sorts.push((&layer.sort, Vec::new()));
        }
        sorts[at].1.push(layer.value);
    }
    let mut sums: BTreeMap<[&str; 5], (f64, usize)> = BTreeMap::new();
    let mut largest: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (sort, values) in &sorts {
        let sum = sums.entry([&sort.phase, &sort.part, &sort.kind, &sort.class, &sort.unit]).or_default();
        *sum = (sum.0 + values.iter().sum::<f64>(), sum.1 + values.len());
        let of_phase = largest.entry(&sort.phase).or_default();
        for value in values {
            if of_phase.get(LARGEST - 1).is_none_or(|least| least < value) {
                of_phase.insert(of_phase.partition_point(|known| known >= value), *value);
                of_phase.truncate(LARGEST);
            }
        }
    }
    Operations {
        parts: sums.len(),
        sum: sums.values().map(|(sum, _)| sum).sum(),
        largest: largest.values().map(Vec::len).sum(),
        largest_sum: largest.values().flatten().sum(),
    }
}
