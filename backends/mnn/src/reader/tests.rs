//! The reader over `fixtures/`. Expected figures are those that the tools printed, except where a comment shows the arithmetic.

use bench_backend_api::{FailureKind, Reader, Reading, SourceFile, Unreadable};

use super::MnnReader;

type Metrics = &'static [(&'static str, f64)];
type Expected = &'static [(&'static str, Metrics)];
type Operator = (&'static str, &'static str, f64, Option<u32>);

fn fixture(name: &str) -> SourceFile {
    let path = format!("{}/fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
    SourceFile { name: name.to_owned(), bytes: std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}")) }
}

fn read(names: &[&str]) -> Result<Reading, Unreadable> {
    MnnReader.read(&names.iter().map(|name| fixture(name)).collect::<Vec<_>>())
}

fn good(names: &[&str]) -> Reading {
    read(names).unwrap_or_else(|error| panic!("{error}"))
}

/// Every measurement has exactly these metrics.
fn check(names: &[&str], reading: &Reading, expected: &[(&str, Metrics)]) {
    let labels: Vec<&str> = reading.measurements.iter().map(|measurement| measurement.label.as_str()).collect();
    assert_eq!(labels, expected.iter().map(|(label, _)| *label).collect::<Vec<_>>(), "{names:?}");
    for (measurement, (label, metrics)) in reading.measurements.iter().zip(expected) {
        let mut found: Vec<(&str, f64)> =
            measurement.metrics.iter().map(|(name, value)| (name.as_str(), value.as_f64().unwrap_or(f64::NAN))).collect();
        let mut metrics = metrics.to_vec();
        found.sort_by(|a, b| a.0.cmp(b.0));
        metrics.sort_by(|a, b| a.0.cmp(b.0));
        assert_eq!(found.len(), metrics.len(), "{names:?} {label}: {found:?}");
        for ((name, value), (known, right)) in found.iter().zip(&metrics) {
            assert!(
                name == known && (value - right).abs() <= right.abs() * 1e-12,
                "{names:?} {label}: {name} {value}, not {known} {right}"
            );
        }
    }
}

#[test]
fn tables_of_all_ages() {
    let cases: &[(&[&str], Expected)] = &[
        (
            &["table_pg_opencl.md"],
            &[
                ("pp256", &[("prefill_tok_s", 410.5), ("prompt_tokens", 256.0)]),
                ("tg64", &[("decode_tok_s", 31.75), ("generated_tokens", 64.0)]),
                ("pp256+tg64", &[("prefill_tok_s", 405.0), ("decode_tok_s", 28.4), ("prompt_tokens", 256.0), ("generated_tokens", 64.0)]),
            ],
        ),
        (
            // Byte-order mark, CRLF, colours, a logcat prefix, an unknown column, a ± in Latin-1.
            &["table_noisy.txt"],
            &[
                ("pp32", &[("prefill_tok_s", 30.25), ("prompt_tokens", 32.0)]),
                ("tg32", &[("decode_tok_s", 9.5), ("generated_tokens", 32.0)]),
            ],
        ),
        (
            &["kv_true.md"],
            &[("pp64+tg16", &[("prefill_tok_s", 4556.55), ("decode_tok_s", 1759.63), ("prompt_tokens", 64.0), ("generated_tokens", 16.0)])],
        ),
        (
            &["more_columns.stdout"],
            &[
                ("pp64", &[("prefill_tok_s", 4380.4), ("prompt_tokens", 64.0)]),
                ("tg16", &[("decode_tok_s", 1954.8), ("generated_tokens", 16.0)]),
            ],
        ),
        (
            &["fp_appended.md"],
            &[
                ("pp64", &[("prefill_tok_s", 4288.19), ("prompt_tokens", 64.0)]),
                ("tg16", &[("decode_tok_s", 2005.85), ("generated_tokens", 16.0)]),
                ("pp64", &[("prefill_tok_s", 4472.65), ("prompt_tokens", 64.0)]),
                ("tg16", &[("decode_tok_s", 2086.43), ("generated_tokens", 16.0)]),
            ],
        ),
    ];
    for (names, expected) in cases {
        let reading = good(names);
        check(names, &reading, expected);
        assert_eq!(reading.failure, None, "{names:?}");
    }
    assert!(good(&["fp_appended.md"]).warnings[0].contains("2 tables"));
    assert!(good(&["table_noisy.txt"]).warnings[0].contains("exit status 139 after the results"));
}

/// The figures of bench.json; load_ms is loading_time in s times 1000, 0.03169166666666667 s = 31.69166666666667 ms and so on.
const BENCH: Expected = &[
    ("pp64", &[("prefill_tok_s", 4_684.153_375_742_13), ("prompt_tokens", 64.0), ("load_ms", 37.107)]),
    ("pp128", &[("prefill_tok_s", 4_226.933_578_213_005), ("prompt_tokens", 128.0), ("load_ms", 31.691_666_666_666_67)]),
    ("tg16", &[("decode_tok_s", 2_088.313_906_432_814_9), ("generated_tokens", 16.0), ("load_ms", 36.466_666_666_666_67)]),
    (
        "pp64+tg16",
        &[
            ("prefill_tok_s", 4_627.671_062_212_282),
            ("decode_tok_s", 1_740.029_112_366_711_9),
            ("prompt_tokens", 64.0),
            ("generated_tokens", 16.0),
            ("load_ms", 30.509),
        ],
    ),
];

#[test]
fn table_and_json_of_one_run_are_merged() {
    for names in [&["bench.json"][..], &["bench.stdout", "bench.json"], &["bench.json", "bench.stdout"], &["bench.json", "bench.json"]] {
        let reading = good(names);
        check(names, &reading, BENCH);
        assert!(reading.failure.is_none() && reading.warnings.is_empty(), "{names:?}: {:?}", reading.warnings);
    }
    let merged = good(&["bench.stdout", "bench.json"]);
    let reported = &merged.measurements[0].reported;
    assert_eq!((&reported["threads"], &reported["stddev"], &reported["useMmap"]), (&1.into(), &24.32.into(), &false.into()));
}

#[test]
fn json_with_nan_and_a_missing_weight_file() {
    let json = r#"{"model":"m","modelSize":17179869184.0,"backend":"CPU","threads":1,"results":[
        {"type":"prefill","prompt_len":8,"tps":8000000.0,"std":0.0},{"type":"decode","generate_len":4,"tps":-nan,"std":nan}]}"#;
    let files = [SourceFile { name: "j.json".to_owned(), bytes: json.into() }];
    let reading = MnnReader.read(&files).unwrap_or_else(|error| panic!("{error}"));
    check(&["j.json"], &reading, &[("pp8", &[]), ("tg4", &[])]);
    assert!(reading.failure.is_some_and(|failure| failure.kind == FailureKind::Model && failure.message.contains("17179869184.00 GiB")));
}

#[test]
fn demos_of_all_ages() {
    let cases: &[(&[&str], Metrics)] = &[
        (&["demo_2023.stdout"], &[("prompt_tokens", 20.0), ("generated_tokens", 10.0), ("prefill_tok_s", 40.0), ("decode_tok_s", 10.0)]),
        (
            &["demo_stripped.txt"],
            &[("prompt_tokens", 15.0), ("generated_tokens", 90.0), ("prefill_tok_s", 148.25), ("decode_tok_s", 29.95)],
        ),
        (
            &["demo_prompt.stdout"],
            &[
                ("prompt_tokens", 28.0),
                ("generated_tokens", 64.0),
                ("prefill_tok_s", 4707.46),
                ("decode_tok_s", 2180.43),
                ("load_ms", 41.533_001),
            ],
        ),
        (&["demo_logcat.txt"], &[("prompt_tokens", 9.0), ("generated_tokens", 21.0), ("prefill_tok_s", 37.5), ("decode_tok_s", 15.25)]),
        // The text that the model wrote holds a block, an error, a fallback and a table.
        (
            &["demo_tricky.stdout"],
            &[("prompt_tokens", 12.0), ("generated_tokens", 34.0), ("prefill_tok_s", 118.25), ("decode_tok_s", 16.75)],
        ),
    ];
    for (names, expected) in cases {
        let reading = good(names);
        check(names, &reading, &[("query 1", expected)]);
        assert_eq!(reading.failure, None, "{names:?}");
    }
}

#[test]
fn plain_networks_and_operators() {
    let cases: &[(&str, Expected, usize, Option<Operator>)] = &[
        (
            "v2basic.stdout",
            &[("dec_ar64_fp32", &[("latency_ms", 4.215), ("latency_min_ms", 4.176)])],
            5,
            // 0.311600 ms = 311.6 us
            Some(("logits__matmul_converted", "Convolution", 311.6, Some(10))),
        ),
        ("module_basic.stdout", &[("small", &[("latency_ms", 8.25), ("latency_min_ms", 8.0)])], 0, None),
        ("time_profile.stdout", &[("small", &[("latency_ms", 0.75)])], 2, Some(("last", "Raster", 250.0, None))),
        (
            "benchmark_out.stdout",
            &[
                ("mobilenet-v1-1.0", &[("latency_ms", 5.75), ("latency_min_ms", 5.25)]),
                ("resnet-v2-50", &[("latency_ms", 30.125), ("latency_min_ms", 29.5)]),
            ],
            0,
            None,
        ),
        (
            "profile_by_type.stdout",
            &[
                ("pp64", &[("prefill_tok_s", 4449.42), ("prompt_tokens", 64.0)]),
                ("tg16", &[("decode_tok_s", 1875.13), ("generated_tokens", 16.0)]),
            ],
            9,
            // 65.009964 ms
            Some(("Convolution", "Convolution", 65_009.964, Some(1972))),
        ),
        (
            "profile_by_name.stdout",
            &[
                ("pp64", &[("prefill_tok_s", 30784.03), ("prompt_tokens", 64.0)]),
                ("tg8", &[("decode_tok_s", 11412.27), ("generated_tokens", 8.0)]),
            ],
            // By name alone: the second table is the same time by type.
            4,
            Some(("_raster_0", "ArgMax", 27.0, None)),
        ),
    ];
    for (name, expected, layers, last) in cases {
        let reading = good(&[name]);
        check(&[name], &reading, expected);
        assert_eq!((reading.layers.len(), &reading.failure), (*layers, &None), "{name}");
        let found = reading.layers.last().map(|layer| {
            assert_eq!((layer.value_unit.as_str(), layer.index as usize), ("us", layers - 1), "{name}");
            (layer.name.as_str(), layer.op_type.as_deref().unwrap_or(""), layer.value.unwrap_or(0.0), layer.count)
        });
        assert_eq!(found, *last, "{name}");
    }
}

#[test]
fn failures_whatever_the_exit_status() {
    let cases: &[(&[&str], FailureKind, &str)] = &[
        (&["fail_fallback_opencl.stdout"], FailureKind::Runtime, "the OpenCL backend was asked for and the CPU ran instead"),
        (&["fail_missing_weight.stdout"], FailureKind::Model, "weight file not found"),
        (&["fail_missing_model.stdout", "fail_missing_model.stderr"], FailureKind::Model, "tokenizer file not found"),
        (&["fail_missing_model.stderr"], FailureKind::Model, "Unable to open config file"),
        (&["fail_missing_val.stdout", "fail_missing_val.stderr"], FailureKind::Usage, "invalid parameter for argument: -m"),
        (&["fail_trunc_mnn.stdout"], FailureKind::Model, "Load module failed"),
        (&["fail_oom.stdout", "fail_oom.stderr"], FailureKind::Runtime, "Not enought memory"),
        (&["fail_dir_not_json.stderr"], FailureKind::Usage, "Is a directory"),
        (&["fail_permission.stderr"], FailureKind::Infra, "Permission denied"),
        (&["fail_adsp_path.stderr"], FailureKind::Infra, "dsp"),
        (&["fail_demo_chat.stdout"], FailureKind::Usage, "chat"),
        (&["fail_demo_missing_prompt.stdout"], FailureKind::Runtime, "nope.txt"),
        (&["fail_demo_missing_model.stdout"], FailureKind::Model, "tokenizer"),
        (&["fail_demo_noargs.stdout"], FailureKind::Usage, "Usage"),
        (&["fail_demo_no_token.txt"], FailureKind::Runtime, "no token"),
        (&["fail_nan.md"], FailureKind::Runtime, "pp32"),
        (&["fail_v2basic_fallback.stdout"], FailureKind::Runtime, "OpenCL"),
        (&["fail_unknown_backend.txt"], FailureKind::Usage, "vulkan"),
        // The log of a good run beside the stderr of a failed one is a failed run.
        (&["bench.stdout", "fail_dir_not_json.stderr"], FailureKind::Usage, "Is a directory"),
    ];
    for (names, kind, message) in cases {
        let reading = good(names);
        let failure = reading.failure.unwrap_or_else(|| panic!("{names:?} shows no failure"));
        assert!(failure.kind == *kind && failure.message.contains(message), "{names:?}: {failure}");
        assert!(failure.hint.is_some_and(|hint| hint.len() > 10), "{names:?}");
        if !names[0].starts_with("bench") {
            assert!(reading.measurements.iter().all(|measurement| measurement.metrics.is_empty()), "{names:?} has metrics");
        }
    }
    let fallback = good(&["fail_fallback_opencl.stdout"]);
    let reported = &fallback.measurements[0].reported;
    assert_eq!(
        (&reported["backend"], &reported["backend_used"], &reported["t/s"]),
        (&"OPENCL".into(), &"CPU".into(), &"4801.92 ± 0.00".into())
    );
}

#[test]
fn an_early_end_of_sequence_is_told() {
    // 2927.47 / 1885.86 = 1.55
    let warnings = good(&["eos_pg.stdout"]).warnings;
    assert!(warnings.len() == 1 && warnings[0].starts_with("tg16") && warnings[0].contains("1.6 times"), "{warnings:?}");
}

#[test]
fn what_is_unreadable_names_file_and_line() {
    let cases = [
        ("unreadable_cut.json", "line 1: the JSON is cut off"),
        ("unreadable_text.txt", "not the output of a tool of MNN"),
        ("unreadable_empty.txt", "empty"),
        ("fail_comma.md", "line 3: `30,25 ± 0,10` has a comma"),
    ];
    for (name, message) in cases {
        let error = read(&[name]).err().unwrap_or_else(|| panic!("{name} was read"));
        assert!(error.file == name && error.message.contains(message), "{error}");
    }
    // An empty stderr beside results is the normal case.
    assert_eq!(good(&["unreadable_empty.txt", "bench.stdout"]).measurements.len(), 4);
    let llama = "| model | size | params | backend | ngl | test | t/s |\n| - | - | - | - | - | - | - |\n| a | 1 GiB | 1 B | CPU | 0 | pp1 | 1.00 ± 0.00 |\n";
    let error = MnnReader.read(&[SourceFile { name: "l.md".to_owned(), bytes: llama.into() }]).err();
    assert!(error.is_some_and(|error| error.message.contains("bench parse llama-cpp")));
    assert!(MnnReader.read(&[]).is_err());
}

/// xorshift64*: a seeded source of bytes.
fn next(state: &mut u64) -> u64 {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    state.wrapping_mul(0x2545_f491_4f6c_dd1d)
}

/// A metric is finite and above zero, whatever was read.
fn sane(result: Result<Reading, Unreadable>) {
    for measurement in result.map(|reading| reading.measurements).unwrap_or_default() {
        for (name, value) in measurement.metrics {
            let value = value.as_f64().unwrap_or(f64::NAN);
            assert!(value.is_finite() && value >= 0.0, "{name} {value}");
        }
    }
}

#[test]
fn no_bytes_make_it_panic() {
    let folder = format!("{}/fixtures", env!("CARGO_MANIFEST_DIR"));
    let mut state = 0x9e37_79b9_7f4a_7c15;
    for entry in std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{error}")).flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let whole = fixture(&name);
        for end in 0..whole.bytes.len() {
            sane(MnnReader.read(&[SourceFile { name: name.clone(), bytes: whole.bytes[..end].to_vec() }]));
        }
        for _ in 0..300 {
            let mut file = whole.clone();
            for _ in 0..=next(&mut state) % 4 {
                let length = file.bytes.len().max(1) as u64;
                if let Some(byte) = file.bytes.get_mut((next(&mut state) % length) as usize) {
                    *byte = next(&mut state) as u8;
                }
            }
            sane(MnnReader.read(&[file]));
        }
    }
}
