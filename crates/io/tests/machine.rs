//! What needs this machine's kernel to be proven: the fallback where io_uring is forbidden, full and
//! memory file systems, and that reads ahead are really under way.

#![allow(clippy::unwrap_used, reason = "a test")]

mod support;

use std::{fs, path::Path, process::Command};

use halcyon_io::{
    AccessMode, Backend, BackendChoice, Disk, DiskOptions, Error, Purpose, StreamOptions, block_on,
    block_on_backend,
};
use support::{ScratchDir, c_path, pattern};

/// Answers EPERM to the system calls of io_uring from this thread and its children, as the default
/// seccomp profiles of containers do.
fn forbid_io_uring() {
    const LOAD_NUMBER: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const JUMP_IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let op = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut filter = [
        op(LOAD_NUMBER, 0, 0, 0),
        op(JUMP_IF_EQUAL, 2, 0, libc::SYS_io_uring_setup as u32),
        op(JUMP_IF_EQUAL, 1, 0, libc::SYS_io_uring_enter as u32),
        op(JUMP_IF_EQUAL, 0, 1, libc::SYS_io_uring_register as u32),
        op(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        op(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: plain flags, then a program that lives across the call and ends in a return.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        let mode = libc::SECCOMP_MODE_FILTER as libc::c_ulong;
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, mode, &program), 0);
    }
}

/// Runs one of the ignored tests below in a process of its own.
fn in_child(test: &str) {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"])
        .env_remove("HALCYON_IO_ENGINE")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&child.stdout).into_owned()
        + &String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success(), "{text}");
    assert!(text.contains("1 passed"), "the child ran no test: {text}");
}

/// Proves that where io_uring is forbidden, `auto` works on the pool and says why, in one warning with
/// the cure, and that `uring` refuses with the same cause.
#[test]
fn forbidden_ring() {
    in_child("child_with_forbidden_ring");
}

#[test]
#[ignore = "run by forbidden_ring in a process of its own"]
fn child_with_forbidden_ring() {
    forbid_io_uring();
    let scratch = ScratchDir::make("forbidden");
    let disk = Disk::real(DiskOptions::default());
    let report = disk.backend();
    assert_eq!((report.backend, &report.refusal), (Backend::Pool, &None));
    let warning = report.warning.clone().unwrap();
    for part in ["io_uring_setup said", "seccomp", "Docker", "kernel.io_uring_disabled=0"] {
        assert!(warning.contains(part), "{warning}");
    }
    let findings = halcyon_io::startup::check(&disk, &[scratch.path()]);
    assert!(findings.iter().any(|finding| finding.text == warning));
    block_on(async {
        let path = scratch.path().join("file");
        let bytes = pattern(3_000_001);
        let mut writer =
            disk.create(&path, AccessMode::Auto, Purpose::Flush, 3_000_001).await.unwrap();
        writer.write(&bytes).await.unwrap();
        writer.finish().await.unwrap();
        let file = disk.open(&path, AccessMode::Auto, Purpose::UserRead).await.unwrap();
        assert!(*file.read_at(12_345, 1_000_000).await.unwrap() == bytes[12_345..1_012_345]);
    });
    let refusal = block_on_backend(BackendChoice::Uring, async {}).unwrap_err();
    assert!(refusal.to_string().contains("seccomp"), "{refusal}");
    let forced = DiskOptions { backend: Some(BackendChoice::Uring), ..DiskOptions::default() };
    let refused = Disk::real(forced);
    assert!(refused.backend().refusal.as_ref().is_some_and(|text| text.contains("seccomp")));
}

/// Proves that the backend follows the environment, and that a word it does not know is reported.
#[test]
fn backend_from_environment() {
    for (word, expected) in [("pool", "pool"), ("auto", ""), ("warp", "warp")] {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child_with_environment", "--ignored", "--nocapture"])
            .env("HALCYON_IO_ENGINE", word)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&child.stderr).into_owned();
        assert!(child.status.success() && text.contains(expected), "{word}: {text}");
    }
}

#[test]
#[ignore = "run by backend_from_environment in a process of its own"]
fn child_with_environment() {
    let disk = Disk::real(DiskOptions::default());
    let report = disk.backend();
    eprintln!("{} {:?}", report.backend, report.warning);
    let word = std::env::var("HALCYON_IO_ENGINE").unwrap();
    assert_eq!(report.choice.to_string() == word, word != "warp");
    assert!(word != "warp" || report.warning.is_some());
    block_on(async { assert!(disk.exists(Path::new("/")).await.unwrap()) });
}

/// A memory file system of its own, unmounted at the end.
struct Tmpfs(ScratchDir);

impl Tmpfs {
    fn mount(name: &str, size: &str) -> Option<Tmpfs> {
        let scratch = ScratchDir::make(name);
        let (target, options) = (c_path(scratch.path()), c_path(Path::new(size)));
        // SAFETY: all texts are zero-terminated and live across the call.
        let code = unsafe {
            libc::mount(
                c"tmpfs".as_ptr(),
                target.as_ptr(),
                c"tmpfs".as_ptr(),
                0,
                options.as_ptr().cast(),
            )
        };
        if code != 0 {
            eprintln!("SKIPPED: mounting a tmpfs: {}", std::io::Error::last_os_error());
            return None;
        }
        Some(Tmpfs(scratch))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let target = c_path(self.0.path());
        // SAFETY: the text is zero-terminated and lives across the call.
        unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) };
    }
}

/// Proves that a full device is reported as such: at once where the length is known, by the write or
/// the finish where it is not; and that nothing stays behind.
#[test]
fn full_device() {
    let Some(tmpfs) = Tmpfs::mount("full", "size=2m") else { return };
    for backend in [BackendChoice::Uring, BackendChoice::Pool] {
        let outcome = block_on_backend(backend, async {
            let disk = Disk::real(DiskOptions::default());
            let path = tmpfs.path().join("file");
            let refused =
                disk.create(&path, AccessMode::Auto, Purpose::Flush, 8 << 20).await.unwrap_err();
            assert!(matches!(refused, Error::NoSpace { needed: 8388608, .. }), "{refused}");
            assert!(!disk.exists(&path).await.unwrap());
            let mut writer = disk.create(&path, AccessMode::Auto, Purpose::Flush, 0).await.unwrap();
            let mut outcome = Ok(());
            for _ in 0..8 {
                outcome = writer.write(&pattern(1 << 20)).await;
                if outcome.is_err() {
                    break;
                }
            }
            let refused = match outcome {
                Err(refused) => refused,
                Ok(()) => writer.finish().await.unwrap_err(),
            };
            assert!(refused.is_no_space(), "{refused}");
            assert!(refused.to_string().contains("free space"));
            disk.remove(&path).await.unwrap();
        });
        if let Err(e) = outcome {
            eprintln!("SKIPPED: backend {backend}: {e}");
        }
    }
}

/// Proves that a memory file system is never direct: `auto` takes the next best and says why, `direct`
/// is refused with the cure, and bytes come back all the same.
#[test]
fn memory_file_system() {
    let Some(tmpfs) = Tmpfs::mount("memory", "size=64m") else { return };
    let disk = Disk::real(DiskOptions::default());
    let choice = disk.resolve_mode(tmpfs.path(), AccessMode::Auto).unwrap();
    eprintln!("{choice:?}");
    assert_ne!(choice.mode, AccessMode::Direct);
    assert!(choice.why.contains("memory file system"), "{choice:?}");
    let refused = disk.resolve_mode(tmpfs.path(), AccessMode::Direct).unwrap_err();
    assert!(matches!(refused, Error::Unsupported { .. }));
    assert!(refused.to_string().contains("`auto`"), "{refused}");
    let bytes = pattern(20_000_000);
    block_on(async {
        let path = tmpfs.path().join("file");
        let mut writer = disk.create(&path, AccessMode::Auto, Purpose::Flush, 0).await.unwrap();
        writer.write(&bytes).await.unwrap();
        assert_eq!(writer.finish().await.unwrap(), 20_000_000);
        let mut reader = disk
            .open_sequential(&path, AccessMode::Auto, Purpose::Scan, StreamOptions::default())
            .await
            .unwrap();
        let mut at = 0;
        while at < bytes.len() {
            let got = reader.fill(50_000).await.unwrap();
            assert!(*got == bytes[at..at + got.len()]);
            let count = got.len();
            reader.consume(count);
            at += count;
        }
        let refused = disk.open(&path, AccessMode::Direct, Purpose::Scan).await;
        assert!(matches!(refused, Err(Error::Unsupported { .. })));
    });
}

/// Bytes that this thread has caused to be read from devices.
fn device_bytes_read() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/io").unwrap();
    let line = text.lines().find(|line| line.starts_with("read_bytes:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Proves that when `fill` returns, the reads ahead are already with the device: they must not wait
/// until the consumer has computed and yields.
#[test]
fn reads_ahead_are_under_way() {
    let scratch = ScratchDir::make("ahead");
    let disk = Disk::real(DiskOptions::default());
    let path = scratch.path().join("file");
    let outcome = block_on_backend(BackendChoice::Uring, async {
        let mut writer = disk.create(&path, AccessMode::Direct, Purpose::Flush, 0).await?;
        writer.write(&pattern(4 << 20)).await?;
        writer.finish().await?;
        let options = StreamOptions { buffer_size: 256 * 1024, depth: 3 };
        let mut reader =
            disk.open_sequential(&path, AccessMode::Direct, Purpose::Scan, options).await?;
        let before = device_bytes_read();
        reader.fill(1).await?;
        assert_eq!(device_bytes_read() - before, 4 * 256 * 1024);
        let count = reader.buffered().len();
        reader.consume(count);
        reader.fill(1).await?;
        assert_eq!(device_bytes_read() - before, 5 * 256 * 1024);
        halcyon_io::Result::Ok(())
    });
    match outcome {
        Ok(Ok(())) => {}
        Ok(Err(e @ Error::Unsupported { .. })) => eprintln!("SKIPPED: {e}"),
        Ok(Err(e)) => panic!("{e}"),
        Err(e) => eprintln!("SKIPPED: {e}"),
    }
}

/// Two open files of one directory contend for its lock, in one process as in two.
#[test]
fn a_directory_is_taken_by_one_at_a_time() {
    let dir = std::env::temp_dir().join(format!("halcyon-lock-{}", std::process::id()));
    fs::create_dir_all(&dir).expect("temporary folder");
    let disk = Disk::real(DiskOptions::default());
    block_on(async {
        let taken = disk.lock_dir(&dir).await.expect("free");
        let busy = disk.lock_dir(&dir).await.expect_err("taken");
        assert!(matches!(busy, Error::Busy { .. }), "{busy}");
        let holder = format!("{}: this process, whose settings name it twice,", dir.display());
        assert!(busy.to_string().starts_with(&holder), "{busy}");
        assert!(disk.share_dir(&dir).await.is_err());
        drop(taken);
        let shared = disk.share_dir(&dir).await.expect("free again");
        drop(disk.share_dir(&dir).await.expect("shared"));
        assert!(disk.lock_dir(&dir).await.is_err());
        drop(shared);
        drop(disk.lock_dir(&dir).await.expect("free again"));
        // A process that starts meanwhile has a share in every open file for a moment.
        let starting = std::thread::spawn(|| {
            for _ in 0..50 {
                let _ = Command::new("true").status();
            }
        });
        while !starting.is_finished() {
            drop(disk.lock_dir(&dir).await.expect("free again"));
        }
        starting.join().expect("starts processes");
    });
    fs::remove_dir_all(&dir).expect("temporary folder goes");
}
