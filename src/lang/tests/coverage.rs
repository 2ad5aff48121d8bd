//! Nothing that people read is without Chinese: the templates' own words, and the example's page.

use std::{collections::HashSet, fs, path::Path};

use html5gum::{DefaultEmitter, Token, Tokenizer};

use super::super::{
    Lang, Voice,
    markdown::document,
    page::page,
    table::ZH,
    text::{Speaker, has_words},
};

/// Words that stay as they are in Chinese: terms, names of engines and tools, options.
const KEPT: &str = "token tokens bench runner agent genie mnn ort qnn llama tiny dma buf context binary tok max detailed onnx onnxruntime compare run \
    local linux shell arch swappiness llm softmax silu masked gated head end kgsl manifest roofline min greedy events trace npu cpu gpu loop regression mlp rope elementwise matmul reduce conv copy reshape transpose gather down gate ttft decode prefer memory power energy executorch burst runtimes install error block symmetric per tensor channel activations zq";

/// The English words that are left in a text.
pub fn english(text: &str) -> Vec<String> {
    let quoted = |at: usize| at % 2 == 1;
    let plain: String = text.split('`').enumerate().filter(|(at, _)| !quoted(*at)).map(|(_, piece)| piece.to_owned() + " ").collect();
    plain
        .split(|c: char| c.is_whitespace() || "，。；：（）、“”".contains(c))
        // Names of columns, files and options.
        .filter(|word| !word.contains(['_', '/', '=', '-', '.', ':', '<', '+', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']))
        .flat_map(|word| word.split(|c: char| !c.is_ascii_alphabetic()))
        .filter(|word| word.len() > 2 && word.chars().all(|c| c.is_ascii_lowercase()))
        .filter(|word| !KEPT.split_whitespace().any(|kept| kept == *word))
        .map(str::to_owned)
        .collect()
}

/// The texts of a page or a template that people read.
fn texts(html: &str) -> Vec<String> {
    let (mut found, mut held) = (Vec::new(), Vec::<Vec<u8>>::new());
    let mut emitter = DefaultEmitter::default();
    emitter.naively_switch_states(true);
    let string = |bytes: &[u8]| String::from_utf8_lossy(bytes).split_whitespace().collect::<Vec<_>>().join(" ");
    for Ok(token) in Tokenizer::new_with_emitter(html, emitter) {
        match token {
            Token::StartTag(tag) => {
                let value = |name: &[u8]| tag.attributes.get(name).map(|value| string(&value.value)).unwrap_or_default();
                let names = value(b"class").split(' ').any(|class| matches!(class, "id" | "backend"));
                let no = value(b"translate") == "no" || names || matches!(tag.name.as_slice(), b"code" | b"pre" | b"style" | b"script");
                if held.is_empty() {
                    found.extend([b"title".as_slice(), b"aria-label", b"alt"].map(value).into_iter().filter(|_| !no));
                }
                if !tag.self_closing && (no || held.last() == Some(&tag.name.0)) {
                    held.push(tag.name.0);
                }
            }
            Token::EndTag(tag) => {
                held.pop_if(|last| *last == tag.name.0);
            }
            Token::String(text) if held.is_empty() => found.push(string(&text.value)),
            _ => {}
        }
    }
    found.retain(|text| has_words(text));
    found
}

/// A template with its tags taken out and something in its holes.
fn filled(template: &str, with: &str) -> String {
    let mut out = String::new();
    let mut rest = template;
    while let Some(at) = rest.find('{') {
        let (before, tag) = rest.split_at(at);
        out.push_str(before);
        let (end, filling) = match tag.get(..2) {
            Some("{{") => ("}}", with),
            // The two sides of a choice are texts of their own.
            Some("{%") if tag.trim_start_matches(['{', '%', ' ']).starts_with("el") => ("%}", "<wbr>"),
            Some("{%") => ("%}", " "),
            Some("{#") => ("#}", ""),
            _ => ("{", "{"),
        };
        out.push_str(filling);
        rest = tag.split_once(end).map_or("", |(_, rest)| rest);
    }
    out + rest
}

#[test]
fn the_templates_say_nothing_without_chinese() {
    let speaker = Speaker::new(&ZH, HashSet::new());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/report/templates");
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "html") {
            continue;
        }
        let template = fs::read_to_string(&path).unwrap();
        // A hole may be of either kind: one that is right is enough.
        let [names, numbers] = ["zq", "7"].map(|with| texts(&filled(&template, with)));
        for (name, number) in names.iter().zip(&numbers) {
            seen += 1;
            let left = |text: &String| english(&speaker.phrase(text).unwrap_or_else(|| text.clone()));
            let (of_name, of_number) = (left(name), left(number));
            if !of_name.is_empty() && !of_number.is_empty() {
                wrong.push(format!("{}: {name}: {of_name:?}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty() && seen > 120, "{seen} texts; without Chinese in src/lang/zh:\n{}", wrong.join("\n"));
}

#[test]
fn the_summary_says_nothing_without_chinese() {
    let speaker = Speaker::new(&ZH, HashSet::new());
    let template = include_str!("../../report/templates/summary.md");
    let [names, numbers] = ["Zq.", "7"].map(|with| filled(template, with).replace("<wbr>", "\n"));
    let mut wrong = Vec::new();
    for (name, number) in names.lines().zip(numbers.lines()) {
        let [of_name, of_number] = [name, number].map(|line| english(&document(&speaker, line)));
        if !of_name.is_empty() && !of_number.is_empty() {
            wrong.push(format!("{name}: {of_name:?}"));
        }
    }
    assert!(wrong.is_empty() && names.lines().count() > 40, "{}", wrong.join("\n"));
}

#[test]
fn presets_and_the_origins_of_artifacts_are_chinese() {
    let speaker = Speaker::new(&ZH, HashSet::new());
    let said = |text: &str| speaker.phrase(text).unwrap_or_else(|| text.to_owned());
    let mut wrong = Vec::new();
    for preset in crate::scenario::presets() {
        for text in [
            format!(
                "Judged for the preset “{}: {}” Limits and weights marked preset are proposals with reasons, not measurements.",
                preset.title, preset.what
            ),
            format!("2 limits and the weights are those of the preset “{}”: proposals with reasons, not measurements.", preset.title),
        ] {
            wrong.extend(Some(said(&text)).filter(|said| !english(said).is_empty() || said.contains(&preset.title)));
        }
    }
    let mut origins = 0;
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios")).unwrap() {
        let path = entry.unwrap().path();
        let text = if path.is_file() { fs::read_to_string(&path).unwrap() } else { continue };
        let table: toml::Table = toml::from_str(&text).unwrap_or_default();
        let artifacts = table.get("artifact").and_then(toml::Value::as_array).into_iter().flatten();
        for origin in artifacts.filter_map(|artifact| artifact.get("origin")?.as_str()) {
            origins += 1;
            // Commands to type are English in it, and no sentence is without Chinese.
            let told = said(origin);
            let whole = told.split_inclusive('。').all(|sentence| sentence.contains(|c: char| matches!(c, '\u{4e00}'..='\u{9fff}')));
            wrong.extend(Some(told.clone()).filter(|_| !whole || told.contains(". ")));
        }
    }
    assert!(wrong.is_empty() && origins >= 8, "{origins}: {}", wrong.join("\n"));
}

#[test]
fn a_requirement_in_a_line_is_chinese() {
    use crate::scenario::{Limit, Phase, Requirement, SUBJECTS, Statistic};
    let speaker = Speaker::new(&ZH, HashSet::new());
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for subject in SUBJECTS {
        let statistics = subject.statistics.iter().map(|word| Statistic::parse(word)).chain([None]);
        for (statistic, phase) in statistics.flat_map(|statistic| Phase::ALL.iter().map(move |phase| (statistic, *phase))) {
            let cells = [
                ("backend", "genie"),
                ("gen-tokens", "16"),
                ("model", "zq"),
                ("prompt-tokens", "128|512"),
                ("quant", "w4a16"),
                ("unit", "npu"),
            ];
            let need = Requirement {
                metric: subject.word.to_owned(),
                limit: Limit::AtMost(1.0),
                text: format!(">= 12 {}", subject.units.first().map_or("", |unit| unit.0)).trim().to_owned(),
                statistic,
                phase: Some(phase),
                minute: Some(30),
                cells: cells.into_iter().map(|(key, value)| (key.to_owned(), vec![value.to_owned()])).collect(),
            };
            // The metric's own word is one to type.
            let words = need.words().replacen(subject.word, "zq", 1);
            for text in [
                words.clone(),
                format!("Vetoed: mnn by {words}, preset, measured 520.0 ms, 36.8 % beyond the limit."),
                format!("{words}, preset, found cpu"),
                format!("not measured: {words}, preset, {words}"),
                format!("What would change it first: {words}, preset, which mnn keeps with 12.0 % of room."),
                format!("violated: {words} at mnn.tiny.w4: 412.0 [400.0, -] ms, -8.4 % room"),
            ] {
                seen += 1;
                let said = speaker.phrase(&text).unwrap_or_else(|| text.clone());
                let whole = ["预填充阶段", "解码阶段", "全过程"].iter().any(|phase| said.contains(&format!("，{phase}，第 30 分钟）")));
                if !english(&said).is_empty() || !whole {
                    wrong.push(format!("{text}: {said}"));
                }
            }
        }
    }
    wrong.truncate(20);
    assert!(wrong.is_empty() && seen > 500, "{seen}:\n{}", wrong.join("\n"));
}

#[test]
fn the_odds_are_chinese() {
    let speaker = Speaker::new(&ZH, HashSet::new());
    // As src/cli/report/site/lab.rs tells them on the site, and the gate beside its table.
    for text in [format!("By chance alone: {}.", crate::gate::nightly::expected(12)), crate::gate::nightly::expected(3)] {
        let said = speaker.phrase(&text).unwrap_or_default();
        assert!(english(&said).is_empty() && said.contains("误报"), "{text}: {said}");
    }
}

/// What the schema says of keys and values, which `bench check` gives as help.
fn descriptions(value: &serde_json::Value) -> Vec<String> {
    let own = value.get("description").and_then(serde_json::Value::as_str).map(|text| text.replace('\n', " "));
    let children: Vec<&serde_json::Value> = match value {
        serde_json::Value::Object(all) => all.values().collect(),
        serde_json::Value::Array(all) => all.iter().collect(),
        _ => Vec::new(),
    };
    own.into_iter().chain(children.into_iter().flat_map(descriptions)).collect()
}

#[test]
fn what_a_key_of_a_scenario_is_for_is_chinese() {
    let speaker = Speaker::new(&ZH, HashSet::new());
    let schema = include_str!("../../../scenarios/schema.json");
    let all = descriptions(&serde_json::from_str(schema).unwrap());
    // Words to type stand in quotes, but for parts of a device and of Linux.
    let parts = "skin battery modem pmic ddr hwmon";
    let whole = |said: &String| english(said).iter().all(|word| parts.contains(word.as_str()));
    let wrong: Vec<&String> = all.iter().filter(|text| !speaker.phrase(text).is_some_and(|said| whole(&said))).collect();
    assert!(wrong.is_empty() && all.len() > 150, "{} descriptions, without Chinese: {wrong:#?}", all.len());
}

/// The page of a run folder in Chinese; all that is not whole of it.
fn not_whole(run: &Path) -> (String, Vec<String>) {
    let plain = crate::report::render(&[run.to_owned()], None).unwrap();
    let html = page(&ZH, &plain);
    let mut said = texts(&html);
    // The summary and what stands in the pictures' own documents.
    let report = crate::report::Report::of(&[run.to_owned()], None).unwrap();
    let voice = Voice::beside(Lang::Zh, &plain);
    said.extend(voice.markdown(&report.markdown().unwrap()).lines().flat_map(|line| line.split('|')).flat_map(texts));
    said.extend(crate::report::sheets(&report, &voice).iter().flat_map(|svg| texts(svg)));
    let chinese = said.iter().filter(|text| text.contains(|c: char| matches!(c, '\u{4e00}'..='\u{9fff}'))).count();
    assert!(chinese > 500, "{chinese} texts are Chinese");
    let wrong = said
        .iter()
        .filter(|text| !text.contains("evil.example") && !english(text).is_empty())
        .map(|text| format!("{text}: {:?}", english(text)))
        .collect();
    (html, wrong)
}

#[test]
fn the_page_of_the_example_is_chinese() {
    let (html, wrong) = not_whole(&Path::new(env!("CARGO_MANIFEST_DIR")).join("results/example-pc"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(html.contains("<html lang=\"zh-CN\""));
}

#[test]
fn the_page_of_a_run_with_everything_in_it_is_chinese() {
    let folder = tempfile::tempdir().unwrap();
    crate::report::synthetic::write(folder.path());
    let (_, wrong) = not_whole(folder.path());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
