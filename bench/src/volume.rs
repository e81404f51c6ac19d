//! The volume that most users rent, in place of this machine's device: a quota of operations and bytes a second.
//!
//! The kernel's throttle (`blkio.throttle`) of the root cgroup, so that it holds for whatever uses the device: the kernel writes pages
//! back for everybody in no other group. It counts reads and writes apart; a rented volume counts them together.
//!
//! What is throttled waits before the kernel's tracer sees it issued.

use std::fs;
use std::path::Path;

use halcyon_oracle::Result;
use serde::{Deserialize, Serialize};

use crate::machine::{Device, write_back};
use crate::setting::Setting;

/// What a volume takes in a second.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Limits {
    operations: u64,
    mib: u64,
}

const THROTTLE: &str = "/sys/fs/cgroup/blkio/blkio.throttle";

/// Throttled until it is dropped.
pub(crate) struct Rented {
    _settings: Vec<Setting>,
}

impl Rented {
    pub(crate) const LIMITS: Limits = Limits { operations: 3000, mib: 125 };

    /// Of the device under a folder.
    pub(crate) fn under(folder: &Path) -> Result<Rented> {
        write_back();
        let Device { major, minor } = Device::of(folder)?.whole()?;
        let Limits { operations, mib } = Rented::LIMITS;
        let limits = [
            ("read_iops_device", operations),
            ("write_iops_device", operations),
            ("read_bps_device", mib << 20),
            ("write_bps_device", mib << 20),
        ];
        let mut settings = Vec::new();
        for (name, limit) in limits {
            let path = format!("{THROTTLE}.{name}");
            let now = fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))?;
            if !now.trim().is_empty() {
                return Err(format!("{path}: {} is set already", now.trim()).into());
            }
            let setting = Setting::keep(path.into(), format!("{major}:{minor} 0"))?;
            setting.set(&format!("{major}:{minor} {limit}"))?;
            settings.push(setting);
        }
        Ok(Rented { _settings: settings })
    }
}
