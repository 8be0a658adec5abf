//! Any blocks, one after the other, through one decoder: no panic, no more told than the limit; and what it told can
//! be written again and reads the same.

use arbitrary::{Arbitrary, Unstructured};
use velodrome_engine::protocol::http2::hpack::{Decoder, cost, literal};

type Fields = Vec<(Vec<u8>, Vec<u8>)>;

fn decode(decoder: &mut Decoder, block: &[u8], limit: usize) -> Option<Fields> {
    let mut fields = Fields::new();
    let mut told = 0;
    let decoded = decoder.decode(block, limit, |name, value| {
        told += cost(name, value);
        fields.push((name.to_vec(), value.to_vec()));
    });
    assert!(told <= limit);
    decoded.ok().map(|()| fields)
}

pub fn check(bytes: &[u8]) {
    let input = <Vec<&[u8]>>::arbitrary_take_rest(Unstructured::new(bytes));
    let Ok(blocks) = input else { return };
    let mut decoder = Decoder::new();
    for block in blocks {
        let Some(fields) = decode(&mut decoder, block, 10_000) else {
            return;
        };
        for keep in [false, true] {
            let mut again = Vec::new();
            for (name, value) in &fields {
                literal(&mut again, name, value, keep);
            }
            assert_eq!(
                decode(&mut Decoder::new(), &again, 10_000).as_ref(),
                Some(&fields)
            );
        }
    }
}
