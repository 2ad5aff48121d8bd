//! The one explicit list of frameworks. Nothing else in the orchestrator knows them by name.

use bench_backend_api::{Backend, Card, DeviceFacts, Reader};
use bench_backend_command::CommandBackend;

use crate::{
    doctor::{
        Check,
        checks::{artifact::Bundle, genie},
    },
    scenario,
};

/// Every backend that can run.
pub static BACKENDS: &[&dyn Backend] = &[
    &bench_backend_qnn::Qnn,
    &bench_backend_genie::Genie,
    &bench_backend_ort_qnn::OrtQnn,
    &bench_backend_ort_genai::OrtGenai,
    &bench_backend_mnn::Mnn,
];

/// Every reader of `bench parse`. Their order is that of the colours in reports: a new one goes to the end, so that none changes.
pub static READERS: &[&dyn Reader] = &[
    &bench_backend_qnn::QnnReader,
    &bench_backend_genie::GenieReader,
    &bench_backend_ort_qnn::OrtQnnReader,
    &bench_backend_ort_genai::OrtGenaiReader,
    &bench_backend_mnn::MnnReader,
    &bench_backend_llama_cpp::LlamaCppReader,
    &bench_backend_snpe::SnpeReader,
    &bench_backend_executorch::ExecuTorchReader,
];

/// Frameworks whose programs for phones the user builds: the lines to type, with `{soc}`, `{soc_model}` and `{htp_arch}` for the chip's.
pub static BUILD_GUIDES: &[(&str, &str)] = &[("mnn", bench_backend_mnn::BUILD_GUIDE)];

/// Frameworks whose configuration `bench doctor` can judge.
pub static LINTS: &[(&str, &[Check<Bundle>])] = &[("genie", genie::CHECKS)];

/// What no measurement says, by framework.
static CARDS: &[(&str, &str)] = &[
    ("qnn", bench_backend_qnn::CARD),
    ("genie", bench_backend_genie::CARD),
    ("ort-qnn", bench_backend_ort_qnn::CARD),
    ("ort-genai", bench_backend_ort_genai::CARD),
    ("mnn", bench_backend_mnn::CARD),
    ("llama-cpp", bench_backend_llama_cpp::CARD),
    ("snpe", bench_backend_snpe::CARD),
    ("executorch", bench_backend_executorch::CARD),
];

/// The card of a framework; `None` for a program of a scenario.
pub fn card(id: &str) -> Option<Card> {
    let (_, text) = CARDS.iter().find(|(known, _)| *known == id)?;
    Some(Card::parse(text).expect("a card of this program is valid"))
}

/// The lines of [`BUILD_GUIDES`] for a backend and a chip.
pub fn build_guide(id: &str, device: &DeviceFacts) -> Option<String> {
    let (_, guide) = BUILD_GUIDES.iter().find(|(backend, _)| *backend == id)?;
    let words = [
        ("{soc}", device.soc.clone().unwrap_or_default()),
        ("{soc_model}", device.soc_model.to_string()),
        ("{htp_arch}", device.htp_arch.to_string()),
    ];
    Some(words.iter().fold((*guide).to_owned(), |text, (word, value)| text.replace(word, value)))
}

/// Ids that `bench parse` knows.
pub fn reader_ids() -> Vec<&'static str> {
    READERS.iter().map(|r| r.id()).collect()
}

/// The programs of a scenario as backends.
pub fn commands(commands: &[scenario::Command]) -> Vec<CommandBackend> {
    commands.iter().map(|c| CommandBackend::new(c.id.clone(), c.command.clone(), c.files.clone(), c.unit)).collect()
}

/// Built-in backends and those of a scenario in one list.
pub fn with<'a>(own: &'a [CommandBackend]) -> Vec<&'a dyn Backend> {
    BACKENDS.iter().map(|b| *b as &'a dyn Backend).chain(own.iter().map(|c| c as &dyn Backend)).collect()
}

#[cfg(test)]
mod remote;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_framework_has_a_card() {
        for id in BACKENDS.iter().map(|backend| backend.id()).chain(reader_ids()) {
            let card = card(id).unwrap_or_else(|| panic!("{id} has no card"));
            let known = card.facts().iter().filter(|(_, fact)| fact.text.is_some()).count();
            assert!(known >= 3, "{id}: {known} facts of five");
        }
        assert!(card("my-own").is_none());
        assert_eq!(CARDS.len(), READERS.len());
    }
}
