//! The plan: artifacts, the round trip through TOML, filters, order and estimates.

use std::time::{Duration, Instant};

use bench_backend_api::Quant;

use super::{
    super::{ArtifactSource, Assumptions, Filter, Order, Plan, PlanError, estimate, order::block_of, schedule},
    *,
};

fn plan(text: &str) -> Plan {
    check(text).expect("good").plan(&BACKENDS, &fake::device())
}

#[test]
fn a_plan_survives_toml() {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::copy("scenarios/models/tiny-llama.toml", dir.path().join("g.toml")).expect("copied");
    std::fs::write(dir.path().join("t.json"), "{}").expect("written");
    let text = with("chunk = 32", "geometry = \"g.toml\"")
        .replace(
            "[measure]",
            "perf-profile = [\"burst\", \"balanced\"]\nunit = [\"npu\", \"cpu\"]\n[measure]\nbudget = \"1h\"\nprofile = \"layers\"",
        )
        .replace("max = 3", "max = 9, until-ci = \"2.5%\"")
        + "[verify]\nreference = \"fp32\"\nmin-agreement = 0.5\n[backends.mine]\ncommand = [\"prog\", \"a \\\"b\\\"\"]\n\
           [[artifact]]\nmodel = \"tiny\"\nquant = \"w4a16\"\nbackend = \"alpha\"\nconfig = \"t.json\"\n";
    let scenario = check_in(dir.path(), &text).expect("good");
    let plan = scenario.plan(&BACKENDS, &fake::device());
    assert!(plan.cells.iter().any(|c| c.skipped.is_some()) && plan.cells.iter().any(|c| c.source.is_some()));
    assert_eq!(plan.cells[0].cell.model.usual_chunk(), 128);
    assert_eq!(plan.measure.until_ci, Some(0.025));
    let toml = plan.to_toml().expect("written");
    assert_eq!(Plan::from_toml(&toml).expect("read"), plan);
    let newer = Plan::from_toml(&toml.replace("format_version = 1", "format_version = 9")).expect_err("newer");
    assert!(matches!(newer, PlanError::Newer { found: 9 }));
    for end in (0..toml.len()).step_by(7) {
        let _ = Plan::from_toml(&toml[..end]);
    }
}

#[test]
fn a_cell_takes_the_artifact_that_says_most() {
    let dir = tempfile::tempdir().expect("a folder");
    for file in ["m/general/a.bin", "m/general/a.json", "m/burst/b.bin", "[odd]/c.bin"] {
        let path = dir.path().join(file);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, "x").expect("written");
    }
    let artifact = |quant: &str, rest: &str| format!("[[artifact]]\nmodel = \"tiny\"\nbackend = \"alpha\"\nquant = \"{quant}\"\n{rest}\n");
    std::fs::copy("scenarios/models/tiny-llama.toml", dir.path().join("g.toml")).expect("copied");
    let text = with("[measure]", "perf-profile = [\"burst\", \"balanced\"]\n[measure]").replace("chunk = 32", "geometry = \"g.toml\"")
        + &artifact("fp16", "files = \"m/*/a.*\"\nconfig = \"m/general/a.json\"")
        + &artifact("fp16", "files = [\"m/burst/../burst/b.bin\", \"m/**/a.bin\"]\nperf-profile = \"burst\"")
        + &artifact("w4a16", "files = \"./[[]odd]/*\"\nquant-native = \"HQQ int4 block 64\"");
    let plan = check_in(dir.path(), &text).expect("good").plan(&BACKENDS, &fake::device());
    let files = |id: &str| {
        let found = plan.cells.iter().find(|c| c.id.starts_with(id)).expect("a cell");
        let Some(ArtifactSource::Files { root, config, files, .. }) = &found.source else { panic!("{found:?}") };
        (root.strip_prefix(dir.path().to_str().expect("UTF-8")).expect("below").to_owned(), config.clone(), files.join(" "))
    };
    let general = ("/m/general".to_owned(), Some("a.json".to_owned()), "a.bin a.json".to_owned());
    assert_eq!(files("alpha.tiny.fp16.p32.g16.perf-profile=balanced"), general);
    assert_eq!(files("alpha.tiny.fp16.p32.g16.perf-profile=burst"), ("/m".to_owned(), None, "burst/b.bin general/a.bin".to_owned()));
    assert_eq!(files("alpha.tiny.w4a16.p32"), ("/[odd]".to_owned(), None, "c.bin".to_owned()));
    let named = |id: &str| {
        let found = plan.cells.iter().find(|c| c.id.starts_with(id)).expect("a cell");
        let Some(ArtifactSource::Files { quant_native, .. }) = &found.source else { panic!("{found:?}") };
        quant_native.clone()
    };
    assert_eq!((named("alpha.tiny.w4a16.p32").as_deref(), named("alpha.tiny.fp16.p32")), (Some("HQQ int4 block 64"), None));
    assert!(plan.cells.iter().filter(|c| c.cell.backend == "beta").all(|c| matches!(c.source, Some(ArtifactSource::Recipe(_)))));
}

/// The shipped scenarios name files that nobody has at first: a row with what to do, not an error.
#[test]
fn files_that_can_still_be_had_skip_their_cells() {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::write(dir.path().join("there.bin"), "x").expect("written");
    let artifact = "[[artifact]]\nmodel = \"tiny\"\nbackend = \"alpha\"\nquant = \"w4a16\"\nconfig = \"c.json\"\nfiles = [\"there.bin\", \"no/*.bin\"]\n";
    std::fs::copy("scenarios/models/tiny-llama.toml", dir.path().join("g.toml")).expect("copied");
    let good = with("chunk = 32", "geometry = \"g.toml\"");
    let text = format!("{good}{artifact}origin = \"\"\"\n  export it\n  for the chip\"\"\"\n");
    let scenario = check_in(dir.path(), &text).expect("no error");
    let warnings: Vec<String> = scenario.warnings.problems.iter().map(line).collect();
    assert_eq!(warnings, ["19:10 the file `c.json` is not there, nor 1 more of its files / export it for the chip"]);
    let plan = scenario.plan(&BACKENDS, &fake::device());
    let skipped: Vec<_> = plan.cells.iter().filter_map(|c| Some((c.cell.backend.as_str(), c.cell.quant, c.skipped.as_deref()?))).collect();
    let reason = "the file `c.json` is not there, nor 1 more of its files: export it for the chip";
    assert_eq!(skipped, [("alpha", Quant::W4a16, reason); 2]);
    // A tokenizer comes with the files, so it is one of them; alone it is an error.
    let real = with("chunk = 32", "tokenizer = \"t.json\"");
    let warned = check_in(dir.path(), &format!("{real}{artifact}origin = \"export\"\n")).expect("no error").warnings.problems;
    assert_eq!(warned.iter().map(|p| p.message.as_str()).collect::<Vec<_>>(), ["the file `c.json` is not there, nor 2 more of its files"]);
    let alone = check_in(dir.path(), &real).expect_err("no tokenizer");
    assert!(line(&alone.problems[0]).starts_with("6:13 the file `t.json` is not there / paths are relative"), "{alone}");
    // Without a way to get them it stays an error, as many as there are.
    let errors = check_in(dir.path(), &format!("{good}{artifact}")).expect_err("missing files");
    assert_eq!(errors.problems.len(), 2);
    assert_eq!(
        line(&errors.problems[1]),
        format!("20:23 `no/*.bin` matches no file / paths are relative to the scenario's folder, {}", dir.path().display())
    );
    // Once the files are there, the origin means nothing.
    std::fs::create_dir(dir.path().join("no")).expect("made");
    std::fs::write(dir.path().join("no/a.bin"), "x").expect("written");
    std::fs::write(dir.path().join("c.json"), "{}").expect("written");
    assert!(check_in(dir.path(), &text).expect("good").warnings.is_empty());
}

/// A label that nothing makes true would compare a cell with itself under two names.
#[test]
fn an_axis_that_nothing_sets_is_skipped_with_its_reason() {
    let skipped = |lines: &str, more: &str| -> Vec<(String, Option<String>)> {
        let text = with("chunk = 32", GEOMETRY)
            .replace("\"alpha\", \"beta\"", "\"alpha\", \"mine\"")
            .replace("\"fp16\", \"w4a16\"", "\"fp16\"")
            .replace("[32, 96]", "32")
            .replace("[measure]", &format!("{lines}\n[measure]"))
            + "[backends.mine]\ncommand = [\"prog\"]\n"
            + more;
        plan(&text).cells.into_iter().map(|c| (c.id, c.skipped)).collect()
    };
    let artifact =
        |rest: &str| format!("[[artifact]]\nmodel = \"tiny\"\nquant = \"fp16\"\nbackend = \"alpha\"\nfiles = \"Cargo.toml\"\n{rest}\n");

    // By files: one says its variant, the other does not, and neither its context.
    let list = skipped("variant = [\"a\", \"b\"]", &(artifact("variant = \"a\"") + &artifact("") + &artifact("").replace("alpha", "mine")));
    let reasons: Vec<Option<&str>> = list.iter().map(|(_, why)| why.as_deref()).collect();
    let unsaid = "variant b: the [[artifact]] for this cell does not say `variant`, and alpha can't set it";
    assert_eq!(reasons, [None, Some(unsaid), None, None], "a program of the user is told its variant: {list:?}");
    let list = skipped("context = [128, 96]", &artifact(""));
    assert_eq!(list[0].1, None, "the model's own context is no wish");
    assert!(list[1].1.as_deref().is_some_and(|why| why.starts_with("context 96: the [[artifact]]")), "{list:?}");
    assert!(skipped("context = 96", &artifact("context = 96"))[0].1.is_none());

    // A program of the backend is no property of files.
    assert!(skipped("variant = \"program\"", &artifact(""))[0].1.is_none());
    assert!(skipped("variant = \"program\"", "")[0].1.is_none());

    // By a recipe: its arguments have to hold the value.
    let list = skipped("variant = \"a\"", "");
    assert_eq!(list[0].1.as_deref(), Some("variant a: no [[artifact]] names it, and what bench makes has no such variant"));
    let list = skipped("context = [96, 100]", "");
    assert_eq!(list[0].1, None, "the recipe has the cell's context");
    let list = skipped("kv = [\"8\", \"16\"]", "");
    assert!(list[0].1.as_deref().is_some_and(|why| why.starts_with("kv 8: no [[artifact]] names it")), "{list:?}");
    assert_eq!(list[1].1, None, "half floats have a KV cache of 16 bits");
}

#[test]
fn filters() {
    let left = |filter: &str| {
        let mut plan = plan(&with("[measure]", "unit = [\"npu\", \"cpu\"]\nperf-profile = \"burst\"\n[measure]"));
        plan.retain(&Filter::parse(filter).expect(filter))
    };
    assert_eq!(left("quant=fp16"), 8);
    assert_eq!(left("backend=alpha, quant=fp16"), 4);
    assert_eq!(left("backend=alpha,backend=beta,quant=w4a16,prompt-tokens=96"), 4);
    assert_eq!(left("unit=cpu,backend=alpha"), 4);
    assert_eq!(left("context=128"), 16);
    assert_eq!(left("perf-profile=fixed:burst"), 8);
    assert_eq!(left("perf-profile=burst"), 16);
    assert_eq!(left("cell=alpha.tiny.fp16.p32"), 2);
    assert_eq!(left("backend=gamma"), 0);
    let error = |filter: &str| Filter::parse(filter).expect_err(filter).to_string();
    assert_eq!(error("backend"), "`backend` is not key=value: write for instance backend=genie,quant=w4a16");
    assert_eq!(error("backend=alpha,"), "`` is not key=value: write for instance backend=genie,quant=w4a16");
    assert_eq!(error("backnd=alpha"), "unknown key `backnd`: did you mean `backend`?");
    assert_eq!(error("quant=w4a61"), "`w4a61` is not a value of `quant`: did you mean `w4a16`?");
    assert_eq!(error("prompt-tokens=many"), "`many` is not a value of `prompt-tokens`: it is a whole number");
}

#[test]
fn every_block_holds_every_cell_once_in_an_order_that_never_changes() {
    let blocks = |seed, cells, n: u32| (0..n).map(|block| block_of(seed, cells, block)).collect::<Vec<_>>();
    let order = blocks(1, 8, 4);
    for block in &order {
        let mut sorted = block.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..8).collect::<Vec<_>>());
    }
    assert_eq!(order, blocks(1, 8, 4));
    assert_eq!(order[..2], blocks(1, 8, 2), "more blocks change none before");
    assert_ne!(order[0], order[1]);
    assert_ne!(order, blocks(2, 8, 4));
    // Computed by an independent Python version of SplitMix64 and Fisher-Yates.
    assert_eq!(order[0], FIRST);
    assert_eq!(order[1], SECOND);
    assert!(blocks(1, 0, 3).iter().all(Vec::is_empty));
    // A fair shuffle: over many blocks each cell comes first about equally often.
    let mut first = [0; 4];
    for block in blocks(7, 4, 4000) {
        first[block[0]] += 1;
    }
    assert!(first.iter().all(|n| (880..1120).contains(n)), "{first:?}");
}

const FIRST: [usize; 8] = [4, 1, 7, 5, 3, 0, 6, 2];
const SECOND: [usize; 8] = [0, 2, 7, 5, 4, 6, 3, 1];

#[test]
fn a_schedule_numbers_the_launches_of_each_cell() {
    for order in [Order::Interleaved, Order::Sequential] {
        let list = schedule(order, 3, &singles(5), 4);
        assert_eq!(list.len(), 20);
        for cell in 0..5 {
            let launches: Vec<u32> = list.iter().filter(|s| s.cells == [cell]).map(|s| s.launch).collect();
            assert_eq!(launches, [0, 1, 2, 3]);
        }
        assert!(list.windows(2).all(|w| w[0].block <= w[1].block));
    }
    let sequential = schedule(Order::Sequential, 3, &singles(2), 2);
    assert_eq!(sequential.iter().map(|s| (s.block, s.cells[0])).collect::<Vec<_>>(), [(0, 0), (0, 0), (1, 1), (1, 1)]);
    // Skipped cells are not scheduled, and places are those of the plan.
    let plan = plan(&with("gen-tokens = [16]", "gen-tokens = [16, 100]"));
    let runnable = plan.runnable();
    assert!(runnable.len() < plan.cells.len());
    let schedule = plan.schedule();
    assert_eq!(schedule.len(), 3 * runnable.len());
    assert!(schedule.iter().flat_map(|s| &s.cells).all(|cell| plan.cells[*cell].skipped.is_none()));
}

fn singles(cells: usize) -> Vec<Vec<usize>> {
    (0..cells).map(|cell| vec![cell]).collect()
}

#[test]
fn how_long_it_takes() {
    let assume = Assumptions::default();
    let base = plan(GOOD);
    let fakes = ["alpha", "beta"].map(|id| Fake { id });
    let backends: Vec<&dyn Backend> = fakes.iter().map(|f| f as &dyn Backend).collect();
    let e = estimate(&base, &backends, &assume);
    assert_eq!((e.cells, e.launches), (6, 18));
    assert_eq!(e.worst, 18 * Duration::from_secs(610));
    assert!(e.expected > Duration::from_secs(18) && e.expected < e.worst, "{e:?}");
    // With a minute a cell, 2 launches at least: a launch of 610 s is over it, so that the fewest count.
    let mut timed = base.clone();
    (timed.measure.repetitions_min, timed.measure.max_time_ms) = (2, Some(60_000));
    assert_eq!(estimate(&timed, &backends, &assume).worst, 6 * 2 * Duration::from_secs(610));
    let mut limited = base.clone();
    limited.measure.budget_ms = Some(1000);
    let e = estimate(&limited, &backends, &assume);
    assert_eq!((e.expected, e.worst), (Duration::from_secs(1), Duration::from_secs(1 + 6 * 610)));
    let mut profiled = base;
    profiled.measure.profile = super::super::Profile::Layers;
    // Of the two backends only alpha has a profiling pass, for its two cells.
    let alphas = profiled.runnable().iter().filter(|i| profiled.cells[**i].cell.backend == "alpha").count() as u64;
    assert!(alphas > 0 && alphas < 6, "{alphas}");
    let e = estimate(&profiled, &backends, &assume);
    assert_eq!((e.launches, e.worst), (18 + alphas, (18 + alphas as u32) * Duration::from_secs(610)));
    profiled.cells.clear();
    assert_eq!(estimate(&profiled, &backends, &assume).worst, Duration::ZERO);
}

#[test]
fn a_thousand_cells_are_checked_at_once() {
    let list = |n: u32| (1..=n).map(|i| i.to_string()).collect::<Vec<_>>().join(",");
    let text = GOOD.replace("[32, 96]", &format!("[{}]", list(25))).replace("[16]", &format!("[{}]", list(5))).replace(
        "[measure]",
        "variant = [\"a\", \"b\"]\nthreads = [1, 2]\nexclude = [{ backend = \"beta\", prompt-tokens = 3, gen-tokens = 2 }]\n[measure]",
    );
    // The best of three, since other tests run beside this one; alone on a core it takes 45 ms in a dev build.
    let took = (0..3).map(|_| {
        let started = Instant::now();
        assert_eq!(plan(&text).cells.len(), 996);
        started.elapsed()
    });
    let best = took.min().expect("three");
    assert!(best < Duration::from_secs(1), "{best:?}");
}
