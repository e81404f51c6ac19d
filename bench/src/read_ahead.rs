//! The read-ahead of the device under a folder, set for a while.

use std::fs;
use std::path::Path;

use halcyon_oracle::Result;

use crate::machine::Device;
use crate::setting::Setting;

pub(crate) struct ReadAhead(Setting);

impl ReadAhead {
    pub(crate) fn of(folder: &Path) -> Result<ReadAhead> {
        let path = Device::of(folder)?.queue()?.join("read_ahead_kb");
        let before = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(ReadAhead(Setting::keep(path, before.trim().to_owned())?))
    }

    pub(crate) fn set(&self, kib: u64) -> Result<()> {
        self.0.set(&kib.to_string())
    }
}
