//! A third party as its callers see it, over real sockets.

mod callers;
mod sampling;
