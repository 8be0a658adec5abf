//! Which sockets are ready, with a deadline: kqueue and others, through the `polling` crate.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use polling::{Event, Events, PollMode};

use crate::os::readiness::{Interest, Mode, Ready};

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
                .add_with_mode(source.as_fd().as_raw_fd(), event(interest, token), mode)
        }
    }

    pub fn change(&self, source: &impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        self.poller
            .modify_with_mode(source.as_fd(), event(interest, token), PollMode::Level)
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
            // Which ends were announced is not told.
            ended: true,
        }));
        Ok(())
    }
}

fn event(interest: Interest, token: u64) -> Event {
    Event::new(token as usize, interest.read, interest.write)
}
