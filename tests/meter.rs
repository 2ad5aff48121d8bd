//! An external meter from its program or file to the tables, on this computer. The stand-in (`tests/standins/meter.py`) sees the real load of the runner
//! and of bench's pulses, by a clock of its own; what it saw by the device's clock is kept beside, so that every joule is known without bench.

mod support;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use serde_json::Value;
use support::{Row, Scenario, bench, journal, number, only_run, root, run, runner, table, wait_until};

/// What the meter says of its clock.
const FAST_PPM: f64 = 4000.0;

fn meter(dir: &Path, options: &[&str]) -> Vec<String> {
    let mut words = vec!["python3".to_owned(), root().join("tests/standins/meter.py").display().to_string()];
    words.extend(options.iter().map(|o| (*o).to_owned()));
    words.push(dir.join("cache").display().to_string());
    words
}

/// A cell of `launches` launches, each of whose queries keeps a core busy for 0.6 s and then waits for 0.4 s; there is a second before the load.
fn scenario(dir: &Path, launches: u32, source: &str) -> PathBuf {
    let paced = fs::read_to_string(runner()).unwrap();
    let busy = paced.replace(
        "        time.sleep(pace)\n",
        "        until = time.monotonic() + 0.6 * pace\n        while time.monotonic() < until:\n            pass\n        time.sleep(0.4 * pace)\n        \
         t = time.monotonic_ns()\n",
    );
    let late = busy.replace("now = time.monotonic_ns()\n", "time.sleep(1)\nnow = time.monotonic_ns()\n");
    assert!(paced != busy && busy != late);
    fs::write(dir.join("runner.py"), late).unwrap();
    fs::create_dir_all(dir.join("cache")).unwrap();
    let command = ["python3", "./runner.py", "--pace", "1000"].map(str::to_owned).to_vec();
    let path = Scenario { name: "meter", command, launches, ..Scenario::default() }.write(dir);
    let text = fs::read_to_string(&path).unwrap().replace("queries = 2", "queries = 6");
    fs::write(&path, format!("{text}[power]\nbaseline = \"off\"\nmeter = {source}\n")).unwrap();
    path
}

/// Runs it with the meter as a program.
fn with_program(dir: &Path, launches: u32, mode: &str) -> PathBuf {
    let source = format!("{{ command = {:?} }}", meter(dir, &["--mode", mode]));
    let path = scenario(dir, launches, &source);
    run(bench(dir).arg("run").arg(path).arg("--no-report")).expect(0);
    only_run(&dir.join("results"))
}

/// Begin and end of a launch's window in seconds of the monotonic clock, by the runner's own stamps.
fn window(folder: &Path, launch: &str) -> (f64, f64) {
    let mut folders = vec![folder.join("logs")];
    while let Some(dir) = folders.pop() {
        if dir.file_name().is_some_and(|n| n == format!("measure-{launch:0>3}").as_str()) {
            let record: Value = serde_json::from_slice(&fs::read(dir.join("launch.json")).unwrap()).unwrap();
            let queries = record["parsed"]["queries"].as_array().unwrap();
            let seconds = |ns: &Value| ns.as_f64().unwrap() / 1e9;
            let last = queries.last().unwrap()["tokens"].as_array().unwrap().last().unwrap();
            return (seconds(&queries[1]["start_ns"]), seconds(&last["t_ns"]));
        }
        folders.extend(fs::read_dir(&dir).unwrap().flatten().map(|e| e.path()).filter(|p| p.is_dir()));
    }
    panic!("no launch {launch} in {}", folder.display())
}

/// Joules that the meter really saw: each of its looks holds until the next.
fn joules(dir: &Path, (from, to): (f64, f64)) -> f64 {
    let text = fs::read_to_string(dir.join("truth.csv")).unwrap();
    let looks: Vec<Vec<f64>> = text.lines().map(|l| l.split(',').filter_map(|f| f.parse().ok()).collect()).collect();
    let whole: Vec<(f64, f64)> = looks.iter().filter(|l| l.len() == 2).map(|l| (l[0], l[1])).collect();
    whole.windows(2).map(|w| w[0].1 * (w[1].0.min(to) - w[0].0.max(from)).max(0.0)).sum()
}

/// The figures of a launch are what its meter really saw.
#[track_caller]
fn is_right(dir: &Path, folder: &Path, row: &Row) {
    let of = |column: &str| number(row, column).unwrap_or_else(|| panic!("no {column} in {row:?}"));
    let ends = window(folder, &row["launch"]);
    let (truth, gross, error) = (joules(dir, ends), of("energy_gross_j"), of("energy_error_j"));
    println!(
        "launch {}: {gross} J, truly {truth:.2} J in {:.2} s, stated error {error} J; clock {} s +- {} s, {} ppm",
        row["launch"],
        ends.1 - ends.0,
        row["meter_offset_s"],
        row["meter_error_s"],
        row["meter_drift_ppm"]
    );
    // Tables have six digits.
    assert!((gross - truth).abs() <= error + 1e-4 * gross, "{gross} is not {truth} within {error}");
    assert!((gross / truth - 1.0).abs() < 0.03 && error / gross < 0.1, "{gross} {truth} {error}");
    assert!((of("power_avg_w") - truth / (ends.1 - ends.0)).abs() < 0.1, "{row:?}");
    // It is asked 50 times a second, and the machine is shared.
    assert!((10.0..=51.0).contains(&of("power_update_hz")), "{row:?}");
    assert_eq!(row["power_method"], "meter");
}

#[test]
fn energy_is_what_the_meter_saw() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path();
    let folder = with_program(dir, 3, "ok");
    let rows = table(&folder, "launches.csv");
    assert_eq!(rows.len(), 3);
    let begun: f64 = fs::read_to_string(dir.join("truth.csv")).unwrap().split(',').next().unwrap().parse().unwrap();
    for row in &rows {
        is_right(dir, &folder, row);
        // Its clock by its own words: three days at the begin, and 0.4 % fast.
        let middle = f64::midpoint(window(&folder, &row["launch"]).0, window(&folder, &row["launch"]).1);
        let offset = 86400.0 * 3.0 + (middle - begun) * (1.0 + FAST_PPM / 1e6) - middle;
        let (found, error) = (number(row, "meter_offset_s").unwrap(), number(row, "meter_error_s").unwrap());
        assert!((found - offset).abs() <= error && error < 0.2, "{found} {offset} {error}");
        let drift = number(row, "meter_drift_ppm").unwrap();
        // Two places that are known to 0.1 s, half a minute and more apart.
        assert!((drift - FAST_PPM).abs() < 0.2 / 30.0 * 1e6 && drift > 0.0, "{drift}");
    }
    let cell = &table(&folder, "cells.csv")[0];
    assert_eq!(cell["power_method"], "meter");
    assert!(cell["absent"].contains("energy_net_j=no baseline was measured"), "{cell:?}");
}

/// A meter that has been running since before the run, and that knows nothing of it.
#[test]
fn a_meter_that_writes_a_file() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path();
    let path = scenario(dir, 1, "{ file = \"meter.csv\" }");
    let words = meter(dir, &["--file", &dir.join("meter.csv").display().to_string()]);
    let child = Ended(Command::new(&words[0]).args(&words[1..]).stdin(Stdio::null()).spawn().unwrap());
    let written = || fs::metadata(dir.join("meter.csv")).map_or(0, |m| m.len());
    wait_until("the meter's first lines", || written() > 2000);
    let before = written();
    run(bench(dir).arg("run").arg(&path).arg("--no-report")).expect(0);
    let first = only_run(&dir.join("results"));
    is_right(dir, &first, &table(&first, "launches.csv")[0]);
    let kept = |folder: &Path| fs::read_to_string(find(folder, "meter.csv")).unwrap();
    assert!(kept(&first).len() as u64 <= written() - before, "lines from before the run are not the run's");
    // The pulses of the first run are in the file that the second run finds.
    fs::rename(dir.join("results"), dir.join("first")).unwrap();
    run(bench(dir).arg("run").arg(&path).arg("--no-report")).expect(0);
    let second = only_run(&dir.join("results"));
    is_right(dir, &second, &table(&second, "launches.csv")[0]);
    drop(child);
}

struct Ended(Child);
impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn find(folder: &Path, name: &str) -> PathBuf {
    let mut folders = vec![folder.to_path_buf()];
    while let Some(dir) = folders.pop() {
        if dir.join(name).is_file() {
            return dir.join(name);
        }
        folders.extend(fs::read_dir(&dir).unwrap().flatten().map(|e| e.path()).filter(|p| p.is_dir()));
    }
    panic!("no {name} in {}", folder.display())
}

/// Without its meter a launch is a good one, and has no joules: the reason is that of the meter.
#[track_caller]
fn has_none(row: &Row, why: &str) {
    assert_eq!((row["status"].as_str(), row["energy_gross_j"].as_str(), row["power_avg_w"].as_str()), ("ok", "", ""), "{row:?}");
    let own = row["absent"].split(';').find_map(|a| a.strip_prefix("energy_gross_j=")).unwrap_or_else(|| panic!("no reason: {row:?}"));
    assert!(own.contains(why), "{own:?} does not say {why:?}");
}

fn words(folder: &Path) -> Vec<String> {
    journal(folder).iter().filter_map(|e| e["text"].as_str().map(str::to_owned)).collect()
}

#[test]
fn a_meter_that_dies() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = with_program(temporary.path(), 2, "dies");
    let rows = table(&folder, "launches.csv");
    for row in &rows {
        has_none(row, "readings cover ");
    }
    has_none(&rows[1], "readings cover 0.0 s of a window of ");
    let said = words(&folder);
    let own = said.iter().any(|w| w.contains("the meter's program ended before the run did (exit status: 3): the probe fell off"));
    assert!(own, "{said:?}");
    assert!(table(&folder, "cells.csv")[0]["absent"].contains("energy_gross_j=readings cover "), "the cell says it too");
}

#[test]
fn a_meter_that_lags() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = with_program(temporary.path(), 1, "lags");
    has_none(&table(&folder, "launches.csv")[0], "readings cover ");
}

#[test]
fn a_meter_that_shows_no_pulse() {
    for (mode, why) in [("slow", "meter: the start pulse"), ("steady", "meter: the start pulse is not found in it (best correlation 0.00")]
    {
        let temporary = tempfile::tempdir().unwrap();
        let folder = with_program(temporary.path(), 1, mode);
        has_none(&table(&folder, "launches.csv")[0], why);
    }
}

#[test]
fn a_meter_that_is_not_there() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path();
    let path = scenario(dir, 1, "{ command = [\"no-such-meter\"] }");
    run(bench(dir).arg("run").arg(path).arg("--no-report")).expect(0);
    let folder = only_run(&dir.join("results"));
    has_none(&table(&folder, "launches.csv")[0], "meter: ");
    let said = words(&folder);
    assert!(said.iter().any(|w| w.contains("the meter's program can't be started: no-such-meter")), "{said:?}");
}
