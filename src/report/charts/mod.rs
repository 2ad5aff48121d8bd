//! Drawings: numbers in, SVG text out. plotters does the coordinates and the SVG; ticks, colours and the frame are ours.

mod axis;
mod bars;
mod canvas;
mod curves;
mod palette;

pub use bars::{Bar, bars};
pub use curves::{Curve, Plot, curves};
pub use palette::{PALETTE, Swatch, line_svg, swatch_svg};
