use bench_backend_api::{FailureKind, Reader, Reading, SourceFile, text::damaged};
use serde_json::Value;

use super::OrtGenaiReader;

const TABS: &[u8] = include_bytes!("../../fixtures/tabs.txt");
const SPACES: &[u8] = include_bytes!("../../fixtures/spaces-scientific.txt");
const CSV: &[u8] = include_bytes!("../../fixtures/e2e.csv");
const AVERAGES: &[u8] = include_bytes!("../../fixtures/averages.txt");
const TIMINGS: &[u8] = include_bytes!("../../fixtures/timings.txt");

fn read(files: &[&[u8]]) -> Result<Reading, String> {
    let files: Vec<SourceFile> =
        files.iter().enumerate().map(|(index, bytes)| SourceFile { name: format!("file{index}"), bytes: bytes.to_vec() }).collect();
    OrtGenaiReader.read(&files).map_err(|error| error.to_string())
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
fn the_mean_is_read() {
    let reading = read(&[TABS]).unwrap();
    let expected = [
        ("ttft_ms", 80.0),
        ("prefill_tok_s", 800.0),
        ("decode_tok_s", 40.0),
        ("e2e_ms", 882.5),
        ("prompt_tokens", 64.0),
        // 128 tokens / 4 repetitions, and the prompt's own.
        ("generated_tokens", 33.0),
    ];
    assert_metrics(&reading, "pp64+tg33", &expected);
    let reported = &reading.measurements[0].reported;
    assert_eq!(
        (reported["Token generation p50 (us)"].as_f64(), reported["Peak working set size (bytes)"].as_f64()),
        (Some(24000.5), Some(2_147_483_648.0))
    );
    assert_eq!(reported["Token generation n"], "128 * 1 token(s)");
    assert!(reading.warnings.is_empty(), "{:?}", reading.warnings);
}

#[test]
fn two_tests_spaces_and_scientific_numbers() {
    let reading = read(&[SPACES]).unwrap();
    // 1.28e6 us; 100 tokens / 2 repetitions + 1 = 51, fewer than asked for.
    let expected =
        [("ttft_ms", 1280.0), ("prefill_tok_s", 800.0), ("decode_tok_s", 20.0), ("prompt_tokens", 1024.0), ("generated_tokens", 51.0)];
    assert_metrics(&reading, "pp1024+tg128", &expected);
    // Thousands commas and `nan` are no numbers.
    assert_metrics(&reading, "pp2048+tg128", &[("prompt_tokens", 2048.0)]);
    assert_warns(&reading, &["51 tokens were generated, not 128", "`2,560,000` is not a plain number", "`nan` is not a plain number"]);
}

#[test]
fn contradictions_and_absurd_values_are_named() {
    let text = "Batch size: 1, prompt tokens: 100, tokens to generate: 8\nPrompt processing (time to first token):\n avg (us): 100000\n avg (tokens/s): 5\nToken generation:\n avg (us): -4\n avg (tokens/s): 1e300\n";
    let reading = read(&[text.as_bytes()]).unwrap();
    assert_metrics(
        &reading,
        "pp100+tg8",
        &[("ttft_ms", 100.0), ("prefill_tok_s", 5.0), ("prompt_tokens", 100.0), ("generated_tokens", 8.0)],
    );
    assert_warns(&reading, &["does not follow from 100 token(s)", "-4 us can not be", "1"]);
}

#[test]
fn python_side() {
    let csv = read(&[CSV]).unwrap();
    let expected =
        [("prefill_tok_s", 900.25), ("decode_tok_s", 42.5), ("e2e_ms", 6350.0), ("prompt_tokens", 128.0), ("generated_tokens", 256.0)];
    assert_metrics(&csv, "pp128+tg256", &expected);
    assert_warns(&csv, &["line 3: 15 fields instead of 14"]);
    let averages = [("ttft_ms", 150.5), ("prefill_tok_s", 850.5), ("decode_tok_s", 30.25), ("e2e_ms", 4500.0)];
    assert_metrics(&read(&[AVERAGES]).unwrap(), "inference", &averages);
    let timings =
        [("ttft_ms", 2620.0), ("prefill_tok_s", 8.02), ("decode_tok_s", 5.09), ("prompt_tokens", 21.0), ("generated_tokens", 85.0)];
    assert_metrics(&read(&[TIMINGS]).unwrap(), "query 1", &timings);
}

#[test]
fn failures() {
    let cases = [
        ("Error opening m/genai_config.json", FailureKind::Infra),
        ("Load model from m/model.onnx failed:Protobuf parsing failed.", FailureKind::Model),
        ("QNN execution provider is not supported in this build. ", FailureKind::Runtime),
        ("Unknown provider name 'qnm'. Currently supported values are 'QNN'", FailureKind::Runtime),
        ("input_ids size (20) + current sequence length (0) exceeds max length (8)", FailureKind::Usage),
        ("max_length (9000) cannot be greater than model context_length (2048)", FailureKind::Usage),
        ("input_ids is empty", FailureKind::Usage),
        ("Non-zero status code returned while running QNN_0 node. QNN graph execute error. Error code: 1007", FailureKind::Device),
    ];
    for (message, kind) in cases {
        for text in [
            format!("Traceback (most recent call last):\n  File \"x.py\", line 6, in go\nRuntimeError: {message}\nrc=1\n"),
            format!("terminate called after throwing an instance of 'std::runtime_error'\n  what():  {message}\nAborted\n"),
        ] {
            let failure = read(&[text.as_bytes()]).unwrap().failure.unwrap_or_else(|| panic!("{message}: no failure"));
            assert_eq!(failure.kind, kind, "{failure}");
            assert!(failure.message.contains(message.trim()) && failure.hint.is_some(), "{failure}");
        }
    }
    for (text, kind) in [
        ("Batch size: 1, prompt tokens: 16, tokens to generate: 128\nSegmentation fault\n", FailureKind::Runtime),
        ("Batch size: 1, prompt tokens: 16, tokens to generate: 128\n", FailureKind::Runtime),
        ("usage: model_benchmark -i <path>\n", FailureKind::Usage),
    ] {
        assert_eq!(read(&[text.as_bytes()]).unwrap().failure.unwrap().kind, kind, "{text}");
    }
    let silent = b"\x1b[1;31m2026-05-05 [E:onnxruntime:, qnn.cc:7 GetCapability] QNN SetupBackend failed Error: 14001\x1b[m\n";
    let both = [silent as &[u8], TABS].concat();
    let failure = read(&[&both]).unwrap().failure.unwrap();
    assert!(failure.kind == FailureKind::Runtime && failure.message.contains("14001"), "{failure}");
    let crashed = read(&[&[TABS, b"Segmentation fault\n"].concat()]).unwrap();
    assert_eq!(crashed.failure, None);
    assert_warns(&crashed, &["Segmentation fault"]);
}

#[test]
fn a_trace_gives_operations_by_phase() {
    let node = |dur: u32| {
        format!(
            "{{\"cat\":\"Node\",\"ph\":\"X\",\"dur\":{dur},\"name\":\"mm_kernel_time\",\"args\":{{\"op_name\":\"MatMul\",\"provider\":\"CPUExecutionProvider\"}}}}"
        )
    };
    let run = "{\"cat\":\"Session\",\"ph\":\"X\",\"dur\":9,\"name\":\"model_run\",\"args\":{}}";
    let text = format!("[\n{},\n{run},\n{},\n{run},\n{},\n{run}\n]", node(90), node(4), node(6));
    let reading = read(&[text.as_bytes()]).unwrap();
    let layers: Vec<_> = reading.layers.iter().map(|layer| (layer.phase.as_str(), layer.index, layer.value, layer.count)).collect();
    assert_eq!(layers, [("prefill", 0, Some(90.0), Some(1)), ("decode", 0, Some(5.0), Some(2))]);
    // How often it ran is told, but a forward pass of a loop is no latency of a request.
    let [told] = reading.measurements.as_slice() else { panic!("{:?}", reading.measurements) };
    assert!(told.metrics.is_empty(), "{told:?}");
    // 3 runs of 9 us, kernels of 90, 4 and 6 us.
    let sums = serde_json::json!({ "model_run events": 3, "model_run (ms)": 0.027, "kernels (ms)": 0.1 });
    assert_eq!(serde_json::to_value(&told.reported).unwrap(), sums);
}

#[test]
fn other_files_are_refused() {
    for (bytes, words) in [(b"\n" as &[u8], "empty"), (b"| model | size |", "line 1"), (&[0; 64], "binary")] {
        let error = read(&[bytes]).unwrap_err();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn nothing_panics() {
    for bytes in [TABS, SPACES, CSV, AVERAGES, TIMINGS] {
        for copy in damaged(bytes, 300) {
            let _ = read(&[&copy]);
        }
    }
}
