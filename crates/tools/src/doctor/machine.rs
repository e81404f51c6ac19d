//! Facts about the machine and the device of a directory.

use std::path::Path;

use halcyon_io::KernelVersion;
use halcyon_io::device::{BlockDevice, FileSystem, direct_alignment};

use super::facts::Machine;

/// `file` is any file in the directory: the kernel reports the alignment of direct I/O for files only.
pub(super) fn examine(directory: &Path, file: Option<&Path>) -> Machine {
    Machine {
        directory: directory.to_owned(),
        kernel: KernelVersion::running(),
        device: BlockDevice::under(directory),
        file_system: FileSystem::of(directory),
        alignment: file.and_then(direct_alignment),
    }
}
