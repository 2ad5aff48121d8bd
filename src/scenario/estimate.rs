//! How long a plan takes: expected, and at worst. Pure arithmetic over stated assumptions, to warn of a week before it begins.

use std::time::Duration;

use bench_backend_api::{Backend, Cell, Quant};

use super::{
    checked::{Order, Profile},
    parameters::Parameters,
    plan::Plan,
};

/// What an estimate assumes of each launch. Rough on purpose: a factor of two is fine, an unnoticed factor of a hundred is not.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Assumptions {
    /// Staging, process start and set-up of graphs, in seconds a launch. On a PC most of it is the interpreter and the libraries.
    pub launch_s: f64,
    /// Speed of loading weights, in bytes a second.
    pub load_bytes_per_s: f64,
    /// Cost of a decode step beside its weights, in seconds.
    pub step_s: f64,
    /// Speed of reading weights in a decode step or a prefill chunk, in bytes a second.
    pub read_bytes_per_s: f64,
    /// Weights of a model whose geometry the scenario does not tell, in parameters.
    pub unknown_parameters: f64,
    /// How much longer a profiled launch takes.
    pub profile_factor: f64,
    /// Time after the time-out by which the agent has ended the process group, in seconds.
    pub grace_s: f64,
}
impl Default for Assumptions {
    /// A PC with an emulated NPU, where a token of the tiny model takes 20 to 40 ms and a launch about 2 s.
    fn default() -> Self {
        Self {
            launch_s: 0.5,
            load_bytes_per_s: 0.5e9,
            step_s: 0.03,
            read_bytes_per_s: 10e9,
            unknown_parameters: 3e9,
            profile_factor: 2.0,
            grace_s: 10.0,
        }
    }
}

/// Wall time of a plan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// If all goes well. With `until-ci`, cells are taken to end half way between their fewest and most launches.
    pub expected: Duration,
    /// If every launch of the longest plan hits its time-out (one that cells share: that of all of them) and grace, its steps together, and no wait before a block ends sooner. A budget ends it after the block, or the
    /// profiling launch, in which it is spent; every `--resume` has the whole budget again.
    pub worst: Duration,
    /// Launches of the longest plan.
    pub launches: u64,
    /// Cells that are measured.
    pub cells: usize,
    /// Soaks, each of one launch.
    pub soaks: usize,
}

impl Estimate {
    /// Of two plans, one after the other.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            expected: self.expected + other.expected,
            worst: self.worst + other.worst,
            launches: self.launches + other.launches,
            cells: self.cells + other.cells,
            soaks: self.soaks + other.soaks,
        }
    }
}

/// Wall time of a plan, without making artifacts or installing runtimes.
pub fn estimate(plan: &Plan, backends: &[&dyn Backend], assume: &Assumptions) -> Estimate {
    let m = &plan.measure;
    let runnable = plan.runnable();
    let layers = |i: &usize| backends.iter().any(|b| b.id() == plan.cells[*i].cell.backend && b.describe().layers);
    let profiled: Vec<usize> = if m.profile == Profile::Layers { runnable.iter().copied().filter(layers).collect() } else { Vec::new() };
    let (min, max) = (f64::from(m.repetitions_min), f64::from(m.repetitions_max));
    let likely = if m.until_ci.is_some() { f64::midpoint(min, max) } else { max };
    let cells = runnable.len() as f64;
    let groups = plan.groups();

    // A launch that cells share may take the time of all of them.
    let longest_of = |cells: usize| cells as f64 * m.timeout_ms as f64 / 1e3 + assume.grace_s;
    let longest_launch = longest_of(1);
    let launches = groups.len() as f64 * max + profiled.len() as f64;
    let longest_groups = groups.iter().map(|group| longest_of(group.len()));
    let block = if m.order == Order::Interleaved { longest_groups.sum() } else { max * longest_groups.fold(longest_launch, f64::max) };
    let budget = m.budget_ms.map_or(f64::INFINITY, |b| b as f64 / 1e3);
    // After that time in its launches a cell gets no more than the fewest of them.
    let cap = m.max_time_ms.map_or(f64::INFINITY, |ms| ms as f64 / 1e3);
    let of_cell = |launches: f64, each: f64| (launches * each).min((min * each).max(cap + each));
    let each = |i: &usize| launch_s(&plan.cells[*i].cell, m.asked_queries(), assume);
    let once = |group: &Vec<usize>| (group.len() - 1) as f64 * launch_s(&plan.cells[group[0]].cell, 0, assume);
    let shared = |group: &Vec<usize>| group.iter().map(each).sum::<f64>() - once(group);
    let of_group = |group: &Vec<usize>, launches: f64, launch: f64| {
        let cells = group.len() as f64;
        cells * of_cell(launches, launch / cells)
    };
    let measured: f64 = groups.iter().map(|group| of_group(group, likely, shared(group))).sum();
    let expected = (measured + profiled.iter().map(each).sum::<f64>() * assume.profile_factor).min(budget);
    // A device that is never ready is waited for before each block, for the whole time-out.
    let settle = plan.settle.as_ref().map_or(0.0, |s| s.timeout_ms as f64 / 1e3);
    let blocks = if m.order == Order::Interleaved { max } else { groups.len() as f64 };
    let longest: f64 = groups.iter().map(|group| of_group(group, max, longest_of(group.len()))).sum();
    // One that cells share may hang for all of them, and then each is launched alone.
    let hung: f64 = groups.iter().filter(|group| group.len() > 1).map(|group| longest_of(group.len())).sum();
    let longest = longest + hung + profiled.len() as f64 * longest_launch;
    let worst = (longest + blocks * settle).min(budget + settle + block);
    // The budget is the measurement's: a soak has a duration of its own, after the time that its load may take.
    let soaks = plan.soaked().len();
    let ms = plan.soak.as_ref().map_or(0, |s| s.duration_ms + s.cool_down_ms);
    let soaking = soaks as f64 * ms as f64 / 1e3;
    // Before the first launch, and in the first one of each cell.
    let idle = plan.power.as_ref().map_or(0.0, |p| p.baseline_ms as f64 / 1e3) * (cells + 1.0);
    let (expected, worst) = (expected + idle, worst + idle);
    let (expected, worst) = (expected + soaking + soaks as f64 * assume.launch_s, worst + soaking + soaks as f64 * longest_launch);
    Estimate { expected: seconds(expected), worst: seconds(worst), launches: launches as u64, cells: runnable.len(), soaks }
}

fn seconds(s: f64) -> Duration {
    Duration::try_from_secs_f64(s).unwrap_or(Duration::MAX)
}

fn launch_s(cell: &Cell, queries: u32, assume: &Assumptions) -> f64 {
    let parameters = cell.model.geometry.as_ref().and_then(|g| Parameters::of(g).ok()).map_or(assume.unknown_parameters, |p| p.total());
    let bytes = parameters * bits(cell.quant) / 8.0;
    let step = assume.step_s + bytes / assume.read_bytes_per_s;
    let chunks = f64::from(cell.workload.prompt_tokens().div_ceil(cell.model.usual_chunk().max(1)));
    let steps = f64::from(cell.workload.gen_tokens().saturating_sub(1));
    assume.launch_s + bytes / assume.load_bytes_per_s + f64::from(queries) * (chunks + steps) * step
}

/// Bits of a weight, its share of the scales included.
pub const fn bits(quant: Quant) -> f64 {
    match quant {
        Quant::Fp32 => 32.0,
        Quant::Fp16 | Quant::Bf16 => 16.0,
        Quant::W8 | Quant::W8a16 | Quant::W8a8 | Quant::Q8_0 => 8.0,
        Quant::W4 | Quant::W4a16 | Quant::W4a8 | Quant::Q4_0 | Quant::Q4KM => 4.5,
    }
}
