//! What a gRPC load asks: which call, with which messages, and what a right answer is.

mod comparer;
mod described;
mod encoded;
mod message;
mod nearest;
mod plan;
mod reflection;
mod schema;
mod shape;
#[cfg(test)]
mod tests;

pub use plan::Plan;
#[doc(hidden)]
pub use reflection::of_answers;
