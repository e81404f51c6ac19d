//! What the machine is below a directory.

use std::path::Path;

use halcyon_io::device::{BlockDevice, FileSystem, direct_alignment};
use halcyon_io::startup::KernelVersion;

use super::facts::Machine;

/// `file` is one that lies in it: only of a file does the kernel say what direct I/O needs.
pub(super) fn look(directory: &Path, file: Option<&Path>) -> Machine {
    Machine {
        directory: directory.to_owned(),
        kernel: KernelVersion::running(),
        device: BlockDevice::under(directory),
        file_system: FileSystem::of(directory),
        alignment: file.and_then(direct_alignment),
    }
}
