//! Runs with little, with much, and with nothing in them.

use std::fs;

use super::support::{edit, page_of, part, run};
use crate::report::{ReportError, render};

#[test]
fn too_few_launches_name_nobody() {
    let (_keep, dir) = run();
    for (launches, verdicts) in [(3, true), (1, false)] {
        edit(&dir, "samples.csv", |at, fields| {
            let keep = fields[at("launch")].parse::<i64>().is_ok_and(|launch| launch < launches);
            if keep { vec![fields] } else { Vec::new() }
        });
        edit(&dir, "cells.csv", |at, mut fields| {
            for column in ["ttft_ms_n", "decode_tok_s_n"].map(at) {
                fields[column] = if fields[column].is_empty() { String::new() } else { launches.to_string() };
            }
            vec![fields]
        });
        let page = page_of(&dir);
        let pairing = part(&page, "class=\"pairing\"", "</section>");
        assert!(pairing.contains("too few launches for a 95 % interval") && pairing.contains(">too few launches<"));
        for verdict in ["genie sooner", "genie faster", "ort-qnn sooner", "not told apart"] {
            assert!(!page.contains(verdict), "{verdict}");
        }
        assert_eq!(pairing.contains("class=\"interval\""), verdicts, "a range of three launches, none of one");
    }
}

#[test]
fn tables_that_are_missing_are_said() {
    let (_keep, dir) = run();
    for file in ["samples.csv", "tokens.csv", "telemetry.csv", "layers.csv", "manifest.json"] {
        fs::remove_file(dir.join(file)).expect("the file");
    }
    let page = page_of(&dir);
    for said in [
        "samples.csv is missing",
        "tokens.csv is missing",
        "telemetry.csv is missing",
        "layers.csv is missing",
        "manifest.json can&#x27;t be read",
    ] {
        assert!(page.contains(said), "{said}");
    }
    assert!(page.contains("20261201T101500Z-pc-7f3a"), "the folder's name stands in for the id");
    fs::remove_file(dir.join("cells.csv")).expect("the file");
    assert!(matches!(render(&[dir], None), Err(ReportError::NotARun(_))));
    assert!(matches!(render(&[], None), Err(ReportError::NothingToReport)));
}

#[test]
fn a_run_in_which_nothing_was_measured_has_a_page() {
    let (_keep, dir) = run();
    let cells = fs::read_to_string(dir.join("cells.csv")).expect("cells");
    fs::write(dir.join("cells.csv"), cells.replace(",ok,", ",skipped,")).expect("cells");
    let page = page_of(&dir);
    assert!(page.contains("None of the 25 cells could be measured") && !page.contains("class=\"chart\""));
    assert!(!page.contains("class=\"headlines") && page.contains("class=\"status skipped\""));
    fs::write(dir.join("cells.csv"), cells.lines().next().expect("a header").to_owned() + "\n").expect("cells");
    assert!(page_of(&dir).contains("The run has no cells."));
}

#[test]
fn an_interrupted_run_says_so() {
    let (_keep, dir) = run();
    let manifest = fs::read_to_string(dir.join("manifest.json")).expect("the manifest");
    fs::write(dir.join("manifest.json"), manifest.replace("\"2026-12-01T10:41:12Z\"", "null")).expect("the manifest");
    edit(&dir, "cells.csv", |at, mut fields| {
        if fields[at("cell")].contains(".p224.") {
            fields[at("status")] = "skipped".into();
            fields[at("reason")] = "not measured before the run ended".into();
            fields[at("launches")] = "0".into();
        } else if fields[at("cell")].starts_with("genie.tiny.fp16.p96") {
            fields[at("stop")] = "interrupted".into();
        }
        vec![fields]
    });
    let page = page_of(&dir);
    assert!(page.contains("This run was interrupted before its end"));
    assert!(page.contains("not measured before the run ended") && page.contains(">interrupted<"));
    assert!(page.contains("2 cells: fp16 and w8a16 at 224 → 16"), "one row for one reason");
}

#[test]
fn many_cells_are_drawn_as_far_as_they_can_be_read() {
    let (_keep, dir) = run();
    // Four times as many quantisations, under names of their own.
    edit(&dir, "cells.csv", |at, fields| {
        let copy = |times: usize| {
            let mut fields = fields.clone();
            let (quant, id) = (at("quant"), at("cell"));
            fields[quant] = format!("{}x{times}", fields[quant]);
            fields[id] = format!("{}x{times}", fields[id]);
            fields
        };
        vec![copy(0), copy(1), copy(2), copy(3)]
    });
    let page = page_of(&dir);
    let emulator = part(&page, "<section class=\"panel emulator\"", "<section class=\"panel native\"");
    assert!(emulator.contains("Drawn: the largest workload, 224 → 16; the table has them all."));
    assert!(emulator.contains("Drawn: 8 of 16 lines, of each backend the first ones"));
    assert_eq!(emulator.matches("<td class=\"quant\"").count(), 48, "the table has them all");
}

#[test]
fn columns_and_values_that_make_no_sense_are_survived() {
    let (_keep, dir) = run();
    fs::write(dir.join("cells.csv"), "cell,status,ttft_ms,backend,decode_tok_s\nx,ok,fast,b,NaN\ny,exploded,1,b,2\n").expect("cells");
    fs::write(dir.join("tokens.csv"), "cell\nx\n").expect("tokens");
    let error = render(std::slice::from_ref(&dir), None).expect_err("tokens.csv has no column to select by");
    assert!(error.to_string().contains("tokens.csv"), "{error}");
    fs::remove_file(dir.join("tokens.csv")).expect("the file");
    let page = page_of(&dir);
    assert!(page.contains("cells.csv: 2 values are not numbers"));
}

#[test]
fn power_that_was_asked_for_and_is_absent_has_its_reason() {
    const TITLE: &str = "Power and energy of the whole device, never of the NPU alone";
    let (_keep, dir) = run();
    let cells = fs::read_to_string(dir.join("cells.csv")).expect("cells");
    let (before, genie) = ("power_avg_w=this runner does not report it", "power_avg_w=it was <on> external power");
    let line =
        |line: &str| if line.contains(",genie.") { line.replace(before, genie) } else { line.replace(before, "power_avg_w=no gauge") };
    fs::write(dir.join("cells.csv"), cells.lines().map(line).collect::<Vec<_>>().join("\n") + "\n").expect("cells");
    // Nobody asked.
    fs::write(dir.join("plan.toml"), "format_version = 1\n").expect("a plan");
    assert!(!page_of(&dir).contains(TITLE));
    fs::write(dir.join("plan.toml"), "format_version = 99\n[power]\nbaseline_ms = 0\n").expect("a plan");
    let page = page_of(&dir);
    // The emulator's cells: one row for each reason.
    let table = part(&page, TITLE, "</table>");
    assert!(table.contains("no figure of power, because"), "{table}");
    let rows = ["it was &lt;on&gt; external power", "no gauge", "<tr"].map(|words| table.matches(words).count());
    assert_eq!(rows, [1, 1, 3], "{table}");
}
