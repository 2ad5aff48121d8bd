//! `[[require]]`.

use super::*;
use crate::scenario::{Limit, Phase, Plan, Requirement, SUBJECTS, Statistic};

/// The good scenario with a soak, a reference, and requirements.
fn require(entries: &str) -> String {
    format!("{GOOD}[soak]\nduration = \"30m\"\n{entries}\n")
}

fn entry(lines: &str) -> String {
    require(&format!("[[require]]\n{lines}"))
}

fn checked(text: &str) -> Vec<Requirement> {
    let scenario = check(text).unwrap_or_else(|p| panic!("{p}"));
    assert!(scenario.warnings.is_empty(), "{}", scenario.warnings);
    scenario.require
}

fn cells(pairs: &[(&str, &[&str])]) -> std::collections::BTreeMap<String, Vec<String>> {
    pairs.iter().map(|(key, values)| ((*key).to_owned(), values.iter().map(|v| (*v).to_owned()).collect())).collect()
}

#[test]
fn limits_are_kept_in_the_unit_of_the_column() {
    let cases: [(&str, Limit); 12] = [
        ("metric = \"ttft\"\nlimit = \"<= 380ms\"", Limit::AtMost(380.0)),
        ("metric = \"ttft\"\nlimit = \"<=0.38 s\"", Limit::AtMost(380.0)),
        ("metric = \"tpot\"\nlimit = \"<= 500us\"", Limit::AtMost(0.5)),
        ("metric = \"decode\"\nlimit = \">= 12tok/s\"", Limit::AtLeast(12.0)),
        ("metric = \"memory\"\nlimit = \"<= 1.8GB\"", Limit::AtMost(1800.0)),
        ("metric = \"memory\"\nlimit = \"<= 1MiB\"", Limit::AtMost(1.048_576)),
        ("metric = \"load\"\nlimit = \"<= 2s\"", Limit::AtMost(2000.0)),
        ("metric = \"model-size\"\nlimit = \"<= 1_900 MB\"", Limit::AtMost(1900.0)),
        ("metric = \"stability\"\nlimit = \"== stable\"", Limit::Is("stable".to_owned())),
        ("metric = \"placement\"\nlimit = \"== npu\"", Limit::Is("npu".to_owned())),
        ("metric = \"support\"\nlimit = \"== runs\"", Limit::Is("runs".to_owned())),
        ("metric = \"itl\"\nstatistic = \"p99\"\nlimit = \"<= 80ms\"", Limit::AtMost(80.0)),
    ];
    for (lines, limit) in cases {
        let found = checked(&entry(&format!("{lines}\nwhere = {{ prompt-tokens = 32 }}")));
        assert_eq!(found[0].limit, limit, "{lines}");
    }
}

#[test]
fn an_entry_keeps_what_it_asks() {
    let text = require(
        "[[require]]\nmetric = \"ttft\"\nlimit = \"<= 380ms\"\nstatistic = \"p95\"\nwhere = { prompt-tokens = [32, 96], backend = \"alpha\" }\n\
         [[require]]\nmetric = \"power\"\nlimit = \"<= 4000mW\"\nstatistic = \"gross\"\nwhere = { phase = \"decode\" }\n\
         [[require]]\nmetric = \"sustained-ratio\"\nlimit = \">= 80%\"\nwhere = { minute = 30 }",
    );
    let found = checked(&text);
    assert_eq!(
        found[0],
        Requirement {
            metric: "ttft".to_owned(),
            limit: Limit::AtMost(380.0),
            text: "<= 380ms".to_owned(),
            statistic: Some(Statistic::P95),
            phase: None,
            minute: None,
            cells: cells(&[("prompt-tokens", &["32", "96"]), ("backend", &["alpha"])]),
        }
    );
    assert_eq!((&found[1].limit, found[1].statistic, found[1].phase), (&Limit::AtMost(4.0), Some(Statistic::Gross), Some(Phase::Decode)));
    assert_eq!((&found[2].limit, found[2].statistic, found[2].minute), (&Limit::AtLeast(0.8), None, Some(30)));
    assert_eq!(found[0].words(), "ttft p95 <= 380ms (backend alpha, prompt-tokens 32|96)");
    assert_eq!(found[2].words(), "sustained-ratio >= 80% (minute 30)");

    let plan = check(&text).expect("good").plan(&BACKENDS, &crate::device::local_facts(0, 0));
    let selected: Vec<&str> =
        plan.cells.iter().filter(|c| found[0].selects(&c.cell)).map(|c| c.id.split('-').next().unwrap_or("")).collect();
    assert_eq!(selected, ["alpha.tiny.fp16.p32.g16", "alpha.tiny.fp16.p96.g16", "alpha.tiny.w4a16.p32.g16", "alpha.tiny.w4a16.p96.g16"]);
    let stored = plan.to_toml().expect("a plan is TOML");
    assert_eq!(Plan::from_toml(&stored).expect("readable").require, found);
    let old: String = check(GOOD).expect("good").plan(&BACKENDS, &crate::device::local_facts(0, 0)).to_toml().expect("a plan is TOML");
    assert!(!old.contains("require"), "a plan without requirements is as those before them");
}

#[test]
fn a_bare_limit_says_what_to_add() {
    let cases = [
        (
            entry("metric = \"ttft\"\nlimit = \"<= 1s\""),
            "17:1 a limit of `ttft` means nothing without its conditions / add for instance `where = { prompt-tokens = 32 }`",
        ),
        (
            entry("metric = \"e2e\"\nlimit = \"<= 1s\"\nwhere = { backend = \"beta\" }"),
            "20:9 a limit of `e2e` means nothing without its conditions / add for instance `where = { prompt-tokens = 32, gen-tokens = 16 }`",
        ),
        (
            entry("metric = \"load\"\nlimit = \"<= 1s\""),
            "17:1 a limit of `load` means nothing without its conditions / add for instance `where = { model = \"tiny\" }`",
        ),
        (
            entry("metric = \"power\"\nlimit = \"<= 4W\"\nstatistic = \"net\"\nwhere = { prompt-tokens = 32 }"),
            "21:9 a limit of `power` means nothing without its conditions / add for instance `where = { phase = \"decode\" }`",
        ),
        (
            entry("metric = \"power\"\nlimit = \"<= 4W\"\nwhere = { phase = \"decode\" }"),
            "17:1 `power` needs a `statistic` / add for instance `statistic = \"gross\"`",
        ),
        (
            entry("metric = \"sustained\"\nlimit = \">= 10tok/s\"\nwhere = { backend = \"beta\" }"),
            "20:9 a limit of `sustained` means nothing without its conditions / add for instance `where = { minute = 30 }`",
        ),
        (
            entry("metric = \"sustained\"\nlimit = \">= 10tok/s\"\nwhere = { minute = 31 }"),
            "20:20 the soak does not reach minute 31 / take a longer `duration` in [soak]",
        ),
        (
            format!("{GOOD}[[require]]\nmetric = \"sustained\"\nlimit = \">= 10tok/s\"\nwhere = {{ minute = 3 }}\n"),
            "18:20 there is no minute without a soak / add [soak]",
        ),
        (
            entry("metric = \"agreement\"\nlimit = \">= 95%\"\nwhere = { quant = \"fp16\" }"),
            "18:10 `agreement` with what? tokens are compared with nothing / name a `reference` in [verify]",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(only(&text), expected);
    }
}

#[test]
fn words_units_and_directions() {
    let at = "where = { prompt-tokens = 32 }";
    let ttft = |rest: &str| entry(&format!("metric = \"ttft\"\n{rest}\n{at}"));
    let cases = [
        (entry(&format!("metric = \"tftt\"\nlimit = \"<= 1s\"\n{at}")), "18:10 `tftt` is not a value of `metric` / did you mean `ttft`?"),
        (ttft("limits = \"<= 1s\""), "19:1 unknown key `limits` in [[require]] / did you mean `limit`?"),
        (ttft("limit = \"<= 4W\""), "19:9 `W` is no unit of `ttft` / one of: ms, s, us"),
        (ttft("limit = \"<= 380\""), "19:9 `<= 380` has no unit / one of: ms, s, us"),
        (ttft("limit = \">= 380ms\""), "19:9 `ttft` is good when low / write `<= 380ms`"),
        (ttft("limit = \"< 380ms\""), "19:9 `ttft` is good when low / write `<= 380ms`"),
        (ttft("limit = \"380ms\""), "19:9 `380ms` says not what is allowed / write `<= 380ms`"),
        (ttft("limit = \"<= fast\""), "19:9 `<= fast` has no number above zero / write for instance `<= 10ms`"),
        (ttft("limit = \"<= NaNms\""), "19:9 `<= NaNms` has no number above zero / write for instance `<= 10ms`"),
        (ttft("limit = \"<= 1e999s\""), "19:9 `<= 1e999s` has no number above zero / write for instance `<= 10ms`"),
        (ttft("limit = \"<= -3ms\""), "19:9 `<= -3ms` has no number above zero / write for instance `<= 10ms`"),
        (ttft("limit = \"<= 1s\"\nstatistic = \"p59\""), "20:13 `p59` is not a value of `statistic` / did you mean `p50`?"),
        (ttft("limit = \"<= 1s\"\nstatistic = \"gross\""), "20:13 `gross` is not measured of `ttft` / known: median, p50, p90, p95, p99"),
        (
            entry(&format!("metric = \"itl\"\nstatistic = \"p95\"\nlimit = \"<= 1s\"\n{at}")),
            "19:13 `p95` is not measured of `itl` / did you mean `p90`?",
        ),
        (
            entry(&format!("metric = \"model-size\"\nstatistic = \"p95\"\nlimit = \"<= 1GB\"\n{at}")),
            "19:13 `model-size` has one value: `statistic` means nothing to it / take it out",
        ),
        (
            entry("metric = \"ttft\"\nlimit = \"<= 1s\"\nwhere = { prompt-tokens = 32, phase = \"decode\" }"),
            "20:39 `phase` means nothing to `ttft` / take it out",
        ),
        (
            entry("metric = \"energy\"\nstatistic = \"net\"\nlimit = \"<= 1J/tok\"\nwhere = { phase = \"all\" }"),
            "21:19 joules of a token are of a phase / take `prefill` or `decode`, or the metric `tokens-per-battery-percent`",
        ),
        (
            entry("metric = \"placement\"\nlimit = \"npu\"\nwhere = { backend = \"alpha\" }"),
            "19:9 `npu` is no limit of `placement` / write for instance `== npu`",
        ),
        (
            entry("metric = \"stability\"\nlimit = \"<= 5%\"\nwhere = { backend = \"alpha\" }"),
            "19:9 `<= 5%` is no limit of `stability` / write for instance `== stable`",
        ),
        (
            entry("metric = \"support\"\nlimit = \"== runs-with-fallback\"\nwhere = { backend = \"alpha\" }"),
            "19:9 `== runs-with-fallback` is no limit of `support` / write for instance `== runs`",
        ),
        (
            entry("metric = \"support\"\nlimit = \"== runs\""),
            "17:1 a limit of `support` means nothing without its conditions / add for instance `where = { model = \"tiny\" }`",
        ),
        (
            entry("metric = \"decode\"\nlimit = \">= 5tok/s\"\nwhere = { prompt-tokens = 33 }"),
            "20:9 this requirement is about no cell of the matrix / compare it with the lists of [matrix]",
        ),
        (
            entry("metric = \"decode\"\nlimit = \">= 5tok/s\"\nwhere = { prompt-tokens = 32, backend = \"alhpa\" }"),
            "20:41 unknown backend `alhpa` / did you mean `alpha`?",
        ),
        (
            entry("metric = \"decode\"\nlimit = \">= 5tok/s\"\nwhere = { promt-tokens = 32 }"),
            "20:11 unknown key `promt-tokens` in [require.where] / did you mean `prompt-tokens`?",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(only(&text), expected);
    }
}

#[test]
fn all_at_once() {
    let text = require(
        "[[require]]\nmetric = \"ttft\"\nlimit = \"<= 4W\"\n[[require]]\nmetric = \"power\"\nlimit = \"<= 4kg\"\n\
         [[require]]\nmetric = \"decode\"\n",
    );
    let found: Vec<String> = problems(&text).iter().map(line).collect();
    assert_eq!(found.len(), 6, "{found:#?}");
}

#[test]
fn every_subject_has_its_words() {
    for subject in SUBJECTS {
        assert!(!subject.needs.is_empty(), "{}: a bare limit is an error", subject.word);
        assert!(subject.statistics.iter().all(|word| Statistic::parse(word).is_some()), "{}", subject.word);
    }
}
