//! A launch that goes on for minutes to hours: its job and its spec are prolonged, what it left is judged also where it ended early, and
//! becomes windows and figures.

use std::{collections::BTreeMap, fs, path::Path};

use bench_agent::spec::{Spec, Trip, Watch};
use bench_backend_api::{
    Backend, Captured, Cell, Checks, Expected, Failure, FailureKind, JOB_FILE, Parsed, Source, StagedFile, Unit, prolonged,
};

use super::capture::EVENTS;
use crate::{
    analysis::{
        power::standing,
        soak::{self, Input, Trace},
    },
    device::zones::{Domain, domain_of},
    results::power,
    scenario::{Power, SOAK_EVENTS_LIMIT, Soak, TripLimit},
};

/// A soak that ended before this share of its time has ended early.
const WHOLE: f64 = 0.9;

/// What is asked of a soak.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// Durations and what is kept.
    pub soak: &'a Soak,
    /// The zones that end it.
    pub trip: &'a [Trip],
    /// Part number of the chip, for the names of its zones.
    pub soc: &'a str,
    /// Queries at the start of each launch that are discarded.
    pub warmup: u32,
    /// What the scenario says about power.
    pub power: Option<&'a Power>,
}

/// Puts the duration into the job of a launch.
///
/// # Errors
/// A launch without a job: its program answers a fixed number of queries and ends.
pub fn prolong(files: &mut [StagedFile], soak_ms: u64) -> Result<(), String> {
    let job = files.iter_mut().find(|f| f.name == JOB_FILE);
    let bytes = job.and_then(|f| match &mut f.source {
        Source::Bytes(bytes) => Some(bytes),
        _ => None,
    });
    let longer = bytes.and_then(|bytes| prolonged(bytes, soak_ms).map(|new| *bytes = new));
    longer.ok_or_else(|| {
        "this program answers a fixed number of queries and ends: a soak needs a runner that repeats them (`bench runtimes build` makes ours \
         for a phone), or a program of your own that obeys `soak_ms`"
            .to_owned()
    })
}

/// Makes the spec of a step that of a soak.
pub fn lengthen(spec: &mut Spec, asked: &Asked<'_>) {
    spec.compact_ms = asked.soak.compact_ms();
    spec.window_ms = asked.soak.window_ms;
    if spec.rate_hz > 0.0 {
        spec.trip = asked.trip.to_vec();
    }
    spec.watch = vec![Watch { path: EVENTS.to_owned(), max_bytes: SOAK_EVENTS_LIMIT }];
}

/// The zones of a device that the limits stand for; `names` are those of its thermal rows.
///
/// # Errors
/// A part of the device without a zone: nothing would protect it.
pub fn limits<S: AsRef<str>>(wanted: &[TripLimit], soc: &str, names: &[S]) -> Result<Vec<Trip>, String> {
    let mut all = Vec::new();
    for limit in wanted {
        let zones = names.iter().map(AsRef::as_ref).filter(|name| domain_of(soc, name) == Some(limit.domain));
        let before = all.len();
        all.extend(zones.map(|zone| Trip { zone: zone.to_owned(), max_c: limit.max_c }));
        if all.len() == before {
            return Err(format!(
                "its trip asks for the temperature of the {}, and no zone that can be read is known to be of it: take it out of `trip`, or add the \
                 zone's name to scenarios/devices/zones.toml",
                limit.domain
            ));
        }
    }
    Ok(all)
}

/// Whether the evidence has room where `free` bytes are; a device that does not tell is believed to have it.
///
/// # Errors
/// It has not: the numbers, and what to do.
pub fn room(soak: &Soak, rate_hz: f64, free: Option<u64>) -> Result<(), String> {
    let [_, most] = soak.disk_bytes(rate_hz);
    let mb = |bytes: u64| bytes as f64 / 1e6;
    match free {
        Some(free) if free < most => Err(format!(
            "its evidence may take {:.0} MB on the device, and {:.0} MB are free: give room back (`bench devices clean`, or files of your own) and \
             resume with --retry-failed, or soak with a lower `rate` in [telemetry]",
            mb(most),
            mb(free)
        )),
        _ => Ok(()),
    }
}

/// Verifies what a soak answered: as many queries as there are, each against the reference of the prompt that it repeats. Of one that was
/// ended from outside the unfinished last query is not looked at.
pub fn verify(backend: &dyn Backend, cell: &Cell, expected: &Expected, parsed: &Parsed, captured: &Captured, early: bool) -> Checks {
    let mut seen = parsed.clone();
    if early {
        while seen.queries.last().is_some_and(|q| q.end_ns.is_none()) {
            seen.queries.pop();
        }
        seen.ended = true;
    }
    let count = seen.queries.len();
    let reference = expected.reference.as_ref().filter(|r| !r.is_empty());
    let repeated = reference.map(|r| (0..count).map(|n| r[n % r.len()].clone()).collect());
    let expected = Expected { queries: count as u32, reference: repeated, ..expected.clone() };
    backend.verify(cell, &expected, &seen, captured)
}

/// Windows and figures of a launch. `dir` has what was sampled; `early` says why it ended before its time.
pub fn figures(
    asked: &Asked<'_>,
    cell: &Cell,
    expected: &Expected,
    parsed: &Parsed,
    dir: &Path,
    early: Option<String>,
) -> Option<soak::Soak> {
    let read = |name: &str| fs::read_to_string(dir.join(name)).unwrap_or_default();
    let trace = Trace::read(&read("telemetry.csv"));
    let peaks: BTreeMap<String, f64> = soak::peaks(&read("windows.csv"));
    let domain = |zone: &str| domain_of(asked.soc, zone).map(Domain::as_str);
    let own = match cell.unit {
        Unit::Npu => Domain::Npu,
        Unit::Gpu => Domain::Gpu,
        Unit::Cpu | Unit::Hybrid => Domain::Cpu,
    };
    let least = if cell.quant.is_float() { 1.0 } else { expected.min_agreement.unwrap_or(0.0) };
    // A reason has no place in a window's row: cells.csv and launches.csv have it.
    let ends = parsed
        .queries
        .first()
        .zip(parsed.queries.last())
        .map(|(a, b)| (a.start_ns as f64 / 1e9, b.end_ns.unwrap_or(b.start_ns) as f64 / 1e9));
    let none = Power::default();
    let rows = power::telemetry(&[dir.join("telemetry.csv")]);
    let watts = ends.and_then(|ends| standing(&rows, power::asked(asked.power.unwrap_or(&none)), ends).ok()).map(soak::Series::from);
    soak::analyse(&Input {
        queries: &parsed.queries,
        warmup: asked.warmup,
        speculative: parsed.speculative().is_some(),
        prompts: expected.queries,
        gen_tokens: expected.gen_tokens,
        reference: expected.reference.as_deref(),
        least_agreement: least,
        trace: &trace,
        peaks: &peaks,
        domain: &domain,
        own_domain: own.as_str(),
        power: watts.as_ref(),
        window_ns: asked.soak.window_ms.saturating_mul(1_000_000),
        asked_s: asked.soak.duration_ms as f64 / 1e3,
        early,
    })
}

/// A program that ended by itself long before its time, as if nobody had asked for more.
pub fn too_short(asked: &Asked<'_>, parsed: &Parsed) -> Option<Failure> {
    let (first, last) = (parsed.queries.first()?, parsed.queries.last()?);
    let ran_s = last.end_ns?.saturating_sub(first.start_ns) as f64 / 1e9;
    let asked_s = asked.soak.duration_ms as f64 / 1e3;
    (ran_s < WHOLE * asked_s).then(|| {
        let message = format!("the program ended by itself after {ran_s:.0} s of {asked_s:.0} s");
        let hint = "a runner has to obey `soak_ms` of its job: see backends/protocol".to_owned();
        Failure { kind: FailureKind::Runtime, message, hint: Some(hint) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::SoakCells;

    fn limit(domain: Domain, max_c: f64) -> TripLimit {
        TripLimit { domain, max_c }
    }

    #[test]
    fn a_limit_stands_for_every_zone_of_its_part() {
        let names = ["cpuss-0", "nsphvx-0", "nsphmx-3", "nsphvx-0#2", "skin-msm-therm", "strange"];
        let trip = limits(&[limit(Domain::Npu, 95.0), limit(Domain::Skin, 48.0)], "SM8650", &names).unwrap();
        let found: Vec<(&str, f64)> = trip.iter().map(|t| (t.zone.as_str(), t.max_c)).collect();
        assert_eq!(found, [("nsphvx-0", 95.0), ("nsphmx-3", 95.0), ("nsphvx-0#2", 95.0), ("skin-msm-therm", 48.0)]);
        let why = limits(&[limit(Domain::Battery, 45.0)], "SM8650", &names).unwrap_err();
        assert!(why.contains("temperature of the battery") && why.contains("take it out"), "{why}");
    }

    #[test]
    fn a_soak_needs_room_for_the_most_that_it_may_write() {
        let soak =
            Soak { duration_ms: 60_000, window_ms: 30_000, cells: SoakCells::All, cool_down_ms: 0, keep_all: false, trip: Vec::new() };
        // Without telemetry: 256 MiB of events and 128 MiB of output, 402.65 MB.
        let most = 384 << 20;
        assert!(room(&soak, 0.0, Some(most)).is_ok() && room(&soak, 0.0, None).is_ok());
        let why = room(&soak, 0.0, Some(99_600_000)).unwrap_err();
        assert!(why.contains("may take 403 MB on the device, and 100 MB are free") && why.contains("bench devices clean"), "{why}");
        assert!(room(&soak, 0.0, Some(most - 1)).is_err());
        // With it: 200 names of 62 rows of 64 bytes and 3 windows of 96.
        assert!(room(&soak, 10.0, Some(most + 200 * (62 * 64 + 3 * 96) - 1)).is_err());
        assert!(room(&soak, 10.0, Some(most + 200 * (62 * 64 + 3 * 96))).is_ok());
    }

    #[test]
    fn a_launch_without_a_job_cannot_be_prolonged() {
        let file = |name: &str, bytes: &[u8]| StagedFile { name: name.to_owned(), source: Source::Bytes(bytes.to_vec()) };
        let job = br#"{"v":1,"model":{"context":8,"chunk":8,"vocab":8,"files":{}},"queries":[{"query":0,"ids":[1],"gen_tokens":1}]}"#;
        let mut files = [file("prompt.txt", b"x"), file(JOB_FILE, job)];
        prolong(&mut files, 60_000).unwrap();
        let Source::Bytes(bytes) = &files[1].source else { panic!() };
        assert!(String::from_utf8_lossy(bytes).contains("\"soak_ms\": 60000"));
        for mut files in [vec![file("prompt.txt", b"x")], vec![file(JOB_FILE, b"no job")]] {
            assert!(prolong(&mut files, 1).unwrap_err().contains("bench runtimes build"));
        }
    }
}
