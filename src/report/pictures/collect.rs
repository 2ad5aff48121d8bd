//! Which pictures a page has, and what must stand on each.

use std::borrow::Cow;

use super::names::Names;
use crate::{
    lang::Voice,
    report::model::view::{Chart, Page, Panel, RunView},
};

/// On every picture of emulated cells, since it may be looked at without its page.
const EMULATED: &str = "Emulator time is not device time, not even in proportion: it says nothing about a chip.";
/// Beneath what the profile pass feeds.
const PROFILED: &str = "From the profile pass, one launch a cell, hence no interval; its times are in no figure of the measurement.";

/// A chart with what it needs to stand alone.
#[derive(Debug)]
pub struct Picture<'a> {
    /// Of its file, without the ending.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// What it is of: class, device and model.
    pub of: Vec<String>,
    /// What nobody may overlook.
    pub warning: Option<String>,
    /// The chart.
    pub chart: Cow<'a, Chart>,
    /// Sentences beneath, after the chart's own.
    pub notes: Vec<String>,
    /// Where the figures come from.
    pub source: String,
}

impl Picture<'_> {
    /// The same in another language; its name is a file's and stays.
    pub fn said(mut self, voice: &Voice) -> Self {
        let of_many = |texts: &[String]| texts.iter().map(|text| voice.text(text)).collect();
        let chart = self.chart.to_mut();
        (chart.caption, chart.svg) = (voice.text(&chart.caption), voice.html(&chart.svg));
        for entry in &mut chart.legend {
            entry.text = voice.text(&entry.text);
        }
        Self {
            title: voice.text(&self.title),
            of: of_many(&self.of),
            warning: self.warning.map(|text| voice.text(&text)),
            notes: of_many(&self.notes),
            source: voice.text(&self.source),
            ..self
        }
    }
}

/// Every chart of a page, in its order.
pub fn pictures(page: &Page) -> Vec<Picture<'_>> {
    let mut found = Vec::new();
    let mut names = Names::default();
    for run in &page.runs {
        // One run's pictures keep their names from night to night; those of several runs in one folder need the run.
        let prefix = if page.runs.len() > 1 { run.id.as_str() } else { "" };
        for panel in &run.panels {
            of_panel(&mut found, &mut names, prefix, run, panel, &page.tool);
        }
    }
    found
}

fn of_panel<'a>(found: &mut Vec<Picture<'a>>, names: &mut Names, prefix: &str, run: &'a RunView, panel: &'a Panel, tool: &str) {
    // `title` has the chart's own in place of `{}`: on the page a heading above it says the rest.
    let mut add = |charts: &mut dyn Iterator<Item = &'a Chart>, model: &str, title: &str, notes: &[&str]| {
        for chart in charts {
            let of = [panel.title.as_str(), &panel.device, model].into_iter().filter(|word| !word.is_empty());
            let title = title.replace("{}", &chart.title);
            // How intervals are made is of no use beneath a chart without any.
            let told = |note: &&&str| !note.is_empty() && (!note.starts_with("Interval") || chart.caption.contains("interval"));
            found.push(Picture {
                name: names.unique(&[prefix, &panel.class, &panel.device, model, &title]),
                title,
                of: of.map(str::to_owned).collect(),
                warning: panel.emulator.then(|| EMULATED.to_owned()),
                chart: Cow::Borrowed(chart),
                notes: notes.iter().filter(told).map(|note| (*note).to_owned()).collect(),
                source: format!("Run {} of scenario “{}”, by {tool}. “The table” is that of the run's report.", run.id, run.scenario),
            });
        }
    };
    for set in &panel.sets {
        let memory = set.memory.as_deref().unwrap_or_default();
        add(&mut set.charts.iter(), &set.title, "{}", &[&set.intervals, memory, &panel.note]);
        add(&mut set.soak.iter().flat_map(|soak| &soak.charts), &set.title, "{}", &[&panel.note]);
        add(&mut set.timelines.iter(), &set.title, "{}", &[&panel.note]);
    }
    // The charts of a panel name the model where there are several.
    let only = if let [set] = panel.sets.as_slice() { set.title.as_str() } else { "" };
    if let Some(why) = &panel.why {
        add(&mut why.parts.iter(), only, "{}", &[PROFILED, &panel.note]);
        add(&mut why.stages.iter(), only, "{}", &[&panel.note]);
        add(&mut why.profiled.iter(), only, "{}, in the profile pass", &[PROFILED, &panel.note]);
        add(&mut why.roof.iter(), only, "{}", &[&panel.note]);
    }
    add(&mut panel.layers.iter(), only, "Most expensive operations, {}", &[PROFILED, &panel.note]);
}
