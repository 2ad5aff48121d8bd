//! The fixtures are real outputs; where each is from stands in the crate's README.

use bench_backend_api::{FailureKind, Layer, Reader, Reading, SourceFile, text::damaged};

use super::SnpeReader;

fn fixture(name: &str) -> SourceFile {
    let path = format!("{}/fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
    SourceFile { name: name.to_owned(), bytes: std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}")) }
}

fn read(name: &str) -> Reading {
    SnpeReader.read(&[fixture(name)]).unwrap_or_else(|error| panic!("{error}"))
}

fn text(text: &str) -> Reading {
    SnpeReader.read(&[SourceFile { name: "t".to_owned(), bytes: text.into() }]).unwrap_or_else(|error| panic!("{error}"))
}

fn metric(reading: &Reading, at: usize, name: &str) -> Option<f64> {
    reading.measurements[at].metrics.get(name)?.as_f64()
}

fn sum<'a>(layers: impl IntoIterator<Item = &'a Layer>) -> f64 {
    layers.into_iter().filter_map(|layer| layer.value).sum()
}

#[test]
fn layers_of_the_dsp_are_cycles_with_their_names() {
    let reading = read("diagview-dsp-int8-2.37.txt");
    assert_eq!((metric(&reading, 0, "latency_ms"), metric(&reading, 0, "load_ms")), (Some(1.328), Some(158.658)));
    assert_eq!(reading.layers.len(), 8);
    // The subnet's own total, which the tool prints above them.
    assert!((sum(&reading.layers) - 13541.0).abs() < 0.5, "2142 + 1252 + 510 + 1447 + 2152 + 6038");
    assert_eq!(reading.measurements[0].reported["Subnet 0 (DSP) (cycles)"], 13545);
    assert!(reading.layers.iter().all(|layer| layer.graph_total == Some(13545.0)));
    let softmax = &reading.layers[6];
    assert_eq!((softmax.name.as_str(), softmax.unit.as_deref()), ("sequential_1/dense_2_1/Softmax:OpId_42", Some("npu")));
    assert_eq!((softmax.value, softmax.value_unit.as_str(), softmax.method.as_str()), (Some(2152.0), "cycles", "snpe-diagview"));
    assert_eq!((reading.layers[0].name.as_str(), reading.layers[1].value), ("Input OpId_2", Some(0.0)));
    assert!(reading.warnings.is_empty() && reading.failure.is_none(), "{:?}", reading.warnings);
}

#[test]
fn layers_of_the_cpu_are_us() {
    let reading = read("diagview-cpu-fp32-2.37.txt");
    assert_eq!((metric(&reading, 0, "latency_ms"), reading.layers.len()), (Some(0.069), 6));
    // 23 + 1 + 27 + 1 + 1 + 1 of the 61 us of the subnet.
    assert!((sum(&reading.layers) - 54.0).abs() < 1e-9);
    assert!(reading.layers.iter().all(|l| l.value_unit == "us" && l.unit.as_deref() == Some("cpu")));
    assert_eq!((reading.layers[5].index, reading.layers[5].name.as_str()), (5, "_sequential_1/dense_2_1/Softmax"));
    assert!(!reading.measurements[0].reported.contains_key("RPC Init Time ()"), "0 without a unit is what does not apply");
}

#[test]
fn the_older_text_has_no_names_and_may_have_gaps() {
    let reading = read("diagview-cpu-2.9.txt");
    assert_eq!((metric(&reading, 0, "latency_ms"), metric(&reading, 0, "load_ms")), (Some(26.458), Some(48.856)));
    let layers: Vec<_> = reading.layers.iter().map(|l| (l.index, l.name.as_str(), l.value)).collect();
    assert_eq!(layers, [(0, "layer 0", Some(1419.0)), (100, "layer 100", Some(21.0))]);
    assert!(reading.warnings.iter().all(|w| w.ends_with("is not whole (`..`)")) && reading.warnings.len() == 2, "{:?}", reading.warnings);
    let none = text("Average SNPE Statistics:\nTotal Inference Time: 5 us\nLayer Times:\n0: 0 NONE : DSP\n1: 7 us : CPU\n");
    assert_eq!((none.layers[0].value, none.layers[0].unit.as_deref()), (None, Some("npu")));
    assert_eq!(none.warnings, ["1 of 2 layers ran on the CPU"]);
}

#[test]
fn throughput_is_counted_and_not_believed() {
    let reading = read("throughput-net-run-dsp-2.9.txt");
    assert_eq!(reading.measurements.len(), 1);
    assert_eq!(reading.measurements[0].label, "thread 0 - dsp_fixed8_tf");
    // 15803 in 9.989524 s.
    assert!((metric(&reading, 0, "throughput_inf_s").unwrap() - 1_581.957_256).abs() < 1e-5);
    assert_eq!(metric(&reading, 0, "load_ms"), Some(657.077));
    assert!(reading.warnings.is_empty(), "{:?}", reading.warnings);
    // Its own line does not agree with itself: 1077 in 9.998828 s are 107.71, not 120.149.
    let reading = read("throughput-net-run-gpu-2.9.txt");
    assert!((metric(&reading, 0, "throughput_inf_s").unwrap() - 107.712_624).abs() < 1e-5);
    assert!(reading.measurements[0].reported["infs/sec"] == 120.149 && reading.warnings.len() == 1, "{:?}", reading.warnings);
    let two = "[Thread 0 - dsp] 10 infs/sec - Number of images processed: 10 - Real time: 1000000 microseconds - Batch : 1\n\
               [Thread 1 - dsp] 12 infs/sec - Number of images processed: 12 - Real time: 1000000 microseconds - Batch : 1\n";
    assert!(text(two).warnings.iter().any(|w| w.contains("cut off")));
    let both = text(&format!("{two}Total throughput: 22 infs/sec     \n"));
    assert_eq!((both.measurements.len(), metric(&both, 2, "throughput_inf_s")), (3, Some(22.0)));
}

#[test]
fn every_runtime_of_snpe_bench_is_a_measurement_with_its_layers() {
    let reading = read("snpe-bench-1.63.csv");
    let labels: Vec<&str> = reading.measurements.iter().map(|m| m.label.as_str()).collect();
    assert_eq!(labels, ["GPU", "GPU_ub_float", "CPU", "CPU_ub_float", "DSP", "DSP_ub_float", "DSP_ub_tf8"]);
    assert_eq!((metric(&reading, 0, "latency_ms"), metric(&reading, 4, "latency_min_ms")), (Some(99.115), Some(105.284)));
    assert_eq!((metric(&reading, 6, "load_ms"), &reading.measurements[4].reported["runtime"]), (Some(242.51), &"CPU|DSP".into()));
    assert_eq!(reading.layers.len(), 7 * 203);
    // Sums by a spreadsheet's rules (Python's csv module).
    let of = |graph: &str| sum(reading.layers.iter().filter(|l| l.graph == graph)) as u64;
    assert_eq!(["GPU", "CPU", "DSP", "DSP_ub_tf8"].map(of), [81913, 559_262, 89482, 89096]);
    let conv = reading.layers.iter().find(|l| l.graph == "DSP" && l.index == 1).unwrap();
    assert_eq!((conv.name.as_str(), conv.op_type.as_deref(), conv.unit.as_deref()), ("Conv_0", Some("convolutional"), Some("npu")));
    assert_eq!((conv.value, conv.count), (Some(4095.0), Some(2)));
    assert!(reading.warnings.is_empty(), "{:?}", reading.warnings);
}

#[test]
fn failures_are_told() {
    for (name, kind, words) in [
        ("fail-dlc.txt", FailureKind::Model, "Incomplete DLC"),
        ("fail-validator.txt", FailureKind::Device, "testsig"),
        ("fail-segv.txt", FailureKind::Runtime, "exit status 139"),
    ] {
        let failure = read(name).failure.unwrap_or_else(|| panic!("{name}: no failure"));
        assert!(failure.kind == kind && failure.message.contains(words) && failure.hint.is_some(), "{name}: {failure}");
    }
    // A crash at the end, after whole results.
    let files = [fixture("throughput-net-run-dsp-2.9.txt"), fixture("fail-segv.txt")];
    let reading = SnpeReader.read(&files).unwrap();
    assert!(reading.failure.is_none() && !reading.warnings.is_empty(), "{reading:?}");
}

#[test]
fn what_is_unreadable_says_what_is_read() {
    for (bytes, words) in [
        (&b""[..], "empty"),
        (b"hello\n", "line 1: not the output"),
        (b"DIAG\0\0\0\0\0\0\0\0", "snpe-diagview --input_log"),
        (b"{\"a\": 1}", "line 1: not the output"),
    ] {
        let error = SnpeReader.read(&[SourceFile { name: "f".to_owned(), bytes: bytes.to_vec() }]).expect_err("unreadable");
        assert!(error.message.contains(words) && error.message.contains("bench parse snpe"), "{error}");
    }
    assert!(SnpeReader.read(&[]).is_err());
}

#[test]
fn a_log_of_a_failure_makes_no_other_file_one_of_ours() {
    let log = fixture("fail-dlc.txt");
    let other = SourceFile { name: "other".to_owned(), bytes: b"hello\n".to_vec() };
    assert!(SnpeReader.read(std::slice::from_ref(&log)).unwrap().failure.is_some());
    assert_eq!(SnpeReader.read(&[log, other]).unwrap_err().file, "other");
}

#[test]
fn no_bytes_make_it_panic() {
    for entry in std::fs::read_dir(format!("{}/fixtures", env!("CARGO_MANIFEST_DIR"))).unwrap().flatten() {
        let mut file = fixture(&entry.file_name().to_string_lossy());
        // Of the long table its settings are left out, and what repeats itself.
        if let Some(at) = file.bytes.windows(5).position(|w| w == b"\n,, ,") {
            file.bytes.drain(..=at);
        }
        file.bytes.truncate(1200);
        for copy in damaged(&file.bytes, 100) {
            let Ok(reading) = SnpeReader.read(&[SourceFile { name: file.name.clone(), bytes: copy }]) else { continue };
            for value in reading.measurements.iter().flat_map(|m| m.metrics.values()) {
                assert!(value.as_f64().is_some_and(|v| v.is_finite() && v > 0.0), "{value}");
            }
            assert!(reading.layers.iter().all(|l| l.value.is_none_or(|v| v.is_finite() && v >= 0.0)));
        }
    }
}
