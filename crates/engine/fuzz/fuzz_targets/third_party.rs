#![no_main]

#[path = "../../tests/fuzz/targets/third_party.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| target::check(bytes));
