//! The version of the running kernel, and the versions that corrupt data.

/// The kernel's version as the running kernel tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelVersion {
    pub release: String,
    /// Upstream's major, minor and patch.
    pub number: Option<(u32, u32, u32)>,
}

impl KernelVersion {
    pub fn running() -> KernelVersion {
        // SAFETY: utsname is plain bytes, for which zeroes are valid.
        let mut name: libc::utsname = unsafe { std::mem::zeroed() };
        // SAFETY: `name` is a live, writable local.
        if unsafe { libc::uname(&mut name) } != 0 {
            return KernelVersion { release: String::new(), number: None };
        }
        let text = |field: &[libc::c_char]| -> String {
            field.iter().take_while(|c| **c != 0).map(|c| *c as u8 as char).collect()
        };
        KernelVersion::parse(&text(&name.release), &text(&name.version))
    }

    /// Debian's release (`6.1.0-14-amd64`) hides upstream's patch number; its build text
    /// (`#1 SMP Debian 6.1.64-1 (2023-11-30)`) has it.
    pub fn parse(release: &str, build: &str) -> KernelVersion {
        let from_build = build
            .split_once("Debian ")
            .and_then(|(_, rest)| rest.split(|c: char| c == '-' || c.is_whitespace()).next())
            .and_then(three_numbers);
        KernelVersion {
            release: release.to_owned(),
            number: from_build.or_else(|| three_numbers(release)),
        }
    }

    /// 6.1.64 and 6.1.65 lose the file position of a direct append on ext4 and so overwrite data
    /// (Debian bug 1057843).
    pub fn ext4_direct_write_corruption(&self) -> Option<String> {
        match self.number {
            Some((6, 1, patch @ (64 | 65))) => Some(format!(
                "kernel 6.1.{patch} ({}) corrupts ext4 files that are written with direct I/O \
                 (Debian bug 1057843)",
                self.release
            )),
            _ => None,
        }
    }
}

fn three_numbers(text: &str) -> Option<(u32, u32, u32)> {
    let mut numbers =
        text.split(|c: char| !c.is_ascii_digit()).map_while(|part| part.parse::<u32>().ok());
    Some((numbers.next()?, numbers.next()?, numbers.next().unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the corrupting kernels are recognised as upstream and as Debian name them.
    #[test]
    fn corrupting_kernels() {
        let corrupts = |release, build| {
            KernelVersion::parse(release, build).ext4_direct_write_corruption().is_some()
        };
        assert!(corrupts("6.1.64", "#1 SMP PREEMPT_DYNAMIC"));
        assert!(corrupts("6.1.0-14-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.64-1 (2023-11-30)"));
        assert!(corrupts("6.1.65-generic", ""));
        assert!(!corrupts("6.1.0-15-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.66-1 (2023-12-09)"));
        assert!(!corrupts("6.1.66", ""));
        assert!(!corrupts("6.6.64", ""));
        assert!(!corrupts("strange", ""));
    }
}
