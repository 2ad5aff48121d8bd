//! scenarios/nightly: the script of a night, as a lab runs it, with the stand-in engine in place of a phone.

mod support;

use std::{
    fs,
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
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
    /// A script in place of bench (`BENCH=./standin`), which is asked with the name of the verb first.
    fn standin(settings: &str, verbs: &str) -> Self {
        let lab = Self::new(&format!("BENCH=./standin\n{settings}"));
        let whole = r#"whole() { mkdir "$1" && printf '{\n  "finished_utc": "2026-01-01T02:40:00Z"\n}\n' > "$1/manifest.json"; }"#;
        fs::write(lab.path("standin"), format!("#!/bin/sh\n{whole}\ncase $1 in\n{verbs}\nesac\n")).unwrap();
        fs::set_permissions(lab.path("standin"), fs::Permissions::from_mode(0o755)).unwrap();
        lab
    }
    fn command(&self) -> Command {
        // The environment of `bench` in tests; the program itself comes from the configuration.
        let environment = bench(self.dir.path());
        // A shell can't catch what its parent ignores, as a test that runs in the background does.
        let mut command = Command::new("env");
        command.arg("--default-signal=INT").arg(root().join("scenarios/nightly/bench-nightly"));
        for (name, value) in environment.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.current_dir(self.dir.path()).arg("lab.conf");
        command
    }
    fn night(&self) -> Ran {
        let ran = run(&mut self.command());
        // Nights are told apart by their second.
        std::thread::sleep(std::time::Duration::from_millis(1100));
        ran
    }
    fn locked(&self) -> bool {
        !Command::new("flock").arg("-n").arg(self.folder("lock")).arg("true").status().unwrap().success()
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
    let site: Vec<String> = runs.iter().cloned().chain(["device-local.html", "index.html", "model-tiny.html"].map(str::to_owned)).collect();
    assert_eq!((runs.len(), names(&lab.folder("reports"))), (2, site.clone()));
    let index = fs::read_to_string(lab.folder("reports/index.html")).unwrap().replace("&#x2f;", "/");
    for run in &runs {
        assert!(index.contains(&format!("<a href=\"{run}/index.html\">{run}</a>")), "{run}");
    }
    // The gate of the second night, whatever it says.
    assert!(index.split("Latest gates</h2>").nth(1).unwrap().split("</section>").next().unwrap().contains(&runs[1]));
    let night = lab.last_night();
    assert!(fs::read_to_string(lab.folder("reports").join(&runs[1]).join("index.html")).unwrap().contains("nightly"));
    for file in [format!("{}.xml", runs[1]), format!("{}.md", runs[1])] {
        assert!(fs::read_to_string(night.join(&file)).unwrap().contains("standin"), "{file}");
    }
    assert!(fs::read_to_string(night.join("history.txt")).unwrap().contains("2 runs, from "));
    assert_eq!(fs::read_to_string(night.join("runs.txt")).unwrap(), format!("{}\n", runs[1]));
    assert_eq!(fs::read_to_string(night.join("exit")).unwrap().trim(), second.code().to_string());
    let published = fs::read_to_string(night.join("published")).unwrap();
    assert_eq!(published.lines().collect::<Vec<_>>(), [&[second.code().to_string()][..], &site[..]].concat());
    assert_eq!(fs::read_to_string(lab.folder("keep")).unwrap(), "");
}

/// Made nights with a step between the 12th and the 13th, a baseline, a pinned run, and what no night may delete. PUBLISH fails
/// every night, which keeps nothing from going.
#[test]
fn old_runs_go_and_steps_baselines_and_foreign_folders_stay() {
    let lab = Lab::new("KEEP=10\nPUBLISH='exit 1'\nBASELINE=\"$FOLDER/results/20260102T020000Z-nightly-000001\"");
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

    // Sides of A/B runs, of which twenty stay; one that is not finished.
    for day in 0..12 {
        for side in ["a", "b"] {
            let mut run = Run::night(day);
            run.id = format!("202603{:02}T030000Z-nightly.{side}-{day:06x}", day + 1);
            run.manifest["ab"] = serde_json::json!({"side": side});
            if (day, side) == (0, "b") {
                run.manifest["finished_utc"] = serde_json::Value::Null;
            }
            run.write(&results);
        }
    }
    // Folders of fourteen nights, in some of which a run is that stays (day 12) or nothing was measured (day 2).
    for day in 1..15 {
        let night = lab.folder(&format!("nights/202601{day:02}T020000Z"));
        fs::create_dir_all(&night).unwrap();
        if day != 2 {
            fs::write(night.join("runs.txt"), format!("202601{day:02}T020000Z-nightly-{:06x}\n", day - 1)).unwrap();
        }
    }
    fs::create_dir(lab.folder("nights/20250101-notes")).unwrap();

    let ran = lab.night();
    assert_eq!(ran.code(), 5, "PUBLISH failed and no regression: {ran:?}");
    let mut left = names(&results);
    let sides: Vec<String> = left.extract_if(.., |name| name.contains("-nightly.")).collect();
    assert_eq!(sides.len(), 21, "{sides:?}");
    assert_eq!((&sides[0][..8], &sides[1][..8]), ("20260301", "20260303"), "the unfinished one, and the last ten pairs");
    // Of the older five nights (tonight's is one of the last ten): 1, 2, 4 and 5 have no run left.
    let nights = names(&lab.folder("nights"));
    let days: Vec<&str> = nights.iter().filter(|name| name.starts_with("202601")).map(|name| &name[6..8]).collect();
    assert_eq!(days, ["03", "06", "07", "08", "09", "10", "11", "12", "13", "14"], "{nights:?}");
    assert_eq!((nights.len(), nights[0].as_str()), (12, "20250101-notes"), "{nights:?}");
    let days: Vec<&str> = left.iter().filter(|name| name.starts_with("202601")).map(|name| &name[6..8]).collect();
    // 2: the baseline; 3: in `keep`; 7: a link; 12 and 13: beside the step; 15 to 24: the last ten of that phone.
    let stay = ["02", "03", "07", "12", "13", "15", "16", "17", "18", "19", "20", "21", "22", "23", "24"];
    assert_eq!(days, stay, "{ran:?}\n{}", log(&lab));
    assert!(left.contains(&"notes".to_owned()) && linked.join("manifest.json").is_file());
    assert_eq!(left.len(), 17, "notes and tonight's: {left:?}");
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
    assert_eq!(names(&results).len(), 17 + 1 + 21);
    assert_eq!(fs::read_to_string(lab.folder("keep")).unwrap(), keep);
}

#[test]
fn a_night_without_a_device_is_no_regression_and_removes_nothing() {
    let lab = Lab::new("KEEP=10");
    for day in 0..12 {
        Run::night(day).write(&lab.folder("results"));
    }
    let text = fs::read_to_string(lab.path("nightly.toml")).unwrap();
    fs::write(lab.path("nightly.toml"), text.replace("local = true", "serial = [\"no-such-phone\"]")).unwrap();
    let conf = fs::read_to_string(lab.path("lab.conf")).unwrap();
    fs::write(lab.path("lab.conf"), format!("{conf}RUN_OPTIONS='--adb-server tcp:1'\n")).unwrap();
    let ran = lab.night();
    assert_eq!(ran.code(), 5, "{ran:?}\n{}", log(&lab));
    assert!(ran.stdout.contains("not measured: device or runtime unavailable; nothing is judged (exit 5;"), "{ran:?}");
    assert_eq!(names(&lab.folder("results")).len(), 12);
    assert!(!log(&lab).contains("bench gate"), "{}", log(&lab));
    // A scenario that is wrong is the lab's mistake.
    fs::write(lab.path("nightly.toml"), "name = 1\n").unwrap();
    assert_eq!(lab.night().code(), 3);
}

/// What a night with this `bench run` and `bench gate` ends with, when PUBLISH fails or not.
#[test]
fn a_regression_outlives_what_else_fails() {
    let run_one = "run) whole \"$4/one\" ;;";
    let phone_lost =
        "run) whole \"$4/one\"; mkdir \"$4/lost\"; printf '{\\n  \"finished_utc\": null\\n}\\n' > \"$4/lost/manifest.json\"; exit 5 ;;";
    let mistake = "run) whole \"$4/one\"; exit 3 ;;";
    for (run, gate, publish, code, judged) in [
        (run_one, 10, "false", 10, true),
        (run_one, 11, "false", 5, true),
        (run_one, 0, "true", 0, true),
        (phone_lost, 10, "true", 10, true),
        (phone_lost, 0, "true", 5, true),
        (mistake, 10, "true", 3, false),
    ] {
        let lab = Lab::standin(&format!("PUBLISH={publish}"), &format!("{run}\ngate) exit {gate} ;;"));
        let ran = lab.night();
        assert_eq!(ran.code(), code, "{run} {gate} {publish}: {ran:?}\n{}", log(&lab));
        assert_eq!(ran.stdout.contains("PUBLISH failed"), publish == "false", "{ran:?}");
        // With a phone lost, or a mistake, a night removes nothing.
        assert_eq!(lab.last_night().join("retention.txt").is_file(), run == run_one, "{}", log(&lab));
        let gates: Vec<String> = log(&lab).lines().filter(|line| line.contains("standin gate")).map(str::to_owned).collect();
        // The run of the lost phone is not whole, and is not judged.
        assert_eq!(gates.len(), usize::from(judged), "{gates:?}");
        assert!(gates.iter().all(|line| line.contains("results/one ")), "{gates:?}");
        assert_eq!(fs::read_to_string(lab.last_night().join("exit")).unwrap(), format!("{code}\n"));
    }
}

/// systemd tells the script alone, a terminal its whole group.
#[test]
fn a_signal_reaches_the_bench_that_runs_and_the_lock_is_freed() {
    // What it started lives on, as an adb server does. It puts the phone's settings back, which takes a while.
    let verbs = "run) trap 'echo TERM >> told; left=6' TERM; sleep 3 & echo $$ $(cut -d' ' -f6 /proc/$$/stat) > began; left=400\n\
                 while [ $left -gt 0 ]; do left=$((left - 1)); sleep 0.05 & wait $!; done; echo done >> told; exit 130 ;;";
    for (signal, group) in [("TERM", ""), ("INT", ""), ("HUP", ""), ("INT", "-")] {
        let lab = Lab::standin("PUBLISH='echo > published'", verbs);
        let child = lab.command().process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        support::wait_until("bench runs", || fs::read_to_string(lab.path("began")).is_ok_and(|text| text.ends_with('\n')));
        assert!(lab.locked());
        let status = Command::new("kill").args(["-s", signal, "--", &format!("{group}{}", child.id())]).status().unwrap();
        assert!(status.success());
        let ran = support::finish(child);
        assert_eq!(ran.code(), 130, "{signal}: {ran:?}");
        assert_eq!(fs::read_to_string(lab.path("told")).unwrap(), "TERM\ndone\n", "{signal} {group}");
        // A session of its own: the terminal's Ctrl-C does not come on top, which bench would take for the second.
        let began = fs::read_to_string(lab.path("began")).unwrap();
        let (process, session) = began.trim().split_once(' ').unwrap();
        assert_eq!(process, session);
        assert!(!lab.locked(), "{signal} {group}");
        assert!(ran.stdout.contains("stopped (exit 130;"), "{ran:?}");
        assert_eq!(fs::read_to_string(lab.last_night().join("exit")).unwrap(), "130\n");
        assert!(!lab.path("published").exists() && !log(&lab).contains("standin gate"), "{}", log(&lab));
    }
}

/// The step of the workflow, as GitHub runs it (`bash -e`), after a night that it hears of and after none.
#[test]
fn the_workflow_shows_the_night_that_ran() {
    let text = fs::read_to_string(root().join("scenarios/nightly/github-actions.yml")).unwrap();
    let step: String = text
        .lines()
        .skip_while(|line| !line.ends_with("run: |"))
        .skip(1)
        .take_while(|line| line.starts_with("          "))
        .fold(String::new(), |step, line| step + &line[10..] + "\n");
    let lab = Lab::standin(
        "",
        "run) whole \"$4/one\" ;;\nreport) mkdir \"$4/one\" ;;\n\
         gate) echo '::error title=decode::slower'; echo '::add-mask::x'; echo '# slower' > \"$8\"; exit 10 ;;",
    );
    fs::create_dir_all(lab.path("out/of yesterday")).unwrap();
    let job = || {
        let mut command = Command::new("bash");
        let script = root().join("scenarios/nightly/bench-nightly");
        let step = step.replace("scenarios/nightly/bench-nightly /etc/bench-nightly.conf", &format!("'{}' lab.conf", script.display()));
        run(command.args(["-e", "-c", &step]).current_dir(lab.dir.path()).env("GITHUB_STEP_SUMMARY", lab.path("summary.md")))
    };
    let ran = job();
    assert_eq!(ran.code(), 10, "{ran:?}");
    let commands: Vec<&str> = ran.stdout.lines().filter(|line| line.starts_with("::")).collect();
    assert_eq!(commands, ["::error title=decode::slower", "::error title=bench::exit 10"]);
    assert_eq!(fs::read_to_string(lab.path("summary.md")).unwrap(), "# slower\n");
    let night = lab.last_night().file_name().unwrap().to_string_lossy().into_owned();
    assert_eq!(names(&lab.path("out")), [night, "one".to_owned()]);
    // Another night holds the lock: yesterday's is not shown as tonight's.
    let mut holder = Command::new("flock").arg(lab.folder("lock")).args(["sleep", "60"]).spawn().unwrap();
    support::wait_until("the lock", || lab.locked());
    let ran = job();
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert_eq!(ran.code(), 1, "{ran:?}");
    assert!(ran.stdout.contains("::warning title=bench::not measured"), "{ran:?}");
    assert_eq!((names(&lab.path("out")), fs::read_to_string(lab.path("summary.md")).unwrap()), (Vec::new(), "# slower\n".to_owned()));
}

#[test]
fn one_night_at_a_time_and_a_configuration_that_makes_sense() {
    let lab = Lab::new("");
    fs::create_dir_all(lab.path("nights folder")).unwrap();
    let mut holder = Command::new("flock").arg(lab.folder("lock")).args(["sleep", "60"]).spawn().unwrap();
    support::wait_until("the lock", || lab.locked());
    let ran = lab.night();
    assert_eq!(ran.code(), 5, "{ran:?}");
    assert!(ran.stderr.contains("the night before is still running"), "{ran:?}");
    holder.kill().unwrap();
    holder.wait().unwrap();
    for (settings, words) in [
        ("KEEP=9", "KEEP is a number of nights, 10 or more, not '9'"),
        ("KEEP=010", "not '010'"),
        ("KEEP='3; rm -rf x'", "KEEP is a number"),
        ("KEEP=", "KEEP is"),
    ] {
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
