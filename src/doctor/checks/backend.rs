//! A backend on a device: its runtime, the libraries for the device's Hexagon version, and that they are of one QNN version.

use std::collections::BTreeMap;

use bench_backend_api::{Availability, DeviceFacts, tool::has_hexagon};

use crate::doctor::{Check, Said, build::Build, read::Library};

/// What is known of a backend on a device.
#[derive(Debug, Clone)]
pub struct Engine {
    /// Its id.
    pub id: String,
    /// The device.
    pub device: DeviceFacts,
    /// Whether it can run there.
    pub availability: Availability,
    /// Its libraries for the device that were found.
    pub libraries: Vec<Library>,
    /// Those that were not, by file name.
    pub missing: Vec<String>,
    /// The scenario asks for a performance profile.
    pub profile: bool,
    /// How its programs and models are made, where the user has to.
    pub guide: Option<String>,
}

impl Engine {
    fn ready(&self) -> bool {
        matches!(self.availability, Availability::Ready { .. })
    }
}

/// The list.
pub static CHECKS: &[Check<Engine>] = &[
    Check { id: "runtime", why: "without it the backend's cells are skipped", of: runtime },
    Check { id: "hexagon-libraries", why: "each Hexagon version has libraries of its own", of: hexagon },
    Check { id: "one-qnn-version", why: "libraries of two QNN versions refuse each other, or crash", of: one_version },
    Check { id: "adsp-library-path", why: "the DSP looks for its half of the libraries there", of: adsp_library_path },
];

fn runtime(engine: &Engine) -> Vec<Said> {
    vec![match &engine.availability {
        Availability::Ready { version } => Said::ok(version),
        Availability::Missing { what, remedy } => {
            let guide = engine.guide.as_ref().map(|g| format!("\n{g}")).unwrap_or_default();
            Said::warning(format!("{what} is missing"), format!("{remedy}{guide}"))
        }
        Availability::Refused { reason } => Said::warning(reason, "take another device for it, or leave it out of the matrix"),
    }]
}

/// What each library is for, by the end of its name.
const PARTS: [(&str, &str); 5] = [
    ("Stub.so", "the half of the HTP's driver that runs on the CPU"),
    ("Skel.so", "the half that runs on the DSP"),
    ("System.so", "reads context binaries"),
    ("Prepare.so", "compiles model libraries and DLCs on the device; context binaries do without it"),
    ("NetRunExtensions.so", "carries the performance profile, which without it is silently none"),
];

fn hexagon(engine: &Engine) -> Vec<Said> {
    let arch = engine.device.htp_arch;
    let part = |name: &str| PARTS.iter().find(|(end, _)| name.starts_with("libQnn") && name.ends_with(end)).copied();
    let there: Vec<&str> = engine.libraries.iter().map(|l| l.name.as_str()).filter(|name| part(name).is_some()).collect();
    if there.is_empty() || !engine.device.remote {
        return Vec::new();
    }
    let (of_it, of_all): (Vec<&str>, Vec<&str>) =
        there.iter().partition(|name| ["Stub.so", "Skel.so"].iter().any(|end| name.ends_with(end)));
    let words = [(format!("for Hexagon v{arch}: "), of_it), ("for every Hexagon version: ".to_owned(), of_all)];
    let words = words.iter().filter(|(_, names)| !names.is_empty()).map(|(head, names)| head.clone() + &names.join(", "));
    let mut said = vec![Said::ok(words.collect::<Vec<_>>().join("; "))];
    // The emulator has no DSP to talk to.
    let emulated = |end: &str| !has_hexagon(&engine.device) && ["Stub.so", "Skel.so"].contains(&end);
    for name in &engine.missing {
        let Some((end, what)) = part(name).filter(|(end, _)| !emulated(end)) else { continue };
        let words = format!("{name} is missing: {what}");
        let whose = if ["Stub.so", "Skel.so"].contains(&end) {
            format!("a newer QAIRT SDK that has it for Hexagon v{arch}")
        } else {
            "a whole QAIRT SDK".to_owned()
        };
        let fix = format!("take {whose}");
        said.push(match end {
            "Prepare.so" => Said::note(words),
            "NetRunExtensions.so" if !engine.profile => Said::note(words),
            _ => Said::warning(words, fix),
        });
    }
    said
}

/// Only QNN's own libraries: Genie and ONNX Runtime have versions of their own beside it.
fn one_version(engine: &Engine) -> Vec<Said> {
    let mut by: BTreeMap<Build, Vec<&str>> = BTreeMap::new();
    let qnn: Vec<&Library> = engine.libraries.iter().filter(|l| l.name.starts_with("libQnn")).collect();
    for library in &qnn {
        if let Some(build) = library.build {
            by.entry(build).or_default().push(&library.name);
        }
    }
    let versions: Vec<String> = by.iter().map(|(build, names)| format!("{build}: {}", names.join(", "))).collect();
    match (versions.as_slice(), by.keys().next()) {
        _ if qnn.is_empty() || !engine.device.remote => Vec::new(),
        ([_], Some(build)) => vec![Said::ok(format!("QNN {build}, as the libraries' text tells"))],
        ([], _) | (_, None) => vec![Said::note("the libraries' text does not tell their version")],
        _ => vec![Said::error(format!("libraries of several versions: {}", versions.join("; ")), "take all of them from one QAIRT SDK")],
    }
}

fn adsp_library_path(engine: &Engine) -> Vec<Said> {
    let dsp = has_hexagon(&engine.device)
        && engine.device.remote
        && engine.ready()
        && engine.libraries.iter().any(|l| l.name.ends_with("Skel.so"));
    if dsp { vec![Said::ok("bench sets ADSP_LIBRARY_PATH itself: the work folder, then the vendor's")] } else { Vec::new() }
}

/// The QNN version of a backend's libraries, if their text tells one.
pub fn build_of(libraries: &[Library]) -> Option<Build> {
    libraries.iter().filter(|l| l.name.starts_with("libQnn")).find_map(|l| l.build)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        device::phone_facts,
        doctor::{Severity, examine},
    };

    fn library(name: &str, minor: u32) -> Library {
        let build = (minor > 0).then_some(Build { major: 2, minor, patch: 0 });
        Library { name: name.to_owned(), bytes: 1, build }
    }

    fn engine(libraries: Vec<Library>, missing: &[&str]) -> Engine {
        Engine {
            id: "genie".to_owned(),
            device: phone_facts(57, 75),
            availability: Availability::Ready { version: "QAIRT 2.37".to_owned() },
            libraries,
            missing: missing.iter().map(|m| (*m).to_owned()).collect(),
            profile: false,
            guide: None,
        }
    }

    fn said(engine: &Engine) -> Vec<(&'static str, Severity, String)> {
        examine(CHECKS, "genie", engine).into_iter().map(|f| (f.check, f.severity, f.what)).collect()
    }

    #[test]
    fn a_whole_set_of_one_version_is_fine() {
        let all = vec![library("libQnnHtpV75Skel.so", 37), library("libQnnHtpV75Stub.so", 37), library("libGenie.so", 0)];
        let found = said(&engine(all, &[]));
        assert!(found.iter().all(|(_, severity, _)| *severity == Severity::Ok), "{found:?}");
        assert_eq!(found.iter().map(|f| f.0).collect::<Vec<_>>(), ["runtime", "hexagon-libraries", "one-qnn-version", "adsp-library-path"]);
    }

    #[test]
    fn two_versions_are_an_error_that_names_both() {
        let found = said(&engine(vec![library("libQnnHtpV75Skel.so", 37), library("libQnnSystem.so", 28)], &[]));
        let words = "libraries of several versions: 2.28.0: libQnnSystem.so; 2.37.0: libQnnHtpV75Skel.so";
        assert!(found.contains(&("one-qnn-version", Severity::Error, words.to_owned())), "{found:?}");
        let found = said(&engine(vec![library("libQnnSystem.so", 0)], &[]));
        assert!(found.iter().any(|f| f.0 == "one-qnn-version" && f.1 == Severity::Note), "{found:?}");
    }

    #[test]
    fn the_missing_half_is_a_warning_and_extensions_count_when_a_profile_is_asked() {
        let missing = ["libQnnHtpV75Stub.so", "libQnnHtpPrepare.so", "libQnnHtpNetRunExtensions.so", "libMNN_CL.so"];
        let mut engine = engine(vec![library("libQnnSystem.so", 37)], &missing);
        let of = |engine: &Engine| {
            let list = said(engine)
                .into_iter()
                .filter(|f| f.0 == "hexagon-libraries")
                .inspect(|f| assert!(!f.2.contains("for Hexagon v75: libQnnS"), "{f:?}"));
            list.map(|f| f.1).collect::<Vec<_>>()
        };
        assert_eq!(of(&engine), [Severity::Ok, Severity::Warning, Severity::Note, Severity::Note]);
        engine.profile = true;
        assert_eq!(of(&engine), [Severity::Ok, Severity::Warning, Severity::Note, Severity::Warning]);
    }

    #[test]
    fn what_is_missing_comes_with_the_way_to_it() {
        let mut engine = engine(Vec::new(), &[]);
        engine.availability = Availability::Missing { what: "llm_bench".to_owned(), remedy: "build it".to_owned() };
        engine.guide = Some("cmake ..".to_owned());
        let found = examine(CHECKS, "mnn", &engine);
        assert_eq!((found.len(), found[0].what.as_str(), found[0].fix.as_deref()), (1, "llm_bench is missing", Some("build it\ncmake ..")));
    }
}
