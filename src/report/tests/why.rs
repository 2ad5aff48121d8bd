//! Where the time goes: parts, stages, processors, roofs.

use std::{fs, path::Path};

use super::support::{csv, drawings, edit, page_of, part, run};
use crate::report::render;

const EMULATOR: &str = "<section class=\"panel emulator\"";
const NATIVE: &str = "<section class=\"panel native\"";
const MARKUP: &str = "<b onclick=x>";

/// Ids of the largest cells of the two frameworks on w8a16.
fn id(dir: &Path, backend: &str) -> String {
    csv(dir, &format!("{backend}.tiny.w8a16.p224"), "cell")
}

/// Gives operations their parts: the made-up profile has 11 of 90,000 / (i + 1) cycles.
fn with_parts(dir: &Path) {
    edit(dir, "layers.csv", |at, mut fields| {
        let name = fields[at("name")].clone();
        let part =
            [("ffn", "mlp"), ("lm_head", "lm_head"), ("qkv", "qkv_proj"), ("softmax", "attention"), ("norm", "norm"), ("rope", "rope")]
                .into_iter()
                .find_map(|(word, part)| name.contains(word).then_some(part));
        fields[at("part")] = part.expect("a part").into();
        fields[at("unit")] = if part == Some("attention") { "cpu" } else { "npu" }.into();
        fields[at("op_class")] = if part == Some("rope") { "movement" } else { "compute" }.into();
        fields[at("op_kind")] = "matmul".into();
        fields[at("value_means")] = "thread-cycles".into();
        vec![fields]
    });
}

#[test]
fn an_older_run_has_no_section_and_no_noise() {
    let (_keep, dir) = run();
    let page = page_of(&dir);
    assert!(!page.contains("Where the time goes") && !page.contains("phases.csv") && !page.contains("fallbacks.csv"));
}

#[test]
fn parts_of_the_model_are_shares_of_their_phase() {
    let (_keep, dir) = run();
    with_parts(&dir);
    let page = page_of(&dir);
    let why = part(&page, "By part of the model, in thread cycles of the emulator</h4>", "</figure>");
    // By hand: the sum of 1 / (i + 1) for i = 0..=10 is 3.01988; ffn are i = 1..=4, softmax 7 and 8, rope 10.
    let row = |cells: &[&str]| cells.iter().map(|cell| format!("<td>{cell}</td>")).collect::<Vec<_>>().concat();
    for shares in [
        ["decode", "mlp", "npu", "4", "0", "115500", "42.5", "0.0"],
        ["decode", "lm_head", "npu", "1", "0", "90000", "33.1", "0.0"],
        ["prefill", "attention", "cpu", "2", "0", "21250", "7.8", "0.0"],
        ["prefill", "rope", "npu", "1", "0", "8182", "3.0", "100.0"],
    ] {
        let wanted = format!("<th scope=\"row\">genie · w8a16</th>{}", row(&shares));
        assert!(why.contains(&wanted), "{wanted} in {why}");
    }
    let drawing = drawings(why)[0];
    assert_eq!(drawing.matches("NPU 92.2 %, CPU 7.8").count(), 8, "two frameworks, two quantisations, two phases");
    assert!(drawing.contains("% of the thread cycles of the emulator of the phase"));
    assert!(why.contains("faint: data movement") && why.contains("line across") && why.contains("shares of the work"));
    assert!(why.contains("read shares within one processor"));
    let pc = part(&page, NATIVE, "id=\"r0-out\"");
    assert!(!pc.contains("Where the time goes"), "the PC's engines have no profile here");
    let top = part(&page, "Most expensive operations", "</section>");
    assert!(top.contains("<th scope=\"col\">part</th>") && top.contains("<td>lm_head</td>") && top.contains("<td>matmul</td>"));
}

#[test]
fn operations_without_parts_are_no_bar_and_folded_ones_are_counted_apart() {
    let (_keep, dir) = run();
    with_parts(&dir);
    edit(&dir, "layers.csv", |at, mut fields| {
        match fields[at("backend")].as_str() {
            "genie" => fields[at("part")] = String::new(),
            _ if fields[at("name")].contains("qkv") => (fields[at("value")], fields[at("folded")]) = ("0".into(), "1".into()),
            _ => {}
        }
        vec![fields]
    });
    let page = page_of(&dir);
    let why = part(&page, "By part of the model, in thread cycles of the emulator</h4>", "</figure>");
    assert!(!why.contains("genie ·"), "{why}");
    assert!(why.contains("<td>qkv_proj</td><td>npu</td><td>0</td><td>2</td><td>0.00</td><td>0.0</td><td>—</td>"), "{why}");
}

#[test]
fn stages_show_their_parts_in_order_and_keep_the_passes_apart() {
    let (_keep, dir) = run();
    let (genie, ort) = (id(&dir, "genie"), id(&dir, "ort-qnn"));
    let row = |cell: &str, pass: &str, stage: &str, phase: &str, ms: &str, share: &str, method: &str| {
        let backend = cell.split('.').next().expect("a backend");
        format!("1,r,this-machine,emulator,{cell},{backend},{pass},{stage},0,{phase},3,{ms},,,,{share},{method}\n")
    };
    let table = "format_version,run,device,device_class,cell,backend,pass,stage,i,phase,n,ms,ms_lo,ms_hi,ms_coverage,share,method\n"
        .to_owned()
        + &row(&genie, "measure", "load", "library", "20.5", "0.2", "events")
        + &row(&genie, "measure", "load", MARKUP, "71.75", "0.7", "events")
        + &row(&genie, "measure", "load", "unaccounted", "10.25", "0.1", "rest")
        + &row(&genie, "measure", "prefill", "query", "812", "1", "whole")
        + &row(&ort, "measure", "decode", "execute", "9", "0.9", "sums")
        + &row(&ort, "profile", "decode", "execute", "77", "0.9", "events")
        + &row(&ort, "profile", "decode", "execute/rpc", "1.5", "0.02", "qnn-ep-profile")
        + &row(&ort, "measure", "prefill", "execute", "-5", "0.9", "sums")
        + &row(&ort, "measure", "load", "read", "many", "0.9", "sums");
    fs::write(dir.join("phases.csv"), table).expect("a table");
    let page = page_of(&dir);
    let measured = part(part(&page, EMULATOR, NATIVE), "Where the time goes", "<details class=\"wide\">");
    let load = part(measured, "One load, the model in the page cache</h4>", "</figure>");
    let drawing = drawings(load)[0];
    let places: Vec<usize> = ["library", "&lt;b onclick=x&gt;", "unaccounted"].map(|name| drawing.find(name).expect(name)).to_vec();
    assert!(places.is_sorted(), "{places:?}");
    assert!(drawing.contains("in all, 3 launches") && drawing.contains("102 ms") && drawing.contains("71.8 ms · 70.0 % · events"));
    assert!(load.contains("Grey: what no part accounts for") && !page.contains(MARKUP));
    assert!(part(measured, "until its first token</h4>", "</figure>").contains("query, in one piece"));
    assert!(measured.contains("9.00 ms · 90.0 % · sums") && !measured.contains("77.0 ms"), "the profile pass stands apart");
    let profiled = part(&page, "The same stages in the profile pass", "</details></details>");
    assert!(profiled.contains("↳ rpc") && profiled.contains("77.0 ms") && profiled.contains("no figure of the measurement"));
    assert!(page.contains("phases.csv: 1 values are not numbers"));
}

#[test]
fn a_processor_that_was_not_asked_for_raises_an_alarm() {
    let (_keep, dir) = run();
    let ort = id(&dir, "ort-qnn");
    edit(&dir, "cells.csv", |at, mut fields| {
        if fields[at("cell")].starts_with("ort-qnn.tiny.w8a16") {
            fields[at("unit_found")] = "hybrid".into();
            fields[at("status")] = "unverified".into();
        }
        vec![fields]
    });
    let head = "format_version,run,device,device_class,cell,backend,unit_requested,op,op_type,unit,reason,source\n";
    let told: Vec<String> =
        (0..45).map(|i| format!("1,r,this-machine,emulator,{ort},ort-qnn,npu,{MARKUP}{i},Hardmax,cpu,no kernel,ort-log\n")).collect();
    let whole = format!("1,r,this-machine,emulator,{},genie,npu,,,,,{MARKUP}\n", id(&dir, "genie"));
    fs::write(dir.join("fallbacks.csv"), format!("{head}{whole}{}", told.concat())).expect("a table");
    let head = "format_version,run,device,device_class,model,quant,backend,unit,support,op,op_type,cells,cells_ok,reason\n";
    let rows = [
        "genie,npu,runs,,,3,3,".to_owned(),
        format!("ort-qnn,npu,fails-at-op,{MARKUP},Hardmax,3,0,no"),
        "mnn,gpu,fails,,,1,0,no OpenCL".to_owned(),
    ];
    let rows = rows.map(|row| format!("1,r,this-machine,emulator,tiny,w8a16,{row}\n")).concat();
    fs::write(dir.join("support.csv"), format!("{head}{rows}")).expect("a table");
    let placement = "format_version,run,device,device_class,cell,backend,phase,unit_requested,unit,ops,ops_folded,value,value_unit,share,accounted,method\n";
    let placement =
        format!("{placement}1,r,this-machine,emulator,{},genie,decode,npu,npu,152,26,6185792,cycles,1,0.97,qnn\n", id(&dir, "genie"));
    fs::write(dir.join("placement.csv"), placement).expect("a table");
    let page = page_of(&dir);
    let why = part(&page, "<h3>Where the time goes</h3>", "</section>");
    let alarm = part(why, "class=\"alarm\"", "</div>");
    assert_eq!(alarm.matches("<li>").count(), 1, "three cells, one sentence");
    assert!(alarm.contains("ort-qnn · w8a16: the NPU was asked for, a mix of processors did the work."), "{alarm}");
    let first_screen = part(&page, "class=\"headlines", "</section>");
    assert_eq!(first_screen.matches("Not on the processor asked for: ort-qnn · w8a16: the NPU").count(), 1);
    assert!(page.contains("href=\"#r0-p0-why\""), "the contents lead to it");
    assert!(why.contains("; 6 more are in fallbacks.csv") && why.contains("<td>&lt;b onclick=x&gt;38</td><td>Hardmax</td>"));
    assert!(
        why.contains("<td>the whole model</td><td>—</td><td>npu</td><td>nowhere: the launch failed</td><td>the runtime gives none</td>")
    );
    assert!(why.contains("<td>w8a16</td><td>npu</td><td>✓ runs</td><td>—</td><td>✗ fails at an operation: &lt;b onclick=x&gt;</td>"));
    assert!(why.contains("<td>w8a16</td><td>gpu</td><td>—</td><td>✗ fails: no OpenCL</td><td>—</td>"));
    assert!(why.contains("<td>152</td><td>26</td><td>6185792 cycles</td><td>100.0</td><td>97.0</td>") && !page.contains(MARKUP));
}

#[test]
fn the_roof_is_drawn_where_it_applies_and_else_has_a_reason() {
    let (_keep, dir) = run();
    edit(&dir, "cells.csv", |at, mut fields| {
        if fields[at("status")] == "ok" && fields[at("quant")] == "fp16" {
            fields[at("roof_note")] = "not applicable: an emulator has <b>none".into();
        } else if fields[at("cell")].starts_with("genie.tiny.w8a16") {
            fields[at("device_class")] = "phone".into();
            for (column, value) in [
                ("decode_mb_per_tok", "2050"),
                ("peak_gb_s", "76.8"),
                ("roof_tok_s", "37.46"),
                ("roof_share", "0.802"),
                ("decode_gb_s", "61.5"),
                ("traced_gb_s", "64.2"),
            ] {
                fields[at(column)] = value.into();
            }
        } else if fields[at("cell")].starts_with("ort-qnn.tiny.w8a16") {
            fields[at("device_class")] = "phone".into();
            // No device moves as much: told in the table, and drawn nowhere.
            fields[at("decode_mb_per_tok")] = "1e300".into();
            fields[at("peak_gb_s")] = "76.8".into();
        }
        vec![fields]
    });
    let page = page_of(&dir);
    let roof = part(&page, "Decode under the memory&#x27;s roof</h4>", "</figure>");
    let drawing = drawings(roof)[0];
    assert!(drawing.contains("76.8 GB/s") && drawing.contains(": 3 cells"));
    assert_eq!(drawing.matches("<circle").count(), 6, "a dot and a ring for each workload");
    assert!(roof.contains("<td>37.5</td><td>80.2</td><td>61.5</td><td>64.2</td><td>76.8</td>") && roof.contains("A ring: a trace counted"));
    assert!(page.contains("No roofline for decode here: an emulator has &lt;b&gt;none (genie and ort-qnn)."));
    assert_eq!(page.matches("No roofline for decode").count(), 1, "nothing where the table gives no reason");
}

#[test]
fn prefill_is_set_beside_the_best_on_the_chip_in_all_runs_of_the_page() {
    let (_keep, dir) = run();
    let (_keep_faster, faster) = run();
    let best = "prefill_tok_s";
    edit(&faster, "cells.csv", |at, mut fields| {
        if fields[at("cell")].starts_with("genie.tiny.w8a16.p96") {
            fields[at(best)] = "4000".into();
        } else if fields[at("cell")].starts_with("ort-qnn.tiny.fp16.p96") {
            // Composed and of another method: the best of nobody else.
            (fields[at(best)], fields[at("prefill_method")]) = ("90000".into(), "composed".into());
        }
        vec![fields]
    });
    let slow: f64 = csv(&dir, "ort-qnn.tiny.w8a16.p224", best).parse().expect("a number");
    let page = render(&[dir, faster], None).expect("a page");
    let table = part(&page, "Prefill: share of the best prefill of this model in this report on this chip", "</details>");
    let wanted = format!("<td>{:.1}</td><td>measured</td><td>genie · w8a16, 96 → 16 tokens</td>", 100.0 * slow / 4000.0);
    assert!(part(table, "224 → 16 · ort-qnn · w8a16", "</tr>").contains(&wanted), "{wanted} in {table}");
    assert!(!table.contains("90000") && page.contains("<td>90000</td><td>100.0</td><td>composed</td>"));
}
