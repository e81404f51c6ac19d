#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| halcyon_fuzz::lz4::block(bytes));
