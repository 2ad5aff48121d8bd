//! Drawings: numbers in, SVG text out. plotters does the coordinates and the SVG; ticks, colours and the frame are ours.

mod axis;
mod bars;
mod canvas;
mod curves;
mod palette;
mod ratios;
mod strips;

pub use bars::{Bar, bars};
pub use curves::{Curve, Plot, curves};
pub use palette::{PALETTE, PARTS, PHASES, Swatch, VERDICTS, line_svg, phase_svg, swatch_svg};
pub use ratios::{Point, ratios};
pub use strips::{Line, Span, Strip, strips};
