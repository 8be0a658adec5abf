//! What a gRPC load asks: which call, with which messages, and what a right answer is.

mod plan;

pub use plan::Plan;
