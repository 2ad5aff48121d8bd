use bench_backend_api::{FailureKind, Reader, Reading, SourceFile, text::damaged};
use serde_json::Value;

use super::QnnReader;

const DETAILED: &[u8] = include_bytes!("../../fixtures/viewer-detailed.txt");
const MARKDOWN: &[u8] = include_bytes!("../../fixtures/viewer-markdown.txt");
const LINTING: &[u8] = include_bytes!("../../fixtures/viewer-linting.txt");
const PER_RUN: &[u8] = include_bytes!("../../fixtures/per-run.txt");
const CSV: &[u8] = include_bytes!("../../fixtures/profile-netrun.csv");
const THROUGHPUT: &[u8] = include_bytes!("../../fixtures/throughput-segfault.txt");
const NETRUN_OK: &[u8] = include_bytes!("../../fixtures/netrun-ok.txt");
const NETRUN_FAIL: &[u8] = include_bytes!("../../fixtures/netrun-fail.txt");
const WRONG_CONTEXT: &[u8] = include_bytes!("../../fixtures/throughput-wrong-context.txt");
const VALIDATOR: &[u8] = include_bytes!("../../fixtures/validator-fail.txt");
const RESNET: &[u8] = include_bytes!("../../fixtures/qhas-resnet50.json");
const QHAS: &[u8] = include_bytes!("../../fixtures/qhas.json");

fn read(files: &[&[u8]]) -> Result<Reading, String> {
    let files: Vec<SourceFile> =
        files.iter().enumerate().map(|(index, bytes)| SourceFile { name: format!("dir/file{index}.txt"), bytes: bytes.to_vec() }).collect();
    QnnReader.read(&files).map_err(|error| error.to_string())
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

fn ops(reading: &Reading) -> Vec<(u32, &str, Option<f64>)> {
    reading.layers.iter().map(|layer| (layer.index, layer.name.as_str(), layer.value)).collect()
}

#[test]
fn viewer_text_with_operations() {
    let reading = read(&[DETAILED]).unwrap();
    let expected = [("latency_ms", 12.5), ("latency_min_ms", 12.0), ("throughput_inf_s", 64.5161), ("load_ms", 41.25)];
    assert_metrics(&reading, "prompt_ar128_cl2048", &expected);
    let expected = [
        (0, "Input OpId_2", Some(500.0)),
        (1, "/layer.0/attn/MatMul, fused:OpId_21", Some(6e6)),
        (2, "/layer.0/attn/Reshape:OpId_24", Some(0.0)),
        (3, "/layer.0/mlp/MatMul:OpId_30", None),
    ];
    assert_eq!(ops(&reading), expected);
    let layer = &reading.layers[1];
    assert_eq!(
        (layer.value_unit.as_str(), layer.phase.as_str(), layer.unit.as_deref(), layer.count),
        ("cycles", "prefill", Some("npu"), None)
    );
    assert_warns(&reading, &["`3,000,000` is not a plain number"]);
    assert_eq!(reading.measurements[0].reported["Max NetRun (us)"], 14000);
}

#[test]
fn viewer_text_that_went_through_markdown() {
    let reading = read(&[MARKDOWN]).unwrap();
    assert_metrics(&reading, "net", &[("latency_ms", 4.0), ("load_ms", 200.0)]);
    // NetRun has a thousands comma: it is refused, and the next time is taken and named.
    assert_metrics(&reading, "head", &[("latency_ms", 1.4)]);
    // Of two graphs the throughput is nobody's alone.
    assert_metrics(&reading, "inference", &[("throughput_inf_s", 150.25)]);
    assert_warns(&reading, &["`1,500` is not a plain number", "QNN (execute) time"]);
}

#[test]
fn linting_and_single_runs() {
    let linting = read(&[LINTING]).unwrap();
    assert_eq!(ops(&linting), [(0, "Input OpId_2", Some(100.0)), (1, "conv:OpId_21", Some(1400.0))]);
    assert_eq!((linting.layers[0].method.as_str(), linting.layers[0].phase.as_str()), ("qnn-linting", "decode"));
    let details = |at: usize| linting.layers[at].details.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(";");
    assert_eq!(details(0), "overlap_cycles=7;overlap_wait_cycles=3;resources=HVX, DMA;wait_cycles=32");
    assert_eq!((details(1).as_str(), linting.layers[1].graph_total), ("resources=HVX, HMX, DMA;wait_cycles=0", Some(1500.0)));
    let runs = read(&[PER_RUN]).unwrap();
    // (3 + 2) / 2; the operations are means of two executions: (10 + 20) / 2, (60 + 30) / 2.
    assert_metrics(&runs, "inference", &[("latency_ms", 2.5), ("latency_min_ms", 2.0), ("latency_p50_ms", 2.5)]);
    assert_eq!(ops(&runs), [(0, "Input OpId_2", Some(15.0)), (1, "conv:OpId_16", Some(45.0))]);
    assert_eq!(runs.layers[0].count, Some(2));
}

#[test]
fn csv_with_commas_in_identifiers() {
    let reading = read(&[CSV]).unwrap();
    // NetRun of both executions: (2.1 + 1.9) / 2; its own initialisation and its own throughput.
    let expected = [("latency_ms", 2.0), ("latency_min_ms", 1.9), ("latency_p50_ms", 2.0), ("load_ms", 52.0), ("throughput_inf_s", 500.0)];
    assert_metrics(&reading, "inference", &expected);
    assert_eq!(ops(&reading), [(0, "add, then mul:OpId_7", Some(200.0)), (1, "relu:OpId_8", None)]);
    assert_warns(&reading, &["line 15: not a row"]);
    // Without the last column the comma belongs to the identifier too.
    let seven =
        String::from_utf8_lossy(CSV).replace(",ONNX Source Ops", "").replace(",Add_1|Mul_2", "").replace("(cycles),\n", "(cycles)\n");
    assert_eq!(ops(&read(&[seven.as_bytes()]).unwrap()), ops(&reading));
    // Graphs of several files are told apart by the files' names.
    let both = read(&[CSV, CSV]).unwrap();
    let labels: Vec<&str> = both.measurements.iter().map(|measurement| measurement.label.as_str()).collect();
    assert_eq!((labels, both.layers[3].graph.as_str()), (vec!["file0", "file1"], "file1"));
}

#[test]
fn throughput_table_with_a_crash_behind_it() {
    let reading = read(&[THROUGHPUT]).unwrap();
    // 2000 executions in 5 s.
    assert_metrics(&reading, "resnet", &[("latency_ms", 2.48), ("latency_min_ms", 2.3), ("throughput_inf_s", 400.0)]);
    assert_eq!((reading.measurements.len(), reading.failure.clone()), (1, None));
    assert_warns(&reading, &["not four plain numbers", "Segmentation fault"]);
    let old = b"PerformanceMonitor\n Name: Time(us)\n t1:graphExecute:  10 2229 1905 3315\n";
    assert_metrics(&read(&[old]).unwrap(), "inference", &[("latency_ms", 2.229), ("latency_min_ms", 1.905)]);
}

#[test]
fn qhas_summary() {
    let reading = read(&[QHAS]).unwrap();
    assert_metrics(&reading, "net_0", &[("latency_ms", 1.25), ("throughput_inf_s", 800.0)]);
    assert_eq!(ops(&reading), [(0, "conv_1", Some(900.0)), (1, "flat", Some(0.0))]);
    assert_eq!(reading.layers[0].op_type.as_deref(), Some("Conv2d"));
    assert!(reading.dram.is_empty());
}

#[test]
fn qhas_of_a_real_network() {
    let reading = read(&[RESNET]).unwrap();
    let label = "QNNExecutionProvider_QNN_16832493022758615247_1_0";
    // 26634240 bytes read and 4096 written in 1343 us are 19.835 GB/s.
    let metrics =
        [("latency_ms", 1.343), ("throughput_inf_s", 744.601_638_123_603_8), ("dram_read_mb", 26.634_24), ("dram_write_mb", 0.004_096)];
    let gb_s = 26_638_336.0 / 1_343_000.0;
    assert_metrics(&reading, label, &[&metrics[..], &[("dram_gb_s", gb_s)]].concat());
    assert_warns(&reading, &["the summary lists 10 of the graph's 86 operations"]);
    let conv = &reading.layers[0];
    assert_eq!((conv.name.as_str(), conv.value), ("/resnet/embedder/embedder/convolution/Conv_token_1_2", Some(671_293.0)));
    let details: Vec<_> = conv.details.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    assert_eq!(
        details,
        [
            ("dominant_path_cycles", "141990"),
            ("dram_read_bytes", "18432"),
            ("dram_write_bytes", "0"),
            ("htp_ops", "52"),
            ("vtcm_read_bytes", "13103104"),
            ("vtcm_write_bytes", "8275968")
        ]
    );
    // Without operations, their types: five are listed, the most of it in convolutions.
    let types = String::from_utf8_lossy(RESNET).replace("\"qnn_op_instances_nodes\"", "\"other\"");
    let types = read(&[types.as_bytes()]).unwrap();
    assert_eq!((types.layers.len(), types.layers[0].name.as_str(), types.layers[0].value), (5, "Conv2d", Some(2_222_294.0)));
    assert_eq!(types.layers[0].method, "qnn-optrace-by-type");
}

#[test]
fn net_run_prints_no_times() {
    let reading = read(&[NETRUN_OK]).unwrap();
    assert_eq!((reading.measurements.len(), reading.failure.clone()), (0, None));
    assert_warns(&reading, &["qnn-profile-viewer"]);
    let both = read(&[NETRUN_OK, DETAILED]).unwrap();
    assert_eq!((both.measurements.len(), both.failure), (1, None));
}

#[test]
fn failures() {
    let cut = &NETRUN_OK[..NETRUN_OK.len() - 30];
    let cases: [(&str, &[u8], FailureKind, &[&str]); 6] = [
        ("transport", NETRUN_FAIL, FailureKind::Device, &["4000", "14001", "Device Creation failure"]),
        ("context", WRONG_CONTEXT, FailureKind::Model, &["Could not create context from binary", "cpu_ctx does not exist"]),
        ("validator", VALIDATOR, FailureKind::Device, &["-6", "NOT supported"]),
        ("cut", cut, FailureKind::Runtime, &["Finished Executing Graphs"]),
        ("crash", b"qnn-net-run pid:7\nExecuting Graphs\nSegmentation fault\n", FailureKind::Runtime, &["Segmentation fault"]),
        ("binary", b"[ ERROR ] QnnDsp <E> Failed to create context from binary with err 0x138d\n", FailureKind::Model, &["0x138d"]),
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
}

#[test]
fn other_files_are_refused() {
    let cases: [(&str, &[u8], &str); 5] = [
        ("empty", b"", "empty"),
        ("other tool", b"| model | size | t/s |", "line 1"),
        ("cut JSON", &QHAS[..80], "line 1"),
        ("other JSON", b"{}", "QHAS"),
        ("binary log", &[0; 99], "qnn-profile-viewer"),
    ];
    for (name, bytes, words) in cases {
        let error = read(&[bytes]).unwrap_err();
        assert!(error.contains(words), "{name}: {error}");
    }
}

#[test]
fn codes_are_found_in_any_line() {
    use super::codes::code_in;
    let cases = [
        ("context index[568761.916473] qcom,fastrpc-cb a300000.remoteproc:glink = 0 : err 5005", Some("5005")),
        ("fastrpc_apps_user.c:4247: Error 0x80000406: open_dev (-1) failed", Some("0x80000406")),
        ("Failed to parse default platform info: 14001", Some("14001")),
        ("Failed to get context binary size with err 0x138b", None),
        ("QNN graph execute error. Error code: 6001", Some("6001")),
        ("PF_VALIDATOR: ERROR: -6 . Error while executing", Some("-6")),
        ("Failed to load /data/14001/libQnnHtp.so", None),
        ("Returned Status = 0", None),
    ];
    for (line, code) in cases {
        assert_eq!(code_in(line), code, "{line}");
    }
}

#[test]
fn nothing_panics() {
    for bytes in [DETAILED, MARKDOWN, LINTING, PER_RUN, CSV, THROUGHPUT, NETRUN_OK, NETRUN_FAIL, VALIDATOR, QHAS] {
        for copy in damaged(bytes, 300) {
            let _ = read(&[&copy]);
        }
    }
}

/// What a reading says of the NPU: accelerator, RPC and wall in us with their executions, VTCM acquire and yields as means, threads.
fn npu(reading: &Reading) -> [Option<f64>; 6] {
    let npu = reading.npu.as_ref().expect("says something of the NPU");
    let mean = |total: Option<bench_backend_api::npu::Total>| total.and_then(|t| t.mean());
    [
        mean(npu.accelerator_us),
        mean(npu.rpc_us),
        mean(npu.wall_us),
        mean(npu.vtcm_acquire_us),
        mean(npu.yields),
        npu.hvx_threads.map(f64::from),
    ]
}

#[test]
fn the_viewer_says_how_busy_the_npu_was() {
    // A phone with QAIRT 2.13, `--profiling_level basic` (samples/qnn/profile-viewer-basic-unmangled-reconstruction.txt): figures as printed there.
    let text = b"Execute Stats (Average):\n------------------------\nTotal Inference Time:\n---------------------\nGraph 0 (model):\n    NetRun:  2952 us\n    Backend (Number of HVX threads used): 4 count\n    Backend (RPC (execute) time): 2920 us\n    Backend (QNN accelerator (execute) time): 2600 us\n    Backend (Accelerator (execute) time): 2492 us\n    Backend (QNN (execute) time): 2949 us\n";
    let reading = read(&[text]).unwrap();
    assert_eq!(npu(&reading), [Some(2492.0), Some(2920.0), Some(2949.0), None, None, Some(4.0)]);
    let profile = reading.npu.unwrap().times(20);
    let (duty, rpc) = (profile.duty.unwrap(), profile.rpc_overhead.unwrap());
    // By hand: 2492 / 2949, and (2920 - 2600) / 2949.
    assert!((duty.ratio().unwrap() - 0.845_032).abs() < 1e-6 && (rpc.ratio().unwrap() - 0.108_511).abs() < 1e-6, "{duty:?} {rpc:?}");
    assert_eq!((duty.n, duty.part_us), (20, 49_840.0));
    assert!(profile.method.starts_with("means"));
}

#[test]
fn cycles_are_no_time() {
    // samples/qnn/profile-detailed-execute-stat-gist.txt: neither `Accelerator (execute) time` in us nor the whole is in it.
    let text = b"Execute Stats:\nExecute Stat 1\nNumber of HVX threads used : 4 count\nRPC (execute) time : 2717302 us\nQNN accelerator (execute) time : 2714698 us\nNum times yield occured : 0 count\nTime for initial VTCM acquire : 0 us\nTime for HVX + HMX power on and acquire : 0 us\nAccelerator (execute) time (cycles) : 454266408 cycles\nInput OpId_2 (cycles) : 0 cycles\n";
    let reading = read(&[text]).unwrap();
    assert_eq!(npu(&reading), [None, Some(2_717_302.0), None, Some(0.0), Some(0.0), Some(4.0)]);
    let profile = reading.npu.unwrap();
    assert_eq!((profile.duty, profile.rpc_overhead, profile.qnn_accelerator_us.unwrap().sum), (None, None, 2_714_698.0));
}

#[test]
fn a_loggers_milliseconds_are_read() {
    // samples/qnn/backend-profiling-events-ggml-qnn.txt, an 8 Gen 2.
    let text = b"[profiler][x]event[0]: Number of HVX threads used, count: 4\n[profiler][x]event[1]: RPC (execute) time, duration: 29.409 ms\n[profiler][x]event[2]: QNN accelerator (execute) time, duration: 25.280 ms\n[profiler][x]event[3]: Num times yield occured, count: 0\n[profiler][x]event[4]: Time for initial VTCM acquire, duration: 0.839 ms\n[profiler][x]event[5]: Time for HVX + HMX power on and acquire, duration: 1.121 ms\n";
    let [_, rpc, wall, vtcm, yields, threads] = npu(&read(&[text]).unwrap());
    assert!((rpc.unwrap() - 29_409.0).abs() < 1e-6 && (vtcm.unwrap() - 839.0).abs() < 1e-6);
    assert_eq!((wall, yields, threads), (None, Some(0.0), Some(4.0)));
}

#[test]
fn a_profile_without_the_npu_says_nothing_of_it() {
    assert_eq!(read(&[MARKDOWN]).unwrap().npu, None);
    // Two executions with wall times of 2000 and 1800 us, and cycles.
    assert_eq!(read(&[CSV]).unwrap().npu, None);
}

#[test]
fn in_pieces_a_table_says_the_same() {
    let whole = read(&[CSV]).unwrap();
    let head = std::str::from_utf8(CSV).unwrap();
    let pieces = QnnReader.stream("dir/file0.txt", head, &mut std::io::BufReader::with_capacity(7, CSV)).unwrap().unwrap();
    assert_eq!(pieces, whole);
    assert!(QnnReader.stream("x", std::str::from_utf8(DETAILED).unwrap(), &mut &DETAILED[..]).is_none(), "the viewer's text is small");
}

#[test]
fn what_has_no_bound_is_cut_and_said() {
    // 300 graphs of one execution each: the first 256 are kept.
    let header = "Msg Timestamp,Message,Time,Unit of Measurement,Timing Source,Event Level,Event Identifier\n".to_owned();
    let graph =
        |n| format!("0,EXECUTE,1000,US,BACKEND,ROOT,QNN (execute) time\n0,NODE,{n},CYCLES,BACKEND,SUB-EVENT,op{n}:OpId_1 (cycles)\n");
    let text: String = std::iter::once(header).chain((0..300).map(graph)).collect();
    let reading = read(&[text.as_bytes()]).unwrap();
    assert_eq!((reading.measurements.len(), reading.layers.len()), (256, 256));
    assert_warns(&reading, &["44 rows or executions are left out"]);
}
