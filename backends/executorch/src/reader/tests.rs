//! The fixtures are real outputs but for `made.etdp`, which make_etdump.py wrote, and `inspector.tsv`; see the crate's README.

use bench_backend_api::{FailureKind, Reader, Reading, SourceFile, text::damaged};

use super::ExecuTorchReader;

fn fixture(name: &str) -> SourceFile {
    let path = format!("{}/fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
    SourceFile { name: name.to_owned(), bytes: std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}")) }
}

fn read(name: &str) -> Reading {
    ExecuTorchReader.read(&[fixture(name)]).unwrap_or_else(|error| panic!("{error}"))
}

fn metric(reading: &Reading, name: &str) -> Option<f64> {
    reading.measurements[0].metrics.get(name)?.as_f64()
}

#[test]
fn the_statistics_of_a_language_model() {
    let reading = read("llama-main.txt");
    assert_eq!((reading.measurements.len(), reading.measurements[0].label.as_str()), (1, "query 1"));
    // ...803162 - ...802998, ...802998 - ...800721, ...804187 - ...802998 in ms.
    let times = ["ttft_ms", "load_ms", "e2e_ms", "prompt_tokens", "generated_tokens"].map(|name| metric(&reading, name).unwrap() as u64);
    assert_eq!(times, [164, 2277, 1189, 14, 54]);
    // 14 tokens in 164 ms, as the tool prints it; 53 steps in 1025 ms, where it prints 54.
    assert!((metric(&reading, "prefill_tok_s").unwrap() - 85.365_854).abs() < 1e-5);
    assert!((metric(&reading, "decode_tok_s").unwrap() - 51.707_317).abs() < 1e-5);
    assert_eq!(reading.measurements[0].reported["aggregate_sampling_time_ms"], 19);
    // The tokenizer's first line is its attempt at another format.
    assert!(reading.failure.is_none() && reading.warnings.is_empty(), "{reading:?}");
}

#[test]
fn a_model_can_not_write_its_own_statistics() {
    let mut file = fixture("llama-main.txt");
    file.bytes.splice(0..0, b"PyTorchObserver {\"prompt_tokens\":1}\nLoading of method forward failed with status 0x1\n".to_vec());
    let reading = ExecuTorchReader.read(&[file]).unwrap();
    assert_eq!((metric(&reading, "prompt_tokens"), reading.failure), (Some(14.0), None));
    let cut = SourceFile { name: "c".into(), bytes: b"PyTorchObserver {\"prompt_tokens\":14,\"gen".to_vec() };
    let reading = ExecuTorchReader.read(&[cut]).unwrap();
    assert!(reading.warnings[0].contains("line 1: the statistics are not whole"), "{:?}", reading.warnings);
}

#[test]
fn lines_of_the_runners() {
    let reading = read("executor-android.txt");
    assert_eq!((metric(&reading, "latency_ms"), &reading.measurements[0].reported["executions"]), (Some(10.966_24), &100.into()));
    assert_eq!(metric(&read("init-time.txt"), "load_ms"), Some(383.0));
    let events = read("init-events.txt");
    assert_eq!(metric(&events, "load_ms"), Some(53.819));
    assert_eq!(events.measurements[0].reported["RPC (load binary) time (us)"], 16303);
    let nothing = read("executor-etdump.txt");
    assert!(nothing.measurements.is_empty() && nothing.failure.is_none() && nothing.warnings[0].contains("no time"), "{nothing:?}");
}

#[test]
fn an_etdump_gives_operators_and_operations_of_its_delegate() {
    let reading = read("made.etdp");
    assert_eq!((metric(&reading, "latency_ms"), metric(&reading, "load_ms")), (Some(1.0), Some(5.0)));
    let layers: Vec<_> = reading
        .layers
        .iter()
        .map(|l| (l.graph.as_str(), l.index, l.name.as_str(), l.value, l.value_unit.as_str(), l.unit.as_deref()))
        .collect();
    assert_eq!(
        layers,
        [
            // 60 us and 62 us.
            ("Execute", 0, "native_call_embedding.out #0", Some(61.0), "us", Some("cpu")),
            // 7000 and 9000 cycles.
            ("delegate of #1", 0, "layers.0.q:OpId_12", Some(8000.0), "cycles", Some("npu")),
            ("delegate of #1", 1, "Output OpId_3", Some(300.0), "cycles", Some("npu")),
            // 4000 of what, nobody says.
            ("delegate of #1", 2, "delegate event 42", None, "us", None),
            ("Execute", 1, "DELEGATE_CALL #1", Some(900.0), "us", None),
            ("Execute", 2, "native_call_add.out #2", Some(5.0), "us", Some("cpu")),
        ]
    );
    assert!(reading.layers.iter().all(|l| l.count == Some(2) && l.method == "etdump"));
    assert_eq!(reading.layers[0].op_type.as_deref(), Some("embedding.out"));
    assert_eq!(reading.layers[3].details["ticks_of_unknown_unit"], "4000");
    // Without the size before it.
    let bare = SourceFile { name: "b".into(), bytes: fixture("made.etdp").bytes[4..].to_vec() };
    assert_eq!(ExecuTorchReader.read(&[bare]).unwrap().layers, reading.layers);
}

#[test]
fn the_inspectors_table() {
    let reading = read("inspector.tsv");
    assert_eq!((metric(&reading, "latency_ms"), metric(&reading, "load_ms")), (Some(1.5), Some(0.038_477)));
    let layers: Vec<_> = reading.layers.iter().map(|l| (l.name.as_str(), l.op_type.as_deref(), l.value, l.unit.as_deref())).collect();
    assert_eq!(
        layers,
        [
            ("native_call_convolution.out", Some("aten.convolution.default"), Some(958.706), Some("cpu")),
            ("native_call_relu.out", Some("aten.relu.default"), Some(10.483), Some("cpu")),
            ("Input OpId_2 (cycles)", None, None, Some("npu")),
            ("DELEGATE_CALL", None, Some(500.0), Some("npu")),
        ]
    );
    assert!(reading.warnings[0].contains("1 rows are cycles"), "{:?}", reading.warnings);
    let table = String::from_utf8(fixture("inspector.tsv").bytes).unwrap();
    for separator in [",", "|"] {
        let bytes = table.replace('\t', separator).into_bytes();
        assert_eq!(ExecuTorchReader.read(&[SourceFile { name: "i".into(), bytes }]).unwrap().layers, reading.layers, "{separator}");
    }
}

#[test]
fn failures_are_told() {
    for (name, kind, words) in [
        ("fail-no-snapdragon.txt", FailureKind::Runtime, "No Snapdragon SOC detected"),
        ("fail-open-session.txt", FailureKind::Device, "0x80000416"),
    ] {
        let failure = read(name).failure.unwrap_or_else(|| panic!("{name}: no failure"));
        assert!(failure.kind == kind && failure.message.contains(words) && failure.hint.is_some(), "{name}: {failure}");
    }
}

#[test]
fn what_is_unreadable_says_what_is_read() {
    for (bytes, words) in [(&b""[..], "empty"), (b"hello\n", "line 1: not the output"), (b"....ED00....", "damaged ETDump")] {
        let error = ExecuTorchReader.read(&[SourceFile { name: "f".to_owned(), bytes: bytes.to_vec() }]).expect_err("unreadable");
        assert!(error.message.contains(words) && error.message.contains("bench parse executorch"), "{error}");
    }
    assert!(ExecuTorchReader.read(&[]).is_err());
}

#[test]
fn a_log_of_a_failure_makes_no_other_file_one_of_ours() {
    let log = fixture("fail-open-session.txt");
    let other = SourceFile { name: "other".to_owned(), bytes: b"hello\n".to_vec() };
    assert!(ExecuTorchReader.read(std::slice::from_ref(&log)).unwrap().failure.is_some());
    assert_eq!(ExecuTorchReader.read(&[log, other]).unwrap_err().file, "other");
}

#[test]
fn no_bytes_make_it_panic() {
    for entry in std::fs::read_dir(format!("{}/fixtures", env!("CARGO_MANIFEST_DIR"))).unwrap().flatten() {
        let file = fixture(&entry.file_name().to_string_lossy());
        for copy in damaged(&file.bytes, 100) {
            let Ok(reading) = ExecuTorchReader.read(&[SourceFile { name: file.name.clone(), bytes: copy }]) else { continue };
            for value in reading.measurements.iter().flat_map(|m| m.metrics.values()) {
                assert!(value.as_f64().is_some_and(|v| v.is_finite() && v > 0.0), "{value}");
            }
            assert!(reading.layers.iter().all(|l| l.value.is_none_or(|v| v.is_finite() && v >= 0.0)));
        }
    }
}
