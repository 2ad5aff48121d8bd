//! The pages of trends: of a device, or of a model.

use std::collections::BTreeSet;

use super::lab::Lab;
use crate::{
    cli::history::{
        Part,
        human::{apart, day, judged, step_words, tally},
    },
    gate::history::{Figure, Run, Series, Trend},
    report::site::{self, Link, Never, RunRow, Step, TrendPage, Trends},
    words::figure,
};

/// What a page of trends is of.
#[derive(Clone, Copy)]
pub enum Of<'a> {
    Device(&'a str),
    Model(&'a str),
}

impl Of<'_> {
    fn holds(self, trend: &Trend) -> bool {
        match self {
            Self::Device(device) => trend.series.key.device == device,
            Self::Model(model) => trend.series.model == model,
        }
    }
}

/// Device, scenario and class: what has its runs in common, and may stand in one table.
type Group<'a> = (&'a str, &'a str, &'a str);

fn group(trend: &Trend) -> Group<'_> {
    let key = &trend.series.key;
    (&key.device, &key.scenario, &key.class)
}

fn is_measured(trend: &Trend) -> bool {
    trend.series.points.iter().any(|point| matches!(point.figure, Figure::Value { .. }))
}

impl Lab<'_> {
    /// All trends of a device or a model.
    pub(super) fn own(&self, of: Of) -> Vec<&Trend> {
        self.trends().map(|(_, trend)| trend).filter(|trend| of.holds(trend)).collect()
    }

    /// A page of trends; `rows` are all runs, the newest first.
    pub(super) fn page(&self, of: Of, file: &str, rows: &[RunRow]) -> TrendPage {
        let text = |text: String| vec![Link { text, href: None }];
        let own = self.own(of);
        let (trends, never) = self.groups(of, &own);
        let (what, name, facts, runs) = match of {
            Of::Device(device) => {
                let row = self.device(device);
                let facts = vec![("Class", text(row.classes)), ("Processor", text(row.chip)), ("Last run", vec![row.last])];
                ("Device", row.device.text, facts, rows.iter().filter(|row| row.device == self.to_device(device)).cloned().collect())
            }
            Of::Model(model) => {
                let row = self.model(model);
                let cells = text(row.cells.to_string());
                let facts =
                    vec![("Backends", text(row.backends)), ("Devices", row.devices), ("Cells", cells), ("Last run", vec![row.last])];
                let places: BTreeSet<usize> = own.iter().flat_map(|trend| &trend.series.points).map(|point| point.run).collect();
                ("Model", row.model.text, facts, places.into_iter().rev().map(|place| rows[rows.len() - 1 - place].clone()).collect())
            }
        };
        let facts = facts.into_iter().filter(|(_, values)| values.iter().any(|value| !value.text.is_empty())).collect();
        TrendPage { file: file.to_owned(), of: what, name, facts, tally: tally(&own), runs, trends, never }
    }

    fn groups(&self, of: Of, own: &[&Trend]) -> (Vec<Trends>, Vec<Never>) {
        let groups: BTreeSet<Group> = own.iter().map(|trend| group(trend)).collect();
        let (mut all, mut never) = (Vec::new(), Vec::new());
        for group in groups {
            let (measured, absent): (Vec<&Part>, Vec<&Part>) = self
                .history
                .parts
                .iter()
                .partition(|part| part.trends.iter().any(|t| of.holds(t) && self::group(t) == group && is_measured(t)));
            // Where nothing was measured at all, one table tells how the cells ended.
            let shown = if measured.is_empty() { &absent[..1] } else { &measured };
            all.extend(shown.iter().map(|part| self.trends_of(part, group, of)));
            if !absent.is_empty() {
                let (device, scenario, class) = group;
                let names: &[&str] = if matches!(of, Of::Model(_)) { &[device, scenario, class] } else { &[scenario, class] };
                let metrics = absent.iter().map(|part| part.metric.name).collect::<Vec<_>>().join(", ");
                never.push(Never { of: names.join(", "), metrics });
            }
        }
        (all, never)
    }

    fn trends_of(&self, part: &Part, of_group: Group, of: Of) -> Trends {
        let runs = &self.history.scan.runs;
        let all: Vec<&Trend> = part.trends.iter().filter(|trend| group(trend) == of_group).collect();
        // The nights of a line are the runs of its scenario in which the device has a cell: the same on all pages.
        let nights: Vec<usize> =
            Vec::from_iter(all.iter().flat_map(|trend| &trend.series.points).map(|point| point.run).collect::<BTreeSet<_>>());
        let own: Vec<&Trend> = all.into_iter().filter(|trend| of.holds(trend)).collect();
        let these = |trend: &Trend| group(trend) == of_group && of.holds(trend);
        let steps = part.steps.iter().filter_map(|step| step.of_these(these, &part.trends, runs, part.metric)).map(|step| {
            let mut lines = step_words(&step, part, runs, Series::name).into_iter().map(|line| line.trim().to_owned());
            Step { title: lines.next().unwrap_or_default(), lines: lines.collect() }
        });
        let (device, scenario, class) = of_group;
        Trends {
            scenario: scenario.to_owned(),
            device: matches!(of, Of::Model(_)).then(|| self.to_device(device)),
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
        cell: format!("{}{}", trend.series.name(), apart(trend, part)),
        id: trend.series.key.cell.clone(),
        last: last
            .map(|(at, run)| if verdict.is_empty() { format!("{} ({})", figure(at), day(&runs[run])) } else { figure(at) })
            .unwrap_or_default(),
        steps: trend.steps.iter().filter_map(|step| nights.binary_search(&step.at).ok()).collect(),
        values,
        verdict,
        words,
    }
}
