//! A/B: the second side of a scenario, who is whose partner, and the order of the two.

use super::{
    super::{AbError, Plan, Scheduled, pair, turns},
    *,
};

fn plan(text: &str) -> Plan {
    check(text).expect("good").plan(&BACKENDS, &fake::device())
}

/// Ids without their hash, `A | B`.
fn pairs(a: &Plan, b: &Plan) -> Vec<String> {
    let short = |id: &str| id.rsplit_once('-').map_or(id, |(id, _)| id).to_owned();
    a.cells.iter().zip(&b.cells).map(|(a, b)| format!("{} | {}", short(&a.id), short(&b.id))).collect()
}

#[test]
fn cells_of_one_name_are_partners_and_the_others_are_left_out() {
    let (mut a, mut b) =
        (plan(&with("[32, 96]", "[32, 64]")), plan(&with("[32, 96]", "[64, 16]").replace("[\"fp16\", \"w4a16\"]", "\"fp16\"")));
    let alone = pair(&mut a, &mut b).expect("pairs");
    let wanted = ["alpha.tiny.fp16.p64.g16", "beta.tiny.fp16.p64.g16"].map(|id| format!("{id} | {id}"));
    assert_eq!(pairs(&a, &b), wanted);
    // Of A's eight cells two have a partner, of B's four two.
    assert_eq!(alone.len(), 6 + 2, "{alone:?}");
    let said = |words: &str| alone.iter().filter(|line| line.ends_with(words)).count();
    assert_eq!((said(": side B has no such cell"), said(": side A has no such cell")), (6, 2), "{alone:?}");
}

#[test]
fn what_the_sides_have_no_value_of_in_common_is_what_is_compared() {
    let fp16 = with("[\"fp16\", \"w4a16\"]", "\"fp16\"");
    let (mut a, mut b) = (plan(&fp16), plan(&fp16.replace("\"fp16\"", "\"w8a16\"").replace("[\"alpha\", \"beta\"]", "\"beta\"")));
    let alone = pair(&mut a, &mut b).expect("pairs");
    assert_eq!(pairs(&a, &b), ["beta.tiny.fp16.p32.g16 | beta.tiny.w8a16.p32.g16", "beta.tiny.fp16.p96.g16 | beta.tiny.w8a16.p96.g16"]);
    assert_eq!(alone.len(), 2);
    // Two backends, of which one has a profile and the other does not.
    let profile = fp16.replace("[measure]", "perf-profile = \"balanced\"\n[measure]");
    let only = |id: &str| plan(&profile.replace("[\"alpha\", \"beta\"]", &format!("{id:?}")));
    let (mut a, mut b) = (only("alpha"), only("beta"));
    assert_eq!(pair(&mut a, &mut b), Ok(Vec::new()));
    assert_eq!((a.cells.len(), b.cells.len()), (2, 2));
}

#[test]
fn two_that_could_be_the_partner_are_none() {
    let axis = |values: &str| with("[measure]", &format!("threads = {values}\n[measure]")).replace("[\"alpha\", \"beta\"]", "\"beta\"");
    let (mut a, mut b) = (plan(&axis("[1, 2]")), plan(&axis("[4]")));
    let Err(AbError::NoPair(alone)) = pair(&mut a, &mut b) else { panic!("{:?}", pairs(&a, &b)) };
    assert!(alone.len() == 12 && alone.iter().all(|line| line.ends_with(": several cells could be its partner")), "{alone:?}");
}

#[test]
fn a_cell_that_is_skipped_takes_its_partner_with_it() {
    // The fake alpha makes fp16 alone.
    let (mut a, mut b) = (plan(&with("[\"fp16\", \"w4a16\"]", "\"fp16\"")), plan(&with("[\"fp16\", \"w4a16\"]", "\"w4a16\"")));
    pair(&mut a, &mut b).expect("pairs");
    let skipped = |plan: &Plan| plan.cells.iter().map(|c| c.skipped.clone().unwrap_or_default()).collect::<Vec<_>>();
    let (of_a, of_b) = (skipped(&a), skipped(&b));
    assert_eq!(of_a.iter().map(String::is_empty).collect::<Vec<_>>(), [false, false, true, true]);
    assert_eq!(of_a[0], format!("its partner, side B of the A/B run, is skipped: {}", of_b[0]));
    assert_eq!(a.schedule(), b.schedule());
}

#[test]
fn the_device_and_its_state_are_shared() {
    let base = plan(GOOD);
    let refused = |text: &str| pair(&mut base.clone(), &mut plan(text)).expect_err("refused").to_string();
    assert!(refused(&with("max = 3", "max = 4")).ends_with("the same in both: [measure] repetitions, order, budget and profile"));
    assert!(refused(&with("repetitions", "seed = 2\nrepetitions")).ends_with("[measure] seed"));
    assert!(refused(&(GOOD.to_owned() + "[environment]\nambient = \"22C\"\n")).ends_with("[environment]"));
    assert!(refused(&(GOOD.to_owned() + "[soak]\nduration = \"10m\"\n")).starts_with("an A/B run has no [soak]"));
    assert_eq!(pair(&mut base.clone(), &mut plan(&with("repetitions", "queries = 5\ntimeout = \"1m\"\nrepetitions"))), Ok(Vec::new()));
}

#[test]
fn the_second_side_has_the_keys_of_ab_and_is_checked_as_a_file() {
    let scenario = check(&(GOOD.to_owned() + "[ab.matrix]\nquant = \"w8a16\"\n[ab.measure]\nqueries = 5\n")).expect("good");
    let b = scenario.ab.expect("a second side");
    let quants = |s: &Scenario| s.matrix.quant.iter().map(|q| q.as_str().to_owned()).collect::<Vec<_>>();
    assert_eq!((quants(&b), b.matrix.prompt_tokens.clone(), b.measure.queries), (vec!["w8a16".to_owned()], vec![32, 96], 5));
    // Keys beside those of [ab] stay.
    assert_eq!((b.measure.repetitions_max, b.name.as_str(), &b.sha256), (3, "good", &scenario.sha256));
    assert!(check(GOOD).expect("good").ab.is_none());

    let bad = |section: &str| only(&format!("{GOOD}{section}"));
    assert!(bad("ab = 3\n").contains("`ab`"));
    assert!(bad("[ab.matrix]\nquant = \"w5\"\n").starts_with("16:9 `w5` is not a value of `quant`"));
    assert!(bad("[ab]\nmatrx = { quant = \"fp16\" }\n").starts_with("16:1 unknown key `matrx` in the file"));
    assert!(bad("[ab.ab]\nname = \"x\"\n").starts_with("16:1 unknown key `name`"));
    // Mistakes of the first side are said once, not twice.
    assert!(only(&format!("{}[ab]\nname = \"b\"\n", with("\"tiny\"", "\"tony\""))).contains("unknown model `tony`"));
}

#[test]
fn a_named_runtime_must_be_a_folder() {
    let text = |path: &str| format!("{GOOD}[runtimes]\nqairt = \"{path}\"\nsets = \"src\"\n");
    let roots = check(&text("tests/../tests")).expect("good").runtimes;
    let here = std::path::absolute(".").expect("a folder");
    assert_eq!((roots.qairt, roots.sets), (Some(here.join("tests")), Some(here.join("src"))));
    for path in ["nowhere", "Cargo.toml"] {
        assert!(only(&text(path)).contains(&format!("16:9 the folder `{path}` is not there")));
    }
}

/// By hand: two launches that follow each other begin with different sides, and over the cells and pairs of launches both orders come up.
#[test]
fn each_side_begins_as_often() {
    let turn = |seed: u64, cell: usize, launch: u32| turns(seed, &Scheduled { block: launch, cells: vec![cell], launch }, 2);
    let mut begun = [0, 0];
    for (cell, two) in (0..20).flat_map(|cell| (0..10).map(move |two| (cell, 2 * two))) {
        let (one, other) = (turn(7, cell, two), turn(7, cell, two + 1));
        assert_eq!(one.iter().rev().copied().collect::<Vec<_>>(), other);
        begun[one[0]] += 1;
    }
    assert!(begun[0] > 70 && begun[1] > 70, "{begun:?}");
    assert_eq!(turns(7, &Scheduled { block: 3, cells: vec![0], launch: 3 }, 1), [0]);
    // The order of a stored seed is for ever: as it was when this was written.
    let order: String = (0..24).map(|launch| if turn(1, 0, launch) == [0, 1] { 'a' } else { 'b' }).collect();
    assert_eq!(order, "abbabaabababbabaabbababa");
}
