//! The words of every problem, and where it points.

use super::*;

#[test]
fn the_good_scenario_is_good() {
    let scenario = check(GOOD).expect("good");
    assert!(scenario.warnings.is_empty(), "{}", scenario.warnings);
    assert_eq!(scenario.device.soc_model, 57);
    assert_eq!((scenario.measure.queries, scenario.measure.warmup, scenario.seed), (3, 1, 1));
    assert_eq!(scenario.measure.timeout_ms, 600_000);
}

#[test]
fn keys_types_and_words() {
    let cases = [
        (with("gen-tokens", "gen_token"), "12:1 unknown key `gen_token` in [matrix] / did you mean `gen-tokens`?"),
        (
            with("gen-tokens = [16]\n", ""),
            "7:1 [matrix] needs the key `gen-tokens` / Tokens that are generated, the first of them from the prefill.",
        ),
        (with("[measure]", "[measur]"), "13:2 unknown key `measur` in the file / did you mean `measure`?"),
        (with("chunk = 32", "zzz = 1"), "6:1 unknown key `zzz` in [models.tiny] / known: context, chunk, geometry, tokenizer, template"),
        (
            with("context = 128", "context = \"128\""),
            "5:11 `context` must be a whole number, not the text `128` / Context length that the artifacts were built for, in tokens.",
        ),
        (with("[32, 96]", "[32, 0]"), "11:22 `prompt-tokens` must be at least 1 / A number of tokens, threads or sequences: at least 1."),
        (
            with("[32, 96]", "[32, 1.5]"),
            "11:22 `prompt-tokens` must be a whole number, not the number `1.5` / A number of tokens, threads or sequences: at least 1.",
        ),
        (
            with("[32, 96]", "99999999999"),
            "11:17 `prompt-tokens` must be a whole number in range / A number of tokens, threads or sequences: at least 1.",
        ),
        (with("[32, 96]", "[]"), "11:17 `prompt-tokens` is empty / name at least one value"),
        (with("\"w4a16\"", "\"w4a61\""), "10:18 `w4a61` is not a value of `quant` / did you mean `w4a16`?"),
        (
            with("\"w4a16\"", "4"),
            "10:18 `quant` must be a text in quotes, not the number `4` / one of: fp32, fp16, bf16, w8, w4, w8a16, w4a16, w8a8, w4a8, q8_0, q4_0, q4_k_m",
        ),
        (with("gen-tokens", "unit = \"nqu\"\ngen-tokens"), "12:8 `nqu` is not a value of `unit` / did you mean `npu`?"),
        (
            with("[measure]\n", "[measure]\norder = \"random\"\n"),
            "14:9 `random` is not a value of `order` / known: interleaved, sequential",
        ),
        (
            with("[measure]\n", "[measure]\nseed = 99999999999999999999\n"),
            "14:8 `seed` must be at most 9223372036854776000 / Seed of the shuffled order and of the prompts (default 1); those of a model that is made on the spot come from its own seed.",
        ),
        (
            with("local = true", "local = \"yes\""),
            "3:9 `local` must be `true` or `false`, not the text `yes` / `true` measures on this computer; a Snapdragon NPU is emulated there.",
        ),
        (
            with("name = \"good\"\n", "name = 2024-01-01\n"),
            "1:8 `name` must be a text in quotes, not a date / Name of the scenario: small letters, digits, `-` and `.`.",
        ),
        (with("[matrix]", "[[matrix]]"), "7:1 `matrix` must be a table, not a list / The cells: every combination of these lists."),
    ];
    for (text, expected) in cases {
        assert_eq!(only(&text), expected);
    }
}

#[test]
fn names_and_references_between_sections() {
    let cases = [
        (with("\"beta\"]", "\"betta\"]"), "8:21 unknown backend `betta` / did you mean `beta`?"),
        (with("\"beta\"]", "\"tensorrt\"]"), "8:21 unknown backend `tensorrt` / known: alpha, beta"),
        (
            with("\"beta\"]", "\"reader\"]"),
            "8:21 this version can't run `reader`: only `bench parse` knows it / backends that run: alpha, beta",
        ),
        (with("\"beta\"]", "\"alpha\"]"), "8:21 `alpha` is listed twice / take one of them out"),
        (with("[\"tiny\"]", "[\"tinny\"]"), "9:10 unknown model `tinny` / did you mean `tiny`?"),
        (with("[\"tiny\"]", "[\"phi\"]"), "9:10 unknown model `phi` / describe it in [models.phi]"),
        (
            with("\"good\"", "\"Good One\""),
            "1:8 `Good One` can't be the name of the scenario / use small letters, digits, `-` and `.`, a letter or digit first, 64 at most",
        ),
        (
            with("\"good\"", "\"..\""),
            "1:8 `..` can't be the name of the scenario / use small letters, digits, `-` and `.`, a letter or digit first, 64 at most",
        ),
        (
            with("[measure]\n", "[backends.alpha]\ncommand = [\"x\"]\n[measure]\n"),
            "13:11 `alpha` is the name of a built-in backend / give the program another name, for instance `my-runner`",
        ),
        (with("[measure]\n", "[backends.mine]\ncommand = []\n[measure]\n"), "14:11 `command` is empty / name at least one value"),
        (
            with("[measure]\n", "[backends.mine]\ncommand = [\"./gone\"]\n[measure]\n"),
            "14:12 the file `./gone` is not there / paths are relative to the scenario's folder, .",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(only(&text), expected);
    }
}

#[test]
fn quantities() {
    let measure = |line: &str| with("repetitions = { min = 3, max = 3 }", line);
    let other = |section: &str| format!("{GOOD}{section}\n");
    let cases = [
        (
            with("chunk = 32", "chunk = 256"),
            "6:9 a chunk of 256 tokens does not fit a context of 128 / the prefill graph's AR is at most the context length",
        ),
        (measure("repetitions = { min = 5, max = 3 }"), "14:32 `max` (3) is below `min` (5) / -"),
        (
            measure("repetitions = { min = 5, max = 9, until-ci = \"2\" }"),
            "14:46 `2` is not a percentage / write for instance \"2%\"; it lies between 0% and 100%",
        ),
        (
            measure("repetitions = { min = 5, max = 9, until-ci = \"0%\" }"),
            "14:46 `0%` is not a percentage / write for instance \"2%\"; it lies between 0% and 100%",
        ),
        (measure("warmup = { min = 6, max = 5 }"), "14:27 `max` (5) is below `min` (6) / -"),
        (measure("timeout = \"0s\""), "14:11 `timeout` is shorter than a second / nothing could be measured in it"),
        (measure("budget = \"99999h\""), "14:10 `budget` is longer than 30 days / -"),
        (measure("queries = 0"), "14:11 `queries` must be at least 1 / Measured queries in each launch (default 3)."),
        (
            other("[verify]\nreference = \"backend:beta\""),
            "16:13 the reference `backend:beta` is not carried out by this version / use \"fp32\" or \"none\"",
        ),
        (
            other("[verify]\nreference = \"file:x\""),
            "16:13 the reference `file:x` is not carried out by this version / use \"fp32\" or \"none\"",
        ),
        (other("[verify]\nreference = \"fp23\""), "16:13 `fp23` is not a reference / did you mean `fp32`?"),
        (
            other("[verify]\nmin-agreement = 1.5"),
            "16:17 `min-agreement` must be at most 1 / Least share of tokens before the first difference that a quantised model has to reach, from 0 to 1.",
        ),
        (
            other("[verify]\nmin-agreement = nan"),
            "16:17 `min-agreement` must be at most 1 / Least share of tokens before the first difference that a quantised model has to reach, from 0 to 1.",
        ),
        (
            other("[telemetry]\nrate = \"200Hz\""),
            "16:8 `200Hz` is not a sampling rate / write for instance \"10Hz\", from \"0Hz\" (off) to \"50Hz\"",
        ),
        (with("[32, 96]", "[32, 32]"), "11:22 `32` is listed twice / take one of them out"),
    ];
    for (text, expected) in cases {
        assert_eq!(only(&text), expected);
    }
    let bad = only(&measure("timeout = \"ten minutes\""));
    assert!(bad.starts_with("14:11 `ten minutes` is not a duration / write for instance \"90s\", \"10m\" or \"1h 30m\" ("), "{bad}");
}

#[test]
fn power() {
    let power = |rest: &str| format!("{GOOD}\n[power]\n{rest}\n");
    let phone = |rest: &str| power(rest).replace("local = true", "all = true");
    let cases = [
        (phone("usb-off = \"uhubctl -a off\""), "17:11 `usb-off` without `usb-on` would leave the device without its cable / name both"),
        (phone("usb-on = \"x\""), "17:10 `usb-on` without `usb-off` has nothing to undo / name both"),
        (power("usb-off = \"x\"\nusb-on = \"y\""), "17:11 `usb-off` cuts the cable of a phone or board, and this computer is measured / -"),
        (
            phone("on-battery = true\nusb-off = \"x\"\nusb-on = \"y\""),
            "17:14 `on-battery` and `usb-off` exclude each other / the cable is pulled by hand or cut by a hub",
        ),
        (phone("usb-off = \"x 'y\"\nusb-on = \"y\""), "17:11 a quote of `x \\'y` has no end / or write the words as a list"),
        (power("baseline = \"30s\""), "17:12 an idle baseline of 30s is too short for a battery's gauge / at least \"60s\", or \"off\""),
        (power("method = \"meter\""), "17:10 `method = \"meter\"` without a `meter` / add for instance `meter = { file = \"meter.csv\" }`"),
        (power("meter = {}"), "17:9 a `meter` has either a `file` or a `command` / write for instance { file = \"meter.csv\" }"),
        (power("method = \"batery\""), "17:10 `batery` is not a value of `method` / did you mean `battery`?"),
        (power("supply = \"usb\""), "17:10 `usb` is not a value of `supply` / known: measured"),
        (
            power("[telemetry]\nrate = \"0Hz\""),
            "16:1 [power] without telemetry has nothing to measure with / take `rate = \"0Hz\"` out of [telemetry]",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(only(&text), expected);
    }
    let good = check(&phone(
        "usb-off = \"uhubctl -l 1-1 -p 2 -a off\"\nusb-on = [\"my hub\", \"on\"]\naway = \"4m\"\nwait = \"90s\"\nbaseline = \"2m\"",
    ))
    .expect("good");
    let found = good.power.expect("power");
    assert_eq!(found.usb_off, ["uhubctl", "-l", "1-1", "-p", "2", "-a", "off"]);
    assert_eq!((found.usb_on, found.away_ms, found.baseline_ms), (vec!["my hub".to_owned(), "on".to_owned()], Some(240_000), 120_000));
    let plain = check(&power("baseline = \"off\"")).expect("good").power.expect("power");
    assert_eq!((plain.baseline_ms, plain.on_battery, plain.measured), (0, false, false));
    assert_eq!(check(&power("")).expect("good").power.expect("power").baseline_ms, 60_000);
    assert!(check(GOOD).expect("good").power.is_none());
    assert_eq!(found.wait_ms, Some(90_000));
    let warned = check(&power("away = \"4m\"\nrails = \"a/b\"\nmethod = \"battery\"")).expect("good").warnings;
    assert_eq!(warned.problems.len(), 2, "{warned}");
}

#[test]
fn the_device() {
    assert_eq!(check(&with("local = true", "local = true\nsoc = \"sm8750\"")).expect("good").device.htp_arch, 79);
    assert_eq!(
        only(&with("local = true", "local = true\nsoc = \"SM865O\"")),
        "4:7 unknown SoC `SM865O` / did you mean `SM8650`?; for a SoC that is not in the catalogue state `soc-model` and `hexagon`"
    );
    let choices = "this computer: `local = true`; phones and boards over ADB: `soc = \"SM8650\"`, `serial = [\"...\"]` or `all = true`";
    assert_eq!(only(&with("local = true", "local = false")), format!("3:9 no device is chosen / {choices}"));
    assert_eq!(only(&with("local = true", "local = true\nall = true")), format!("4:7 `local` and `all` exclude each other / {choices}"));
    assert_eq!(
        only(&with("local = true", "all = true\nserial = \"R58\"")),
        "4:10 `serial` and `all` exclude each other / every device, or those that are named"
    );
    assert_eq!(only(&with("local = true\n", "")), format!("2:1 no device is chosen / {choices}"));
    assert_eq!(only(&with("[device]\nlocal = true\n", "")), "1:1 the file needs the key `device` / The device that is measured.");
}

#[test]
fn every_problem_of_a_file_at_once() {
    let text = GOOD
        .replace("context = 128", "context = 0\ncontxt = 1")
        .replace("\"alpha\"", "\"alpah\"")
        .replace("\"w4a16\"", "\"w4a61\"")
        .replace("gen-tokens", "gen_tokens")
        + "timeout = \"soon\"\n[prefer]\nduration = \"3m\"\n[[artifact]]\nmodel = \"tiny\"\nquant = \"fp16\"\nbackend = \"beta\"\nfiles = \"gone/*.bin\"\n";
    let found: Vec<String> = problems(&text).iter().map(|p| format!("{}:{} {}", p.line.unwrap(), p.column.unwrap(), p.message)).collect();
    assert_eq!(
        found,
        [
            "5:11 `context` must be at least 1",
            "6:1 unknown key `contxt` in [models.tiny]",
            "9:12 unknown backend `alpah`",
            "11:18 `w4a61` is not a value of `quant`",
            "13:1 unknown key `gen_tokens` in [matrix]",
            "16:11 `soon` is not a duration",
            "18:1 unknown key `duration` in [prefer]",
            "23:9 `gone/*.bin` matches no file",
        ]
    );
}

#[test]
fn syntax_errors_come_alone_and_all() {
    let list = problems(&GOOD.replace("name = \"good\"", "name = good").replace("local = true", "local = yes").replace("tiny", "tinny"));
    assert!(list.len() >= 2, "{list:#?}");
    assert!(list.iter().all(|p| p.message.starts_with("not TOML: ")), "{list:#?}");
    assert_eq!((list[0].line, list[1].line), (Some(1), Some(3)));
    assert_eq!(only(&with("chunk = 32", "context = 64")), "6:1 not TOML: duplicate key / -");
}

#[test]
fn artifacts_need_their_files() {
    let shaped = with("chunk = 32", GEOMETRY);
    let artifact = |rest: &str| format!("{shaped}[[artifact]]\nmodel = \"tiny\"\nquant = \"fp16\"\nbackend = \"alpha\"\n{rest}\n");
    assert_eq!(only(&artifact("")), "15:1 the artifact names no file / add `files = [\"…\"]`, `config = \"…\"` or both");
    assert_eq!(
        only(&artifact("config = \"c.json\"")),
        "19:10 the file `c.json` is not there / paths are relative to the scenario's folder, ."
    );
    assert_eq!(
        only(&artifact("config = \"src\"")),
        "19:10 the file `src` is a folder, not a file / paths are relative to the scenario's folder, ."
    );
    assert_eq!(
        only(&artifact("files = [\"x/***\"]")).split(" / ").next(),
        Some("19:10 `x/***` is not a path or glob: wildcards are either regular `*` or recursive `**`")
    );
    assert_eq!(
        only(&artifact("files = \"Cargo.toml\"").replace("\"alpha\"\nfiles", "\"alfa\"\nfiles")),
        "18:11 unknown backend `alfa` / did you mean `alpha`?"
    );
    for (name, shown) in [(" ", " "), ("a\\nb", "a\\nb")] {
        assert_eq!(
            only(&artifact(&format!("files = \"Cargo.toml\"\nquant-native = \"{name}\""))),
            format!("20:16 `{shown}` can't be a `quant-native` / use 1 to 100 characters in one line, for instance `HQQ int4 block 64`")
        );
    }
    let twice = artifact("files = \"Cargo.toml\"")
        + "[[artifact]]\nmodel = \"tiny\"\nquant = \"fp16\"\nbackend = \"alpha\"\nconfig = \"Cargo.toml\"\n";
    assert_eq!(
        only(&twice),
        "20:1 two artifacts for the same cells / artifact 1 is for the same cells; tell them apart by `variant` or `context`"
    );
    assert_eq!(
        only(&artifact("files = \"Cargo.toml\"").replace(GEOMETRY, "chunk = 32")),
        "16:9 `tiny` has no `tokenizer`, and no `geometry` that tells `vocab`: no prompts can be made for it / add `tokenizer = \"path/to/tokenizer.json\"` to [models.tiny]"
    );
}

#[test]
fn a_real_model_needs_a_tokenizer_and_only_what_is_known_of_its_shape() {
    let dir = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).expect("written");
    write("g.toml", "name = \"real\"\nhead-dim = 64\nvocab = 128256\n");
    write("tokenizer.json", "{}");
    write("m.bin", "");
    let artifact = "[[artifact]]\nmodel = \"tiny\"\nquant = \"w4a16\"\nbackend = \"alpha\"\nfiles = \"m.bin\"\n";
    let text = |keys: &str| with("chunk = 32", keys) + artifact;
    let warned = |keys: &str| check_in(dir.path(), &text(keys)).expect("no error").warnings.problems.iter().map(line).collect::<Vec<_>>();

    let scenario = check_in(dir.path(), &text("geometry = \"g.toml\"\ntokenizer = \"./tokenizer.json\"")).expect("a scenario");
    assert!(scenario.warnings.is_empty(), "{}", scenario.warnings);
    let geometry = scenario.models["tiny"].model.geometry.as_ref().expect("a geometry");
    assert_eq!((geometry.head_dim, geometry.vocab, geometry.layers, geometry.bos), (Some(64), Some(128_256), None, None));
    let plan = scenario.plan(&super::BACKENDS, &super::fake::device());
    assert_eq!(plan.tokenizers["tiny"], dir.path().join("tokenizer.json").display().to_string());
    let stored = super::super::Plan::from_toml(&plan.to_toml().expect("toml")).expect("a plan");
    assert_eq!(stored, plan);
    // The chat template stands beside the tokenizer.
    let chat = "geometry = \"g.toml\"\ntokenizer = \"tokenizer.json\"\ntemplate = \"chat\"";
    let refused = |keys: &str| {
        let problems = check_in(dir.path(), &text(keys)).expect_err("refused").problems;
        problems.iter().map(line).collect::<Vec<_>>().join("; ")
    };
    assert!(refused(chat).contains("no chat template is beside "), "{}", refused(chat));
    write("tokenizer_config.json", "{\"chat_template\": \"{{ raise_exception('x y') }}\"}");
    assert!(refused(chat).contains("can't be applied: ") && refused(chat).contains("x y"), "{}", refused(chat));
    write("chat_template.jinja", "[INST] {{ messages[0].content }} [/INST]");
    let plan = check_in(dir.path(), &text(chat)).expect("a scenario").plan(&super::BACKENDS, &super::fake::device());
    assert_eq!(plan.template("tiny"), super::super::Template::Chat);
    assert_eq!(super::super::Plan::from_toml(&plan.to_toml().expect("toml")).expect("a plan"), plan);
    let alone = refused("geometry = \"g.toml\"\ntemplate = \"chat\"");
    assert!(alone.contains("of a model without a tokenizer"), "{alone}");
    assert!(refused("geometry = \"g.toml\"\ntemplate = \"jinja\"").contains("chat"));
    assert_eq!(
        warned("geometry = \"g.toml\""),
        [
            "16:9 `tiny` has no `tokenizer`: its prompts will be random token ids, and no text / add `tokenizer = \"path/to/tokenizer.json\"` to [models.tiny]"
        ]
    );
    assert!(warned("tokenizer = \"tokenizer.json\"").is_empty());

    write(
        "g.toml",
        "name = \"made\"\nvocab = 512\nseed = 1\nlayers = 2\nhidden = 8\nheads = 1\nkv-heads = 1\nhead-dim = 8\nffn = 8\nnorm-eps = 1e-5\nbos = 0\neos = 1\n",
    );
    let made = check_in(dir.path(), &text("geometry = \"g.toml\"\ntokenizer = \"tokenizer.json\"")).expect_err("incomplete").problems;
    assert_eq!(
        line(&made[0]),
        "3:8 a model with a `seed` needs `rope-theta`, `pad` / `seed` makes the model on the spot; for a model of your own leave `seed` out"
    );
    write("g.toml", &std::fs::read_to_string("scenarios/models/tiny-llama.toml").expect("shipped"));
    let both = check_in(dir.path(), &text("geometry = \"g.toml\"\ntokenizer = \"tokenizer.json\"")).expect_err("both").problems;
    assert!(line(&both[0]).starts_with("7:13 `tokenizer` is for models of your own, and this one's geometry has a `seed`"), "{both:?}");
}

#[test]
fn problems_of_a_geometry_are_reported_in_its_file() {
    let dir = tempfile::tempdir().expect("a folder");
    let geometry = std::fs::read_to_string("scenarios/models/tiny-llama.toml").expect("shipped");
    let bad = geometry.replace("kv-heads = 2", "kv-heads = 3").replace("vocab = 512", "vocab = 2").replace("layers", "layer");
    std::fs::write(dir.path().join("g.toml"), bad).expect("written");
    let text = with("chunk = 32", "chunk = 32\ngeometry = \"g.toml\"");
    let problems = check_in(dir.path(), &text).expect_err("bad geometry");
    let lines: Vec<String> = problems.problems.iter().map(line).collect();
    assert_eq!(
        lines,
        [
            "4:1 unknown key `layer` in the file / did you mean `layers`?",
            "7:12 4 query heads can't share 3 key-value heads evenly / every key-value head serves the same number of query heads",
            "20:7 `pad` is token 2 of a vocabulary of 2 / token ids go from 0 to 1",
        ]
    );
    assert!(problems.problems.iter().all(|p| p.file.ends_with("g.toml")));
    assert!(problems.render(false).contains("g.toml:7:12]\n 7 │ kv-heads = 3"), "{}", problems.render(false));

    let gone = check_in(dir.path(), &text.replace("g.toml", "h.toml")).expect_err("no geometry").problems;
    assert_eq!(
        line(&gone[0]),
        format!("7:12 the file `h.toml` is not there / paths are relative to the scenario's folder, {}", dir.path().display())
    );
}

#[test]
fn warnings_do_not_stop_a_scenario() {
    let warned = |text: &str| {
        let list = check(text).expect("only warned").warnings.problems;
        assert!(list.iter().all(|p| p.severity == super::super::Severity::Warning));
        list.iter().map(line).collect::<Vec<_>>()
    };
    assert_eq!(
        warned(&with("max = 3 }", "until-ci = \"2%\" }")),
        ["14:37 `until-ci` has nothing to decide: `min` equals `max` / raise `max` above 3 to leave room"]
    );
    let verified = |rest: &str| format!("{GOOD}[verify]\nreference = \"fp32\"\n{rest}");
    assert_eq!(
        warned(&verified("min-agreement = 0.5")),
        ["16:13 no fp32 reference for `tiny`: its tokens will not be checked / the reference is computed from a `geometry` with a `seed`"]
    );
    assert_eq!(
        warned(&with("[measure]", "exclude = [{ backend = \"beta\", prompt-tokens = 64 }]\n[measure]")),
        ["13:12 this `exclude` leaves nothing out / it agrees with no combination of the matrix"]
    );
    let quantised = "16:13 without `min-agreement` no token of a w4a16 model can be wrong / say how much has to agree, from 0 to 1: `min-agreement = 1.0` where the format holds the weights exactly";
    assert!(warned(&verified("")).iter().any(|w| w == quantised), "{:?}", warned(&verified("")));
    let floats = warned(&verified("").replace("\"fp16\", \"w4a16\"", "\"fp16\", \"fp32\""));
    assert!(!floats.iter().any(|w| w.contains("min-agreement")), "{floats:?}");
    let artifact = "[[artifact]]\nmodel = \"tiny\"\nquant = \"w8a8\"\nbackend = \"beta\"\nfiles = \"Cargo.*\"\n";
    assert_eq!(
        warned(&format!("{}{artifact}", with("chunk = 32", GEOMETRY))),
        ["15:1 this artifact is for no cell of the matrix / compare its keys with the lists of [matrix]"]
    );
}

#[test]
fn a_matrix_must_leave_cells_and_not_too_many() {
    let all = with("[measure]", "exclude = [{ model = \"tiny\" }]\n[measure]");
    assert_eq!(only(&all), "7:1 [matrix] leaves no cell to measure / every combination is left out by `exclude`");
    let empty = with("[measure]", "exclude = [{}]\n[measure]");
    assert_eq!(only(&empty), "13:12 an empty `exclude` leaves everything out / name at least one key");
    let many: Vec<String> = (1..=5000).map(|n| n.to_string()).collect();
    assert_eq!(
        only(&with("[32, 96]", &format!("[{}]", many.join(",")))),
        "7:1 [matrix] has 20000 combinations / 10000 are the most; split the scenario"
    );
}

#[test]
fn a_problem_as_data_and_as_a_picture() {
    let problems = check(&with("\"w4a16\"", "\"w4a61\"")).expect_err("bad");
    let json = serde_json::to_value(&problems).expect("serializes");
    assert_eq!(
        json["problems"][0],
        serde_json::json!({ "severity": "error", "file": "s.toml", "line": 10, "column": 18,
            "message": "`w4a61` is not a value of `quant`", "help": "did you mean `w4a16`?" })
    );
    assert_eq!(problems.to_string(), "s.toml:10:18: `w4a61` is not a value of `quant` (did you mean `w4a16`?)");
    let picture = "  × `w4a61` is not a value of `quant`
    ╭─[s.toml:10:18]
 10 │ quant = [\"fp16\", \"w4a61\"]
    ·                  ───────
    ╰────
  help: did you mean `w4a16`?
";
    assert_eq!(problems.render(false), picture);
    assert!(problems.render(true).contains("\u{1b}["));
}
