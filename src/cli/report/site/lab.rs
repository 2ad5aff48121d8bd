//! The index: runs, gates, devices and models, and what regressed.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use super::{judgement, names::files, trends::Of};
use crate::{
    cli::history::{
        History, Part,
        human::{apart, judged, tally},
    },
    gate::{
        history::{Figure, Gap, Run, Scan, Trend},
        nightly::{expected, output::Record},
        nights::FEWEST,
        verdict::Verdict,
    },
    report::site::{self, DeviceRow, GateRow, LeftOut, Link, ModelRow, RunRow, Site, Worse},
    results::folder::id_of,
    words::percent,
};

/// What the site is made of.
pub struct Lab<'a> {
    pub history: &'a History,
    /// The change that matters.
    pub asked: f64,
    pub out: &'a Path,
    /// Runs without a page, by their folders, with the reason.
    pub wrong: &'a BTreeMap<String, String>,
    pub named: &'a [PathBuf],
    pub files: Files,
}

/// The pages of trends, by what they are of.
pub struct Files {
    devices: BTreeMap<String, String>,
    models: BTreeMap<String, String>,
}

impl Files {
    pub fn of(history: &History) -> Self {
        let trends = || history.parts.iter().flat_map(|part| &part.trends);
        let runs = history.scan.runs.iter().map(|run| run.device.as_str());
        Self {
            devices: files("device", runs.chain(trends().map(|trend| trend.series.key.device.as_str()))),
            models: files("model", trends().map(|trend| trend.series.model.as_str())),
        }
    }
}

impl Lab<'_> {
    pub fn site(&self) -> Site {
        let Scan { runs, left_out } = &self.history.scan;
        let rows: Vec<RunRow> = runs.iter().enumerate().rev().map(|(place, run)| self.run(place, run)).collect();
        let mut known: BTreeSet<String> = runs.iter().map(|run| id_of(&run.folder)).collect();
        let mut left_out: Vec<LeftOut> =
            left_out.iter().map(|one| LeftOut { name: self.link(&one.name, &one.name), why: self.why(&one.name, &one.why) }).collect();
        known.extend(left_out.iter().map(|one| one.name.text.clone()));
        // A run that went while the site was made.
        let gone = self.named.iter().map(|run| id_of(run)).filter(|name| !known.contains(name)).collect::<Vec<_>>();
        left_out
            .extend(gone.into_iter().map(|name| LeftOut { why: self.why(&name, "is no run that counts"), name: self.link(&name, &name) }));
        known.extend(left_out.iter().map(|one| one.name.text.clone()));
        let devices = self.files.devices.iter().map(|(device, file)| self.page(Of::Device(device), file, &rows));
        let models = self.files.models.iter().map(|(model, file)| self.page(Of::Model(model), file, &rows));
        Site {
            tool: format!("bench {}", env!("CARGO_PKG_VERSION")),
            devices: self.files.devices.keys().map(|device| self.device(device)).collect(),
            models: self.files.models.keys().map(|model| self.model(model)).collect(),
            worse: self.worse(),
            odds: self.odds(),
            gates: self.gates(),
            left_out,
            others: site::others(self.out, &known),
            remarks: self.history.remarks.clone(),
            asked: self.asked(),
            pages: devices.chain(models).collect(),
            runs: rows,
        }
    }

    pub(super) fn trends(&self) -> impl Iterator<Item = (&Part, &Trend)> {
        self.history.parts.iter().flat_map(|part| part.trends.iter().map(move |trend| (part, trend)))
    }

    /// A run's name with its page, where it has one: what could not be written now is no page of it, whatever stands there.
    fn link(&self, folder: &str, text: &str) -> Link {
        let page = !self.wrong.contains_key(folder) && self.out.join(folder).join(site::INDEX).is_file();
        Link { text: text.to_owned(), href: page.then(|| format!("{}/{}", site::href(folder), site::INDEX)) }
    }

    pub(super) fn to(&self, run: &Run) -> Link {
        self.link(&id_of(&run.folder), &run.id)
    }

    /// Why there is no figure, and why no page.
    fn why(&self, folder: &str, why: &str) -> String {
        self.wrong.get(folder).map_or_else(|| why.to_owned(), |page| format!("{why}; no page: {page}"))
    }

    fn run(&self, place: usize, run: &Run) -> RunRow {
        let folder = id_of(&run.folder);
        let record = self.record(run);
        let note = self.wrong.get(&folder).map(|why| format!("no page: {why}"));
        RunRow {
            run: self.to(run),
            started: run.started.strftime("%Y-%m-%d %H:%M").to_string(),
            scenario: run.scenario.clone(),
            device: self.to_device(&run.device),
            cells: self.cells(place),
            gate: record.and_then(Result::ok).map(|record| record.verdict).unwrap_or_default(),
            note: note.into_iter().chain(run.busy.clone()).collect::<Vec<_>>().join("; "),
        }
    }

    /// How many cells of a run ended how.
    fn cells(&self, place: usize) -> String {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        // Each row of a run is one point of any metric.
        for point in self.history.parts.first().into_iter().flat_map(|part| &part.trends).flat_map(|trend| &trend.series.points) {
            let word = match point.figure {
                Figure::Value { .. } | Figure::None(Gap::Absent) => "ok",
                Figure::None(Gap::Skipped) => "skipped",
                Figure::None(Gap::Infra | Gap::Failed) => "failed",
                Figure::None(Gap::Unverified) => "unverified",
            };
            if point.run == place {
                *counts.entry(word).or_default() += 1;
            }
        }
        ["ok", "unverified", "failed", "skipped"]
            .iter()
            .filter_map(|word| counts.get(word).map(|n| format!("{n} {word}")))
            .collect::<Vec<_>>()
            .join(", ")
    }

    fn record(&self, run: &Run) -> Option<Result<Record, String>> {
        judgement::standing(&run.id, &run.folder, &self.out.join(id_of(&run.folder)))
    }

    /// The last gate of each scenario and device.
    fn gates(&self) -> Vec<GateRow> {
        let mut seen: BTreeSet<(&str, &str)> = BTreeSet::new();
        let mut found = Vec::new();
        for run in self.history.scan.runs.iter().rev() {
            let Some(record) = self.record(run) else { continue };
            if seen.insert((&run.scenario, &run.device)) {
                let row = GateRow { run: self.to(run), scenario: run.scenario.clone(), device: run.device.clone(), ..GateRow::default() };
                found.push(match record {
                    Ok(Record { verdict, words, worse, .. }) => GateRow { verdict, words, worse, ..row },
                    Err(why) => GateRow { words: vec![why], ..row },
                });
            }
        }
        found
    }

    /// What is worse in the last run of a scenario on a device.
    fn worse(&self) -> Vec<Worse> {
        let runs = &self.history.scan.runs;
        let worse = |(part, trend): (&Part, &Trend)| {
            let key = &trend.series.key;
            let run = &runs[trend.series.points.last()?.run];
            trend.tonight.as_ref().ok().filter(|tonight| tonight.verdict == Verdict::Regressed)?;
            Some(Worse {
                cell: format!("{}{}", trend.series.name(), apart(trend, part)),
                id: key.cell.clone(),
                device: self.to_device(&key.device),
                scenario: key.scenario.clone(),
                class: key.class.clone(),
                metric: part.metric.name,
                words: judged(trend, part.metric.higher_is_better, runs).1,
                run: self.to(run),
            })
        };
        self.trends().filter_map(worse).collect()
    }

    /// How many false alarms are among them: of the figures with nights enough before them.
    fn odds(&self) -> Option<String> {
        let judged = self.trends().filter(|(_, trend)| trend.tonight.as_ref().is_ok_and(|tonight| tonight.baseline >= FEWEST)).count();
        (judged > 0).then(|| format!("By chance alone: {}.", expected(judged)))
    }

    /// Which metrics are judged by which change.
    fn asked(&self) -> String {
        let metrics: Vec<&str> = self.history.parts.iter().map(|part| part.metric.name).collect();
        format!("Judged: {}; a change of {} matters.", metrics.join(", "), percent(self.asked))
    }

    pub(super) fn to_device(&self, device: &str) -> Link {
        to_page(device, &self.files.devices)
    }

    pub(super) fn to_model(&self, model: &str) -> Link {
        to_page(model, &self.files.models)
    }

    pub(super) fn device(&self, device: &str) -> DeviceRow {
        let own = self.own(Of::Device(device));
        let runs: Vec<&Run> = self.history.scan.runs.iter().filter(|run| run.device == device).collect();
        DeviceRow {
            device: self.to_device(device),
            classes: list(own.iter().map(|trend| trend.series.key.class.as_str())),
            chip: list(runs.iter().map(|run| run.chip.as_str())),
            runs: runs.len(),
            last: runs.last().map(|run| self.to(run)).unwrap_or_default(),
            tally: tally(&own),
        }
    }

    pub(super) fn model(&self, model: &str) -> ModelRow {
        let own = self.own(Of::Model(model));
        let last = own.iter().filter_map(|trend| trend.series.points.last()).map(|point| point.run).max();
        let devices: BTreeSet<&str> = own.iter().map(|trend| trend.series.key.device.as_str()).collect();
        ModelRow {
            model: self.to_model(model),
            backends: list(own.iter().map(|trend| trend.series.backend.as_str())),
            devices: devices.into_iter().map(|device| self.to_device(device)).collect(),
            cells: own.iter().map(|trend| trend.series.key.cell.as_str()).collect::<BTreeSet<_>>().len(),
            last: last.map(|run| self.to(&self.history.scan.runs[run])).unwrap_or_default(),
            tally: tally(&own),
        }
    }
}

fn to_page(name: &str, files: &BTreeMap<String, String>) -> Link {
    let text = if name.is_empty() { "not stated".to_owned() } else { name.to_owned() };
    Link { text, href: files.get(name).map(|file| site::href(file)) }
}

/// Each once, in order.
fn list<'a>(all: impl Iterator<Item = &'a str>) -> String {
    Vec::from_iter(all.filter(|one| !one.is_empty()).collect::<BTreeSet<_>>()).join(", ")
}
