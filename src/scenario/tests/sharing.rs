//! Cells that differ in lengths only share their launches (rule R2).

use std::time::Duration;

use super::{
    super::{AbError, Assumptions, Filter, Order, Plan, estimate, pair, schedule},
    *,
};

const MIXER: Fake = Fake { id: "mixer" };

/// The good scenario with the engine that mixes lengths beside one that does not: 2 + 2 quantisations, 2 x 2 lengths.
fn text(measure: &str) -> String {
    with("\"alpha\", \"beta\"", "\"beta\", \"mixer\"").replace("[16]", "[8, 16]").replace("chunk = 32", GEOMETRY) + measure
}

fn backends() -> [&'static dyn Backend; 2] {
    [&BETA, &MIXER]
}

fn checked(text: &str) -> Result<Scenario, Problems> {
    check_text("s.toml", text, Path::new("."), &backends(), &[])
}

fn plan(text: &str) -> Plan {
    checked(text).unwrap_or_else(|p| panic!("{p}")).plan(&backends(), &fake::device())
}

/// The lengths of each group of more than one.
fn groups(plan: &Plan) -> Vec<Vec<String>> {
    let name = |place: &usize| plan.cells[*place].id.rsplit_once('-').expect("a hash").0.to_owned();
    plan.groups().iter().filter(|group| group.len() > 1).map(|group| group.iter().map(name).collect()).collect()
}

#[test]
fn cells_that_differ_in_lengths_only_are_one_launch() {
    let whole = plan(&text(""));
    let lengths = ["p32.g8", "p32.g16", "p96.g8", "p96.g16"];
    let of = |quant: &str| lengths.map(|length| format!("mixer.tiny.{quant}.{length}")).to_vec();
    assert_eq!(groups(&whole), [of("fp16"), of("w4a16")]);
    // 8 cells of beta by themselves and 2 groups, three times each.
    assert_eq!((whole.groups().len(), whole.schedule().len()), (10, 30));
    for place in 0..whole.cells.len() {
        let made = whole.schedule().iter().filter(|s| s.cells.contains(&place)).map(|s| s.launch).collect::<Vec<_>>();
        assert_eq!(made, [0, 1, 2], "{}", whole.cells[place].id);
    }
    assert_eq!(Plan::from_toml(&whole.to_toml().expect("written")).expect("read"), whole);

    assert_eq!(groups(&plan(&text("share-launches = false\n"))), Vec::<Vec<String>>::new());
    // What is not there is in no launch; one cell alone is no group.
    let mut part = whole.clone();
    part.retain(&Filter::parse("gen-tokens=8").expect("a filter"));
    assert_eq!(groups(&part)[0], ["mixer.tiny.fp16.p32.g8", "mixer.tiny.fp16.p96.g8"]);
    part.retain(&Filter::parse("prompt-tokens=32").expect("a filter"));
    assert!(groups(&part).is_empty());
    // Another setting is another process, and a program that takes one length is asked in one.
    let threads = plan(&text("").replace("[measure]", "threads = [1, 2]\n[measure]"));
    assert!(groups(&threads).iter().all(|group| group.len() == 4), "{:?}", groups(&threads));
    // Cells of one length ask different prompts (rule R3).
    let (mixers, others): (Vec<_>, Vec<_>) = whole.cells.iter().partition(|c| c.cell.backend == "mixer");
    let before = whole.asked_before();
    assert_eq!(mixers.iter().map(|c| before[c.id.as_str()]).collect::<Vec<_>>(), [0, 1, 0, 1, 0, 1, 0, 1]);
    assert!(others.iter().all(|c| !before.contains_key(c.id.as_str())));
}

/// The plan of a bench that shared nothing has no word of it, and goes on as it began.
#[test]
fn an_older_plan_shares_nothing() {
    let toml = plan(&text("")).to_toml().expect("written");
    let older = toml.lines().filter(|line| !line.starts_with("launch_group")).collect::<Vec<_>>().join("\n");
    assert!(older.len() < toml.len() - 8 * "launch_group = 0".len());
    let older = Plan::from_toml(&older).expect("read");
    assert_eq!((groups(&older).len(), older.groups().len()), (0, 16));
}

#[test]
fn energy_needs_a_process_of_its_own() {
    let local = "[power]\nmethod = \"battery\"\n";
    assert!(!checked(&text(local)).unwrap_or_else(|p| panic!("{p}")).share_launches);
    let both = checked(&text(&format!("share-launches = true\n{local}"))).expect_err("both");
    assert_eq!(
        line(&both.problems[0]),
        "15:18 `share-launches` and [power] exclude each other / take it out: with [power] every cell has its own launches"
    );
}

/// Without groups the order of a stored seed is what it was before there were any: these blocks are those of
/// `every_block_holds_every_cell_once_in_an_order_that_never_changes`, by an independent Python version.
#[test]
fn alone_the_order_is_as_ever() {
    let singles: Vec<Vec<usize>> = (0..8).map(|cell| vec![cell]).collect();
    let order: Vec<usize> = schedule(Order::Interleaved, 1, &singles, 2).iter().map(|s| s.cells[0]).collect();
    assert_eq!(order, [4, 1, 7, 5, 3, 0, 6, 2, 0, 2, 7, 5, 4, 6, 3, 1]);
}

/// By an independent Python version of `SplitMix64` and Fisher-Yates: each cell of a group comes first once in as many launches as it has cells.
#[test]
fn each_cell_comes_first_as_often() {
    let of = |order: Order| {
        schedule(order, 1, &[vec![0, 2, 5], vec![1]], 6).into_iter().filter(|s| s.cells.len() == 3).map(|s| s.cells).collect::<Vec<_>>()
    };
    let expected = [[0, 5, 2], [5, 2, 0], [2, 0, 5], [5, 0, 2], [0, 2, 5], [2, 5, 0]];
    assert_eq!(of(Order::Interleaved), expected);
    assert_eq!(of(Order::Sequential), expected);
}

#[test]
fn sides_share_what_both_share() {
    let sides = |a: &str, b: &str| -> Result<[Plan; 2], AbError> {
        let (mut a, mut b) = (plan(a), plan(b));
        pair(&mut a, &mut b)?;
        assert_eq!(a.schedule(), b.schedule());
        Ok([a, b])
    };
    let both = sides(&text(""), &text("")).expect("pairs");
    assert_eq!((groups(&both[0]).len(), groups(&both[1]).len()), (2, 2));
    let one = sides(&text(""), &text("share-launches = false\n")).expect("pairs");
    assert_eq!((groups(&one[0]).len(), groups(&one[1]).len()), (0, 0));
    // Engine against engine: that of B answers one length a process.
    let engine = |id: &str| text("").replace("\"beta\", \"mixer\"", &format!("\"{id}\""));
    let unlike = sides(&engine("mixer"), &engine("beta")).expect("pairs");
    assert_eq!((unlike[0].groups().len(), groups(&unlike[1]).len()), (8, 0));
}

#[test]
fn loading_once_takes_less_time() {
    let (assume, second) = (Assumptions::default(), Duration::from_secs(1));
    let of = |measure: &str| estimate(&plan(&text(measure)), &backends(), &assume);
    let (shared, alone) = (of(""), of("share-launches = false\n"));
    // 16 cells, and 8 of them in two groups of four; a time-out of ten minutes for each cell, and ten seconds of grace a launch.
    assert_eq!((alone.launches, shared.launches, shared.cells), (48, 30, 16));
    assert_eq!((alone.worst, shared.worst), (48 * 610 * second, (48 * 600 + 30 * 10 + 2 * 2410) * second));
    // 18 launches fewer: each half a second, and the weights of 0.2 to 0.8 million parameters, which take milliseconds.
    let less = alone.expected.checked_sub(shared.expected).expect("less").as_secs_f64();
    assert!((9.0..9.1).contains(&less), "{less}");
}
