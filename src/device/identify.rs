//! Which SoC a device has: what it says, what the catalogue makes of it, and what the user states. Pure.

use serde::Serialize;

use super::{
    adb::Known,
    soc::{self, Soc},
};

/// `ro.soc.model`: a part number.
pub const PROPERTY: &str = "ro.soc.model";
/// The kernel's word: a part number or a code name.
pub const MACHINE: &str = "/sys/devices/soc0/machine";
/// `ro.board.platform`: a code name that several chips can share.
pub const PLATFORM: &str = "ro.board.platform";
/// The user's word.
pub const SCENARIO: &str = "the scenario";

/// What the user states about the chip; all absent when the device is to say it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stated {
    /// Part number.
    pub part: Option<String>,
    /// QNN `soc_model`.
    pub soc_model: Option<u32>,
    /// Hexagon architecture (75 = v75).
    pub htp_arch: Option<u32>,
    /// VTCM in MB.
    pub vtcm_mb: Option<u32>,
}

/// The chip of a device, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Identified {
    /// Part number.
    pub part: Option<String>,
    /// Marketing name, from the catalogue.
    pub name: Option<String>,
    /// QNN `soc_model`.
    pub soc_model: Option<u32>,
    /// Hexagon architecture (75 = v75).
    pub htp_arch: Option<u32>,
    /// VTCM in MB.
    pub vtcm_mb: Option<u32>,
    /// Who named the part: `ro.soc.model`, the kernel, the board platform, or [`SCENARIO`].
    pub source: Option<&'static str>,
    /// The parts that it may be, when the device's word is that of several.
    pub ambiguous: Vec<String>,
    /// Why its NPU can't hold a language model.
    pub no_llm: Option<String>,
    /// What does not fit together or is missing, each with the way out.
    pub findings: Vec<String>,
}

/// Finds the chip. `words` are the device's, best source first.
pub fn identify(words: &[Known], stated: &Stated) -> Identified {
    let mut out = Identified::default();
    let chosen = by_the_device(words, &mut out);
    let wanted = stated.part.as_deref().and_then(soc::find);
    let found = match (chosen, wanted) {
        (Some(found), Some(wanted)) if found.soc != wanted.soc => {
            let (source, part) = (out.source.unwrap_or(SCENARIO), &found.soc);
            out.findings
                .push(format!("the scenario states {}, the device is a {part} by {source}: artifacts are built for one chip", wanted.soc));
            Some(found)
        }
        (Some(found), _) => Some(found),
        (None, Some(wanted)) => {
            if !out.ambiguous.is_empty() && !out.ambiguous.iter().any(|part| wanted.has_part(part)) {
                let list = out.ambiguous.join(", ");
                out.findings.push(format!("the scenario states {}, the device's {PLATFORM} is that of {list}", wanted.soc));
            } else if let Some(part) = &out.part {
                out.findings.push(format!("the scenario states {}, the device says {part}, which the catalogue does not know", wanted.soc));
            }
            out.source = Some(SCENARIO);
            Some(wanted)
        }
        (None, None) => None,
    };
    match found {
        Some(soc) => adopt(soc, stated, &mut out),
        None => unknown(stated, &mut out),
    }
    out
}

/// What the first word that names a chip says; later words are compared with it.
fn by_the_device(words: &[Known], out: &mut Identified) -> Option<&'static Soc> {
    let mut chosen: Option<(&'static Soc, &Known)> = None;
    for word in words {
        let fits: Vec<&Soc> = soc::catalogue().iter().filter(|soc| says(soc, word)).collect();
        let outside = fits.first().filter(|_| word.source == PLATFORM).map_or(&[][..], |soc| &soc.says.platform_shared_with);
        match (chosen, fits.as_slice()) {
            (Some((soc, by)), [_, ..]) if !fits.iter().any(|fit| fit.soc == soc.soc) => {
                let list = fits.iter().map(|s| s.soc.as_str()).collect::<Vec<_>>().join(" or ");
                out.findings
                    .push(format!("{} says {}, {} says {} ({list}): the first is believed", by.source, by.value, word.source, word.value));
            }
            (None, [only]) if outside.is_empty() => {
                chosen = Some((only, word));
                out.source = Some(word.source);
            }
            (None, [_, ..]) => {
                out.ambiguous = fits.iter().map(|s| &s.soc).chain(outside).cloned().collect();
                out.findings.push(format!(
                    "{} {} may be {}: name one as `soc` in the scenario's [device]",
                    word.source,
                    word.value,
                    out.ambiguous.join(", ")
                ));
            }
            // A part number that has no file is an answer, and better than a platform's.
            (None, []) if word.source == PROPERTY => {
                out.part = Some(word.value.clone());
                out.source = Some(word.source);
                return None;
            }
            _ => {}
        }
    }
    chosen.map(|(soc, _)| soc)
}

fn says(soc: &Soc, word: &Known) -> bool {
    let is = |w: &String| w.eq_ignore_ascii_case(&word.value);
    match word.source {
        PROPERTY => soc.has_part(&word.value),
        MACHINE => soc.has_part(&word.value) || soc.says.machine.iter().any(is),
        PLATFORM => soc.says.platform.as_ref().is_some_and(is),
        _ => false,
    }
}

fn adopt(soc: &Soc, stated: &Stated, out: &mut Identified) {
    for (key, known, said) in [
        ("soc-model", Some(soc.soc_model), stated.soc_model),
        ("hexagon", Some(soc.htp_arch), stated.htp_arch),
        ("vtcm-mb", soc.vtcm_mb, stated.vtcm_mb),
    ] {
        if let (Some(known), Some(said)) = (known, said)
            && known != said
        {
            out.findings.push(format!("the scenario states {key} {said}, the catalogue has {known} for {}: leave it out", soc.soc));
        }
    }
    out.part = Some(soc.soc.clone());
    out.name = Some(soc.name.clone());
    out.soc_model = Some(soc.soc_model);
    out.htp_arch = Some(soc.htp_arch);
    out.vtcm_mb = soc.vtcm_mb.or(stated.vtcm_mb);
    out.no_llm.clone_from(&soc.llm_reason);
}

fn unknown(stated: &Stated, out: &mut Identified) {
    if let (Some(said), Some(wanted)) = (&out.part, &stated.part)
        && !said.eq_ignore_ascii_case(wanted)
    {
        out.findings.push(format!("the scenario states {wanted}, the device says {said}: artifacts are built for one chip"));
    }
    if out.part.is_none() && stated.part.is_some() {
        out.part.clone_from(&stated.part);
        out.source = Some(SCENARIO);
    }
    (out.soc_model, out.htp_arch, out.vtcm_mb) = (stated.soc_model, stated.htp_arch, stated.vtcm_mb);
    if out.ambiguous.is_empty() && (out.soc_model.is_none() || out.htp_arch.is_none()) {
        let what =
            out.part.as_ref().map_or("the device does not say its chip".to_owned(), |part| format!("the catalogue does not know {part}"));
        out.findings.push(format!("{what}: state `soc`, `soc-model` and `hexagon` in the scenario's [device]"));
    }
    out.no_llm = match (out.htp_arch, out.vtcm_mb) {
        (Some(arch), _) if arch < 68 => Some(format!("its Hexagon v{arch} has no HTP: QNN's HTP backend and Genie begin with v68")),
        (_, Some(mb)) if mb <= 2 => Some(format!("{mb} MB of VTCM are too little: the graphs of language models are built for 8 MB")),
        _ => None,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(list: &[(&'static str, &str)]) -> Vec<Known> {
        list.iter().map(|(source, value)| Known { value: (*value).to_owned(), source }).collect()
    }

    fn of(list: &[(&'static str, &str)]) -> Identified {
        identify(&words(list), &Stated::default())
    }

    fn part(part: &str) -> Stated {
        Stated { part: Some(part.to_owned()), ..Stated::default() }
    }

    #[test]
    fn the_best_source_wins_and_is_kept() {
        let all = [(PROPERTY, "SM8650"), (MACHINE, "PINEAPPLE"), (PLATFORM, "pineapple")];
        let found = of(&all);
        assert_eq!((found.part.as_deref(), found.soc_model, found.htp_arch, found.vtcm_mb), (Some("SM8650"), Some(57), Some(75), Some(8)));
        assert_eq!((found.source, found.findings, found.no_llm), (Some(PROPERTY), vec![], None));
        assert_eq!(of(&all[1..]).source, Some(MACHINE));
        assert_eq!(of(&[(PROPERTY, "sm8750p")]).name.as_deref(), Some("Snapdragon 8 Elite"));
        // A kernel's marketing name means nothing; the next source is asked.
        assert_eq!(of(&[(MACHINE, "Snapdragon 8 Elite Gen 5"), (PLATFORM, "canoe")]).part.as_deref(), Some("SM8850"));
    }

    #[test]
    fn a_shared_platform_is_ambiguous() {
        let found = of(&[(PLATFORM, "kalama")]);
        assert_eq!((found.part, found.soc_model), (None, None));
        assert_eq!(found.ambiguous, ["SM8550", "QCS8550", "SG8275"]);
        assert_eq!(
            found.findings,
            ["ro.board.platform kalama may be SM8550, QCS8550, SG8275: name one as `soc` in the scenario's [device]"]
        );
        // Also where the others have no file.
        assert_eq!(of(&[(PLATFORM, "pineapple")]).ambiguous, ["SM8650", "SM8635", "SM7675"]);
        // The user's word decides among them, and only among them.
        let stated = identify(&words(&[(PLATFORM, "kalama")]), &part("QCM8550"));
        assert_eq!((stated.part.as_deref(), stated.source, stated.soc_model), (Some("QCS8550"), Some(SCENARIO), Some(66)));
        let wrong = identify(&words(&[(PLATFORM, "kalama")]), &part("SM8650"));
        assert!(
            wrong
                .findings
                .iter()
                .any(|f| f == "the scenario states SM8650, the device's ro.board.platform is that of SM8550, QCS8550, SG8275")
        );
    }

    #[test]
    fn contradictions_are_findings() {
        let found = identify(&words(&[(PROPERTY, "SM8650")]), &part("SM8750"));
        assert_eq!(found.part.as_deref(), Some("SM8650"), "artifacts for another chip do not change the chip");
        assert_eq!(
            found.findings,
            ["the scenario states SM8750, the device is a SM8650 by ro.soc.model: artifacts are built for one chip"]
        );
        let found = identify(&words(&[(PROPERTY, "SM8650")]), &Stated { htp_arch: Some(73), soc_model: Some(57), ..Stated::default() });
        assert_eq!(found.findings, ["the scenario states hexagon 73, the catalogue has 75 for SM8650: leave it out"]);
        // Some builds for QCM6490 print the phone's part number.
        let found = of(&[(PROPERTY, "SM7325"), (MACHINE, "YUPIK-IOT"), (PLATFORM, "lahaina")]);
        assert_eq!(found.findings, ["ro.soc.model says SM7325, /sys/devices/soc0/machine says YUPIK-IOT (QCS6490): the first is believed"]);
        assert!(found.no_llm.unwrap().contains("2 MB of VTCM"));
    }

    #[test]
    fn unknown_chips_work_with_what_is_stated() {
        // Not the SM8650 whose platform it shares.
        let said = words(&[(PROPERTY, "SM8635"), (PLATFORM, "pineapple")]);
        let alone = identify(&said, &Stated::default());
        assert_eq!((alone.part.as_deref(), alone.source, alone.soc_model), (Some("SM8635"), Some(PROPERTY), None));
        let way = "the catalogue does not know SM8635: state `soc`, `soc-model` and `hexagon` in the scenario's [device]";
        assert_eq!(alone.findings, [way]);
        let stated = Stated { part: Some("sm8635".to_owned()), soc_model: Some(68), htp_arch: Some(73), vtcm_mb: None };
        let found = identify(&said, &stated);
        assert_eq!((found.soc_model, found.htp_arch, found.findings), (Some(68), Some(73), vec![]));
        let other = identify(&said, &Stated { part: Some("SM7675".to_owned()), ..stated.clone() });
        assert_eq!(other.findings, ["the scenario states SM7675, the device says SM8635: artifacts are built for one chip"]);
        let silent = identify(&[], &stated);
        assert_eq!((silent.part.as_deref(), silent.source), (Some("sm8635"), Some(SCENARIO)));
        assert!(identify(&[], &Stated::default()).findings[0].starts_with("the device does not say its chip"));
        let old = identify(&[], &Stated { htp_arch: Some(66), ..stated });
        assert!(old.no_llm.unwrap().contains("v66 has no HTP"));
    }
}
