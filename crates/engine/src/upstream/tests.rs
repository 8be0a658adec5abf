//! A third party as its callers see it, over real sockets; and its parts without any.

mod caller;
mod callers;
mod requests;
mod sampling;
mod specs;
