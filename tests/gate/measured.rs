//! The gate over runs that were really measured, by the stand-in runner.

use super::*;

/// The stand-in runner's scenario with requirements: `bench run` itself ends with 10, and the gate reads them from the plan.
#[test]
fn requirements_of_the_plan() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = support::Scenario { launches: 6, ..Default::default() }.write(dir.path());
    let add = |limit: &str| {
        let text = fs::read_to_string(&scenario).unwrap();
        let text = text.split("[[require]]").next().unwrap().to_owned();
        let entry = format!("[[require]]\nmetric = \"ttft\"\nlimit = \"{limit}\"\nwhere = {{ prompt-tokens = 16 }}\n");
        fs::write(&scenario, format!("{text}{entry}")).unwrap();
    };
    let measure = |out: &str, code: i32| {
        let ran = run(bench(dir.path()).args(["run", "--no-report", "--out", out]).arg(&scenario)).expect(code);
        let folder = support::only_run(&dir.path().join(out));
        quiet(&folder);
        (folder, ran)
    };
    add("<= 1us");
    let (folder, ran) = measure("slow", 10);
    assert!(ran.stderr.contains("violated: ttft median <= 1us (prompt-tokens 16)"), "{}", ran.stderr);
    let found = judged(dir.path(), &folder, &[], 10);
    assert_eq!((&found["requirements"][0]["met"], &found["requirements"][0]["n"]), (&json!("violated"), &json!(6)), "{found}");
    add("<= 1000s");
    let (folder, _) = measure("fast", 0);
    let found =
        judged(dir.path(), &folder, &["--baseline", support::only_run(&dir.path().join("slow")).to_str().unwrap(), "--limit", "90%"], 0);
    assert_eq!(found["requirements"][0]["met"], json!("passed"), "{found}");
    // A time below 0 or without a number was not measured, so that it can't be short enough.
    let samples = fs::read_to_string(folder.join("samples.csv")).unwrap();
    let place = samples.lines().next().unwrap().split(',').position(|name| name == "ttft_ms").unwrap();
    for odd in ["-4", "0", "NaN", "inf"] {
        let mut lines: Vec<String> = samples.lines().map(str::to_owned).collect();
        let last = lines.last_mut().unwrap();
        let mut fields: Vec<&str> = last.split(',').collect();
        fields[place] = odd;
        *last = fields.join(",");
        fs::write(folder.join("samples.csv"), lines.join("\n") + "\n").unwrap();
        let found = judged(dir.path(), &folder, &[], 11);
        let judged = &found["requirements"][0];
        assert!(judged["met"] == "undecided" && text(&judged["why"]).contains("damaged: "), "{odd}: {judged}");
    }
}

/// Other tests may keep this computer busy, which would make the run's times theirs.
fn quiet(folder: &Path) {
    let path = folder.join("manifest.json");
    let mut manifest: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    (manifest["host"]["load"], manifest["host"]["others_cpu_s"]) = (json!("0.10 0.10 0.10 1/80 9"), json!("0.00"));
    fs::write(path, manifest.to_string()).unwrap();
}

/// A scenario whose program runs at a speed that stands in a file: today's state, and an older one that stays fast.
struct Lab {
    dir: tempfile::TempDir,
    results: PathBuf,
}

impl Lab {
    const RUNNER: &str = "#!/bin/sh\nexec python3 RUNNER --slower \"$(cat FACTOR)\" \"$@\"\n";

    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let results = dir.path().join("results");
        for (name, factor) in [("today", "1"), ("old", "1")] {
            let file = dir.path().join(format!("{name}.factor"));
            fs::write(&file, factor).unwrap();
            let text = Self::RUNNER.replace("RUNNER", support::runner().to_str().unwrap()).replace("FACTOR", file.to_str().unwrap());
            fs::write(dir.path().join(format!("{name}.sh")), text).unwrap();
        }
        let lab = Self { dir, results };
        lab.scenario("today");
        lab
    }

    /// The scenario of one of the two.
    fn scenario(&self, name: &str) -> PathBuf {
        let command = vec!["sh".to_owned(), format!("./{name}.sh")];
        // The older one's folders sort behind today's.
        let own = if name == "old" { "lab-old" } else { "lab" };
        let path = support::Scenario { name: own, command, launches: 6, ..Default::default() }.write(self.dir.path());
        let own = self.dir.path().join(format!("{name}.toml"));
        fs::rename(path, &own).unwrap();
        own
    }

    fn speed(&self, factor: &str) {
        fs::write(self.dir.path().join("today.factor"), factor).unwrap();
    }

    /// Measures tonight, which is slow; before it six nights that were fast.
    fn slow_night(&self) -> PathBuf {
        let measure = || {
            let before: Vec<PathBuf> = fs::read_dir(&self.results).map(|all| all.flatten().map(|e| e.path()).collect()).unwrap_or_default();
            run(bench(self.dir.path()).args(["run", "--no-report"]).arg(self.dir.path().join("today.toml"))).expect(0);
            fs::read_dir(&self.results).unwrap().flatten().map(|e| e.path()).find(|path| !before.contains(path)).unwrap()
        };
        let fast = measure();
        quiet(&fast);
        let manifest: Value = serde_json::from_str(&fs::read_to_string(fast.join("manifest.json")).unwrap()).unwrap();
        for night in 1..=6 {
            let folder = self.results.join(format!("night-{night}"));
            fs::create_dir(&folder).unwrap();
            for file in fs::read_dir(&fast).unwrap().flatten().filter(|f| f.path().is_file()) {
                fs::copy(file.path(), folder.join(file.file_name())).unwrap();
            }
            let mut manifest = manifest.clone();
            manifest["run"] = json!(format!("night-{night}"));
            manifest["started_utc"] = json!(format!("2026-01-0{night}T02:00:00.000Z"));
            fs::write(folder.join("manifest.json"), manifest.to_string()).unwrap();
        }
        fs::remove_dir_all(fast).unwrap();
        self.speed("3");
        let tonight = measure();
        quiet(&tonight);
        tonight
    }

    fn judge(&self, tonight: &Path, more: &[&str], code: i32) -> Value {
        let usual = ["--history", "results", "--metric", "decode_tok_s", "--limit", "20%"];
        judged(self.dir.path(), tonight, &[&usual, more].concat(), code)
    }
}

#[test]
fn what_looks_regressed_is_measured_again() {
    let lab = Lab::new();
    let tonight = lab.slow_night();
    let found = lab.judge(&tonight, &[], 10);
    assert_eq!(found["rows"][0]["verdict"], json!("regressed"), "{found}");
    // It is slow again: confirmed. Three times the time, so a third of the rate: ln 3 = 1.0986.
    let found = lab.judge(&tonight, &["--confirm"], 10);
    let second = &found["rows"][0]["confirmed"];
    assert!(second["verdict"] == "regressed" && (second["effect"]["log"].as_f64().unwrap() - 1.0986).abs() < 0.05, "{found}");
    // It is fast again: a bad night. Neither second measurement is a night of the history.
    lab.speed("1");
    let found = lab.judge(&tonight, &["--confirm"], 11);
    assert_eq!((&found["rows"][0]["verdict"], &found["nights"]), (&json!("undecided"), &json!(6)), "{found}");
    assert!(text(&found["rows"][0]["confirmed"]["why"]).contains("a bad night"), "{found}");

    // Old and new, pair by pair. Both fast: the device was slow that night. New slow: it is what was built.
    let old = lab.scenario("old");
    let against = ["--confirm-against", old.to_str().unwrap()];
    let found = lab.judge(&tonight, &against, 11);
    assert!(text(&found["rows"][0]["confirmed"]["why"]).contains("the device or the room changed"), "{found}");
    lab.speed("3");
    let found = lab.judge(&tonight, &against, 10);
    let second = &found["rows"][0]["confirmed"];
    assert!(second["paired"] == true && (second["effect"]["log"].as_f64().unwrap() - 1.0986).abs() < 0.05, "{found}");
    assert!(text(&second["run"]).contains("-lab-confirm.b-"), "{found}");

    // Nothing to measure it with: the judgement stands, and its files are there.
    let found = lab.judge(&tonight, &["--confirm-against", "gone.toml", "--junit", "gone.xml"], 10);
    assert!(found["rows"][0]["verdict"] == "regressed" && text(&found["notes"]).contains("not confirmed, so it stands"), "{found}");
    assert!(fs::read_to_string(lab.dir.path().join("gone.xml")).unwrap().contains("failures=\"1\""));

    // Its program is gone: what can't be tried stays a regression, and is said.
    fs::remove_file(lab.dir.path().join("today.sh")).unwrap();
    let found = lab.judge(&tonight, &["--confirm"], 10);
    assert!(found["rows"][0]["verdict"] == "regressed" && text(&found["rows"][0]["reasons"]).contains("so it stands"), "{found}");
}
