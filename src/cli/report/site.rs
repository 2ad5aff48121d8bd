//! `bench report --site DIR`: what the history says of a folder of runs, as pages.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};

use super::super::{
    exit::{self, Code, Failed},
    history::{
        History, Part,
        human::{apart, day, judged, step_words, tally},
    },
    metric, note, usage,
};
use crate::{
    gate::{
        history::{self, Figure, Gap, Run, Scan, Trend, Wanted},
        nightly::{USUAL, expected, output::Record},
        nights::FEWEST,
        verdict::Verdict,
    },
    report::{
        Report,
        site::{self, DevicePage, DeviceRow, GateRow, LeftOut, Link, ModelRow, RunRow, Site, Step, Trends, Worse},
    },
    results::folder::id_of,
    safe::{printable, visible},
    words::figure,
};

/// Change that matters, as for `bench history` and `bench gate`.
const ASKED: f64 = 0.02;

pub fn main(given: &[PathBuf], out: &Path) -> anyhow::Result<Code> {
    let (folder, named) = folder(given)?;
    let mut scan = history::scan(&folder).map_err(|e| usage(e.to_string()))?;
    // As the tables are read: a device has one page, whatever its name holds.
    for run in &mut scan.runs {
        run.device = visible(&run.device);
    }
    let runs = named.clone().unwrap_or_else(|| scan.runs.iter().map(|run| run.folder.clone()).collect());
    let wrong = pages(&runs, out)?;
    let metrics: Vec<_> = USUAL.iter().filter_map(|name| metric::metrics(name).ok()).flatten().collect();
    let history = History::of(scan, Wanted { metrics: &metrics, cell: "", device: None, scenario: None, nights: None }, ASKED);
    let index = site::write(&Lab { history: &history, out, wrong: &wrong, named: &runs }.site(), out).map_err(|e| super::failed(&e))?;
    super::super::print(&format!("{}\n", index.display()))?;
    match wrong.into_iter().next() {
        // Of a whole folder one damaged run is what the index says of it; a run that was asked for is the user's matter.
        Some((_, message)) if named.is_some() => Err(Failed { code: Code::Usage, message }.into()),
        _ => Ok(Code::Done),
    }
}

/// Leaves a judgement beside the page of its run.
pub fn keep_gate(run: &Path, out: &Path, record: &Record) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(record)? + "\n";
    site::keep(&text, &out.join(super::name(run))).map_err(|e| super::failed(&e))
}

/// The folder that holds the runs, and those that were named, if any were.
fn folder(given: &[PathBuf]) -> anyhow::Result<(PathBuf, Option<Vec<PathBuf>>)> {
    let is_run = |path: &PathBuf| path.join("manifest.json").exists() || path.join("plan.toml").exists();
    match given {
        [] => return Ok((PathBuf::from("results"), None)),
        [one] if one.is_dir() && !is_run(one) => return Ok((one.clone(), None)),
        _ => {}
    }
    let (mut found, mut runs): (Option<PathBuf>, Vec<PathBuf>) = (None, Vec::new());
    for run in given {
        let whole = run.canonicalize().map_err(|e| usage(format!("{}: {e}", run.display())))?;
        if !is_run(run) {
            return Err(usage(format!("{}: not a run folder (it has no manifest.json)", run.display())));
        }
        let holds = whole.parent().unwrap_or(&whole).to_owned();
        if found.as_ref().is_some_and(|known| *known != holds) {
            return Err(usage("the runs lie in different folders: a site is one of one folder of runs".to_owned()));
        }
        found = Some(holds);
        runs.push(whole);
    }
    Ok((found.unwrap_or_default(), Some(runs)))
}

/// Makes the pages that are missing or older than their tables; gives what is wrong with runs that can have none, by the names of their folders.
fn pages(runs: &[PathBuf], out: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let mut wrong = BTreeMap::new();
    for run in runs {
        let name = id_of(run);
        if site::is_fresh(run, &out.join(&name).join(site::INDEX)) {
            continue;
        }
        let report = || Report::of(std::slice::from_ref(run), None)?.write(&out.join(&name));
        let made = super::ready(run).and_then(|()| report().map_err(|e| super::failed(&e)));
        if let Err(error) = made {
            // A disk that is full is nothing of the run's.
            if exit::of(&error) != Code::Usage {
                return Err(error);
            }
            note(&format!("no page of {}: {}", printable(&name), printable(&error.to_string())));
            wrong.insert(name, error.to_string());
        }
    }
    Ok(wrong)
}

/// What the site is made of.
struct Lab<'a> {
    history: &'a History,
    out: &'a Path,
    wrong: &'a BTreeMap<String, String>,
    named: &'a [PathBuf],
}

impl Lab<'_> {
    fn site(&self) -> Site {
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
        let devices: BTreeSet<&str> =
            runs.iter().map(|run| run.device.as_str()).chain(self.trends().map(|(_, t)| t.series.key.device.as_str())).collect();
        let pages: Vec<DevicePage> = devices.into_iter().map(|device| self.device(device, &rows)).collect();
        Site {
            tool: format!("bench {}", env!("CARGO_PKG_VERSION")),
            devices: pages.iter().map(|page| page.row.clone()).collect(),
            models: self.models(),
            worse: self.worse(),
            odds: self.odds(),
            gates: self.gates(),
            left_out,
            others: site::others(self.out, &known),
            remarks: self.history.remarks.clone(),
            pages,
            runs: rows,
        }
    }

    fn trends(&self) -> impl Iterator<Item = (&Part, &Trend)> {
        self.history.parts.iter().flat_map(|part| part.trends.iter().map(move |trend| (part, trend)))
    }

    /// A run's name with its page, where it has one.
    fn link(&self, folder: &str, text: &str) -> Link {
        let page = self.out.join(folder).join(site::INDEX).is_file();
        Link { text: text.to_owned(), href: page.then(|| format!("{}/{}", site::href(folder), site::INDEX)) }
    }

    fn to(&self, run: &Run) -> Link {
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
            device: device_link(&run.device),
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

    /// What `bench gate --site` has left of a run; the error says why it can't be read.
    fn record(&self, run: &Run) -> Option<Result<Record, String>> {
        let path = self.out.join(id_of(&run.folder)).join(site::GATE);
        // Before it is opened: a pipe would be waited for.
        let text = match path.metadata() {
            Ok(found) if found.is_file() => fs::read(&path).map_err(|e| e.to_string()),
            Ok(_) => Err("it is no regular file".to_owned()),
            Err(_) => return None,
        };
        let read = |text: Vec<u8>| serde_json::from_slice(&text).map_err(|e| e.to_string());
        let read = text.and_then(read).map_err(|why| format!("{} can't be read: {why}; `bench gate --site` makes it anew", site::GATE));
        let time = |path: &Path| path.metadata().and_then(|found| found.modified()).ok();
        let older = time(&path).zip(time(&run.folder.join("cells.csv"))).is_some_and(|(judged, measured)| judged < measured);
        Some(read.and_then(|record: Record| match () {
            () if record.run != run.id => Err(format!("{} is of another run; `bench gate --site` makes it anew", site::GATE)),
            () if older => Err("judged before its tables changed; `bench gate --site` judges them again".to_owned()),
            () => Ok(record),
        }))
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
                cell: format!("{}{}", key.cell, apart(trend, part)),
                device: device_link(&key.device),
                scenario: key.scenario.clone(),
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

    fn models(&self) -> Vec<ModelRow> {
        let mut by_model: BTreeMap<&str, Vec<&Trend>> = BTreeMap::new();
        for trend in self.history.parts.first().into_iter().flat_map(|part| &part.trends) {
            by_model.entry(&trend.series.model).or_default().push(trend);
        }
        let row = |(model, trends): (&str, Vec<&Trend>)| {
            let of = |of: fn(&Trend) -> &str| trends.iter().map(|trend| of(trend)).collect::<BTreeSet<_>>();
            let last = trends.iter().filter_map(|trend| trend.series.points.last()).map(|point| point.run).max();
            ModelRow {
                model: if model.is_empty() { "not stated".to_owned() } else { model.to_owned() },
                backends: Vec::from_iter(of(|trend| &trend.series.backend)).join(", "),
                devices: of(|trend| &trend.series.key.device).into_iter().map(device_link).collect(),
                cells: of(|trend| &trend.series.key.cell).len(),
                last: last.map(|run| self.to(&self.history.scan.runs[run])).unwrap_or_default(),
            }
        };
        by_model.into_iter().map(row).collect()
    }

    fn device(&self, device: &str, rows: &[RunRow]) -> DevicePage {
        let runs: Vec<&Run> = self.history.scan.runs.iter().filter(|run| run.device == device).collect();
        let own: Vec<&Trend> = self.trends().map(|(_, trend)| trend).filter(|trend| trend.series.key.device == device).collect();
        let classes: BTreeSet<&str> = own.iter().map(|trend| trend.series.key.class.as_str()).collect();
        let chips: BTreeSet<&str> = runs.iter().map(|run| run.chip.as_str()).filter(|chip| !chip.is_empty()).collect();
        let groups: BTreeSet<(&str, &str)> = own.iter().map(|t| (t.series.key.scenario.as_str(), t.series.key.class.as_str())).collect();
        let trends = groups
            .into_iter()
            .flat_map(|(scenario, class)| self.history.parts.iter().map(move |part| self.trends_of(part, device, scenario, class)));
        DevicePage {
            file: device_file(device),
            device: device.to_owned(),
            row: DeviceRow {
                device: device_link(device),
                classes: Vec::from_iter(classes).join(", "),
                chip: Vec::from_iter(chips).join(", "),
                runs: runs.len(),
                last: runs.last().map(|run| self.to(run)).unwrap_or_default(),
                tally: tally(&own),
            },
            runs: rows.iter().filter(|row| row.device.text == device).cloned().collect(),
            trends: trends.collect(),
        }
    }

    fn trends_of(&self, part: &Part, device: &str, scenario: &str, class: &str) -> Trends {
        let runs = &self.history.scan.runs;
        let of = |trend: &&Trend| {
            let key = &trend.series.key;
            (key.device.as_str(), key.scenario.as_str(), key.class.as_str()) == (device, scenario, class)
        };
        let own: Vec<&Trend> = part.trends.iter().filter(of).collect();
        // The nights of a line are the runs of its scenario in which the device has a cell.
        let nights: BTreeSet<usize> = own.iter().flat_map(|trend| &trend.series.points).map(|point| point.run).collect();
        let nights: Vec<usize> = nights.into_iter().collect();
        let steps = part.steps.iter().filter(|step| step.lines.iter().any(|(place, _)| of(&&part.trends[*place])));
        let steps = steps.map(|step| {
            let mut lines = step_words(step, part, runs).into_iter().map(|line| line.trim().to_owned());
            Step { title: lines.next().unwrap_or_default(), lines: lines.collect() }
        });
        Trends {
            scenario: scenario.to_owned(),
            class: class.to_owned(),
            metric: part.metric.name,
            better: if part.metric.higher_is_better { "higher is better" } else { "lower is better" },
            tally: tally(&own),
            rows: own.iter().map(|trend| row(trend, part, runs, &nights)).collect(),
            steps: steps.collect(),
        }
    }
}

fn row(trend: &Trend, part: &Part, runs: &[Run], nights: &[usize]) -> site::Trend {
    let mut values = vec![None; nights.len()];
    for point in &trend.series.points {
        if let (Ok(place), Figure::Value { at, .. }) = (nights.binary_search(&point.run), point.figure) {
            values[place] = Some(at);
        }
    }
    let (verdict, words) = judged(trend, part.metric.higher_is_better, runs);
    let last = trend.series.points.iter().rev().find_map(|point| match point.figure {
        Figure::Value { at, .. } => Some((at, point.run)),
        Figure::None(_) => None,
    });
    site::Trend {
        cell: format!("{}{}", trend.series.key.cell, apart(trend, part)),
        last: last
            .map(|(at, run)| if verdict.is_empty() { format!("{} ({})", figure(at), day(&runs[run])) } else { figure(at) })
            .unwrap_or_default(),
        steps: trend.steps.iter().filter_map(|step| nights.binary_search(&step.at).ok()).collect(),
        values,
        verdict,
        words,
    }
}

fn device_link(device: &str) -> Link {
    let text = if device.is_empty() { "not stated".to_owned() } else { device.to_owned() };
    Link { text, href: Some(site::href(&device_file(device))) }
}

/// The file of a device's page: its name, as far as a file may be called so, and what tells it from others that are then called alike.
fn device_file(device: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    let mut name: String = device.chars().map(|c| if plain(c) { c } else { '-' }).take(60).collect();
    if name != device {
        name = format!("{name}-{}", crate::hex(&Sha256::digest(device.as_bytes())[..4]));
    }
    format!("device-{name}.html")
}

#[cfg(test)]
mod tests;
