//! How modes are chosen, and the last resort at work.

use std::os::fd::AsRawFd;

use super::*;
use crate::{block_on, mode::Alignment};

fn abilities(direct: bool, uncached: bool, writes_refused: bool) -> Abilities {
    let alignment = Alignment { memory: 512, offset: 512 };
    Abilities {
        direct: if direct { Ok((alignment, "can".into())) } else { Err("no direct".into()) },
        uncached: if uncached { Ok("can".into()) } else { Err("no uncached".into()) },
        direct_writes_refused: writes_refused.then(|| "kernel corrupts".to_owned()),
    }
}

/// Proves the order direct, uncached, standard; that kernels which corrupt are only heeded when
/// writing; and that an explicit wish is granted or refused, never replaced.
#[test]
fn choices() {
    use AccessMode::{Auto, Direct, Standard, Uncached};
    let dir = Path::new("/data");
    let chosen = |abilities: Abilities, asked, writing| {
        abilities.choose(dir, asked, writing).map(|choice| (choice.mode, choice.drop_behind)).ok()
    };
    assert_eq!(chosen(abilities(true, true, false), Auto, true), Some((Direct, false)));
    assert_eq!(chosen(abilities(true, true, true), Auto, false), Some((Direct, false)));
    assert_eq!(chosen(abilities(true, true, true), Auto, true), Some((Uncached, false)));
    assert_eq!(chosen(abilities(true, false, true), Auto, true), Some((Standard, true)));
    assert_eq!(chosen(abilities(false, true, false), Auto, true), Some((Uncached, false)));
    assert_eq!(chosen(abilities(false, false, false), Auto, false), Some((Standard, true)));
    assert_eq!(chosen(abilities(true, true, false), Standard, false), Some((Standard, false)));
    assert_eq!(chosen(abilities(true, true, false), Uncached, false), Some((Uncached, false)));
    assert_eq!(chosen(abilities(false, true, false), Direct, false), None);
    assert_eq!(chosen(abilities(true, true, true), Direct, true), None);
    assert_eq!(chosen(abilities(true, false, false), Uncached, true), None);
    let refused = abilities(true, true, true).choose(dir, Direct, true).unwrap_err();
    assert!(refused.to_string().contains("kernel corrupts"), "{refused}");
}

/// Proves that created files get mode, owner and group of the one that was named, and that none is left where that cannot be.
#[test]
fn created_like_another() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
    let folder = std::env::temp_dir().join(format!("halcyon-like-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let theirs = folder.join("theirs");
    std::fs::write(&theirs, "theirs").unwrap();
    std::fs::set_permissions(&theirs, std::fs::Permissions::from_mode(0o604)).unwrap();
    // Only root can.
    let _ = chown(&theirs, Some(12345), Some(54321));
    let whose = |path: &Path| {
        let file = std::fs::metadata(path).unwrap();
        (file.uid(), file.gid(), file.mode() & 0o777)
    };
    let disk = Disk::real(DiskOptions::default());
    let (small, large) = (folder.join("small"), folder.join("large"));
    block_on(async {
        disk.create_like(&theirs).await.unwrap();
        disk.write_new(&small, b"x", Purpose::Flush).await.unwrap();
        let writer = disk.create(&large, AccessMode::Standard, Purpose::Flush, 0).await.unwrap();
        writer.finish().await.unwrap();
    });
    assert_eq!((whose(&small), whose(&large)), (whose(&theirs), whose(&theirs)));
    assert_eq!(whose(&small).2, 0o604);
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Pages of a file that are in the page cache.
fn cached_pages(path: &Path) -> usize {
    let file = std::fs::File::open(path).unwrap();
    let len = file.metadata().unwrap().len() as usize;
    let mut resident = vec![0u8; len.div_ceil(4096)];
    // SAFETY: a fresh read-only mapping of an open file, asked about within its length, unmapped.
    unsafe {
        let (read, shared) = (libc::PROT_READ, libc::MAP_SHARED);
        let address = libc::mmap(std::ptr::null_mut(), len, read, shared, file.as_raw_fd(), 0);
        assert_ne!(address, libc::MAP_FAILED);
        assert_eq!(libc::mincore(address, len, resident.as_mut_ptr()), 0);
        libc::munmap(address, len);
    }
    resident.iter().filter(|page| **page & 1 == 1).count()
}

/// Proves that the last resort leaves few pages behind: as the writer goes, after it, and as the
/// reader goes; and that a user's read keeps its pages.
#[test]
fn last_resort_drops_pages() {
    let dir = std::env::temp_dir().join(format!("halcyon-last-resort-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let disk = Disk::real(DiskOptions::default());
    let Storage::Real { abilities: known, .. } = &disk.0.storage else { unreachable!() };
    if probe::probe(&dir).unwrap().direct.is_err() {
        eprintln!("SKIPPED: {} is in a memory file system", dir.display());
        return;
    }
    known.lock().insert(real::device_of(&dir).unwrap(), abilities(false, false, false));
    let path = dir.join("file");
    let bytes: Vec<u8> = (0..32u32 << 20).map(|i| (i / 11) as u8).collect();
    block_on(async {
        let mut writer = disk.create(&path, AccessMode::Auto, Purpose::Flush, 0).await.unwrap();
        assert!(writer.mode().drop_behind);
        for part in bytes.chunks(1 << 20) {
            writer.write(part).await.unwrap();
        }
        assert!(cached_pages(&path) <= (12 << 20) / 4096, "{}", cached_pages(&path));
        writer.finish().await.unwrap();
        assert_eq!(cached_pages(&path), 0);
        let mut reader = disk
            .open_sequential(&path, AccessMode::Auto, Purpose::Scan, StreamOptions::default())
            .await
            .unwrap();
        while !reader.fill(1).await.unwrap().is_empty() {
            let count = reader.buffered().len();
            reader.consume(count);
        }
        drop(reader);
        assert!(cached_pages(&path) <= (1 << 20) / 4096, "{}", cached_pages(&path));
        let file = disk.open(&path, AccessMode::Auto, Purpose::UserRead).await.unwrap();
        assert!(*file.read_at(5_000_000, 100_000).await.unwrap() == bytes[5_000_000..5_100_000]);
        assert!(cached_pages(&path) >= 24);
    });
    std::fs::remove_dir_all(&dir).unwrap();
}
