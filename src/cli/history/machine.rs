//! The history for programs. Runs are told once, and named by their place.

use serde_json::{Value, json};

use super::{History, Part};
use crate::{
    gate::history::{Figure, Gap, NoFigure, Point, StepNight, Trend},
    results::{folder::id_of, schema::FORMAT_VERSION},
};

/// All of it.
pub fn json(history: &History, asked: f64) -> Value {
    let runs: Vec<Value> = history
        .scan
        .runs
        .iter()
        .map(|run| {
            json!({"run": run.id, "folder": id_of(&run.folder), "scenario": run.scenario, "device": run.device,
                "started_utc": run.started.to_string()})
        })
        .collect();
    let left_out: Vec<Value> = history.scan.left_out.iter().map(|one| json!({"name": one.name, "why": one.why})).collect();
    json!({"format_version": FORMAT_VERSION, "tolerance": asked, "runs": runs, "metrics": history.parts.iter().map(part).collect::<Vec<_>>(),
        "remarks": history.remarks, "left_out": left_out})
}

fn part(part: &Part) -> Value {
    json!({"metric": part.metric.name, "higher_is_better": part.metric.higher_is_better,
        "cells": part.trends.iter().map(|trend| cell(trend, part)).collect::<Vec<_>>(),
        "steps": part.steps.iter().map(|night| step(night, part)).collect::<Vec<_>>()})
}

/// The new level over the old one, in the metric's own direction.
fn ratio(log: f64, part: &Part) -> f64 {
    if part.metric.higher_is_better { (-log).exp() } else { log.exp() }
}

fn cell(trend: &Trend, part: &Part) -> Value {
    let key = &trend.series.key;
    let (last, without) = match &trend.tonight {
        Ok(judgement) => (json!(judgement), Value::Null),
        Err(NoFigure::NotInIt) => (Value::Null, json!("not-in-it")),
        Err(NoFigure::Gap(gap)) => (Value::Null, json!(word(*gap))),
    };
    let steps: Vec<Value> = trend
        .steps
        .iter()
        .map(|step| json!({"before": step.before, "at": step.at, "ratio": ratio(step.log, part), "worse": step.log > 0.0, "p": step.p}))
        .collect();
    json!({"scenario": key.scenario, "device": key.device, "device_class": key.class, "chip": key.chip, "cell": key.cell, "method": key.method,
        "points": trend.series.points.iter().map(point).collect::<Vec<_>>(), "last": last, "last_without": without, "steps": steps})
}

fn point(point: &Point) -> Value {
    match point.figure {
        Figure::Value { at, mad, n, median } => json!({"run": point.run, "at": at, "mad": mad, "n": n, "median": median}),
        Figure::None(gap) => json!({"run": point.run, "without": word(gap)}),
    }
}

fn word(gap: Gap) -> &'static str {
    match gap {
        Gap::Absent => "absent",
        Gap::Skipped => "skipped",
        Gap::Infra => "infra",
        Gap::Failed => "failed",
        Gap::Unverified => "unverified",
    }
}

fn step(night: &StepNight, part: &Part) -> Value {
    let cells: Vec<Value> =
        night.lines.iter().map(|(place, log)| json!({"cell": place, "ratio": ratio(*log, part), "worse": *log > 0.0})).collect();
    let (changed, unknown) = match &night.changed {
        Ok(changed) => (json!(changed), Value::Null),
        Err(why) => (Value::Null, json!(why)),
    };
    json!({"device_class": night.class, "before": night.before, "at": night.at, "cells": cells, "changed": changed, "changed_unknown": unknown})
}
