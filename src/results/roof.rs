//! Each cell's decode rate under the roof of its device's memory (rule R25). A rate above it feeds no figure: whatever was measured, it is not
//! this model on this device.

use std::collections::BTreeMap;

use bench_backend_api::{Axis, Failure, FailureKind, Geometry, Pass, Setting};

use super::{
    launches::{Record, Recorded},
    manifest::Manifest,
    tables::Row,
};
use crate::{
    analysis::roof::{Conditions, Demand, Peak, Precision, Standing, Told, applies, peak},
    device::soc,
    run::{events::Status, launch_figures},
    scenario::{Plan, PlannedCell},
    stats,
};

const HINT: &str = "compare model and quantisation of the artifact with what the scenario says, and the runtime's own token count; if the memory is \
                    faster than the catalogue says, tell us where the device shows it";

/// A cell under its roof.
#[derive(Debug, Clone, PartialEq)]
pub struct Roofed {
    /// Bytes that a step moves, peak bandwidth and roof in tokens a second, where the roof applies.
    pub roof: Option<(f64, Peak, f64)>,
    /// Median decode rate of the launches, in tokens a second.
    pub rate: f64,
    /// Bandwidth that a trace of the decode graph counted, in 10^9 bytes a second; the note names the trace.
    pub traced: Option<f64>,
    /// What to think of it, or why there is no roof; and what is assumed.
    pub note: String,
}

/// Judges every cell that has a decode rate. Launches of one that is over its roof become unverified.
pub fn check(recorded: &mut Recorded, plan: &Plan, manifest: &Manifest) -> BTreeMap<String, Roofed> {
    let mut found = BTreeMap::new();
    for planned in &plan.cells {
        let counted = |r: &Record| r.cell == planned.id && r.pass == Pass::Measure && r.status == Status::Ok;
        let launches: Vec<&Record> = recorded.launches.iter().map(|(_, r)| r).filter(|r| counted(r)).collect();
        let rates = launches.iter().filter_map(|r| launch_figures(&r.parsed, planned.cell.workload, plan.measure.warmup).decode_tok_s);
        let Some(rate) = stats::median(&rates.collect::<Vec<_>>()) else { continue };
        let speculative = launches.iter().any(|r| r.parsed.speculative().is_some());
        let (mut roofed, over) = judge(planned, manifest, rate, speculative);
        trace(&mut roofed, recorded.launches.iter().map(|(_, r)| r).filter(|r| r.cell == planned.id && r.pass == Pass::Profile));
        if over {
            for (_, record) in recorded.launches.iter_mut().filter(|(_, r)| counted(r)) {
                record.status = Status::Unverified;
                let message = format!("decode of {rate:.1} tok/s: {}", roofed.note);
                record.failure = Some(Failure { kind: FailureKind::Verify, message, hint: Some(HINT.to_owned()) });
            }
        }
        found.insert(planned.id.clone(), roofed);
    }
    found
}

/// What the profiling pass has of counted traffic, where there is a roof to hold it against.
fn trace<'a>(roofed: &mut Roofed, profiled: impl Iterator<Item = &'a Record>) {
    let Some((_, peak, _)) = &roofed.roof else { return };
    // A model in several binaries has a traffic for each: all of one launch, one after the other.
    let decode = |r: &'a Record| r.parsed.dram.iter().filter(|traffic| traffic.phase == "decode").collect::<Vec<_>>();
    let Some(all) = profiled.map(decode).find(|all| !all.is_empty()) else { return };
    let (bytes, us) = all.iter().fold((0.0, 0.0), |(bytes, us), one| (bytes + one.read_bytes + one.write_bytes, us + one.time_us));
    if us <= 0.0 {
        return;
    }
    let gb_s = bytes / us / 1e3;
    let odd = if gb_s > peak.gb_s { "warning: over the peak, so that one of the two is wrong: " } else { "" };
    let of = if all.len() > 1 { format!(" over {} traces", all.len()) } else { String::new() };
    roofed.note = format!("{}; {odd}{gb_s:.1} GB/s counted by {}{of}", roofed.note, all[0].source);
    roofed.traced = Some(gb_s);
}

/// The columns of a cell.
pub fn cell(row: &mut Row, roofed: Option<&Roofed>) {
    let Some(Roofed { roof, rate, traced, note }) = roofed else { return };
    row.set("roof_note", note);
    row.number("traced_gb_s", *traced);
    if let Some((bytes, peak, tok_s)) = roof {
        row.number("decode_mb_per_tok", Some(bytes / 1e6)).number("decode_gb_s", Some(bytes * rate / 1e9));
        row.number("peak_gb_s", Some(peak.gb_s)).number("roof_tok_s", Some(*tok_s)).number("roof_share", Some(rate / tok_s));
    }
}

/// Whether the rate is impossible, too, by a peak that is sure enough to say so.
fn judge(planned: &PlannedCell, manifest: &Manifest, rate: f64, speculative: bool) -> (Roofed, bool) {
    match roof(planned, manifest, speculative) {
        Err(why) => (Roofed { roof: None, rate, traced: None, note: format!("not applicable: {why}") }, false),
        Ok((bytes, peak, assumed)) => {
            let tok_s = peak.gb_s * 1e9 / bytes;
            let standing = Standing::of(rate / tok_s);
            let sure = peak.is_sure();
            let verdict = match (standing, sure) {
                (Standing::Over, false) => Some("warning: over a roof whose bandwidth is inferred from a sibling"),
                _ => standing.words(),
            };
            let at_most = format!("at most {tok_s:.1} tok/s by {}", peak.words());
            let note = verdict.into_iter().map(str::to_owned).chain([at_most]).chain(assumed).collect::<Vec<_>>().join("; ");
            (Roofed { roof: Some((bytes, peak, tok_s)), rate, traced: None, note }, standing == Standing::Over && sure)
        }
    }
}

/// Bytes of a step, peak bandwidth, and what is assumed.
fn roof(planned: &PlannedCell, manifest: &Manifest, speculative: bool) -> Result<(f64, Peak, Option<String>), String> {
    let cell = &planned.cell;
    let facts = manifest.cells.get(&planned.id).ok_or("the manifest does not know the cell")?;
    let geometry: &Geometry = cell.model.geometry.as_ref().ok_or("the scenario names no geometry of the model")?;
    let told = |key: &str| facts.facts.get(key).copied();
    let axis = |axis: Axis| match cell.axes.get(&axis) {
        Some(Setting::Asked(v) | Setting::Fixed(v)) => Some(v.as_str()),
        _ => None,
    };
    // Scales are left out: how wide they are is the artifact's secret, and a bound takes the least.
    let told = Told {
        weight: told("weight_bits"),
        group: None,
        head: told("lm_head_bits"),
        embedding: told("embedding_bits"),
        kv: told("kv_bits").or_else(|| axis(Axis::Kv).and_then(|v| v.parse().ok())),
    };
    let precision = Precision::of(cell.quant, told);
    let demand = Demand::of(geometry, &precision).map_err(|e| e.to_string())?;
    let mixture = demand.mixture();
    let soc = manifest.device.soc.as_deref().and_then(soc::find);
    let caches = applies(&Conditions {
        class: facts.device_class,
        batch: axis(Axis::Batch).and_then(|v| v.parse().ok()).unwrap_or(1),
        speculative,
        mixture: mixture.as_deref(),
        weights: demand.weights_read(),
        soc,
    })?;
    let peak = peak(soc, manifest.device_says.pointer("/facts/ddr_max_khz/value").and_then(serde_json::Value::as_u64))?;
    // The first token is the prefill's: N-1 steps, the cache growing from the prompt to all but the last two.
    let (prompt, generated) = (cell.workload.prompt_tokens(), cell.workload.gen_tokens());
    let depth = f64::from(prompt) + f64::from(generated.saturating_sub(2)) / 2.0;
    let assumed: Vec<String> = precision.assumed.into_iter().chain(caches).collect();
    Ok((demand.decode_bytes(depth), peak, (!assumed.is_empty()).then(|| format!("assumed: {}", assumed.join(", ")))))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;

    /// The example run's first cell, made one of an 8 Gen 3 phone with an 8B model in 4 bits.
    fn phone() -> (PlannedCell, Manifest) {
        let run = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/results/example-pc"));
        let plan = Plan::from_toml(&std::fs::read_to_string(run.join("plan.toml")).unwrap()).unwrap();
        let mut manifest: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(run.join("manifest.json")).unwrap()).unwrap();
        let mut planned = plan.cells[0].clone();
        manifest["device"]["soc"] = json!("SM8650");
        manifest["device_says"] = json!({"facts": {"ddr_max_khz": {"denied": "Permission denied"}}});
        manifest["cells"][&planned.id]["device_class"] = json!("phone");
        manifest["cells"][&planned.id]["facts"] = json!({});
        let mut geometry = planned.cell.model.geometry.clone().unwrap();
        (geometry.layers, geometry.hidden, geometry.heads, geometry.kv_heads) = (Some(32), Some(4096), Some(32), Some(8));
        (geometry.head_dim, geometry.ffn, geometry.vocab) = (Some(128), Some(14336), Some(128_256));
        planned.cell.model.geometry = Some(geometry);
        planned.cell.quant = bench_backend_api::Quant::W4a16;
        (planned, serde_json::from_value(manifest).unwrap())
    }

    fn of(rate: f64) -> (Roofed, bool) {
        let (planned, manifest) = phone();
        judge(&planned, &manifest, rate, false)
    }

    /// By hand: 7,504,924,672 weights and a row of 4096 in half bytes, and a KV cache of 65,536 bytes a token: 32 of the prompt, 7 of 16 generated
    /// ones on average, one of its own. 76.8 GB/s.
    #[test]
    fn an_8b_on_a_phone() {
        let bytes: f64 = 7_504_928_768.0 * 0.5 + 40.0 * 65_536.0;
        let (roofed, over) = of(14.0);
        let (moved, peak, tok_s) = roofed.roof.unwrap();
        assert!((moved - bytes).abs() < 1.0 && (peak.gb_s - 76.8).abs() < 1e-9 && (tok_s - 76.8e9 / bytes).abs() < 1e-6 && !over);
        assert!(
            roofed.note.starts_with("at most 20.5 tok/s by the catalogue of SoCs, confidence medium; assumed: weights 4 bits, "),
            "{}",
            roofed.note
        );
        for (rate, words, impossible) in [
            (35.0, "error: over", true),
            (25.0, "error: over", true),
            (19.0, "warning: over 85 %", false),
            (2.4, "warning: under 15 %", false),
        ] {
            let (roofed, over) = of(rate);
            assert!(roofed.note.starts_with(words) && over == impossible, "{rate}: {}", roofed.note);
        }
        let mut row = Row::default();
        cell(&mut row, Some(&of(14.0).0));
        // 14 x 3.755 GB.
        assert!(format!("{row:?}").contains("\"decode_gb_s\": \"52.57"), "{row:?}");
    }

    /// A launch whose second query has 16 tokens, so many ns apart.
    fn launch(cell: &str, number: u32, gap_ns: u64) -> (std::path::PathBuf, Record) {
        let tokens: Vec<serde_json::Value> = (1..=16).map(|i| json!({"id": null, "t_ns": 1_000_000_000 + i * gap_ns})).collect();
        let query = |n: u32| {
            json!({"query": n, "prompt_tokens": 32, "prompt_tokens_reported": null, "generated_reported": null, "start_ns": 1_000_000_000,
                "tokens": tokens, "end_ns": null, "finish": "length", "reported": {}})
        };
        let record = json!({"format_version": 1, "cell": cell, "pass": "measure", "launch": number, "block": number, "segment": 0, "status": "ok",
            "failure": null, "checks": null, "steps": [],
            "parsed": {"load_ns": null, "unit_reported": null, "queries": [query(0), query(1)], "layers": [], "notes": {}, "warnings": []}});
        (std::path::PathBuf::new(), serde_json::from_value(record).unwrap())
    }

    #[test]
    fn launches_of_an_impossible_cell_feed_no_figure() {
        let (planned, manifest) = phone();
        let mut plan = Plan::from_toml(include_str!("../../results/example-pc/plan.toml")).unwrap();
        let id = planned.id.clone();
        plan.cells[0] = planned;
        // 40 ms a token are 25 tok/s, 80 ms are 12.5; another cell's launches stay as they are.
        for (gap_ns, status, share) in [(40_000_000, Status::Unverified, 25.0), (80_000_000, Status::Ok, 12.5)] {
            let launches = vec![launch(&id, 0, gap_ns), launch(&id, 1, gap_ns), launch(&plan.cells[1].id, 0, 40_000_000)];
            let mut recorded = Recorded { launches, ..Recorded::default() };
            let found = check(&mut recorded, &plan, &manifest);
            let statuses: Vec<Status> = recorded.launches.iter().map(|(_, r)| r.status).collect();
            assert_eq!(statuses, [status, status, Status::Ok]);
            let roofed = &found[&id];
            assert!((roofed.rate - share).abs() < 1e-6, "{roofed:?}");
            let failure = recorded.launches[0].1.failure.as_ref();
            assert_eq!(failure.is_some_and(|f| f.message.starts_with("decode of 25.0 tok/s: error: over the roof")), status != Status::Ok);
            assert!(found[&plan.cells[1].id].note.starts_with("not applicable: "), "an emulator's");
        }
    }

    #[test]
    fn a_trace_of_the_decode_graph_is_held_against_the_roof() {
        for (mb, words) in [
            (60.0, "; 60.0 GB/s counted by qnn-optrace of t.json"),
            (90.0, "; warning: over the peak, so that one of the two is wrong: 90.0"),
        ] {
            let (mut roofed, _) = of(14.0);
            let (_, mut record) = launch("c", 0, 1);
            let traffic = |phase: &str, read_bytes: f64| json!({"phase": phase, "read_bytes": read_bytes, "write_bytes": 1e6, "time_us": 1000.0, "source": "qnn-optrace of t.json"});
            record.parsed.dram = serde_json::from_value(json!([traffic("prefill", 1e6), traffic("decode", (mb - 1.0) * 1e6)])).unwrap();
            trace(&mut roofed, std::iter::once(&record));
            assert!((roofed.traced.unwrap() - mb).abs() < 1e-9 && roofed.note.contains(words), "{}", roofed.note);
        }
    }

    #[test]
    fn the_device_s_clock_and_an_inferred_bandwidth() {
        let (planned, mut manifest) = phone();
        manifest.device_says = json!({"facts": {"ddr_max_khz": {"value": 2_400_000}}});
        // 2400 MHz x 2 x 8 bytes is half the catalogue's: 12 tok/s are too many.
        let (roofed, over) = judge(&planned, &manifest, 12.0, false);
        assert!(over && roofed.note.contains("DDR clock of at most 2400 MHz"), "{}", roofed.note);
        manifest.device_says = serde_json::Value::Null;
        manifest.device.soc = Some("QCS8550".to_owned());
        let (roofed, over) = judge(&planned, &manifest, 35.0, false);
        assert!(!over && roofed.note.starts_with("warning: over a roof whose bandwidth is inferred"), "{}", roofed.note);
    }

    #[test]
    fn where_it_does_not_apply_the_reason_stands() {
        let (planned, manifest) = phone();
        let why = |planned: &PlannedCell, manifest: &Manifest, speculative: bool| {
            let (roofed, over) = judge(planned, manifest, 100.0, speculative);
            assert!(!over && roofed.roof.is_none());
            roofed.note
        };
        assert!(why(&planned, &manifest, true).starts_with("not applicable: speculative decoding"));
        let mut batch = planned.clone();
        batch.cell.axes.insert(Axis::Batch, Setting::Asked("4".to_owned()));
        assert!(why(&batch, &manifest, false).starts_with("not applicable: batch 4"));
        let mut shapeless = planned.clone();
        shapeless.cell.model.geometry = None;
        assert_eq!(why(&shapeless, &manifest, false), "not applicable: the scenario names no geometry of the model");
        let mut other = manifest.clone();
        other.device.soc = Some("SM9999".to_owned());
        assert!(why(&planned, &other, false).contains("not in the catalogue"));
        other.cells.get_mut(&planned.id).unwrap().device_class = bench_backend_api::DeviceClass::Emulator;
        assert!(why(&planned, &other, false).contains("not for class emulator"));
    }
}
