//! Our LZ4 encoder beside that of `lz4_flex`, by turns: MiB per second of the thread's own time, and the ratio.
//!
//! ```text
//! cargo run --release -p halcyon-codec --example lz4_bench -- FILE…
//! ```
//! Each file is cut into blocks of 4, 16 and 64 KiB. A turn compresses it as often as 100 MiB take; a figure is the median of nine turns.
//! The kernel counts the time that a thread has run (`/proc/thread-self/schedstat`), so other programs on the machine do not matter much.

use std::error::Error;
use std::fs;

use halcyon_codec::{Compressor, Effort, Method};
use lz4_flex::block::{CompressTable, compress_into_with_table};

type Result<T> = std::result::Result<T, Box<dyn Error>>;
type Encoder = Box<dyn FnMut(&[u8], &mut [u8]) -> Result<usize>>;

const TURNS: usize = 9;
const BYTES_PER_TURN: usize = 100 << 20;

/// Nanoseconds that this thread has run.
fn thread_time() -> Result<u64> {
    let text = fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(text.split(' ').next().unwrap_or_default().parse()?)
}

fn ours(effort: Effort) -> Result<Encoder> {
    let mut compressor = Compressor::new(Method::Lz4 { effort })?;
    Ok(Box::new(move |input, output| Ok(compressor.compress(input, output)?)))
}

fn theirs() -> Encoder {
    let mut table = CompressTable::small();
    Box::new(move |input, output| Ok(compress_into_with_table(input, output, &mut table)?))
}

/// Nanoseconds for each byte, and the share that is left.
fn turn(encoder: &mut Encoder, bytes: &[u8], block: usize) -> Result<(f64, f64)> {
    let mut output = vec![0; block + block / 8 + 64];
    let rounds = (BYTES_PER_TURN / bytes.len().max(1)).max(1);
    let (mut stored, start) = (0, thread_time()?);
    for _ in 0..rounds {
        for chunk in bytes.chunks(block) {
            stored += encoder(chunk, &mut output)?;
        }
    }
    let total = (rounds * bytes.len()) as f64;
    Ok(((thread_time()? - start) as f64 / total, stored as f64 / total))
}

fn main() -> Result<()> {
    println!("| file | KiB | lz4_flex | ratio | default | × | ratio | fast | × | ratio |");
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    for path in std::env::args().skip(1) {
        let bytes = fs::read(&path)?;
        for kib in [4, 16, 64] {
            let mut encoders = [theirs(), ours(Effort::Default)?, ours(Effort::Fast)?];
            let mut turns = encoders.each_ref().map(|_| Vec::new());
            for _ in 0..TURNS {
                for (encoder, turns) in encoders.iter_mut().zip(&mut turns) {
                    turns.push(turn(encoder, &bytes, kib << 10)?);
                }
            }
            let medians = turns.map(|mut turns| {
                turns.sort_by(|a, b| a.0.total_cmp(&b.0));
                turns[TURNS / 2]
            });
            let mib = |time: f64| 1e9 / time / f64::from(1 << 20);
            let name = path.rsplit('/').next().unwrap_or_default();
            let (time, ratio) = medians[0];
            print!("| {name} | {kib} | {:.0} | {ratio:.3} |", mib(time));
            for (own, ratio) in &medians[1..] {
                print!(" {:.0} | {:.2} | {ratio:.3} |", mib(*own), time / own);
            }
            println!();
        }
    }
    Ok(())
}
