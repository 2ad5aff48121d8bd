//! Drawings: numbers in, SVG text out. plotters does the coordinates and the SVG; ticks, colours and the frame are ours.

mod axis;
mod bars;
mod canvas;
mod curves;
mod palette;
mod ratios;
mod roof;
mod spark;
mod stacks;
mod strips;

pub use bars::{Bar, bars};
pub use canvas::inside;
pub use curves::{Curve, Plot, curves};
pub use palette::{GUESTS, MODEL, PALETTE, PARTS, PHASES, STAGES, Swatch, VERDICTS, key_svg, line_svg, swatch_svg};
pub use ratios::{Point, ratios};
pub use roof::{Dot, roofline};
pub use spark::spark;
pub use stacks::{Ends, Piece, Stack, stacks};
pub use strips::{Line, Span, Strip, strips};
