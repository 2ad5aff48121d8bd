//! What keeps numbers honest on the run's side: each stand-in breaks one rule, and the tables say so.

mod support;

use std::{fs, path::Path};

use support::{Row, Scenario, bench, number, only_run, run, table};

/// Writes a scenario whose `[measure]` has these lines instead of the usual ones, and runs it.
fn measured(dir: &Path, variants: &[&'static str], measure: &str, code: i32) -> Vec<Row> {
    let path = Scenario { variants: variants.to_vec(), ..Scenario::default() }.write(dir);
    let text = fs::read_to_string(&path).unwrap();
    let (before, after) = (text.split("[measure]").next().unwrap(), text.split("[verify]").nth(1).unwrap());
    fs::write(&path, format!("{before}[measure]\n{measure}\n[verify]{after}")).unwrap();
    run(bench(dir).arg("run").arg(&path)).expect(code);
    table(&only_run(&dir.join("results")), "cells.csv")
}

fn of<'a>(rows: &'a [Row], variant: &str) -> &'a Row {
    rows.iter().find(|row| row["cell"].contains(&format!("variant={variant}-"))).unwrap_or_else(|| panic!("no row of {variant}"))
}

#[test]
fn a_prefix_that_was_reused_is_unverified_and_a_slow_first_query_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let cells = measured(dir.path(), &["ok", "prefix-reused"], "queries = 2\nrepetitions = { min = 3 }", 6);
    let (ok, reused) = (of(&cells, "ok"), of(&cells, "prefix-reused"));
    assert_eq!([&ok["status"], &ok["check_prefix"]], ["ok", "confirmed"]);
    // Query 2 has its first token after 2.5 ms, query 1 after 5 ms: 0.5 in each of three launches.
    assert_eq!([&reused["status"], &reused["check_prefix"], &reused["failure_kind"]], ["unverified", "contradicted", "verify"]);
    assert!(reused["reason"].starts_with("prefix reused: query 2 has its first token after 0.50 of the TTFT"), "{}", reused["reason"]);
    assert!(reused["reason"].contains("under 0.7 in 3 of 3 launches"), "{}", reused["reason"]);
    // Tokens were as many as asked, and no figure comes of it.
    assert_eq!((reused["check_count"].as_str(), number(reused, "ttft_ms"), number(reused, "decode_tok_s")), ("confirmed", None, None));
    let launches = table(&only_run(&dir.path().join("results")), "launches.csv");
    let statuses: Vec<&str> = launches.iter().filter(|l| l["cell"] == reused["cell"]).map(|l| l["status"].as_str()).collect();
    assert_eq!(statuses, ["unverified"; 3]);
}

#[test]
fn two_launches_are_too_few_to_call_a_prefix_reused() {
    let dir = tempfile::tempdir().unwrap();
    let cells = measured(dir.path(), &["prefix-reused"], "queries = 2\nrepetitions = { min = 2 }", 0);
    assert_eq!([&cells[0]["status"], &cells[0]["check_prefix"]], ["ok", "not-checkable"]);
    let manifest = fs::read_to_string(only_run(&dir.path().join("results")).join("manifest.json")).unwrap();
    assert!(manifest.contains("three launches can tell"), "{manifest}");
}
