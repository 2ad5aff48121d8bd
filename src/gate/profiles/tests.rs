use std::fs;

use super::*;
use crate::results::schema::LAYERS;

/// A run folder's profile: device, cell, phase, name, part, kind, value, unit, method, folded.
fn run(rows: &[[&str; 9]], cells: &[(&str, &str, &str, &str)]) -> (tempfile::TempDir, Run) {
    let dir = tempfile::tempdir().unwrap();
    let mut text = LAYERS.columns.iter().map(|column| column.name).collect::<Vec<_>>().join(",") + "\n";
    for [cell, phase, name, part, kind, value, unit, method, folded] in rows {
        let field = |column: &str| match column {
            "device" => "d",
            "cell" => cell,
            "phase" => phase,
            "name" => name,
            "part" => part,
            "op_kind" => kind,
            "value" => value,
            "value_unit" => unit,
            "method" => method,
            "folded" => folded,
            _ => "",
        };
        text += &(LAYERS.columns.iter().map(|column| field(column.name)).collect::<Vec<_>>().join(",") + "\n");
    }
    fs::write(dir.path().join("layers.csv"), text).unwrap();
    let mut run = Run { folder: dir.path().to_owned(), ..Run::default() };
    for (id, backend, quant, class) in cells {
        let fields = [("status", "ok"), ("backend", backend), ("quant", quant), ("model", "m"), ("device_class", class)];
        let fields = fields.into_iter().map(|(name, value)| (name, (*value).to_owned())).collect();
        run.cells.insert(Key { device: "d".to_owned(), cell: (*id).to_owned() }, Cell { fields, ..Cell::default() });
    }
    (dir, run)
}

fn all(_: &Cell) -> bool {
    true
}

const BEFORE: [[&str; 9]; 5] = [
    ["c", "decode", "layers.0.q", "q_proj", "matmul", "100", "us", "m", ""],
    ["c", "decode", "layers.0.mlp", "mlp", "matmul", "300", "us", "m", ""],
    ["c", "decode", "layers.0.softmax", "attention", "softmax", "50", "us", "m", ""],
    ["c", "decode", "folded", "norm", "norm", "0", "us", "m", "1"],
    ["c", "decode", "unknown", "norm", "norm", "", "us", "m", ""],
];

#[test]
fn one_framework_by_hand() {
    let after = [
        ["c", "decode", "layers.0.q", "q_proj", "matmul", "90", "us", "m", ""],
        ["c", "decode", "layers.0.mlp", "mlp", "matmul", "400", "us", "m", ""],
        ["c", "decode", "layers.0.softmax", "attention", "softmax", "50", "us", "m", ""],
        ["c", "decode", "cast", "mlp", "convert", "10", "us", "m", ""],
    ];
    let cells = [("c", "mnn", "w4", "pc")];
    let ((_one, a), (_two, b)) = (run(&BEFORE, &cells), run(&after, &cells));
    let found = compare(&a, &b, [&all, &all]).unwrap();
    let [pair] = found.pairs.as_slice() else { panic!("{found:?}") };
    // 450 and 550: 100 more. mlp 300 to 410, q 100 to 90.
    assert_eq!((pair.totals, pair.difference, pair.phase.as_str()), ([450.0, 550.0], Some(100.0), "decode"));
    let parts: Vec<_> = pair.parts.iter().map(|c| (c.name.as_str(), c.difference, c.of_difference, c.ops)).collect();
    assert_eq!(
        parts,
        [
            ("mlp", Some(110.0), Some(1.1), [1, 2]),
            ("q_proj", Some(-10.0), Some(-0.1), [1, 1]),
            ("attention", Some(0.0), Some(0.0), [1, 1]),
            ("norm", None, None, [1, 0]),
        ]
    );
    assert_eq!(pair.unknown, [1, 0], "what A does not know of its norm is not 0");
    let kinds: Vec<_> = pair.kinds.iter().map(|c| (c.name.as_str(), c.values, c.difference)).collect();
    assert_eq!(kinds[0], ("matmul", [Some(400.0), Some(490.0)], Some(90.0)));
    assert_eq!(kinds[1], ("convert", [None, Some(10.0)], Some(10.0)));
    let operations: Vec<_> = pair.operations.iter().map(|c| (c.name.as_str(), c.difference)).collect();
    assert_eq!(operations, [("layers.0.mlp", Some(100.0)), ("cast", Some(10.0)), ("layers.0.q", Some(-10.0))]);
    assert!(found.notes.is_empty(), "{:?}", found.notes);
}

#[test]
fn two_frameworks_have_parts_in_common_and_no_names() {
    let genie = [
        ["g", "decode", "q:OpId_1", "q_proj", "matmul", "3000", "cycles", "\"same binary, qnn-detailed\"", ""],
        ["g", "decode", "mlp:OpId_2", "mlp", "matmul", "1000", "cycles", "\"same binary, qnn-detailed\"", ""],
    ];
    let (_one, a) = run(&BEFORE, &[("c", "mnn", "w4", "pc")]);
    let (_two, b) = run(&genie, &[("g", "genie", "w4", "pc")]);
    let found = compare(&a, &b, [&all, &all]).unwrap();
    let [pair] = found.pairs.as_slice() else { panic!("{found:?}") };
    assert_eq!((pair.difference, pair.operations.len()), (None, 0), "us and cycles have no difference");
    let mlp = pair.parts.iter().find(|c| c.name == "mlp").unwrap();
    assert_eq!((mlp.shares, mlp.difference, mlp.of_difference), ([Some(300.0 / 450.0), Some(0.25)], None, None));

    // The emulator's cells stand beside no others.
    let (_three, emulated) = run(&genie, &[("g", "genie", "w4", "emulator")]);
    let found = compare(&a, &emulated, [&all, &all]).unwrap();
    assert!(found.pairs.is_empty() && found.notes.iter().any(|note| note.contains("two classes")), "{found:?}");
}

#[test]
fn unlike_graphs_and_unverified_cells() {
    let rows = [
        ["c", "prefill", "q", "q_proj", "matmul", "400", "us", "m", ""],
        ["c", "prefill", "fell", "mlp", "matmul", "9", "cycles", "m", ""],
    ];
    let cells = [("c", "mnn", "w4", "pc")];
    let ((_one, mut a), (_two, mut b)) = (run(&rows, &cells), run(&rows[..1], &cells));
    let key = Key { device: "d".to_owned(), cell: "c".to_owned() };
    for (run, chunk) in [(&mut a, "128"), (&mut b, "32")] {
        run.cells.get_mut(&key).unwrap().fields.insert("chunk", chunk.to_owned());
    }
    a.cells.get_mut(&key).unwrap().fields.extend([("status", "unverified".to_owned()), ("reason", "npu asked".to_owned())]);
    let found = compare(&a, &b, [&all, &all]).unwrap();
    assert_eq!(found.pairs[0].difference, None);
    assert_eq!(found.pairs[0].unlike.as_deref(), Some("one run of the prefill graph takes 128 tokens in A, 32 tokens in B"));
    assert_eq!((found.pairs[0].totals, found.pairs[0].unknown), ([400.0, 400.0], [0, 0]), "cycles are no part of the sum");
    assert!(found.notes.iter().any(|note| note == "c is unverified in A: npu asked"), "{:?}", found.notes);
    assert!(found.notes.iter().any(|note| note.contains("1 operations in cycles")), "{:?}", found.notes);
}

#[test]
fn what_has_no_partner_is_said() {
    let rows = |cell: &'static str| [[cell, "decode", "q", "q_proj", "matmul", "3", "us", "m", ""]];
    let (_one, a) = run(&rows("a"), &[("a", "mnn", "w4", "pc")]);
    let two = [rows("b")[0], rows("c")[0]];
    let (_two, b) = run(&two, &[("b", "x", "w8", "pc"), ("c", "y", "w8", "pc")]);
    let found = compare(&a, &b, [&all, &all]).unwrap();
    assert!(found.notes.iter().any(|note| note.contains("pick one with --b-cells: b, c")), "{found:?}");
    let only = |cell: &Cell| cell.field("backend") == "y";
    assert_eq!(compare(&a, &b, [&all, &only]).unwrap().pairs[0].b, "c");
    // No choice would help where all of them are of another class; where some are, they are none to choose from.
    let classes = |c| run(&two, &[("b", "x", "w8", "emulator"), ("c", "y", "w8", c)]);
    let (_emulated, emulated) = classes("emulator");
    let found = compare(&a, &emulated, [&all, &all]).unwrap();
    let told = "a (pc) has no partner: B's cells with its model and lengths are emulator, and two classes are not compared";
    assert_eq!((found.pairs.len(), found.notes), (0, vec![told.to_owned()]));
    let (_mixed, mixed) = classes("pc");
    assert_eq!(compare(&a, &mixed, [&all, &all]).unwrap().pairs[0].b, "c");
    let (_three, empty) = run(&[], &[]);
    assert!(compare(&a, &empty, [&all, &all]).unwrap().notes[0].starts_with("B has no profile of such"));
    // An older table has no parts.
    fs::write(b.folder.join("layers.csv"), "device,cell,phase,name,value,value_unit,method\nd,b,decode,q,3,us,m\n").unwrap();
    assert!(compare(&a, &b, [&all, &all]).unwrap_err().to_string().contains("older bench"));
}
