//! Tokenizers of the kinds that real models have, written out here: byte-level BPE without BOS (Qwen, GPT-2), byte-fallback BPE with BOS
//! (Llama 2), unigram (Gemma, T5), and one in which every character is two tokens.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;

const WORDS: [&str; 14] = ["the", "of", "and", "to", "in", "a", "river", "bridge", "farmer", "teacher", "old", "small", "garden", "under"];

fn added(tokens: &[(&str, u32)]) -> Value {
    let one = |(content, id): &(&str, u32)| json!({"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true});
    tokens.iter().map(one).collect()
}

/// Letters first, then every beginning of the words with what they are joined from.
fn bpe(space: &str, first: &[&str]) -> (Value, Value) {
    let mut pieces: Vec<String> = first.iter().map(|s| (*s).to_owned()).collect();
    pieces.extend((33_u8..127).map(|c| char::from(c).to_string()));
    pieces.push(space.to_owned());
    let mut merges = Vec::new();
    for word in WORDS {
        let mut left = space.to_owned();
        for letter in word.chars().map(|c| c.to_string()) {
            let joined = format!("{left}{letter}");
            if !pieces.contains(&joined) {
                merges.push(json!([left, letter]));
                pieces.push(joined.clone());
            }
            left = joined;
        }
    }
    let vocab: serde_json::Map<String, Value> = pieces.into_iter().zip(0..).map(|(piece, id): (String, u32)| (piece, json!(id))).collect();
    (vocab.into(), merges.into())
}

fn byte_level() -> Value {
    let (vocab, merges) = bpe("\u{120}", &["<|endoftext|>"]);
    let level = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true});
    json!({"version": "1.0", "truncation": {"direction": "Right", "max_length": 20, "strategy": "LongestFirst", "stride": 0},
        "padding": {"strategy": {"Fixed": 512}, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 0, "pad_type_id": 0, "pad_token": "<|endoftext|>"},
        "added_tokens": added(&[("<|endoftext|>", 0)]), "normalizer": null, "pre_tokenizer": level, "post_processor": level, "decoder": level,
        "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null, "end_of_word_suffix": null,
            "fuse_unk": false, "byte_fallback": false, "ignore_merges": false, "vocab": vocab, "merges": merges}})
}

fn llama() -> Value {
    let (vocab, merges) = bpe("\u{2581}", &["<unk>", "<s>", "</s>"]);
    json!({"version": "1.0", "truncation": null, "padding": null, "added_tokens": added(&[("<unk>", 0), ("<s>", 1), ("</s>", 2)]),
        "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u{2581}"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "\u{2581}"}]},
        "pre_tokenizer": null,
        "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}},
        "decoder": null,
        "model": {"type": "BPE", "dropout": null, "unk_token": "<unk>", "continuing_subword_prefix": null, "end_of_word_suffix": null,
            "fuse_unk": true, "byte_fallback": true, "ignore_merges": false, "vocab": vocab, "merges": merges}})
}

fn unigram() -> Value {
    let mut vocab = vec![json!(["<unk>", 0.0]), json!(["\u{2581}", -4.0])];
    vocab.extend((33_u8..127).map(|c| json!([char::from(c).to_string(), -6.0])));
    vocab.extend(WORDS.iter().map(|w| json!([format!("\u{2581}{w}"), -5.0])));
    let meta = json!({"type": "Metaspace", "replacement": "\u{2581}", "prepend_scheme": "always", "split": true});
    json!({"version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null, "pre_tokenizer": meta,
        "post_processor": null, "decoder": meta, "model": {"type": "Unigram", "unk_id": 0, "vocab": vocab, "byte_fallback": false}})
}

/// Every character is followed by one more: no odd length can be met.
fn doubled() -> Value {
    let characters: Vec<char> = " .,".chars().chain('a'..='z').chain('A'..='Z').collect();
    let double = |c: &char| json!({"type": "Replace", "pattern": {"String": c.to_string()}, "content": format!("{c}!")});
    let vocab: serde_json::Map<String, Value> =
        characters.iter().chain(&['!']).zip(0..).map(|(c, id)| (c.to_string(), json!(id))).collect();
    json!({"version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
        "normalizer": {"type": "Sequence", "normalizers": characters.iter().map(double).collect::<Vec<_>>()},
        "pre_tokenizer": null, "post_processor": null, "decoder": null,
        "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null, "end_of_word_suffix": null,
            "fuse_unk": false, "byte_fallback": false, "ignore_merges": false, "vocab": vocab, "merges": []}})
}

/// The tokenizer of a file, and the library's own opinion of a text.
fn open(document: &Value, bos: Option<u32>) -> (Exact, impl Fn(&str) -> Vec<u32>) {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("tokenizer.json");
    fs::write(&path, document.to_string()).expect("written");
    let mut plain = document.clone();
    plain["truncation"] = Value::Null;
    plain["padding"] = Value::Null;
    let tokenizer: Tokenizer = plain.to_string().parse().expect("a tokenizer");
    let encode = move |text: &str| tokenizer.encode(text, true).expect("encoded").get_ids().to_vec();
    (Exact::open(&path, bos, None).expect("a tokenizer"), encode)
}

#[test]
fn every_length_is_met_by_the_kinds_of_tokenizer_that_models_have() {
    // (tokenizer, the model's BOS, what is before the text, whether the tokenizer puts it there)
    let kinds = [
        ("byte-level", byte_level(), None, vec![], false),
        ("byte-level, a runtime that adds BOS", byte_level(), Some(0), vec![0], false),
        ("llama", llama(), Some(1), vec![1], true),
        ("llama without a word about BOS", llama(), None, vec![1], true),
        ("unigram", unigram(), None, vec![], false),
    ];
    for (name, document, bos, before, by_tokenizer) in kinds {
        let (exact, encode) = open(&document, bos);
        for tokens in (1..=40).chain([64, 127, 128, 300]).skip(before.len()) {
            let prompts = exact.prompts(1, tokens, 3).unwrap_or_else(|e| panic!("{name}: {e}"));
            for prompt in &prompts {
                assert_eq!(prompt.ids.len(), tokens as usize, "{name}: {prompt:?}");
                let mut again = encode(&prompt.text);
                if !by_tokenizer {
                    again = [before.clone(), again].concat();
                }
                assert_eq!(again, prompt.ids, "{name}: {}", prompt.text);
                assert_eq!(prompt.ids.iter().filter(|id| before.contains(id)).count(), before.len(), "{name}: one BOS");
                assert!(prompt.text.is_ascii() && !prompt.text.contains("  "), "{name}: {}", prompt.text);
            }
            let beginnings: BTreeSet<&[u32]> = prompts.iter().map(|p| &p.ids[..p.ids.len().min(8)]).collect();
            assert_eq!(beginnings.len(), 3, "{name}: {tokens} tokens: queries of a launch differ from the start");
        }
    }
}

#[test]
fn prompts_belong_to_their_seed() {
    let (exact, _) = open(&llama(), Some(1));
    let texts = |seed| exact.prompts(seed, 32, 2).expect("prompts").into_iter().map(|p| p.text).collect::<Vec<_>>();
    assert_eq!(texts(1), texts(1));
    assert_ne!(texts(1), texts(2));
}

#[test]
fn what_cannot_be_met_is_said_with_what_can() {
    let (exact, _) = open(&doubled(), None);
    assert_eq!(exact.prompts(1, 32, 2).expect("even").len(), 2);
    let odd = exact.prompts(1, 31, 2).expect_err("odd").to_string();
    assert!(odd.starts_with("no prompt of exactly 31 tokens can be made with "), "{odd}");
    assert!(odd.ends_with(": 24, 26, 28, 30, 32, 34, 36, 38 can be met"), "{odd}");
    // BOS alone is the shortest, and there is one such prompt only.
    let (exact, _) = open(&llama(), Some(1));
    assert_eq!(exact.prompts(1, 1, 1).expect("BOS"), [Prompt { ids: vec![1], text: String::new() }]);
    let alike = exact.prompts(1, 1, 3).expect_err("alike").to_string();
    assert!(
        alike.starts_with("only 1 different prompts of 1 tokens can be made with ") && alike.ends_with("ask for longer ones"),
        "{alike}"
    );
    let none = exact.prompts(1, 0, 1).expect_err("none").to_string();
    assert!(none.ends_with(": the shortest has 1"), "{none}");
}

#[test]
fn the_tokenizer_of_another_model_is_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("tokenizer.json");
    fs::write(&path, llama().to_string()).expect("written");
    let error = Exact::open(&path, Some(1), Some(50)).expect("opened").prompts(1, 32, 1).expect_err("too small");
    assert!(matches!(error, ExactError::OtherModel { id: 50.., vocab: 50, .. }), "{error}");
}

#[test]
fn files_that_are_no_tokenizer_are_errors() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("tokenizer.json");
    let whole = llama().to_string();
    let length = whole.chars().count();
    let ends = [0, 1, 2, 10, length / 3, length / 2, length - 1];
    let mut bad: Vec<String> = ends.iter().map(|end| whole.chars().take(*end).collect()).collect();
    bad.extend(
        [
            "null",
            "[]",
            "{}",
            "\u{0}",
            "{\"model\": {}}",
            "{\"version\": \"1.0\", \"model\": {\"type\": \"BPE\", \"vocab\": {}, \"merges\": [[\"a\", \"b\"]]}}",
        ]
        .map(str::to_owned),
    );
    for text in bad {
        fs::write(&path, &text).expect("written");
        let error = Exact::open(&path, None, None).err().unwrap_or_else(|| panic!("{text} is a tokenizer"));
        assert!(error.to_string().contains("not a tokenizer.json that can be used"), "{error}");
    }
    assert!(Exact::open(&dir.path().join("none.json"), None, None).is_err());
}

/// The shape of Llama 2's: BOS is the template's.
const INST: &str = "{{ bos_token }}[INST] {{ messages[0].content }} [/INST]";

fn in_chat(document: &Value, template: &str, bos: Option<u32>) -> Result<Exact, ExactError> {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("tokenizer.json");
    fs::write(&path, document.to_string()).expect("written");
    fs::write(dir.path().join("tokenizer_config.json"), r#"{"bos_token": "<s>", "eos_token": "</s>"}"#).expect("written");
    fs::write(dir.path().join("chat_template.jinja"), template).expect("written");
    Exact::open(&path, bos, None)?.within(ChatTemplate::beside(&path).expect("a template"))
}

/// Rule R4: the tokens of the template count, there is one BOS whoever writes it, and the prompts of a launch differ behind the template.
#[test]
fn a_prompt_inside_a_chat_template_has_as_many_tokens_as_asked() {
    let document = llama();
    let (_, encode) = open(&document, Some(1));
    for (template, bos) in [(INST, Some(1)), (INST, None), ("[INST] {{ messages[0].content }} [/INST]", Some(1))] {
        let exact = in_chat(&llama(), template, bos).expect("a template");
        for tokens in [24, 40, 64, 129] {
            let prompts = exact.prompts(1, tokens, 3).unwrap_or_else(|e| panic!("{template}: {e}"));
            for prompt in &prompts {
                assert_eq!((prompt.ids.len(), prompt.ids[0]), (tokens as usize, 1), "{prompt:?}");
                assert_eq!(prompt.ids.iter().filter(|id| **id == 1).count(), 1, "one BOS: {prompt:?}");
                // What a runtime makes of the text with its own tokenizer, which puts BOS before it.
                assert!(prompt.text.starts_with("[INST] ") && prompt.text.ends_with(" [/INST]"), "{}", prompt.text);
                assert_eq!(encode(&prompt.text), prompt.ids);
            }
            let own: BTreeSet<&[u32]> = prompts.iter().map(|p| exact.own(&p.ids)).collect();
            assert_eq!(own.len(), 3);
        }
        let short = exact.prompts(1, 5, 1).expect_err("shorter than the template").to_string();
        assert!(short.starts_with("no prompt of exactly 5 tokens"), "{short}");
    }
    // A tokenizer without BOS of its own: what Qwen has.
    let exact = in_chat(&byte_level(), "<u>{{ messages[0].content }}<a>", None).expect("a template");
    assert_eq!(exact.bos(), None);
    assert!(exact.prompts(1, 32, 2).expect("prompts").iter().all(|p| p.ids.len() == 32 && p.text.starts_with("<u>")));
}

#[test]
fn two_bos_are_refused() {
    let twice = in_chat(&llama(), "{{ bos_token }}{{ bos_token }}{{ messages[0].content }}", Some(1)).expect("a template");
    let error = twice.prompts(1, 32, 1).expect_err("two");
    assert!(matches!(error, ExactError::Bos { bos: 1, found: 2, .. }), "{error}");
    let late = in_chat(&llama(), "[INST] {{ bos_token }}{{ messages[0].content }}", Some(1)).expect("a template");
    assert!(matches!(late.prompts(1, 32, 1), Err(ExactError::Bos { bos: 1, found: 2, .. })), "one before it, and its own");
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("tokenizer.json");
    fs::write(&path, llama().to_string()).expect("written");
    let other = Exact::open(&path, Some(2), None).err().expect("another BOS").to_string();
    assert!(
        other.ends_with("begins every text with token 1, and the geometry says `bos = 2`: the prompts would begin with both"),
        "{other}"
    );
}
