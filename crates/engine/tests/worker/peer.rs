//! An HTTP/2 server by others (the `h2` crate) on the simulated clock: it answers gRPC calls as a test tells it.

mod pipe;

use std::cell::RefCell;
use std::collections::HashMap;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use h2::server::{Connection, Handshake, SendResponse};
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, HeaderValue, Response};
use velodrome_engine::clock::Nanos;
use velodrome_engine::protocol::grpc::frame;
use velodrome_engine::transport::Token;
use velodrome_engine::transport::simulated::{Act, Script};

use pipe::Pipe;

/// What the server does with a call once its request is whole.
#[derive(Clone, Debug)]
pub enum Does {
    /// Answers with these messages and this status, so long after.
    Answer(Nanos, Vec<&'static [u8]>, u32),
    /// Answers each message of the request with itself as it comes.
    Echo,
    /// Resets the stream.
    Reset(Reason),
    /// Says GOAWAY, then answers.
    Leave(Nanos),
    /// Closes the connection.
    Close,
    /// Nothing.
    Nothing,
}

/// What a server saw.
#[derive(Debug, Default)]
pub struct Seen {
    pub connections: u64,
    pub calls: u64,
    /// Streams that the client reset.
    pub cancelled: u64,
    pub timeouts: Vec<String>,
    pub bodies: Vec<Vec<u8>>,
}

enum Stage {
    Shaking(Pin<Box<Handshake<Pipe, Bytes>>>),
    Open(Box<Connection<Pipe, Bytes>>),
    Over,
}

struct Guest {
    pipe: Pipe,
    stage: Stage,
    calls: Vec<Incoming>,
}

/// A call whose request is still coming.
struct Incoming {
    request: RecvStream,
    respond: SendResponse<Bytes>,
    answer: Option<SendStream<Bytes>>,
    body: Vec<u8>,
    does: Does,
}

/// The server of a test; `answer` says what it does with call `n`, counted over all connections.
pub struct Peer<F> {
    pub answer: F,
    pub streams: u32,
    pub seen: Rc<RefCell<Seen>>,
    guests: HashMap<(u32, u32), Guest>,
}

impl<F: FnMut(u64, Nanos) -> Does> Peer<F> {
    pub fn new(answer: F, streams: u32, seen: Rc<RefCell<Seen>>) -> Peer<F> {
        Peer {
            answer,
            streams,
            seen,
            guests: HashMap::new(),
        }
    }

    /// Lets a connection work off what has come; returns what it answers and when.
    fn work(&mut self, key: (u32, u32), now: Nanos) -> Vec<(Nanos, Act)> {
        let Some(mut guest) = self.guests.remove(&key) else {
            return Vec::new();
        };
        let mut acts = Vec::new();
        let mut context = Context::from_waker(Waker::noop());
        if let Stage::Shaking(shaking) = &mut guest.stage
            && let Poll::Ready(shaken) = shaking.as_mut().poll(&mut context)
        {
            guest.stage = shaken.map_or(Stage::Over, |open| Stage::Open(Box::new(open)));
        }
        // Each look may bring what the next needs: a call, the body of it, the end of it.
        for _ in 0..4 {
            guest.accept(&mut self.answer, &self.seen, now);
            guest.flush(now, &mut acts);
            for mut call in std::mem::take(&mut guest.calls) {
                let done = call.read(&mut context, &self.seen);
                guest.poll(&mut context);
                guest.flush(now, &mut acts);
                match done {
                    None => guest.calls.push(call),
                    Some(does) => guest.act(call, does, now, &mut acts, &mut context),
                }
            }
        }
        if !matches!(guest.stage, Stage::Over) {
            self.guests.insert(key, guest);
        }
        acts
    }
}

impl Guest {
    fn accept(
        &mut self,
        answer: &mut impl FnMut(u64, Nanos) -> Does,
        seen: &RefCell<Seen>,
        now: Nanos,
    ) {
        let mut context = Context::from_waker(Waker::noop());
        while let Stage::Open(open) = &mut self.stage {
            match open.poll_accept(&mut context) {
                Poll::Ready(Some(Ok((request, respond)))) => {
                    let mut seen = seen.borrow_mut();
                    let does = answer(seen.calls, now);
                    seen.calls += 1;
                    assert_eq!(request.method(), "POST");
                    assert_eq!(request.headers()["te"], "trailers");
                    assert_eq!(request.uri().path(), "/helloworld.Greeter/SayHello");
                    let timeout = &request.headers()["grpc-timeout"];
                    seen.timeouts.push(timeout.to_str().unwrap().to_owned());
                    self.calls.push(Incoming {
                        request: request.into_body(),
                        respond,
                        answer: None,
                        body: Vec::new(),
                        does,
                    });
                }
                Poll::Ready(_) => self.stage = Stage::Over,
                Poll::Pending => return,
            }
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) {
        if let Stage::Open(open) = &mut self.stage
            && let Poll::Ready(_) = open.poll_closed(context)
        {
            self.stage = Stage::Over;
        }
    }

    fn flush(&mut self, at: Nanos, acts: &mut Vec<(Nanos, Act)>) {
        let out = std::mem::take(&mut self.pipe.0.borrow_mut().outbound);
        if !out.is_empty() {
            acts.push((at, Act::Send(out)));
        }
    }

    fn act(
        &mut self,
        mut call: Incoming,
        does: Does,
        now: Nanos,
        acts: &mut Vec<(Nanos, Act)>,
        context: &mut Context<'_>,
    ) {
        match does {
            Does::Answer(after, messages, status) => {
                call.answer(&messages, status);
                self.poll(context);
                self.flush(now + after, acts);
            }
            Does::Echo => {
                call.end(0);
                self.poll(context);
                self.flush(now, acts);
            }
            Does::Reset(reason) => {
                call.respond.send_reset(reason);
                self.poll(context);
                self.flush(now, acts);
            }
            Does::Leave(after) => {
                if let Stage::Open(open) = &mut self.stage {
                    open.graceful_shutdown();
                }
                self.poll(context);
                self.flush(now, acts);
                call.answer(&[b"hi"], 0);
                self.poll(context);
                self.flush(now + after, acts);
            }
            Does::Close => {
                acts.push((now, Act::Close));
                self.stage = Stage::Over;
            }
            Does::Nothing => self.calls.push(call),
        }
    }
}

impl Incoming {
    /// Reads the request. What the server does with it, when it is whole.
    fn read(&mut self, context: &mut Context<'_>, seen: &RefCell<Seen>) -> Option<Does> {
        loop {
            match self.request.poll_data(context) {
                Poll::Ready(Some(Ok(piece))) => {
                    let flow = self.request.flow_control();
                    flow.release_capacity(piece.len()).unwrap();
                    self.body.extend_from_slice(&piece);
                    if matches!(self.does, Does::Echo) {
                        self.begin().send_data(piece, false).unwrap();
                    }
                }
                Poll::Ready(Some(Err(_))) => {
                    seen.borrow_mut().cancelled += 1;
                    return Some(Does::Reset(Reason::CANCEL));
                }
                Poll::Ready(None) if matches!(self.does, Does::Nothing) => {
                    let reset = self.respond.poll_reset(context);
                    if reset.is_ready() {
                        seen.borrow_mut().cancelled += 1;
                        return Some(Does::Reset(Reason::CANCEL));
                    }
                    return None;
                }
                Poll::Ready(None) => {
                    seen.borrow_mut()
                        .bodies
                        .push(std::mem::take(&mut self.body));
                    return Some(self.does.clone());
                }
                Poll::Pending => return None,
            }
        }
    }

    fn begin(&mut self) -> &mut SendStream<Bytes> {
        let Incoming {
            respond, answer, ..
        } = self;
        answer.get_or_insert_with(|| {
            let head = Response::builder().header("content-type", "application/grpc");
            respond
                .send_response(head.body(()).unwrap(), false)
                .unwrap()
        })
    }

    fn end(&mut self, status: u32) {
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", HeaderValue::from(status));
        self.begin().send_trailers(trailers).unwrap();
    }

    fn answer(&mut self, messages: &[&[u8]], status: u32) {
        for message in messages {
            self.begin()
                .send_data(Bytes::from(frame(message)), false)
                .unwrap();
        }
        self.end(status);
    }
}

impl<F: FnMut(u64, Nanos) -> Does> Script for Peer<F> {
    fn connection(&mut self, token: Token, now: Nanos) -> Vec<(Nanos, Act)> {
        self.seen.borrow_mut().connections += 1;
        let pipe = Pipe::default();
        let mut builder = h2::server::Builder::new();
        builder.max_concurrent_streams(self.streams);
        let guest = Guest {
            stage: Stage::Shaking(Box::pin(builder.handshake(pipe.clone()))),
            pipe,
            calls: Vec::new(),
        };
        self.guests.insert((token.slot, token.generation), guest);
        vec![(now, Act::Accept)]
    }

    fn request(&mut self, _: Token, _: Nanos) -> Vec<(Nanos, Act)> {
        unreachable!("streams write bytes")
    }

    fn bytes(&mut self, token: Token, bytes: &[u8], now: Nanos) -> Vec<(Nanos, Act)> {
        let key = (token.slot, token.generation);
        if let Some(guest) = self.guests.get(&key) {
            guest.pipe.0.borrow_mut().inbound.extend_from_slice(bytes);
        }
        self.work(key, now)
    }
}
