//! `bench history`: the folders that a lab has, and what is wrong with some of them.

mod support;

use support::runs::{Cell, Run, noisy};

/// The made folder is one that comparisons read: one value a launch, and the figures of cells.csv are those values'.
#[test]
fn made_runs_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let values = noisy(20.0, 0.03, 7, 1);
    let cell = Cell::new("mnn.tiny.w4.p32.g16-0a1b2c3d").values("decode_tok_s", &values).values("load_ms", &[900.0, 60.0, 62.0, 61.0]);
    let folder = Run::night(58).cell(cell).runtime("mnn", "MNN 3.7.0").write(dir.path());
    let run = bench::gate::run::load(&folder).unwrap();
    assert_eq!((run.started_utc.as_str(), run.problems.len()), ("2026-02-28T02:00:00.000Z", 0), "{:?}", run.problems);
    let (key, cell) = run.cells.first_key_value().unwrap();
    assert_eq!((key.device.as_str(), cell.field("runtime_version"), cell.is_ok()), ("phone-1", "MNN 3.7.0", true));
    assert_eq!((cell.values("decode_tok_s"), cell.values("load_ms")), (values, vec![60.0, 62.0, 61.0]));
    let row = &support::table(&folder, "cells.csv")[0];
    assert_eq!((row["load_ms"].as_str(), row["load_ms_n"].as_str()), ("61", "3"));
}
