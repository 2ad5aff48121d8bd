//! What a program needs on a device that is another machine, and how it is called there: data beside the adapter
//! (`backends/<id>/device/<tool>.toml`).
//!
//! Everything is staged into the work folder under its own name, and found there: no path of this machine reaches the device.
//! Templates know the words `{work}` (the work folder), `{target}` (the QAIRT SDK's name of the platform), `{arch}` (Hexagon version), `{soc_model}`, and
//! those that the adapter gives.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    backend::{Availability, DeviceFacts, Installed, Invocation, Need, Paths, Program, Source, StagedFile, Step},
    captured::Captured,
    cell::{Axis, Cell, DeviceClass},
    measurement::{Failure, FailureKind, ParseError, Parsed},
    reader::{Reader, Reading, SourceFile},
};

/// Values of a template's words.
pub type Words = BTreeMap<&'static str, String>;

/// One program on a device.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Tool {
    /// Versions that the rest of the file was tried with. `stand-in only` when nothing real was at hand.
    pub checked_with: Vec<String>,
    /// Where the program comes from.
    pub program: From,
    /// The set that the libraries belong to ([`Need::DeviceLibrary`]).
    pub set: String,
    /// Libraries that it can't do without.
    #[serde(default)]
    pub libraries: Vec<String>,
    /// Those that only a real Hexagon has: the libraries that talk to it and run on it.
    #[serde(default)]
    pub hexagon: Vec<String>,
    /// Those that only some builds have, staged where they are found.
    #[serde(default)]
    pub optional: Vec<String>,
    /// The same for the x86_64 libraries, which emulate a Hexagon and bring a C++ library of their own.
    #[serde(default)]
    pub emulator: Vec<String>,
    /// Those that only some launches need, by what for.
    #[serde(default)]
    pub extra: BTreeMap<String, Vec<String>>,
    /// Environment.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// The command line in groups. A group of which a word has no value is left out.
    #[serde(default)]
    pub args: Vec<Vec<String>>,
    /// How to get what is missing; it may hold words of the device.
    pub remedy: String,
}

/// Where a program comes from.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum From {
    /// Our own, built for the device.
    Runner(String),
    /// A file of the QAIRT SDK, for instance `bin/{target}/qnn-net-run`.
    Sdk(String),
    /// It stands among the libraries of the set.
    Set(String),
}

impl Tool {
    /// Reads a description. The files are part of the program, so that an error is one of ours.
    ///
    /// # Errors
    /// The place and what is wrong there.
    pub fn parse(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|e: toml::de::Error| e.to_string())
    }

    /// The program.
    pub fn program(&self, device: &DeviceFacts) -> Need {
        let words = words(device);
        match &self.program {
            From::Runner(name) => Need::Runner { name: name.clone() },
            From::Sdk(path) => Need::QairtFile { path: fill(path, &words).unwrap_or_default() },
            From::Set(name) => Need::DeviceLibrary { set: self.set.clone(), name: name.clone() },
        }
    }

    /// A library of the set, or of another one that is named before a colon. The name may hold words.
    pub fn library(&self, name: &str, device: &DeviceFacts) -> Need {
        let (set, name) = name.split_once(':').unwrap_or((&self.set, name));
        Need::DeviceLibrary { set: set.to_owned(), name: fill(name, &words(device)).unwrap_or_default() }
    }

    /// What has to be there: the program, then its libraries.
    pub fn needs(&self, device: &DeviceFacts) -> Vec<Need> {
        let special = if has_hexagon(device) { self.hexagon.as_slice() } else { &[] };
        let libraries = self.libraries.iter().chain(special).map(|name| self.library(name, device));
        [self.program(device)].into_iter().chain(libraries).collect()
    }

    /// Everything that may be used, for [`crate::Backend::needs`].
    pub fn all_needs(&self, device: &DeviceFacts) -> Vec<Need> {
        let extra = self.extra.values().flatten().map(|name| self.library(name, device));
        self.needs(device).into_iter().chain(self.optional(device)).chain(extra).collect()
    }

    fn optional(&self, device: &DeviceFacts) -> Vec<Need> {
        let emulator = if has_hexagon(device) { &[] } else { self.emulator.as_slice() };
        self.optional.iter().chain(emulator).map(|name| self.library(name, device)).collect()
    }

    /// The libraries of a group of `extra`.
    pub fn extra(&self, group: &str, device: &DeviceFacts) -> Vec<Need> {
        self.extra.get(group).into_iter().flatten().map(|name| self.library(name, device)).collect()
    }

    /// Those libraries as files to stage.
    ///
    /// # Errors
    /// One of them is not there; `why` begins the message.
    pub fn stage_extra(&self, group: &str, why: &str, device: &DeviceFacts, installed: &Installed) -> Result<Vec<StagedFile>, Failure> {
        let needs = self.extra(group, device);
        if let Some(missing) = installed.missing(&needs) {
            let message = format!("{why}: {} is missing", file_of(missing));
            return Err(Failure { kind: FailureKind::Usage, message, hint: Some(self.remedy(device)) });
        }
        Ok(needs.into_iter().map(|need| StagedFile { name: file_of(&need), source: Source::Need(need) }).collect())
    }

    /// Whether everything that has to be there is.
    pub fn probe(&self, device: &DeviceFacts, installed: &Installed) -> Result<(), Availability> {
        match installed.missing(&self.needs(device)) {
            None => Ok(()),
            Some(need) => Err(Availability::Missing { what: file_of(need), remedy: self.remedy(device) }),
        }
    }

    /// How to get what is missing.
    pub fn remedy(&self, device: &DeviceFacts) -> String {
        fill(&self.remedy, &words(device)).unwrap_or_else(|| self.remedy.clone())
    }

    /// The command. The adapter's words stand beside those of the device.
    pub fn step(&self, name: &str, device: &DeviceFacts, paths: &Paths, more: &Words, outputs: Vec<String>) -> Step {
        let mut words = words(device);
        words.insert("work", paths.work.clone());
        let env = self.env.iter().filter_map(|(k, v)| Some((k.clone(), fill(v, &words)?))).collect();
        let program = Program::Staged(file_of(&self.program(device)));
        Step { name: name.to_owned(), invocation: Invocation { program, args: self.args(device, more), env, outputs } }
    }

    /// The arguments, which hold no path but those that the adapter's words give.
    pub fn args(&self, device: &DeviceFacts, more: &Words) -> Vec<String> {
        let mut words = words(device);
        words.extend(more.iter().map(|(k, v)| (*k, v.clone())));
        let group = |group: &Vec<String>| group.iter().map(|word| fill(word, &words)).collect::<Option<Vec<String>>>();
        self.args.iter().filter_map(group).flatten().collect()
    }
}

/// How a launch was made: staged beside its inputs and kept with its output, so that what is read comes with what was asked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// The program.
    pub tool: String,
    /// Facts about the launch that its output does not tell: votes, lengths, methods. They become notes.
    pub notes: BTreeMap<String, String>,
}

impl Told {
    /// Its name in the work folder; an output of every step.
    pub const FILE: &str = "told.json";

    /// As a file to stage.
    pub fn staged(&self) -> StagedFile {
        let bytes = serde_json::to_vec_pretty(self).unwrap_or_default();
        StagedFile { name: Self::FILE.to_owned(), source: Source::Bytes(bytes) }
    }

    /// That of a captured launch; `None` for one that was made on this machine.
    pub fn of(captured: &Captured) -> Option<Self> {
        serde_json::from_slice(captured.files.get(Self::FILE)?).ok()
    }

    /// Adds its notes, behind those of the runtime itself.
    pub fn note(&self, parsed: &mut Parsed) {
        for (key, value) in [("tool".to_owned(), &self.tool)].into_iter().chain(self.notes.iter().map(|(k, v)| (k.clone(), v))) {
            parsed.notes.entry(key).or_insert_with(|| value.clone());
        }
    }
}

/// What these tools are staged with, each file once.
///
/// # Errors
/// Something that has to be there is not: a scenario can ask for another program than the one that was probed.
pub fn staged(tools: &[&Tool], device: &DeviceFacts, installed: &Installed) -> Result<Vec<StagedFile>, Failure> {
    let mut files: Vec<StagedFile> = Vec::new();
    for tool in tools {
        if let Some(missing) = installed.missing(&tool.needs(device)) {
            let message = format!("{} is missing", file_of(missing));
            return Err(Failure { kind: FailureKind::Usage, message, hint: Some(tool.remedy(device)) });
        }
        let optional = tool.optional(device).into_iter().filter(|need| installed.get(need).is_some());
        for need in tool.needs(device).into_iter().chain(optional) {
            let name = file_of(&need);
            if !files.iter().any(|f| f.name == name) {
                files.push(StagedFile { name, source: Source::Need(need) });
            }
        }
    }
    Ok(files)
}

/// The first of several programs that is there with all that it needs.
///
/// # Errors
/// What is missing: of the first program that is there itself, or else of the first.
pub fn best<T: Copy>(tools: &[(T, &Tool)], device: &DeviceFacts, installed: &Installed) -> Result<T, Availability> {
    let lacking = |tool: &Tool| tool.probe(device, installed).err();
    if let Some((which, _)) = tools.iter().find(|(_, tool)| lacking(tool).is_none()) {
        return Ok(*which);
    }
    let begun = tools.iter().find(|(_, tool)| installed.get(&tool.program(device)).is_some());
    let nearest = begun.or(tools.first()).and_then(|(_, tool)| lacking(tool));
    Err(nearest.unwrap_or(Availability::Refused { reason: "there is no program for it".to_owned() }))
}

/// Refuses a cell that asks by its `variant` for one of the programs of a phone or board, on this computer.
///
/// # Errors
/// It does.
pub fn runs_here(cell: &Cell, programs: &[&str]) -> Result<(), Failure> {
    match cell.asked(Axis::Variant).filter(|variant| programs.contains(variant)) {
        Some(program) => {
            Err(Failure::new(FailureKind::Usage, format!("variant = {program}: it is run on a phone or board, not on this computer")))
        }
        None => Ok(()),
    }
}

/// Reads what a tool left, whatever else it is: `None` when it left nothing but space. On standard error anything may stand (the loader's warnings
/// about a library, for instance): where it is none of the reader's, it becomes a warning.
///
/// # Errors
/// The reader can't read a file, and it is not that one beside others.
pub fn read(reader: &dyn Reader, captured: &Captured, names: &[&str]) -> Result<Option<Reading>, ParseError> {
    let file = |name: &&str| {
        let bytes = captured.files.get(*name).filter(|bytes| !bytes.iter().all(u8::is_ascii_whitespace))?;
        Some(SourceFile { name: (*name).to_owned(), bytes: bytes.clone() })
    };
    let (aside, rest): (Vec<_>, Vec<_>) = names.iter().filter_map(file).partition(|file| file.name.ends_with("stderr.txt"));
    if aside.is_empty() && rest.is_empty() {
        return Ok(None);
    }
    let all: Vec<SourceFile> = rest.iter().chain(&aside).cloned().collect();
    let read = match reader.read(&all) {
        Err(e) if !rest.is_empty() && aside.iter().any(|file| file.name == e.file) => reader.read(&rest).map(|mut reading| {
            reading.warnings.push(e.to_string());
            reading
        }),
        read => read,
    };
    read.map(Some).map_err(|e| ParseError { file: e.file, message: e.message })
}

/// Name and version of a runtime. What comes out of a package says itself which one.
pub fn version_of(name: &str, installed: &Installed, need: &Need) -> String {
    match installed.get(need).and_then(|found| found.version.as_deref()) {
        Some(version) if version.starts_with(|c: char| c.is_ascii_digit()) => format!("{name} {version}"),
        Some(version) => version.to_owned(),
        None => format!("{name} unknown"),
    }
}

/// File name of a need.
pub fn file_of(need: &Need) -> String {
    let path = match need {
        Need::QairtFile { path } => path,
        Need::DeviceLibrary { name, .. } | Need::Runner { name } | Need::Program { name } => name,
        Need::PythonPackage { distribution, .. } => distribution,
        Need::Python => "python3",
    };
    path.rsplit('/').next().unwrap_or(path).to_owned()
}

/// Gives the paths of a user's configuration their place in the work folder: a text whose last part is the name of one of the artifact's files
/// becomes that file.
///
/// # Errors
/// A path of this machine that is none of the artifact's files.
pub fn localise(config: &mut Value, files: &[String]) -> Result<(), Failure> {
    let base = |path: &str| path.rsplit(['/', '\\']).next().unwrap_or(path).to_owned();
    match config {
        Value::String(text) if text.contains(['/', '\\']) => {
            if let Some(file) = files.iter().find(|f| base(f) == base(text)) {
                text.clone_from(file);
            } else if text.starts_with(['/', '~']) || text.get(1..3) == Some(":\\") {
                let message = format!("the configuration names {text}, which is not among the artifact's files");
                return Err(Failure::new(FailureKind::Usage, message));
            }
            Ok(())
        }
        Value::Array(list) => list.iter_mut().try_for_each(|value| localise(value, files)),
        Value::Object(map) => map.values_mut().try_for_each(|value| localise(value, files)),
        _ => Ok(()),
    }
}

/// Whether a Hexagon is behind the libraries: those for x86_64 emulate it (a test phone, a PC).
pub fn has_hexagon(device: &DeviceFacts) -> bool {
    device.arch == "aarch64"
}

/// Class of what ran over libQnnHtp: an emulated NPU is never a phone (design 2b.6).
pub fn npu_class(device: &DeviceFacts) -> DeviceClass {
    if has_hexagon(device) { device.class } else { DeviceClass::Emulator }
}

fn words(device: &DeviceFacts) -> Words {
    Words::from([
        ("target", device.qairt_target().to_owned()),
        ("arch", device.htp_arch.to_string()),
        ("soc_model", device.soc_model.to_string()),
    ])
}

/// A template with its words replaced; `None` when one of them has no value.
fn fill(template: &str, words: &Words) -> Option<String> {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let (word, behind) = after.split_once('}')?;
        text.push_str(before);
        text.push_str(words.get(word)?);
        rest = behind;
    }
    text.push_str(rest);
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Found;

    const TEXT: &str = r#"
        checked-with = ["stand-in only"]
        program.sdk = "bin/{target}/qnn-net-run"
        set = "qairt"
        libraries = ["libQnnHtp.so"]
        hexagon = ["libQnnHtpV{arch}Skel.so"]
        emulator = ["other:libcxx.so"]
        extra.perf-profile = ["libQnnHtpNetRunExtensions.so"]
        args = [["--backend", "libQnnHtp.so"], ["--config_file", "{config}"], ["--soc", "{soc_model}"]]
        remedy = "install it"
        [env]
        ADSP_LIBRARY_PATH = "{work};/dsp"
    "#;

    fn device(arch: &str) -> DeviceFacts {
        let facts = r#"{"name":"d","class":"phone","os":"android","arch":"ARCH","cpu":null,"cores":8,"memory_mb":null,"kernel":null,
            "soc_model":57,"htp_arch":75,"remote":true}"#;
        serde_json::from_str(&facts.replace("ARCH", arch)).expect("facts")
    }

    #[test]
    fn names_and_words_are_those_of_the_device() {
        let tool = Tool::parse(TEXT).expect("a tool");
        let names = |arch: &str| tool.needs(&device(arch)).iter().map(file_of).collect::<Vec<_>>();
        assert_eq!(names("aarch64"), ["qnn-net-run", "libQnnHtp.so", "libQnnHtpV75Skel.so"]);
        assert_eq!(names("x86_64"), ["qnn-net-run", "libQnnHtp.so"]);
        assert_eq!(tool.library("a:b.so", &device("aarch64")), Need::DeviceLibrary { set: "a".into(), name: "b.so".into() });
        assert_eq!(tool.program(&device("aarch64")), Need::QairtFile { path: "bin/aarch64-android/qnn-net-run".into() });
        let paths = Paths { work: "/data/w".into(), events: "e".into() };
        let step = |words: &Words| tool.step("run", &device("aarch64"), &paths, words, Vec::new()).invocation;
        let plain = step(&Words::new());
        assert_eq!(plain.args, ["--backend", "libQnnHtp.so", "--soc", "57"]);
        assert_eq!((plain.program, plain.env["ADSP_LIBRARY_PATH"].as_str()), (Program::Staged("qnn-net-run".into()), "/data/w;/dsp"));
        let more = step(&Words::from([("config", "c.json".to_owned())]));
        assert_eq!(more.args, ["--backend", "libQnnHtp.so", "--config_file", "c.json", "--soc", "57"]);
    }

    /// Reads files that begin with `ok`.
    struct Picky;
    impl Reader for Picky {
        fn id(&self) -> &'static str {
            "picky"
        }
        fn read(&self, files: &[SourceFile]) -> Result<Reading, crate::Unreadable> {
            match files.iter().find(|f| !f.bytes.starts_with(b"ok")) {
                Some(f) => Err(crate::Unreadable { file: f.name.clone(), message: "not ok".into() }),
                None => Ok(Reading { warnings: vec![format!("{} files", files.len())], ..Reading::default() }),
            }
        }
    }

    #[test]
    fn what_the_loader_says_beside_the_output_is_a_warning() {
        let read = |stdout: &str, stderr: &str| {
            let files = [("q/stdout.txt", stdout), ("q/stderr.txt", stderr)].map(|(n, t)| (n.to_owned(), t.as_bytes().to_vec()));
            let captured = Captured { files: files.into(), ..Captured::default() };
            super::read(&Picky, &captured, &["q/stdout.txt", "q/stderr.txt"]).map(|reading| reading.map(|r| r.warnings))
        };
        assert_eq!(read(" \n", ""), Ok(None));
        assert_eq!(read("ok", "ok too"), Ok(Some(vec!["2 files".to_owned()])));
        let linker = "WARNING: linker: /data/local/tmp/libX.so: unused DT entry";
        assert_eq!(read("ok", linker), Ok(Some(vec!["1 files".to_owned(), "q/stderr.txt: not ok".to_owned()])));
        // Alone it is all there is, and standard output has to be the tool's own.
        assert_eq!(read("", linker).unwrap_err().file, "q/stderr.txt");
        assert_eq!(read("nonsense", "ok").unwrap_err().file, "q/stdout.txt");
    }

    #[test]
    fn what_is_missing_is_told_of_the_program_that_is_there() {
        let device = device("aarch64");
        let sdk = Tool::parse(TEXT).expect("a tool");
        let own = Tool { program: From::Runner("bench-runner".into()), ..sdk.clone() };
        let tools = [("own", &own), ("sdk", &sdk)];
        let with = |needs: Vec<Need>| {
            let found = needs.into_iter().map(|need| (need, Found { path: "/x".into(), version: None }));
            best(&tools, &device, &Installed(found.collect()))
        };
        let missing = |result: Result<&str, Availability>| match result {
            Err(Availability::Missing { what, .. }) => what,
            other => panic!("{other:?}"),
        };
        assert_eq!(missing(with(Vec::new())), "bench-runner");
        assert_eq!(missing(with(sdk.needs(&device)[..2].to_vec())), "libQnnHtpV75Skel.so");
        assert_eq!(with(sdk.needs(&device)).expect("whole"), "sdk");
        let both = own.needs(&device).into_iter().chain(sdk.needs(&device)).collect();
        assert_eq!(with(both).expect("whole"), "own");
    }

    #[test]
    fn a_program_of_a_phone_is_refused_here() {
        let cell = |variant: &str| Cell {
            backend: "b".into(),
            model: crate::Model { name: "m".into(), context: 8, chunk: Some(8), geometry: None },
            quant: crate::Quant::W4,
            workload: crate::Workload::Generate { prompt_tokens: 1, gen_tokens: 1 },
            unit: crate::Unit::Npu,
            axes: [(Axis::Variant, crate::Setting::Asked(variant.into()))].into(),
        };
        assert!(runs_here(&cell("genie-app"), &["genie-app"]).unwrap_err().message.contains("variant = genie-app"));
        assert!(runs_here(&cell("mine"), &["genie-app"]).is_ok());
    }

    #[test]
    fn paths_of_a_configuration_become_those_of_the_work_folder() {
        let files = ["qnn/llm.mnn".to_owned(), "a b.bin".to_owned()];
        let mut config =
            serde_json::json!({"m": "/home/me/llm.mnn", "l": ["C:\\x\\a b.bin", "x", 7], "mask": "0xe0", "stop": "</s>", "dir": "kv/"});
        localise(&mut config, &files).expect("known files");
        let wanted = serde_json::json!({"m": "qnn/llm.mnn", "l": ["a b.bin", "x", 7], "mask": "0xe0", "stop": "</s>", "dir": "kv/"});
        assert_eq!(config, wanted);
        for foreign in ["/home/me/other.bin", "~/x", "C:\\x\\y"] {
            let failure = localise(&mut serde_json::json!({"a": [foreign]}), &files).expect_err(foreign);
            assert!(failure.message.contains(foreign), "{failure}");
        }
    }

    #[test]
    fn what_is_staged_and_what_is_missing() {
        let tool = Tool::parse(TEXT).expect("a tool");
        let (phone, pc) = (device("aarch64"), device("x86_64"));
        let found = crate::backend::Found { path: "/host/x".into(), version: None };
        let with = |needs: Vec<Need>| Installed(needs.into_iter().map(|n| (n, found.clone())).collect());
        let names = |device: &DeviceFacts, installed: &Installed| {
            let files = staged(&[&tool, &tool], device, installed).expect("everything is there");
            files.into_iter().map(|f| f.name).collect::<Vec<_>>()
        };
        assert_eq!(names(&phone, &with(tool.needs(&phone))), ["qnn-net-run", "libQnnHtp.so", "libQnnHtpV75Skel.so"]);
        assert_eq!(names(&pc, &with(tool.needs(&pc))), ["qnn-net-run", "libQnnHtp.so"]);
        let failure = staged(&[&tool], &phone, &with(tool.needs(&phone)[..2].to_vec())).expect_err("no skel");
        assert_eq!((failure.message.as_str(), failure.hint.as_deref()), ("libQnnHtpV75Skel.so is missing", Some("install it")));
        assert_eq!(names(&pc, &with(tool.all_needs(&pc))), ["qnn-net-run", "libQnnHtp.so", "libcxx.so"]);
        let Err(Availability::Missing { what, remedy }) = tool.probe(&phone, &Installed::default()) else { panic!() };
        assert_eq!((what.as_str(), remedy.as_str()), ("qnn-net-run", "install it"));
        assert_eq!(tool.probe(&phone, &with(tool.needs(&phone))), Ok(()));
        let version = |version: Option<&str>| {
            let found = crate::backend::Found { path: "/x".into(), version: version.map(str::to_owned) };
            version_of("QAIRT", &Installed([(tool.program(&phone), found)].into()), &tool.program(&phone))
        };
        let said = [Some("2.40.0"), Some("onnxruntime-qnn 2.7.0"), None].map(version);
        assert_eq!(said, ["QAIRT 2.40.0", "onnxruntime-qnn 2.7.0", "QAIRT unknown"]);
        let extra = |installed: &Installed| tool.stage_extra("perf-profile", "burst", &phone, installed);
        assert_eq!(extra(&with(tool.needs(&phone))).unwrap_err().message, "burst: libQnnHtpNetRunExtensions.so is missing");
        assert_eq!(extra(&with(tool.all_needs(&phone))).unwrap()[0].name, "libQnnHtpNetRunExtensions.so");
        assert!(Tool::parse(&TEXT.replace("set =", "sets =")).unwrap_err().contains("sets"));
    }
}
