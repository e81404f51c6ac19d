//! What the kernel forbids a program that this one starts, whatever code it runs.
//!
//! 1. It has a session of its own, no capability and no way to get one, and ends with the thread that has started it. Where memory is
//!    short, the kernel kills it before other processes.
//! 2. Limits: its memory, its descriptors, no dump of it. None of processes, which the kernel counts for all of a user's together.
//! 3. System calls (seccomp): no sockets (but pairs, which a JVM makes for itself), no other process, nothing of other processes, no
//!    mounts, modules, keys, clocks; and no change of files, unless it has a folder for that.
//! 4. Files (Landlock): it sees the system's programs and libraries, and what it is given.
//!
//! All is prepared before the fork: between it and the exec nothing may allocate. A kernel may lack the third or the fourth ([`lacking`]).
//! The rest is in force there.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use libc::sock_filter;

/// What a program may do.
#[derive(Debug, Clone, Copy)]
pub struct Allowed<'a> {
    /// What it reads beside the system's own files.
    pub reads: &'a [PathBuf],
    /// The only folder in which it may change anything.
    pub writes: Option<&'a Path>,
    /// Bytes of its own data.
    pub memory: u64,
}

pub(crate) struct Confinement {
    filter: Vec<sock_filter>,
    /// In the filter, of the program's own number.
    own: Vec<usize>,
    files: Option<OwnedFd>,
    limits: [(libc::__rlimit_resource_t, u64); 4],
}

/// Descriptors: a JVM has some dozens.
const DESCRIPTORS: u64 = 512;
/// Bytes of a file, where there may be files.
const FILE_MAX: u64 = 64 << 20;

/// Where a program and its libraries are, and what they read of the system.
const SYSTEM: [&str; 13] = [
    "/usr",
    "/bin",
    "/lib",
    "/lib64",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/proc",
    "/sys/devices/system/cpu",
    "/sys/fs/cgroup",
    "/dev/null",
    "/dev/random",
    "/dev/urandom",
    "/sys/kernel/mm/transparent_hugepage",
];

impl Confinement {
    pub(crate) fn of(allowed: &Allowed<'_>) -> Confinement {
        let mut filter = Filter::default();
        filter.refuse(&ALWAYS_REFUSED);
        if allowed.writes.is_none() {
            filter.refuse_writes();
        }
        let file_max = allowed.writes.map_or(0, |_| FILE_MAX);
        Confinement {
            own: filter.own.clone(),
            filter: filter.done(),
            files: visible(allowed),
            limits: [
                (libc::RLIMIT_CORE, 0),
                (libc::RLIMIT_FSIZE, file_max),
                (libc::RLIMIT_NOFILE, DESCRIPTORS),
                (libc::RLIMIT_DATA, allowed.memory),
            ],
        }
    }

    /// To be called between fork and exec: it only makes system calls.
    pub(crate) fn enter(&mut self) -> io::Result<()> {
        // SAFETY: system calls with numbers, and pointers to what lives in this structure or on this stack, of the lengths that are named.
        unsafe {
            libc::setsid();
            end_with_parent()?;
            let score =
                libc::open(c"/proc/self/oom_score_adj".as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
            if score >= 0 {
                libc::write(score, c"1000".as_ptr().cast(), 4);
            }
            // The standard streams are what it gets; all others are closed by the exec.
            libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
            for (what, most) in self.limits {
                checked(libc::setrlimit(what, &libc::rlimit { rlim_cur: most, rlim_max: most }))?;
            }
            checked(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
            // A process without capabilities is refused this, and has nothing to drop.
            for capability in 0..64 {
                libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0);
            }
            libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
            /// `_LINUX_CAPABILITY_VERSION_3`, of this process.
            const OWN: [u32; 2] = [0x2008_0522, 0];
            libc::syscall(libc::SYS_capset, OWN.as_ptr(), [0u32; 6].as_ptr());
            if let Some(files) = &self.files {
                checked(libc::syscall(LANDLOCK_RESTRICT_SELF, files.as_raw_fd(), 0) as i32)?;
            }
            let number = libc::getpid() as u32;
            for at in &self.own {
                if let Some(step) = self.filter.get_mut(*at) {
                    step.k = number;
                }
            }
            let program = libc::sock_fprog {
                len: self.filter.len() as u16,
                filter: self.filter.as_mut_ptr(),
            };
            match libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) {
                0 => Ok(()),
                // A kernel without it.
                _ if *libc::__errno_location() == libc::EINVAL => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        }
    }
}

fn checked(outcome: libc::c_int) -> io::Result<()> {
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Has this process killed when the thread that started it ends.
pub fn end_with_parent() -> io::Result<()> {
    // SAFETY: it takes two numbers.
    checked(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) })
}

/// What of a confinement this kernel cannot do.
pub fn lacking() -> Vec<&'static str> {
    // SAFETY: both take numbers.
    let (filters, files) = unsafe {
        (
            libc::prctl(libc::PR_GET_SECCOMP) >= 0,
            libc::syscall(LANDLOCK_CREATE_RULESET, 0, 0, 1) > 0,
        )
    };
    [(filters, "seccomp"), (files, "Landlock")]
        .into_iter()
        .filter(|(is, _)| !is)
        .map(|(_, name)| name)
        .collect()
}

const LANDLOCK_CREATE_RULESET: libc::c_long = 444;
const LANDLOCK_ADD_RULE: libc::c_long = 445;
const LANDLOCK_RESTRICT_SELF: libc::c_long = 446;
/// `LANDLOCK_RULE_PATH_BENEATH`
const BENEATH: libc::c_long = 1;
/// `LANDLOCK_ACCESS_FS_…` of the first version: all there are, and EXECUTE, READ_FILE, READ_DIR.
const ALL_ACCESS: u64 = (1 << 13) - 1;
const LOOKS: u64 = 1 | 1 << 2 | 1 << 3;
const DIRECTORY_ONLY: u64 = ALL_ACCESS & !(1 | 1 << 1 | 1 << 2);

/// The rules of the files that are seen; `None` where the kernel knows no such rules.
fn visible(allowed: &Allowed<'_>) -> Option<OwnedFd> {
    let handled = ALL_ACCESS;
    // SAFETY: the attribute is one live number, as long as said; the descriptor is new and has no other owner.
    let rules = unsafe {
        let rules = libc::syscall(LANDLOCK_CREATE_RULESET, &raw const handled, size_of::<u64>(), 0);
        i32::try_from(rules)
            .ok()
            .filter(|rules| *rules >= 0)
            .map(|rules| OwnedFd::from_raw_fd(rules))?
    };
    let system = SYSTEM.iter().map(Path::new);
    for path in system.chain(allowed.reads.iter().map(PathBuf::as_path)) {
        allow(&rules, path, LOOKS);
    }
    if let Some(folder) = allowed.writes {
        allow(&rules, folder, ALL_ACCESS);
    }
    Some(rules)
}

/// What is not there need not be allowed.
fn allow(rules: &OwnedFd, path: &Path, access: u64) {
    #[repr(C, packed)]
    struct PathBeneath {
        access: u64,
        parent: i32,
    }
    let Ok(name) = CString::new(path.as_os_str().as_bytes()) else { return };
    let access = if path.is_dir() { access } else { access & !DIRECTORY_ONLY };
    // SAFETY: the name ends in a zero and lives; the rule lives during the call; the descriptor is new and has no other owner.
    unsafe {
        let parent = libc::open(name.as_ptr(), libc::O_PATH | libc::O_CLOEXEC);
        if parent >= 0 {
            let parent = OwnedFd::from_raw_fd(parent);
            let rule = PathBeneath { access, parent: parent.as_raw_fd() };
            libc::syscall(LANDLOCK_ADD_RULE, rules.as_raw_fd(), BENEATH, &raw const rule, 0);
        }
    }
}

/// What no program that is confined may do.
const ALWAYS_REFUSED: [libc::c_long; 52] = [
    // Other machines, and other processes of this one.
    libc::SYS_socket,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pidfd_send_signal,
    libc::SYS_process_madvise,
    libc::SYS_setpriority,
    libc::SYS_ioprio_set,
    libc::SYS_kcmp,
    libc::SYS_msgget,
    libc::SYS_shmget,
    libc::SYS_semget,
    libc::SYS_mq_open,
    // What the system is made of.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    // Parts of the kernel that a JVM does not need, with a history of faults.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_setup,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_memfd_create,
];

/// What changes files.
const OF_WRITERS: [libc::c_long; 14] = [
    libc::SYS_mkdirat,
    libc::SYS_mknodat,
    libc::SYS_unlinkat,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_fchmodat,
    libc::SYS_fchownat,
    libc::SYS_fchmod,
    libc::SYS_fchown,
    libc::SYS_truncate,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
];

/// The same, older.
#[cfg(target_arch = "x86_64")]
const OLDER: [libc::c_long; 10] = [
    libc::SYS_mkdir,
    libc::SYS_mknod,
    libc::SYS_unlink,
    libc::SYS_rmdir,
    libc::SYS_rename,
    libc::SYS_link,
    libc::SYS_symlink,
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_creat,
];

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xC000_003E;
/// `__X32_SYSCALL_BIT`
#[cfg(target_arch = "x86_64")]
const X32: u32 = 0x4000_0000;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xC000_00B7;

/// A program of the kernel's filter: the call's number is in its register, except within a check of arguments.
struct Filter {
    steps: Vec<sock_filter>,
    own: Vec<usize>,
}

const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
const EQUALS: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
#[cfg(target_arch = "x86_64")]
const AT_LEAST: u32 = libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K;
const HAS: u32 = libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K;
const ANSWER: u32 = libc::BPF_RET | libc::BPF_K;
const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;

/// Of `seccomp_data`: the number, the architecture, the lower half of an argument.
const NUMBER_AT: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;
const fn argument_at(index: u32) -> u32 {
    16 + 8 * index
}

const fn refused(errno: libc::c_int) -> u32 {
    libc::SECCOMP_RET_ERRNO | errno as u32
}

impl Default for Filter {
    fn default() -> Filter {
        let mut filter = Filter { steps: Vec::new(), own: Vec::new() };
        filter.step(LOAD, ARCHITECTURE_AT, 0, 0);
        filter.step(EQUALS, ARCHITECTURE, 1, 0);
        filter.step(ANSWER, libc::SECCOMP_RET_KILL_PROCESS, 0, 0);
        filter.step(LOAD, NUMBER_AT, 0, 0);
        // The same calls have other numbers in the x32 ABI, whose architecture is that of x86-64.
        #[cfg(target_arch = "x86_64")]
        {
            filter.step(AT_LEAST, X32, 0, 1);
            filter.step(ANSWER, refused(libc::ENOSYS), 0, 0);
        }
        // Threads, and no other processes. What cannot be looked into does not exist: the C library then takes the older call.
        filter.where_argument(libc::SYS_clone, 0, (HAS, libc::CLONE_THREAD as u32), true);
        filter.answer(libc::SYS_clone3, refused(libc::ENOSYS));
        filter.answer(libc::SYS_openat2, refused(libc::ENOSYS));
        #[cfg(target_arch = "x86_64")]
        filter.refuse(&[libc::SYS_fork, libc::SYS_vfork]);
        // Signals to its own threads.
        let at = filter.where_argument(libc::SYS_tgkill, 0, (EQUALS, 0), true);
        filter.own.push(at);
        filter
    }
}

impl Filter {
    fn step(&mut self, code: u32, k: u32, jt: u8, jf: u8) {
        self.steps.push(sock_filter { code: code as u16, jt, jf, k });
    }

    fn answer(&mut self, call: libc::c_long, with: u32) {
        self.step(EQUALS, call as u32, 0, 1);
        self.step(ANSWER, with, 0, 0);
    }

    fn refuse(&mut self, calls: &[libc::c_long]) {
        calls.iter().for_each(|call| self.answer(*call, refused(libc::EPERM)));
    }

    /// Tests an argument of a call, which is refused or allowed if the test holds; returns where the test is.
    fn where_argument(
        &mut self,
        call: libc::c_long,
        index: u32,
        (test, with): (u32, u32),
        is_allowed: bool,
    ) -> usize {
        let (holds, fails) = if is_allowed { (1, 0) } else { (0, 1) };
        self.step(EQUALS, call as u32, 0, 4);
        self.step(LOAD, argument_at(index), 0, 0);
        self.step(test, with, holds, fails);
        self.step(ANSWER, refused(libc::EPERM), 0, 0);
        self.step(ANSWER, ALLOW, 0, 0);
        self.steps.len() - 3
    }

    /// Files may be opened for reading.
    fn refuse_writes(&mut self) {
        const WRITES: u32 = (libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC) as u32;
        self.refuse(&OF_WRITERS);
        let mut opens = vec![(libc::SYS_openat, 2)];
        #[cfg(target_arch = "x86_64")]
        {
            self.refuse(&OLDER);
            opens.push((libc::SYS_open, 1));
        }
        for (call, index) in opens {
            self.where_argument(call, index, (HAS, WRITES), false);
        }
    }

    fn done(mut self) -> Vec<sock_filter> {
        self.step(ANSWER, ALLOW, 0, 0);
        self.steps
    }
}
