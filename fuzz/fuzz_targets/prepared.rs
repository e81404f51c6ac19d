#![no_main]
use std::sync::{LazyLock, Mutex};

use halcyon_fuzz::node::{Host, prepared};

static HOST: LazyLock<Mutex<Host>> =
    LazyLock::new(|| Mutex::new(Host::start(prepared::run, Some("prepared.history".into()))));

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| HOST.lock().expect("one thread").put(bytes));
