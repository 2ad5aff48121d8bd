//! The reader over `fixtures/`. Expected figures are those that the tools printed, except where a comment shows the arithmetic.

use bench_backend_api::{FailureKind, Reader, Reading, SourceFile, Unreadable};

use super::LlamaCppReader;

type Metrics = &'static [(&'static str, f64)];
type Expected = &'static [(&'static str, Metrics)];

fn fixture(name: &str) -> SourceFile {
    let path = format!("{}/fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
    SourceFile { name: name.to_owned(), bytes: std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}")) }
}

fn read(names: &[&str]) -> Result<Reading, Unreadable> {
    LlamaCppReader.read(&names.iter().map(|name| fixture(name)).collect::<Vec<_>>())
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
fn every_format_of_llama_bench() {
    let cases: &[(&[&str], Expected)] = &[
        (
            &["bench.json", "bench.stderr"],
            &[
                ("pp64", &[("prefill_tok_s", 43_686.550_784), ("prompt_tokens", 64.0)]),
                ("tg16", &[("decode_tok_s", 11_973.652_197), ("generated_tokens", 16.0)]),
                ("pp64+tg16", &[("pg_tok_s", 26_985.407_987), ("prompt_tokens", 64.0), ("generated_tokens", 16.0)]),
            ],
        ),
        (
            &["bench.jsonl"],
            &[
                ("pp64", &[("prefill_tok_s", 43_432.145_074), ("prompt_tokens", 64.0)]),
                ("tg16", &[("decode_tok_s", 11_947.915_709), ("generated_tokens", 16.0)]),
                ("pp64+tg16", &[("pg_tok_s", 22_064.629_736), ("prompt_tokens", 64.0), ("generated_tokens", 16.0)]),
            ],
        ),
        (
            &["bench.csv"],
            &[
                ("pp64", &[("prefill_tok_s", 41_558.758_008), ("prompt_tokens", 64.0)]),
                ("tg16", &[("decode_tok_s", 11_605.286_944), ("generated_tokens", 16.0)]),
                ("pp64+tg16", &[("pg_tok_s", 26_591.003_646), ("prompt_tokens", 64.0), ("generated_tokens", 16.0)]),
            ],
        ),
        (
            &["bench.sql"],
            &[
                ("tg16", &[("decode_tok_s", 11_984.238_279), ("generated_tokens", 16.0)]),
                ("pp64+tg16", &[("pg_tok_s", 26_447.975_67), ("prompt_tokens", 64.0), ("generated_tokens", 16.0)]),
            ],
        ),
        (
            &["bench.md"],
            &[
                ("pp64", &[("prefill_tok_s", 29805.96), ("prompt_tokens", 64.0)]),
                ("pp128", &[("prefill_tok_s", 28580.28), ("prompt_tokens", 128.0)]),
                ("tg16", &[("decode_tok_s", 7441.69), ("generated_tokens", 16.0)]),
                ("pp64+tg16", &[("pg_tok_s", 17213.17), ("prompt_tokens", 64.0), ("generated_tokens", 16.0)]),
            ],
        ),
        (
            &["bench_v08.md"],
            &[
                ("pp64", &[("prefill_tok_s", 25293.43), ("prompt_tokens", 64.0)]),
                ("tg16", &[("decode_tok_s", 7619.74), ("generated_tokens", 16.0)]),
                ("pp64+tg16", &[("pg_tok_s", 4106.18), ("prompt_tokens", 64.0), ("generated_tokens", 16.0)]),
            ],
        ),
        (
            &["depth.json"],
            &[
                ("pp64", &[("prefill_tok_s", 42_602.143_076), ("prompt_tokens", 64.0)]),
                ("tg16", &[("decode_tok_s", 11_812.257_368), ("generated_tokens", 16.0)]),
                ("pp64 @ d256", &[("prefill_tok_s", 29_500.908_502), ("prompt_tokens", 64.0)]),
                ("tg16 @ d256", &[("decode_tok_s", 8_009.044_905), ("generated_tokens", 16.0)]),
            ],
        ),
        (
            // Labels of 2023, and a depth.
            &["depth_2023.md"],
            &[
                ("pp512", &[("prefill_tok_s", 55.25), ("prompt_tokens", 512.0)]),
                ("tg128", &[("decode_tok_s", 6.75), ("generated_tokens", 128.0)]),
                ("pp512 @ d4096", &[("prefill_tok_s", 40.5), ("prompt_tokens", 512.0)]),
            ],
        ),
        (
            // The log of -v holds timings of its own, all zero.
            &["verbose.stdout", "verbose.stderr"],
            &[
                ("pp64", &[("prefill_tok_s", 42623.11), ("prompt_tokens", 64.0)]),
                ("tg16", &[("decode_tok_s", 12020.94), ("generated_tokens", 16.0)]),
            ],
        ),
        // BOM, CRLF, a log line inside the object, no avg_ts: 32 tokens / 0.16 s = 200 tok/s.
        (&["interleaved.txt"], &[("pp32", &[("prefill_tok_s", 200.0), ("prompt_tokens", 32.0)])]),
    ];
    for (names, expected) in cases {
        let reading = good(names);
        check(names, &reading, expected);
        assert_eq!(reading.failure, None, "{names:?}");
    }
    let reported = &good(&["bench.csv"]).measurements[0].reported;
    assert_eq!(
        (&reported["n_threads"], &reported["build_commit"], &reported["stddev"]),
        (&1.into(), &"5b4ebc5".into(), &2_060.536_362.into())
    );
}

#[test]
fn two_prints_of_one_run_are_merged() {
    let expected: Expected = &[
        ("pp64", &[("prefill_tok_s", 34_118.629_841), ("prompt_tokens", 64.0)]),
        ("tg16", &[("decode_tok_s", 11_698.950_658), ("generated_tokens", 16.0)]),
    ];
    for names in [["oe.stdout", "oe.stderr"], ["oe.stderr", "oe.stdout"], ["oe.stdout", "oe.stdout"]] {
        check(&names, &good(&names), expected);
    }
    let mut both = fixture("oe.stderr");
    both.bytes.extend(fixture("oe.stdout").bytes);
    check(&["both in one file"], &LlamaCppReader.read(&[both]).unwrap_or_default(), expected);
}

#[test]
fn timings_of_all_ages() {
    let cases: &[(&[&str], Expected)] = &[
        (
            &["cli_2023.txt"],
            &[(
                "query 1",
                &[
                    ("load_ms", 300.25),
                    ("prefill_tok_s", 25.0),
                    ("prompt_tokens", 10.0),
                    ("decode_tok_s", 10.0),
                    ("generated_tokens", 127.0),
                    ("e2e_ms", 13250.5),
                ],
            )],
        ),
        (
            // Prefixes of a log; the model's text holds timings and errors.
            &["cli_2026.txt"],
            &[(
                "query 1",
                &[
                    ("load_ms", 410.5),
                    ("prefill_tok_s", 50.0),
                    ("prompt_tokens", 8.0),
                    ("decode_tok_s", 25.0),
                    ("generated_tokens", 63.0),
                    ("e2e_ms", 2710.75),
                ],
            )],
        ),
        (
            &["cli_summary.txt"],
            &[
                ("query 1", &[("prefill_tok_s", 201.5), ("decode_tok_s", 30.5)]),
                ("query 2", &[("prefill_tok_s", 180.0), ("decode_tok_s", 29.0)]),
            ],
        ),
        (
            &["server.log"],
            &[
                (
                    "query 1",
                    &[
                        ("prefill_tok_s", 250.0),
                        ("prompt_tokens", 500.0),
                        ("decode_tok_s", 20.0),
                        ("generated_tokens", 20.0),
                        ("e2e_ms", 3000.0),
                    ],
                ),
                ("query 2", &[("prefill_tok_s", 100.0), ("prompt_tokens", 10.0), ("decode_tok_s", 18.0), ("generated_tokens", 9.0)]),
            ],
        ),
        (
            &["server_bare.txt"],
            &[(
                "query 1",
                &[("prefill_tok_s", 12.5), ("prompt_tokens", 11.0), ("decode_tok_s", 4.0), ("generated_tokens", 25.0), ("e2e_ms", 7130.0)],
            )],
        ),
        (
            &["server.json"],
            &[("query 1", &[("prefill_tok_s", 200.0), ("prompt_tokens", 40.0), ("decode_tok_s", 20.0), ("generated_tokens", 10.0)])],
        ),
        (
            // `inf tokens per second` of 0.00 ms is no speed.
            &["perplexity.txt"],
            &[("query 1", &[("load_ms", 300.5), ("prefill_tok_s", 32.0), ("prompt_tokens", 128.0), ("e2e_ms", 4020.25)])],
        ),
        // A summary and the lines of the same query are one query.
        (
            &["server_bare.txt", "cli_summary.txt"],
            &[(
                "query 1",
                &[("prefill_tok_s", 12.5), ("prompt_tokens", 11.0), ("decode_tok_s", 4.0), ("generated_tokens", 25.0), ("e2e_ms", 7130.0)],
            )],
        ),
    ];
    for (names, expected) in cases {
        let reading = good(names);
        check(names, &reading, expected);
        assert_eq!(reading.failure, None, "{names:?}");
    }
    assert_eq!(good(&["perplexity.txt"]).measurements[0].reported["perplexity"], 12.25);
}

#[test]
fn operations_of_the_npu() {
    let reading = good(&["profile.log"]);
    let read: Vec<_> = reading
        .layers
        .iter()
        .map(|layer| (layer.op_type.as_deref().unwrap_or(""), layer.value, layer.count, layer.unit.as_deref()))
        .collect();
    // (61 + 64) / 2 = 62.5
    let npu = Some("npu");
    assert_eq!(read, [("MUL_MAT", Some(62.5), Some(2), npu), ("SOFT_MAX", Some(5.0), Some(1), npu), ("ADD", Some(7.0), Some(1), npu)]);
    assert!(reading.measurements.is_empty() && reading.failure.is_none());
    assert_eq!(good(&["bench.md", "profile.log"]).layers.len(), 3);
}

#[test]
fn failures_whatever_the_exit_status() {
    let cases: &[(&[&str], FailureKind, &str, usize)] = &[
        (&["fail_missing.stdout", "fail_missing.stderr"], FailureKind::Model, "failed to load model '/nope.gguf'", 0),
        (&["fail_missing.stdout"], FailureKind::Runtime, "array has no end", 0),
        (&["fail_empty.json", "fail_oom.stderr"], FailureKind::Runtime, "failed to create context", 0),
        (&["fail_empty.json"], FailureKind::Runtime, "empty array", 0),
        (&["fail_one_of_two.stdout", "fail_one_of_two.stderr"], FailureKind::Model, "/nope.gguf", 2),
        (
            &["fail_help.stdout", "fail_bad_device.stderr"],
            FailureKind::Usage,
            "invalid device: GPUOpenCL; error: invalid parameter for argument: -dev",
            0,
        ),
        (&["fail_help.stdout", "fail_bad_number.stderr"], FailureKind::Usage, "invalid range format", 0),
        (&["fail_help.stdout"], FailureKind::Usage, "help", 0),
        (&["fail_listdev.stdout"], FailureKind::Usage, "list of devices", 0),
        (&["fail_nobackend.stderr"], FailureKind::Infra, "CPU backend is not loaded", 0),
        (&["fail_session.stderr"], FailureKind::Runtime, "0x80000406", 0),
        // The table says HTP, the log says that there was no session.
        (&["htp_without_log.md", "fail_session.stderr"], FailureKind::Runtime, "0x80000406: the NPU was not used", 2),
        (&["fail_dspqueue.txt"], FailureKind::Runtime, "0x0000002e", 1),
        (&["fail_inf.json"], FailureKind::Runtime, "tg16", 0),
        // The cut file is a consequence of the failure.
        (&["unreadable_cut.json", "fail_oom.stderr"], FailureKind::Runtime, "failed to create context", 0),
    ];
    for (names, kind, message, measured) in cases {
        let reading = good(names);
        let failure = reading.failure.unwrap_or_else(|| panic!("{names:?} shows no failure"));
        assert!(failure.kind == *kind && failure.message.contains(message), "{names:?}: {failure}");
        assert!(failure.hint.is_some_and(|hint| hint.len() > 10), "{names:?}");
        assert_eq!(reading.measurements.iter().filter(|measurement| !measurement.metrics.is_empty()).count(), *measured, "{names:?}");
    }
}

#[test]
fn where_it_ran_is_told() {
    let warned = |names: &[&str], part: &str| {
        let warnings = good(names).warnings;
        assert!(warnings.iter().any(|warning| warning.contains(part)), "{names:?}: {warnings:?}");
    };
    warned(&["ngl_on_cpu.json"], "-ngl 99 was asked for");
    warned(&["htp_without_log.md"], "lists what the build holds");
    // The session line is the proof; a session that failed beside one that opened is no failure.
    assert!(good(&["htp.md"]).warnings.is_empty());
    let both = good(&["htp.md", "fail_session.stderr"]);
    assert!(both.failure.is_none() && both.warnings.len() == 2, "{:?}", both.warnings);
    // A CPU run does not care for the NPU.
    assert!(good(&["bench.md", "fail_session.stderr"]).failure.is_none());
    let mut crashed = fixture("bench.md");
    crashed.bytes.extend(b"Segmentation fault\nRC=139\n");
    let crashed = LlamaCppReader.read(&[crashed]).unwrap_or_default();
    assert!(crashed.failure.is_none() && crashed.measurements.len() == 4 && crashed.warnings.len() == 2, "{:?}", crashed.warnings);
}

#[test]
fn what_is_unreadable_names_file_and_line() {
    let cases = [
        ("unreadable_cut.json", "line 29: the JSON is cut off"),
        ("unreadable_cut.csv", "line 3: the row is cut"),
        ("unreadable_other.json", "JSON of something else"),
        ("unreadable_text.txt", "not the output of a tool of llama.cpp"),
        ("unreadable_log.txt", "line 2: a log of llama.cpp that ends without a result"),
        ("unreadable_empty.txt", "empty"),
        ("fail_comma.csv", "line 2: `200,5` has a comma"),
    ];
    for (name, message) in cases {
        let error = read(&[name]).err().unwrap_or_else(|| panic!("{name} was read"));
        assert!(error.file == name && error.message.contains(message), "{error}");
    }
    for comma in [
        "llama_perf_context_print: prompt eval time = 149,19 ms / 7 tokens\n",
        "llama_perf_context_print: prompt eval time = 149.19 ms / 7 tokens ( 21.31 ms per token, 46,92 tokens per second)\n",
        "[ Prompt: 200,5 t/s | Generation: 30,5 t/s ]\n",
        "| model | size | params | backend | test | t/s |\n| - | - | - | - | - | - |\n| a | 1 GiB | 1 B | CPU | pp1 | 1,00 ± 0,10 |\n",
    ] {
        let read = LlamaCppReader.read(&[SourceFile { name: "c".to_owned(), bytes: comma.into() }]);
        assert!(read.as_ref().is_err_and(|error| error.message.contains("comma")), "{comma}: {read:?}");
    }
    // An empty stderr beside results is the normal case.
    assert_eq!(good(&["unreadable_empty.txt", "bench.md"]).measurements.len(), 4);
    let mnn = "| model | modelSize | backend | test | t/s |\n| - | - | - | - | - |\n| a | 1 GiB | CPU | pp1 | 1.00 ± 0.00 |\n";
    let error = LlamaCppReader.read(&[SourceFile { name: "m.md".to_owned(), bytes: mnn.into() }]).err();
    assert!(error.is_some_and(|error| error.message.contains("bench parse mnn")));
    assert!(LlamaCppReader.read(&[]).is_err());
}

/// xorshift64*: a seeded source of bytes.
fn next(state: &mut u64) -> u64 {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    state.wrapping_mul(0x2545_f491_4f6c_dd1d)
}

/// A metric is finite and not negative, whatever was read.
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
            sane(LlamaCppReader.read(&[SourceFile { name: name.clone(), bytes: whole.bytes[..end].to_vec() }]));
        }
        for _ in 0..300 {
            let mut file = whole.clone();
            for _ in 0..=next(&mut state) % 4 {
                let length = file.bytes.len().max(1) as u64;
                if let Some(byte) = file.bytes.get_mut((next(&mut state) % length) as usize) {
                    *byte = next(&mut state) as u8;
                }
            }
            sane(LlamaCppReader.read(&[file]));
        }
    }
}
