//! The block device and the file system under a directory, as /sys and /proc tell of them.
//!
//! Only looks: nothing is created, and no file is opened for writing. What the texts mean is a pure function of them
//! ([`BlockDevice::parse`], [`FileSystem::parse`]), so that devices can be made up in tests.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{mode::Alignment, probe, real};

/// What is below a directory: a disk, a partition's disk, or a device that maps to others.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BlockDevice {
    /// As in /sys/block: `nvme0n1`, `dm-0`.
    pub name: String,
    /// KiB that the kernel may read ahead of a buffered or mapped read.
    pub read_ahead_kib: Option<u64>,
    /// The I/O scheduler in force.
    pub scheduler: Option<String>,
    /// Whether the kernel believes that it has moving parts.
    pub rotational: Option<bool>,
    /// Bytes that the device reads and writes at once.
    pub block: Option<u64>,
}

impl BlockDevice {
    /// Of a directory without a block device of its own (tmpfs, overlay, a network's), none.
    pub fn under(directory: &Path) -> Option<BlockDevice> {
        let (major, minor) = numbers_of(directory)?;
        let block = fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).ok()?;
        // A partition's settings are those of the whole disk, the folder above.
        let disk = [block.as_path(), block.parent()?];
        let disk = disk.into_iter().find(|folder| folder.join("queue").is_dir())?;
        let name = disk.file_name()?.to_string_lossy();
        Some(BlockDevice::parse(&name, |file| {
            fs::read_to_string(disk.join("queue").join(file)).ok()
        }))
    }

    /// `text` gives what a file of `/sys/block/NAME/queue/` says.
    pub fn parse(name: &str, text: impl Fn(&str) -> Option<String>) -> BlockDevice {
        let word = |file: &str| text(file).map(|text| text.trim().to_owned());
        let number = |file: &str| word(file).and_then(|word| word.parse().ok());
        BlockDevice {
            name: name.to_owned(),
            read_ahead_kib: number("read_ahead_kb"),
            scheduler: word("scheduler").as_deref().and_then(active_scheduler).map(str::to_owned),
            rotational: number("rotational").map(|number| number != 0),
            block: number("logical_block_size"),
        }
    }

    /// What its settings are called in /sys.
    pub fn setting(&self, file: &str) -> PathBuf {
        Path::new("/sys/block").join(&self.name).join("queue").join(file)
    }

    /// `/dev/nvme0n1`; a `!` of /sys is a folder there.
    pub fn node(&self) -> String {
        format!("/dev/{}", self.name.replace('!', "/"))
    }

    /// A scheduler that sorts for moving heads, on a device without any.
    pub fn is_scheduled_in_vain(&self) -> bool {
        let simple = ["none", "noop", "mq-deadline", "deadline", "kyber"];
        let sorts = |name: &String| !simple.contains(&name.as_str());
        self.rotational == Some(false) && self.scheduler.as_ref().is_some_and(sorts)
    }
}

/// The word in brackets: `none [mq-deadline] kyber`; a lone word is the only one.
fn active_scheduler(text: &str) -> Option<&str> {
    match text.split_once('[') {
        Some((_, rest)) => rest.split_once(']').map(|(word, _)| word),
        None => (!text.is_empty() && !text.contains(' ')).then_some(text),
    }
}

/// Where a directory is mounted from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileSystem {
    /// `ext4`, `xfs`, `overlay`.
    pub kind: String,
    /// `/dev/nvme0n1p2`, or whatever a file system without a device says.
    pub source: String,
    pub mounted_at: String,
}

impl FileSystem {
    pub fn of(directory: &Path) -> Option<FileSystem> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        FileSystem::parse(&mounts, numbers_of(directory)?, &fs::canonicalize(directory).ok()?)
    }

    /// The mount of a device (and the longest path above the directory) in the text of `/proc/self/mountinfo`:
    ///
    /// ```text
    /// 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
    ///       device     place             any number   kind source
    /// ```
    pub fn parse(mounts: &str, device: (u32, u32), directory: &Path) -> Option<FileSystem> {
        let wanted = format!("{}:{}", device.0, device.1);
        let of_line = |line: &str| {
            let (mount, rest) = line.split_once(" - ")?;
            let mut fields = mount.split(' ').skip(2);
            let number = fields.next()?;
            let mounted_at = fields.nth(1)?.replace("\\040", " ");
            let mut rest = rest.split(' ');
            let found = FileSystem {
                kind: rest.next()?.to_owned(),
                source: rest.next()?.to_owned(),
                mounted_at,
            };
            (number == wanted && directory.starts_with(&found.mounted_at)).then_some(found)
        };
        mounts.lines().filter_map(of_line).max_by_key(|found| found.mounted_at.len())
    }
}

fn numbers_of(directory: &Path) -> Option<(u32, u32)> {
    let device = real::device_of(directory).ok()?;
    Some((libc::major(device), libc::minor(device)))
}

/// What direct I/O on a file needs. `None`: this kernel (before 6.1) does not say; an alignment of 0: not supported.
pub fn direct_alignment(file: &Path) -> Option<Alignment> {
    probe::dio_align(&fs::File::open(file).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the scheduler in force is read, not the first one.
    #[test]
    fn scheduler_in_brackets() {
        assert_eq!(active_scheduler("none [mq-deadline] kyber bfq"), Some("mq-deadline"));
        assert_eq!(active_scheduler("none"), Some("none"));
        assert_eq!(active_scheduler("none kyber"), None);
        assert_eq!(active_scheduler(""), None);
    }

    /// Proves that what /sys says is found, and that what it does not say is not made up.
    #[test]
    fn devices_are_read_from_texts() {
        let queue = |file: &str| {
            let text = match file {
                "read_ahead_kb" => "4096\n",
                "scheduler" => "none mq-deadline [bfq]\n",
                "rotational" => "0\n",
                "logical_block_size" => "512\n",
                _ => return None,
            };
            Some(text.to_owned())
        };
        let device = BlockDevice::parse("cciss!c0d0", queue);
        assert_eq!(device.read_ahead_kib, Some(4096));
        assert_eq!((device.rotational, device.block), (Some(false), Some(512)));
        assert!(device.is_scheduled_in_vain());
        assert_eq!(device.node(), "/dev/cciss/c0d0");
        assert_eq!(device.setting("scheduler"), Path::new("/sys/block/cciss!c0d0/queue/scheduler"));
        let silent = BlockDevice::parse("dm-0", |_| None);
        assert_eq!(silent, BlockDevice { name: "dm-0".into(), ..BlockDevice::default() });
        assert!(!silent.is_scheduled_in_vain());
    }

    /// Proves that the nearest mount of the device is taken, with optional fields or without.
    #[test]
    fn file_systems_are_read_from_mountinfo() {
        let mounts = "21 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n\
                      30 21 259:2 / /var/lib rw shared:1 master:2 - xfs /dev/nvme0n1p2 rw\n\
                      31 30 259:2 / /var/lib/my\\040data rw - xfs /dev/nvme0n1p2 rw\n\
                      nonsense\n";
        let of = |numbers, path: &str| {
            let found = FileSystem::parse(mounts, numbers, Path::new(path));
            found.map(|found| format!("{} {} {}", found.kind, found.source, found.mounted_at))
        };
        assert_eq!(of((254, 0), "/home/x").as_deref(), Some("ext4 /dev/vda /"));
        let nearest = of((259, 2), "/var/lib/my data/ks");
        assert_eq!(nearest.as_deref(), Some("xfs /dev/nvme0n1p2 /var/lib/my data"));
        assert_eq!(of((259, 2), "/var/lib/other").as_deref(), Some("xfs /dev/nvme0n1p2 /var/lib"));
        assert_eq!(of((8, 1), "/home"), None);
    }
}
