#![no_main]
use std::sync::{LazyLock, Mutex};

use halcyon_fuzz::mutation::Mutator;
use halcyon_fuzz::node::{Host, recorded, statements};
use halcyon_fuzz::words::Words;

static HOST: LazyLock<Mutex<Host>> =
    LazyLock::new(|| Mutex::new(Host::start(statements::run, Some("statements.history".into()))));

static WORDS: LazyLock<Words> = LazyLock::new(|| {
    let recorded = recorded();
    Words::of(recorded.iter().map(|(_, text)| text.as_str()))
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| HOST.lock().expect("one thread").put(bytes));

libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    if seed % 4 == 0 {
        return libfuzzer_sys::fuzzer_mutate(data, size, max_size);
    }
    let changed = WORDS.change(&data[..size], &mut Mutator::new(u64::from(seed)));
    let length = changed.len().min(max_size);
    data[..length].copy_from_slice(&changed[..length]);
    length
});
