//! What is known of the NPU in each launch: from the runtime's own profile (time on the accelerator, FastRPC, waiting for VTCM) and from
//! counters that the agent could read. The two are different things (rule R23) and have columns of their own. Nothing of an emulator is in it:
//! its times and counts are a simulation's.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{BufRead, BufReader},
    path::Path,
};

use bench_agent::spec::{SourceReport, SourceState};
use bench_backend_api::{DeviceClass, NpuProfile, Parsed, Pass};

use super::{
    launches::{Record, Recorded},
    manifest::Manifest,
    tables::Row,
};
use crate::{
    run::{events::Status, is_composed, warmup},
    scenario::Plan,
    stats,
};

/// Launches of a cell from which on there is a quiet median of the wait for VTCM.
const QUIET: usize = 5;

/// The agent's source, and its names in the order of [`UTILS`].
const SOURCE: &str = "npu";
const NAMES: [&str; 3] = ["q6_pct", "hvx_pct", "hmx_pct"];
const UTILS: [&str; 3] = ["npu_util_pct", "hvx_util_pct", "hmx_util_pct"];
/// What a profile gives.
const PROFILED: [&str; 5] = ["npu_duty_pct", "rpc_share", "vtcm_acquire_us", "yields", "hvx_threads"];

/// The figures of one launch.
#[derive(Debug, Clone, Default, PartialEq)]
struct Figures {
    duty_pct: Option<f64>,
    duty_method: Option<String>,
    rpc_share: Option<f64>,
    vtcm_acquire_us: Option<f64>,
    yields: Option<f64>,
    hvx_threads: Option<f64>,
    utils: [Option<f64>; 3],
    util_method: Option<String>,
    /// `yields`, `vtcm`: somebody else used the NPU (rule R9).
    contended: Vec<&'static str>,
    absent: Vec<(&'static str, String)>,
}

impl Figures {
    fn of_profile(profile: Option<&NpuProfile>) -> Self {
        let mean = |total: Option<bench_backend_api::npu::Total>| total.and_then(|t| t.mean());
        let duty_pct = profile.and_then(|p| p.duty?.ratio()).map(|ratio| 100.0 * ratio);
        let mut figures = Self {
            duty_method: duty_pct.and(profile).map(|p| format!("derived:{}", p.source)),
            duty_pct,
            rpc_share: profile.and_then(|p| p.rpc_overhead?.ratio()),
            vtcm_acquire_us: mean(profile.and_then(|p| p.vtcm_acquire_us)),
            yields: profile.and_then(|p| p.yields).map(|total| total.sum),
            hvx_threads: profile.and_then(|p| p.hvx_threads).map(f64::from),
            ..Self::default()
        };
        if figures.yields.is_some_and(|n| n > 0.0) {
            figures.contended.push("yields");
        }
        let why = if profile.is_some() { "not in the profile" } else { "no profile with times of the NPU" };
        let values = figures.profiled();
        figures.absent = PROFILED.into_iter().zip(values).filter(|(_, v)| v.is_none()).map(|(name, _)| (name, why.to_owned())).collect();
        figures
    }

    /// In the order of [`PROFILED`].
    fn profiled(&self) -> [Option<f64>; 5] {
        [self.duty_pct, self.rpc_share, self.vtcm_acquire_us, self.yields, self.hvx_threads]
    }

    fn lacks(&mut self, names: &[&'static str], why: &str) {
        self.absent.extend(names.iter().map(|name| (*name, why.to_owned())));
    }

    fn emulated() -> Self {
        let mut figures = Self::default();
        figures.lacks(&PROFILED, "emulated");
        figures.lacks(&UTILS, "emulated");
        figures
    }

    fn columns(&self, row: &mut Row) {
        for (name, value) in PROFILED.into_iter().zip(self.profiled()).chain(UTILS.into_iter().zip(self.utils)) {
            row.number(name, value);
        }
        row.maybe("npu_duty_method", self.duty_method.as_ref()).maybe("npu_util_method", self.util_method.as_ref());
        row.maybe("contended", (!self.contended.is_empty()).then(|| self.contended.join(";")));
    }
}

/// The NPU in all launches of a run.
#[derive(Debug, Default)]
pub struct Npu(BTreeMap<(String, Pass, u32), Figures>);

impl Npu {
    /// Reads what there is. Telemetry is read only of launches whose agent had counters.
    pub fn of(plan: &Plan, manifest: &Manifest, recorded: &Recorded) -> Self {
        let mut all = BTreeMap::new();
        for (dir, record) in &recorded.launches {
            let class = manifest.cells.get(&record.cell).map(|cell| cell.device_class);
            let figures = if class == Some(DeviceClass::Emulator) {
                Figures::emulated()
            } else {
                let mut figures = Figures::of_profile(record.parsed.npu.as_ref());
                counters(&mut figures, record, dir, warmup(&plan.measure, record.pass, &record.parsed).discarded);
                figures
            };
            all.insert((record.cell.clone(), record.pass, record.launch), figures);
        }
        let mut npu = Self(all);
        for cell in &plan.cells {
            npu.waits(&cell.id);
        }
        npu
    }

    /// Marks the launches of a cell that waited for VTCM as no quiet one does.
    fn waits(&mut self, cell: &str) {
        let measured = |(name, pass, _): &(String, Pass, u32)| name == cell && *pass == Pass::Measure;
        let mut launches: Vec<&mut Figures> = self.0.iter_mut().filter(|(key, _)| measured(key)).map(|(_, figures)| figures).collect();
        let waits: Vec<f64> = launches.iter().filter_map(|figures| figures.vtcm_acquire_us).collect();
        let long = long_waits(&waits);
        let with = launches.iter_mut().filter(|figures| figures.vtcm_acquire_us.is_some());
        for (figures, long) in with.zip(long) {
            if long {
                figures.contended.push("vtcm");
            }
        }
    }

    /// Sets the columns of a launch.
    pub fn launch(&self, record: &Record, row: &mut Row) {
        if let Some(figures) = self.0.get(&(record.cell.clone(), record.pass, record.launch)) {
            figures.columns(row);
        }
    }

    /// Sets the columns of a cell: medians over the launches that count. Where no measured launch has a profile, the profile pass has one: its
    /// method says so.
    pub fn cell(&self, cell: &str, recorded: &Recorded, row: &mut Row) {
        let of = |pass: Pass| -> Vec<&Figures> {
            let records = recorded.launches.iter().map(|(_, r)| r).filter(|r| r.cell == cell && r.pass == pass && r.status == Status::Ok);
            records.filter_map(|r| self.0.get(&(r.cell.clone(), r.pass, r.launch))).collect()
        };
        let (measured, profiled) = (of(Pass::Measure), of(Pass::Profile));
        if measured.is_empty() {
            return;
        }
        let figures = summary(&measured, &profiled);
        figures.columns(row);
        row.also_absent(&figures.absent);
    }
}

fn summary(measured: &[&Figures], profiled: &[&Figures]) -> Figures {
    let in_measured = measured.iter().any(|f| f.profiled().iter().any(Option::is_some));
    let (source, pass) = if in_measured { (measured, "") } else { (profiled, ", profile pass") };
    let median = |from: &[&Figures], pick: &dyn Fn(&Figures) -> Option<f64>| {
        stats::median(&from.iter().filter_map(|figures| pick(figures)).collect::<Vec<_>>())
    };
    let mut figures = Figures {
        duty_pct: median(source, &|f| f.duty_pct),
        duty_method: source.iter().find_map(|f| f.duty_method.as_ref()).map(|method| format!("{method}{pass}")),
        rpc_share: median(source, &|f| f.rpc_share),
        vtcm_acquire_us: median(source, &|f| f.vtcm_acquire_us),
        yields: median(source, &|f| f.yields),
        hvx_threads: source.iter().filter_map(|f| f.hvx_threads).reduce(f64::max),
        utils: [0, 1, 2].map(|i: usize| median(measured, &|f| f.utils[i])),
        util_method: measured.iter().find_map(|f| f.util_method.clone()),
        ..Figures::default()
    };
    for word in ["yields", "vtcm"] {
        if measured.iter().chain(source).any(|f| f.contended.contains(&word)) {
            figures.contended.push(word);
        }
    }
    let values = PROFILED.into_iter().zip(figures.profiled()).chain(UTILS.into_iter().zip(figures.utils));
    let missing: Vec<&'static str> = values.filter(|(_, value)| value.is_none()).map(|(name, _)| name).collect();
    for name in missing {
        let reasons = source.iter().chain(measured).flat_map(|f| &f.absent);
        let why = reasons.filter(|(of, _)| *of == name).map(|(_, why)| why.clone()).next();
        figures.absent.push((name, why.unwrap_or_else(|| "not observed".to_owned())));
    }
    figures
}

/// Which waits stand out above the median of at least [`QUIET`] (modified z-score, [`stats::outliers`]); none of fewer.
fn long_waits(waits: &[f64]) -> Vec<bool> {
    let quiet = stats::median(waits).filter(|_| waits.len() >= QUIET);
    let Some(quiet) = quiet else { return vec![false; waits.len()] };
    stats::outliers(waits).into_iter().zip(waits).map(|(apart, wait)| apart && *wait > quiet).collect()
}

/// The counters that the agent read in the measured queries.
fn counters(figures: &mut Figures, record: &Record, dir: &Path, warmup: u32) {
    let mut reports = record.steps.iter().filter_map(|s| s.done.as_ref()).flat_map(|done| &done.sources);
    let report = reports.find(|source| source.name == SOURCE);
    match (report.filter(|r| r.state == SourceState::Available), window(&record.timed(), warmup)) {
        (Some(report), Ok(window)) => {
            let files = record.telemetry_files(dir);
            let lines =
                files.iter().filter_map(|path| File::open(path).ok()).flat_map(|file| BufReader::new(file).lines().map_while(Result::ok));
            figures.utils = if record.pass == Pass::Soak { means_of_windows(dir, window) } else { means(lines, window) };
            let missing: Vec<&'static str> =
                UTILS.into_iter().zip(figures.utils).filter(|(_, v)| v.is_none()).map(|(name, _)| name).collect();
            figures.lacks(&missing, "no sample in the measured queries");
            figures.util_method =
                figures.utils.iter().any(Option::is_some).then(|| report.detail.clone().unwrap_or_else(|| SOURCE.to_owned()));
        }
        (Some(_), Err(why)) => figures.lacks(&UTILS, why),
        (None, _) => figures.lacks(&UTILS, &no_counters(report)),
    }
}

fn no_counters(report: Option<&SourceReport>) -> String {
    let Some(report) = report else { return "the agent has no counters of the NPU".to_owned() };
    let state = if report.state == SourceState::Denied { "denied" } else { "absent" };
    let detail = report.detail.as_ref().map(|d| format!(" ({})", d.replace([';', '='], ","))).unwrap_or_default();
    format!("counters {state}{detail}")
}

/// From the submission of the first measured query to the end of the last, `CLOCK_MONOTONIC` ns.
fn window(parsed: &Parsed, warmup: u32) -> Result<(u64, u64), &'static str> {
    if is_composed(parsed) {
        return Err("each graph ran in a process of its own");
    }
    let warm = || parsed.queries.iter().filter(|q| q.query >= warmup && q.aggregate_n.is_none());
    let start = warm().map(|q| q.start_ns).min();
    let end = warm().filter_map(|q| q.end_ns.or_else(|| Some(q.tokens.last()?.t_ns))).max();
    start.zip(end).ok_or("the tool does not say when its queries were")
}

/// The means of the samples in a window, in the order of [`NAMES`]. Source of the format: agent/README.md (`t_ns,source,name,value,unit`).
fn means(lines: impl Iterator<Item = String>, (start, end): (u64, u64)) -> [Option<f64>; 3] {
    let mut sums = [(0.0, 0_u32); 3];
    for line in lines {
        let mut fields = line.split(',');
        let (Some(t), Some(SOURCE), Some(name), Some(value)) = (fields.next(), fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        let inside = t.parse::<u64>().is_ok_and(|t| (start..=end).contains(&t));
        let value = value.parse::<f64>().ok().filter(|v| (0.0..=100.0).contains(v));
        if let (true, Some(value), Some(place)) = (inside, value, NAMES.iter().position(|known| *known == name)) {
            sums[place].0 += value;
            sums[place].1 += 1;
        }
    }
    sums.map(|(sum, n)| (n > 0).then(|| sum / f64::from(n)))
}

/// The same of a soak, whose telemetry.csv has changes alone: the means of the windows that begin within the window, by their samples.
fn means_of_windows(dir: &Path, (start, end): (u64, u64)) -> [Option<f64>; 3] {
    let mut sums = [(0.0, 0.0); 3];
    let length_ms = end.saturating_sub(start) as f64 / 1e6;
    super::soak::telemetry_windows(&dir.join("windows.csv"), start, |t_ms, [source, name, _, _, mean, n, _]| {
        let place = NAMES.iter().position(|known| source == SOURCE && *known == name);
        if let (Some(place), Ok(mean), Ok(n), true) = (place, mean.parse::<f64>(), n.parse::<f64>(), (0.0..=length_ms).contains(&t_ms)) {
            sums[place].0 += mean * n;
            sums[place].1 += n;
        }
    });
    sums.map(|(sum, n)| (n > 0.0).then(|| sum / n))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bench_backend_api::{
        Query, Token,
        npu::{Share, Total},
    };

    fn profile(yields: f64) -> NpuProfile {
        NpuProfile {
            source: "qnn-profile".to_owned(),
            duty: Some(Share { part_us: 2492.0, whole_us: 2949.0, n: 1 }),
            vtcm_acquire_us: Some(Total { sum: 800.0, n: 4 }),
            yields: Some(Total { sum: yields, n: 4 }),
            hvx_threads: Some(4),
            ..NpuProfile::default()
        }
    }

    #[test]
    fn a_profile_becomes_figures_and_what_it_lacks_has_a_reason() {
        let figures = Figures::of_profile(Some(&profile(0.0)));
        // 2492 of 2949 us are 84.5032 %; 800 us in 4 executions.
        assert!((figures.duty_pct.unwrap() - 84.503_221).abs() < 1e-5, "{figures:?}");
        assert_eq!((figures.vtcm_acquire_us, figures.yields, figures.hvx_threads), (Some(200.0), Some(0.0), Some(4.0)));
        assert_eq!(figures.duty_method.as_deref(), Some("derived:qnn-profile"));
        assert_eq!((figures.absent, figures.contended.len()), (vec![("rpc_share", "not in the profile".to_owned())], 0));
        assert_eq!(Figures::of_profile(Some(&profile(2.0))).contended, ["yields"]);
        let none = Figures::of_profile(None);
        assert!(none.duty_method.is_none() && none.absent.len() == 5 && none.absent[0].1.starts_with("no profile"));
    }

    #[test]
    fn the_counters_of_a_soak_are_those_of_all_samples() {
        let dir = tempfile::tempdir().unwrap();
        let text = "t_ns,source,name,min,max,mean,n,unit\n1000000,npu,q6_pct,0,1,1,10,pct\n5000000,npu,q6_pct,0,90,40,30,pct\n\
                    9000000,npu,q6_pct,0,90,80,10,pct\n9000000,npu,q6_clock,1,1,1,10,MHz\n12000000,npu,q6_pct,0,90,7,10,pct\n";
        std::fs::write(dir.path().join("windows.csv"), text).unwrap();
        // From 2 to 10 ms: 30 samples of 40 % and 10 of 80 %.
        assert_eq!(means_of_windows(dir.path(), (2_000_000, 10_000_000)), [Some(50.0), None, None]);
    }

    #[test]
    fn an_emulator_has_no_npu() {
        let all = Figures::emulated();
        assert_eq!(all.absent.len(), 8);
        let cell = summary(&[&all], &[&all]);
        assert!(cell.absent.iter().all(|(_, why)| why == "emulated") && cell.absent.len() == 8, "{cell:?}");
    }

    #[test]
    fn a_wait_stands_out_against_five_launches() {
        assert_eq!(long_waits(&[10.0, 11.0, 10.0, 12.0, 300.0]), [false, false, false, false, true]);
        assert_eq!(long_waits(&[10.0, 11.0, 12.0, 300.0]), [false; 4], "four have no quiet median");
        assert_eq!(long_waits(&[300.0, 301.0, 299.0, 302.0, 10.0]), [false; 5], "a short wait is no contention");
        assert_eq!(long_waits(&[7.0; 6]), [false; 6]);
    }

    #[test]
    fn the_profile_pass_stands_in_and_says_so() {
        let (with, without) = (Figures::of_profile(Some(&profile(0.0))), Figures::of_profile(None));
        let method = |measured: &[&Figures]| summary(measured, &[&with]).duty_method;
        assert_eq!(method(&[&without]).as_deref(), Some("derived:qnn-profile, profile pass"));
        assert_eq!(method(&[&with]).as_deref(), Some("derived:qnn-profile"));
        // Medians of the launches: 80, 84.5 and 90 % have the middle one.
        let duty = |pct: f64| Figures { duty_pct: Some(pct), ..with.clone() };
        let cell = summary(&[&duty(90.0), &with, &duty(80.0)], &[]);
        assert_eq!(cell.duty_pct, with.duty_pct);
    }

    #[test]
    fn counters_are_averaged_over_the_measured_queries() {
        let query =
            |number, start_ns, end| Query { query: number, start_ns, tokens: vec![Token { id: None, t_ns: end }], ..Query::default() };
        let parsed = Parsed { queries: vec![query(0, 100, 200), query(1, 300, 400), query(2, 500, 600)], ..Parsed::default() };
        assert_eq!(window(&parsed, 1), Ok((300, 600)));
        let aggregate = Parsed { queries: vec![Query { query: 1, aggregate_n: Some(5), ..Query::default() }], ..Parsed::default() };
        assert!(window(&aggregate, 1).is_err() && window(&Parsed::default(), 1).is_err());
        let text = "t_ns,source,name,value,unit\n150,npu,q6_pct,99,pct\n300,npu,q6_pct,40,pct\n450,npu,q6_pct,60,pct\n600,npu,q6_pct,80,pct\n\
                    601,npu,q6_pct,1,pct\n400,npu,hvx_pct,12.5,pct\n400,cpu,q6_pct,7,pct\n400,npu,hmx_pct,255,pct\n410,npu,q6_clock,1000,MHz\ncut";
        // 40, 60 and 80; a share of 255 % is none.
        assert_eq!(means(text.lines().map(str::to_owned), (300, 600)), [Some(60.0), Some(12.5), None]);
    }
}
