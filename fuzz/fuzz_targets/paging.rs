#![no_main]
use std::sync::{LazyLock, Mutex};

use halcyon_fuzz::node::{Host, paging};

static HOST: LazyLock<Mutex<Host>> =
    LazyLock::new(|| Mutex::new(Host::start(paging::run, Some("paging.history".into()))));

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| HOST.lock().expect("one thread").put(bytes));
