//! `bench schema`.

use super::exit::Code;

pub fn main() -> anyhow::Result<Code> {
    super::print(&crate::scenario::schema())?;
    Ok(Code::Done)
}
