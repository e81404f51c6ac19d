//! What of a device's free space compactions may fill.

/// `min_free_space_per_drive`, `max_space_usable_for_compactions_in_percentage`
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UsableSpace {
    /// Bytes that stay free.
    pub kept: u64,
    /// Of the others, from 0 to 1.
    pub share: f64,
}

impl UsableSpace {
    pub const ALL: UsableSpace = UsableSpace { kept: 0, share: 1.0 };

    /// The share of `free` bytes that compactions may use (`Directories.getAvailableSpaceForCompactions`).
    pub fn of(self, free: u64) -> u64 {
        (free.saturating_sub(self.kept) as f64 * self.share).round() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_not_used() {
        assert_eq!(UsableSpace::ALL.of(1 << 40), 1 << 40);
        let usable = UsableSpace { kept: 50, share: 0.95 };
        assert_eq!([0, 50, 150].map(|free| usable.of(free)), [0, 0, 95]);
        assert_eq!(UsableSpace { kept: 0, share: 0.0 }.of(1000), 0);
    }
}
