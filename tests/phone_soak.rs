//! Soaks on the test phone: its simulated chip is heated by the real load, throttles, and knows what it did. Every figure is compared with that.

#[path = "device/harness.rs"]
mod harness;
#[path = "device/lab.rs"]
mod lab;
mod support;

use std::{fs, path::PathBuf, process::Command};

use lab::{Lab, spawn, wait_long};
use support::{GENERATED, Row, Scenario, finish, number, run, table, wait_until};

fn start() -> Option<Lab> {
    Lab::start("throttled.py", &fs::read_to_string(support::root().join("tests/standins/throttled.py")).unwrap())
}

/// A scenario of one cell on this phone's "NPU".
fn scenario(lab: &Lab, soak: &str) -> PathBuf {
    let command = ["python3", "./throttled.py"].map(str::to_owned).to_vec();
    let path = Scenario { name: "heat", command, device: lab.device(), ..Scenario::default() }.write(lab.dir.path());
    let text = fs::read_to_string(&path).unwrap().replace("[matrix]", "unit = \"npu\"\n[matrix]");
    fs::write(&path, format!("{text}[soak]\n{soak}\n")).unwrap();
    path
}

fn soak(lab: &Lab, soak: &str) -> Command {
    lab.run(&scenario(lab, soak), "20s")
}

/// When the soak's queries began, from its events: seconds of the phone's `CLOCK_MONOTONIC`.
fn prompts(lab: &Lab) -> Vec<f64> {
    let log = fs::read_dir(lab.folder().join("logs")).unwrap().flatten().next().unwrap().path();
    let log = fs::read_dir(log).unwrap().flatten().next().unwrap().path().join("soak-000");
    let events = fs::read_to_string(log.join("events.jsonl")).unwrap();
    let events = events.lines().map(|l| serde_json::from_str::<serde_json::Value>(l).unwrap());
    events.filter(|e| e["event"] == "prompt").map(|e| e["t_ns"].as_f64().unwrap() / 1e9).collect()
}

fn cell(lab: &Lab) -> Row {
    table(&lab.folder(), "cells.csv").remove(0)
}

/// Waits until the soak's engine has answered on the phone.
fn wait_for_soak(lab: &Lab) {
    let script = "cat /data/local/tmp/bench/work/*-soak-0/events.jsonl 2>/dev/null | head -n 40 | wc -l";
    wait_until("a soak on the phone", || lab.shell(script) == "40");
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    assert!(n > 0);
    if n % 2 == 1 { values[n / 2] } else { f64::midpoint(values[n / 2 - 1], values[n / 2]) }
}

/// What was true at a time: the last line before.
fn at(truth: &[[f64; 7]], t_s: f64, column: usize) -> f64 {
    truth.iter().rev().find(|line| line[0] <= t_s).unwrap_or(&truth[0])[column]
}

#[track_caller]
fn near(what: &str, found: Option<f64>, wanted: f64, error: f64) {
    let found = found.unwrap_or_else(|| panic!("{what} is absent, {wanted} wanted"));
    assert!((found - wanted).abs() <= error, "{what}: {found}, the phone knows {wanted} (error {error})");
}

#[test]
fn every_figure_is_what_the_phone_knows() {
    let Some(mut lab) = start() else { return };
    // One core adds 60 C within minutes: above 45 C it is slowed down, a tenth of the frequency a second.
    lab.phone.tell("throttle nsp 45 44 60 60");
    lab.phone.tell("temp nsp 34");
    run(&mut soak(&lab, "duration = \"64s\"\nwindow = \"2s\"")).expect(0);
    let truth = lab.phone.truth();
    let (cell, folder) = (cell(&lab), lab.folder());
    assert_eq!((cell["soak_ended"].as_str(), cell["soak_check_tokens"].as_str()), ("complete", "not-checkable"));
    let windows = table(&folder, "soak.csv");
    assert!((31..=33).contains(&windows.len()), "{}", windows.len());
    assert!(windows.iter().all(|w| w["check_tokens"] == "confirmed"));

    // When it began, from the events themselves: the first and the second query.
    let prompts = prompts(&lab);
    let (heated, begin) = (prompts[0], prompts[1]);
    let length = number(&cell, "soak_s").unwrap();

    // The rate of a window, by what a token costs at the frequency that the phone allowed: 40 ms and 7 of 20 ms a query.
    let rate = |from: f64, to: f64| {
        let steps = 100;
        let slow = (0..steps).map(|i| (3302.4 / at(&truth, from + (to - from) * (f64::from(i) + 0.5) / f64::from(steps), 5)).powi(-2));
        f64::from(GENERATED) / (0.041 + f64::from(GENERATED - 1) * 0.020) * slow.sum::<f64>() / f64::from(steps)
    };
    let wanted: Vec<(f64, f64)> = windows
        .iter()
        .map(|w| (number(w, "t_s").unwrap(), number(w, "length_s").unwrap()))
        .map(|(t, length)| (t + length / 2.0, rate(begin + t, begin + t + length)))
        .collect();
    let span = length / 3.0;
    near("soak_span_s", number(&cell, "soak_span_s"), span, 0.01);
    let of = |from: f64, to: f64| median(wanted.iter().filter(|(t, _)| (from..=to).contains(t)).map(|w| w.1).collect());
    let (first, last) = (of(0.0, span), of(length - span, length));
    assert!(last < 0.75 * first, "the phone did not throttle: {first} to {last}");
    // A window has two or three dozen tokens: one more or less is 5 %.
    near("soak_tok_s", number(&cell, "soak_tok_s"), first, 0.05 * first);
    near("sustained_ratio", number(&cell, "sustained_ratio"), last / first, 0.05);

    // The first cap, as it was sampled once a second; the cooling device moves with it.
    let (t0, t1) = (begin - 3.0, begin + length);
    let capped = truth.iter().find(|l| l[0] > t0 && l[0] < t1 && l[6] > 0.0).expect("capped")[0] - begin;
    let throttle = table(&folder, "soak_events.csv").into_iter().find(|e| e["kind"] == "throttle").expect("an event");
    near("the first throttle", number(&throttle, "t_s"), capped, 2.5);
    assert!(cell["first_throttle"].starts_with("co") || cell["first_throttle"].starts_with("cpufreq policy"), "{}", cell["first_throttle"]);
    // Its first window under 0.9: the frequency of the first step gives 0.80 of the speed.
    near("time_to_throttle_s", number(&cell, "time_to_throttle_s"), capped, 4.5);
    let free: f64 = truth.windows(2).filter(|l| l[0][0] >= begin && l[0][0] < t1 && l[0][6] == 0.0).map(|l| l[1][0] - l[0][0]).sum();
    near("throttled_fraction", number(&cell, "throttled_fraction"), 1.0 - free / length, 0.05);

    // Temperatures: a step of the model and a sample a second apart.
    assert_eq!(cell["rise_domain"], "npu");
    let rise = at(&truth, heated + 60.0, 2) - at(&truth, heated, 2);
    near("rise_c_per_min_60s", number(&cell, "rise_c_per_min_60s"), rise, 2.0);
    let peak = truth.iter().filter(|l| l[0] >= heated && l[0] <= t1).map(|l| l[2]).fold(0.0, f64::max);
    near("peak_npu_c", number(&cell, "peak_npu_c"), peak, 1.2);
    for w in &windows {
        let (t, length) = (number(w, "t_s").unwrap() + begin, number(w, "length_s").unwrap());
        let mean = (0..20).map(|i| at(&truth, t + length * f64::from(i) / 20.0, 2)).sum::<f64>() / 20.0;
        near("npu_c", number(w, "npu_c"), mean, 2.0);
    }
    assert!(number(&cell, "latency_temp_rho").unwrap() > 0.5 && number(&cell, "latency_temp_ms_per_c").unwrap() > 0.0);
    // It recovers when the load is gone.
    lab.phone.tell("temp nsp 35");
    wait_until("the frequency comes back", || lab.phone.truth().last().is_some_and(|l| l[6] == 0.0));
}

#[test]
fn a_zone_that_is_too_hot_ends_a_soak() {
    let Some(mut lab) = start() else { return };
    let child = spawn(&mut soak(&lab, "duration = \"60s\"\nwindow = \"1s\"\ntrip = { npu = \"70C\" }"));
    wait_for_soak(&lab);
    // By less than 40 C: more between two samples would count as a failed reading, and not as the peak.
    lab.phone.tell("temp nsp 73");
    finish(child).expect(6);
    let cell = cell(&lab);
    assert!(cell["soak_ended"].starts_with("early: ended by the thermal trip: nsp"), "{}", cell["soak_ended"]);
    assert!(cell["soak_ended"].contains("over its limit of 70 C"), "{}", cell["soak_ended"]);
    let (windows, peak) = (number(&cell, "soak_windows").unwrap(), number(&cell, "peak_npu_c").unwrap());
    assert!(windows >= 1.0 && peak > 70.0, "{windows} windows, {peak} C");
    let launches = table(&lab.folder(), "launches.csv");
    assert_eq!(launches.iter().find(|l| l["pass"] == "soak").unwrap()["failure_kind"], "thermal");
    assert_eq!(cell["status"], "ok");
}

#[test]
fn a_phone_that_is_restarted_keeps_its_soak() {
    let Some(mut lab) = start() else { return };
    let child = spawn(&mut soak(&lab, "duration = \"60s\"\nwindow = \"1s\""));
    wait_for_soak(&lab);
    lab.phone.tell("reboot");
    finish(child).expect(6);
    let cell = cell(&lab);
    assert!(cell["soak_ended"].starts_with("early: ") && cell["soak_ended"].contains("restarted"), "{}", cell["soak_ended"]);
    assert!(number(&cell, "soak_windows").unwrap() >= 1.0);
}

#[test]
fn a_killed_bench_finds_its_soak_on_the_phone() {
    let Some(lab) = start() else { return };
    let mut child = spawn(&mut soak(&lab, "duration = \"12s\"\nwindow = \"2s\""));
    wait_for_soak(&lab);
    child.kill().unwrap();
    child.wait().unwrap();
    run(&mut lab.resume("20s")).expect(0);
    let cell = cell(&lab);
    assert_eq!(cell["soak_ended"], "complete");
    assert!(number(&cell, "soak_s").unwrap() > 11.0);
}

#[test]
fn a_lost_phone_goes_on_with_its_soak_and_a_resume_finds_it() {
    let Some(mut lab) = start() else { return };
    let child = spawn(&mut lab.run(&scenario(&lab, "duration = \"12s\"\nwindow = \"2s\""), "2s"));
    wait_for_soak(&lab);
    lab.phone.tell("unplug");
    let cut = lab.phone.truth().last().unwrap()[0];
    finish(child).expect(5).says(&["the device was lost", "bench run --resume"]);
    let soaks = |lab: &Lab| table(&lab.folder(), "launches.csv").iter().filter(|l| l["pass"] == "soak").count();
    assert_eq!(soaks(&lab), 0, "nobody knows yet how it ended");
    lab.phone.tell("plug");
    wait_long("the phone's return", || lab.shell("echo here") == "here");
    run(&mut lab.resume("30s")).expect(0).says(&["is waited for and adopted"]);
    let cell = cell(&lab);
    assert_eq!((cell["soak_ended"].as_str(), soaks(&lab)), ("complete", 1));
    assert!(number(&cell, "soak_s").unwrap() > 11.0, "{}", cell["soak_s"]);
    // One program, which worked before the link was cut and after it, without a pause: a query of it takes 0.18 s.
    let prompts = prompts(&lab);
    assert!(prompts[0] < cut && cut + 5.0 < prompts[prompts.len() - 1], "cut at {cut}: {prompts:?}");
    assert!(prompts.windows(2).all(|p| p[1] > p[0] && p[1] - p[0] < 1.0), "{prompts:?}");
}

#[test]
fn a_soak_without_room_is_not_begun_and_is_made_up_for() {
    let Some(mut lab) = start() else { return };
    lab.phone.tell("full 100000");
    run(&mut soak(&lab, "duration = \"4s\"\nwindow = \"1s\"")).expect(0);
    let ended = cell(&lab).remove("soak_ended").unwrap();
    // 256 MiB of events, 128 MiB of output, and 200 names' telemetry of 4 s: 200 rows of 8 x 64 and 5 x 96 bytes.
    assert!(ended.starts_with("not run: its evidence may take 403 MB on the device, and "), "{ended}");
    let free: f64 = ended.split(", and ").nth(1).and_then(|w| w.split(' ').next()?.parse().ok()).unwrap_or_else(|| panic!("{ended}"));
    // What the launches left there is small.
    assert!((50.0..=103.0).contains(&free) && ended.contains("--retry-failed"), "{ended}");
    lab.phone.tell("free");
    let mut resume = lab.resume("20s");
    run(resume.arg("--retry-failed")).expect(0);
    assert_eq!(cell(&lab)["soak_ended"], "complete");
}
