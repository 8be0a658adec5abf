//! The vectors of RFC 7541, appendix C, and what a hostile block comes to.

use proptest::prelude::*;

use super::{Decoder, HpackError, indexed, literal, read, resize, write};
use crate::protocol::http2::hpack::static_table;

type Field<'a> = (&'a str, &'a str);

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .chars()
        .filter_map(|digit| digit.to_digit(16))
        .map(|digit| digit as u8)
        .collect();
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<Vec<(String, String)>, HpackError> {
    let mut fields = Vec::new();
    decoder.decode(block, 65_536, |name, value| {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        fields.push((text(name), text(value)));
    })?;
    Ok(fields)
}

fn owned(fields: &[Field]) -> Vec<(String, String)> {
    fields
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

/// Plays a sequence of blocks to one decoder: hexadecimal, fields, size of the table afterwards.
fn play(limit: usize, blocks: &[(&str, &[Field], usize)]) {
    let mut decoder = Decoder::new();
    let mut start = Vec::new();
    resize(&mut start, limit);
    assert_eq!(decode(&mut decoder, &start), Ok(vec![]));
    for (number, (block, fields, size)) in blocks.iter().enumerate() {
        let decoded = decode(&mut decoder, &hex(block));
        assert_eq!(decoded, Ok(owned(fields)), "block {}", number + 1);
        assert_eq!(decoder.table().size(), *size, "block {}", number + 1);
    }
}

#[test]
fn numbers_of_appendix_c1() {
    for (number, prefix, bytes) in [(10, 5, "0a"), (1337, 5, "1f9a0a"), (42, 8, "2a")] {
        let mut written = Vec::new();
        write(&mut written, 0, prefix, number);
        assert_eq!(written, hex(bytes));
        assert_eq!(read(&mut written.as_slice(), prefix), Ok(number as u32));
    }
}

#[test]
fn representations_of_appendix_c2() {
    play(
        4096,
        &[(
            "400a637573746f6d2d6b65790d637573746f6d2d686561646572",
            &[("custom-key", "custom-header")],
            55,
        )],
    );
    play(
        4096,
        &[(
            "040c2f73616d706c652f70617468",
            &[(":path", "/sample/path")],
            0,
        )],
    );
    play(
        4096,
        &[(
            "100870617373776f726406736563726574",
            &[("password", "secret")],
            0,
        )],
    );
    play(4096, &[("82", &[(":method", "GET")], 0)]);
}

const REQUESTS: [&[Field]; 3] = [
    &[
        (":method", "GET"),
        (":scheme", "http"),
        (":path", "/"),
        (":authority", "www.example.com"),
    ],
    &[
        (":method", "GET"),
        (":scheme", "http"),
        (":path", "/"),
        (":authority", "www.example.com"),
        ("cache-control", "no-cache"),
    ],
    &[
        (":method", "GET"),
        (":scheme", "https"),
        (":path", "/index.html"),
        (":authority", "www.example.com"),
        ("custom-key", "custom-value"),
    ],
];

#[test]
fn requests_of_appendices_c3_and_c4() {
    play(
        4096,
        &[
            ("828684410f7777772e6578616d706c652e636f6d", REQUESTS[0], 57),
            ("828684be58086e6f2d6361636865", REQUESTS[1], 110),
            (
                "828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565",
                REQUESTS[2],
                164,
            ),
        ],
    );
    play(
        4096,
        &[
            ("828684418cf1e3c2e5f23a6ba0ab90f4ff", REQUESTS[0], 57),
            ("828684be5886a8eb10649cbf", REQUESTS[1], 110),
            (
                "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf",
                REQUESTS[2],
                164,
            ),
        ],
    );
}

const ANSWERS: [&[Field]; 3] = [
    &[
        (":status", "302"),
        ("cache-control", "private"),
        ("date", "Mon, 21 Oct 2013 20:13:21 GMT"),
        ("location", "https://www.example.com"),
    ],
    &[
        (":status", "307"),
        ("cache-control", "private"),
        ("date", "Mon, 21 Oct 2013 20:13:21 GMT"),
        ("location", "https://www.example.com"),
    ],
    &[
        (":status", "200"),
        ("cache-control", "private"),
        ("date", "Mon, 21 Oct 2013 20:13:22 GMT"),
        ("location", "https://www.example.com"),
        ("content-encoding", "gzip"),
        (
            "set-cookie",
            "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
        ),
    ],
];

#[test]
fn answers_of_appendices_c5_and_c6_evict_entries() {
    play(
        256,
        &[
            (
                "4803333032580770726976617465611d4d6f6e2c203231204f637420323031332032303a31333a323120474d54\
                 6e1768747470733a2f2f7777772e6578616d706c652e636f6d",
                ANSWERS[0],
                222,
            ),
            ("4803333037c1c0bf", ANSWERS[1], 222),
            (
                "88c1611d4d6f6e2c203231204f637420323031332032303a31333a323220474d54c05a04677a69707738666f6f\
                 3d4153444a4b48514b425a584f5157454f50495541585157454f49553b206d61782d6167653d333630303b2076\
                 657273696f6e3d31",
                ANSWERS[2],
                215,
            ),
        ],
    );
    play(
        256,
        &[
            (
                "488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f\
                 0b97c8e9ae82ae43d3",
                ANSWERS[0],
                222,
            ),
            ("4883640effc1c0bf", ANSWERS[1], 222),
            (
                "88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94e7821dd7f2e6c7b335df\
                 dfcd5b3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007",
                ANSWERS[2],
                215,
            ),
        ],
    );
}

#[test]
fn a_fault_is_told_by_its_name() {
    use HpackError as E;
    let none = |index| E::NoSuchEntry { index, entries: 61 };
    let rows: &[(&str, HpackError)] = &[
        ("80", none(0)),
        ("be", none(62)),
        ("7f", E::Truncated),
        ("7f00", none(63)),
        ("ffffffffff7f", E::NumberTooLarge),
        ("ff80808080808000", E::NumberTooLarge),
        ("40", E::Truncated),
        ("4003616263", E::Truncated),
        ("40036162", E::Truncated),
        ("4081ff", E::BadHuffman),   // only padding, a whole byte of it
        ("40821fff", E::BadHuffman), // padding of a byte after a letter
        ("408118", E::BadHuffman),   // padding of zeros
        ("4084ffffffff00", E::BadHuffman), // the end of string
        (
            "3fe21f",
            E::TableTooLarge {
                asked: 4097,
                allowed: 4096,
            },
        ),
        ("8220", E::LateResize),
    ];
    for (block, error) in rows {
        assert_eq!(
            decode(&mut Decoder::new(), &hex(block)),
            Err(*error),
            "{block}"
        );
    }
}

#[test]
fn a_short_block_that_names_a_large_entry_again_and_again_is_given_up() {
    let mut block = Vec::new();
    literal(&mut block, b"x", &[b'v'; 4000], true);
    for _ in 0..10_000 {
        indexed(&mut block, 62);
    }
    let (mut decoder, mut told) = (Decoder::new(), 0);
    let limit = 65_536;
    let error = decoder.decode(&block, limit, |name, value| {
        told += name.len() + value.len() + 32
    });
    assert_eq!(error, Err(HpackError::ListTooLarge { limit }));
    assert!(told <= limit, "{told}");
}

#[test]
fn a_table_that_turns_over_for_ever_takes_a_bounded_room() {
    let mut decoder = Decoder::new();
    for number in 0..20_000_usize {
        let mut block = Vec::new();
        let value = vec![b'a' + (number % 26) as u8; number % 700];
        literal(
            &mut block,
            format!("name-{}", number % 50).as_bytes(),
            &value,
            true,
        );
        decode(&mut decoder, &block).unwrap();
        assert!(decoder.table().size() <= 4096);
        assert!(
            decoder.table().memory() <= 24_000,
            "{}",
            decoder.table().memory()
        );
    }
}

/// A model of what an encoder may write: fields spelt out or by index, kept or not, with changes of the size.
#[derive(Debug, Clone)]
enum Step {
    Spelt {
        name: Vec<u8>,
        value: Vec<u8>,
        keep: bool,
    },
    Newest(usize),
    Resize(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let bytes = |most| prop::collection::vec(any::<u8>(), 0..most);
    prop_oneof![
        4 => (bytes(12), bytes(60), any::<bool>())
            .prop_map(|(name, value, keep)| Step::Spelt { name, value, keep }),
        2 => (0_usize..8).prop_map(Step::Newest),
        1 => (0_usize..=4096).prop_map(Step::Resize),
    ]
}

proptest! {
    #[test]
    fn what_is_coded_reads_the_same(text in prop::collection::vec(any::<u8>(), 0..200)) {
        let (mut coded, mut plain) = (Vec::new(), Vec::new());
        static_table::encode(&text, &mut coded);
        prop_assert_eq!(coded.len(), static_table::coded_len(&text));
        prop_assert_eq!(static_table::decode(&coded, &mut plain), Ok(()));
        prop_assert_eq!(plain, text);
    }

    #[test]
    fn any_number_reads_the_same(number in 0_u32..1 << 28, prefix in 1_u32..=8) {
        let mut written = Vec::new();
        write(&mut written, 0, prefix, number as usize);
        let mut rest = written.as_slice();
        prop_assert_eq!(read(&mut rest, prefix), Ok(number));
        prop_assert!(rest.is_empty());
    }

    #[test]
    fn any_bytes_never_panic(block in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = decode(&mut Decoder::new(), &block);
    }

    /// The table against the plainest model of one: a list of pairs.
    #[test]
    fn the_table_is_as_in_the_plainest_model(steps in prop::collection::vec(step(), 0..120)) {
        let (mut decoder, mut model, mut most) = (Decoder::new(), Vec::<(Vec<u8>, Vec<u8>)>::new(), 4096);
        for step in steps {
            let mut block = Vec::new();
            let mut right = Vec::new();
            match step {
                Step::Resize(size) => {
                    resize(&mut block, size);
                    most = size;
                }
                Step::Spelt { name, value, keep } => {
                    literal(&mut block, &name, &value, keep);
                    if keep {
                        model.insert(0, (name.clone(), value.clone()));
                    }
                    right.push((name, value));
                }
                Step::Newest(behind) => {
                    let Some(field) = model.get(behind) else { continue };
                    indexed(&mut block, 62 + behind);
                    right.push(field.clone());
                }
            }
            while model.iter().map(|(name, value)| super::cost(name, value)).sum::<usize>() > most {
                model.pop();
            }
            let mut fields = Vec::new();
            decoder.decode(&block, 65_536, |name, value| fields.push((name.to_vec(), value.to_vec()))).unwrap();
            prop_assert_eq!(fields, right);
            prop_assert_eq!(decoder.table().len(), model.len());
        }
    }
}
