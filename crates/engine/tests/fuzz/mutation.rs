//! New cases from known ones: a few edits each, drawn from a seed.

/// The longest case: more only makes each of them slower.
const LONGEST: usize = 4096;
const MOST_EDITS: u64 = 6;

/// Tokens on which these protocols turn, so that not every one of them has to be found bit by bit.
const WORDS: &[&[u8]] = &[
    b"\r\n",
    b"\n",
    b"\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/1.1 101 S\r\n\r\n",
    b"HTTP/1.0 204 N\r\n",
    b"Content-Length: 3\r\n",
    b"Content-Length: 18446744073709551615\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Connection: close\r\n",
    b"ffffffffffffffff\r\n",
    b"7fffffffffffffff\r\n",
    b"8000000000000000\r\n",
    b"0\r\n\r\n",
    b"5\r\nhello\r\n",
    b";x=y",
    b"\x00\x00\x00\x04\x00\x00\x00\x00\x00",
    b"\x00\x00\x00\x00\x00",
    b"\x01\x00\x00\x00\x00",
    b"\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff",
    b"\x3f\xe1\x1f",
    b"\x88",
    b"\xbe",
    b"\x81\x7e\x00\x80",
    b"\x82\x7f\x80\x00\x00\x00\x00\x00\x00\x00",
    b"\x82\x7f\x7f\xff\xff\xff\xff\xff\xff\xff",
    b"\x88\x02\x03\xe8",
    b"\x89\x00",
    b"\xf0\x9f\x92\xa9",
    b"hello",
];

pub struct Mutator<'a> {
    seed: u64,
    corpus: &'a [Vec<u8>],
}

impl<'a> Mutator<'a> {
    pub fn new(name: &str, corpus: &'a [Vec<u8>]) -> Self {
        assert!(!corpus.is_empty(), "{name} has no corpus to begin with");
        // FNV-1a, 64 bits.
        let seed = name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self { seed, corpus }
    }

    /// Case `number`.
    pub fn case(&self, number: u64) -> Vec<u8> {
        let mut random = Random(
            self.seed
                .wrapping_add(number.wrapping_mul(0xd134_2543_de82_ef95)),
        );
        let mut case = random.pick(self.corpus).clone();
        for _ in 0..=random.below(MOST_EDITS) {
            self.edit(&mut case, &mut random);
        }
        case.truncate(LONGEST);
        case
    }

    fn edit(&self, case: &mut Vec<u8>, random: &mut Random) {
        let at = random.place(case.len() + 1);
        match random.below(8) {
            0 => {
                if let Some(byte) = case.get_mut(at) {
                    *byte ^= 1 << random.below(8);
                }
            }
            1 => {
                if let Some(byte) = case.get_mut(at) {
                    *byte = *random.pick(&[0, 1, 9, 0x7f, 0x80, 0xfe, 0xff]);
                }
            }
            2 => {
                let byte = random.next() as u8;
                case.insert(at, byte);
            }
            3 => {
                let end = (at + random.place(16) + 1).min(case.len());
                case.drain(at.min(end)..end);
            }
            4 => {
                let word = *random.pick(WORDS);
                case.splice(at..at, word.iter().copied());
            }
            5 => {
                let word = *random.pick(WORDS);
                let end = (at + word.len()).min(case.len());
                case.splice(at..end, word.iter().copied());
            }
            6 => {
                // Again, which is what floods are made of.
                let piece = case[at..(at + random.place(64)).min(case.len())].to_vec();
                for _ in 0..=random.below(4) {
                    case.splice(at..at, piece.iter().copied());
                }
            }
            _ => {
                let other = random.pick(self.corpus);
                let from = random.place(other.len() + 1);
                case.truncate(at);
                case.extend_from_slice(&other[from..]);
            }
        }
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn place(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    fn pick<'t, T>(&mut self, all: &'t [T]) -> &'t T {
        &all[self.place(all.len())]
    }
}
