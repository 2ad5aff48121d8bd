//! Summaries of the made-up run.

use std::{fs, path::Path};

use crate::report::{Report, synthetic};

fn run() -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("20261201T101500Z-pc-7f3a");
    synthetic::write(&run);
    (folder, run)
}

/// A table read by the csv crate, one map a row.
fn rows(text: &str) -> Vec<std::collections::BTreeMap<String, String>> {
    csv::Reader::from_reader(text.as_bytes()).deserialize().map(|row| row.expect("a row")).collect()
}

#[test]
fn the_table_has_every_figure_of_the_run_and_every_cell_without() {
    let (_keep, dir) = run();
    let report = Report::of(std::slice::from_ref(&dir), None).expect("a report");
    let found = rows(&report.table());
    let cells = rows(&fs::read_to_string(dir.join("cells.csv")).expect("cells"));
    assert_eq!(cells.len(), 25);
    for cell in &cells {
        let of_cell: Vec<_> = found.iter().filter(|row| row["cell"] == cell["cell"]).collect();
        if cell["status"] == "ok" {
            for (metric, unit) in [("ttft_ms", "ms"), ("decode_tok_s", "tokens/s"), ("peak_mem_mb", "MB"), ("cpu_s", "s")] {
                let row = of_cell.iter().find(|row| row["metric"] == metric).unwrap_or_else(|| panic!("{metric} of {}", cell["cell"]));
                let number = |text: &str| text.parse::<f64>().ok();
                for (here, there) in [("median", ""), ("lo", "_lo"), ("hi", "_hi"), ("n", "_n")] {
                    assert_eq!(number(&row[here]), number(&cell[&format!("{metric}{there}")]), "{here} of {metric} of {}", cell["cell"]);
                }
                assert_eq!((row["unit"].as_str(), row["status"].as_str()), (unit, "ok"));
                assert_eq!(row["device_class"], cell["device_class"]);
            }
        } else {
            let [row] = of_cell.as_slice() else { panic!("{} rows of {}", of_cell.len(), cell["cell"]) };
            assert_eq!([&row["metric"], &row["median"], &row["n"], &row["reason"]], ["", "", "", &crate::safe::printable(&cell["reason"])]);
        }
    }
    let absent: Vec<_> = found.iter().filter(|row| row["status"] == "ok" && row["median"].is_empty()).collect();
    assert!(!absent.is_empty() && absent.iter().all(|row| !row["reason"].is_empty()), "what is absent has its reason");
}

#[test]
fn a_name_is_no_formula_to_a_spreadsheet() {
    let (_keep, dir) = run();
    let cells = fs::read_to_string(dir.join("cells.csv")).expect("cells");
    fs::write(dir.join("cells.csv"), cells.replace(",tiny,", ",\"=HYPERLINK(\"\"x\"\")\",")).expect("cells");
    let table = Report::of(&[dir], None).expect("a report").table();
    assert!(rows(&table).iter().all(|row| row["model"] == "'=HYPERLINK(\"x\")"));
}

#[test]
fn the_markdown_has_the_figures_the_failures_and_what_they_are() {
    let (_keep, dir) = run();
    let report = Report::of(std::slice::from_ref(&dir), None).expect("a report");
    let text = report.markdown().expect("a summary");
    for words in [
        "## HTP emulator",
        "## PC processor",
        "**Emulator time is not device time.**",
        "holds the median in 97 % with 6 launches",
        "21 of 25 cells were measured",
        "## Not in the figures",
        "signal 11 while loading",
        "genie against ort-qnn on the same context binaries",
        "[summary.csv](summary.csv)",
    ] {
        assert!(text.contains(words), "{words} is not in {text}");
    }
    // Each table is one: as many columns in each row as in its head.
    let columns = |line: &str| line.matches('|').count();
    for table in text.split("\n\n").filter(|block| block.starts_with('|')) {
        let head = columns(table.lines().next().expect("a head"));
        assert!(table.lines().all(|line| columns(line) == head), "{table}");
    }
    let wide = text.lines().filter(|line| columns(line) == 10 && !line.starts_with("| :") && !line.contains("Backend")).count();
    assert_eq!(wide, 21, "a row for each cell that counts");
    // The figure of one, to three digits, from the table and without polars.
    let cells = rows(&fs::read_to_string(dir.join("cells.csv")).expect("cells"));
    let cell = cells.iter().find(|cell| cell["cell"].starts_with("mnn.tiny.w8.p32")).expect("the cell");
    let row =
        text.lines().find(|line| line.starts_with("| 32 → ") && line.contains("| mnn | w8 (int8 block 32, 8.53) |")).expect("its row");
    let fields: Vec<&str> = row.split('|').map(str::trim).collect();
    for (column, at) in [("ttft_ms", 4), ("decode_tok_s", 5), ("itl_p99_ms", 6), ("load_ms", 7), ("peak_mem_mb", 8)] {
        let exact: f64 = cell[column].parse().expect("a number");
        let shown: f64 = fields[at].split(' ').next().expect("a figure").parse().expect("a number");
        assert!((shown / exact - 1.0).abs() < 0.01, "{column}: {shown} of {exact}");
        assert!(fields[at].contains('['), "{column} has its interval: {}", fields[at]);
    }
}

#[test]
fn names_are_text_in_markdown() {
    let (_keep, dir) = run();
    let cells = fs::read_to_string(dir.join("cells.csv")).expect("cells");
    let evil = ",\"a|b`c`<img src=x onerror=y>[l](http://evil) @you **b**\",";
    fs::write(dir.join("cells.csv"), cells.replace(",tiny,", evil).replace(",mnn,", evil)).expect("cells");
    let text = Report::of(&[dir], None).expect("a report").markdown().expect("a summary");
    for markup in ["<img", "](http", "@you", "**b**", "`c`", "a|b", "://"] {
        assert!(!text.contains(markup), "{markup} in {text}");
    }
    assert!(text.contains("a&#124;b&#96;c&#96;&#60;img src=x"));
}

#[test]
fn every_metric_has_a_unit() {
    for metric in crate::results::schema::METRICS {
        assert!(!super::table::unit(metric.name).is_empty(), "{}", metric.name);
    }
    assert_eq!(["battery_hours", "tokens_per_battery_pct", "energy_j_per_tok"].map(super::table::unit), ["h", "tokens/%", "J/token"]);
}

#[test]
fn why_nothing_is_recommended_is_said_once() {
    let dir = tempfile::tempdir().unwrap();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("results/example-pc");
    for name in ["cells.csv", "manifest.json"] {
        fs::copy(from.join(name), dir.path().join(name)).unwrap();
    }
    let text = Report::of(&[dir.path().to_owned()], None).unwrap().markdown().unwrap();
    let told = text.lines().filter(|line| line.contains("plan.toml")).collect::<Vec<_>>();
    let [line] = told[..] else { panic!("{told:?}") };
    assert!(line.starts_with("No recommendation, since what the product needs is not known: plan.toml can"), "{line}");
}
