//! The device's bound: the inputs read and as much as the outputs written at the same time, by the same streams, with nothing
//! done to the bytes.

use std::path::PathBuf;

use halcyon_io::{
    AccessMode, Disk, Purpose, StreamOptions, ThreadPriority, WriteOptions, block_on, clock,
    spawn_thread,
};
use halcyon_sstable::Component;

use crate::{Result, Words, open_all};

const PIECE: usize = 64 << 10;

pub(crate) async fn run(disk: &Disk, words: &Words) -> Result<String> {
    let to_write = words.number("write", 0)?;
    let output = PathBuf::from(words.text("output")?);
    let (mode, buffer_size) = (words.access()?, words.size("buffer-size", 1 << 20)?);
    let inputs = open_all(disk, &words.directory).await?;
    let paths: Vec<PathBuf> =
        inputs.iter().map(|i| i.descriptor().component_path(Component::Data)).collect();
    let began = clock::now();
    let writer = {
        let (disk, output) = (disk.clone(), output.clone());
        let write = move || block_on(write(&disk, output, mode, buffer_size, to_write));
        spawn_thread("device-write", ThreadPriority::Normal, write)
    };
    let read = read(disk, paths, mode, buffer_size).await?;
    let read_seconds = (clock::now() - began).as_secs_f64();
    let written = writer.join().map_err(|_| "the writer panicked")??;
    let seconds = (clock::now() - began).as_secs_f64();
    disk.remove(&output).await?;
    Ok(format!(
        r#"{{"seconds":{seconds:.4},"read_seconds":{read_seconds:.4},"read":{read},"written":{written}}}"#
    ))
}

async fn read(disk: &Disk, paths: Vec<PathBuf>, mode: AccessMode, size: usize) -> Result<u64> {
    let mut read = 0;
    for path in paths {
        let options = StreamOptions { buffer_size: size, depth: 4 };
        let mut reader =
            disk.open_sequential(&path, mode, Purpose::CompactionRead, options).await?;
        loop {
            let length = reader.fill(PIECE).await?.len();
            if length == 0 {
                break;
            }
            read += length as u64;
            reader.consume(length);
        }
    }
    Ok(read)
}

async fn write(
    disk: &Disk,
    path: PathBuf,
    mode: AccessMode,
    buffer_size: usize,
    length: u64,
) -> halcyon_io::Result<u64> {
    let options =
        WriteOptions { buffer_size, depth: 4, expected_len: length, ..WriteOptions::default() };
    let mut writer = disk.create_with(&path, mode, Purpose::CompactionWrite, options).await?;
    let mut piece = vec![0u8; PIECE];
    let mut random = halcyon_io::Random::seeded(1);
    piece
        .chunks_exact_mut(8)
        .for_each(|word| word.copy_from_slice(&random.next_u64().to_le_bytes()));
    while writer.position() < length {
        writer.write(&piece).await?;
    }
    writer.finish().await
}
