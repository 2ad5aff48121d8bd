//! Matrix, filters, and the pictures that some runs have and others say why not.

use std::fs;

use super::support::{csv, drawings, edit, page_of, part, run};

#[test]
fn the_matrix_has_a_place_for_every_cell_that_was_asked_for() {
    let (_keep, dir) = run();
    let page = page_of(&dir);
    let native = part(&page, "<section class=\"panel native\"", "id=\"r0-out\"");
    for (title, metric) in [("Time to first token by workload", "ttft_ms"), ("Decode rate by workload", "decode_tok_s")] {
        let matrix = part(native, title, "</table>");
        let row = |name: &str| part(part(matrix, "<tbody>", "</tbody>"), &format!("</svg>{name}</span>"), "</tr>").to_owned();
        for (at, workload) in ["32", "96", "224"].into_iter().enumerate() {
            let exact = csv(&dir, &format!("mnn.tiny.w8.p{workload}"), metric);
            let cell = row("mnn").split("<td class=\"num\"").nth(at + 1).expect("a cell").to_owned();
            assert!(cell.starts_with(&format!(" data-v=\"{exact}\"")), "{exact} in {cell}");
        }
        // It was tried at one workload only, and the other two were not asked for.
        assert!(row("executorch").contains("class=\"status skipped\" title=\"not installed: `bench runtimes install executorch`\""));
        assert_eq!(row("executorch").matches("title=\"not asked for\"").count(), 2);
        assert!(!matrix.contains("genie<"), "classes never mix");
    }
    edit(&dir, "cells.csv", |at, fields| if fields[at("prompt_tokens")] == "96" { vec![fields] } else { Vec::new() });
    assert!(!page_of(&dir).contains("by workload"), "of one workload the comparison is the matrix");
}

#[test]
fn rows_say_what_they_are_about_and_filters_offer_it() {
    let (_keep, dir) = run();
    let page = page_of(&dir);
    let keys = "data-backend=\"genie\" data-model=\"tiny\" data-quant=\"w8a16\" data-workload=\"96 → 16\" data-status=\"ok\" data-class=\"emulator\"";
    assert_eq!(page.matches(&format!("<tr class=\"row\" {keys}")).count(), 1);
    let form = part(&page, "<form class=\"filters\"", "</form>");
    let options = |name: &str| part(form, &format!("name=\"{name}\""), "</select>").matches("<option").count();
    // Each with "all"; workloads by number, and no filter by the one model.
    assert_eq!([options("class"), options("backend"), options("quant"), options("workload"), options("status")], [3, 7, 8, 4, 5]);
    let places: Vec<usize> = ["32 → 16", "96 → 16", "224 → 16"].map(|of| form.find(of).expect(of)).to_vec();
    assert!(places.is_sorted() && !form.contains("name=\"model\"") && form.contains(" hidden>"));
    edit(&dir, "cells.csv", |at, fields| if fields[at("prompt_tokens")] == "32" { vec![fields] } else { Vec::new() });
    assert!(!page_of(&dir).contains("<form"), "seven cells need none");
}

#[test]
fn the_shell_and_an_app_are_not_compared() {
    let (_keep, dir) = run();
    assert!(page_of(&dir).contains("arrival, started from a shell."));
    edit(&dir, "cells.csv", |at, mut fields| {
        if fields[at("cell")].starts_with("ort-qnn.") && fields[at("status")] == "ok" {
            fields[at("launch_context")] = "app".into();
        }
        vec![fields]
    });
    let page = page_of(&dir);
    let pairing = part(&page, "class=\"pairing\"", "</section>");
    assert!(pairing.contains("not compared: started from shell against app") && !pairing.contains("genie sooner"));
    for drawing in drawings(&page) {
        assert!(!(drawing.contains("ort-qnn ·") && drawing.contains("genie ·")), "{drawing}");
    }
    // Sorted rows stay with their like.
    for (backend, apart) in [("genie", 1), ("ort-qnn", 0)] {
        let row = part(&page, &format!("<tr class=\"row\" data-backend=\"{backend}\""), ">");
        assert!(row.ends_with(&format!("data-apart=\"{apart}\"")), "{row}");
    }
}

#[test]
fn memory_and_energy_are_drawn_apart_by_how_they_were_measured() {
    let (_keep, dir) = run();
    let emulator = |page: &str| part(page, "<section class=\"panel emulator\"", "<section class=\"panel native\"").to_owned();
    let before = emulator(&page_of(&dir));
    assert!(
        before.contains("Net energy per generated token: the scenario has no [power].") && before.contains("Thermal soak: none was run.")
    );
    assert!(!before.contains("<h4>Memory by phase, 224") && !before.contains("<h4>Net energy"));
    edit(&dir, "cells.csv", |at, mut fields| {
        if fields[at("status")] == "ok" && fields[at("quant")] == "fp16" {
            let genie = fields[at("backend")] == "genie";
            for (column, value) in [
                ("mem_load_mb", "210.5"),
                ("mem_load_mb_n", "1"),
                ("mem_prefill_mb", "260.25"),
                ("mem_end_mb", "255"),
                ("energy_j_per_tok", "0.0125"),
                ("energy_j_per_tok_lo", "0.012"),
                ("energy_j_per_tok_hi", "0.0131"),
                ("energy_j_per_tok_n", "6"),
                ("energy_phase_method", "loop"),
                ("peak_mem_method", if genie { "dmabuf+anon+shmem" } else { "anon+shmem" }),
                ("power_method", if genie { "battery" } else { "meter" }),
            ] {
                fields[at(column)] = value.into();
            }
        }
        vec![fields]
    });
    let page = emulator(&page_of(&dir));
    for (method, backend, other) in [("dmabuf+anon+shmem", "genie", "ort-qnn"), ("anon+shmem", "ort-qnn", "genie")] {
        let figure = part(&page, &format!("<h4>Memory by phase, 224 → 16 tokens — {method}</h4>"), "</figure>");
        assert!(figure.contains(&format!("<th scope=\"row\">{backend} · fp16</th><td>210</td><td>260</td><td>255</td>")), "{figure}");
        assert!(!figure.contains(&format!("{other} ·")) && drawings(figure)[0].contains("after prefill"));
    }
    let energies: Vec<&str> = page.split("<h4>Net energy per generated token</h4>").skip(1).collect();
    assert_eq!(energies.len(), 2, "a battery and a meter have an axis each");
    for energy in energies {
        let figure = energy.split("</figure>").next().expect("a figure");
        assert!(figure.contains("<td>0.01250</td>") && figure.contains("never that of an NPU alone"), "{figure}");
        assert!(drawings(figure)[0].contains("joules per token, lower is better"));
        assert!(figure.contains("by battery") != figure.contains("by meter"));
    }
    assert!(!page.contains("Net energy per generated token: "));
}

#[test]
fn what_is_not_drawn_has_its_reasons() {
    let (_keep, dir) = run();
    let cells = fs::read_to_string(dir.join("cells.csv")).expect("cells");
    fs::write(dir.join("cells.csv"), cells.replace("energy_j_per_tok=this runner does not report it", "energy_j_per_tok=on a <charger>"))
        .expect("cells");
    fs::write(dir.join("plan.toml"), "[power]\n").expect("a plan");
    fs::remove_file(dir.join("telemetry.csv")).expect("the file");
    edit(&dir, "cells.csv", |at, fields| if fields[at("prompt_tokens")] == "96" { vec![fields] } else { Vec::new() });
    let page = page_of(&dir);
    let said = part(&page, "Not on this page:</strong>", "</p>");
    for words in [
        "Time to first token against prompt length: one prompt length was run.",
        "Decode rate against context depth: one depth was run.",
        "Memory by phase: this runner does not report it.",
        "Net energy per generated token: on a &lt;charger&gt;.",
        "Values over time: telemetry.csv has none of these cells.",
    ] {
        assert!(said.contains(words), "{words} in {said}");
    }
    assert!(!said.contains("Token latency"), "which is drawn: {said}");
}

#[test]
fn decode_is_drawn_against_the_depth_of_its_last_step() {
    let (_keep, dir) = run();
    let page = page_of(&dir);
    let figure = part(&page, "<h4>Decode rate against context depth</h4>", "</figure>");
    // The table's own depth: 32 and 16 tokens of the made-up run.
    let exact: f64 = csv(&dir, "genie.tiny.fp16.p32", "decode_tok_s").parse().expect("a number");
    let row = part(figure, "<th scope=\"row\">genie · fp16</th><td>48</td><td>", " [");
    assert!((row.parse::<f64>().expect("a figure") - exact).abs() < 0.05, "{row} is not {exact}");
    assert_eq!(figure.matches("<td>48</td>").count(), 4, "two frameworks, two quantisations");
    assert!(drawings(figure)[0].contains("depth of the last step, tokens"));
}

#[test]
fn the_soaks_first_minute_stands_beside_the_thirtieth() {
    let (_keep, dir) = run();
    edit(&dir, "cells.csv", |at, mut fields| {
        if fields[at("status")] == "ok" && fields[at("backend")] == "genie" {
            fields[at("soak_ended")] = "time".into();
            fields[at("soak_minute_1_tok_s")] = "21.5".into();
            // The second one ended before.
            fields[at("soak_minute_30_tok_s")] = if fields[at("quant")] == "fp16" { "15.25".into() } else { String::new() };
        }
        vec![fields]
    });
    let page = page_of(&dir);
    let figure = part(&page, "<h4>Thermal soak: minute 1 against minute 30</h4>", "</figure>");
    assert!(figure.contains("<td>21.5</td><td>15.2</td>") || figure.contains("<td>21.5</td><td>15.3</td>"), "{figure}");
    assert!(drawings(figure)[0].matches("minute 30").count() == 4 && !figure.contains("w8a16"), "three workloads and the title");
    assert!(!part(&page, "Not on this page:</strong>", "</p>").contains("Thermal soak"));
}
