#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| halcyon_fuzz::full_query_log::file(bytes));
