//! What becomes of texts before indexes have them, and before they are compared with what is asked.

mod sasi;
mod text;
mod words;

pub use sasi::{Analyzer, Case, Matching, Mode, Sasi, SasiRefusal};
pub use text::TextAnalysis;
