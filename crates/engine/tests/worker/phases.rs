//! When answers begin, and what waits, to the nanosecond.

use velodrome_engine::clock::MILLISECOND;
use velodrome_engine::outcome::Outcome;
use velodrome_engine::transport::simulated::Act;

use crate::load::{Load, RIGHT, after, at, near};

#[test]
fn the_first_byte_of_an_answer_in_pieces_comes_before_its_last() {
    let record = Load::default().run(|number, now| {
        if number % 2 == 0 {
            return after(3 * MILLISECOND, now);
        }
        let (head, rest) = RIGHT.split_at(10);
        vec![
            (now + 2 * MILLISECOND, Act::Send(head.to_vec())),
            (now + 7 * MILLISECOND, Act::Send(rest.to_vec())),
        ]
    });
    let pieces = record.pieces.as_deref().unwrap();
    let first = pieces.first_byte(&record.sent);
    let last = pieces.last_byte(&record.sent);
    assert_eq!(first.histogram.len(), record.outcomes.total());
    assert_eq!(last.histogram.len(), record.outcomes.total());
    assert!(near(at(&first, 0.4), 2.0) && near(at(&first, 0.9), 3.0));
    assert!(at(&last, 0.4) == 0.0 && near(at(&last, 0.9), 5.0));
    assert_eq!(record.fastest, 3 * MILLISECOND);
}

#[test]
fn an_answer_that_breaks_off_in_time_outs_has_a_first_byte_and_no_last() {
    let record = Load::default()
        .run(|_, now| vec![(now + 2 * MILLISECOND, Act::Send(RIGHT[..10].to_vec()))]);
    let timeouts = record.outcomes.of(Outcome::Timeout) + record.outcomes.of(Outcome::Unfinished);
    assert_eq!(record.outcomes.total(), timeouts);
    let pieces = record.pieces.as_deref().unwrap();
    let first = pieces.first_byte(&record.sent);
    assert_eq!(first.histogram.len(), timeouts);
    assert!(near(at(&first, 0.5), 2.0), "{}", at(&first, 0.5));
    assert_eq!(pieces.last_byte(&record.sent).histogram.len(), 0);
}
