//! What must hold of any bytes: one file each, which `crates/engine/fuzz/` has as its targets too.

pub mod chunked;
pub mod cookies;
pub mod grpc;
pub mod hpack;
pub mod http1;
pub mod http2;
pub mod http2_windows;
pub mod reflection;
pub mod third_party;
pub mod websocket;
