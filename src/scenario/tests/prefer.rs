//! `[prefer]`.

use super::*;
use crate::scenario::{Plan, Prefer, preset};

fn prefer(lines: &str) -> String {
    format!("{GOOD}[prefer]\n{lines}\n")
}

fn checked(lines: &str) -> Prefer {
    let scenario = check(&prefer(lines)).unwrap_or_else(|p| panic!("{p}"));
    assert!(scenario.warnings.is_empty(), "{}", scenario.warnings);
    scenario.prefer.expect("a [prefer]")
}

#[test]
fn weights_and_use_are_kept_and_carried_in_the_plan() {
    let found = checked("use = \"glasses\"\nttft = 2\ndecode = 0.5\nmodel-size = 0");
    assert_eq!(found.use_case.as_deref(), Some("glasses"));
    // A weight of 0 weighs nothing.
    assert_eq!(found.weights.iter().map(|(word, w)| (word.as_str(), *w)).collect::<Vec<_>>(), [("decode", 0.5), ("ttft", 2.0)]);
    let plan = |text: &str| check(text).expect("good").plan(&BACKENDS, &fake::device());
    let stored = plan(&prefer("use = \"glasses\"\nttft = 2\ndecode = 0.5")).to_toml().expect("a plan is TOML");
    assert_eq!(Plan::from_toml(&stored).expect("readable").prefer, Some(found));
    let without = plan(GOOD).to_toml().expect("a plan is TOML");
    assert!(!without.contains("prefer"), "a plan without preferences is as those before them");
    assert_eq!(Plan::from_toml(&without).expect("an old plan").prefer, None);
}

#[test]
fn what_makes_no_sense_says_where() {
    let help = "give for instance `ttft = 2` and `decode = 1`, or `use = \"chat-assistant\"`";
    for (lines, wanted) in [
        ("tftt = 1", "16:1 unknown key `tftt` in [prefer] / did you mean `ttft`?".to_owned()),
        ("ttft = -1\ndecode = 1", "16:8 `ttft` must be at least 0 / Weight of the time to the first token.".to_owned()),
        ("ttft = inf", "16:8 `ttft` must be a finite number / Weight of the time to the first token.".to_owned()),
        ("ttft = \"much\"", "16:8 `ttft` must be a number, not the text `much` / Weight of the time to the first token.".to_owned()),
        ("use = \"glases\"", "16:7 `glases` is not a value of `use` / did you mean `glasses`?".to_owned()),
        ("ttft = 0\ndecode = 0.0", format!("15:1 every weight of [prefer] is 0, so that nothing is preferred / {help}")),
        ("", format!("15:1 [prefer] says nothing / {help}")),
    ] {
        assert_eq!(only(&prefer(lines)), wanted, "{lines}");
    }
}

/// Memory and load are of a whole process: what weighs or limits them gives each cell its own launches, as a requirement of them does.
#[test]
fn what_only_a_process_tells_needs_launches_of_its_own() {
    for (lines, shared) in [
        ("ttft = 1", true),
        ("memory = 1", false),
        ("load = 1", false),
        ("use = \"always-on-service\"", false),
        ("use = \"chat-assistant\"", false),
        ("use = \"in-car\"", true),
    ] {
        assert_eq!(check(&prefer(lines)).expect("good").share_launches, shared, "{lines}");
    }
    // Its weight of memory is not used where the scenario has weights of its own.
    assert!(preset("chat-assistant").expect("one").weights.iter().any(|w| w.metric == "memory"));
    assert!(check(&prefer("use = \"chat-assistant\"\nttft = 1")).expect("good").share_launches);
}
