//! Power of a run's launches: reads what the run folder holds (telemetry, baseline, meter) and lets [`crate::analysis::power`] judge it.

#[cfg(test)]
mod baselines;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use bench_agent::spec::Done;
use bench_backend_api::{Cell, Parsed, Pass};

use super::{
    folder::device_dir,
    launches::{Record, Recorded},
};
use crate::{
    analysis::power::{
        self, Asked, Baseline, BaselineState, Clock, CurrentUnit, FitError, LaunchPower, Load, Meter, Method, Refusal, Telemetry,
    },
    run::{SHARED, events::Status, warmup},
    scenario::{Plan, Power, PowerMethod},
};

/// The files of a baseline's folder, `logs/<device>/baseline-<segment>/`, beside the agent's evidence.
pub const METER: &str = "meter.csv";
/// The folder in it of the pulses that were given after the last launch.
pub const METER_END: &str = "end";
/// What a baseline's command writes before and after each pulse of load: `begin` or `end`, and the seconds of /proc/uptime.
const PULSES: &str = "stdout.txt";

/// Folder of the baseline that was measured at the begin of a segment.
pub fn baseline_dir(run: &Path, device: &str, segment: u32) -> PathBuf {
    device_dir(run, device).join(format!("baseline-{segment}"))
}

/// Cell, whether it is its soak, number of the launch.
type Key<T> = (T, bool, u32);

/// Power figures of the measured launches of a run, and of its soaks.
#[derive(Debug, Default)]
pub struct RunPower {
    launches: BTreeMap<Key<String>, LaunchPower>,
}

/// Joules of one token of a phase by regression over cells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Regressed {
    /// J.
    pub joules: f64,
    /// Ends of the 95 % interval.
    pub interval: (f64, f64),
    /// Launches behind it.
    pub n: usize,
}

impl RunPower {
    /// Judges every measured launch of a run.
    pub fn read(run: &Path, plan: &Plan, device: &str, recorded: &Recorded) -> Self {
        let none = Power::default();
        let settings = plan.power.as_ref().unwrap_or(&none);
        let asked = asked(settings);
        let mut segments: BTreeMap<u32, Segment> = BTreeMap::new();
        let mut found: Vec<(Key<&str>, Load, LaunchPower, u32)> = Vec::new();
        // The launches that idled with their model in memory, by cell and segment.
        let mut idled: BTreeMap<(&str, u32), &(PathBuf, Record)> = BTreeMap::new();
        // A soak that ended early counts until then, as its windows do.
        let early = |r: &Record| r.pass == Pass::Soak && r.soak.is_some() && r.status == Status::Failed;
        let counts = |r: &&(PathBuf, Record)| counted(r.1.pass) && (r.1.status == Status::Ok || early(&r.1));
        for at in recorded.launches.iter().filter(counts) {
            let (dir, record) = at;
            if record.parsed.idle_ns.is_some() && settings.baseline_ms > 0 {
                idled.entry((&record.cell, record.segment)).or_insert(at);
            }
            let segment =
                segments.entry(record.segment).or_insert_with(|| Segment::read(&baseline_dir(run, device, record.segment), settings));
            let load = match record.pass {
                _ if record.shared.is_some() => Err(SHARED.to_owned()),
                Pass::Soak => soaked(record),
                _ => load(&record.parsed, warmup(&plan.measure, record.pass, &record.parsed).discarded),
            };
            let figures = match &load {
                Ok(load) => launch(dir, record, load, segment, asked),
                Err(why) => LaunchPower::without(why),
            };
            found.push(((&record.cell, record.pass == Pass::Soak, record.launch), load.unwrap_or_default(), figures, record.segment));
        }
        // At idle a current's size does not tell its unit: the launches of the same battery do.
        let unit = found.iter().find_map(|(_, _, figures, _)| figures.current);
        let baselines: BTreeMap<u32, Result<Baseline, String>> =
            segments.iter().map(|(number, segment)| (*number, segment.baseline(settings, asked, unit))).collect();
        let resident: BTreeMap<(&str, u32), Result<Baseline, String>> = idled
            .into_iter()
            .filter_map(|(key, (dir, record))| Some((key, segments.get(&key.1)?.resident(dir, record, settings, asked, unit))))
            .collect();
        let missing = Err("no baseline".to_owned());
        let launches = found.into_iter().map(|((cell, soak, number), load, mut figures, segment)| {
            let no_model = baselines.get(&segment).unwrap_or(&missing);
            figures.less(&load, power::chosen(resident.get(&(cell, segment)), no_model));
            ((cell.to_owned(), soak, number), figures)
        });
        Self { launches: launches.collect() }
    }

    /// The figures of one launch; `None` for launches that do not count.
    pub fn of(&self, record: &Record) -> Option<&LaunchPower> {
        self.launches.get(&(record.cell.clone(), record.pass == Pass::Soak, record.launch)).filter(|_| counted(record.pass))
    }

    /// Joules of a prompt token and of a generated token over the cells that differ from one in prompt and generated length only.
    ///
    /// # Errors
    /// No net joules, or lengths that do not tell the phases apart.
    pub fn regression(&self, plan: &Plan, cell: &Cell) -> Result<[Regressed; 2], String> {
        let alike = |other: &Cell| {
            (&other.backend, &other.model.name, other.quant, other.unit, &other.axes)
                == (&cell.backend, &cell.model.name, cell.quant, cell.unit, &cell.axes)
        };
        let (mut rows, mut joules) = (Vec::new(), Vec::new());
        for planned in plan.cells.iter().filter(|c| alike(&c.cell)) {
            let lengths = planned.cell.workload;
            let own = self
                .launches
                .range((planned.id.clone(), false, 0)..=(planned.id.clone(), false, u32::MAX))
                .filter_map(|(_, p)| p.net_j_per_query);
            for net_j in own {
                rows.push(vec![f64::from(lengths.prompt_tokens()), f64::from(lengths.gen_tokens())]);
                joules.push(net_j);
            }
        }
        if joules.is_empty() {
            return Err("no launch of these cells has net joules".to_owned());
        }
        let fit = power::least_squares(&rows, &joules).map_err(|e: FitError| format!("no regression: {e}"))?;
        let one = |i: usize| Regressed { joules: fit.coefficients[i], interval: fit.intervals[i], n: joules.len() };
        Ok([one(0), one(1)])
    }
}

/// Passes in which nothing slows the load down.
const fn counted(pass: Pass) -> bool {
    matches!(pass, Pass::Measure | Pass::Soak)
}

/// What the scenario says about power, for the analysis.
pub fn asked(power: &Power) -> Asked<'_> {
    Asked { method: method(power), measured: power.measured, rails: &power.rails }
}

fn method(power: &Power) -> Method {
    match power.method {
        // Who names a meter wants nothing else, wherever its file can't be read yet.
        PowerMethod::Auto if power.meter.is_some() => Method::Meter,
        PowerMethod::Auto => Method::Auto,
        PowerMethod::Battery => Method::Battery,
        PowerMethod::Hwmon => Method::Hwmon,
        PowerMethod::Meter => Method::Meter,
    }
}

/// What was measured at the begin of a segment.
#[derive(Default)]
struct Segment {
    done: Option<Done>,
    telemetry: Telemetry,
    meter: Option<Meter>,
}

impl Segment {
    fn read(dir: &Path, settings: &Power) -> Self {
        let done = done(dir);
        let meter = settings.meter.as_ref().map(|_| {
            let text =
                fs::read_to_string(dir.join(METER)).map_err(|e| power::MeterError::Unreadable(format!("its file was not kept: {e}")));
            match text.and_then(|text| power::read_meter(&text)) {
                Ok(samples) => Meter { clock: Clock::find(&samples, &pulses_in(dir), &pulses_in(&dir.join(METER_END))), samples },
                Err(e) => Meter { clock: Err(e), samples: Vec::new() },
            }
        });
        Self { telemetry: telemetry(&[dir.join("telemetry.csv")]), done, meter }
    }

    fn baseline(&self, settings: &Power, asked: Asked<'_>, unit: Option<CurrentUnit>) -> Result<Baseline, String> {
        if settings.baseline_ms == 0 {
            return Err("no baseline was measured: [power] baseline = \"60s\" gives one".to_owned());
        }
        let Some(done) = &self.done else { return Err("the baseline could not be measured".to_owned()) };
        // The idle time is the end of what ran there: before it come pulses, and the wait for the battery.
        let window = last_part((done.start_ns as f64 / 1e9, done.end_ns as f64 / 1e9), settings.baseline_ms);
        power::baseline(&self.telemetry, self.meter.as_ref(), asked, window, unit, BaselineState::NoModel)
            .map_err(|e| format!("baseline: {e}"))
    }

    /// What the device drew while the runner of a launch did nothing with its model in memory.
    fn resident(
        &self,
        dir: &Path,
        record: &Record,
        settings: &Power,
        asked: Asked<'_>,
        unit: Option<CurrentUnit>,
    ) -> Result<Baseline, String> {
        self.usable(record)?;
        let (from, to) = record.parsed.idle_ns.ok_or("the program did not idle")?;
        let window = last_part((from as f64 / 1e9, to as f64 / 1e9), settings.baseline_ms);
        let sampled = telemetry(&record.telemetry_files(dir));
        power::baseline(&sampled, self.meter.as_ref(), asked, window, unit, BaselineState::Resident)
            .map_err(|e| format!("baseline with the model in memory: {e}"))
    }

    /// Whether a launch's clock is the one that readings are placed by.
    fn usable(&self, record: &Record) -> Result<(), String> {
        // Rule R17, also where nothing was sampled.
        let slept = record
            .steps
            .iter()
            .filter_map(|s| s.done.as_ref())
            .map(|d| d.boottime_minus_monotonic_ns[1] - d.boottime_minus_monotonic_ns[0]);
        if let Some(ns) = slept.max_by_key(|ns| ns.abs()).filter(|ns| ns.abs() > 100_000_000) {
            return Err(Refusal::Suspended { ms: ns as f64 / 1e6 }.to_string());
        }
        let boot = |done: Option<&Done>| done.and_then(|d| d.boot_id.clone());
        let restarted = self.meter.is_some() && boot(self.done.as_ref()) != boot(record.steps.iter().find_map(|s| s.done.as_ref()));
        if restarted { Err("the device was restarted since the meter's start pulse: its clock is another one".to_owned()) } else { Ok(()) }
    }
}

fn launch(dir: &Path, record: &Record, load: &Load, segment: &Segment, asked: Asked<'_>) -> LaunchPower {
    if let Err(why) = segment.usable(record) {
        return LaunchPower::without(&why);
    }
    power::launch(load, &telemetry(&record.telemetry_files(dir)), segment.meter.as_ref(), asked)
}

/// The end of an idle time, for as long as the baseline is: a gauge shows for some seconds what was before.
fn last_part((from_s, to_s): (f64, f64), baseline_ms: u64) -> (f64, f64) {
    ((to_s - baseline_ms as f64 / 1e3).max(from_s), to_s)
}

/// What a launch did, by the time stamps of its measured queries.
fn load(parsed: &Parsed, warmup: u32) -> Result<Load, String> {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let mut load = Load { prompt_tokens: Some(0), ..Load::default() };
    let warm: Vec<_> = parsed.queries.iter().filter(|q| q.query >= warmup).collect();
    if warm.is_empty() {
        let graphs = crate::run::is_composed(parsed);
        return Err(if graphs { "composed from graph times, there is no token loop" } else { "no measured query" }.to_owned());
    }
    for query in warm {
        let (Some(first), Some(last)) = (query.tokens.first(), query.tokens.last()) else {
            return Err("the tool gives no time for each token: its phases are not known".to_owned());
        };
        let (start, first, last) = (seconds(query.start_ns), seconds(first.t_ns), seconds(last.t_ns));
        load.window = if load.queries == 0 { (start, last) } else { (load.window.0.min(start), load.window.1.max(last)) };
        load.queries += 1;
        let prompt_tokens = query.prompt_tokens.or(query.prompt_tokens_reported);
        load.prompt_tokens = load.prompt_tokens.zip(prompt_tokens).map(|(sum, own)| sum + u64::from(own));
        load.gen_tokens += query.tokens.len() as u64;
        load.prefill.push((start, first));
        load.decode.push((first, last));
    }
    if load.window.1 > load.window.0 { Ok(load) } else { Err("the queries took no time".to_owned()) }
}

/// What a soak did, by what its measured queries add up to.
fn soaked(record: &Record) -> Result<Load, String> {
    let worked = record.soak.as_ref().and_then(|soak| soak.worked.as_ref());
    let worked = worked.ok_or_else(|| "no measured query of the soak gave a token, or its record is an older bench's".to_owned())?;
    let end_ns = worked.last.tokens.last().map_or(0, |t| t.t_ns);
    let window = (worked.first.start_ns as f64 / 1e9, end_ns as f64 / 1e9);
    let load = Load {
        window,
        queries: worked.queries,
        prompt_tokens: worked.prompt_tokens,
        gen_tokens: worked.gen_tokens,
        seconds: Some((worked.prefill_s, worked.decode_s)),
        ..Load::default()
    };
    if window.1 > window.0 { Ok(load) } else { Err("the queries took no time".to_owned()) }
}

/// The rows about power of some files of the agent's.
pub fn telemetry(files: &[PathBuf]) -> Telemetry {
    let mut telemetry = Telemetry::default();
    for path in files {
        let Ok(mut reader) = csv::ReaderBuilder::new().flexible(true).from_path(path) else { continue };
        for line in reader.records().filter_map(Result::ok) {
            let (Some(t), Some(value)) = (line.get(0).and_then(|t| t.parse().ok()), line.get(3).and_then(|v| v.parse().ok())) else {
                continue;
            };
            telemetry.push(t, line.get(1).unwrap_or(""), line.get(2).unwrap_or(""), value);
        }
    }
    telemetry.sort();
    telemetry
}

/// What the agent says of a command of bench's own, once it has ended.
fn done(dir: &Path) -> Option<Done> {
    fs::read(dir.join("done.json")).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok())
}

/// The pulses that were given by a command of bench's own; none where it was not run.
fn pulses_in(dir: &Path) -> Vec<(f64, f64)> {
    let Some(done) = done(dir) else { return Vec::new() };
    pulses(&fs::read_to_string(dir.join(PULSES)).unwrap_or_default(), done.boottime_minus_monotonic_ns[0] as f64 / 1e9)
}

/// The pulses of load in seconds of the monotonic clock. /proc/uptime is boot time: the agent knows the difference.
fn pulses(text: &str, slept_s: f64) -> Vec<(f64, f64)> {
    let mut found = Vec::new();
    let mut begun = None;
    for line in text.lines() {
        let Some((word, Ok(t))) = line.split_once(' ').map(|(word, t)| (word, t.trim().parse::<f64>())) else { continue };
        match (word, begun) {
            ("begin", _) => begun = Some(t - slept_s),
            ("end", Some(from)) if t - slept_s > from => {
                found.push((from, t - slept_s));
                begun = None;
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use bench_backend_api::{Query, Token};

    #[test]
    fn a_launch_is_its_measured_queries() {
        let query = |number: u32, start_s: u64| Query {
            query: number,
            start_ns: start_s * 1_000_000_000,
            prompt_tokens: Some(32),
            tokens: [2, 3, 5].iter().map(|s| Token { id: None, t_ns: (start_s + s) * 1_000_000_000 }).collect(),
            ..Query::default()
        };
        let parsed = Parsed { queries: vec![query(0, 10), query(1, 20), query(2, 30)], ..Parsed::default() };
        let load = load(&parsed, 1).unwrap();
        assert_eq!((load.window, load.queries, load.prompt_tokens, load.gen_tokens), ((20.0, 35.0), 2, Some(64), 6));
        assert_eq!((load.prefill, load.decode), (vec![(20.0, 22.0), (30.0, 32.0)], vec![(22.0, 25.0), (32.0, 35.0)]));
        assert_eq!(super::load(&parsed, 3).unwrap_err(), "no measured query");
        let silent = Parsed { queries: vec![Query { query: 1, aggregate_n: Some(5), ..Query::default() }], ..Parsed::default() };
        assert!(super::load(&silent, 1).unwrap_err().contains("no time for each token"));
    }

    #[test]
    fn a_soak_is_what_its_queries_add_up_to() {
        let query = |number: u32, start_s: u64, last_s: u64| Query {
            query: number,
            start_ns: start_s * 1_000_000_000,
            tokens: vec![Token { id: None, t_ns: last_s * 1_000_000_000 }],
            ..Query::default()
        };
        let text = r#"{"format_version":1,"cell":"c","pass":"soak","launch":0,"block":0,"segment":0,"status":"ok","failure":null,"checks":null,
            "parsed":{},"steps":[]}"#;
        let mut value: serde_json::Value = serde_json::from_str(text).unwrap();
        value["parsed"] = serde_json::to_value(Parsed::default()).unwrap();
        let mut record: Record = serde_json::from_value(value).unwrap();
        assert!(soaked(&record).unwrap_err().contains("older bench"));
        let worked = crate::analysis::soak::Worked {
            first: query(1, 100, 102),
            last: query(900, 4000, 4010),
            queries: 900,
            prompt_tokens: Some(28_800),
            gen_tokens: 45_000,
            prefill_s: 900.0,
            decode_s: 2900.0,
        };
        record.soak = Some(crate::analysis::soak::Soak { worked: Some(worked), ..Default::default() });
        let load = soaked(&record).unwrap();
        assert_eq!((load.window, load.gen_tokens, load.seconds), ((100.0, 4010.0), 45_000, Some((900.0, 2900.0))));
        // Memory and the NPU's counters see the same window, and single queries of a soak are in no table.
        let ends: Vec<u32> = record.timed().queries.iter().map(|q| q.query).collect();
        assert_eq!((ends, record.parsed.queries.len()), (vec![1, 900], 0));
    }

    #[test]
    fn pulses_are_on_the_monotonic_clock() {
        // The device has slept 100 s since it was started.
        let text = "begin 1102.50\nend 1105.51\nend 1106.00\nnoise\nbegin x\nbegin 1107.00\nbegin 1107.53\nend 1108.54\nbegin 1110.0\n";
        assert_eq!(pulses(text, 100.0), [(1002.5, 1005.51), (1007.53, 1008.54)]);
    }

    #[test]
    fn rows_of_the_agent() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("telemetry.csv");
        fs::write(
            &path,
            "t_ns,source,name,value,unit\n2000000000,battery,battery/current_now,-350000,raw\n1000000000,battery,battery/current_now,-340000,raw\n\
             1000000000,battery,battery/charge_now,4000000,raw\n1000000000,battery,usb/online,0,code\n1000000000,power,ina/system,2.5,W\n\
             x,battery,battery/current_now,1,raw\n1,battery,battery/temp,31,C\n1500000000,clock,suspended_ms,7,ms\n3000000000,batt",
        )
        .unwrap();
        let found = telemetry(&[path, dir.path().join("none.csv")]);
        let battery = &found.batteries["battery"];
        let raw: Vec<(f64, f64)> = battery.current.iter().map(|p| (p.t_s, p.value)).collect();
        assert_eq!((raw, battery.charge.len()), (vec![(1.0, -340_000.0), (2.0, -350_000.0)], 1));
        assert_eq!((found.online["usb"].len(), found.rails["ina/system"][0].value, found.suspended_ms[0].value), (1, 2.5, 7.0));
    }
}
