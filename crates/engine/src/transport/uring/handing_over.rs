//! Giving connections to another transport, and waiting for what that has while some are still here.

use std::os::fd::{IntoRawFd, RawFd};

use io_uring::opcode;
use io_uring::squeue::Flags;
use io_uring::types::{CancelBuilder, Fd};
use socket2::Socket;

use super::Uring;
use crate::transport::Token;
use crate::transport::label::{Operation, label};

impl Uring {
    /// Lets a connection go that carries no request: nothing of this ring reads from its socket any more. None: it is
    /// not here.
    pub fn release(&mut self, token: Token) -> Option<Socket> {
        self.link(token)?;
        let armed = label(Operation::Receive, token);
        let cancel = opcode::AsyncCancel::new(armed)
            .build()
            .flags(Flags::SKIP_SUCCESS)
            .user_data(label(Operation::Release, token));
        self.push(&cancel);
        // The receive only waits for its socket, and such a wait is marked as ended within the call: it takes no byte
        // that comes later.
        let _ = self.ring.submit();
        self.links[token.slot as usize]
            .take()
            .map(|link| link.socket)
    }

    /// Closes the connections that left, with the next batch. What is queued for them goes out before, and nothing is
    /// queued after: the number of a descriptor is nobody else's until the kernel has closed it.
    pub(super) fn let_go(&mut self) {
        for (token, socket) in std::mem::take(&mut self.leaving) {
            let fd = Fd(socket.into_raw_fd());
            let told = label(Operation::Release, token);
            // An operation under way would keep the socket open.
            let end = opcode::AsyncCancel2::new(CancelBuilder::fd(fd).all()).build();
            self.push(&end.flags(Flags::SKIP_SUCCESS).user_data(told));
            let close = opcode::Close::new(fd).build();
            self.push(&close.flags(Flags::SKIP_SUCCESS).user_data(told));
        }
    }

    /// Closes what left although nobody polls.
    pub fn flush(&mut self) {
        if !self.leaving.is_empty() {
            self.let_go();
            let _ = self.ring.submit();
        }
    }

    /// Lets the next wait end when a poller has something, too.
    pub fn watch(&mut self, poller: RawFd) {
        if std::mem::replace(&mut self.watching, true) {
            return;
        }
        let nobody = Token {
            slot: 0,
            generation: 0,
        };
        self.push(
            &opcode::PollAdd::new(Fd(poller), libc::POLLIN as u32)
                .build()
                .user_data(label(Operation::Watch, nobody)),
        );
    }

    /// Whether a connection is here.
    pub fn holds(&self, token: Token) -> bool {
        let link = self.links.get(token.slot as usize);
        matches!(link, Some(Some(link)) if link.generation == token.generation)
    }
}
