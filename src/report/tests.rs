//! The report of a made-up run, from end to end.

use std::{fs, path::PathBuf};

use tempfile::TempDir;

use super::{ReportError, render, synthetic, write};

fn run() -> (TempDir, PathBuf) {
    let temporary = TempDir::new().expect("a folder");
    let dir = temporary.path().join("20261201T101500Z-pc-7f3a");
    synthetic::write(&dir);
    (temporary, dir)
}

fn page_of(dir: PathBuf) -> String {
    render(&[dir]).expect("a page")
}

/// One column of `cells.csv` where `cell` begins the id, read without polars.
fn csv(dir: &std::path::Path, cell: &str, column: &str) -> String {
    let text = fs::read_to_string(dir.join("cells.csv")).expect("cells");
    let at = text.lines().next().expect("a header").split(',').position(|name| name == column).expect("a column");
    let line = text.lines().find(|line| line.split(',').nth(4).is_some_and(|id| id.starts_with(cell))).expect("a row");
    line.split(',').nth(at).expect("a value").to_owned()
}

#[test]
fn the_figures_are_those_of_the_table() {
    let (_keep, dir) = run();
    let page = page_of(dir.clone());
    for (cell, metric) in [
        ("genie.tiny.w8a16.p96", "ttft_ms"),
        ("ort-qnn.tiny.fp16.p224", "decode_tok_s"),
        ("mnn.tiny.w8.p32", "e2e_ms"),
        ("ort-genai.tiny.fp32.p32", "load_ms"),
    ] {
        let exact: f64 = csv(&dir, cell, metric).parse().expect("a number");
        assert!(page.contains(&format!("title=\"{exact} exactly;")), "{cell} {metric} {exact}");
    }
}

#[test]
fn ratios_stand_on_the_same_artifacts_of_one_class_only() {
    let (_keep, dir) = run();
    let page = page_of(dir.clone());
    assert!(page.contains("genie against ort-qnn on the same context binaries"));
    assert_eq!(
        page.matches(" on the same context binaries</h3>").count() + page.matches(" on the same artifact</h3>").count(),
        1,
        "one pairing in all"
    );
    let number = |cell: &str| csv(&dir, cell, "ttft_ms").parse::<f64>().expect("a number");
    let ratio = number("genie.tiny.w8a16.p96") / number("ort-qnn.tiny.w8a16.p96");
    assert!(page.contains(&format!("<span class=\"value\">{ratio:.3}</span>")), "{ratio}");
    let (pc, emulator) = page.split_once("HTP emulator <span").expect("both panels");
    for name in ["ort-genai", "llama-cpp", "mnn"] {
        assert!(!emulator.split("id=\"r0-out\"").next().expect("text").contains(name), "{name} in the emulator's panel");
    }
    let panel = pc.split("PC processor <span").nth(1).expect("the PC's panel");
    assert!(!panel.contains("genie") && !panel.contains("ort-qnn"));
    assert!(page.contains("Emulator time is not device time"));
}

#[test]
fn other_artifacts_scopes_and_aggregates_have_no_ratio_or_no_interval() {
    let (_keep, dir) = run();
    let cells = fs::read_to_string(dir.join("cells.csv")).expect("cells");
    fs::write(dir.join("cells.csv"), cells.replace("a1b2c3d4e5f60718-fp16", "")).expect("cells");
    let samples = fs::read_to_string(dir.join("samples.csv")).expect("samples");
    let at = samples.lines().next().expect("a header").split(',').position(|name| name == "aggregate_n").expect("a column");
    let aggregated: Vec<String> = samples
        .lines()
        .enumerate()
        .map(|(row, line)| {
            line.split(',')
                .enumerate()
                .map(|(column, value)| if row > 0 && column == at { "8" } else { value })
                .collect::<Vec<_>>()
                .join(",")
        })
        .collect();
    fs::write(dir.join("samples.csv"), aggregated.join("\n") + "\n").expect("samples");
    let page = page_of(dir);
    let pairing = page.split("class=\"pairing\"").nth(1).expect("a pairing").split("</section>").next().expect("its end");
    assert!(!pairing.contains("<td>fp16</td>") && pairing.contains("<td>w8a16</td>"));
    assert!(pairing.contains("no single values at hand") && !pairing.contains("class=\"interval\"") && !pairing.contains("genie sooner"));
}

#[test]
fn ways_to_time_the_first_token_are_not_compared() {
    let (_keep, dir) = run();
    let cells = fs::read_to_string(dir.join("cells.csv")).expect("cells");
    let other = |line: &str| {
        if line.contains(",ort-qnn.tiny.w8a16") { line.replace(",ids,token_event,", ",text,token_event,") } else { line.to_owned() }
    };
    fs::write(dir.join("cells.csv"), cells.lines().map(other).collect::<Vec<_>>().join("\n") + "\n").expect("cells");
    let page = page_of(dir);
    assert!(page.contains("not compared: ids against text") && page.contains("not comparable in 3"));
    assert!(page.contains("genie faster"), "the decode rate does not depend on the scope");
    let drawings: Vec<&str> = page.split("<svg class=\"chart\"").filter_map(|part| part.split("</svg>").next()).collect();
    let of_text: Vec<&&str> = drawings.iter().filter(|drawing| drawing.contains("aria-label=\"Time to first token — from text")).collect();
    assert!(of_text.len() == 1 && of_text[0].contains("ort-qnn") && !of_text[0].contains("genie"));
    assert!(page.contains("Time to first token — from text, tokenisation included, timed at the token&#x27;s arrival"));
}

#[test]
fn cells_that_do_not_count_are_in_no_chart_and_stand_with_their_reason() {
    let (_keep, dir) = run();
    let page = page_of(dir);
    for part in page.split("<svg class=\"chart\"").skip(1) {
        let drawing = part.split("</svg>").next().expect("an end");
        assert!(!drawing.contains("executorch") && !drawing.contains("w4"), "{drawing}");
    }
    for reason in [
        "tokens differ from the fp32 reference at position 3 of 16",
        "the runner ended with signal 11 while loading",
        "not installed: `bench runtimes install executorch`",
    ] {
        assert!(page.contains(reason), "{reason}");
    }
    assert!(page.contains("21 of 25 cells were measured"));
    assert!(page.contains("the text callback merges pieces"), "a dash has its reason");
}

#[test]
fn nothing_hostile_and_nothing_foreign_is_in_the_page() {
    let (_keep, dir) = run();
    let cells = fs::read_to_string(dir.join("cells.csv")).expect("cells");
    // Names go into drawings, attributes and sentences.
    fs::write(dir.join("cells.csv"), cells.replace(",mnn,", ",<b onclick=x>&amp;</b>,").replace(",tiny,", ",\"\"\"><script>m</script>\","))
        .expect("cells");
    let page = page_of(dir);
    assert!(page.contains("Content-Security-Policy\" content=\"default-src 'none'"));
    for forbidden in ["<script", "<img", "<b onclick", "javascript:", "url(", "@import", "<link", "xlink"] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    // The reason with an address in it is text; nothing refers to one.
    for attribute in ["src=\"", "href=\"http", "xmlns="] {
        assert!(!page.contains(attribute), "{attribute}");
    }
    assert!(page.contains("&lt;script&gt;alert("));
    assert!(!page.contains('\u{202e}'), "text can't turn its direction");
    assert!(!page.contains("NaN") && !page.contains("inf ") && !page.contains(">None<"));
}

#[test]
fn tables_that_are_missing_are_said() {
    let (_keep, dir) = run();
    for file in ["samples.csv", "tokens.csv", "telemetry.csv", "layers.csv", "manifest.json"] {
        fs::remove_file(dir.join(file)).expect("the file");
    }
    let page = page_of(dir.clone());
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
    assert!(matches!(render(&[dir]), Err(ReportError::NotARun(_))));
    assert!(matches!(render(&[]), Err(ReportError::NothingToReport)));
}

#[test]
fn a_run_in_which_nothing_was_measured_has_a_page() {
    let (_keep, dir) = run();
    let cells = fs::read_to_string(dir.join("cells.csv")).expect("cells");
    fs::write(dir.join("cells.csv"), cells.replace(",ok,", ",skipped,")).expect("cells");
    let page = page_of(dir.clone());
    assert!(page.contains("None of the 25 cells could be measured") && !page.contains("class=\"chart\""));
    fs::write(dir.join("cells.csv"), cells.lines().next().expect("a header").to_owned() + "\n").expect("cells");
    assert!(page_of(dir).contains("The run has no cells."));
}

#[test]
fn columns_and_values_that_make_no_sense_are_survived() {
    let (_keep, dir) = run();
    fs::write(dir.join("cells.csv"), "cell,status,ttft_ms,backend,decode_tok_s\nx,ok,fast,b,NaN\ny,exploded,1,b,2\n").expect("cells");
    fs::write(dir.join("tokens.csv"), "cell\nx\n").expect("tokens");
    let error = render(std::slice::from_ref(&dir)).expect_err("tokens.csv has no column to select by");
    assert!(error.to_string().contains("tokens.csv"), "{error}");
    fs::remove_file(dir.join("tokens.csv")).expect("the file");
    let page = page_of(dir);
    assert!(page.contains("cells.csv: 2 values are not numbers"));
}

#[test]
fn the_page_is_the_same_each_time_and_written_whole() {
    let (keep, dir) = run();
    let out = keep.path().join("reports/x");
    let path = write(&[dir.clone(), dir.clone()], &out).expect("a report");
    assert_eq!(path, out.join("index.html"));
    assert_eq!(fs::read_dir(&out).expect("a folder").count(), 1, "no temporary file is left");
    assert_eq!(fs::read_to_string(&path).expect("the page"), render(&[dir.clone(), dir]).expect("a page"));
    assert!(fs::read_to_string(&path).expect("the page").contains("2 runs below each other"));
}

/// `cargo test page_to_look_at -- --ignored` writes one to `$TMPDIR/bench-report/index.html`.
#[test]
#[ignore = "for the eye"]
fn page_to_look_at() {
    let (_keep, dir) = run();
    println!("{}", write(&[dir], &std::env::temp_dir().join("bench-report")).expect("a report").display());
}
