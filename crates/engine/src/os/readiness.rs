//! What a poller is asked of sockets, and what it tells of them: the same for epoll and for others.

/// What to wait for at a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Interest {
    pub read: bool,
    pub write: bool,
}

impl Interest {
    pub const READ: Self = Self {
        read: true,
        write: false,
    };
    pub const BOTH: Self = Self {
        read: true,
        write: true,
    };
}

/// A socket that is ready. One whose connection broke is ready for both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ready {
    pub token: u64,
    pub read: bool,
    pub write: bool,
    /// Broken in both directions: no answer will arrive.
    pub broken: bool,
    /// Its end was announced: it is to be read until that is found. Where ends are not told of, always.
    pub ended: bool,
}

/// How a socket is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Told of as long as it is ready.
    Level,
    /// The same; other pollers watch it too, and one of them is to be woken, not all (epoll; elsewhere all are, and
    /// those that come late find nothing).
    Shared,
    /// Told of once when it becomes ready, and, by epoll, when it ends.
    Edge,
}
