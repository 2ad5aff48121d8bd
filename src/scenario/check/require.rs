//! `[[require]]`: a limit that its unit, statistic and conditions make a statement (rule R27).

use std::collections::BTreeMap;

use super::{
    super::{
        checked::{Matrix, ModelSpec, Reference},
        key::Key,
        limit::Limit,
        require::{Need, Phase, Requirement, Source, Statistic, Subject},
        soak::Soak,
        suggest::{self, show},
        value::{At, Texts},
        wire,
    },
    Context, values,
};

impl Context<'_> {
    pub(super) fn requirements(
        &mut self,
        all: &[At<wire::Require>],
        models: &BTreeMap<String, Option<ModelSpec>>,
        matrix: Option<&Matrix>,
        soak: Option<&Soak>,
        reference: Reference,
    ) -> Vec<Requirement> {
        let mut checked = Vec::new();
        for (place, at) in all.iter().enumerate() {
            let (wire, none) = (&at.value, BTreeMap::new());
            // What is missing may be what was misspelt, which has been said already.
            let whole = !self.is_damaged(&format!("require[{place}]"));
            let cells = wire.r#where.as_ref().map_or(none, |w| self.selected(&w.value, models));
            let (Some(word), Some(written)) = (&wire.metric, &wire.limit) else { continue };
            let Some(subject) = Subject::parse(&word.value) else { continue };
            if whole {
                self.conditions(at, subject, &cells, matrix);
            }
            if subject.source == Source::Exact("token_agreement") && reference == Reference::None {
                let help = "name a `reference` in [verify]".to_owned();
                self.out.error(word.span(), "`agreement` with what? tokens are compared with nothing", help);
            }
            let minute = wire.r#where.as_ref().and_then(|w| w.value.minute.as_ref());
            if let Some(minute) = minute.filter(|_| subject.needs.contains(&Need::Minute)) {
                self.reached(minute, soak);
            }
            let statistic = self.statistic(at, subject, whole);
            let Some(limit) = self.limit(written, subject) else { continue };
            checked.push(Requirement {
                metric: word.value.clone(),
                limit,
                text: written.value.trim().to_owned(),
                statistic,
                phase: wire.r#where.as_ref().and_then(|w| Phase::parse(&w.value.phase.as_ref()?.value)),
                minute: minute.map(|m| m.value),
                cells,
            });
        }
        checked
    }

    fn selected(&mut self, wire: &wire::Where, models: &BTreeMap<String, Option<ModelSpec>>) -> BTreeMap<String, Vec<String>> {
        wire.backend.texts().iter().for_each(|b| {
            self.backend(b);
        });
        wire.model.texts().iter().for_each(|m| {
            self.model(m, models);
        });
        let texts = |key| match key {
            Key::Backend => wire.backend.texts(),
            Key::Model => wire.model.texts(),
            Key::Quant => wire.quant.texts(),
            Key::PromptTokens => wire.prompt_tokens.texts(),
            Key::GenTokens => wire.gen_tokens.texts(),
            Key::Axis(axis) => wire.axis(axis),
        };
        Key::all().map(|key| (key.as_str().to_owned(), values(&texts(key)))).filter(|(_, values)| !values.is_empty()).collect()
    }

    /// A limit without its conditions is a rumour: says which one to add, in the words of this file.
    fn conditions(&mut self, at: &At<wire::Require>, subject: &Subject, cells: &BTreeMap<String, Vec<String>>, matrix: Option<&Matrix>) {
        let place = at.value.r#where.as_ref();
        let (phase, minute) = (place.and_then(|w| w.value.phase.as_ref()), place.and_then(|w| w.value.minute.as_ref()));
        let first = |list: Option<&Vec<u32>>| list.and_then(|l| l.first()).copied().unwrap_or(128);
        let mut lacks = Vec::new();
        for need in subject.needs {
            let (there, example) = match need {
                Need::Cells(key) => {
                    let list = if *key == Key::PromptTokens { matrix.map(|m| &m.prompt_tokens) } else { matrix.map(|m| &m.gen_tokens) };
                    (cells.contains_key(key.as_str()), format!("{key} = {}", first(list)))
                }
                Need::Phase => (phase.is_some(), "phase = \"decode\"".to_owned()),
                Need::Minute => (minute.is_some(), "minute = 30".to_owned()),
                Need::Any => {
                    let model = matrix.and_then(|m| m.model.first()).map_or("tiny", String::as_str);
                    (!cells.is_empty(), format!("model = \"{model}\""))
                }
            };
            if !there {
                lacks.push(example);
            }
        }
        let span = place.map_or(at.span(), At::span);
        if !lacks.is_empty() {
            let message = format!("a limit of `{}` means nothing without its conditions", subject.word);
            self.out.error(span, message, format!("add for instance `where = {{ {} }}`", lacks.join(", ")));
        }
        let spare = [(phase.map(At::span), Need::Phase, "phase"), (minute.map(At::span), Need::Minute, "minute")];
        for (span, need, key) in spare {
            if let Some(span) = span.filter(|_| !subject.needs.contains(&need)) {
                self.out.error(span, format!("`{key}` means nothing to `{}`", subject.word), "take it out".to_owned());
            }
        }
        if let Some(phase) = phase.filter(|p| subject.source == Source::Energy && p.value == "all") {
            let help = "take `prefill` or `decode`, or the metric `tokens-per-battery-percent`".to_owned();
            self.out.error(phase.span(), "joules of a token are of a phase", help);
        }
    }

    fn reached(&mut self, minute: &At<u32>, soak: Option<&Soak>) {
        match soak {
            None => self.out.error(minute.span(), "there is no minute without a soak", "add [soak]".to_owned()),
            Some(soak) if soak.duration_ms < u64::from(minute.value) * 60_000 => {
                let message = format!("the soak does not reach minute {}", minute.value);
                self.out.error(minute.span(), message, "take a longer `duration` in [soak]".to_owned());
            }
            Some(_) => {}
        }
    }

    fn statistic(&mut self, at: &At<wire::Require>, subject: &Subject, whole: bool) -> Option<Statistic> {
        let word = subject.word;
        let Some(asked) = &at.value.statistic else {
            if subject.ask_statistic && whole {
                let help = format!("add for instance `statistic = \"{}\"`", subject.statistics[0]);
                self.out.error(at.span(), format!("`{word}` needs a `statistic`"), help);
            }
            return (!subject.ask_statistic && !subject.statistics.is_empty()).then_some(Statistic::Median);
        };
        if subject.statistics.is_empty() {
            self.out.error(asked.span(), format!("`{word}` has one value: `statistic` means nothing to it"), "take it out".to_owned());
        } else if !subject.statistics.contains(&asked.value.as_str()) {
            let message = format!("{} is not measured of `{word}`", show(&asked.value));
            self.out.error(asked.span(), message, suggest::help(&asked.value, subject.statistics));
        }
        Statistic::parse(&asked.value)
    }

    fn limit(&mut self, at: &At<String>, subject: &Subject) -> Option<Limit> {
        let limit = Limit::parse(&at.value, subject);
        limit.inspect_err(|no| self.out.error(at.span(), no.message.clone(), no.help.clone())).ok()
    }
}
