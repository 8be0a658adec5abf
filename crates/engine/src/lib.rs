//! Open- and closed-loop load, the simulated third party, and the relay between two networks. Pure Rust: nothing here knows Python.
//!
//! The parts, from the plan to the result: [`spec`] and [`target`] check what is asked; [`requests`], [`calls`] and
//! [`conversation`] say what is sent; [`pace`] says when requests are due; [`worker`] sends and reads them over a
//! [`transport`] in a [`protocol`]; [`record`] keeps what happened and [`results`] writes it down; [`engine`] runs the threads.
//!
//! To follow one request of a closed loop over HTTP/1.1, read in this order: `worker.rs` (the loop, the connection's slot, what
//! an answer means), `worker/queue.rs` (which request is next), `protocol/mod.rs` and `protocol/http1/exchange.rs` (what is
//! sent and awaited), `protocol/http1.rs` (the answer parsed), `transport/mod.rs` and `transport/polled.rs` or
//! `transport/uring.rs` (how bytes travel), `record.rs` (what is written down).

#![deny(unsafe_code)]

mod apart;
pub mod calls;
mod chance;
pub mod clock;
pub mod conversation;
pub mod durations;
pub mod endpoint;
pub mod engine;
#[cfg(target_os = "linux")]
pub mod link;
#[allow(unsafe_code)]
pub mod os;
pub mod outcome;
pub mod pace;
pub mod place;
pub mod progress;
pub mod protocol;
pub mod punctual;
pub mod record;
pub mod requests;
pub mod results;
pub mod secure;
pub mod spec;
pub mod target;
pub mod template;
pub mod transport;
pub mod upstream;
pub mod worker;
