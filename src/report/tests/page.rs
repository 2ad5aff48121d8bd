//! What the page of a whole run says.

use std::fs;

use super::support::{csv, drawings, edit, page_of, part, run};
use crate::report::{Report, render};

#[test]
fn the_figures_are_those_of_the_table() {
    let (_keep, dir) = run();
    let page = page_of(&dir);
    for (cell, metric) in [
        ("genie.tiny.w8a16.p96", "ttft_ms"),
        ("ort-qnn.tiny.fp16.p224", "decode_tok_s"),
        ("mnn.tiny.w8.p32", "e2e_ms"),
        ("ort-genai.tiny.fp32.p32", "load_ms"),
    ] {
        let exact: f64 = csv(&dir, cell, metric).parse().expect("a number");
        assert!(page.contains(&format!("title=\"{exact} exactly;")), "{cell} {metric} {exact}");
    }
    assert!(page.contains("holds the median in 97 % with 6 launches and 50 % with 2 launches"));
}

#[test]
fn ratios_stand_on_the_same_artifacts_of_one_class_only() {
    let (_keep, dir) = run();
    let page = page_of(&dir);
    assert!(page.contains("genie against ort-qnn on the same context binaries"));
    assert_eq!(page.matches("class=\"pairing\"").count(), 1, "one pairing in all");
    // The median of the launches' medians, and not of all queries.
    let number = |cell: &str| csv(&dir, cell, "ttft_ms").parse::<f64>().expect("a number");
    let ratio = number("genie.tiny.w8a16.p96") / number("ort-qnn.tiny.w8a16.p96");
    let pairing = part(&page, "class=\"pairing\"", "</section>");
    assert!(pairing.contains(&format!("<span class=\"value\">{ratio:.3}</span>")), "{ratio}");
    assert!(pairing.contains("genie sooner") && pairing.contains("6 launches a side: interval of at least 95 %"));
    let emulator = part(&page, "<section class=\"panel emulator\"", "<section class=\"panel native\"");
    for name in ["ort-genai", "llama-cpp", "mnn"] {
        assert!(!emulator.contains(name), "{name} in the emulator's panel");
    }
    let pc = part(&page, "<section class=\"panel native\"", "id=\"r0-out\"");
    assert!(!pc.contains("genie<") && !pc.contains("ort-qnn") && pc.contains("No two frameworks were measured on the same artifact"));
    assert_eq!(page.matches("Emulator time is not device time").count(), 2, "on the first screen and in the panel");
    assert!(pc.contains("Same source model by the scenario&#x27;s word, different quantisation"));
}

/// Two programs in fp32 that bring their models: nobody knows what they ran.
#[test]
fn programs_without_artifacts_are_of_no_known_source() {
    let (_keep, dir) = run();
    edit(&dir, "cells.csv", |at, mut fields| {
        fields[at("artifact")] = String::new();
        fields[at("quant_native")] = String::new();
        fields[at("quant")] = "fp32".to_owned();
        vec![fields]
    });
    let page = page_of(&dir);
    let unknown = "is known, and nothing tells whether all ran the same model";
    assert!(!page.contains("ame source model"), "{}", part(&page, "ame source model", "."));
    assert_eq!(page.matches(&format!("No artifact of llama-cpp, mnn, ort-genai {unknown}: none of the frameworks is ranked.")).count(), 1);
    assert!(page.contains(&format!("{unknown}: rows of different backends or quant classes stand beside each other and are not ranked.")));
    // One tokenizer is no artifact that two share.
    edit(&dir, "cells.csv", |at, mut fields| {
        fields[at("artifact")] = "tokenizer-0011223344556677".to_owned();
        vec![fields]
    });
    let page = page_of(&dir);
    assert!(page.contains(unknown) && !page.contains("class=\"pairing\""));
}

/// Who names a quantisation stands beside the name.
#[test]
fn a_native_name_that_the_scenario_states_is_said_to_be_its_word() {
    let (_keep, dir) = run();
    let said = ["name stated by the scenario", "native name from"];
    let with = |from: &str| {
        edit(&dir, "cells.csv", |at, mut fields| {
            fields[at("quant_native_from")] = if fields[at("backend")] == "mnn" { from } else { "files" }.to_owned();
            vec![fields]
        });
        page_of(&dir)
    };
    let of_files = with("files");
    assert!(of_files.contains("int8 block 32") && said.iter().all(|words| !of_files.contains(words)));
    let stated = with("scenario");
    assert!(said.iter().all(|words| stated.contains(words)));
    assert!(stated.contains("<td>the scenario</td>") && stated.contains("<td>its files</td>"));
}

/// Rule R7.
#[test]
fn graphs_that_attend_over_other_contexts_are_said() {
    let (_keep, dir) = run();
    assert!(!page_of(&dir).contains("attend over the context"), "all graphs of the emulator have 256, and no engine of the PC has any");
    edit(&dir, "cells.csv", |at, mut fields| {
        if fields[at("backend")] == "ort-qnn" {
            fields[at("compiled_context")] = "4096".into();
        }
        vec![fields]
    });
    let page = page_of(&dir);
    assert!(page.contains("whatever the depth: ort-qnn over 4096 and genie over 256. Who supports more"), "the set's note");
    assert!(page.contains("context that the graphs attend over: genie 256, ort-qnn 4096"), "the pair's note");
    assert!(page.contains("compiled for context"), "the artifacts' table");
}

#[test]
fn other_artifacts_have_no_ratio_and_a_printed_mean_is_said() {
    let (_keep, dir) = run();
    let cells = fs::read_to_string(dir.join("cells.csv")).expect("cells");
    fs::write(dir.join("cells.csv"), cells.replace("qnn-context-a1b2c3d4fp16", "")).expect("cells");
    edit(&dir, "samples.csv", |at, mut fields| {
        if fields[at("backend")] == "ort-qnn" {
            fields[at("aggregate_n")] = "8".into();
        }
        vec![fields]
    });
    let page = page_of(&dir);
    let pairing = part(&page, "class=\"pairing\"", "</section>");
    assert!(!pairing.contains("<td>fp16</td>") && pairing.contains("<td>w8a16</td>"));
    assert!(pairing.contains("ort-qnn prints one mean for all queries of a launch"));
    fs::remove_file(dir.join("samples.csv")).expect("the file");
    let page = page_of(&dir);
    let pairing = part(&page, "class=\"pairing\"", "</section>");
    assert!(pairing.contains("own values are not at hand") && !pairing.contains("class=\"interval\"") && !pairing.contains("genie sooner"));
}

/// n of a ratio is that of the table: where the launches in `samples.csv` are others they make none, and the page says why.
#[test]
fn launches_that_are_not_counted_make_no_ratio() {
    let (_keep, dir) = run();
    let contradicts = "contradict each other, so that these launches make no ratio: genie.tiny.";
    assert!(!page_of(&dir).contains(contradicts));
    edit(&dir, "samples.csv", |at, fields| {
        let here = fields[at("backend")] == "genie" && fields[at("launch")] == "5" && fields[at("pass")] == "measure";
        let again: Vec<String> =
            fields.iter().enumerate().map(|(n, own)| if n == at("launch") { "6".to_owned() } else { own.clone() }).collect();
        if here { vec![fields, again] } else { vec![fields] }
    });
    let page = page_of(&dir);
    let told = part(&page, contradicts, "<");
    assert!(told.contains("has 7 launches of ttft_ms, cells.csv counts 6, and ") && told.ends_with(" more"), "{told}");
    let pairing = part(&page, "class=\"pairing\"", "</section>");
    assert!(!pairing.contains("7 and 6 launches") && !pairing.contains("genie sooner") && pairing.contains("own values are not at hand"));
}

#[test]
fn ways_to_time_the_first_token_are_not_compared() {
    let (_keep, dir) = run();
    let cells = fs::read_to_string(dir.join("cells.csv")).expect("cells");
    let other = |line: &str| {
        if line.contains(",ort-qnn.tiny.w8a16") { line.replace(",ids,token_event,", ",text,token_event,") } else { line.to_owned() }
    };
    fs::write(dir.join("cells.csv"), cells.lines().map(other).collect::<Vec<_>>().join("\n") + "\n").expect("cells");
    let page = page_of(&dir);
    assert!(page.contains("not compared: ids against text") && page.contains("not comparable in 3"));
    assert!(page.contains("genie faster"), "the decode rate does not depend on the scope");
    let named = "aria-label=\"Time to first token — from text";
    let of_text: Vec<&str> = drawings(part(&page, "<section class=\"panel emulator\"", "<section class=\"panel native\""))
        .into_iter()
        .filter(|drawing| drawing.contains(named))
        .collect();
    assert!(of_text.len() == 1 && of_text[0].contains("ort-qnn") && !of_text[0].contains("genie"));
    assert!(page.contains("Time to first token — from text, tokenisation included, timed at the token&#x27;s arrival"));
}

#[test]
fn what_is_composed_of_graph_times_is_no_headline_and_in_no_ratio() {
    let (_keep, dir) = run();
    let cells = fs::read_to_string(dir.join("cells.csv")).expect("cells");
    let other = |line: &str| {
        if line.contains(",ort-qnn.tiny.") { line.replace(",ids,token_event,", ",ids,composed,") } else { line.to_owned() }
    };
    fs::write(dir.join("cells.csv"), cells.lines().map(other).collect::<Vec<_>>().join("\n") + "\n").expect("cells");
    let page = page_of(&dir);
    assert!(page.contains("Not shown here: ort-qnn, whose figures are composed from graph times"));
    let pairing = part(&page, "class=\"pairing\"", "</section>");
    assert!(pairing.contains("not compared: composed from graph times") && !pairing.contains("genie faster"));
    assert!(page.contains("one step takes the sum over all decode graphs"));
    for drawing in drawings(&page) {
        assert!(!(drawing.contains("ort-qnn ·") && drawing.contains("genie ·")), "{drawing}");
    }
}

#[test]
fn an_engine_behind_a_backend_is_told() {
    let (_keep, dir) = run();
    let note = "ort-qnn ran this model through genie: two ways to start one engine";
    assert!(!page_of(&dir).contains(note));
    let cells = fs::read_to_string(dir.join("cells.csv")).expect("cells");
    fs::write(dir.join("cells.csv"), cells.replace(",graph,", ",genie,")).expect("cells");
    assert!(page_of(&dir).contains(note));
}

#[test]
fn cells_that_do_not_count_are_in_no_chart_and_stand_with_their_reason() {
    let (_keep, dir) = run();
    let page = page_of(&dir);
    for drawing in drawings(&page) {
        assert!(!drawing.contains("executorch") && !drawing.contains("w4"), "{drawing}");
    }
    for reason in [
        "tokens differ from the fp32 reference at position 3 of 16",
        "the runner ended with signal 11 while loading",
        "not installed: `bench runtimes install executorch`",
        "Remedy: bench runtimes install executorch",
        "no x86-64 build in the SDK",
    ] {
        assert!(page.contains(reason), "{reason}");
    }
    assert!(page.contains("21 of 25 cells were measured"));
    assert!(page.contains("the text callback merges pieces"), "a dash has its reason");
    assert!(page.contains("weights on a grid that 4 and 8 bits hold exactly"), "what the token check of our own artifacts says");
}

#[test]
fn the_profile_pass_feeds_layers_alone() {
    let (_keep, dir) = run();
    let before = page_of(&dir);
    for (file, column) in
        [("samples.csv", "ttft_ms"), ("samples.csv", "decode_tok_s"), ("tokens.csv", "itl_ms"), ("telemetry.csv", "value")]
    {
        edit(&dir, file, |at, fields| {
            let mut profiled = fields.clone();
            profiled[at("pass")] = "profile".into();
            profiled[at(column)] = "987654321".into();
            if fields[at("launch")] == "0" { vec![profiled, fields] } else { vec![fields] }
        });
    }
    assert_eq!(page_of(&dir), before);
    assert!(before.contains("layer 0 ffn_up") && before.contains("mean of 12 executions") && before.contains("mean of 60 executions"));
    assert!(before.contains("cycles of the emulator"));
}

#[test]
fn nothing_hostile_and_nothing_foreign_is_in_the_page() {
    let (_keep, dir) = run();
    let cells = fs::read_to_string(dir.join("cells.csv")).expect("cells");
    // Names go into drawings, attributes and sentences.
    fs::write(dir.join("cells.csv"), cells.replace(",mnn,", ",<b onclick=x>&amp;</b>,").replace(",tiny,", ",\"\"\"><script>m</script>\","))
        .expect("cells");
    let page = page_of(&dir);
    assert!(page.contains("Content-Security-Policy\" content=\"default-src 'none'"));
    assert_eq!(page.matches("<script").count(), 1, "our own");
    for forbidden in ["<script>m", "<script>alert", "<img", "<b onclick", "javascript:", "url(", "@import", "<link", "xlink"] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    // The reason with an address in it is text; nothing refers to one.
    for attribute in ["src=\"", "href=\"http", "xmlns="] {
        assert!(!page.contains(attribute), "{attribute}");
    }
    assert!(page.contains("&lt;script&gt;alert("));
    assert!(!page.contains('\u{202e}'), "text can't turn its direction");
    assert!(!page.contains("NaN") && !page.contains("inf ") && !page.contains(">None<"));
}

#[test]
fn the_page_is_the_same_each_time_and_written_whole() {
    let (keep, dir) = run();
    let out = keep.path().join("reports/x");
    let path = Report::of(&[dir.clone(), dir.clone()], None).and_then(|report| report.write(&out)).expect("a report");
    assert_eq!(path, out.join("index.html"));
    assert_eq!(fs::read_dir(&out).expect("a folder").count(), 3, "the page and two summaries; no temporary file is left");
    assert_eq!(fs::read_to_string(&path).expect("the page"), render(&[dir.clone(), dir], None).expect("a page"));
    assert!(fs::read_to_string(&path).expect("the page").contains("2 runs below each other"));
}

#[test]
fn the_sides_of_one_run_were_interleaved() {
    let (one, other) = (run(), run());
    for ((_, dir), (id, partner)) in [(&one, ("a", "b")), (&other, ("b", "a"))] {
        let path = dir.join("manifest.json");
        let mut manifest: serde_json::Value = serde_json::from_str(&fs::read_to_string(&path).expect("a manifest")).expect("JSON");
        manifest["run"] = id.into();
        manifest["ab"] = serde_json::json!({"partner": partner});
        fs::write(path, manifest.to_string()).expect("a manifest");
    }
    let page = render(&[one.1.clone(), other.1], None).expect("a page");
    assert!(page.contains("Their launches were made pair by pair") && !page.contains("not interleaved"));
    assert!(render(&[one.1.clone(), one.1], None).expect("a page").contains("not interleaved with each other"));
}

#[test]
fn a_soak_is_a_table_of_its_own() {
    let (_temporary, dir) = run();
    assert!(!page_of(&dir).contains("Thermal soak: what the soak says"));
    edit(&dir, "cells.csv", |at, mut fields| {
        if fields[at("status")] == "ok" && fields[at("backend")] == "genie" {
            fields[at("soak_ended")] = "early: <b>hot</b>".to_owned();
            fields[at("soak_s")] = "1800".to_owned();
            fields[at("sustained_ratio")] = "0.731".to_owned();
        }
        vec![fields]
    });
    let page = page_of(&dir);
    let table = part(&page, "Thermal soak: what the soak says", "</table>");
    for words in ["sustained ratio", "0.731", "early: &lt;b&gt;hot", "<td>1800"] {
        assert!(table.contains(words), "no {words} in {table}");
    }
    assert!(!table.contains("rise in 60 s,") && !table.contains("mnn"), "{table}");
}

#[test]
fn peaks_of_memory_that_are_not_the_same_sum_are_told_apart() {
    let (_temporary, dir) = run();
    let words = "Peak memory is not the same sum in all rows";
    let with = |other: &str| {
        edit(&dir, "cells.csv", |at, mut fields| {
            fields[at("peak_mem_method")] = if fields[at("backend")] == "genie" { other.to_owned() } else { "anon+shmem".to_owned() };
            vec![fields]
        });
        page_of(&dir)
    };
    assert!(!with("anon+shmem").contains(words));
    let page = with("dmabuf+<b>anon");
    let told = part(&page, words, ".");
    assert!(told.contains("anon+shmem (ort-qnn); dmabuf+&lt;b&gt;anon (genie)"), "{told}");
}

#[test]
fn a_rate_far_under_its_roof_is_marked_with_the_causes() {
    let (_keep, dir) = run();
    assert!(!page_of(&dir).contains("of the roof"), "no roof in the tables, none on the page");
    edit(&dir, "cells.csv", |at, mut fields| {
        if fields[at("cell")].starts_with("genie.tiny.w8a16.p96") {
            fields[at("roof_share")] = "0.124".into();
            fields[at("roof_note")] = "warning: under 15 % of the roof; <b>throttling</b>".into();
        }
        vec![fields]
    });
    let page = page_of(&dir);
    assert_eq!(page.matches("12 % of the roof").count(), 1);
    assert!(page.contains("decode rate, derived: warning: under 15 % of the roof; &lt;b&gt;throttling"));
}
