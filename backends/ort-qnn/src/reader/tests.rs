use bench_backend_api::{FailureKind, Reader, Reading, SourceFile, text::damaged};
use serde_json::Value;

use super::OrtQnnReader;

const PROFILE: &[u8] = include_bytes!("../../fixtures/profile-decode.csv");
const BASIC: &[u8] = include_bytes!("../../fixtures/profile-basic.csv");
const NEW: &[u8] = include_bytes!("../../fixtures/perf-new.txt");
const OLD: &[u8] = include_bytes!("../../fixtures/perf-2019.txt");
const TWO: &[u8] = include_bytes!("../../fixtures/perf-two-runs.txt");
const ITERATIONS: &[u8] = include_bytes!("../../fixtures/perf-iterations.txt");
const RESULT: &[u8] = include_bytes!("../../fixtures/result.csv");
const SILENT: &[u8] = include_bytes!("../../fixtures/fallback-silent.txt");
const DISABLED: &[u8] = include_bytes!("../../fixtures/fallback-disabled.txt");
const FAIL_RUN: &[u8] = include_bytes!("../../fixtures/fail-run.txt");
const TRACE: &[u8] = include_bytes!("../../fixtures/trace-cut.json");

fn read(files: &[&[u8]]) -> Result<Reading, String> {
    let files: Vec<SourceFile> =
        files.iter().enumerate().map(|(index, bytes)| SourceFile { name: format!("decode{index}.csv"), bytes: bytes.to_vec() }).collect();
    OrtQnnReader.read(&files).map_err(|error| error.to_string())
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
fn perf_test_of_today() {
    let reading = read(&[NEW]).unwrap();
    let expected = [
        ("load_ms", 250.0),
        ("latency_ms", 4.0),
        ("throughput_inf_s", 249.377),
        ("latency_min_ms", 3.5),
        ("latency_p50_ms", 3.9),
        ("latency_p90_ms", 4.2),
        ("latency_p99_ms", 9.0),
    ];
    // The recorded command line names the model.
    assert_metrics(&reading, "net_ctx", &expected);
    let reported = &reading.measurements[0].reported;
    assert_eq!((reported["First inference time cost (ms)"].as_f64(), reported["P95 Latency (s)"].as_f64()), (Some(9.0), Some(4.4e-3)));
    assert_eq!((reading.warnings.len(), reading.failure), (0, None));
}

#[test]
fn perf_test_of_2019() {
    let expected =
        [("latency_ms", 20.5), ("latency_min_ms", 20.0), ("latency_p50_ms", 20.4), ("latency_p90_ms", 21.0), ("latency_p99_ms", 25.5)];
    assert_metrics(&read(&[OLD]).unwrap(), "inference", &expected);
}

#[test]
fn several_runs_and_bad_numbers() {
    let reading = read(&[TWO]).unwrap();
    assert_metrics(&reading, "inference", &[("load_ms", 500.0), ("latency_ms", 250.0)]);
    // A decimal comma, `nan` and a latency without its unit are no metrics; so the second run has no latency.
    assert_metrics(&reading, "inference 2", &[("load_ms", 400.0)]);
    assert_warns(&reading, &["`1,250 ms` is not a plain number", "`nan` is not a plain number", "is not a unit of time"]);
}

#[test]
fn iterations_and_result_files() {
    let text = [b"Setting intra_op_num_threads to 1\n", ITERATIONS].concat();
    // (6 + 4 + 5) / 3
    assert_metrics(&read(&[&text]).unwrap(), "inference", &[("latency_ms", 5.0), ("latency_min_ms", 4.0), ("latency_p50_ms", 5.0)]);
    let result = read(&[RESULT]).unwrap();
    assert_metrics(&result, "net", &[("latency_ms", 5.0), ("latency_min_ms", 4.0), ("latency_p50_ms", 5.0)]);
    // Of submission and total it is the total.
    assert_metrics(&result, "head", &[("latency_ms", 2.0)]);
}

#[test]
fn profile_of_our_own_run() {
    let reading = read(&[PROFILE]).unwrap();
    // The mean of the file's five EXECUTE rows.
    let text = String::from_utf8_lossy(PROFILE);
    let times: Vec<f64> =
        text.lines().filter(|line| line.contains(",EXECUTE,")).map(|line| line.split(',').nth(2).unwrap().parse().unwrap()).collect();
    assert_eq!(times.len(), 5);
    let mean = times.iter().sum::<f64>() / 5.0 / 1e3;
    let found = reading.measurements[0].metrics["latency_ms"].as_f64().unwrap();
    assert!((found - mean).abs() < 1e-9 && (found - 63.7298).abs() < 1e-9, "{found}");
    let names: Vec<&str> = reading.layers.iter().map(|layer| layer.name.as_str()).collect();
    assert_eq!((names[0], names.len(), *names.last().unwrap()), ("Input OpId_2", 7, "Output OpId_3"));
    let layer = &reading.layers[0];
    assert_eq!(
        (layer.count, layer.value_unit.as_str(), layer.phase.as_str(), layer.method.as_str()),
        (Some(5), "cycles", "decode", "qnn-detailed")
    );
    // Folded away: 0 cycles, not unknown.
    assert_eq!(reading.layers[5].value, Some(0.0));
    let basic = read(&[BASIC]).unwrap();
    // (87760 + 103663) / 2 us; finalize 110987 us.
    assert_metrics(
        &basic,
        "inference",
        &[("latency_ms", 95.7115), ("latency_min_ms", 87.76), ("latency_p50_ms", 95.7115), ("load_ms", 110.987)],
    );
}

#[test]
fn a_profile_beside_the_tool_adds_operations_only() {
    let reading = read(&[NEW, PROFILE]).unwrap();
    assert_eq!((reading.measurements.len(), reading.layers.len()), (1, 7));
    assert_eq!(reading.measurements[0].metrics["latency_ms"], 4.0);
}

#[test]
fn a_silent_fallback_is_a_failure() {
    let reading = read(&[SILENT]).unwrap();
    let failure = reading.failure.clone().unwrap();
    assert_eq!(failure.kind, FailureKind::Runtime);
    assert!(failure.message.contains("SetupBackend failed") && failure.message.contains("14001"), "{failure}");
    assert!(failure.hint.unwrap().contains("disable_cpu_ep_fallback"));
    // Time of the CPU is never called time of the NPU.
    assert_metrics(&reading, "net_ctx", &[]);
    assert_eq!(reading.measurements[0].reported["latency_ms (CPU)"], 4.0);
    assert_warns(&reading, &["those of the CPU"]);
}

#[test]
fn failures() {
    let cases: [(&str, &[u8], FailureKind, &[&str]); 5] = [
        ("disabled", DISABLED, FailureKind::Runtime, &["SetupBackend failed", "explicitly disabled by the user"]),
        ("run", FAIL_RUN, FailureKind::Runtime, &["6031"]),
        ("model", b"Load model from m.onnx failed:Protobuf parsing failed.\n", FailureKind::Model, &["Protobuf"]),
        ("missing", b"Load model from m.onnx failed:Load model m.onnx failed. File doesn't exist\n", FailureKind::Infra, &["m.onnx"]),
        ("unfinished", b"Session creation time cost: 0.2 s\n", FailureKind::Runtime, &["did not finish"]),
    ];
    for (name, bytes, kind, words) in cases {
        let reading = read(&[bytes]).unwrap();
        let failure = reading.failure.unwrap_or_else(|| panic!("{name}: no failure"));
        assert_eq!(failure.kind, kind, "{name}: {failure}");
        assert!(failure.hint.is_some(), "{name}");
        for word in words {
            assert!(failure.message.contains(word), "{name}: {failure}");
        }
    }
    let crashed = [NEW, b"Segmentation fault\n"].concat();
    let reading = read(&[&crashed]).unwrap();
    assert_eq!(reading.failure, None);
    assert_warns(&reading, &["Segmentation fault"]);
}

#[test]
fn a_trace_that_was_cut() {
    let reading = read(&[TRACE]).unwrap();
    // (1.1 + 0.8) / 2 ms
    assert_metrics(&reading, "inference", &[("latency_ms", 0.95), ("latency_min_ms", 0.8), ("latency_p50_ms", 0.95), ("load_ms", 40.0)]);
    let layers: Vec<_> =
        reading.layers.iter().map(|layer| (layer.name.as_str(), layer.unit.as_deref(), layer.value, layer.count)).collect();
    assert_eq!(
        layers,
        [("QNNExecutionProvider_QNN_1_0", Some("npu"), Some(800.0), Some(2)), ("softmax", Some("cpu"), Some(100.0), Some(1))]
    );
    assert_warns(&reading, &["not closed", "1 of 3 node runs were on the CPU"]);
    // 1.1 + 0.8, of which 0.9 + 0.1 + 0.7 are in nodes.
    let told = |name: &str| reading.measurements[0].reported.get(name).and_then(serde_json::Value::as_f64);
    let names = ["session_initialization (ms)", "model_run (ms)", "kernels (ms)", "SequentialExecutor::Execute (ms)", "fences (ms)"];
    assert_eq!(names.map(told), [Some(40.0), Some(1.9), Some(1.7), None, None]);
}

#[test]
fn a_trace_tells_what_nests_around_the_nodes() {
    let event = |category: &str, name: &str, us: u32| format!("{{\"cat\":\"{category}\",\"ph\":\"X\",\"dur\":{us},\"name\":\"{name}\"}}");
    let events = [
        event("Session", "model_loading_uri", 700),
        event("Session", "session_initialization", 15_500),
        event("Node", "Pad_fence_before", 30),
        event("Node", "Pad_kernel_time", 600),
        event("Node", "Pad_fence_after", 20),
        event("Session", "SequentialExecutor::Execute", 800),
        event("Session", "model_run", 1000),
    ];
    let reading = read(&[format!("[\n{}\n]\n", events.join(",\n")).as_bytes()]).unwrap();
    let found = &reading.measurements[0];
    let told = found.reported.iter().filter(|(name, _)| name.ends_with("(ms)")).map(|(name, ms)| (name.as_str(), ms.as_f64().unwrap()));
    let wanted = [
        ("model_loading (ms)", 0.7),
        ("session_initialization (ms)", 15.5),
        ("model_run (ms)", 1.0),
        ("SequentialExecutor::Execute (ms)", 0.8),
        ("kernels (ms)", 0.6),
        ("fences (ms)", 0.05),
    ];
    assert_eq!(told.collect::<Vec<_>>(), wanted);
    assert_eq!(found.metrics["load_ms"].as_f64(), Some(16.2));
}

#[test]
fn in_pieces_a_profile_says_the_same() {
    for bytes in [TRACE, PROFILE, BASIC] {
        let head = std::str::from_utf8(bytes).unwrap();
        let pieces = OrtQnnReader.stream("file0.txt", head, &mut std::io::BufReader::with_capacity(7, bytes)).unwrap().unwrap();
        assert_eq!(pieces, OrtQnnReader.read(&[SourceFile { name: "file0.txt".to_owned(), bytes: bytes.to_vec() }]).unwrap());
    }
    // A whole trace is closed; what is no trace has no event.
    let closed = b"[\n{\"cat\":\"Session\",\"dur\":1100,\"name\":\"model_run\",\"ph\":\"X\",\"pid\":\"odd\"}\n]\n";
    let reading = OrtQnnReader.stream("t", "[{\"ph\" \"cat\"", &mut &closed[..]).unwrap().unwrap();
    assert_eq!((reading.measurements[0].metrics["latency_ms"].as_f64(), reading.warnings.len()), (Some(1.1), 0));
    let none = OrtQnnReader.stream("t", "[{\"ph\" \"cat\"", &mut &b"[\nnothing"[..]).unwrap().unwrap_err();
    assert!(none.to_string().contains("no whole event"), "{none}");
}

#[test]
fn other_files_are_refused() {
    for (bytes, words) in [
        (b"" as &[u8], "empty"),
        (b"hello\n", "line 1"),
        (b"[{\"cat\": \"Node\", \"ph\": \"X\", \"na", "no whole event"),
        (&[0; 64], "binary"),
    ] {
        let error = read(&[bytes]).unwrap_err();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn nothing_panics() {
    for bytes in [&PROFILE[..2000], BASIC, NEW, OLD, TWO, RESULT, ITERATIONS, SILENT, DISABLED, FAIL_RUN, TRACE] {
        for copy in damaged(bytes, 300) {
            let _ = read(&[&copy]);
        }
    }
}

#[test]
fn five_executions_on_a_real_npu_say_how_busy_it_was() {
    // What stands above the operations in samples/onnxruntime/qnn-ep-profiling-detailed-resnet50.csv: ResNet-50, Windows on a Snapdragon.
    let reading = read(&[include_bytes!("../../fixtures/profile-phone-events.csv")]).unwrap();
    let npu = reading.npu.unwrap();
    // By hand: 1359 + 982 + 970 + 949 + 945, 9308 + 5717 + 5680 + 5613 + 5592, 7784 + 5567 + 5500 + 5444 + 5436, 4334 + 2268 + 2189 + 2162 + 2165.
    let sums = [npu.accelerator_us, npu.wall_us, npu.rpc_us, npu.qnn_accelerator_us].map(|total| total.map(|t| (t.sum, t.n)));
    assert_eq!(sums, [5205.0, 31_910.0, 29_731.0, 13_118.0].map(|sum| Some((sum, 5))));
    // 665 + 212 + 173 + 154 + 153, and 2985 + 56 + 33 + 23 + 20.
    assert_eq!((npu.vtcm_acquire_us.unwrap().sum, npu.power_acquire_us.unwrap().sum), (1357.0, 3117.0));
    assert_eq!((npu.yields.unwrap().sum, npu.hvx_threads), (0.0, Some(4)));
    // 5205 / 31910, and (29731 - 13118) / 31910: most of such a small graph's time is the way to it.
    assert!((npu.duty.unwrap().ratio().unwrap() - 0.163_115).abs() < 1e-6);
    assert!((npu.rpc_overhead.unwrap().ratio().unwrap() - 0.520_621).abs() < 1e-6);
}

/// Our own session with two of four nodes on the CPU; the NPU's stand in the trace as two graphs.
#[test]
fn a_trace_tells_where_each_node_ran() {
    let reading = read(&[include_bytes!("../../fixtures/trace-two-units.json")]).unwrap();
    let units: Vec<_> = reading.layers.iter().map(|layer| (layer.op_type.as_deref(), layer.unit.as_deref(), layer.value)).collect();
    assert_eq!(units[1..3], [(Some("Mod"), Some("cpu"), Some(28.0)), (Some("Hardmax"), Some("cpu"), Some(10.0))]);
    assert_eq!((units.len(), units[0].1, units[3].1), (4, Some("npu"), Some("npu")));
    assert_warns(&reading, &["2 of 4 node runs were on the CPU"]);
}
