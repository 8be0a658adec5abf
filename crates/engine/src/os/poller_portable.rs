//! Which sockets are ready, with a deadline: kqueue and others, through the `polling` crate.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use polling::{Event, Events, PollMode};

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

    fn event(self, token: u64) -> Event {
        Event::new(token as usize, self.read, self.write)
    }
}

/// How a socket is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Told of as long as it is ready.
    Level,
    /// The same: all pollers are woken here, and those that come late find nothing.
    Shared,
    /// Told of once when it becomes ready.
    Edge,
}

/// A socket that is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ready {
    pub token: u64,
    pub read: bool,
    pub write: bool,
    /// Broken in both directions: no answer will arrive.
    pub broken: bool,
    /// Always: which ends were announced is not told, so each socket is read until it is empty.
    pub ended: bool,
}

pub(crate) struct Poller {
    poller: polling::Poller,
    events: Events,
}

impl Poller {
    pub fn new(_batch: usize) -> io::Result<Self> {
        Ok(Self {
            poller: polling::Poller::new()?,
            events: Events::new(),
        })
    }

    /// Begins to watch.
    pub fn add(
        &self,
        source: &impl AsFd,
        token: u64,
        interest: Interest,
        mode: Mode,
    ) -> io::Result<()> {
        let mode = match mode {
            Mode::Level | Mode::Shared => PollMode::Level,
            Mode::Edge => PollMode::Edge,
        };
        // SAFETY: every source is taken out by `remove` or `closing` before it is closed.
        unsafe {
            self.poller
                .add_with_mode(source.as_fd().as_raw_fd(), interest.event(token), mode)
        }
    }

    pub fn change(&self, source: &impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        self.poller
            .modify_with_mode(source.as_fd(), interest.event(token), PollMode::Level)
    }

    pub fn remove(&self, source: &impl AsFd) -> io::Result<()> {
        self.poller.delete(source.as_fd())
    }

    /// To be called before a watched socket is closed.
    pub fn closing(&self, source: &impl AsFd) {
        // A socket that is not watched any more needs nothing.
        let _ = self.remove(source);
    }

    /// Waits for sockets, at most `timeout` nanoseconds (`None`: for ever), and puts them in `ready`.
    pub fn wait(&mut self, timeout: Option<u64>, ready: &mut Vec<Ready>) -> io::Result<()> {
        ready.clear();
        self.events.clear();
        match self
            .poller
            .wait(&mut self.events, timeout.map(Duration::from_nanos))
        {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        ready.extend(self.events.iter().map(|event| Ready {
            token: event.key as u64,
            read: event.readable,
            write: event.writable,
            broken: false,
            ended: true,
        }));
        Ok(())
    }
}
