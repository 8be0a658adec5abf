//! WebSockets on the simulated clock: echo, connect and broadcast, to the nanosecond.

use velodrome_engine::clock::{self, MILLISECOND, Nanos, SECOND};
use velodrome_engine::outcome::Outcome;
use velodrome_engine::pace::{Arrivals, Schedule, Spread};
use velodrome_engine::protocol::Protocol;
use velodrome_engine::protocol::websocket::broadcast::Letter;
use velodrome_engine::protocol::websocket::broadcast::{self, Broadcast};
use velodrome_engine::protocol::websocket::connect::{self, Connect};
use velodrome_engine::protocol::websocket::echo::{self, Echo};
use velodrome_engine::protocol::websocket::{Kind, Upgrade};
use velodrome_engine::record::Record;
use velodrome_engine::transport::Transport;
use velodrome_engine::transport::room::{Plan, Room};
use velodrome_engine::transport::simulated::{Act, Simulated};
use velodrome_engine::transport::websocket::WebSocket;
use velodrome_engine::worker::RequestQueue;
use velodrome_engine::worker::RunControl;
use velodrome_engine::worker::{Orders, Worker};

use crate::chat::{self, Chat, Says};
use crate::load::{START, at, near};

/// A load of 10 s at most with a time-out of 2 s and a drain of 1 s.
#[derive(Clone, Copy)]
struct Load {
    rate: Option<f64>,
    requests: Option<u64>,
    connections: usize,
    keepalive: bool,
    /// Messages of a room on their way at once.
    at_once: usize,
}

const LOAD: Load = Load {
    rate: None,
    requests: None,
    connections: 1,
    keepalive: true,
    at_once: 1,
};

fn upgrade() -> Upgrade {
    Upgrade::new("127.0.0.1:8000", "/chat", &[]).unwrap()
}

impl Load {
    fn run<P: Protocol, T: Transport<Medium = P::Medium>>(
        self,
        ask: P::Ask,
        slots: usize,
        transport: impl FnOnce(clock::Simulated) -> T,
    ) -> Record {
        let clock = clock::Simulated::default();
        clock.advance_to(START);
        let orders = Orders {
            keepalive: self.keepalive,
            timeout: 2 * SECOND,
        };
        let arrivals = self
            .rate
            .map(|rate| Arrivals::new(Spread::Constant, Schedule::constant(rate), 1, 0, 1));
        let queue = RequestQueue::new(arrivals, self.requests);
        let span = self.requests.is_none().then_some(10 * SECOND);
        let control = RunControl::new(0, span, SECOND, 1);
        let record = Record::new(0, 5, None);
        let transport = transport(clock.clone());
        let worker = Worker::<P, _, _>::new(orders, ask, transport, clock, queue, record, slots);
        worker.run(&control).unwrap()
    }

    fn echo(self, says: impl FnMut(u64, Nanos) -> Says) -> Record {
        let ask = echo::Ask::new(Kind::Text, b"hello", [1, 2, 3, 4], 1);
        self.run::<Echo, _>(ask, self.connections, |clock| {
            let below = Simulated::new(clock, Chat::new(says));
            WebSocket::new(below, self.connections, upgrade(), 1 << 20)
        })
    }

    fn connect(self, says: impl FnMut(u64, Nanos) -> Says) -> Record {
        let load = Load {
            keepalive: false,
            ..self
        };
        let ask = connect::Ask::new(&mut upgrade());
        load.run::<Connect, _>(ask, self.connections, |clock| {
            Simulated::new(clock, Chat::new(says))
        })
    }

    fn broadcast(self, says: impl FnMut(u64, Nanos) -> Says) -> Record {
        let ask = broadcast::Ask {
            members: self.connections as u32,
        };
        self.run::<Broadcast, _>(ask, self.at_once, |clock| {
            let plan = Plan {
                members: self.connections,
                slots: self.at_once,
                letter: Letter::new(Kind::Text, b"hello"),
                upgrade: upgrade(),
                limit: 1 << 20,
                mask: [1, 2, 3, 4],
            };
            Room::new(Simulated::new(clock.clone(), Chat::new(says)), clock, plan)
        })
    }
}

fn after(pause: Nanos) -> Says {
    Says {
        after: pause,
        ..Says::default()
    }
}

#[test]
fn a_stalled_server_shows_in_due_latency_and_not_in_sent_latency_over_websockets_too() {
    let load = Load {
        rate: Some(100.0),
        ..LOAD
    };
    let record = load.echo(|_, now| {
        let frozen = (START + 2 * SECOND..START + 3 * SECOND).contains(&now);
        after(if frozen {
            START + 3 * SECOND - now + MILLISECOND
        } else {
            MILLISECOND
        })
    });
    assert_eq!(
        record.outcomes.of(Outcome::Ok),
        1_000,
        "{:?}",
        record.examples
    );
    assert_eq!(record.outcomes.total(), 1_000, "nothing was skipped");
    assert!(
        near(at(&record.sent, 0.99), 1.0),
        "{}",
        at(&record.sent, 0.99)
    );
    assert!(
        near(at(&record.sent, 1.0), 1001.0),
        "{}",
        at(&record.sent, 1.0)
    );
    let p95 = at(&record.due, 0.95);
    assert!((450.0..600.0).contains(&p95), "{p95}");
    assert_eq!(record.lag.max, 0);
    assert_eq!(
        (record.connections.opened, record.connections.reopened),
        (1, 0)
    );
}

#[test]
fn a_closed_loop_of_messages_keeps_every_connection_busy() {
    let record = Load {
        connections: 4,
        ..LOAD
    }
    .echo(|_, _| after(100 * MILLISECOND));
    assert_eq!(record.outcomes.of(Outcome::Ok), 400);
    assert_eq!(record.flight_time(), u128::from(4 * 10 * SECOND));
}

#[test]
fn another_message_is_a_wrong_answer_and_pings_are_none() {
    let rows: &[(Vec<u8>, &str)] = &[
        (
            chat::frame(1, b"hellO"),
            "a message of the right length, 5 bytes, that is another",
        ),
        (
            chat::frame(1, b"hello!"),
            "a message of 6 bytes where 5 are right",
        ),
        (
            chat::frame(2, b"hello"),
            "a binary message where a text one is right",
        ),
    ];
    for (wrong, why) in rows {
        let record = Load {
            requests: Some(3),
            ..LOAD
        }
        .echo(|_, _| Says {
            instead: Some([chat::frame(9, b"ping"), wrong.clone()].concat()),
            ..after(MILLISECOND)
        });
        assert_eq!(record.outcomes.of(Outcome::WrongBody), 3);
        assert_eq!(record.examples, [(Outcome::WrongBody, (*why).to_owned())]);
        assert_eq!(record.connections.reopened, 0, "the connection goes on");
    }
}

#[test]
fn a_server_that_says_goodbye_resets_its_request_and_is_asked_on_a_new_connection() {
    let record = Load {
        requests: Some(4),
        ..LOAD
    }
    .echo(|n, _| Says {
        instead: (n == 1).then(|| chat::frame(8, b"\x03\xe9restart")),
        ..after(MILLISECOND)
    });
    assert_eq!(
        (
            record.outcomes.of(Outcome::Ok),
            record.outcomes.of(Outcome::Reset)
        ),
        (3, 1)
    );
    assert_eq!(record.connections.reopened, 1);
    let why = "the server closed the WebSocket: code 1001 (going away): 'restart'";
    assert_eq!(record.examples, [(Outcome::Reset, why.to_owned())]);
}

#[test]
fn garbage_and_unfinished_messages_are_told_apart() {
    let record = Load {
        requests: Some(1),
        ..LOAD
    }
    .echo(|_, _| Says {
        instead: Some(b"\xf1\x00".to_vec()),
        ..after(MILLISECOND)
    });
    let (outcome, why) = &record.examples[0];
    assert_eq!(*outcome, Outcome::BadProtocol);
    assert!(
        why.contains("an extension that was not agreed upon"),
        "{why}"
    );
    let record = Load {
        requests: Some(1),
        ..LOAD
    }
    .echo(|_, _| Says {
        instead: Some(chat::frame(1, b"hello")[..4].to_vec()),
        ..after(MILLISECOND)
    });
    let late = (
        Outcome::Timeout,
        "the answer was not complete after 2 s".to_owned(),
    );
    assert_eq!(record.examples, [late]);
}

#[test]
fn a_server_that_does_not_upgrade_is_told_with_its_status() {
    let says = |_, _| Says {
        head: Some("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"),
        ..Says::default()
    };
    let why =
        "the server answers the opening handshake with 'HTTP/1.1 403 Forbidden' where 101 is right";
    let record = Load {
        requests: Some(2),
        ..LOAD
    }
    .echo(says);
    assert_eq!(record.outcomes.of(Outcome::BadStatus), 2);
    assert_eq!(
        record.examples,
        [(Outcome::BadStatus, format!("cannot connect: {why}"))]
    );
    let record = Load {
        requests: Some(2),
        ..LOAD
    }
    .connect(says);
    assert_eq!(record.outcomes.of(Outcome::BadStatus), 2);
    assert_eq!(record.examples, [(Outcome::BadStatus, why.to_owned())]);
    let silent = |_, _| Says {
        head: Some(""),
        ..Says::default()
    };
    let record = Load {
        requests: Some(1),
        ..LOAD
    }
    .echo(silent);
    assert_eq!(record.outcomes.of(Outcome::Timeout), 1);
    assert!(
        record.examples[0]
            .1
            .contains("did not answer the opening handshake within 2 s")
    );
}

#[test]
fn to_connect_takes_as_long_as_connection_and_handshake_together() {
    let record = Load {
        requests: Some(50),
        connections: 2,
        ..LOAD
    }
    .connect(|_, _| Says {
        accept_after: 30 * MILLISECOND,
        shake_after: 10 * MILLISECOND,
        ..Says::default()
    });
    assert_eq!(record.outcomes.of(Outcome::Ok), 50, "{:?}", record.examples);
    assert!(near(at(&record.due, 0.5), 40.0), "{}", at(&record.due, 0.5));
    assert!(
        near(at(&record.sent, 0.5), 10.0),
        "{}",
        at(&record.sent, 0.5)
    );
    assert_eq!(record.connections.opened + record.connections.reopened, 50);
}

/// Member `m` of the room gets each message `m` times 10 ms after it was said.
fn one_by_one(_: u64, _: Nanos) -> Says {
    Says {
        apart: 10 * MILLISECOND,
        ..Says::default()
    }
}

#[test]
fn a_broadcast_is_done_when_the_last_has_it_and_each_delivery_is_measured() {
    let load = Load {
        requests: Some(100),
        connections: 5,
        ..LOAD
    };
    let record = load.broadcast(one_by_one);
    assert_eq!(
        record.outcomes.of(Outcome::Ok),
        100,
        "{:?}",
        record.examples
    );
    for durations in [&record.due, &record.sent] {
        assert!(near(at(durations, 0.0), 40.0) && near(at(durations, 1.0), 40.0));
    }
    let deliveries = record.deliveries.unwrap();
    assert_eq!(deliveries.sent.histogram.len(), 500);
    for (quantile, wanted) in [(0.3, 10.0), (0.5, 20.0), (0.7, 30.0), (1.0, 40.0)] {
        let found = at(&deliveries.sent, quantile);
        assert!(near(found, wanted), "{quantile}: {found}");
    }
    assert_eq!(
        (record.connections.opened, record.connections.answered),
        (5, 5)
    );
    let room = record.room.unwrap();
    assert_eq!((room.again, room.late, room.strangers), (0, 0, 0));
}

#[test]
fn broadcasts_of_an_open_loop_overlap_and_are_told_apart_by_their_numbers() {
    let load = Load {
        rate: Some(100.0),
        connections: 10,
        at_once: 100,
        ..LOAD
    };
    let record = load.broadcast(one_by_one);
    assert_eq!(
        record.outcomes.of(Outcome::Ok),
        1_000,
        "{:?}",
        record.examples
    );
    assert!(near(at(&record.due, 1.0), 90.0), "{}", at(&record.due, 1.0));
    assert_eq!(record.deliveries.unwrap().due.histogram.len(), 10_000);
    assert_eq!(record.lag.max, 0);
}

#[test]
fn a_message_that_does_not_reach_all_is_a_time_out_that_names_how_many_got_it() {
    let load = Load {
        requests: Some(2),
        connections: 5,
        ..LOAD
    };
    let record = load.broadcast(|n, _| Says {
        // The first is the trial message.
        deaf: if n == 1 { vec![1, 3] } else { vec![] },
        ..one_by_one(n, 0)
    });
    assert_eq!(
        (
            record.outcomes.of(Outcome::Ok),
            record.outcomes.of(Outcome::Timeout)
        ),
        (1, 1)
    );
    let why = "3 of 5 members had the message after 2 s";
    assert_eq!(record.examples, [(Outcome::Timeout, why.to_owned())]);
    assert_eq!(
        record.deliveries.unwrap().due.histogram.len(),
        8,
        "those that came count"
    );
    assert_eq!(record.connections.reopened, 0, "the room is as it was");
}

#[test]
fn what_a_room_hears_beside_is_counted() {
    let load = Load {
        requests: Some(3),
        connections: 2,
        ..LOAD
    };
    let record = load.broadcast(|_, _| Says {
        noise: [chat::frame(1, b"welcome, all"), chat::frame(1, b"0123")].concat(),
        twice: true,
        ..Says::default()
    });
    assert_eq!(record.outcomes.of(Outcome::Ok), 3, "{:?}", record.examples);
    let room = record.room.unwrap();
    // Of the first of two copies the message is done when the last member has it; more are late.
    assert!(
        room.strangers >= 12 && room.again + room.late >= 4,
        "{room:?}"
    );
}

#[test]
fn a_changed_message_is_a_wrong_one() {
    let load = Load {
        requests: Some(2),
        connections: 3,
        ..LOAD
    };
    let record = load.broadcast(|n, _| Says {
        garbled: n > 0,
        ..Says::default()
    });
    assert_eq!(record.outcomes.of(Outcome::WrongBody), 2);
    let why = "3 of 3 members got another message under the number of this one";
    assert_eq!(record.examples, [(Outcome::WrongBody, why.to_owned())]);
}

#[test]
fn a_lost_member_resets_what_is_on_its_way_and_the_room_is_made_complete_again() {
    let load = Load {
        requests: Some(5),
        connections: 3,
        ..LOAD
    };
    let record = load.broadcast(|n, _| Says {
        lose: (n == 2).then_some(1),
        ..one_by_one(n, 0)
    });
    assert_eq!(
        (
            record.outcomes.of(Outcome::Ok),
            record.outcomes.of(Outcome::Reset)
        ),
        (4, 1)
    );
    assert!(
        record.examples[0]
            .1
            .starts_with("member 2 of 3 lost its WebSocket: the server closed"),
        "{:?}",
        record.examples
    );
    assert_eq!(
        (record.connections.opened, record.connections.reopened),
        (3, 1)
    );
}

#[test]
fn a_server_that_sends_nothing_on_is_no_room_and_is_told_so() {
    let load = Load {
        requests: Some(1),
        connections: 4,
        ..LOAD
    };
    let record = load.broadcast(|_, _| Says {
        deaf: vec![1, 2, 3],
        ..Says::default()
    });
    let (outcome, why) = &record.examples[0];
    assert_eq!(*outcome, Outcome::Timeout);
    assert!(
        why.contains("1 of 4 members heard a trial message within 2 s"),
        "{why}"
    );
    let refused = Load {
        requests: Some(1),
        connections: 4,
        ..LOAD
    };
    let record = refused.broadcast(|_, _| Says {
        accept: Some(Act::Break(libc::ECONNREFUSED)),
        ..Says::default()
    });
    assert_eq!(
        record.outcomes.of(Outcome::Refused),
        1,
        "{:?}",
        record.examples
    );
}
