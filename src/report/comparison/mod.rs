//! The page of a comparison of two runs. What is compared and judged comes in as plain words and figures ([`Comparison`]): the report judges
//! nothing, and knows nothing of `gate`.

mod page;
#[cfg(test)]
mod tests;
mod view;

pub use page::write;
pub use view::{Change, Comparison, Difference, Keys, Refused, Row, Side, Table};
