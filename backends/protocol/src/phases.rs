//! Parts of a load and of a query, and the clock of a runner's own loop.

use std::io::Write;

use crate::{Event, EventWriter, Reported, monotonic_ns};

/// A part of a load or of a query. What a runner can't tell apart is one part under the name that fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Loading: files are read, where that is a step of its own.
    Read,
    /// Loading: the framework's library comes into the process.
    Library,
    /// Loading: devices, environments, configurations.
    Init,
    /// Loading: the runtime makes the model ready in one call (reading, compiling or deserialising, initialising).
    Prepare,
    /// Loading: buffers and KV caches.
    Allocate,
    /// Text or data are made into what the next phase takes.
    Preprocess,
    /// Text becomes token ids.
    Tokenise,
    /// Inputs and KV are written to where the graph reads them (host to device).
    H2d,
    /// The graph runs, with what the runtime copies inside that call.
    Execute,
    /// Outputs are read back (device to host).
    D2h,
    /// A token is chosen from the logits.
    Sample,
    /// Token ids become text.
    Detokenise,
    /// What is done with the result.
    Postprocess,
}

impl Phase {
    /// All of them, in the order of the declaration.
    pub const ALL: [Self; 13] = [
        Self::Read,
        Self::Library,
        Self::Init,
        Self::Prepare,
        Self::Allocate,
        Self::Preprocess,
        Self::Tokenise,
        Self::H2d,
        Self::Execute,
        Self::D2h,
        Self::Sample,
        Self::Detokenise,
        Self::Postprocess,
    ];

    /// The word in events.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Library => "library",
            Self::Read => "read",
            Self::Prepare => "prepare",
            Self::Init => "init",
            Self::Allocate => "allocate",
            Self::Preprocess => "preprocess",
            Self::Tokenise => "tokenise",
            Self::H2d => "h2d",
            Self::Execute => "execute",
            Self::D2h => "d2h",
            Self::Sample => "sample",
            Self::Detokenise => "detokenise",
            Self::Postprocess => "postprocess",
        }
    }
}

/// The parts of a load: each is the time since the one before.
#[derive(Debug)]
pub struct LoadLaps {
    last_ns: u64,
}

impl LoadLaps {
    /// Loading began at `t_ns`.
    pub fn new(t_ns: u64) -> Self {
        Self { last_ns: t_ns }
    }

    /// The time since the last part, up to now, is this one.
    pub fn over(&mut self, phase: Phase) -> [Event; 2] {
        let begin = std::mem::replace(&mut self.last_ns, monotonic_ns());
        span(phase, None, None, (begin, self.last_ns))
    }
}

fn span(phase: Phase, query: Option<u32>, i: Option<u32>, (begin, end): (u64, u64)) -> [Event; 2] {
    let phase = phase.as_str().to_owned();
    [Event::PhaseBegin { t_ns: begin, phase: phase.clone(), query, i }, Event::PhaseEnd { t_ns: end, phase, query }]
}

/// What one query spends its time on, from its submission on: each stretch up to a moment belongs to a phase, so that nothing lies between
/// two of them but what is skipped. Sums cost one addition a stretch; single stretches are kept where they are asked for, and written when the query is over.
#[derive(Debug)]
pub struct Laps {
    query: u32,
    last_ns: u64,
    token: u32,
    sums: [[u64; Phase::ALL.len()]; 2],
    spans: Option<Vec<(Phase, u32, u64, u64)>>,
}

impl Laps {
    /// The query was submitted at `t_ns`. `spans` = keep that many single stretches without asking for memory; `None` = sums only.
    pub fn new(query: u32, t_ns: u64, spans: Option<usize>) -> Self {
        Self { query, last_ns: t_ns, token: 0, sums: [[0; Phase::ALL.len()]; 2], spans: spans.map(Vec::with_capacity) }
    }

    /// The time since the last moment belongs to `phase`.
    pub fn until(&mut self, phase: Phase, t_ns: u64) {
        let decode = usize::from(self.token > 0);
        self.sums[decode][phase as usize] += t_ns.saturating_sub(self.last_ns);
        if let Some(spans) = &mut self.spans {
            spans.push((phase, self.token, self.last_ns, t_ns));
        }
        self.last_ns = t_ns;
    }

    /// The time since the last moment belongs to nothing.
    pub fn skip(&mut self, t_ns: u64) {
        self.last_ns = t_ns;
    }

    /// A token is there: what follows belongs to the next one.
    pub fn token(&mut self) {
        self.token += 1;
    }

    /// The sums, us: `prefill_<phase>_us` up to the first token, `decode_<phase>_us` behind it.
    pub fn sums(&self) -> Reported {
        let stages = ["prefill", "decode"].into_iter().zip(&self.sums);
        stages
            .flat_map(|(stage, sums)| Phase::ALL.iter().zip(sums).map(move |(phase, ns)| (stage, phase, *ns)))
            .filter(|(.., ns)| *ns > 0)
            .map(|(stage, phase, ns)| (format!("{stage}_{}_us", phase.as_str()), ns as f64 / 1e3))
            .collect()
    }

    /// Leaves the single stretches to the writer, for its next write.
    pub fn defer<W: Write>(&self, events: &mut EventWriter<W>) {
        for &(phase, token, begin, end) in self.spans.iter().flatten() {
            events.defer_all(span(phase, Some(self.query), Some(token), (begin, end)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_events;

    #[test]
    fn stretches_touch_and_sum_by_stage() {
        let mut laps = Laps::new(3, 400, Some(8));
        laps.skip(1_000);
        for (phase, t_ns) in [(Phase::H2d, 1_500), (Phase::Execute, 9_000), (Phase::Sample, 9_250)] {
            laps.until(phase, t_ns);
        }
        laps.token();
        for (phase, t_ns) in [(Phase::H2d, 9_350), (Phase::Execute, 10_350), (Phase::Sample, 10_400)] {
            laps.until(phase, t_ns);
        }
        let wanted = [
            ("decode_execute_us", 1.0),
            ("decode_h2d_us", 0.1),
            ("decode_sample_us", 0.05),
            ("prefill_execute_us", 7.5),
            ("prefill_h2d_us", 0.5),
            ("prefill_sample_us", 0.25),
        ];
        assert_eq!(laps.sums().iter().map(|(k, v)| (k.as_str(), *v)).collect::<Vec<_>>(), wanted);
        let path = std::env::temp_dir().join(format!("bench-laps-{}", std::process::id()));
        let mut events = EventWriter::create(&path).unwrap();
        laps.defer(&mut events);
        drop(events);
        let (events, warnings) = parse_events(&std::fs::read(&path).unwrap());
        std::fs::remove_file(path).unwrap();
        assert_eq!((events.len(), warnings.len()), (12, 0));
        assert_eq!(events[8], Event::PhaseBegin { t_ns: 9_350, phase: "execute".into(), query: Some(3), i: Some(1) });
        assert_eq!(events[9], Event::PhaseEnd { t_ns: 10_350, phase: "execute".into(), query: Some(3) });
    }

    #[test]
    fn sums_alone_keep_no_stretch() {
        let mut laps = Laps::new(0, 5, None);
        laps.until(Phase::Execute, 4);
        assert!(laps.sums().is_empty() && laps.spans.is_none(), "a clock that went backwards gives no time");
    }

    #[test]
    fn every_phase_has_its_place() {
        for (place, phase) in Phase::ALL.into_iter().enumerate() {
            assert_eq!(phase as usize, place);
        }
    }
}
