use bench_backend_api::{FailureKind, Reader, Reading, SourceFile, text::damaged};
use serde_json::Value;

use super::GenieReader;

const THREE: &[u8] = include_bytes!("../../fixtures/profile-3-queries.json");
const ONE: &[u8] = include_bytes!("../../fixtures/profile-one-query.json");
const UNITS: &[u8] = include_bytes!("../../fixtures/profile-odd-units.json");
const KPIS: &[u8] = include_bytes!("../../fixtures/stdout-kpis-markers-in-answer.txt");
const NEW: &[u8] = include_bytes!("../../fixtures/stdout-new.txt");
const FAIL_5005: &[u8] = include_bytes!("../../fixtures/fail-5005-kernel-line.txt");
const FAIL_KEY: &[u8] = include_bytes!("../../fixtures/fail-missing-key.txt");
const FAIL_CONTEXT: &[u8] = include_bytes!("../../fixtures/fail-context-exceeded.txt");
const FAIL_LOGCAT: &[u8] = include_bytes!("../../fixtures/fail-logcat.txt");

fn read(files: &[&[u8]]) -> Result<Reading, String> {
    let files: Vec<SourceFile> =
        files.iter().enumerate().map(|(index, bytes)| SourceFile { name: format!("file{index}"), bytes: bytes.to_vec() }).collect();
    GenieReader.read(&files).map_err(|error| error.to_string())
}

/// The metrics of a measurement, compared to a billionth.
fn assert_metrics(reading: &Reading, label: &str, expected: &[(&str, f64)]) {
    let found = reading.measurements.iter().find(|measurement| measurement.label == label);
    let found = found.unwrap_or_else(|| panic!("no measurement {label}: {:?}", reading.measurements));
    for (name, value) in expected {
        let actual =
            found.metrics.get(*name).and_then(Value::as_f64).unwrap_or_else(|| panic!("{label} has no {name}: {:?}", found.metrics));
        assert!((actual - value).abs() <= 1e-9 * value.abs(), "{label} {name}: {actual}, not {value}");
    }
    assert_eq!(found.metrics.len(), expected.len(), "{label}: {:?}", found.metrics);
}

fn assert_warns(reading: &Reading, words: &[&str]) {
    for word in words {
        assert!(reading.warnings.iter().any(|warning| warning.contains(word)), "no warning of `{word}`: {:?}", reading.warnings);
    }
}

#[test]
fn a_profile_gives_rates_from_counts_and_times() {
    let reading = read(&[ONE]).unwrap();
    assert_metrics(
        &reading,
        "query 1",
        &[
            ("load_ms", 812.0),
            ("ttft_ms", 250.0),
            // 412 tokens / 0.25 s
            ("prefill_tok_s", 1648.0),
            // (65 - 1) / 3.2 s
            ("decode_tok_s", 20.0),
            ("e2e_ms", 3460.0),
            ("prompt_tokens", 412.0),
            ("generated_tokens", 65.0),
            ("tokens_per_step", 1.5),
        ],
    );
    let reported = &reading.measurements[0].reported;
    // 1e6 / floor(250000 / 412) = 1e6 / 606; the rate that counts the first token, 1e6 / floor(3200000 / 65), is only reported.
    assert_eq!(reported["prompt-processing-rate"].as_f64(), Some(1_650.165_039_062_5));
    assert!(reported.contains_key("token-generation-rate") && reported.contains_key("token-acceptance-rate"));
    assert_eq!((reading.warnings.len(), reading.failure), (0, None));
}

#[test]
fn queries_are_numbered_and_loaded_once() {
    let reading = read(&[THREE]).unwrap();
    let labels: Vec<&str> = reading.measurements.iter().map(|measurement| measurement.label.as_str()).collect();
    assert_eq!(labels, ["query 1", "query 2", "query 3"]);
    // 78 / 3.931594 s; (8 - 1) / 0.938936 s. The version that wrote it prints the same decode rate, but for its truncation.
    let expected = [
        ("ttft_ms", 3931.594),
        ("prefill_tok_s", 78.0 / 3.931_594),
        ("decode_tok_s", 7.0 / 0.938_936),
        ("e2e_ms", 4871.359),
        ("prompt_tokens", 78.0),
        ("generated_tokens", 8.0),
    ];
    assert_metrics(&reading, "query 3", &expected);
    assert_eq!(reading.measurements[0].metrics["load_ms"], 62.509);
    assert!(reading.warnings.is_empty(), "{:?}", reading.warnings);
    // Two profiles of one run go on counting.
    assert_eq!(read(&[THREE, ONE]).unwrap().measurements[3].label, "query 4");
}

#[test]
fn units_are_read() {
    let reading = read(&[UNITS]).unwrap();
    // 0.2 s; 40 / 0.2 s; (11 - 1) / 500 ms.
    let expected =
        [("ttft_ms", 200.0), ("prompt_tokens", 40.0), ("generated_tokens", 11.0), ("prefill_tok_s", 200.0), ("decode_tok_s", 20.0)];
    assert_metrics(&reading, "query 1", &expected);
    // No unit, no time; and one token has no decode.
    assert_metrics(&reading, "query 2", &[("prompt_tokens", 40.0), ("generated_tokens", 1.0)]);
    // A wrapped counter, a negative count, an unknown unit and an absurd rate are no metrics.
    assert_metrics(&reading, "query 3", &[("generated_tokens", 9.0)]);
    assert_warns(
        &reading,
        &["prompt-processing-rate of 999", "`` is not a unit", "can not be a measurement", "fortnights", "is not a count"],
    );
}

#[test]
fn figures_stand_behind_the_answer() {
    let reading = read(&[KPIS]).unwrap();
    // The block, the marker and the error inside of the answer count for nothing.
    assert_metrics(&reading, "query 1", &[("load_ms", 2500.0), ("ttft_ms", 400.0), ("prefill_tok_s", 160.0), ("decode_tok_s", 15.625)]);
    assert_eq!(reading.failure, None);
    assert_warns(&reading, &["no token counts", "Segmentation fault"]);
}

#[test]
fn strange_numbers_are_no_figures() {
    let text = b"[KPIS]:\nInit Time: 1,549034 us\nPrompt Processing Time: 196.5 ms, Prompt Processing Rate : nan toks/sec\nToken Generation Time: 0 us, Token Generation Rate: 1.000000 toks/sec\n";
    let reading = read(&[text]).unwrap();
    assert_metrics(&reading, "query 1", &[("ttft_ms", 196.5)]);
    assert_warns(&reading, &["`1,549034`", "`nan`", "0 us can not be", "left out with its time"]);
}

#[test]
fn a_run_without_figures_says_how_to_get_them() {
    let reading = read(&[NEW]).unwrap();
    assert_eq!((reading.measurements.len(), reading.failure.clone()), (0, None));
    assert_warns(&reading, &["--profile"]);
    assert_eq!(reading.warnings.len(), 1, "the answer speaks of errors, the run has none: {:?}", reading.warnings);
    // With the profile there is nothing to say.
    let both = read(&[NEW, ONE, b""]).unwrap();
    assert_eq!((both.measurements.len(), both.failure), (1, None));
    assert_eq!(both.warnings, ["file2: the file is empty"]);
}

#[test]
fn failures() {
    type Case = (&'static str, &'static [u8], FailureKind, &'static [&'static str], &'static str);
    let cases: [Case; 7] = [
        ("query", b"[PROMPT]: hi\n\nFailed to query.\n", FailureKind::Runtime, &["Failed to query"], "verbose"),
        ("5005", FAIL_5005, FailureKind::Model, &["err 5005", "Failed to create the dialog"], "soc_model"),
        ("key", FAIL_KEY, FailureKind::Usage, &["Missing QnnHtp field: cpu-mask", "line 230"], "configuration"),
        ("context", FAIL_CONTEXT, FailureKind::Usage, &["Context Size was exceeded", "Failed to query"], "larger context"),
        ("logcat", FAIL_LOGCAT, FailureKind::Device, &["0x80000406", "14001"], "ADSP_LIBRARY_PATH"),
        ("cut", b"Using libGenie.so version 1.9.0\n[BEGIN]: The sky", FailureKind::Runtime, &["no [END]"], "logcat"),
        (
            "exists",
            b"Using libGenie.so version 1.9.0\nERROR: Invalid --profile argument. Output file p.json already exists.\n",
            FailureKind::Infra,
            &["already exists"],
            "folder",
        ),
    ];
    for (name, bytes, kind, words, hint) in cases {
        let reading = read(&[bytes]).unwrap();
        let failure = reading.failure.unwrap_or_else(|| panic!("{name}: no failure"));
        assert_eq!(failure.kind, kind, "{name}: {failure}");
        for word in words {
            assert!(failure.message.contains(word), "{name}: {failure}");
        }
        assert!(failure.hint.as_ref().is_some_and(|text| text.contains(hint)), "{name}: {:?}", failure.hint);
        assert!(reading.measurements.is_empty(), "{name}");
    }
}

#[test]
fn other_files_are_refused() {
    let cut = &ONE[..ONE.len() / 2];
    let cases: [(&str, &[u8], &str); 6] = [
        ("empty", b" \r\n", "empty"),
        ("other tool", b"llama_print_timings: load time = 5 ms", "line 1"),
        ("configuration", b"{\"dialog\": {\"version\": 1}}", "configuration"),
        ("other JSON", b"{\"a\": 1}", "components"),
        ("cut", cut, "line"),
        ("binary", &[0; 64], "binary"),
    ];
    for (name, bytes, words) in cases {
        let error = read(&[bytes]).unwrap_err();
        assert!(error.contains(words), "{name}: {error}");
    }
    assert!(GenieReader.read(&[]).is_err());
}

#[test]
fn line_ends_marks_and_a_profile_behind_the_output() {
    let mut text = b"\xef\xbb\xbfUsing libGenie.so version 1.9.0\n[BEGIN]: hi[END]\n".to_vec();
    text.extend_from_slice(ONE);
    assert_eq!(read(&[&text]).unwrap().measurements.len(), 1);
    let crlf = String::from_utf8_lossy(ONE).replace('\n', "\r\n");
    assert_eq!(read(&[crlf.as_bytes()]), read(&[ONE]));
}

#[test]
fn nothing_panics() {
    for bytes in [UNITS, ONE, KPIS, NEW, FAIL_5005, FAIL_KEY, FAIL_CONTEXT, FAIL_LOGCAT] {
        for copy in damaged(bytes, 300) {
            let _ = read(&[&copy]);
        }
    }
}
