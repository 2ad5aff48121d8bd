//! On a device that is another machine.

use bench_backend_api::{Ended, Found, Pass};

use super::*;

fn phone() -> DeviceFacts {
    DeviceFacts { class: DeviceClass::Phone, os: "android".into(), arch: "aarch64".into(), remote: true, ..pc() }
}

/// Everything but the files of these names.
fn installed(device: &DeviceFacts, without: &[&str]) -> Installed {
    let found = |need: Need| (need, Found { path: "/host/x".into(), version: Some("2.99".into()) });
    Installed(Genie.needs(device).into_iter().filter(|n| !without.contains(&tool::file_of(n).as_str())).map(found).collect())
}

/// A bundle as users have it, with Qualcomm's own way of naming parts (the ninth and the tenth sort wrongly by name).
fn bundle() -> Artifact {
    let own = json!({"dialog": {"version": 1, "type": "basic", "max-num-tokens": 2000, "stop-sequence": ["x"],
        "context": {"version": 1, "size": 4096, "n-vocab": 128_256, "bos-token": 7, "eos-token": [128_001, 128_009]},
        "sampler": {"version": 1, "seed": 42, "temp": 0.8, "top-k": 40, "top-p": 0.95},
        "tokenizer": {"version": 1, "path": "/home/me/tokenizer.json"},
        "engine": {"version": 1, "n-threads": 3, "backend": {"version": 1, "type": "QnnHtp", "QnnHtp": {"version": 1},
            "extensions": "/home/me/my_ext.json"},
            "model": {"version": 1, "type": "binary", "binary": {"version": 1,
                "ctx-bins": ["/home/me/m_part_9_of_10.bin", "/home/me/m_part_10_of_10.bin"]}}}}});
    let files = ["m_part_10_of_10.bin", "m_part_9_of_10.bin", "tokenizer.json", "htp_backend_ext_config.json"];
    Artifact { files: files.map(str::to_owned).to_vec(), meta: json!({"config": own}) }
}

struct Made {
    files: Vec<StagedFile>,
    step: Step,
}
impl Made {
    fn text(&self, name: &str) -> String {
        let Some(Source::Bytes(bytes)) = self.files.iter().find(|f| f.name == name).map(|f| &f.source) else { panic!("{name}") };
        String::from_utf8(bytes.clone()).unwrap()
    }
    fn json(&self, name: &str) -> Value {
        serde_json::from_str(&self.text(name)).unwrap()
    }
    fn has(&self, name: &str) -> bool {
        self.files.iter().any(|f| f.name == name)
    }
}

fn made(axes: &[(Axis, &str)], without: &[&str]) -> Result<Made, Failure> {
    asked(axes, without, &[])
}

fn asked(axes: &[(Axis, &str)], without: &[&str], texts: &[String]) -> Result<Made, Failure> {
    let (cell, artifact, device) = (cell(axes), bundle(), phone());
    let installed = installed(&device, without);
    let prompts = [vec![7, 4, 5], vec![7, 8, 9]];
    let launch =
        Launch { cell: &cell, pass: Pass::Measure, prompts: &prompts, texts, artifact: &artifact, installed: &installed, device: &device };
    let files = Genie.stage(&launch)?;
    let step = Genie.steps(&launch, &Paths { work: "/w".into(), events: "e".into() }).remove(0);
    Ok(Made { files, step })
}

#[test]
fn our_runner_comes_first() {
    let made = made(&[(Axis::PerfProfile, "burst")], &[]).unwrap();
    assert_eq!(made.json(Told::FILE)["notes"]["chunk"], "32");
    for name in ["bench-genie-runner", "libGenie.so", "libQnnHtp.so", "libQnnSystem.so", "libQnnHtpV75Stub.so", "libQnnHtpV75Skel.so"] {
        assert!(made.has(name), "{name}");
    }
    assert!(!made.has("genie-t2t-run") && !made.has("genie-app"));
    assert_eq!(
        (&made.step.invocation.program, made.step.invocation.args.as_slice()),
        (&Program::Staged("bench-genie-runner".into()), &["job.json".to_owned()][..])
    );
    let job = made.json("job.json");
    assert_eq!((&job["runtime"]["genie"], &job["runtime"]["config"], &job["options"]), (&json!("libGenie.so"), &json!(CONFIG), &json!({})));
    // Keys: formats/genie.md, from the bundles of Qualcomm's AI Hub.
    let wanted = json!({"devices": [{"device_id": 0, "dsp_arch": "v75", "soc_model": 57, "cores": [
        {"core_id": 0, "perf_profile": "burst", "rpc_control_latency": 100, "rpc_polling_time": 9999}]}],
        "memory": {"mem_type": "shared_buffer"}, "context": {"weight_sharing_enabled": true}});
    assert_eq!(made.json("htp_backend_ext_config.json"), wanted);
    let config = made.json(CONFIG);
    let at = |pointer: &str| config.pointer(pointer).cloned();
    assert_eq!(at("/dialog/engine/backend/extensions"), Some(json!("htp_backend_ext_config.json")));
    assert_eq!(at("/dialog/engine/model/binary/ctx-bins"), Some(json!(["m_part_9_of_10.bin", "m_part_10_of_10.bin"])));
    assert_eq!(at("/dialog/context/eos-token"), Some(json!(128_255)));
    assert_eq!((at("/dialog/max-num-tokens"), at("/dialog/stop-sequence"), at("/dialog/sampler/top-k")), (None, None, Some(json!(1))));
    let notes = &made.json(Told::FILE)["notes"];
    assert_eq!((&notes["ttft_method"], &notes["perf_profile"]), (&json!("token_event"), &json!("burst")));
    assert!(notes["config_changes"].as_str().unwrap().contains("/dialog/sampler/temp: 0.8 -> 1.0"), "{notes}");
}

#[test]
fn without_it_the_programs_of_the_sdk_are_asked() {
    let app = made(&[], &["bench-genie-runner"]).unwrap();
    assert_eq!(
        (&app.step.invocation.program, app.step.invocation.args.join(" ").as_str()),
        (&Program::Staged("genie-app".into()), "-s queries.txt")
    );
    let script = app.text("queries.txt");
    let lines: Vec<&str> = script.lines().filter(|l| l.starts_with("dialog tokenQuery") || l.starts_with("dialog reset")).collect();
    let wanted = [
        "dialog tokenQuery dialog prompt-0.txt answer-0.txt",
        "dialog reset dialog",
        "dialog tokenQuery dialog prompt-1.txt answer-1.txt",
        "dialog reset dialog",
    ];
    assert_eq!(lines, wanted);
    // Genie adds its BOS itself.
    assert_eq!((app.text("prompt-0.txt").as_str(), app.text("prompt-1.txt").as_str()), ("4 5\n", "8 9\n"));
    assert_eq!(app.json(CONFIG).pointer("/dialog/max-num-tokens"), Some(&json!(8)));

    let single = made(&[], &["bench-genie-runner", "genie-app"]).unwrap();
    let wanted = "-c genie_config.json --tokens_file prompt-0.txt --profile genie_profile.json --log error";
    assert_eq!(single.step.invocation.args.join(" "), wanted);
    assert!(single.has("prompt-0.txt") && !single.has("prompt-1.txt"));
    assert_eq!(single.json(Told::FILE)["notes"]["ttft_method"], "runtime_reported");
    let named = made(&[(Axis::Variant, "genie-t2t-run")], &[]).unwrap();
    let failure = made(&[(Axis::Variant, "genie-t2t-run")], &["genie-t2t-run"]).err().unwrap();
    assert!(failure.message == "genie-t2t-run is missing" && failure.hint.is_some(), "{failure}");
    assert_eq!(named.step.invocation.program, Program::Staged("genie-t2t-run".into()));
}

#[test]
fn prompts_that_have_a_text_go_in_as_text() {
    let texts = ["one two".to_owned(), "three".to_owned()];
    let app = asked(&[], &["bench-genie-runner"], &texts).unwrap();
    assert!(app.text("queries.txt").contains("dialog query dialog prompt-1.txt answer-1.txt"));
    assert_eq!(app.text("prompt-1.txt"), "three");
    assert_eq!(app.json(Told::FILE)["notes"]["ttft_scope"], "text");
    let single = asked(&[], &["bench-genie-runner", "genie-app"], &texts).unwrap();
    assert!(single.step.invocation.args.join(" ").starts_with("-c genie_config.json --prompt_file prompt-0.txt --profile "));
    let runner = asked(&[], &[], &texts).unwrap();
    assert_eq!(runner.json(Told::FILE)["notes"]["ttft_scope"], "ids");
}

#[test]
fn what_is_missing_is_said() {
    let phone = phone();
    let probe = |without: &[&str]| Genie.probe(&phone, &installed(&phone, without));
    assert_eq!(probe(&["genie-app"]), Availability::Ready { version: "QAIRT 2.99, bench-genie-runner".into() });
    assert_eq!(probe(&["bench-genie-runner", "genie-app"]), Availability::Ready { version: "QAIRT 2.99, genie-t2t-run".into() });
    let Availability::Missing { what, remedy } = probe(&["libQnnHtpV75Skel.so"]) else { panic!() };
    assert!(what.contains("libQnnHtpV75Skel.so") && remedy.contains("--ndk"), "{what}: {remedy}");
    // A profile that can't be set is an error and no silent default.
    let failure = made(&[(Axis::PerfProfile, "burst")], &["libQnnHtpNetRunExtensions.so"]).err().unwrap();
    assert!(failure.message.contains("libQnnHtpNetRunExtensions.so is missing"), "{failure}");
    let plain = made(&[], &["libQnnHtpNetRunExtensions.so"]).unwrap();
    assert!(!plain.has("htp_backend_ext_config.json") && plain.json(CONFIG).pointer("/dialog/engine/backend/extensions").is_none());
}

#[test]
fn a_bundle_with_a_part_missing_or_for_another_unit_is_refused() {
    let (cell, device) = (cell(&[]), phone());
    let installed = installed(&device, &[]);
    let refused = |artifact: &Artifact| {
        let launch =
            Launch { cell: &cell, pass: Pass::Measure, prompts: &[], texts: &[], artifact, installed: &installed, device: &device };
        Genie.stage(&launch).unwrap_err().message
    };
    let mut artifact = bundle();
    artifact.files.remove(0);
    assert!(refused(&artifact).contains("names m_part_10_of_10.bin"), "{}", refused(&artifact));
    let mut artifact = bundle();
    artifact.meta["config"]["dialog"]["engine"]["backend"]["type"] = json!("QnnGenAiTransformer");
    assert!(refused(&artifact).contains("npu asked, and the Genie configuration's backend is QnnGenAiTransformer"));
    let mut artifact = bundle();
    artifact.meta["config"]["dialog"]["embedding"] = json!({"lut-path": "/home/me/lut.raw"});
    assert!(refused(&artifact).contains("names /home/me/lut.raw, which is not among"), "{}", refused(&artifact));
    let mut artifact = bundle();
    artifact.meta["htp_arch"] = json!(79);
    assert!(refused(&artifact).contains("v79"));
}

/// A profile as genie-t2t-run leaves it; the figures are ours: 64 tokens in 32 ms, then 7 steps in 35 ms.
fn profile(queries: usize) -> String {
    let event = json!({"type": "GenieDialog_query", "duration": 67_100, "start": 1, "stop": 67_101,
        "num-prompt-tokens": {"value": 3, "unit": ""}, "time-to-first-token": {"value": 32_000, "unit": "us"},
        "num-generated-tokens": {"value": 8, "unit": ""}, "token-generation-time": {"value": 35_000, "unit": "us"}});
    let mut events =
        vec![json!({"type": "GenieDialog_create", "duration": 5, "start": 0, "stop": 1, "init-time": {"value": 1_250_000, "unit": "us"}})];
    events.extend(std::iter::repeat_n(event, queries));
    json!({"header": {"artifact_type": "GENIE_PROFILE"}, "components": [{"name": "dialog0", "type": "dialog", "events": events}]})
        .to_string()
}

fn captured(way: &str, profile: Option<String>, stdout: &str) -> Captured {
    let mut files = std::collections::BTreeMap::from([
        (Told::FILE.to_owned(), json!({"tool": way, "notes": {"ttft_method": "runtime_reported"}}).to_string().into_bytes()),
        ("stdout.txt".to_owned(), stdout.as_bytes().to_vec()),
        ("stderr.txt".to_owned(), Vec::new()),
    ]);
    files.extend(profile.map(|p| (PROFILE.to_owned(), p.into_bytes())));
    Captured { files, ended: Ended { reason: "exited".into(), code: Some(0), ..Ended::default() }, ..Captured::default() }
}

const ANSWER: &str = "Using libGenie.so version 1.13.0\n\n[PROMPT]: x\n\n[BEGIN]: y[END]\n";

#[test]
fn a_profile_is_read_as_reported_queries() {
    let cell = cell(&[]);
    let expected = Expected { prompt_tokens: 3, gen_tokens: 8, queries: 2, ..Expected::default() };
    for (way, queries) in [("genie-t2t-run", 1), ("genie-app", 2)] {
        let captured = captured(way, Some(profile(queries)), ANSWER);
        let parsed = Genie.parse(&captured).unwrap();
        assert_eq!((&parsed.failure, parsed.queries.len()), (&None, queries), "{way}");
        let last = &parsed.queries[queries - 1];
        assert_eq!((last.query as usize, last.aggregate_n, last.generated_reported), (queries - 1, Some(1), Some(8)));
        assert!((last.reported["ttft_us"] - 32_000.0).abs() < 1e-6 && (last.reported["decode_us"] - 35_000.0).abs() < 1e-6);
        assert_eq!(parsed.notes["runtime_version"], "Genie API 1.13.0");
        assert_eq!((parsed.notes["reported_load_ms"].as_str(), parsed.notes["ttft_method"].as_str()), ("1250.0", "runtime_reported"));
        let checks = Genie.verify(&cell, &expected, &parsed, &captured);
        assert_eq!((checks.count, checks.tokens), (Check::Confirmed, Check::NotCheckable), "{:?}", checks.reasons);
    }
    // Two queries were asked of the scripted program.
    let one = captured("genie-app", Some(profile(1)), ANSWER);
    let checks = Genie.verify(&cell, &expected, &Genie.parse(&one).unwrap(), &one);
    assert_eq!(checks.count, Check::Contradicted);
    let early = profile(1).replace("\"value\":8", "\"value\":5");
    let early = captured("genie-t2t-run", Some(early), ANSWER);
    assert_eq!(Genie.verify(&cell, &expected, &Genie.parse(&early).unwrap(), &early).count, Check::Contradicted);
}

#[test]
fn exit_status_0_without_a_profile_is_a_failure() {
    let parsed = Genie.parse(&captured("genie-t2t-run", None, ANSWER)).unwrap();
    assert!(parsed.failure.unwrap().message.contains("left no profile"));
    assert!(Genie.parse(&captured("genie-t2t-run", None, "")).unwrap().failure.unwrap().message.contains("printed nothing"));
    let refused = "[ERROR] \"Could not create context from binary for context index = 0 : err 5005\"\nFailed to create the dialog.\n";
    let failure = Genie.parse(&captured("genie-t2t-run", None, refused)).unwrap().failure.unwrap();
    assert!(failure.message.contains("5005"), "{failure}");
}
