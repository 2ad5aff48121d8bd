//! Rows of `soak.csv`, `soak_events.csv` and `telemetry_windows.csv`, and the soak's columns of a cell. The figures themselves come with the
//! launch's record ([`crate::analysis::soak`]).

use std::{collections::BTreeMap, path::Path};

use bench_backend_api::{Check, Pass, Setting};

use super::{
    launches::{Record, Recorded},
    manifest::Manifest,
    tables::Row,
};
use crate::{
    analysis::soak::{Happening, Soak, Window},
    scenario::Plan,
};

/// The soak of a cell, if there is one.
fn of<'a>(recorded: &'a Recorded, cell: &str) -> Option<(&'a Record, &'a Soak)> {
    let record = recorded.launches.iter().map(|(_, r)| r).find(|r| r.cell == cell && r.pass == Pass::Soak)?;
    record.soak.as_ref().map(|soak| (record, soak))
}

/// Columns of `soak.csv` for each part of the device: its mean and its highest temperature.
const DOMAINS: [(&str, &str, &str); 6] = [
    ("npu", "npu_c", "npu_max_c"),
    ("cpu", "cpu_c", "cpu_max_c"),
    ("gpu", "gpu_c", "gpu_max_c"),
    ("ddr", "ddr_c", "ddr_max_c"),
    ("skin", "skin_c", "skin_max_c"),
    ("battery", "battery_c", "battery_max_c"),
];

/// Columns of `cells.csv` for the peaks of a soak.
const PEAKS: [(&str, &str); 6] = [
    ("npu", "peak_npu_c"),
    ("cpu", "peak_cpu_c"),
    ("gpu", "peak_gpu_c"),
    ("ddr", "peak_ddr_c"),
    ("skin", "peak_skin_c"),
    ("battery", "peak_battery_c"),
];

/// Fills the row of a window; its keys are there.
pub fn window(row: &mut Row, number: usize, w: &Window) {
    row.set("window", number).number("t_s", Some(w.start_s)).number("length_s", Some(w.length_s));
    row.set("queries", w.queries).set("tokens", w.tokens).number("tok_s", Some(w.tok_s)).number("decode_tok_s", w.decode_tok_s);
    row.number("ttft_p50_ms", w.ttft_ms.map(|q| q[0])).number("ttft_p90_ms", w.ttft_ms.map(|q| q[1]));
    for (place, column) in ["itl_p50_ms", "itl_p90_ms", "itl_p99_ms", "itl_max_ms"].into_iter().enumerate() {
        row.number(column, w.itl_ms.map(|q| q[place]));
    }
    for (domain, mean, max) in DOMAINS {
        let temps = w.domains.get(domain);
        row.number(mean, temps.map(|t| t[0])).number(max, temps.map(|t| t[1]));
    }
    row.number("cpu_mhz", w.cpu_mhz).number("cpu_cap_pct", w.cpu_cap.map(|c| c * 100.0)).number("gpu_mhz", w.gpu_mhz);
    row.number("ddr_mhz", w.ddr_mhz).number("npu_mhz", w.npu_mhz).number("cooling_state", w.cooling);
    row.number("throttled_fraction", w.throttled).number("watts", w.watts);
    row.set("check_tokens", &w.check).set("answers_wrong", w.wrong).set("answers_changed", w.changed);
}

/// Fills the row of something that happened.
pub fn happening(row: &mut Row, h: &Happening) {
    row.number("t_s", Some(h.t_s)).set("kind", &h.kind).number("temp_c", h.temp_c).set("what", &h.what);
}

/// Fills the columns of a cell. A cell without a soak has none, or why there is none.
pub fn cell(row: &mut Row, id: &str, plan: &Plan, recorded: &Recorded, ranks: &Ranks) {
    let Some((record, soak)) = of(recorded, id) else {
        let planned = plan.soaked().iter().any(|place| plan.cells[*place].id == id);
        let why = recorded.unsoaked.iter().find(|(cell, _)| cell == id).map(|(_, why)| why.as_str());
        let failed = recorded.launches.iter().map(|(_, r)| r).find(|r| r.cell == id && r.pass == Pass::Soak);
        let ended = match (failed.and_then(|r| r.failure.as_ref()), why) {
            (Some(f), _) => format!("failed: {}", f.message),
            (None, why) => format!("not run: {}", why.unwrap_or("the run ended before it")),
        };
        row.maybe("soak_ended", planned.then_some(ended));
        return;
    };
    let ended = soak.early.as_ref().map_or_else(|| "complete".to_owned(), |why| format!("early: {why}"));
    row.set("soak_ended", ended).number("soak_s", Some(soak.length_s)).set("soak_windows", soak.windows.len());
    let tokens = record.checks.as_ref().map(|c| if contradicted(record) { Check::Contradicted } else { c.tokens });
    row.maybe("soak_check_tokens", tokens);
    row.number("throttled_fraction", soak.throttled_fraction);
    row.maybe(
        "first_throttle",
        soak.first_throttle.as_ref().map(|t| format!("{} at {:.1} s from {} to {}", t.name, t.t_s, t.change[0], t.change[1])),
    );
    for (domain, column) in PEAKS {
        row.number(column, soak.peaks.get(domain).copied());
    }
    row.maybe("rise_domain", soak.heat_domain.as_ref());
    let ends = [
        (soak.rise_60s, ["rise_c_per_min_60s", "rise_c_per_min_60s_lo", "rise_c_per_min_60s_hi"]),
        (soak.rise_5min, ["rise_c_per_min_5min", "rise_c_per_min_5min_lo", "rise_c_per_min_5min_hi"]),
    ];
    for (rise, [value, lo, hi]) in ends {
        row.number(value, rise.map(|r| r.value)).number(lo, rise.map(|r| r.lo)).number(hi, rise.map(|r| r.hi));
    }
    let mut absent: Vec<(&str, &str)> = soak.absent.iter().map(|(figure, why)| (figure.as_str(), why.as_str())).collect();
    if contradicted(record) {
        // What comes of wrong tokens is no speed (design 2b.5); heat and throttling are what they are, and soak.csv has the windows.
        absent.retain(|(figure, _)| !SPEEDS.contains(figure));
        absent.extend(SPEEDS.map(|figure| (figure, "the check of its answers contradicts it")));
    } else {
        row.number("soak_tok_s", soak.initial_tok_s).number("soak_span_s", soak.span_s).number("sustained_ratio", soak.sustained_ratio);
        row.number("time_to_throttle_s", soak.time_to_throttle_s).number("steady_state_s", soak.steady_state_s);
        row.number("latency_temp_rho", soak.latency_temp.map(|a| a.rho))
            .number("latency_temp_ms_per_c", soak.latency_temp.map(|a| a.slope));
        row.number("soak_minute_1_tok_s", soak.minute_1_tok_s).number("soak_minute_30_tok_s", soak.minute_30_tok_s);
    }
    let [first, thirtieth] = ranks.get(id).copied().unwrap_or_default();
    row.maybe("soak_minute_1_rank", first).maybe("soak_minute_30_rank", thirtieth);
    let absent: Vec<String> = absent.into_iter().map(|(figure, why)| format!("{figure}={why}")).collect();
    row.set("soak_absent", absent.join(";"));
}

/// Figures of a soak that are made of its tokens' times.
const SPEEDS: [&str; 7] =
    ["soak_tok_s", "sustained_ratio", "time_to_throttle_s", "steady_state_s", "latency_temp", "minute_1_tok_s", "minute_30_tok_s"];

/// Its answers are not the reference's, or some window is contradicted.
fn contradicted(record: &Record) -> bool {
    let wrong = |soak: &Soak| soak.windows.iter().any(|w| w.check == Check::Contradicted.to_string());
    record.checks.as_ref().is_some_and(|checks| checks.tokens == Check::Contradicted) || record.soak.as_ref().is_some_and(wrong)
}

/// The place of each cell among those that differ from it in the backend alone, by throughput, in the first and in the thirtieth minute.
pub type Ranks = BTreeMap<String, [Option<usize>; 2]>;

/// Throughput in the first and in the thirtieth minute.
type Rates = [Option<f64>; 2];

/// What a cell has on an axis; `None` where the axis means nothing to its backend.
fn effective(setting: &Setting) -> Option<&str> {
    match setting {
        Setting::Asked(value) | Setting::Fixed(value) => Some(value),
        Setting::NotApplicable => None,
    }
}

/// Ranks of all soaked cells whose tokens are not wrong; classes never mix, nor do models, quantisations, lengths and axes.
pub fn ranks(plan: &Plan, manifest: &Manifest, recorded: &Recorded) -> Ranks {
    let mut groups: BTreeMap<String, Vec<(&str, Rates)>> = BTreeMap::new();
    for planned in &plan.cells {
        let Some((record, soak)) = of(recorded, &planned.id) else { continue };
        let (cell, class) = (&planned.cell, manifest.cells.get(&planned.id).map(|facts| facts.device_class));
        // Tokens that are wrong have no speed.
        if contradicted(record) {
            continue;
        }
        let axes: Vec<String> = cell.axes.iter().filter_map(|(axis, setting)| Some(format!("{axis}={}", effective(setting)?))).collect();
        let group = format!(
            "{class:?} {} {} {} {} {}",
            cell.model.name,
            cell.quant,
            cell.workload.prompt_tokens(),
            cell.workload.gen_tokens(),
            axes.join(" ")
        );
        groups.entry(group).or_default().push((&planned.id, [soak.minute_1_tok_s, soak.minute_30_tok_s]));
    }
    let mut ranks = Ranks::new();
    for group in groups.values().filter(|g| g.len() > 1) {
        for (id, rates) in group {
            let rank = |minute: usize| {
                let own = rates[minute]?;
                Some(1 + group.iter().filter(|(_, other)| other[minute].is_some_and(|rate| rate > own)).count())
            };
            ranks.insert((*id).to_owned(), [rank(0), rank(1)]);
        }
    }
    ranks
}

/// The rows of an agent's windows.csv (`t_ns,source,name,min,max,mean,n,unit`), their time in ms since `start_ns`.
pub fn telemetry_windows(path: &Path, start_ns: u64, mut with: impl FnMut(f64, [&str; 7])) {
    let Ok(mut reader) = csv::ReaderBuilder::new().flexible(true).from_path(path) else { return };
    for line in reader.records().filter_map(Result::ok) {
        let fields: Vec<&str> = line.iter().collect();
        if let [t, rest @ ..] = fields.as_slice()
            && let (Ok(t), Ok(rest)) = (t.parse::<u64>(), <[&str; 7]>::try_from(rest))
        {
            with((t as f64 - start_ns as f64) / 1e6, rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use bench_backend_api::{Parsed, Quant};

    use super::*;
    use crate::{results::launches::Staged, results::start::Start, run::events::Status};

    fn soaked(cell: &str, [minute_1_tok_s, minute_30_tok_s]: Rates, check: &str) -> Record {
        let windows = vec![Window { check: check.to_owned(), ..Window::default() }];
        Record {
            format_version: 1,
            cell: cell.to_owned(),
            pass: Pass::Soak,
            launch: 0,
            block: 0,
            segment: 0,
            status: Status::Ok,
            failure: None,
            checks: None,
            parsed: Parsed::default(),
            steps: Vec::new(),
            staged: Staged::default(),
            lmkd_kills: None,
            round_trips: 0,
            start: Start::default(),
            shared: None,
            soak: Some(Soak { windows, minute_1_tok_s, minute_30_tok_s, ..Soak::default() }),
        }
    }

    /// Places by hand: backends on one artifact overtake each other by the thirtieth minute, two are equal in the first, one does not get that far.
    #[test]
    fn a_place_is_among_what_differs_in_the_backend_alone() {
        let example = concat!(env!("CARGO_MANIFEST_DIR"), "/results/example-pc");
        let mut plan = Plan::from_toml(include_str!("../../results/example-pc/plan.toml")).unwrap();
        let manifest = Manifest::read(Path::new(example)).unwrap();
        let id = |start: &str| plan.cells.iter().find(|c| c.id.starts_with(start)).unwrap().id.clone();
        let [genie, ort, third, long, long_ort, pc] = [
            "genie.tiny-llama.fp16.p32.",
            "ort-qnn.tiny-llama.fp16.p32.",
            "qnn.tiny-llama.fp16.p32.",
            "genie.tiny-llama.fp16.p96.",
            "ort-qnn.tiny-llama.fp16.p96.",
            "mnn.tiny-llama.fp32.p32.",
        ]
        .map(id);
        for planned in &mut plan.cells {
            if planned.id == third {
                planned.cell.backend = "third".to_owned();
            } else if planned.id == pc {
                // All but the class is that of the others.
                planned.cell.quant = Quant::Fp16;
                planned.cell.unit = bench_backend_api::Unit::Npu;
            }
        }
        let records = [
            soaked(&genie, [Some(30.0), Some(10.0)], "confirmed"),
            soaked(&ort, [Some(20.0), Some(12.0)], "confirmed"),
            soaked(&third, [Some(20.0), None], "not-checkable"),
            // Another length; and its only neighbour answers wrongly.
            soaked(&long, [Some(99.0), Some(99.0)], "confirmed"),
            soaked(&long_ort, [Some(98.0), Some(98.0)], "contradicted"),
            soaked(&pc, [Some(500.0), Some(500.0)], "confirmed"),
        ];
        let launches = records.map(|r| (std::path::PathBuf::new(), r)).to_vec();
        let found = ranks(&plan, &manifest, &Recorded { launches, ..Recorded::default() });
        let wanted = [(genie, [Some(1), Some(2)]), (ort, [Some(2), Some(1)]), (third, [Some(2), None])];
        assert_eq!(found, wanted.into_iter().collect());
    }
}
