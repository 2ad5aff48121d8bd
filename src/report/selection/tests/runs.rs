//! Whole selections: who is a candidate, who is vetoed, who is never set beside whom, and what is said.

use std::path::Path;

use super::{
    super::{Among, Answer, Joint, Origin, Standing, State, Sure, read, table, words},
    *,
};
use crate::scenario::preset;

/// Three that were measured on a phone with twelve launches each: `fast` is best in decode, `lean` in memory, `slow` is over the limit of TTFT.
fn three() -> Lab {
    let mut lab = Lab::new();
    for (backend, ttft, decode, memory) in [("fast", 300.0, 20.0, 2000.0), ("lean", 330.0, 16.0, 1000.0), ("slow", 520.0, 18.0, 1500.0)] {
        for (prompt, factor) in [(128, 1.0), (512, 4.0)] {
            let (ttft, decode, memory) = (about(ttft * factor, 12), about(decode, 12), about(memory, 12));
            lab.cell(backend, prompt, &[], &[("ttft_ms", &ttft), ("decode_tok_s", &decode), ("peak_mem_mb", &memory)]);
        }
    }
    lab.require("ttft", Limit::AtMost(380.0), Some(128));
    lab
}

#[test]
fn the_one_over_the_limit_is_vetoed_and_the_others_are_ranked() {
    let lab = three();
    let selection = lab.select();
    let group = only(&selection);
    let slow = candidate(group, "slow");
    assert_eq!((slow.state, slow.cells.len()), (State::Vetoed, 2));
    let finding = &slow.findings[0];
    // 1 - 520 / 380.
    let judged = finding.judged.as_ref().expect("measured");
    assert!((judged.slack.expect("a number") + 0.368_421).abs() < 1e-3 && finding.standing == Standing::Violated, "{judged:?}");
    // Without [prefer] TTFT and decode count alike: `lean` has sqrt(300/330 x 16/20) = 0.8528 of the first.
    let [ranking] = &group.rankings[..] else { panic!("{:?}", group.rankings) };
    assert_eq!((order(group, ranking), ranking.among), (vec!["fast", "lean"], Among::Passing));
    assert!((ranking.places[0].score - 1.0).abs() < 1e-9 && (ranking.places[1].score - 0.852_802_865).abs() < 1e-6, "{ranking:?}");
    assert_eq!(ranking.dims.iter().map(|dim| dim.workloads.len()).collect::<Vec<_>>(), [2, 2]);
    assert!(matches!(ranking.sure, Sure::Bootstrap { first, launches: 12, .. } if first > 0.999));
    // Memory is not weighed and keeps `lean` on the front.
    assert_eq!(ranking.front_over, ["ttft", "decode", "memory"]);
    assert_eq!(ranking.front_without, ["energy", "sustained-ratio"]);
    assert!(ranking.places.iter().all(|place| place.on_front));
    assert_eq!(group.verdict.kind, Answer::Recommended);
    assert_eq!(group.candidates[group.verdict.candidates[0]].backend, "fast");
    // 1 - 300 / 380 = 0.2105.
    let closest = group.closest.as_ref().expect("one");
    assert!((closest.slack - 0.210_5).abs() < 1e-3, "{closest:?}");
    assert_eq!(
        group.identity,
        "Same source model by the scenario's word, different artifacts: speed is ranked here, and nobody has shown that the answers are equally good."
    );

    let text = selection.sentences().join("\n");
    for said in [
        "tiny-llama on phone-1 (phone): fast · w4a16. fast · w4a16 is first in 100 % of 2000 resamples of the launches, 17.3 % ahead of the next, within this session only.",
        "Held against 1 requirement; of 3 candidates: 2 meet every requirement, 1 vetoed.",
        "Vetoed: slow · w4a16 by ttft median <= 380 (prompt-tokens 128), measured 520.",
        "% beyond the limit.",
        "On the Pareto front of ttft, decode, memory: fast · w4a16, lean · w4a16.",
        "What would change it first: ttft median <= 380 (prompt-tokens 128), which fast · w4a16 keeps with 21.",
    ] {
        assert!(text.contains(said), "{said}\n{text}");
    }
    assert!((5..=8).contains(&selection.sentences().len()), "{text}");
    let table = table(&selection);
    assert_eq!(table.len(), 4, "a head and a row each: {table:#?}");
    assert!(table[1].trim_start().starts_with("fast") && table[3].contains("vetoed"), "{table:#?}");
}

#[test]
fn preferences_turn_the_order_and_what_is_missing_is_not_weighed() {
    let mut lab = three();
    // Memory 3/4, decode 1/4: fast (1000/2000)^0.75 = 0.5946, lean (16/20)^0.25 = 0.9457.
    lab.prefer(&[("memory", 3.0), ("decode", 1.0)]);
    let selection = lab.select();
    let ranking = &only(&selection).rankings[0];
    assert_eq!(order(only(&selection), ranking), ["lean", "fast"]);
    assert!((ranking.places[0].score - 0.945_741_6).abs() < 1e-6 && (ranking.places[1].score - 0.594_603_6).abs() < 1e-6, "{ranking:?}");
    // Nobody measured energy: it is said, and decode counts alone.
    lab.prefer(&[("energy", 9.0), ("decode", 1.0)]);
    let selection = lab.select();
    let (group, ranking) = (only(&selection), &only(&selection).rankings[0]);
    assert_eq!((order(group, ranking), ranking.dims.len(), ranking.dims[0].share), (vec!["fast", "lean"], 1, 1.0));
    assert_eq!(ranking.dropped[0].why, "not measured");
    assert!(group.unpromised.contains(&"energy is preferred and not weighed: not measured".to_owned()), "{:?}", group.unpromised);
    lab.prefer(&[("energy", 1.0)]);
    let selection = lab.select();
    assert_eq!(only(&selection).verdict.kind, Answer::NoRecommendation);
    assert_eq!(only(&selection).verdict.reason, "nothing of what is preferred was measured for all candidates");
}

#[test]
fn what_is_not_decided_is_not_recommended() {
    let mut lab = three();
    // No cell has this prompt: nobody can promise it.
    lab.require("decode", Limit::AtLeast(5.0), Some(4096));
    let selection = lab.select();
    let group = only(&selection);
    assert_eq!(candidate(group, "fast").state, State::Undecided);
    assert_eq!((candidate(group, "fast").findings[1].standing, candidate(group, "slow").state), (Standing::NotMeasured, State::Vetoed));
    assert_eq!((group.rankings[0].among, group.verdict.kind), (Among::NotVetoed, Answer::NoRecommendation));
    assert_eq!(group.unpromised, ["decode median >= 5 (prompt-tokens 4096): no cell has these conditions"]);
    // A condition that names another candidate is none of this one's.
    let mut lab = three();
    lab.session.plan.require[0].cells.insert("backend".to_owned(), vec!["slow".to_owned()]);
    let selection = lab.select();
    assert!(candidate(only(&selection), "fast").findings.is_empty());
    assert_eq!(candidate(only(&selection), "slow").state, State::Vetoed);
}

#[test]
fn classes_devices_timings_and_composed_figures_stay_apart() {
    let mut lab = Lab::new();
    let (ttft, decode) = (about(100.0, 12), about(20.0, 12));
    let metrics: Metrics = &[("ttft_ms", &ttft), ("decode_tok_s", &decode)];
    lab.cell("a", 128, &[], metrics);
    lab.cell("b", 128, &[("ttft_method", "runtime_reported")], metrics);
    lab.cell("bound", 128, &[("decode_method", "composed"), ("ttft_method", "composed")], metrics);
    lab.cell("sim", 128, &[("device_class", "emulator")], metrics);
    lab.cell("sim2", 128, &[("device_class", "emulator")], metrics);
    lab.cell("board", 128, &[("device_class", "board"), ("device", "board-1")], metrics);
    lab.cell("gone", 128, &[("status", "failed"), ("reason", "it broke")], &[]);
    lab.cell("skipped", 128, &[("status", "skipped"), ("reason", "not installed")], &[]);
    let selection = lab.select();
    let places: Vec<(&str, &str)> = selection.groups.iter().map(|g| (g.class.as_str(), g.device.as_str())).collect();
    assert_eq!(places, [("phone", "phone-1"), ("board", "board-1"), ("emulator", "phone-1")]);
    let phone = &selection.groups[0];
    let states = ["a", "b", "bound", "gone", "skipped"].map(|backend| candidate(phone, backend).state);
    assert_eq!(states, [State::Passes, State::Passes, State::Headroom, State::Failed, State::NotTried]);
    assert_eq!(candidate(phone, "gone").reason.as_deref(), Some("it broke"));
    // One ranking for each way of timing, and no first across them.
    let orders: Vec<_> = phone.rankings.iter().map(|ranking| order(phone, ranking)).collect();
    assert_eq!(orders, [vec!["b"], vec!["a"]]);
    assert_eq!(phone.verdict.reason, "candidates that pass were timed in 2 ways, and nothing is ranked across them");
    let emulator = &selection.groups[2];
    assert!(emulator.rankings.is_empty() && emulator.verdict.candidates.is_empty());
    assert_eq!(
        selection.of_group(emulator),
        [
            "tiny-llama on phone-1 (emulator): no recommendation, since emulator time is not device time: nothing is ranked and nothing is selected from it."
        ]
    );
    // Alone and without a requirement there is no choice.
    assert_eq!(selection.groups[1].verdict.kind, Answer::NoRecommendation);
    assert!(
        selection
            .of_group(phone)
            .iter()
            .any(|said| said == "Headroom, not a choice: bound · w4a16, composed of graph times, a bound that no engine reaches.")
    );
}

#[test]
fn settings_are_choices_and_workloads_are_what_all_have() {
    let mut lab = Lab::new();
    let metrics = |ttft: f64| [("ttft_ms", about(ttft, 12))];
    for (profile, ttft) in [("burst", 100.0), ("balanced", 150.0)] {
        for prompt in [128, 512] {
            let own = metrics(ttft * f64::from(prompt));
            let status = if profile == "burst" && prompt == 512 { "skipped" } else { "ok" };
            lab.tuned("a", prompt, Some(profile), &[("status", status)], &[("ttft_ms", &own[0].1)]);
        }
    }
    lab.prefer(&[("ttft", 1.0)]);
    let selection = lab.select();
    let group = only(&selection);
    let names: Vec<&str> = group.candidates.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["a · w4a16, perf-profile burst", "a · w4a16, perf-profile balanced"]);
    let ranking = &group.rankings[0];
    assert_eq!((ranking.dims[0].workloads.as_slice(), ranking.dims[0].cut), (&["128 → 16 tokens, context 128".to_owned()][..], true));
    assert!((ranking.places[1].score - 100.0 / 150.0).abs() < 1e-9);
    assert_eq!((group.candidates[0].cells.len(), group.candidates[0].lost), (1, 1));
}

/// A product meets every prompt: who gave wrong tokens at one, or crashed, is not recommended for the other, and nothing is said of the tokens of all.
#[test]
fn a_cell_that_broke_leaves_its_candidate_undecided() {
    for status in ["unverified", "failed"] {
        let mut lab = Lab::new();
        for (backend, prompt, ttft) in [("a", 128, 100.0), ("a", 512, 400.0), ("b", 128, 150.0), ("b", 512, 600.0)] {
            let broken = backend == "a" && prompt == 512;
            let check = if broken { "contradicted" } else { "confirmed" };
            let fields = [
                ("status", if broken { status } else { "ok" }),
                ("check_tokens", check),
                ("reason", if broken { "what came" } else { "" }),
            ];
            lab.cell(backend, prompt, &fields, &[("ttft_ms", &about(ttft, 12))]);
        }
        let selection = lab.select();
        let group = only(&selection);
        let a = candidate(group, "a");
        assert_eq!(a.state, State::Undecided);
        assert!(a.reason.as_ref().is_some_and(|why| why.ends_with(&format!("does not count ({status}): what came"))), "{:?}", a.reason);
        assert_ne!(group.verdict.kind, Answer::Recommended, "{}", group.verdict.reason);
        assert!(!group.identity.contains("agree"), "{}", group.identity);
    }
}

/// Two programs in one class of quantisation, of whose models no file is known: neither one source nor another quantisation is.
#[test]
fn programs_without_artifacts_are_of_no_known_source() {
    let mut lab = Lab::new();
    for (backend, ttft, artifact) in [("a", 100.0, ""), ("b", 200.0, "tokenizer-0011223344556677")] {
        lab.cell(backend, 128, &[("artifact", artifact)], &[("ttft_ms", &about(ttft, 12))]);
    }
    let said = |lab: &Lab| only(&lab.select()).identity.clone();
    assert_eq!(
        said(&lab),
        "No artifact of a · w4a16, b · w4a16 is known: speed is ranked here, and nothing tells whether all ran the same model."
    );
    // Equal tokens are shown, and are all that is.
    for cell in lab.session.run.cells.values_mut() {
        cell.fields.insert("check_tokens", "confirmed".to_owned());
    }
    assert_eq!(
        said(&lab),
        "No artifact of a · w4a16, b · w4a16 is known, and nothing but their tokens tells what they ran; the tokens of all 2 candidates agree \
         with the reference as far as the scenario asks."
    );
}

/// As in `gate`: what a computer measured that may have been busy with something else decides nothing about times, and memory is its own.
#[test]
fn a_busy_computer_decides_nothing_about_times() {
    let mut lab = Lab::new();
    for (backend, value) in [("a", 100.0), ("b", 200.0)] {
        let values = about(value, 12);
        lab.cell(backend, 128, &[("device_class", "pc")], &[("ttft_ms", &values), ("peak_mem_mb", &values)]);
    }
    lab.session.run.manifest = serde_json::json!({ "device": { "class": "pc", "cores": 2 }, "host": { "load": "4.21 5.18 5.15 1/80 9" } });
    let verdict = |lab: &mut Lab, word: &str| {
        lab.prefer(&[(word, 1.0)]);
        only(&lab.select()).verdict.clone()
    };
    assert_eq!(verdict(&mut lab, "memory").kind, Answer::Recommended);
    let busy = verdict(&mut lab, "ttft");
    assert_eq!(busy.kind, Answer::NoRecommendation);
    assert!(busy.reason.starts_with("the computer may have been busy with something else (load 4.2 of 2 CPUs)"), "{}", busy.reason);
    lab.session.run.manifest = serde_json::json!({});
    assert_eq!(verdict(&mut lab, "ttft").kind, Answer::Recommended);
}

/// What others did to the launches of a PC is no engine's instability.
#[test]
fn a_busy_computer_vetoes_nobody_by_stability() {
    let mut lab = Lab::new();
    for (backend, stability) in [("a", "stable"), ("b", "unstable")] {
        let fields = [("device_class", "pc"), ("stability", stability), ("stability_reason", "spread over 5 %")];
        lab.cell(backend, 128, &fields, &[("ttft_ms", &about(100.0, 12))]);
    }
    let of = |lab: &Lab, backend: &str| {
        let selection = lab.select_for(preset("in-car"));
        let place = selection.needs.iter().position(|need| need.words.starts_with("stability")).expect("a need of the preset");
        let found = candidate(only(&selection), backend).clone();
        let finding = found.findings.iter().find(|finding| finding.need == place).expect("judged").clone();
        (found.state, finding.standing, finding.why)
    };
    assert_eq!(of(&lab, "b"), (State::Vetoed, Standing::Violated, String::new()));
    assert_eq!(of(&lab, "a").1, Standing::Passed);
    lab.session.run.manifest = serde_json::json!({ "device": { "class": "pc", "cores": 2 }, "host": { "load": "4.21 5.18 5.15 1/80 9" } });
    let why = "the computer may have been busy with something else (load 4.2 of 2 CPUs)".to_owned();
    assert_eq!(of(&lab, "b"), (State::Undecided, Standing::Undecided, why.clone()));
    assert_eq!(of(&lab, "a"), (State::Undecided, Standing::Undecided, why));
}

/// With twelve launches that overlap widely nobody is first often enough.
#[test]
fn candidates_that_are_not_told_apart_are_both_named() {
    let mut lab = Lab::new();
    let wide = |at: f64| -> Vec<f64> { (0..12).map(|n| at + f64::from(n * 7 % 12) * 4.0).collect() };
    for (backend, ttft) in [("a", 100.0), ("b", 101.0), ("far", 900.0)] {
        lab.cell(backend, 128, &[], &[("ttft_ms", &wide(ttft))]);
    }
    lab.prefer(&[("ttft", 1.0)]);
    let selection = lab.select();
    let group = only(&selection);
    assert_eq!((group.verdict.kind, group.verdict.candidates.len()), (Answer::NotToldApart, 2), "{:?}", group.verdict);
    assert!(selection.sentences()[0].contains("no recommendation between a · w4a16, b · w4a16"), "{}", selection.sentences()[0]);
    // Cells that share their launches are drawn together and not twice.
    for planned in &mut lab.session.plan.cells {
        planned.launch_group = Some(0);
    }
    assert_eq!(only(&lab.select()).verdict.kind, Answer::NotToldApart);
}

#[test]
fn a_preset_adds_what_the_scenario_has_not_and_says_so() {
    let mut lab = three();
    lab.session.plan.prefer = Some(Prefer { use_case: Some("chat-assistant".to_owned()), ..Prefer::default() });
    let selection = lab.select();
    // The scenario's own limit of TTFT takes the place of the preset's.
    let needs: Vec<(&str, Origin)> = selection.needs.iter().map(|need| (need.words.as_str(), need.origin)).collect();
    assert_eq!(
        needs,
        [("ttft median <= 380 (prompt-tokens 128)", Origin::Scenario), ("decode median >= 8tok/s (prompt-tokens 512)", Origin::Preset)]
    );
    assert!(selection.needs[1].reason.is_some() && selection.needs[1].source.as_deref().is_some_and(|url| url.starts_with("https://")));
    // ttft 2, decode 2, memory 1, energy 1 of 6.
    let shares: Vec<(&str, f64)> = selection.weights.iter().map(|w| (w.metric.as_str(), w.share)).collect();
    assert_eq!(shares, [("ttft", 2.0 / 6.0), ("decode", 2.0 / 6.0), ("memory", 1.0 / 6.0), ("energy", 1.0 / 6.0)]);
    let text = selection.sentences().join("\n");
    assert!(
        text.contains("1 limit and the weights are those of the preset “Chat assistant”: proposals with reasons, not measurements."),
        "{text}"
    );
    // Asked for another use, that one's weights count, also over the scenario's.
    lab.prefer(&[("ttft", 1.0)]);
    let other = lab.select_for(preset("vision-detector"));
    assert_eq!(other.weights[0].metric, "energy");
    assert!(only(&other).unpromised.iter().any(|said| said.contains("time of one frame")), "{:?}", only(&other).unpromised);
    assert!(
        only(&other).unpromised.iter().any(|said| said.starts_with("sustained-ratio >= 90% (minute 30), preset: ")),
        "{:?}",
        only(&other).unpromised
    );
}

/// The committed example: nothing is selected of the emulator, and MNN's quantisations are ranked by the medians of `cells.csv`.
#[test]
fn the_example_run() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("results/example-pc");
    let [Joint { selected: Ok(selection), .. }] = &read(&[&folder], None)[..] else { panic!("a selection") };
    let [pc, emulator] = &selection.groups[..] else { panic!("{:?}", selection.groups) };
    assert_eq!((pc.class.as_str(), emulator.class.as_str()), ("pc", "emulator"));
    assert_eq!(emulator.verdict.kind, Answer::NoRecommendation);
    let [ranking] = &pc.rankings[..] else { panic!("{:?}", pc.rankings) };
    assert!(matches!(ranking.sure, Sure::Intervals { launches: 6, .. }), "{:?}", ranking.sure);
    assert!(ranking.places.iter().all(|place| place.first.is_none()), "six launches have no share");

    // By hand from the table: sqrt of the product of mean log ratios over both prompts, of TTFT and decode.
    let text = std::fs::read_to_string(folder.join("cells.csv")).expect("cells");
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header: Vec<String> = reader.headers().expect("a header").iter().map(str::to_owned).collect();
    let at = |name: &str| header.iter().position(|known| known == name).expect("a column");
    let rows: Vec<csv::StringRecord> = reader.records().map(|row| row.expect("a row")).collect();
    let value = |quant: &str, prompt: &str, column: &str| -> f64 {
        let is =
            |row: &&csv::StringRecord| &row[at("backend")] == "mnn" && &row[at("quant")] == quant && &row[at("prompt_tokens")] == prompt;
        rows.iter().find(is).expect("a row")[at(column)].parse().expect("a number")
    };
    let quants = ["fp32", "w8", "w4"];
    let score = |quant: &str| {
        let of = |prompt: &str| {
            let best =
                |column: &str, better: fn(f64, f64) -> f64| quants.iter().map(|q| value(q, prompt, column)).reduce(better).expect("three");
            best("ttft_ms", f64::min) / value(quant, prompt, "ttft_ms") * value(quant, prompt, "decode_tok_s")
                / best("decode_tok_s", f64::max)
        };
        (of("32") * of("96")).powf(0.25)
    };
    assert_eq!(ranking.places.len(), 3);
    for place in &ranking.places {
        let quant = &pc.candidates[place.candidate].quant;
        // The table has six digits.
        assert!((place.score - score(quant)).abs() < 1e-4, "{quant}: {} is not {}", place.score, score(quant));
    }
    assert!(ranking.places.is_sorted_by(|a, b| a.score >= b.score));
    // Tokens of all agree with the float32 computation (rule R13).
    assert!(pc.identity.starts_with("Same source model in 3 artifacts; the tokens of all 3 candidates agree"), "{}", pc.identity);
    assert!(matches!(read(&[folder.join("nothing")], None)[..], [Joint { selected: Err(_), .. }]));
}

#[test]
fn shares_are_not_rounded_to_certainty() {
    assert_eq!([1.0, 0.999_9, 0.97, 0.954_6].map(super::super::verdict::share_words), ["100 %", "over 99.9 %", "97 %", "95.5 %"]);
    assert_eq!([words::figure_words(380.0, "ms"), words::figure_words(0.5, "")], ["380.0 ms", "0.5000"]);
}
