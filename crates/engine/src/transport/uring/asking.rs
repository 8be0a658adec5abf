//! The operations a connection asks the kernel for: to be made, to receive, to send.

use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use io_uring::opcode;
use io_uring::squeue::Flags;
use io_uring::types::Fd;

use super::{Link, SMALL, Uring};
use crate::transport::Token;
use crate::transport::buffers::GROUP;
use crate::transport::label::{Operation, label};

impl Uring {
    /// From now on what comes is received.
    pub(super) fn receive(&mut self, token: Token) {
        let Some(link) = self.link(token) else { return };
        let fd = Fd(link.socket.as_raw_fd());
        self.under_way += 1;
        let receive = match &*self.stamped {
            None => opcode::RecvMulti::new(fd, GROUP).build(),
            Some(stamped) => opcode::RecvMsgMulti::new(fd, stamped.wanted(), GROUP).build(),
        };
        self.push(&receive.user_data(label(Operation::Receive, token)));
    }

    /// Makes a connection.
    pub(super) fn start_connect(&mut self, token: Token) -> io::Result<()> {
        let socket = self.sockets.open()?;
        let fd = Fd(socket.as_raw_fd());
        self.links[token.slot as usize] = Some(Link {
            socket,
            generation: token.generation,
            sent: 0,
            flying: false,
            queued: Vec::new(),
        });
        let connect = opcode::Connect::new(fd, self.target.as_ptr().cast(), self.target.len());
        self.under_way += 1;
        self.push(&connect.build().user_data(label(Operation::Connect, token)));
        Ok(())
    }

    /// Submits the rest of a request.
    pub(super) fn push_send(&mut self, token: Token, request: &Arc<[u8]>) {
        let Some(link) = self.link(token) else { return };
        let (fd, rest) = (Fd(link.socket.as_raw_fd()), &request[link.sent..]);
        let send = opcode::Send::new(fd, rest.as_ptr(), rest.len() as u32)
            .flags(libc::MSG_NOSIGNAL | libc::MSG_WAITALL)
            .build()
            .user_data(label(Operation::Send, token));
        let quiet = if request.len() <= SMALL {
            Flags::SKIP_SUCCESS
        } else {
            Flags::empty()
        };
        self.push(&send.flags(quiet));
    }
}
