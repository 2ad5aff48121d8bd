//! Run folders that somebody changed: the committed example with one thing broken. A figure that is none is never called "not measured".

use std::{
    fs,
    path::{Path, PathBuf},
};

use tempfile::TempDir;

use super::super::{Group, Selected, Standing, State, Unselected, read};

struct Broken(TempDir);

impl Broken {
    /// The example, with `more` at the end of its plan.
    fn new(more: &str) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("results/example-pc");
        for name in ["manifest.json", "cells.csv", "samples.csv", "launches.csv", "support.csv"] {
            fs::copy(from.join(name), dir.path().join(name)).expect("copied");
        }
        let plan = fs::read_to_string(from.join("plan.toml")).expect("the plan");
        fs::write(dir.path().join("plan.toml"), format!("{plan}\n{more}")).expect("written");
        Self(dir)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Changes one value of a row that has all of these texts.
    fn set(&self, file: &str, row: &[&str], column: &str, value: &str) {
        let text = fs::read_to_string(self.path(file)).expect("a table");
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let header = reader.headers().expect("a header").clone();
        let at = header.iter().position(|name| name == column).expect("a column");
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(&header).expect("written");
        let mut left = true;
        for record in reader.records() {
            let record = record.expect("a row");
            let here = left && row.iter().all(|text| record.iter().any(|own| own == *text));
            left &= !here;
            writer
                .write_record(record.iter().enumerate().map(|(place, own)| if here && place == at { value } else { own }))
                .expect("written");
        }
        assert!(!left, "{row:?} is in {file}");
        fs::write(self.path(file), writer.into_inner().expect("bytes")).expect("written");
    }

    fn selected(&self) -> Selected {
        read(&[self.0.path()], None).swap_remove(0).selected
    }

    /// What is said of the computer's own cells.
    fn pc(&self) -> Group {
        self.selected().expect("a selection").groups.swap_remove(0)
    }

    /// Why what is preferred was not weighed, by metric.
    fn dropped(&self) -> Vec<(String, String)> {
        let group = self.pc();
        assert_eq!((group.class.as_str(), group.rankings.len()), ("pc", 1));
        group.rankings[0].dropped.iter().map(|dropped| (dropped.metric.clone(), dropped.why.clone())).collect()
    }
}

const CELL: &str = "mnn.tiny-llama.fp32.p32.g16-6955bce5";

fn said(metric: &str, why: &str) -> (String, String) {
    (metric.to_owned(), format!("damaged at {CELL}: {why}"))
}

#[test]
fn the_example_itself_is_whole() {
    assert_eq!(Broken::new("").dropped(), []);
}

#[test]
fn a_missing_or_cut_table_is_damage() {
    let gone = Broken::new("");
    fs::remove_file(gone.path("samples.csv")).expect("removed");
    assert_eq!(gone.dropped(), [said("ttft", "samples.csv is missing"), said("decode", "samples.csv is missing")]);

    // The last launch of one cell: 6 are counted, 5 are left.
    let cut = Broken::new("");
    let text = fs::read_to_string(cut.path("samples.csv")).expect("a table");
    let launch = |line: &&str| line.contains(&format!(",{CELL},")) && line.contains(",measure,5,");
    assert!(text.lines().any(|line| launch(&line)), "launch 5 is there");
    let left: Vec<&str> = text.lines().filter(|line| !launch(line)).collect();
    fs::write(cut.path("samples.csv"), left.join("\n") + "\n").expect("written");
    assert_eq!(
        cut.dropped(),
        [
            said("ttft", "samples.csv has 5 of the 6 launches of ttft_ms that cells.csv counts"),
            said("decode", "samples.csv has 5 of the 6 launches of decode_tok_s that cells.csv counts")
        ]
    );
}

/// A seventh launch, which nobody counted: it would raise n in silence.
#[test]
fn a_launch_that_is_not_counted_is_damage() {
    let more = Broken::new("");
    let text = fs::read_to_string(more.path("samples.csv")).expect("a table");
    let last: Vec<String> = text
        .lines()
        .filter(|line| line.contains(&format!(",{CELL},")) && line.contains(",measure,5,"))
        .map(|line| line.replacen(",measure,5,", ",measure,6,", 1))
        .collect();
    assert!(!last.is_empty(), "launch 5 is there");
    fs::write(more.path("samples.csv"), text + &last.join("\n") + "\n").expect("written");
    assert_eq!(
        more.dropped(),
        [
            said("ttft", "samples.csv has 7 launches of ttft_ms, of which cells.csv counts 6"),
            said("decode", "samples.csv has 7 launches of decode_tok_s, of which cells.csv counts 6")
        ]
    );
    let problems = crate::gate::run::load(more.0.path()).expect("a run").problems;
    let first = format!("samples.csv has launches that cells.csv does not count, in 1 cell, the first being {CELL}: 7 of ttft_ms for 6");
    assert_eq!(problems, [first]);
}

/// A candidate without a row is nobody's: what is left must not win by that.
#[test]
fn without_a_row_of_a_cell_nothing_is_selected() {
    let cut = Broken::new("");
    let text = fs::read_to_string(cut.path("cells.csv")).expect("a table");
    let left: Vec<&str> = text.lines().filter(|line| !line.contains(CELL)).collect();
    fs::write(cut.path("cells.csv"), left.join("\n") + "\n").expect("written");
    let why = cut.selected().expect_err("nothing").to_string();
    assert_eq!(
        why,
        "no recommendation, since a part of the results is missing: cells.csv has no row of 1 cell of the plan, it was cut off"
    );
}

#[test]
fn a_figure_that_is_none_is_damage() {
    for odd in ["abc", "NaN", "-4", "0"] {
        let broken = Broken::new("");
        broken.set("samples.csv", &[CELL, "measure", "warm_query"], "ttft_ms", odd);
        let why = "of ttft_ms the tables have 1 value that can't be one: 0, less, or no number";
        assert_eq!(broken.dropped(), [said("ttft", why)], "{odd}");
    }
    let broken = Broken::new("");
    broken.set("cells.csv", &[CELL], "ttft_ms_n", "six");
    assert_eq!(broken.dropped(), [said("ttft", "cells.csv has no number as ttft_ms_n")]);
}

#[test]
fn a_requirement_on_a_damaged_figure_is_undecided_and_says_so() {
    let require = "[[require]]\nmetric = \"model-size\"\ntext = \"<= 1GB\"\n[require.limit]\nat-most = 1000.0\n[require.cells]\nquant = [\"fp32\"]\n\
                   [[require]]\nmetric = \"agreement\"\ntext = \">= 90%\"\n[require.limit]\nat-least = 0.9\n[require.cells]\nbackend = [\"mnn\"]\n";
    let whole = Broken::new(require).pc();
    assert_eq!(whole.candidates[0].state, State::Passes, "{:?}", whole.candidates[0]);
    let identity =
        "the tokens of all 3 candidates agree with the reference as far as is required, at least 100 % before the first divergence";
    assert!(whole.identity.contains(identity), "{}", whole.identity);

    let broken = Broken::new(require);
    broken.set("cells.csv", &[CELL], "model_mb", "abc");
    broken.set("cells.csv", &[CELL], "token_agreement", "7");
    let group = broken.pc();
    let fp32 = &group.candidates[0];
    let found: Vec<_> = fp32.findings.iter().map(|finding| (finding.standing, finding.why.as_str())).collect();
    assert_eq!(
        found,
        [
            (Standing::Damaged, "cells.csv has abc as model_mb, which can't be one"),
            (Standing::Damaged, "cells.csv has 7 as token_agreement, which can't be one")
        ]
    );
    assert_eq!(fp32.state, State::Undecided);
    // What the product requires was not shown, whatever check_tokens says.
    assert!(group.identity.contains("nobody has shown that the answers are equally good"), "{}", group.identity);
}

#[test]
fn an_edited_plan_is_refused() {
    let why = |more: &str| match Broken::new(more).selected() {
        Err(Unselected::Plan(why)) => why,
        other => panic!("{more}: {other:?}"),
    };
    let end = ": put back what the run wrote, or start a new run";
    for (weights, what) in [
        ("decode = -1.0", "prefer.weights.decode is -1, and a weight is a number above 0"),
        ("decode = 0.0", "prefer.weights.decode is 0, and a weight is a number above 0"),
        ("decode = nan", "prefer.weights.decode is NaN, and a weight is a number above 0"),
        ("decode = inf", "prefer.weights.decode is inf, and a weight is a number above 0"),
        ("decod = 1.0", "prefer.weights has `decod`, which is nothing that can be weighed"),
        ("support = 1.0", "prefer.weights has `support`, which is nothing that can be weighed"),
    ] {
        assert_eq!(why(&format!("[prefer.weights]\n{weights}\n")), format!("can't be used: {what}{end}"));
    }
    assert!(why("[prefer]\nuse = \"fridge\"\n").contains("prefer.use is `fridge`, and there is no such preset"));
    let limit = |metric: &str, limit: &str| {
        why(&format!("[[require]]\nmetric = \"{metric}\"\ntext = \"\"\n[require.limit]\n{limit}\n[require.cells]\nbackend = [\"mnn\"]\n"))
    };
    assert!(limit("ttft", "at-most = nan").contains("require.limit of `ttft` is none that it can have, <= NaN"));
    assert!(limit("ttft", "at-least = 3.0").contains(">= 3"));
    assert!(limit("decode", "is = \"fast\"").contains("== fast"));
    assert!(limit("support", "is = \"sometimes\"").contains("== sometimes"));
    assert!(Broken::new("[prefer.weights]\ndecode = 2.0\nttft = 1.0\n").selected().is_ok());
}

#[test]
fn a_plan_that_its_rows_contradict_selects_nothing() {
    // Exchanged, each would be ranked by the other's figures.
    let swapped = Broken::new("");
    let plan = fs::read_to_string(swapped.path("plan.toml")).expect("the plan");
    let plan = plan.replace("quant = \"w4\"", "quant = \"w8 \"").replace("quant = \"w8\"", "quant = \"w4\"").replace("\"w8 \"", "\"w8\"");
    fs::write(swapped.path("plan.toml"), plan).expect("written");
    let why = swapped.selected().expect_err("nothing").to_string();
    assert!(
        why.starts_with("no recommendation, since plan and results don't belong together: plan.toml and cells.csv disagree about mnn."),
        "{why}"
    );
    // A cell less in the plan: its candidate would vanish without a word.
    let less = Broken::new("");
    let text = fs::read_to_string(less.path("plan.toml")).expect("the plan");
    let (kept, _) = text.rsplit_once("[[cells]]").expect("cells");
    fs::write(less.path("plan.toml"), kept).expect("written");
    assert!(matches!(less.selected(), Err(Unselected::Apart(_))));
}
