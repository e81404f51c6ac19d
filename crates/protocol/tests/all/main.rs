//! Messages and frames: golden bytes, round trips, and bytes that are damaged or hostile. One program, which links once.

mod fuzz_smoke;
mod golden;
mod hostile;
mod malformed;
mod responses;
mod roundtrip;
mod support;
