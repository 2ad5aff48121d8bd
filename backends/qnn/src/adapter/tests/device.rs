//! On a device that is another machine.

use super::*;

fn phone(arch: &str) -> DeviceFacts {
    DeviceFacts { class: DeviceClass::Phone, arch: arch.into(), remote: true, ..device("android") }
}

fn everything(device: &DeviceFacts) -> Installed {
    let found = |need: Need| (need, Found { path: "/sdk/x".into(), version: Some("2.99".into()) });
    Installed(Qnn.needs(device).into_iter().map(found).collect())
}

fn staged(cell: &Cell, artifact: &Artifact, installed: &Installed, device: &DeviceFacts) -> Result<Vec<StagedFile>, Failure> {
    Qnn.stage(&Launch { cell, pass: Pass::Measure, prompts: &[], texts: &[], artifact, installed, device })
}

fn json_of(files: &[StagedFile], name: &str) -> Value {
    let Some(Source::Bytes(bytes)) = files.iter().find(|f| f.name == name).map(|f| &f.source) else { panic!("{name}") };
    serde_json::from_slice(bytes).unwrap()
}

#[test]
fn programs_and_libraries_are_staged_and_found_in_the_work_folder() {
    let (device, cell) = (phone("aarch64"), cell(Some("burst")));
    let installed = everything(&device);
    let files = staged(&cell, &artifact(), &installed, &device).unwrap();
    let names: Vec<&str> = files.iter().map(|f| f.name.as_str()).collect();
    let wanted = [
        "qnn-net-run",
        "libQnnHtp.so",
        "libQnnSystem.so",
        "libQnnHtpV75Stub.so",
        "libQnnHtpV75Skel.so",
        "qnn-profile-viewer",
        "libQnnHtpNetRunExtensions.so",
    ];
    assert_eq!(names[..7], wanted);
    assert!(!names.iter().any(|n| n.contains("Prepare") || n.contains("Dlc")), "{names:?}");
    let outer = json_of(&files, CONFIG);
    assert_eq!(outer.pointer("/backend_extensions/shared_library_path"), Some(&json!("./libQnnHtpNetRunExtensions.so")));
    // Keys and units: formats/qnn.md, section 5.
    let wanted = json!({"devices": [{"device_id": 0, "dsp_arch": "v75", "soc_model": 57, "cores": [
        {"core_id": 0, "perf_profile": "burst", "rpc_control_latency": 100, "rpc_polling_time": 9999}]}]});
    assert_eq!(json_of(&files, EXTENSION), wanted);
    let told = json_of(&files, graphs::FILE);
    for (note, value) in [("shared_buffer", "true"), ("rpc_polling_time_us", "9999"), ("rpc_control_latency_us", "100")] {
        assert_eq!(told["options"][note], value, "{note}");
    }

    let artifact = artifact();
    let launch =
        Launch { cell: &cell, pass: Pass::Measure, prompts: &[], texts: &[], artifact: &artifact, installed: &installed, device: &device };
    let steps = Qnn.steps(&launch, &paths());
    let run = &steps[2].invocation;
    assert_eq!((steps[2].name.as_str(), &run.program), ("decode", &Program::Staged("qnn-net-run".into())));
    let wanted = "--backend libQnnHtp.so --retrieve_context decode.bin --input_list decode.list --output_dir out_decode \
                  --use_native_input_files --use_native_output_files --profiling_level basic --num_inferences 20 --keep_num_outputs 1 \
                  --log_level error --shared_buffer --config_file net_run.json";
    assert_eq!(run.args.join(" "), wanted);
    assert_eq!(run.env["LD_LIBRARY_PATH"], "/w");
    assert_eq!(run.env["ADSP_LIBRARY_PATH"], "/w;/vendor/dsp/cdsp;/vendor/lib/rfsa/adsp;/system/lib/rfsa/adsp;/dsp");
    assert_eq!(steps[3].invocation.program, Program::Staged("qnn-profile-viewer".into()));
}

#[test]
fn an_emulated_npu_is_no_phone_and_has_no_buffers_to_share() {
    let (device, cell) = (phone("x86_64"), cell(None));
    let installed = everything(&device);
    let files = staged(&cell, &artifact(), &installed, &device).unwrap();
    assert!(!files.iter().any(|f| f.name.contains("Skel") || f.name.contains("Stub")));
    assert_eq!(json_of(&files, graphs::FILE)["options"]["shared_buffer"], "false");
    assert_eq!((Qnn.device_class(&cell, &device), Qnn.device_class(&cell, &phone("aarch64"))), (DeviceClass::Emulator, DeviceClass::Phone));
}

#[test]
fn what_is_compiled_on_the_device_brings_its_compiler() {
    let (device, cell) = (DeviceFacts { vtcm_mb: Some(8), ..phone("aarch64") }, cell(None));
    let mut artifact = artifact();
    for (file, word, libraries) in
        [("m.so", "--model", ["libQnnHtpPrepare.so"].as_slice()), ("m.dlc", "--dlc_path", &["libQnnHtpPrepare.so", "libQnnModelDlc.so"])]
    {
        artifact.meta["graphs"]["decode"]["binary"] = json!(file);
        artifact.meta["graphs"]["prefill"]["binary"] = json!(format!("p{file}"));
        artifact.files = vec![file.into(), format!("p{file}")];
        let installed = everything(&device);
        let files = staged(&cell, &artifact, &installed, &device).unwrap();
        assert!(libraries.iter().all(|l| files.iter().any(|f| f.name == *l)), "{file}");
        assert_eq!(json_of(&files, EXTENSION)["graphs"], json!([{"graph_names": ["prefill", "decode"], "vtcm_mb": 8}]));
        let launch = Launch {
            cell: &cell,
            pass: Pass::Measure,
            prompts: &[],
            texts: &[],
            artifact: &artifact,
            installed: &installed,
            device: &device,
        };
        assert_eq!(Qnn.steps(&launch, &paths())[2].invocation.args[2..4], [word, file]);
        let without = Installed(installed.0.into_iter().filter(|(n, _)| !tool::file_of(n).contains("Prepare")).collect());
        let failure = staged(&cell, &artifact, &without, &device).unwrap_err();
        assert!(failure.message.contains("libQnnHtpPrepare.so is missing") && failure.hint.is_some(), "{failure}");
    }
}

#[test]
fn a_bundle_without_a_description_and_a_chip_without_an_htp_are_refused() {
    let device = phone("aarch64");
    let bundle = Artifact { files: vec!["m_part_1_of_2.bin".into(), "m_part_2_of_2.bin".into()], meta: json!({"config": {}}) };
    let failure = staged(&cell(None), &bundle, &everything(&device), &device).unwrap_err();
    assert!(failure.hint.unwrap().contains("qnn-context-binary-utility"));
    for (arch, words) in [(66, "Hexagon v66 has no HTP"), (0, "`soc`")] {
        let device = DeviceFacts { htp_arch: arch, ..phone("aarch64") };
        let Availability::Refused { reason } = Qnn.probe(&device, &everything(&device)) else { panic!("v{arch}") };
        assert!(reason.contains(words), "{reason}");
    }
    let Availability::Missing { what, .. } = Qnn.probe(&device, &Installed::default()) else { panic!() };
    assert_eq!(what, "qnn-net-run");
    assert_eq!(Qnn.probe(&device, &everything(&device)), Availability::Ready { version: "QAIRT 2.99".into() });
}
