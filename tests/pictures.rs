//! The pictures of the committed example run, read by other programs than the one that made them.

mod support;

use std::process::Command;

use support::{bench, root, run};

#[test]
fn the_pictures_of_the_example_show_its_table() {
    let dir = tempfile::tempdir().unwrap();
    let example = root().join("results/example-pc");
    let told = run(bench(dir.path()).arg("report").arg(&example).args(["--out", "pages", "--svg", "--png"])).expect(0);
    let pictures = dir.path().join("pages/example-pc/pictures");
    assert!(told.stdout.contains("SVG pictures") && told.stdout.contains("PNG pictures"), "{}", told.stdout);
    let page = std::fs::read_to_string(dir.path().join("pages/example-pc/index.html")).unwrap();
    let charts = page.matches("<svg class=\"chart\"").count();
    let seen =
        run(Command::new("python3").arg(root().join("tests/pictures_check.py")).arg(&pictures).arg(example.join("cells.csv"))).expect(0);
    // Decode rate and TTFT of 18 cells.
    assert_eq!(seen.stdout.trim(), format!("{charts} pictures, 36 figures"));
}

#[test]
fn a_run_folder_is_no_place_for_pictures() {
    let dir = tempfile::tempdir().unwrap();
    let example = root().join("results/example-pc");
    let told = run(bench(dir.path()).arg("report").arg(&example).args(["--out", "pages", "--svg"]).arg(&example)).expect(2);
    assert!(told.stderr.contains("is a run folder, and no place for pictures"), "{}", told.stderr);
    assert!(!dir.path().join("pages").exists());
}
