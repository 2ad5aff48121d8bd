//! Memory of a launch: its peak (rule R22), what it was after each phase, and whether it grows. Pure, of the agent's evidence, its telemetry and the
//! runner's time stamps.
//!
//! The runner's tokens are no events that the agent could follow: our runners write them after a query, so that writing costs the query nothing.
//! Hence memory after prefill and at the end is the sample of the agent's that fell into the decode of a query, by the device's common clock.

use bench_agent::spec::{Done, Footprint};
use bench_backend_api::{Parsed, Query};

use crate::{
    analysis::{self, Growth},
    results::launches::Shared,
};

/// Distinct dma-bufs + anonymous + shared memory.
pub const WITH_DMABUF: &str = "dmabuf+anon+shmem";
/// Where dma-bufs could not be read.
pub const WITHOUT_DMABUF: &str = "anon+shmem";
/// The sum of RSS, mapped files included: agents before this figure was known, and kernels that don't split RSS.
pub const RSS: &str = "rss";
/// Added to a method whose sum has the GPU driver's own memory in it.
const WITH_GPU: &str = "+kgsl";

/// The names of the figures of `Memory` that stand in the tables beside the peak.
pub const FIGURES: [&str; 11] = [
    "mem_load_mb",
    "mem_prefill_mb",
    "mem_end_mb",
    "pss_load_mb",
    "pss_end_mb",
    "dmabuf_mb",
    "mapped_file_mb",
    "swap_mb",
    "gpu_mem_mb",
    "mem_available_min_mb",
    "mem_growth_mb_per_h",
];

/// The memory figures of a launch, in 10^6 bytes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Memory {
    /// The peak.
    pub peak_mb: Option<f64>,
    /// What is summed in it, and in the figures after phases.
    pub method: Option<String>,
    /// Growth after the first query, in MB per hour.
    pub growth: Option<Growth>,
    figures: [Option<f64>; FIGURES.len()],
    /// Figure and reason.
    pub absent: Vec<(&'static str, String)>,
}
impl Memory {
    /// A figure by its name.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.figures[FIGURES.iter().position(|figure| *figure == name)?]
    }

    fn put(&mut self, name: &'static str, value: Result<f64, String>) {
        match value {
            Ok(value) => self.figures[FIGURES.iter().position(|figure| *figure == name).unwrap_or_default()] = Some(value),
            Err(why) => self.absent.push((name, why)),
        }
    }
}

/// Why a figure of a whole process is absent where cells shared it.
pub const SHARED: &str = "shared launch";

/// Of a process that cells shared: what only the first of them has, what its agent tells of the whole process, and what nobody can split.
const OF_THE_FIRST: [&str; 2] = ["load_ms", "load_cold_ms"];
const OF_THE_WHOLE: [&str; 5] = ["pss_end_mb", "dmabuf_mb", "mapped_file_mb", "swap_mb", "gpu_mem_mb"];
const OF_NOBODY: [&str; 2] = ["vm_hwm_mb", "cpu_s"];

impl Memory {
    /// What of these figures is one cell's in a process that answered the queries of several: for the first cell everything is until its queries were done
    /// as if it had been alone; what comes after finds the memory of those before it.
    pub fn of_part<'a>(&mut self, shared: &Shared, steps: &(impl Iterator<Item = &'a Done> + Clone), trace: &Trace) {
        let first = shared.place == 0;
        let lacking: Vec<&'static str> = if first {
            OF_THE_WHOLE.to_vec()
        } else {
            self.growth = None;
            FIGURES.into_iter().chain(OF_THE_FIRST).collect()
        };
        let (_, end_ns) = shared.window_ns;
        let largest = steps.clone().filter_map(|done| done.memory.as_ref()).max_by_key(|memory| memory.peak.total_kb());
        // The agent's peak, or where that came later, the highest of its samples until then.
        let peak = largest.filter(|_| first).and_then(|memory| {
            let sampled = trace.sums(memory.peak.dmabuf_kb.is_some()).into_iter().map(|(_, mb)| mb);
            let points = memory.points.iter().map(|point| &point.now);
            let until = points.chain([&memory.peak]).filter(|now| now.t_ns < end_ns).map(|now| mb(now.total_kb()));
            sampled.chain(until).reduce(f64::max)
        });
        // The look after the load may come when the queries of a quick cell are done: it is of the load all the same.
        let loaded = self.get("mem_load_mb").unwrap_or(0.0);
        self.peak_mb = peak.map(|peak| peak.max(loaded));
        self.method = self.method.take().filter(|_| peak.is_some());
        let lacking: Vec<&'static str> = peak.is_none().then_some("peak_mem_mb").into_iter().chain(lacking).chain(OF_NOBODY).collect();
        for name in &lacking {
            if let Some(place) = FIGURES.iter().position(|figure| figure == name) {
                self.figures[place] = None;
            }
        }
        self.absent.retain(|(name, _)| !lacking.contains(name));
        self.absent.extend(lacking.into_iter().map(|name| (name, SHARED.to_owned())));
    }
}

fn mb(kb: u64) -> f64 {
    kb as f64 * 1024.0 / 1e6
}

/// What of a launch's telemetry.csv is about memory.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trace {
    /// Time in ns and `RssAnon`, then `RssShmem`, KiB.
    anon: Vec<(u64, f64)>,
    shmem: Vec<(u64, f64)>,
    /// Distinct dma-bufs, then what the GPU's driver has beside all others, KiB.
    dmabuf: Vec<(u64, f64)>,
    gpu_apart: Vec<(u64, f64)>,
    available_min_kb: Option<f64>,
}
impl Trace {
    /// Takes a row: `t_ns,source,name,value`.
    pub fn add(&mut self, t_ns: u64, source: &str, name: &str, value: f64) {
        match (source, name) {
            ("process", "anon_kb") => self.anon.push((t_ns, value)),
            ("process", "shmem_kb") => self.shmem.push((t_ns, value)),
            ("process", "dmabuf_kb") => self.dmabuf.push((t_ns, value)),
            ("process", "gpu_apart_kb") => self.gpu_apart.push((t_ns, value)),
            ("meminfo", "mem_available_kb") => self.available_min_kb = Some(self.available_min_kb.map_or(value, |least| least.min(value))),
            _ => {}
        }
    }

    /// Time in ns and the sum of rule R22 in 10^6 bytes.
    fn sums(&self, with_dmabuf: bool) -> Vec<(u64, f64)> {
        if self.anon.is_empty() || self.shmem.is_empty() {
            return Vec::new();
        }
        // Both are of the same rounds of the agent, but a soak keeps changes alone: then one has a row where the other stands as it was.
        let mut times: Vec<u64> = self.anon.iter().chain(&self.shmem).map(|(t, _)| *t).collect();
        times.sort_unstable();
        times.dedup();
        let slow = |t_ns: u64| held(&self.gpu_apart, t_ns) + if with_dmabuf { held(&self.dmabuf, t_ns) } else { 0.0 };
        let sum = |t_ns: u64| (held(&self.anon, t_ns) + held(&self.shmem, t_ns) + slow(t_ns)) * 1024.0 / 1e6;
        times.into_iter().map(|t_ns| (t_ns, sum(t_ns))).collect()
    }
}

/// A series that is read less often: between two readings the last one stands, before the first one that. 0 where there is none.
fn held(series: &[(u64, f64)], t_ns: u64) -> f64 {
    let after = series.partition_point(|(t, _)| *t <= t_ns);
    series.get(after.saturating_sub(1)).map_or(0.0, |(_, value)| *value)
}

/// The memory figures of a launch.
pub fn memory<'a>(parsed: &Parsed, steps: &(impl Iterator<Item = &'a Done> + Clone), trace: &Trace, warmup: u32) -> Memory {
    let mut m = Memory::default();
    let largest = steps.clone().filter_map(|done| done.memory.as_ref()).max_by_key(|memory| memory.peak.total_kb());
    let with_dmabuf = largest.is_some_and(|memory| memory.peak.dmabuf_kb.is_some());
    if let Some(memory) = largest {
        m.peak_mb = Some(mb(memory.peak.total_kb()));
        m.method = Some(method(&memory.peak));
    } else {
        m.peak_mb = steps.clone().filter_map(|done| done.peak_rss_kb).max().map(mb);
        m.method = m.peak_mb.map(|_| RSS.to_owned());
    }
    let Some(largest) = largest else {
        let why = if m.peak_mb.is_some() { "the agent or the kernel does not tell memory by kind" } else { "no sampling" };
        m.absent.extend(
            FIGURES.iter().filter(|name| !name.starts_with("pss") && **name != "mem_available_min_mb").map(|name| (*name, why.to_owned())),
        );
        readings(&mut m, steps, trace);
        return m;
    };
    let memories = || steps.clone().filter_map(|done| done.memory.as_ref());
    m.put("mapped_file_mb", Ok(memories().map(|memory| memory.file_max_kb).max().map_or(0.0, mb)));
    m.put("swap_mb", Ok(memories().map(|memory| memory.swap_max_kb).max().map_or(0.0, mb)));
    let or_why = |kb: Option<u64>, why: &Option<String>| kb.map(mb).ok_or_else(|| why.clone().unwrap_or_else(|| "not read".to_owned()));
    m.put("dmabuf_mb", or_why(memories().filter_map(|memory| memory.dmabuf_max_kb).max(), &largest.dmabuf_absent));
    m.put("gpu_mem_mb", or_why(memories().filter_map(|memory| memory.gpu_max_kb).max(), &largest.gpu_absent));

    let point = memories().flat_map(|memory| &memory.points).find(|point| point.at == "load_end");
    m.put("mem_load_mb", point.map(|point| mb(point.now.total_kb())).ok_or_else(|| "the program tells no end of loading".to_owned()));
    let sums = trace.sums(with_dmabuf);
    let timed: Vec<&Query> = parsed.queries.iter().filter(|query| query.aggregate_n.is_none() && !query.tokens.is_empty()).collect();
    let at = |value: Option<f64>| {
        let why = if timed.is_empty() { "the tool gives no time for each token" } else { "no sample fell into the decode of a query" };
        value.ok_or_else(|| why.to_owned())
    };
    let warm = || timed.iter().copied().filter(|query| query.query >= warmup);
    m.put("mem_prefill_mb", at(warm().find_map(|query| in_decode(&sums, query).next())));
    m.put("mem_end_mb", at(timed.last().and_then(|query| in_decode(&sums, query).next_back())));
    match grown(&sums, parsed, warm().next(), timed.last().copied()) {
        Ok(growth) => {
            m.put("mem_growth_mb_per_h", Ok(growth.per_h));
            m.growth = Some(growth);
        }
        Err(why) => m.put("mem_growth_mb_per_h", Err(why)),
    }
    readings(&mut m, steps, trace);
    m
}

fn method(peak: &Footprint) -> String {
    let sum = if peak.dmabuf_kb.is_some() { WITH_DMABUF } else { WITHOUT_DMABUF };
    format!("{sum}{}", if peak.gpu_apart_kb.is_some() { WITH_GPU } else { "" })
}

/// What needs no split of RSS.
fn readings<'a>(m: &mut Memory, steps: &(impl Iterator<Item = &'a Done> + Clone), trace: &Trace) {
    for (name, at) in [("pss_load_mb", "load_end"), ("pss_end_mb", "end")] {
        let kb = steps.clone().flat_map(|done| &done.pss).find(|sample| sample.at == at).map(|sample| sample.kb);
        m.put(name, kb.map(mb).ok_or_else(|| format!("no PSS at the program's event {at}")));
    }
    let available = trace.available_min_kb.map(|kb| kb * 1024.0 / 1e6);
    m.put("mem_available_min_mb", available.ok_or_else(|| "MemAvailable was not sampled".to_owned()));
}

/// The sums from the first to the last token of a query.
fn in_decode<'a>(sums: &'a [(u64, f64)], query: &Query) -> impl DoubleEndedIterator<Item = f64> + use<'a> {
    let (first, last) = (query.tokens.first().map_or(u64::MAX, |t| t.t_ns), query.tokens.last().map_or(0, |t| t.t_ns));
    sums.iter().filter(move |(t, _)| (first..=last).contains(t)).map(|(_, mb)| *mb)
}

/// Growth from the first measured query on (the discarded one allocates what all of them use), or from the end of loading, to the last token.
fn grown(sums: &[(u64, f64)], parsed: &Parsed, warm: Option<&Query>, last: Option<&Query>) -> Result<Growth, String> {
    if last.is_none() {
        return Err("the tool gives no time for each token".to_owned());
    }
    let from = warm.map(|query| query.start_ns).or(parsed.load_ns.map(|(_, end)| end)).unwrap_or(u64::MAX);
    let to = last.and_then(|query| query.tokens.last()).map_or(0, |token| token.t_ns);
    let points: Vec<(f64, f64)> =
        sums.iter().filter(|(t, _)| (from..=to).contains(t)).map(|(t, mb)| ((t - from) as f64 / 1e9, *mb)).collect();
    analysis::growth(&points).map_err(|why| why.to_string())
}

#[cfg(test)]
mod tests;
