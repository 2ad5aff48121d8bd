//! scenarios/nightly: the script of a night, as a lab runs it, with the stand-in engine in place of a phone.

mod support;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use support::{
    Ran, Scenario, bench, root, run,
    runs::{Cell, Run, noisy},
};

/// A lab in a folder: scenario, configuration, and the folder of its nights.
struct Lab {
    dir: tempfile::TempDir,
}
impl Lab {
    fn new(settings: &str) -> Self {
        let lab = Self { dir: tempfile::tempdir().unwrap() };
        Scenario { name: "nightly", launches: 6, ..Scenario::default() }.write(lab.dir.path());
        let conf = format!(
            "BENCH='{}'\nSCENARIO='{}'\nFOLDER='{}'\n{settings}\n",
            env!("CARGO_BIN_EXE_bench"),
            lab.path("nightly.toml").display(),
            lab.path("nights folder").display()
        );
        fs::write(lab.path("lab.conf"), conf).unwrap();
        lab
    }
    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
    fn folder(&self, name: &str) -> PathBuf {
        self.path("nights folder").join(name)
    }
    fn night(&self) -> Ran {
        // The environment of `bench` in tests; the program itself comes from the configuration.
        let environment = bench(self.dir.path());
        let mut command = Command::new(root().join("scenarios/nightly/bench-nightly"));
        for (name, value) in environment.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let ran = run(command.current_dir(self.dir.path()).arg("lab.conf"));
        // Nights are told apart by their second.
        std::thread::sleep(std::time::Duration::from_millis(1100));
        ran
    }
    fn last_night(&self) -> PathBuf {
        names(&self.folder("nights")).last().map(|name| self.folder("nights").join(name)).unwrap()
    }
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn log(lab: &Lab) -> String {
    fs::read_to_string(lab.last_night().join("log.txt")).unwrap()
}

#[test]
fn two_nights_leave_runs_verdicts_pages_and_a_history() {
    let lab = Lab::new("PUBLISH='echo \"$CODE\" > \"$NIGHT/published\"; ls \"$REPORTS\" >> \"$NIGHT/published\"'");
    // Nothing before it: the first night can't be judged, and says so.
    let first = lab.night();
    assert_eq!(first.code(), 11, "{first:?}\n{}", log(&lab));
    assert!(first.stdout.contains("measured and judged: ") && first.stdout.contains("(exit 11;"), "{first:?}");
    let second = lab.night();
    assert!([0, 11].contains(&second.code()), "{second:?}\n{}", log(&lab));

    let runs = names(&lab.folder("results"));
    assert_eq!((runs.len(), names(&lab.folder("reports"))), (2, runs.clone()));
    let night = lab.last_night();
    assert!(fs::read_to_string(lab.folder("reports").join(&runs[1]).join("index.html")).unwrap().contains("nightly"));
    for file in [format!("{}.xml", runs[1]), format!("{}.md", runs[1])] {
        assert!(fs::read_to_string(night.join(&file)).unwrap().contains("standin"), "{file}");
    }
    assert!(fs::read_to_string(night.join("history.txt")).unwrap().contains("2 runs, from "));
    assert_eq!(fs::read_to_string(night.join("runs.txt")).unwrap(), format!("{}\n", runs[1]));
    assert_eq!(fs::read_to_string(night.join("exit")).unwrap().trim(), second.code().to_string());
    let published = fs::read_to_string(night.join("published")).unwrap();
    assert_eq!(published.lines().collect::<Vec<_>>(), [&second.code().to_string(), &runs[0], &runs[1]]);
    assert_eq!(fs::read_to_string(lab.folder("keep")).unwrap(), "");
}

/// Sixteen made nights with a step between the 4th and the 5th, a baseline, a pinned run, and what no night may delete.
#[test]
fn old_runs_go_and_steps_baselines_and_foreign_folders_stay() {
    let lab = Lab::new("KEEP=3\nBASELINE=\"$FOLDER/results/20260102T020000Z-nightly-000001\"");
    let results = lab.folder("results");
    for day in 0..24 {
        let level = if day < 12 { 40.0 } else { 30.0 };
        let cell = Cell::new("mnn.tiny.w4.p32.g16-0a1b2c3d").values("decode_tok_s", &noisy(level, 0.02, 20, u64::from(day)));
        Run::night(day).cell(cell).write(&results);
    }
    fs::create_dir_all(lab.folder("reports/20260101T020000Z-nightly-000000")).unwrap();
    fs::write(lab.folder("keep"), "20260103T020000Z-nightly-000002 shown to the vendor\n").unwrap();
    fs::create_dir(results.join("notes")).unwrap();
    fs::write(results.join("notes/mine.txt"), "x").unwrap();
    // A run of another lab that only a link leads to.
    fs::create_dir(lab.path("elsewhere")).unwrap();
    let linked = Run::night(6).write(&lab.path("elsewhere"));
    fs::remove_dir_all(results.join("20260107T020000Z-nightly-000006")).unwrap();
    std::os::unix::fs::symlink(&linked, results.join("20260107T020000Z-nightly-000006")).unwrap();

    let ran = lab.night();
    let left = names(&results);
    let days: Vec<&str> = left.iter().filter(|name| name.starts_with("202601")).map(|name| &name[6..8]).collect();
    // 2: the baseline; 3: in `keep`; 7: a link; 12 and 13: beside the step; 22 to 24: the last three of that phone.
    assert_eq!(days, ["02", "03", "07", "12", "13", "22", "23", "24"], "{ran:?}\n{}", log(&lab));
    assert!(left.contains(&"notes".to_owned()) && linked.join("manifest.json").is_file());
    assert_eq!(left.len(), 10, "and tonight's: {left:?}");
    assert!(!lab.folder("reports/20260101T020000Z-nightly-000000").exists(), "a page goes with its run");
    assert!(ran.stdout.contains("removed 20260101T020000Z-nightly-000000"), "{ran:?}");
    let keep = fs::read_to_string(lab.folder("keep")).unwrap();
    assert_eq!(
        keep,
        "20260103T020000Z-nightly-000002 shown to the vendor\n20260112T020000Z-nightly-00000b beside a step\n\
         20260113T020000Z-nightly-00000c beside a step\n"
    );
    // Once more: nothing is written twice, and tonight's device has nights of its own.
    lab.night();
    assert_eq!(names(&results).len(), 11);
    assert_eq!(fs::read_to_string(lab.folder("keep")).unwrap(), keep);
}

#[test]
fn a_night_without_a_device_is_no_regression_and_removes_nothing() {
    let lab = Lab::new("KEEP=1");
    Run::night(0).write(&lab.folder("results"));
    Run::night(1).write(&lab.folder("results"));
    let text = fs::read_to_string(lab.path("nightly.toml")).unwrap();
    fs::write(lab.path("nightly.toml"), text.replace("local = true", "serial = [\"no-such-phone\"]")).unwrap();
    let conf = fs::read_to_string(lab.path("lab.conf")).unwrap();
    fs::write(lab.path("lab.conf"), format!("{conf}RUN_OPTIONS='--adb-server tcp:1'\n")).unwrap();
    let ran = lab.night();
    assert_eq!(ran.code(), 5, "{ran:?}\n{}", log(&lab));
    assert!(ran.stdout.contains("not measured: device or runtime unavailable; nothing is judged (exit 5;"), "{ran:?}");
    assert_eq!(names(&lab.folder("results")).len(), 2);
    assert!(!log(&lab).contains("bench gate"), "{}", log(&lab));
    // A scenario that is wrong is the lab's mistake.
    fs::write(lab.path("nightly.toml"), "name = 1\n").unwrap();
    assert_eq!(lab.night().code(), 3);
}

#[test]
fn one_night_at_a_time_and_a_configuration_that_makes_sense() {
    let lab = Lab::new("");
    fs::create_dir_all(lab.path("nights folder")).unwrap();
    let mut holder = Command::new("flock").arg(lab.folder("lock")).args(["sleep", "60"]).spawn().unwrap();
    support::wait_until("the lock", || !Command::new("flock").arg("-n").arg(lab.folder("lock")).arg("true").status().unwrap().success());
    let ran = lab.night();
    assert_eq!(ran.code(), 5, "{ran:?}");
    assert!(ran.stderr.contains("the night before is still running"), "{ran:?}");
    holder.kill().unwrap();
    holder.wait().unwrap();
    for (settings, words) in
        [("KEEP=0", "KEEP is a number of nights, not '0'"), ("KEEP='3; rm -rf x'", "KEEP is a number"), ("KEEP=", "KEEP is")]
    {
        let lab = Lab::new(settings);
        let ran = lab.night();
        assert_eq!(ran.code(), 2, "{ran:?}");
        assert!(ran.stderr.contains(words), "{ran:?}");
        assert!(!lab.path("nights folder").exists());
    }
}

/// systemd reads the units, with the script where this checkout has it.
#[test]
fn the_units_are_good() {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        eprintln!("skipped: no systemd-analyze here");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let folder = root().join("scenarios/nightly");
    for file in ["bench-nightly.service", "bench-nightly.timer"] {
        let text = fs::read_to_string(folder.join(file)).unwrap();
        fs::write(dir.path().join(file), text.replace("/opt/bench/scenarios/nightly", folder.to_str().unwrap())).unwrap();
    }
    let ran = run(Command::new("systemd-analyze")
        .arg("verify")
        .args(["bench-nightly.service", "bench-nightly.timer"].map(|f| dir.path().join(f))));
    assert_eq!((ran.code(), ran.stderr.as_str()), (0, ""), "{ran:?}");
}

/// The example configuration names every variable, with the script's own default.
#[test]
fn the_configuration_is_whole() {
    let folder = root().join("scenarios/nightly");
    let script = fs::read_to_string(folder.join("bench-nightly")).unwrap();
    let conf = fs::read_to_string(folder.join("bench-nightly.conf")).unwrap();
    let defaults: Vec<&str> = script.lines().filter(|line| line.starts_with("BENCH=") || line.starts_with("RUN_OPTIONS=")).collect();
    let words: Vec<(&str, &str)> = defaults.iter().flat_map(|line| line.split(' ')).filter_map(|word| word.split_once('=')).collect();
    assert_eq!(words.len(), 9, "{words:?}");
    for (name, value) in words {
        let line = conf.lines().find_map(|line| line.trim_start_matches('#').strip_prefix(&format!("{name}=")));
        let line = line.unwrap_or_else(|| panic!("{name} is not in the example"));
        if !["SCENARIO", "FOLDER"].contains(&name) {
            assert_eq!(line.split(' ').next(), Some(value.trim_matches('\'')), "{name}");
        }
    }
}
