//! Lint of a Genie configuration (rule R38). Keys and their meaning: formats/genie.md.

use serde_json::Value;

use super::artifact::{Bundle, Cores};
use crate::doctor::{Check, Said};

/// The list.
pub static CHECKS: &[Check<Bundle>] = &[
    Check { id: "genie-config", why: "Genie reads the model's shape and files from it", of: readable },
    Check { id: "genie-keys", why: "Genie refuses a configuration without them", of: keys },
    Check { id: "genie-files", why: "Genie opens every file that the configuration names", of: files },
    Check { id: "genie-context", why: "the KV cache has the length that the graphs were made for", of: context },
    Check {
        id: "genie-spill-fill",
        why: "without a shared spill-fill buffer every context binary takes memory of its own",
        of: spill_fill,
    },
    Check { id: "genie-cpu-mask", why: "Genie's own threads run on these cores alone", of: cpu_mask },
    Check { id: "genie-sampler", why: "a sampled or shorter answer is another work on every run", of: sampler },
];

const HTP: &str = "/dialog/engine/backend/QnnHtp";

fn config(bundle: &Bundle) -> Option<&Value> {
    bundle.config.as_ref()?.as_ref().ok()
}

fn readable(bundle: &Bundle) -> Vec<Said> {
    match &bundle.config {
        Some(Err(words)) => vec![Said::error(words, "export or download the bundle again")],
        Some(Ok(config)) if !config.get("dialog").is_some_and(Value::is_object) => {
            vec![Said::error(
                "no table `dialog`: this is no Genie configuration",
                "name the bundle's genie_config.json as `config` of the [[artifact]]",
            )]
        }
        _ => Vec::new(),
    }
}

/// Mandatory in QAIRT 2.40.
const KEYS: [&str; 5] =
    ["/dialog/context/size", "/dialog/context/n-vocab", "/dialog/context/bos-token", "/dialog/context/eos-token", "/dialog/tokenizer/path"];
const HTP_KEYS: [&str; 6] = ["version", "spill-fill-bufsize", "mmap-budget", "use-mmap", "cpu-mask", "poll"];

fn keys(bundle: &Bundle) -> Vec<Said> {
    let Some(config) = config(bundle).filter(|c| c.get("dialog").is_some()) else { return Vec::new() };
    let mut missing: Vec<String> = KEYS.iter().filter(|key| config.pointer(key).is_none()).map(|key| key[1..].replace('/', ".")).collect();
    if let Some(htp) = config.pointer(HTP) {
        missing.extend(HTP_KEYS.iter().filter(|key| htp.get(key).is_none()).map(|key| format!("QnnHtp.{key}")));
    }
    if missing.is_empty() {
        return vec![Said::ok("all mandatory keys")];
    }
    vec![Said::warning(format!("no {}", missing.join(", no ")), "add what is missing (samples: the SDK's examples/Genie/configs)")]
}

fn named(config: &Value) -> Vec<&str> {
    let one = |pointer: &str| config.pointer(pointer).and_then(Value::as_str);
    let bins = config.pointer("/dialog/engine/model/binary/ctx-bins").and_then(Value::as_array);
    let bins = bins.into_iter().flatten().filter_map(Value::as_str);
    bins.chain(one("/dialog/tokenizer/path")).chain(one("/dialog/engine/backend/extensions")).collect()
}

fn binaries(config: &Value) -> usize {
    config.pointer("/dialog/engine/model/binary/ctx-bins").and_then(Value::as_array).map_or(0, Vec::len)
}

/// `bench` lays all files of an artifact side by side: folders in the configuration's paths do not count.
fn files(bundle: &Bundle) -> Vec<Said> {
    let Some(config) = config(bundle) else { return Vec::new() };
    let last = |path: &str| path.rsplit(['/', '\\']).next().unwrap_or(path).to_owned();
    let have: Vec<String> = bundle.files.iter().map(|f| last(f)).collect();
    let missing: Vec<String> = named(config).into_iter().map(last).filter(|name| !have.contains(name)).collect();
    if missing.is_empty() {
        return vec![Said::ok(format!("every file that it names is there, {} context binaries among them", binaries(config)))];
    }
    let fix = "copy them into the bundle's folder and name them in `files` of the [[artifact]]";
    vec![Said::error(format!("it names {}, which the artifact does not have", missing.join(", ")), fix)]
}

fn context(bundle: &Bundle) -> Vec<Said> {
    let size = config(bundle).and_then(|c| c.pointer("/dialog/context/size")?.as_u64());
    let lengths: std::collections::BTreeSet<u32> = bundle.binaries.iter().flat_map(|b| b.contexts.iter().copied()).collect();
    let (Some(size), Some(longest)) = (size, lengths.last()) else { return Vec::new() };
    let list = lengths.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    if lengths.iter().any(|n| u64::from(*n) == size) {
        return vec![Said::ok(format!("context.size {size}, graphs for {list}"))];
    }
    vec![Said::error(format!("context.size is {size}, the graphs were made for {list}"), format!("set context.size to {longest}"))]
}

fn spill_fill(bundle: &Bundle) -> Vec<Said> {
    let Some(config) = config(bundle) else { return Vec::new() };
    let size = config.pointer(&format!("{HTP}/spill-fill-bufsize")).and_then(Value::as_u64);
    match (size, binaries(config)) {
        (Some(0), n) if n > 1 => vec![Said::warning(
            format!("spill-fill-bufsize is 0 with {n} context binaries"),
            "set it to the largest spill-fill size that qnn-context-binary-utility prints for them",
        )],
        (Some(bytes), n) if n > 1 => vec![Said::ok(format!("{bytes} bytes for {n} context binaries"))],
        _ => Vec::new(),
    }
}

fn cpu_mask(bundle: &Bundle) -> Vec<Said> {
    let Some(text) = config(bundle).and_then(|c| c.pointer(&format!("{HTP}/cpu-mask"))?.as_str()) else { return Vec::new() };
    let Some(mask) = u64::from_str_radix(text.trim_start_matches("0x"), 16).ok().filter(|mask| *mask > 0) else {
        return vec![Said::error(format!("cpu-mask {text:?} is no mask"), "write it as 0xe0: a bit for each core, the lowest is core 0")];
    };
    let cores: Vec<u32> = (0..64).filter(|core| mask >> core & 1 == 1).collect();
    let Cores { count, online, clusters } = &bundle.cores;
    let list = |some: &[u32]| some.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    let beyond: Vec<u32> = cores.iter().copied().filter(|c| count.is_some_and(|n| *c >= n)).collect();
    if !beyond.is_empty() {
        let words = format!("cpu-mask {text} names core {}, the device has {}", list(&beyond), count.unwrap_or(0));
        return vec![Said::error(words, "take the mask of cores that it has")];
    }
    let offline: Vec<u32> = cores.iter().copied().filter(|c| !online.is_empty() && !online.contains(c)).collect();
    if !offline.is_empty() {
        return vec![Said::warning(
            format!("cpu-mask {text} names core {}, which is offline now", list(&offline)),
            "let the phone cool down, or name other cores",
        )];
    }
    let clock = |core: u32| clusters.iter().filter(|c| c.first <= core).max_by_key(|c| c.first).map(|c| c.max_khz);
    let slowest = clusters.iter().map(|c| c.max_khz).min();
    let small: Vec<u32> = cores.iter().copied().filter(|c| clusters.len() > 1 && clock(*c) == slowest).collect();
    if !small.is_empty() {
        return vec![Said::warning(format!("cpu-mask {text} names the small core {}", list(&small)), "name big cores only")];
    }
    if count.is_none() && clusters.is_empty() {
        return vec![Said::note(format!("cpu-mask {text}: cores {}; no device was asked whether it has them", list(&cores)))];
    }
    vec![Said::ok(format!("cpu-mask {text}: cores {}, big and online", list(&cores)))]
}

/// What the copy that `bench` makes changes anyway (rule R4).
fn sampler(bundle: &Bundle) -> Vec<Said> {
    let Some(config) = config(bundle) else { return Vec::new() };
    let greedy = config.pointer("/dialog/sampler/greedy").and_then(Value::as_bool) == Some(true);
    let temperature = config.pointer("/dialog/sampler/temp").and_then(Value::as_f64);
    let mut words = Vec::new();
    if !greedy {
        words.push(temperature.map_or("it does not say greedy".to_owned(), |t| format!("it samples at temperature {t}")));
    }
    if config.pointer("/dialog/context/eos-token").is_some() {
        words.push("an EOS ends answers early".to_owned());
    }
    if words.is_empty() {
        return Vec::new();
    }
    vec![Said::note(format!("{}: bench runs a copy that is greedy and does not stop, and keeps the difference", words.join(", ")))]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        device::phone_facts,
        doctor::{Severity, checks::artifact::Cluster, examine, read::Binary},
    };

    /// In the form of AI Hub's bundles.
    fn bundle(change: impl FnOnce(&mut Value)) -> Bundle {
        let mut config = json!({"dialog": {
            "context": {"size": 4096, "n-vocab": 128_256, "bos-token": 128_000, "eos-token": [128_001, 128_009]},
            "sampler": {"temp": 0.8, "top-k": 40},
            "tokenizer": {"path": "tokenizer.json"},
            "engine": {
                "backend": {"type": "QnnHtp", "extensions": "htp_backend_ext_config.json", "QnnHtp": {"version": 1, "use-mmap": true,
                    "spill-fill-bufsize": 320_000_000, "mmap-budget": 0, "poll": true, "cpu-mask": "0xe0"}},
                "model": {"binary": {"ctx-bins": ["m_part_1_of_2.bin", "/old/folder/m_part_2_of_2.bin"]}}}}});
        change(&mut config);
        let binary = |name: &str| Binary { name: name.to_owned(), contexts: vec![4096], ..Binary::default() };
        let clusters = [(0, 2_265_600), (2, 3_148_800), (5, 2_956_800), (7, 3_302_400)];
        Bundle {
            backend: "genie".to_owned(),
            device: phone_facts(57, 75),
            files: ["m_part_1_of_2.bin", "m_part_2_of_2.bin", "tokenizer.json", "htp_backend_ext_config.json", "genie_config.json"]
                .map(str::to_owned)
                .to_vec(),
            config: Some(Ok(config)),
            binaries: vec![binary("m_part_1_of_2.bin"), binary("m_part_2_of_2.bin")],
            runtime: None,
            cores: Cores {
                count: Some(8),
                online: (0..8).collect(),
                clusters: clusters.map(|(first, max_khz)| Cluster { first, max_khz }).to_vec(),
            },
        }
    }

    #[track_caller]
    fn says(bundle: &Bundle, check: &str) -> (Severity, String) {
        let found: Vec<_> = examine(CHECKS, "x", bundle).into_iter().filter(|f| f.check == check).collect();
        assert_eq!(found.len(), 1, "{check}: {found:?}");
        (found[0].severity, found[0].what.clone())
    }

    #[test]
    fn a_bundle_as_it_is_shipped_has_notes_only() {
        let found = examine(CHECKS, "x", &bundle(|_| ()));
        let worst: Vec<_> = found.iter().filter(|f| f.severity > Severity::Ok).map(|f| (f.check, f.severity)).collect();
        assert_eq!(worst, [("genie-sampler", Severity::Note)], "{found:?}");
        assert!(found.iter().any(|f| f.what.contains("temperature 0.8")));
        assert_eq!(says(&bundle(|_| ()), "genie-cpu-mask").1, "cpu-mask 0xe0: cores 5, 6, 7, big and online");
    }

    #[test]
    fn files_that_are_named_and_not_there() {
        let mut small = bundle(|_| ());
        small.files.retain(|f| f != "m_part_2_of_2.bin" && f != "tokenizer.json");
        let words = "it names m_part_2_of_2.bin, tokenizer.json, which the artifact does not have";
        assert_eq!(says(&small, "genie-files"), (Severity::Error, words.to_owned()));
    }

    #[test]
    fn lengths_that_differ() {
        let short = bundle(|c| c["dialog"]["context"]["size"] = json!(2048));
        let words = "context.size is 2048, the graphs were made for 4096";
        assert_eq!(says(&short, "genie-context"), (Severity::Error, words.to_owned()));
    }

    #[test]
    fn a_spill_fill_buffer_of_nothing() {
        let htp = |key: &'static str, value: Value| bundle(move |c| c["dialog"]["engine"]["backend"]["QnnHtp"][key] = value);
        let words = "spill-fill-bufsize is 0 with 2 context binaries";
        assert_eq!(says(&htp("spill-fill-bufsize", json!(0)), "genie-spill-fill"), (Severity::Warning, words.to_owned()));
        for (mask, severity, word) in [
            ("0x100", Severity::Error, "core 8, the device has 8"),
            ("0x3", Severity::Warning, "small core 0, 1"),
            ("zz", Severity::Error, "is no mask"),
            ("0x0", Severity::Error, "is no mask"),
            ("80", Severity::Ok, "cores 7"),
        ] {
            let (found, words) = says(&htp("cpu-mask", json!(mask)), "genie-cpu-mask");
            assert!(found == severity && words.contains(word), "{mask}: {found:?} {words}");
        }
        let mut cool = bundle(|_| ());
        cool.cores.online = vec![0, 1, 2, 3, 4, 5, 6];
        assert_eq!(says(&cool, "genie-cpu-mask"), (Severity::Warning, "cpu-mask 0xe0 names core 7, which is offline now".to_owned()));
        cool.cores = Cores::default();
        assert_eq!(says(&cool, "genie-cpu-mask").0, Severity::Note);
    }

    #[test]
    fn keys_that_are_not_there_and_files_that_are_no_configuration() {
        let poor = bundle(|c| {
            c["dialog"]["engine"]["backend"]["QnnHtp"].as_object_mut().unwrap().remove("poll");
            c["dialog"]["context"].as_object_mut().unwrap().remove("n-vocab");
        });
        assert_eq!(says(&poor, "genie-keys"), (Severity::Warning, "no dialog.context.n-vocab, no QnnHtp.poll".to_owned()));
        let mut broken = bundle(|_| ());
        broken.config = Some(Err("genie_config.json: not JSON: EOF".to_owned()));
        let found = examine(CHECKS, "x", &broken);
        assert_eq!((found.len(), found[0].severity), (1, Severity::Error));
        // Anything that is JSON is survived.
        for odd in [json!(null), json!([1]), json!({"dialog": 3}), json!({"dialog": {"engine": [{}]}})] {
            broken.config = Some(Ok(odd));
            examine(CHECKS, "x", &broken);
        }
    }
}
