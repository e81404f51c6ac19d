//! What a tool has to say beside its result.

use std::fmt::Arguments;

/// Where warnings and details go.
pub trait Notices {
    /// Something that the user did not expect.
    fn warn(&self, text: Arguments<'_>);

    /// A decision and its reason.
    fn detail(&self, text: Arguments<'_>);
}
