//! Stores and clients' bytes that are damaged or hostile.

mod fuzz_smoke;
