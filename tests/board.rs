//! A board without a battery whose power rails stand in hwmon (test phone, command `board`): what `bench` makes of them against what they showed.

#[path = "device/harness.rs"]
mod harness;
#[path = "device/lab.rs"]
mod lab;
mod support;

use std::{
    fs,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use lab::{Lab, spawn, wait_long};
use serde_json::Value;
use support::{Row, Scenario, finish, number, run};

/// Launches of `queries` measured queries of a second, of which a part is load.
fn scenario(lab: &Lab, (launches, queries): (u32, u32), power: &str) -> PathBuf {
    let command = ["python3", "./runner.py", "--pace", "1000"].map(str::to_owned).to_vec();
    let path = Scenario { name: "board", command, launches, device: lab.device(), ..Scenario::default() }.write(lab.dir.path());
    let text = fs::read_to_string(&path).unwrap().replace("queries = 2", &format!("queries = {queries}"));
    fs::write(&path, format!("{text}[power]\nbaseline = \"off\"\n{power}\n")).unwrap();
    path
}

/// Begin and end of the measured queries of every launch, in seconds of the monotonic clock, by the runner's stamps.
fn windows(folder: &Path) -> Vec<(f64, f64)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.join("logs")];
    while let Some(dir) = folders.pop() {
        if let Ok(bytes) = fs::read(dir.join("launch.json")) {
            let record: Value = serde_json::from_slice(&bytes).unwrap();
            let queries = record["parsed"]["queries"].as_array().unwrap();
            let seconds = |ns: &Value| ns.as_f64().unwrap() / 1e9;
            let last = queries.last().unwrap()["tokens"].as_array().unwrap().last().unwrap();
            found.push((seconds(&queries[1]["start_ns"]), seconds(&last["t_ns"])));
        }
        folders.extend(fs::read_dir(&dir).unwrap().flatten().map(|e| e.path()).filter(|p| p.is_dir()));
    }
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    found
}

/// What a rail gave in a window: what it shows stands until it shows the next.
fn joules(rails: &[[f64; 3]], rail: usize, (from, to): (f64, f64)) -> f64 {
    rails.windows(2).map(|w| w[0][rail] * (w[1][0].min(to) - w[0][0].max(from)).max(0.0)).sum()
}

/// A launch's joules are those of a rail.
#[track_caller]
fn is_right(lab: &Lab, row: &Row, rail: usize, window: (f64, f64)) {
    let of = |column: &str| number(row, column).unwrap_or_else(|| panic!("no {column} in {row:?}"));
    // The kernel's boot time and monotonic time are one where the machine never sleeps.
    let (truth, gross, error) = (joules(&lab.phone.rails(), rail, window), of("energy_gross_j"), of("energy_error_j"));
    println!(
        "{gross} J, the rail's own {truth:.2} J in {:.1} s, stated error {error} J, {} updates/s",
        window.1 - window.0,
        row["power_update_hz"]
    );
    assert!((gross - truth).abs() <= error + 1e-4 * gross, "{gross} is not {truth} within {error}");
    assert!((gross / truth - 1.0).abs() < 0.05, "{gross} {truth}");
    assert!((of("power_avg_w") * (window.1 - window.0) / gross - 1.0).abs() < 1e-3, "{row:?}");
    // The model steps about once a second, however often it is asked.
    assert!((0.3..=1.6).contains(&of("power_update_hz")), "{row:?}");
    assert_eq!((row["power_method"].as_str(), row["charge_state"].as_str()), ("hwmon:ina231", ""), "{row:?}");
}

#[test]
fn energy_is_what_the_rails_gave() {
    let Some(mut lab) = Lab::with_paced_runner() else { return };
    lab.phone.tell("board");
    lab.connect();
    // Longer than 20 updates: a rail needs no two minutes.
    let path = scenario(&lab, (1, 32), "");
    let running = spawn(&mut lab.run(&path, "5s"));
    wait_long("the launch", || lab.said().contains("launch_begin"));
    thread::sleep(Duration::from_secs(12));
    // A core's worth of load in the middle.
    lab.shell("n=0; while [ $n -lt 200000 ]; do n=$((n+1)); done");
    finish(running).expect(0);
    let rows = lab.launches();
    is_right(&lab, &rows[0], 1, windows(&lab.folder())[0]);
    assert!(rows[0]["absent"].contains("battery_hours=what one percent of the battery holds is not known"), "{}", rows[0]["absent"]);

    // Another rail by its name, then one that is not there.
    fs::rename(lab.path("results"), lab.path("first")).unwrap();
    run(&mut lab.run(&scenario(&lab, (1, 32), "rails = \"ina231/processor\""), "5s")).expect(0);
    is_right(&lab, &lab.launches()[0], 2, windows(&lab.folder())[0]);
    fs::rename(lab.path("results"), lab.path("second")).unwrap();
    run(&mut lab.run(&scenario(&lab, (1, 2), "rails = \"ina231/gpu\""), "5s")).expect(0);
    let row = lab.launches().remove(0);
    let why = "power_avg_w=no power rail ina231/gpu; there are: ina231/processor, ina231/system";
    assert!(row["status"] == "ok" && row["absent"].contains(why), "{}", row["absent"]);
}

#[test]
fn rails_that_vanish_have_no_joules() {
    let Some(mut lab) = Lab::with_paced_runner() else { return };
    lab.phone.tell("board");
    let path = scenario(&lab, (2, 24), "");
    let running = spawn(&mut lab.run(&path, "5s"));
    wait_long("the first query", || {
        !lab.said().is_empty() && lab.shell("cat /data/local/tmp/bench/work/*/events.jsonl 2>/dev/null | wc -l") != "0"
    });
    thread::sleep(Duration::from_secs(8));
    lab.phone.tell("board gone");
    finish(running).expect(0);
    let rows = lab.launches();
    assert_eq!(rows.len(), 2);
    for row in &rows {
        assert_eq!((row["status"].as_str(), row["power_avg_w"].as_str(), row["energy_gross_j"].as_str()), ("ok", "", ""), "{row:?}");
    }
    // The first launch saw them for a part of its window, the second one never.
    assert!(rows[0]["absent"].contains("energy_gross_j=readings cover "), "{}", rows[0]["absent"]);
    assert!(rows[1]["absent"].contains("energy_gross_j=no battery gives a current, and no rail"), "{}", rows[1]["absent"]);
}
