//! Events for eyes and programs: progress bars on a terminal, plain lines otherwise, JSON lines on demand.

use std::{
    io::{IsTerminal, Write},
    sync::Mutex,
    time::{Duration, Instant},
};

use bench_backend_api::Pass;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::Format;
pub use crate::safe::printable;
use crate::{
    lang,
    run::events::{Event, Sink},
    scenario::Side,
    words::count,
};

/// Shows events.
pub struct Console {
    format: Format,
    bar: Option<ProgressBar>,
    /// Which device this is about, where several are measured at once.
    device: Option<String>,
    /// Which side of an A/B run.
    side: Option<Side>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    done: usize,
    total: usize,
    sending: Option<Sending>,
}

/// A transfer of files to a device.
struct Sending {
    begun: Instant,
    shown: Instant,
    /// Bytes that were there at the begin.
    first: u64,
}

impl Console {
    /// A console for the format asked for; human text goes to standard error, JSON lines to standard output.
    pub fn new(format: Format) -> Self {
        let terminal = std::io::stderr().is_terminal() && format == Format::Human;
        let bar = terminal.then(|| {
            let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{bar:30} {pos}/{len} launches  {elapsed}  {wide_msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        Self { format, bar, device: None, side: None, state: Mutex::new(State::default()) }
    }

    /// A console for one device of several: lines begin with its name, JSON events have it as `device`.
    pub fn of_device(format: Format, device: &str) -> Self {
        Self { format, bar: None, device: Some(device.to_owned()), side: None, state: Mutex::default() }
    }

    /// The same for one side of an A/B run: lines begin with its letter, JSON events have it as `side`. The whole run is this console.
    pub fn of_side(&self, side: Option<Side>) -> Self {
        let bar = self.bar.clone().filter(|_| side.is_none());
        Self { format: self.format, bar, device: self.device.clone(), side, state: Mutex::default() }
    }

    /// One line for people.
    pub fn line(&self, text: &str) {
        let of = self.device.iter().map(String::as_str).chain(self.side.map(Side::as_str));
        let text = lang::say(text);
        let text = printable(&of.chain([text.as_ref()]).collect::<Vec<_>>().join("  "));
        if let Some(bar) = &self.bar {
            bar.println(text);
        } else {
            let _ = writeln!(std::io::stderr(), "{text}");
        }
    }

    /// Files go to a device: their rate and the time left, at most twice a second on a terminal and every ten seconds elsewhere.
    pub fn sending(&self, file: &str, sent: u64, all: u64) {
        let mut state = self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let now = Instant::now();
        let sending = state.sending.get_or_insert(Sending { begun: now, shown: now, first: sent });
        let every = Duration::from_millis(if self.bar.is_some() { 500 } else { 10_000 });
        let (spent, due) = (now - sending.begun, now - sending.shown >= every);
        if due {
            sending.shown = now;
            let rate = (sent - sending.first.min(sent)) as f64 / spent.as_secs_f64().max(1e-3);
            let left = Duration::from_secs(((all - sent.min(all)) as f64 / rate.max(1.0)) as u64);
            let gb = |bytes: u64| bytes as f64 / 1e9;
            let left = humantime::format_duration(left);
            let words = format!("sending {file}: {:.2} of {:.2} GB, {:.0} MB/s, {left} left", gb(sent), gb(all), rate / 1e6);
            match (&self.bar, self.format) {
                (Some(bar), _) => bar.set_message(printable(&lang::say(&words))),
                (None, Format::Human) => self.line(&words),
                (None, Format::Json) => {}
            }
        }
        if sent >= all {
            state.sending = None;
        }
    }

    fn human(&self, event: &Event) {
        let mut state = self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match event {
            Event::RunBegin { scenario, segment, folder, .. } => {
                let again = if *segment > 0 { format!(" (resumed, segment {segment})") } else { String::new() };
                self.line(&format!("{scenario}{again}: results in {folder}"));
            }
            Event::Ready { cells, launches, done, emulated } => {
                (state.total, state.done) = (*launches, *done);
                if let Some(bar) = &self.bar {
                    bar.set_length(*launches as u64);
                    bar.set_position(*done as u64);
                }
                let before = if *done > 0 { format!(", {done} of them done") } else { String::new() };
                self.line(&format!("{} to measure, {}{before}", count(*cells, "cell"), count(*launches, "launch")));
                if *emulated > 0 {
                    self.line(&format!("{emulated} of them on an emulated NPU: their times say nothing about a device"));
                }
            }
            Event::Preparing { what } => {
                if let Some(bar) = &self.bar {
                    bar.set_message(lang::say(&format!("making {what}")).into_owned());
                }
            }
            Event::Prepared { what, seconds, cached } => {
                if !cached {
                    self.line(&format!("made {what} in {seconds:.1} s"));
                }
            }
            Event::CellSkipped { cell, reason } => self.line(&format!("skipped  {cell}: {reason}")),
            Event::CellFailed { cell, failure } => self.line(&format!("failed   {cell}: {failure}")),
            Event::BlockBegin { .. } | Event::CellDone { .. } => {}
            Event::SettleBegin { lacks, .. } => {
                let words = format!("waiting for the device: {}", lacks.join("; "));
                match &self.bar {
                    Some(bar) => bar.set_message(printable(&lang::say(&words))),
                    None => self.line(&words),
                }
            }
            Event::Settled { seconds, why, lacks, .. } => match why {
                Some(why) => self.line(&format!("the device is not as asked after {seconds:.0} s ({why}): {}", lacks.join("; "))),
                None if *seconds >= 1.0 => self.line(&format!("the device is ready after {seconds:.0} s")),
                None => {}
            },
            Event::LaunchBegin { cell, pass, .. } => {
                if let Some(bar) = &self.bar {
                    bar.set_message(format!("{cell} ({pass})"));
                }
            }
            Event::LaunchEnd { cell, pass, launch, status, failure, ttft_ms, decode_tok_s, composed, reported, .. } => {
                state.done += 1;
                if let Some(bar) = &self.bar {
                    bar.set_position(state.done as u64);
                }
                let figure = |value: &Option<f64>, unit: &str| value.map_or_else(|| format!("- {unit}"), |v| format!("{v:.1} {unit}"));
                let words = if let Some(f) = failure {
                    format!("{f}{}", f.hint.as_ref().map(|h| format!(" -> {h}")).unwrap_or_default())
                } else if *pass == Pass::Soak {
                    "its windows are in soak.csv".to_owned()
                } else {
                    let method = match (*composed, *reported) {
                        (true, _) => " (composed from graph times: an upper bound)",
                        (_, true) => " (as the runtime reports it)",
                        _ => "",
                    };
                    format!("TTFT {}, decode {}{method}", figure(ttft_ms, "ms"), figure(decode_tok_s, "tok/s"))
                };
                let total = if self.bar.is_some() { String::new() } else { format!("[{}/{}] ", state.done, state.total) };
                self.line(&format!("{total}{:<10} {cell} {pass} {launch}: {words}", status.as_str()));
            }
            Event::Ask { text } => self.line(&format!(">>> {text}")),
            Event::SoakSkipped { cell, reason, .. } => self.line(&format!("no soak  {cell}: {reason}")),
            Event::Warning { text } => self.line(&format!("warning: {text}")),
            Event::Interrupted { by } => self.line(&format!("interrupted by {by}; what was measured is kept")),
            Event::RunEnd { ok, failed, skipped, unverified } => {
                if let Some(bar) = &self.bar {
                    bar.finish_and_clear();
                }
                self.line(&format!("{} measured, {failed} failed, {unverified} unverified, {skipped} skipped", count(*ok, "cell")));
            }
        }
    }
}

impl Sink for Console {
    fn emit(&self, event: &Event) {
        match self.format {
            Format::Human => self.human(event),
            Format::Json => {
                let Ok(mut value) = serde_json::to_value(event) else { return };
                if let (Some(device), Some(object)) = (&self.device, value.as_object_mut()) {
                    object.insert("device".to_owned(), device.clone().into());
                }
                if let (Some(side), Some(object)) = (self.side, value.as_object_mut()) {
                    object.insert("side".to_owned(), side.as_str().into());
                }
                let _ = writeln!(std::io::stdout(), "{value}");
            }
        }
    }
}
