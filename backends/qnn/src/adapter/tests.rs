mod device;

use super::*;
use bench_backend_api::{Artifact, Ended, Evidence, Found, GraphTime, Model, Quant, Setting, Workload};

fn cell(perf_profile: Option<&str>) -> Cell {
    Cell {
        backend: "qnn".into(),
        model: Model { name: "m".into(), context: 128, chunk: Some(32), geometry: None },
        quant: Quant::Fp16,
        workload: Workload::Generate { prompt_tokens: 32, gen_tokens: 8 },
        unit: Unit::Npu,
        axes: perf_profile.map(|p| (Axis::PerfProfile, Setting::Asked(p.into()))).into_iter().collect(),
    }
}

fn artifact() -> Artifact {
    let graph = |tokens: u32, binary: &str| {
        json!({"tokens": tokens, "binary": binary, "inputs": {"input_ids": {"dtype": "int32", "shape": [1, tokens]}},
            "outputs": {"logits": {"dtype": "float16", "shape": [1, tokens, 8]}}})
    };
    let meta = json!({"graphs": {"prefill": graph(32, "prefill.bin"), "decode": graph(1, "decode.bin")}});
    Artifact { files: vec!["prefill.bin".into(), "decode.bin".into()], meta }
}

fn device(os: &str) -> DeviceFacts {
    DeviceFacts {
        name: "d".into(),
        class: DeviceClass::Pc,
        os: os.into(),
        arch: "x86_64".into(),
        cpu: None,
        cores: None,
        memory_mb: None,
        kernel: None,
        soc_model: 57,
        htp_arch: 75,
        remote: false,
        soc: None,
        vtcm_mb: None,
        no_llm: None,
    }
}

fn installed(without: Option<&Need>) -> Installed {
    let found = |need: Need| {
        let Need::QairtFile { path } = &need else { unreachable!() };
        let found = Found { path: format!("/sdk/{path}"), version: Some("2.99".into()) };
        (need, found)
    };
    Installed(Qnn.needs(&device("linux")).into_iter().filter(|n| Some(n) != without).map(found).collect())
}

fn with_launch<T>(cell: &Cell, pass: Pass, installed: &Installed, os: &str, then: impl FnOnce(&Launch<'_>) -> T) -> T {
    let (artifact, device) = (artifact(), device(os));
    then(&Launch { cell, pass, prompts: &[], texts: &[], artifact: &artifact, installed, device: &device })
}

fn paths() -> Paths {
    Paths { work: "/w".into(), events: "e".into() }
}

#[test]
fn without_the_sdk_the_remedy_is_named() {
    let Availability::Missing { what, remedy } = Qnn.probe(&device("linux"), &Installed::default()) else { panic!() };
    assert!(
        what.contains("bin/x86_64-linux-clang/qnn-net-run") && remedy.contains("QAIRT_SDK_ROOT") && remedy.contains("--accept-licence")
    );
    // Without the extensions library a performance profile would silently be none.
    let Availability::Missing { what, .. } = Qnn.probe(&device("linux"), &installed(Some(&extensions(&device("linux"))))) else { panic!() };
    assert!(what.contains("libQnnHtpNetRunExtensions.so"), "{what}");
    assert_eq!(Qnn.probe(&device("linux"), &installed(None)), Availability::Ready { version: "QAIRT 2.99".into() });
}

#[test]
fn the_commands_of_a_launch() {
    let cell = cell(None);
    let steps = with_launch(&cell, Pass::Measure, &installed(None), "linux", |l| Qnn.steps(l, &paths()));
    let names: Vec<&str> = steps.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["prefill", "prefill-viewer", "decode", "decode-viewer"]);
    let words = steps[2].invocation.args.join(" ");
    let wanted = "--backend /sdk/lib/x86_64-linux-clang/libQnnHtp.so --retrieve_context decode.bin --input_list decode.list --output_dir out_decode \
                  --use_native_input_files --use_native_output_files --profiling_level basic --num_inferences 20 --keep_num_outputs 1 --log_level error";
    assert_eq!(words, wanted);
    assert_eq!(steps[3].invocation.args, ["--input_log", "out_decode/qnn-profiling-data_0.log"]);
    assert_eq!(steps[2].invocation.env["LD_LIBRARY_PATH"], "/sdk/lib/x86_64-linux-clang");
    let profile = with_launch(&cell, Pass::Profile, &installed(None), "linux", |l| Qnn.steps(l, &paths()));
    assert!(profile[0].invocation.args.join(" ").contains("--profiling_level detailed"));
}

#[test]
fn a_users_trace_brings_its_traffic_into_the_profiling_pass() {
    let (cell, installed, device) = (cell(None), installed(None), device("linux"));
    let mut artifact = artifact();
    let name = "traces/decode_qnn_htp_analysis_summary.json";
    artifact.files.push(name.to_owned());
    let launch = |pass| Launch { cell: &cell, pass, prompts: &[], texts: &[], artifact: &artifact, installed: &installed, device: &device };
    for (pass, there) in [(Pass::Profile, true), (Pass::Measure, false)] {
        assert_eq!(Qnn.stage(&launch(pass)).unwrap().iter().any(|f| f.name == name), there);
        assert_eq!(Qnn.steps(&launch(pass), &paths()).iter().any(|s| s.invocation.outputs.iter().any(|o| o == name)), there);
    }
    let mut captured = captured();
    let summary = include_bytes!("../../fixtures/qhas-resnet50.json");
    for name in [name.to_owned(), format!("decode-viewer/{name}")] {
        captured.files.insert(name, summary.to_vec());
    }
    let parsed = Qnn.parse(&captured).unwrap();
    // 26638336 bytes in 1343 us; its graph's name tells no phase, the file's does.
    let [traffic] = parsed.dram.as_slice() else { panic!("{:?}", parsed.dram) };
    assert_eq!((traffic.phase.as_str(), traffic.source.as_str()), ("decode", "qnn-optrace of traces/decode_qnn_htp_analysis_summary.json"));
    assert!((traffic.gb_s() - 19.835_0).abs() < 1e-4 && parsed.layers.iter().all(|l| l.method != "qnn-optrace"), "{traffic:?}");
    captured.files.insert("x_qnn_htp_analysis_summary.json".into(), b"{".to_vec());
    assert!(Qnn.parse(&captured).unwrap().warnings.iter().any(|w| w.contains("not complete JSON")));
}

#[test]
fn a_performance_profile_goes_through_the_extensions() {
    let cell = cell(Some("burst"));
    let files = with_launch(&cell, Pass::Measure, &installed(None), "linux", |l| Qnn.stage(l)).unwrap();
    let bytes = |name: &str| {
        let file = files.iter().find(|f| f.name == name).unwrap_or_else(|| panic!("{name}"));
        let Source::Bytes(bytes) = &file.source else { panic!("{name}") };
        serde_json::from_slice::<Value>(bytes).unwrap()
    };
    let outer = &bytes(CONFIG)["backend_extensions"];
    assert_eq!(outer["shared_library_path"], "/sdk/lib/x86_64-linux-clang/libQnnHtpNetRunExtensions.so");
    let inner = bytes(outer["config_file_path"].as_str().unwrap());
    assert_eq!(inner.pointer("/devices/0/cores/0/perf_profile"), Some(&json!("burst")));
    assert_eq!(inner.pointer("/devices/0/dsp_arch"), Some(&json!("v75")));
    let steps = with_launch(&cell, Pass::Measure, &installed(None), "linux", |l| Qnn.steps(l, &paths()));
    assert!(steps[0].invocation.args.join(" ").ends_with("--config_file net_run.json"));
    let error = with_launch(&cell, Pass::Measure, &installed(Some(&extensions(&device("linux")))), "linux", |l| Qnn.stage(l)).unwrap_err();
    assert!(error.message.contains("libQnnHtpNetRunExtensions.so"), "{error}");
    assert!(matches!(Qnn.axis(Axis::PerfProfile, "brust"), AxisFit::Unsupported(_)));
    assert_eq!(Qnn.axis(Axis::PerfProfile, "burst"), AxisFit::Settable);
}

#[test]
fn binaries_of_another_chip_are_refused() {
    let (cell, installed, device) = (cell(None), installed(None), device("linux"));
    for (arch, fits) in [(75, true), (79, false)] {
        let mut artifact = artifact();
        artifact.meta["htp_arch"] = json!(arch);
        let launch = Launch {
            cell: &cell,
            pass: Pass::Measure,
            prompts: &[],
            texts: &[],
            artifact: &artifact,
            installed: &installed,
            device: &device,
        };
        match Qnn.stage(&launch) {
            Ok(_) => assert!(fits, "v{arch} was taken"),
            Err(e) => assert!(!fits && e.kind == FailureKind::Model && e.message.contains("v79") && e.message.contains("v75"), "{e}"),
        }
    }
}

const RUN: &str = "qnn-net-run pid:1\nqnn-net-run build version: v2.37.0.1\nProcessing inference input(s):\nCreating context from binary file: x.bin\nExecuting Graphs\n";

fn viewer(us: u32) -> String {
    format!(
        "Qnn Init/Prepare/Finalize/De-Init/Execute/Lib-Load Statistics:\nExecute Stats (Average):\n----\nGraph 0 (g):\n    NetRun:  {us} us\n"
    )
}

/// What a whole launch leaves.
fn captured() -> Captured {
    let cell = cell(None);
    let files = with_launch(&cell, Pass::Measure, &installed(None), "linux", |l| Qnn.stage(l)).unwrap();
    let told = files.into_iter().find(|f| f.name == graphs::FILE).unwrap();
    let Source::Bytes(told) = told.source else { panic!() };
    let mut captured = Captured { ended: Ended { reason: "exited".into(), code: Some(0), ..Ended::default() }, ..Captured::default() };
    let mut put = |name: &str, bytes: Vec<u8>| captured.files.insert(name.to_owned(), bytes);
    put(graphs::FILE, told);
    for (phase, us) in [("prefill", 6400), ("decode", 1250)] {
        put(&format!("{phase}/stdout.txt"), format!("{RUN}{FINISHED}\n").into());
        put(&format!("{phase}/stderr.txt"), Vec::new());
        put(&format!("{phase}/out_{phase}/Result_0/logits_native.raw"), vec![0]);
        put(&format!("{phase}-viewer/stdout.txt"), viewer(us).into());
    }
    captured
}

#[test]
fn the_npu_of_a_launch_is_that_of_all_its_graphs() {
    let mut captured = captured();
    for (phase, us, accelerator, yields) in [("prefill", 6400, 5000, 0), ("decode", 1250, 1000, 2)] {
        let events = format!(
            "    Backend (Accelerator (execute) time): {accelerator} us\n    Backend (QNN (execute) time): {us} us\n    Backend (Num times yield occured): {yields} count\n"
        );
        captured.files.insert(format!("{phase}-viewer/stdout.txt"), (viewer(us) + &events).into());
    }
    let npu = Qnn.parse(&captured).unwrap().npu.unwrap();
    // Of each graph 20 executions were asked for: 20 x (5000 + 1000) us of 20 x (6400 + 1250), and 20 x 2 yields.
    let duty = npu.duty.unwrap();
    assert_eq!((duty.part_us, duty.whole_us, duty.n), (120_000.0, 153_000.0, 40));
    assert_eq!((npu.yields.unwrap().sum, npu.source.as_str()), (40.0, "qnn-profile"));
}

#[test]
fn whole_output_is_two_graphs_with_their_tokens() {
    let mut captured = captured();
    let parsed = Qnn.parse(&captured).unwrap();
    assert_eq!((&parsed.failure, &parsed.warnings), (&None, &Vec::new()));
    let graph = |phase: &str, tokens, latency_ms| GraphTime { phase: phase.into(), tokens, part: 1, parts: 1, n: 20, latency_ms };
    assert_eq!(parsed.graphs, [graph("prefill", 32, 6.4), graph("decode", 1, 1.25)]);
    assert_eq!(parsed.notes["runtime_version"], "QAIRT v2.37.0.1");
    assert_eq!(
        (parsed.notes["engine"].as_str(), parsed.notes["perf_profile"].as_str(), parsed.notes["shared_buffer"].as_str()),
        ("graph", "runtime-default", "false")
    );
    let checks = |captured: &Captured| Qnn.verify(&cell(None), &Expected::default(), &parsed, captured);
    assert_eq!(
        (checks(&captured).count, checks(&captured).tokens, checks(&captured).unit),
        (Check::NotCheckable, Check::NotCheckable, Check::NotCheckable)
    );
    assert!(checks(&captured).reasons[0].contains("no token loop"));
    captured.evidence = Evidence { mapped: vec!["/sdk/libQnnHtp.so".into()], device_nodes: Vec::new() };
    assert_eq!((checks(&captured).unit, checks(&captured).unit_found.as_deref()), (Check::Confirmed, Some("npu")));
}

/// The failure that a changed launch shows.
fn failure(change: impl FnOnce(&mut Captured)) -> String {
    let mut captured = captured();
    change(&mut captured);
    let parsed = Qnn.parse(&captured).unwrap();
    parsed.failure.unwrap_or_else(|| panic!("no failure: {:?}", parsed.graphs)).to_string()
}

#[test]
fn exit_status_0_is_not_enough() {
    let text = |name: &'static str, text: &'static str| move |c: &mut Captured| drop(c.files.insert(name.into(), text.into()));
    assert!(failure(text("decode/stdout.txt", RUN)).contains("decode: the output ends before `Finished Executing Graphs`"));
    assert!(failure(text("decode/stdout.txt", "")).contains("ended without `Finished Executing Graphs`, its last words: nothing"));
    assert!(
        failure(|c| drop(c.files.remove("decode/out_decode/Result_0/logits_native.raw")))
            .contains("left no results in out_decode/Result_0")
    );
    assert!(failure(text("prefill-viewer/stdout.txt", "Init Stats:\n----\n    NetRun:  5 us\n")).contains("holds no time"));
    let two = "Execute Stats (Average):\n----\nGraph 0 (a):\n    NetRun:  5 us\nGraph 1 (b):\n    NetRun:  6 us\n";
    assert!(failure(text("prefill-viewer/stdout.txt", two)).contains("holds 2 graphs"));
    let code = failure(|c| {
        c.files.insert("prefill/stdout.txt".into(), RUN.into());
        c.files.insert(
            "prefill/stderr.txt".into(),
            "     0.0ms [ ERROR ] QnnDsp <E> Failed to create context from binary with err 5005\n".into(),
        );
        c.ended.code = Some(1);
    });
    assert!(code.contains("5005") && code.starts_with("model"), "{code}");
    let hint = with_launch(&cell(None), Pass::Measure, &installed(None), "linux", |launch| {
        Qnn.explain(&Failure::new(FailureKind::Model, code.clone()), launch).unwrap()
    });
    assert!(hint.contains("soc_model"), "{hint}");
    // A part whose step never ran is no failure by itself: the step before it is.
    let mut cut = captured();
    cut.files.retain(|name, _| !name.starts_with("decode"));
    assert_eq!(Qnn.parse(&cut).unwrap().graphs.len(), 1);
    assert_eq!(Qnn.parse(&Captured::default()).unwrap_err().file, graphs::FILE);
}

#[test]
fn a_crash_at_exit_is_excused_only_after_whole_results() {
    let whole = captured();
    // A step's own output, as it stands before steps are merged.
    let mut step = Captured { ended: Ended { reason: "exited".into(), signal: Some(11), ..Ended::default() }, ..Captured::default() };
    for name in ["stdout.txt", "out_decode/Result_0/logits_native.raw"] {
        step.files.insert(name.into(), whole.files[&format!("decode/{name}")].clone());
    }
    step.files.insert(graphs::FILE.into(), whole.files[graphs::FILE].clone());
    step.files.insert("out_decode/qnn-profiling-data_0.log".into(), vec![0]);
    assert!(Qnn.excuse("decode", &step).unwrap().contains("crashed at exit"));
    assert_eq!(Qnn.excuse("decode-viewer", &step), None);
    let but = |change: &dyn Fn(&mut Captured)| {
        let mut changed = step.clone();
        change(&mut changed);
        Qnn.excuse("decode", &changed)
    };
    assert!(but(&|c| (c.ended.signal, c.ended.code) = (None, Some(139))).is_some());
    assert_eq!(but(&|c| (c.ended.signal, c.ended.code) = (None, Some(1))), None);
    assert_eq!(but(&|c| c.ended.reason = "timeout".into()), None);
    assert_eq!(but(&|c| drop(c.files.insert("stdout.txt".into(), RUN.into()))), None);
    for gone in ["out_decode/Result_0/logits_native.raw", "out_decode/qnn-profiling-data_0.log", graphs::FILE] {
        assert_eq!(but(&|c| drop(c.files.remove(gone))), None, "{gone}");
    }
}
