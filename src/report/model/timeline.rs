//! What a device did while it worked: strips of temperature, clocks, throughput, power and memory on one time axis.

use std::collections::BTreeMap;

use super::charts::largest;
use super::figures::{DASH, number};
use super::groups::{Group, listed, readable, workload};
use super::lines::thinned;
use super::machine::{at, text};
use super::view::{Chart, Grid, LegendKey};
use crate::analysis::power::{Asked, Method, Supply, Telemetry, series};
use crate::analysis::series::{TEMPERATURE_JUMP_C, despike};
use crate::device::zones::{Domain, domain_of};
use crate::report::ReportError;
use crate::report::charts::{Line, PHASES, Span, Strip, key_svg, strips};
use crate::report::load::{Cell, Phase, Run, Timeline};

/// Timelines of a set: each takes much of a page.
const MOST: usize = 4;
/// Windows in which tokens are counted.
const WINDOWS: f64 = 80.0;

/// The timelines of a set: of its largest workload, a few cells.
pub fn timelines(run: &Run, group: &Group) -> Result<Vec<Chart>, ReportError> {
    let measured: Vec<&Cell> = group.counted().into_iter().filter(|cell| !cell.is_composed()).collect();
    let Some((of, cells)) = largest(&measured) else { return Ok(Vec::new()) };
    let having: Vec<(&Cell, &Timeline)> = cells.iter().filter_map(|cell| Some((*cell, run.timelines.get(&cell.key)?))).collect();
    let (drawn, cut) = readable(&having, MOST, |(cell, _)| &cell.backend, "cells");
    let cut = if cut.is_empty() {
        cut
    } else {
        format!(" Shown: {MOST} of {} cells of this workload; telemetry.csv has them all.", having.len())
    };
    let soc = text(at(&run.manifest, &["device", "soc"])).unwrap_or_default();
    let mut charts = Vec::new();
    for (cell, timeline) in drawn {
        let title = format!("{} over time, {} tokens", group.label(cell), workload(of));
        charts.extend(chart(timeline, &soc, title, &cut)?);
    }
    Ok(charts)
}

fn chart(timeline: &Timeline, soc: &str, title: String, cut: &str) -> Result<Option<Chart>, ReportError> {
    let all = [
        ("temperature", temperature(timeline, soc)),
        ("clocks", clocks(timeline)),
        ("throughput", throughput(timeline)),
        ("load of CPU, GPU and NPU", usage(timeline)),
        ("power", power(timeline)),
        ("memory", memory(timeline)),
    ];
    let lacking: Vec<&str> = all.iter().filter(|(_, strip)| strip.lines.is_empty()).map(|(word, _)| *word).collect();
    let there: Vec<Strip> = all.into_iter().map(|(_, strip)| strip).filter(|strip| !strip.lines.is_empty()).collect();
    if there.is_empty() || timeline.seconds() <= 0.0 {
        return Ok(None);
    }
    let table = table(&there);
    let spans: Vec<Span> = timeline.phases.iter().map(|s| Span { phase: number_of(s.phase), from: s.from, to: s.to }).collect();
    let drawn: Vec<Strip> = there.into_iter().map(thin).collect();
    let legend = (0..PHASES.len())
        .filter(|phase| spans.iter().any(|span| span.phase == *phase))
        .map(|phase| LegendKey { key: key_svg(PHASES[phase].1), text: PHASES[phase].0.to_owned() });
    let legend = legend.collect();
    let name = format!("{title}: {} strips on one time axis; least and most of each line in the table below", drawn.len());
    let svg = strips(&drawn, &spans, timeline.seconds(), "seconds since the start of the process", &name)?;
    let gaps = if lacking.is_empty() { String::new() } else { format!(" Not seen in this launch: {}.", listed(&lacking)) };
    let caption = format!(
        "The first measured launch: samples of the agent and arrivals of tokens on the device's own clock. Of zones of one part the hottest; a dashed line is a limit.{gaps}{cut}"
    );
    Ok(Some(Chart { title, caption, wide: true, svg, legend, table }))
}

const fn number_of(phase: Phase) -> usize {
    match phase {
        Phase::Load => 0,
        Phase::Prefill => 1,
        Phase::Decode => 2,
    }
}

/// Colour of a part of the device, the same in every strip.
pub const fn part(domain: Domain) -> usize {
    match domain {
        Domain::Cpu => 0,
        Domain::Npu => 1,
        Domain::Skin => 2,
        Domain::Gpu => 3,
        Domain::Battery => 4,
        _ => 5,
    }
}

/// The part in a reader's words.
pub const fn words(domain: Domain) -> &'static str {
    match domain {
        Domain::Npu => "NPU",
        Domain::Cpu => "CPU",
        Domain::Gpu => "GPU",
        Domain::Ddr => "DDR",
        Domain::Skin => "skin",
        Domain::Battery => "battery",
        Domain::Modem => "modem",
        Domain::Pmic => "PMIC",
        Domain::Other => "other",
    }
}

/// The hottest zone of each part at each moment; a name may mean another part on another chip.
fn temperature(timeline: &Timeline, soc: &str) -> Strip {
    let mut zones: BTreeMap<Domain, Vec<Vec<(f64, f64)>>> = BTreeMap::new();
    for (zone, series) in timeline.of("thermal") {
        if let Some(domain) = domain_of(soc, zone) {
            // What one failed reading of one zone says would be the hottest of all.
            zones.entry(domain).or_default().push(despike(&series.points, TEMPERATURE_JUMP_C).kept);
        }
    }
    let parts = [Domain::Npu, Domain::Cpu, Domain::Gpu, Domain::Ddr, Domain::Skin, Domain::Battery];
    let line = |domain: Domain| {
        let points = hottest(zones.get(&domain)?);
        Some(Line { label: words(domain).to_owned(), part: part(domain), dashed: false, points })
    };
    Strip { title: "Temperature, °C".to_owned(), lines: parts.into_iter().filter_map(line).collect(), from_zero: false }
}

/// A zone that says nothing more counts for so long after its last reading, s: two rounds of the slow zones.
const GONE_S: f64 = 2.0;

/// The hottest of some zones over time. A round over all zones of a phone takes 200 ms, and its rows have times of their own, so that a zone has its
/// last reading until the next one; before its first, that one.
fn hottest(zones: &[Vec<(f64, f64)>]) -> Vec<(f64, f64)> {
    let mut times: Vec<f64> = zones.iter().flatten().map(|point| point.0).collect();
    times.sort_by(f64::total_cmp);
    times.dedup();
    let held = |points: &[(f64, f64)], t: f64| {
        let after = points.partition_point(|point| point.0 <= t);
        let (at, value) = *points.get(after.saturating_sub(1))?;
        (after < points.len() || t - at <= GONE_S).then_some(value)
    };
    let most = |t: f64| zones.iter().filter_map(|zone| held(zone, t)).reduce(f64::max);
    times.into_iter().filter_map(|t| Some((t, most(t)?))).collect()
}

fn clocks(timeline: &Timeline) -> Strip {
    let mut lines = Vec::new();
    let policies: Vec<_> = timeline.of("cpufreq").filter(|(name, _)| !name.ends_with("_cap") && !name.ends_with("_max")).collect();
    // The fastest cluster tells most; all of them would be a thicket.
    let top = |points: &[(f64, f64)]| points.iter().map(|point| point.1).fold(0.0, f64::max);
    if let Some((name, series)) = policies.iter().max_by(|a, b| top(&a.1.points).total_cmp(&top(&b.1.points))) {
        lines.push(Line { label: format!("CPU {name}"), part: part(Domain::Cpu), dashed: false, points: series.points.clone() });
        let cap = format!("{name}_cap");
        let cap = timeline.of("cpufreq").find(|(name, _)| *name == cap);
        lines.extend(cap.map(|(_, series)| Line {
            label: "its cap".to_owned(),
            part: part(Domain::Cpu),
            dashed: true,
            points: series.points.clone(),
        }));
    }
    for (source, name, label, domain) in
        [("npu", "q6_clock", "NPU", Domain::Npu), ("gpu", "clock", "GPU", Domain::Gpu), ("ddr", "DDR", "DDR", Domain::Ddr)]
    {
        let found = timeline.of(source).find(|(known, _)| *known == name);
        lines.extend(found.map(|(_, series)| Line {
            label: label.to_owned(),
            part: part(domain),
            dashed: false,
            points: series.points.clone(),
        }));
    }
    Strip { title: "Clock, MHz".to_owned(), lines, from_zero: true }
}

/// Tokens counted in windows of one length.
fn throughput(timeline: &Timeline) -> Strip {
    let window = (timeline.seconds() / WINDOWS).max(0.1);
    let title = format!("Tokens per second, in windows of {window:.1} s");
    let (Some(first), Some(last)) = (timeline.tokens.first(), timeline.tokens.last()) else {
        return Strip { title, ..Strip::default() };
    };
    // Whole windows from the first token on: a part of one would count too few.
    let mut counts = vec![0_u32; ((last - first) / window).floor() as usize];
    for t in &timeline.tokens {
        if let Some(count) = counts.get_mut(((t - first) / window).floor() as usize) {
            *count += 1;
        }
    }
    let point = |(at, count): (usize, u32)| (first + (at as f64 + 0.5) * window, f64::from(count) / window);
    let points: Vec<(f64, f64)> = counts.into_iter().enumerate().map(point).collect();
    if points.is_empty() {
        return Strip { title, ..Strip::default() };
    }
    Strip { title, lines: vec![Line { label: "tokens/s".to_owned(), part: part(Domain::Npu), dashed: false, points }], from_zero: true }
}

fn usage(timeline: &Timeline) -> Strip {
    let wanted = [
        ("cpu", "busy_pct", "CPU, all cores", Domain::Cpu),
        ("gpu", "busy_pct", "GPU", Domain::Gpu),
        ("npu", "q6_pct", "NPU (Q6)", Domain::Npu),
        ("npu", "hmx_pct", "NPU (HMX)", Domain::Other),
    ];
    let line = |(source, name, label, domain): (&str, &str, &str, Domain)| {
        let (_, series) = timeline.of(source).find(|(known, _)| *known == name)?;
        Some(Line { label: label.to_owned(), part: part(domain), dashed: false, points: series.points.clone() })
    };
    Strip { title: "Busy, %".to_owned(), lines: wanted.into_iter().filter_map(line).collect(), from_zero: true }
}

/// The whole device's draw by its battery or else its rails; nothing on external power, whatever the scenario says of it, and nothing of a meter, whose
/// readings are not in telemetry.csv. The tables' figures are those of the scenario's method.
fn power(timeline: &Timeline) -> Strip {
    let mut telemetry = Telemetry::default();
    for source in ["battery", "power", "clock"] {
        for (name, series) in timeline.of(source) {
            for (t, value) in &series.points {
                telemetry.push((t.max(0.0) * 1e9).round() as u64, source, name, *value);
            }
        }
    }
    telemetry.sort();
    let asked = Asked { method: Method::Auto, measured: false, rails: &[] };
    let watts = series(&telemetry, asked, (0.0, timeline.seconds())).unwrap_or_default();
    let points: Vec<(f64, f64)> = watts.into_iter().map(|(t_ns, w)| (t_ns as f64 / 1e9, w)).collect();
    // A battery that tells its temperature alone is no source of power.
    let label = if telemetry.batteries.values().any(Supply::has_power) { "battery" } else { "rails" };
    let line = Line { label: label.to_owned(), part: part(Domain::Battery), dashed: false, points };
    Strip {
        title: "Power of the device, W".to_owned(),
        lines: Vec::from_iter(Some(line).filter(|line| !line.points.is_empty())),
        from_zero: true,
    }
}

fn memory(timeline: &Timeline) -> Strip {
    let of =
        |name: &str| timeline.of("process").find(|(known, _)| *known == name).map(|(_, series)| series.megabytes()).unwrap_or_default();
    let all = [("resident (RSS)", timeline.memory(), 0), ("dma-buf", of("dmabuf_kb"), 1), ("anonymous", of("anon_kb"), 5)];
    let line = |(label, points, part): (&str, Vec<(f64, f64)>, usize)| Line { label: label.to_owned(), part, dashed: false, points };
    // No dma-buf at all is no line: it says nothing that the others do not.
    let lines = all.into_iter().filter(|(_, points, _)| points.iter().any(|point| point.1 > 0.0)).map(line).collect();
    Strip { title: "Memory, MB (10⁶ bytes)".to_owned(), lines, from_zero: true }
}

fn thin(mut strip: Strip) -> Strip {
    for line in &mut strip.lines {
        line.points = thinned(&line.points);
    }
    strip
}

fn table(there: &[Strip]) -> Grid {
    let mut grid =
        Grid { columns: ["Quantity", "line", "samples", "first", "least", "most", "last"].map(str::to_owned).to_vec(), ..Grid::default() };
    for strip in there {
        for line in &strip.lines {
            let values = || line.points.iter().map(|point| point.1);
            let end = |point: Option<&(f64, f64)>| point.map_or_else(|| DASH.to_owned(), |point| number(point.1));
            let row = [
                strip.title.clone(),
                line.label.clone(),
                line.points.len().to_string(),
                end(line.points.first()),
                number(values().fold(f64::INFINITY, f64::min)),
                number(values().fold(f64::NEG_INFINITY, f64::max)),
                end(line.points.last()),
            ];
            grid.rows.push(row.to_vec());
        }
    }
    grid
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::load::Series;

    type Entry<'a> = (&'a str, &'a str, &'a str, &'a [(f64, f64)]);

    fn with(entries: &[Entry]) -> Timeline {
        let series = entries.iter().map(|(source, name, unit, points)| {
            (((*source).to_owned(), (*name).to_owned()), Series { unit: (*unit).to_owned(), points: points.to_vec() })
        });
        Timeline { series: series.collect(), ..Timeline::default() }
    }

    #[test]
    fn of_the_zones_of_a_part_the_hottest() {
        let timeline = with(&[
            ("thermal", "cpuss0", "C", &[(1.0, 40.0), (2.0, 60.0)]),
            ("thermal", "cpuss1", "C", &[(1.0, 45.0), (2.0, 50.0)]),
            ("thermal", "skin-msm-therm", "C", &[(1.0, 30.0)]),
            ("thermal", "sys-therm-1", "C", &[(1.0, 99.0)]),
        ]);
        let strip = temperature(&timeline, "");
        let found: Vec<_> = strip.lines.iter().map(|line| (line.label.as_str(), line.points.clone())).collect();
        assert_eq!(found, [("CPU", vec![(1.0, 45.0), (2.0, 60.0)]), ("skin", vec![(1.0, 30.0)])]);
    }

    #[test]
    fn a_single_reading_of_140_degrees_is_not_the_hottest() {
        let timeline = with(&[
            ("thermal", "cpuss0", "C", &[(1.0, 40.0), (2.0, 41.0), (3.0, 42.0), (4.0, 43.0)]),
            ("thermal", "cpuss1", "C", &[(1.0, 44.0), (2.0, 140.0), (3.0, 45.0), (4.0, 46.0)]),
            // Two in a row are a change.
            ("thermal", "nsphvx-0", "C", &[(1.0, 40.0), (2.0, 95.0), (3.0, 96.0), (4.0, 50.0)]),
        ]);
        let strip = temperature(&timeline, "");
        let values = |label: &str| {
            let line = strip.lines.iter().find(|line| line.label == label).unwrap();
            line.points.iter().map(|p| p.1).collect::<Vec<_>>()
        };
        assert_eq!(values("CPU"), [44.0, 44.0, 45.0, 46.0]);
        assert_eq!(values("NPU"), [40.0, 95.0, 96.0, 50.0]);
    }

    #[test]
    fn zones_that_are_read_one_after_the_other_make_no_zigzag() {
        let timeline = with(&[
            ("thermal", "cpuss0", "C", &[(1.0, 60.0), (2.0, 62.0), (3.0, 61.0)]),
            ("thermal", "cpuss1", "C", &[(1.1, 45.0), (2.1, 46.0), (3.1, 46.0), (6.0, 47.0)]),
        ]);
        // The cooler zone never shows while the hotter one lives; at 6 s that has been silent for 3 s.
        let expected = [(1.0, 60.0), (1.1, 60.0), (2.0, 62.0), (2.1, 62.0), (3.0, 61.0), (3.1, 61.0), (6.0, 47.0)];
        assert_eq!(temperature(&timeline, "").lines[0].points, expected);
    }

    #[test]
    fn tokens_are_counted_in_windows() {
        let mut timeline = with(&[("cpu", "busy_pct", "pct", &[(8.0, 1.0)])]);
        // 8 s in 80 windows of 0.1 s from the first token on: two tokens in the first, none in the second, one in the third; the last is cut.
        timeline.tokens = vec![1.0, 1.05, 1.25, 1.33];
        let points: Vec<(f64, f64)> = throughput(&timeline).lines[0].points.clone();
        let rounded: Vec<(i64, i64)> = points.iter().map(|(t, rate)| ((t * 100.0).round() as i64, rate.round() as i64)).collect();
        assert_eq!(rounded, [(105, 20), (115, 0), (125, 10)]);
    }

    #[test]
    fn the_fastest_cluster_and_its_cap() {
        let timeline = with(&[
            ("cpufreq", "policy0", "MHz", &[(1.0, 1800.0)]),
            ("cpufreq", "policy7", "MHz", &[(1.0, 3302.0)]),
            ("cpufreq", "policy7_cap", "MHz", &[(1.0, 2956.0)]),
            ("cpufreq", "policy7_max", "MHz", &[(1.0, 3400.0)]),
        ]);
        let found: Vec<_> = clocks(&timeline).lines.into_iter().map(|line| (line.label, line.dashed)).collect();
        assert_eq!(found, [("CPU policy7".to_owned(), false), ("its cap".to_owned(), true)]);
    }

    #[test]
    fn a_discharging_battery_is_power_and_one_on_a_charger_is_not() {
        let draw = |status: f64| {
            with(&[
                (
                    "battery",
                    "bms/current_now",
                    "raw",
                    &[(0.0, -1_000_000.0), (1.0, -1_500_000.0), (2.0, -1_250_000.0), (3.0, -1_100_000.0)],
                ),
                ("battery", "bms/voltage_now", "raw", &[(0.0, 4_000_000.0), (1.0, 4_000_000.0), (2.0, 4_000_000.0), (3.0, 4_000_000.0)]),
                ("battery", "bms/status", "code", &[(0.0, status), (1.0, status), (2.0, status), (3.0, status)]),
            ])
        };
        // 1 A at 4 V are 4 W.
        let strip = power(&draw(2.0));
        assert_eq!(strip.lines.iter().map(|line| line.label.as_str()).collect::<Vec<_>>(), ["battery"]);
        assert!(
            strip.lines[0].points.iter().any(|(t, w)| (*t - 1.0).abs() < 1e-6 && (*w - 6.0).abs() < 1e-6),
            "{:?}",
            strip.lines[0].points
        );
        assert!(power(&draw(1.0)).lines.is_empty());
    }

    #[test]
    fn what_is_not_there_is_said() {
        let chart = chart(&with(&[("process", "rss_kb", "kB", &[(0.1, 1000.0), (0.2, 2000.0)])]), "", "t".into(), "").unwrap().unwrap();
        assert!(
            chart.caption.contains("Not seen in this launch: temperature, clocks, throughput, load of CPU, GPU and NPU and power."),
            "{}",
            chart.caption
        );
        // 2,000 kB are 2.048 MB.
        assert_eq!(chart.table.rows[0][5], "2.05");
        assert!(super::chart(&Timeline::default(), "", "t".into(), "").unwrap().is_none());
    }
}
