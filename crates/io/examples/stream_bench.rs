//! How fast streams read and write here, and at what CPU cost: buffer size × depth × mode.
//!
//! ```text
//! cargo run --release -p halcyon-io --example stream_bench -- DIRECTORY [MiB] [rounds] [auto|uring|pool]
//! ```
//!
//! Each cell is the median of the rounds, which are interleaved so that a change of the machine's
//! mood meets all cells; the spread is printed beside it. The consumer adds the bytes up and the
//! producer copies them, so the streams have computing to overlap. In standard mode writes end with
//! a sync, as in the other modes, and reads start with the file's pages dropped.

use std::path::Path;

use halcyon_io::{
    AccessMode, BackendChoice, Disk, DiskOptions, KernelVersion, Purpose, Result, StreamOptions,
    WriteOptions, block_on, clock,
};

const SIZES: [usize; 2] = [256 << 10, 1 << 20];
const DEPTHS: [usize; 3] = [1, 2, 4];
const MODES: [AccessMode; 3] = [AccessMode::Direct, AccessMode::Uncached, AccessMode::Standard];

#[derive(Clone, Copy)]
struct Cell {
    mode: AccessMode,
    write: bool,
    buffer_size: usize,
    depth: usize,
}

#[derive(Clone, Copy)]
struct Measured {
    seconds: f64,
    cpu_seconds: f64,
}

fn cpu_seconds() -> f64 {
    clock::process_cpu_time().as_secs_f64()
}

async fn write(disk: &Disk, path: &Path, cell: Cell, len: u64) -> Result<()> {
    let source = vec![0xa5u8; 64 << 10];
    let options = WriteOptions {
        buffer_size: cell.buffer_size,
        depth: cell.depth,
        expected_len: len,
        ..WriteOptions::default()
    };
    let purpose = Purpose::CompactionWrite;
    let mut writer = disk.create_with(path, cell.mode, purpose, options).await?;
    while writer.position() < len {
        writer.write(&source).await?;
    }
    writer.finish().await?;
    Ok(())
}

async fn read(disk: &Disk, path: &Path, cell: Cell) -> Result<u64> {
    let options = StreamOptions { buffer_size: cell.buffer_size, depth: cell.depth };
    let purpose = Purpose::CompactionRead;
    let mut reader = disk.open_sequential(path, cell.mode, purpose, options).await?;
    let mut sum = 0u64;
    loop {
        let bytes = reader.fill(16 << 10).await?;
        if bytes.is_empty() {
            return Ok(sum);
        }
        let count = bytes.len();
        for word in bytes.chunks_exact(8) {
            sum = sum.wrapping_add(u64::from_le_bytes(word.try_into().unwrap_or_default()));
        }
        reader.consume(count);
    }
}

/// Drops a file's pages, so that a standard read meets the device.
fn drop_pages(path: &Path) {
    use std::os::fd::AsRawFd;
    let file = std::fs::File::open(path).expect("the file to read was just written");
    // SAFETY: the descriptor is open.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
}

async fn measure(disk: &Disk, dir: &Path, cell: Cell, len: u64) -> Result<Measured> {
    let (source, target) = (dir.join("stream_bench.read"), dir.join("stream_bench.write"));
    drop_pages(&source);
    let (started, cpu) = (clock::now(), cpu_seconds());
    if cell.write {
        write(disk, &target, cell, len).await?;
    } else {
        std::hint::black_box(read(disk, &source, cell).await?);
    }
    let measured = Measured {
        seconds: (clock::now() - started).as_secs_f64(),
        cpu_seconds: cpu_seconds() - cpu,
    };
    if cell.write {
        disk.remove(&target).await?;
    }
    Ok(measured)
}

fn cells(disk: &Disk, dir: &Path) -> Vec<Cell> {
    let mut cells = Vec::new();
    for mode in MODES {
        if let Err(e) = disk.resolve_write_mode(dir, mode) {
            println!("skipped: {e}");
            continue;
        }
        for write in [false, true] {
            for buffer_size in SIZES {
                for depth in DEPTHS {
                    cells.push(Cell { mode, write, buffer_size, depth });
                }
            }
        }
    }
    cells
}

fn run(dir: &Path, mib: u64, rounds: usize, backend: Option<BackendChoice>) -> Result<()> {
    let disk = Disk::real(DiskOptions { backend, ..DiskOptions::default() });
    let report = disk.backend();
    println!("kernel {}  engine {}", KernelVersion::running().release, report.backend);
    if let Some(warning) = &report.warning {
        println!("{warning}");
    }
    println!("{} MiB, {rounds} rounds, {}", mib, dir.display());
    let (cells, len) = (cells(&disk, dir), mib << 20);
    let mut measured: Vec<Vec<Measured>> = vec![Vec::new(); cells.len()];
    let source = dir.join("stream_bench.read");
    block_on(async {
        let fresh = Cell { mode: AccessMode::Auto, write: true, buffer_size: 1 << 20, depth: 2 };
        write(&disk, &source, fresh, len).await?;
        for _ in 0..rounds {
            for (cell, measured) in cells.iter().zip(&mut measured) {
                measured.push(measure(&disk, dir, *cell, len).await?);
            }
        }
        disk.remove(&source).await
    })?;
    println!("| mode | direction | buffer | depth | MiB/s median | min | max | CPU s/GiB |");
    println!("|---|---|---|---|---|---|---|---|");
    for (cell, measured) in cells.iter().zip(&mut measured) {
        measured.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        let speed = |at: usize| mib as f64 / measured[at].seconds;
        let cpu = measured.iter().map(|m| m.cpu_seconds).sum::<f64>() / measured.len() as f64;
        println!(
            "| {} | {} | {} KiB | {} | {:.0} | {:.0} | {:.0} | {:.3} |",
            cell.mode,
            if cell.write { "write" } else { "read" },
            cell.buffer_size >> 10,
            cell.depth,
            speed(measured.len() / 2),
            speed(measured.len() - 1),
            speed(0),
            cpu * 1024.0 / mib as f64,
        );
    }
    Ok(())
}

fn main() -> Result<()> {
    let mut words = std::env::args().skip(1);
    let Some(dir) = words.next() else {
        println!("usage: stream_bench DIRECTORY [MiB] [rounds] [auto|uring|pool]");
        return Ok(());
    };
    let mib = words.next().map_or(512, |word| word.parse().expect("MiB is a number"));
    let rounds = words.next().map_or(3, |word| word.parse().expect("rounds is a number"));
    let backend = words.next().map(|word| word.parse().expect("a backend's name"));
    run(Path::new(&dir), mib, rounds, backend)
}

/// Proves that the measurement itself works, on a tiny input.
#[test]
fn tiny() {
    let dir = std::env::temp_dir().join(format!("stream-bench-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a directory for temporary files");
    run(&dir, 2, 1, None).expect("a tiny measurement");
    std::fs::remove_dir_all(&dir).expect("the directory is ours");
}
