//! What a caller and a server may do in any order: never is more sent than the server's windows allow, and what was
//! given is sent once, whole and in order.

use arbitrary::{Arbitrary, Unstructured};
use std::collections::HashMap;
use velodrome_engine::protocol::http2::{RequestHead, Session, Settings};

#[derive(Debug, Arbitrary)]
enum Deed {
    Begin { tag: u8, length: u16, end: bool },
    Send { tag: u8, length: u16, end: bool },
    Cancel { tag: u8 },
    WidenStream { stream: u8, by: u16 },
    WidenAll { by: u16 },
    InitialWindow { size: u32 },
    Answer { stream: u8 },
    Reset { stream: u8 },
}

/// One stream as the server may see it.
#[derive(Default)]
struct Model {
    tag: u32,
    /// All bytes given, and how many of them came.
    given: Vec<u8>,
    came: usize,
    closing: bool,
    ended: bool,
    over: bool,
    window: i64,
}

struct World {
    session: Session,
    head: RequestHead,
    streams: HashMap<u32, Model>,
    next: u32,
    initial: i64,
    window: i64,
    counter: u8,
}

impl World {
    fn new() -> World {
        let mut session = Session::new(Settings {
            max_waiting: 1 << 20,
            ..Settings::default()
        });
        let mut out = Vec::new();
        session.open(&mut out);
        session
            .feed(&[0, 0, 0, 4, 0, 0, 0, 0, 0], &mut out, |_, _| {})
            .unwrap();
        World {
            session,
            head: RequestHead::new("POST", "http", "a", "/", &[]).unwrap(),
            streams: HashMap::new(),
            next: 1,
            initial: 65_535,
            window: 65_535,
            counter: 0,
        }
    }

    fn bytes(&mut self, length: u16) -> Vec<u8> {
        (0..length)
            .map(|_| {
                self.counter = self.counter.wrapping_add(1);
                self.counter
            })
            .collect()
    }

    fn live(&mut self, tag: u32) -> Option<&mut Model> {
        self.streams
            .values_mut()
            .find(|model| model.tag == tag && !model.over)
    }

    fn act(&mut self, deed: Deed) {
        let mut out = Vec::new();
        match deed {
            Deed::Begin { tag, length, end } => {
                let (tag, bytes) = (u32::from(tag % 6), self.bytes(length));
                let begun = self.session.begin(tag, &self.head, &bytes, end, &mut out);
                assert_eq!(begun.is_ok(), self.live(tag).is_none());
                if begun.is_ok() {
                    let window = self.initial;
                    let model = Model {
                        tag,
                        given: bytes,
                        closing: end,
                        window,
                        ..Model::default()
                    };
                    self.streams.insert(self.next, model);
                    self.next += 2;
                }
            }
            Deed::Send { tag, length, end } => {
                let (tag, bytes) = (u32::from(tag % 6), self.bytes(length));
                if self.session.send(tag, &bytes, end, &mut out).is_ok() {
                    let model = self.live(tag).expect("a stream in flight");
                    assert!(!model.closing);
                    model.given.extend(bytes);
                    model.closing = end;
                }
            }
            Deed::Cancel { tag } => {
                self.session.cancel(u32::from(tag % 6), 8, &mut out);
                if let Some(model) = self.live(u32::from(tag % 6)) {
                    model.over = true;
                }
            }
            Deed::WidenStream { stream, by } => {
                let id = 2 * u32::from(stream % 16) + 1;
                if by == 0 || id >= self.next {
                    return;
                }
                let model = self.streams.get_mut(&id).expect("begun");
                model.window += i64::from(by);
                self.feed(8, id, &u32::from(by).to_be_bytes(), &mut out);
            }
            Deed::WidenAll { by } => {
                self.window += i64::from(by);
                if by > 0 {
                    self.feed(8, 0, &u32::from(by).to_be_bytes(), &mut out);
                }
            }
            Deed::InitialWindow { size } => {
                let size = size % 200_000;
                for model in self.streams.values_mut().filter(|model| !model.over) {
                    model.window += i64::from(size) - self.initial;
                }
                self.initial = i64::from(size);
                self.feed(4, 0, &[&[0, 4][..], &size.to_be_bytes()].concat(), &mut out);
            }
            Deed::Answer { stream } => self.end(stream, 1, &[0x88], &mut out),
            Deed::Reset { stream } => self.end(stream, 3, &[0, 0, 0, 2], &mut out),
        }
        self.read(&out);
    }

    fn end(&mut self, stream: u8, kind: u8, payload: &[u8], out: &mut Vec<u8>) {
        let id = 2 * u32::from(stream % 16) + 1;
        if id < self.next {
            self.feed(kind, id, payload, out);
            self.streams.get_mut(&id).expect("begun").over = true;
        }
    }

    fn feed(&mut self, kind: u8, stream: u32, payload: &[u8], out: &mut Vec<u8>) {
        let mut frame = vec![
            0,
            0,
            payload.len() as u8,
            kind,
            if kind == 1 { 5 } else { 0 },
        ];
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        self.session
            .feed(&frame, out, |_, _| {})
            .expect("all right");
    }

    /// What was written, as a server checks it.
    fn read(&mut self, mut out: &[u8]) {
        while let [_, l1, l2, kind, flags, s0, s1, s2, s3, rest @ ..] = out {
            let length = usize::from(*l1) << 8 | usize::from(*l2);
            let id = u32::from_be_bytes([*s0, *s1, *s2, *s3]);
            let (payload, after) = rest.split_at(length);
            if *kind <= 1 {
                let model = self.streams.get_mut(&id).expect("begun");
                assert!(!model.ended, "nothing follows the end");
                if *kind == 0 {
                    assert_eq!(payload, &model.given[model.came..][..length]);
                    model.came += length;
                    model.window -= length as i64;
                    self.window -= length as i64;
                    assert!(length == 0 || (model.window >= 0 && self.window >= 0));
                }
                model.ended = flags & 1 != 0;
                assert!(!model.ended || (model.closing && model.came == model.given.len()));
            }
            out = after;
        }
        for model in self.streams.values().filter(|model| !model.over) {
            assert_eq!(self.session.is_sent(model.tag), model.ended);
            let all = model.came == model.given.len();
            assert!(
                all || model.window <= 0 || self.window <= 0,
                "held back for nothing"
            );
            assert!(!all || model.ended == model.closing);
        }
    }
}

pub fn check(bytes: &[u8]) {
    let input = <Vec<Deed>>::arbitrary_take_rest(Unstructured::new(bytes));
    let Ok(deeds) = input else { return };
    let mut world = World::new();
    for deed in deeds {
        world.act(deed);
    }
}
