//! A packet as a TUN device hands it over, and the segments within it.
//!
//! ```text
//! virtio_net_hdr (10 bytes) | IPv4 | TCP | payload of up to 64 kB
//! ```
//!
//! The kernel leaves the cutting of large sends to the network card (TCP segmentation offload), and a TUN device is one:
//! what is read may stand for 45 segments. It is moved as it is where all of them have the same fate, and cut where not.
//!
//! Layout: `struct virtio_net_hdr`, in the machine's own byte order (virtio 1.2, section 5.1.6; Linux
//! `include/uapi/linux/virtio_net.h`); RFC 791; RFC 9293.

use std::ops::Range;

/// Bytes of the header before each packet.
pub const HEADER: usize = 10;
/// The largest packet with its header.
pub const LARGEST: usize = HEADER + 65_535;

const NEEDS_CHECKSUM: u8 = 1;
const NOT_CUT: u8 = 0;
const TCP_IPV4: u8 = 1;
const ECN: u8 = 0x80;
const IP_LEAST: usize = 20;
const TCP_LEAST: usize = 20;
const PROTOCOL_TCP: u8 = 6;
const FIN_AND_PSH: u8 = 0x09;
const CWR: u8 = 0x80;

/// A packet with its header, understood as far as it takes to cut it.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    bytes: &'a [u8],
    cut: Option<Cut>,
}

/// How a super-packet is cut.
#[derive(Clone, Copy, Debug)]
struct Cut {
    /// Bytes of the IP header.
    ip: usize,
    /// Bytes of IP and TCP headers.
    headers: usize,
    /// Bytes of payload in each segment but the last.
    payload: usize,
    count: usize,
}

impl<'a> Packet<'a> {
    /// Any bytes: what is not a super-packet of TCP over IPv4 is one packet.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            cut: Cut::of(bytes),
        }
    }

    /// How many packets there would be on a wire.
    #[must_use]
    pub fn segments(&self) -> usize {
        self.cut.map_or(1, |cut| cut.count)
    }

    /// Bytes of segment `number` on a wire, from the IP header on.
    #[must_use]
    pub fn wire_bytes(&self, number: usize) -> usize {
        match self.cut {
            None => self.bytes.len().saturating_sub(HEADER),
            Some(cut) => cut.headers + cut.part(&(number..number + 1), self.bytes).len(),
        }
    }

    /// The packet that stands for these segments, with its header.
    #[must_use]
    pub fn piece(&self, segments: Range<usize>) -> Vec<u8> {
        match self.cut {
            Some(cut) if segments.len() < cut.count => cut.piece(segments, self.bytes),
            _ => self.bytes.to_vec(),
        }
    }
}

impl Cut {
    /// How to cut these bytes; None: they are one packet.
    fn of(bytes: &[u8]) -> Option<Self> {
        let (header, packet) = bytes.split_at_checked(HEADER)?;
        let payload = usize::from(u16::from_ne_bytes([header[4], header[5]]));
        if header[1] & !ECN != TCP_IPV4 || payload == 0 || packet.len() < IP_LEAST {
            return None;
        }
        let ip = usize::from(packet[0] & 0x0f) * 4;
        let is_tcp = packet[0] >> 4 == 4 && ip >= IP_LEAST && packet[9] == PROTOCOL_TCP;
        let tcp = usize::from(packet.get(ip + 12)? >> 4) * 4;
        let headers = ip + tcp;
        if !is_tcp || tcp < TCP_LEAST || packet.len() <= headers {
            return None;
        }
        let count = (packet.len() - headers).div_ceil(payload);
        Some(Self {
            ip,
            headers,
            payload,
            count,
        })
    }

    /// Where in the bytes the payload of these segments is.
    fn part(&self, segments: &Range<usize>, bytes: &[u8]) -> Range<usize> {
        let first = HEADER + self.headers;
        let place = |number: usize| (first + number * self.payload).min(bytes.len());
        place(segments.start)..place(segments.end)
    }

    /// As the kernel's own segmentation does it (`tcp_gso_segment`, `inet_gso_segment`).
    fn piece(&self, segments: Range<usize>, bytes: &[u8]) -> Vec<u8> {
        let part = self.part(&segments, bytes);
        let mut piece = Vec::with_capacity(HEADER + self.headers + part.len());
        piece.extend_from_slice(&bytes[..HEADER + self.headers]);
        piece.extend_from_slice(&bytes[part]);
        let (header, packet) = piece.split_at_mut(HEADER);
        if segments.len() == 1 {
            header[1] = NOT_CUT;
            put(header, 4, 0, u16::to_ne_bytes);
        }
        // How much of it is headers: the kernel copies at least that much into the packet's first part.
        put(header, 2, self.headers as u16, u16::to_ne_bytes);
        let length = packet.len();
        let (ip, tcp) = packet.split_at_mut(self.ip);
        put(ip, 2, length as u16, u16::to_be_bytes);
        let number = u16::from_be_bytes([ip[4], ip[5]]).wrapping_add(segments.start as u16);
        put(ip, 4, number, u16::to_be_bytes);
        put(ip, 10, 0, u16::to_be_bytes);
        let sum = !folded(sum_of(ip));
        put(ip, 10, sum, u16::to_be_bytes);
        self.adapt_tcp(ip, tcp, &segments);
        if header[0] & NEEDS_CHECKSUM == 0 {
            // Nobody computes it later.
            put(tcp, 16, 0, u16::to_be_bytes);
            let sum = !folded(pseudo_header(ip, tcp.len()) + sum_of(tcp));
            put(tcp, 16, sum, u16::to_be_bytes);
        }
        piece
    }

    fn adapt_tcp(&self, ip: &[u8], tcp: &mut [u8], segments: &Range<usize>) {
        let sequence = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]])
            .wrapping_add((segments.start * self.payload) as u32);
        tcp[4..8].copy_from_slice(&sequence.to_be_bytes());
        if segments.start > 0 {
            tcp[13] &= !CWR;
        }
        if segments.end < self.count {
            tcp[13] &= !FIN_AND_PSH;
        }
        // What whoever completes the checksum starts from: the pseudo-header, which has the length in it.
        put(
            tcp,
            16,
            folded(pseudo_header(ip, tcp.len())),
            u16::to_be_bytes,
        );
    }
}

fn put(bytes: &mut [u8], at: usize, value: u16, order: fn(u16) -> [u8; 2]) {
    bytes[at..at + 2].copy_from_slice(&order(value));
}

/// The sum of 16-bit words of RFC 1071, not yet folded; 64 bits hold that of any packet.
fn sum_of(bytes: &[u8]) -> u64 {
    let words = bytes.chunks(2);
    words
        .map(|word| u64::from(word[0]) << 8 | word.get(1).map_or(0, |low| u64::from(*low)))
        .sum()
}

fn folded(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// RFC 9293, section 3.1: both addresses, the protocol, the length of what follows the IP header.
fn pseudo_header(ip: &[u8], length: usize) -> u64 {
    sum_of(&ip[12..20]) + u64::from(PROTOCOL_TCP) + length as u64
}

#[cfg(test)]
pub(super) use tests::made;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OPTIONS: usize = 12;
    const HEADERS: usize = 20 + 20 + OPTIONS;

    /// A super-packet as the kernel makes it: its TCP checksum is that of the pseudo-header.
    pub fn made(payload: &[u8], segment: u16, flags: u8) -> Vec<u8> {
        let mut bytes = vec![NEEDS_CHECKSUM, TCP_IPV4, 0, 0, 0, 0, 0, 0, 0, 0];
        put(&mut bytes, 4, segment, u16::to_ne_bytes);
        put(&mut bytes, 6, 20, u16::to_ne_bytes);
        put(&mut bytes, 8, 16, u16::to_ne_bytes);
        let length = (HEADERS + payload.len()) as u16;
        let mut ip = vec![
            0x45, 0, 0, 0, 0xff, 0xfe, 0x40, 0, 64, 6, 0, 0, 198, 18, 0, 1, 198, 18, 0, 2,
        ];
        put(&mut ip, 2, length, u16::to_be_bytes);
        let sum = !folded(sum_of(&ip));
        put(&mut ip, 10, sum, u16::to_be_bytes);
        let mut tcp = vec![0x80, 1, 0x1f, 0x90, 0xff, 0xff, 0xff, 0, 0, 0, 0, 9];
        tcp.extend([0x80, flags, 0x10, 0, 0, 0, 0, 0]);
        tcp.extend([7; OPTIONS]);
        let partial = folded(pseudo_header(&ip, tcp.len() + payload.len()));
        put(&mut tcp, 16, partial, u16::to_be_bytes);
        [bytes, ip, tcp, payload.to_vec()].concat()
    }

    fn payload(length: usize) -> Vec<u8> {
        (0..length).map(|n| (n * 7 % 251) as u8).collect()
    }

    fn sequence(piece: &[u8]) -> u32 {
        u32::from_be_bytes(piece[HEADER + 24..HEADER + 28].try_into().unwrap())
    }

    fn flags(piece: &[u8]) -> u8 {
        piece[HEADER + 33]
    }

    /// What a receiver checks: lengths, and both checksums, completing that of TCP as a network card would.
    fn assert_whole(piece: &[u8]) {
        let packet = &piece[HEADER..];
        let (ip, tcp) = packet.split_at(20);
        assert_eq!(
            usize::from(u16::from_be_bytes([ip[2], ip[3]])),
            packet.len()
        );
        assert_eq!(folded(sum_of(ip)), 0xffff, "checksum of IP");
        let mut zeroed = tcp.to_vec();
        put(&mut zeroed, 16, 0, u16::to_be_bytes);
        let partial = u16::from_be_bytes([tcp[16], tcp[17]]);
        if piece[0] & NEEDS_CHECKSUM != 0 {
            assert_eq!(
                partial,
                folded(pseudo_header(ip, tcp.len())),
                "sum of the pseudo-header"
            );
        } else {
            assert_eq!(
                folded(pseudo_header(ip, tcp.len()) + sum_of(tcp)),
                0xffff,
                "checksum of TCP"
            );
        }
    }

    #[test]
    fn a_super_packet_is_so_many_packets_on_the_wire() {
        let bytes = made(&payload(2500), 1000, 0x18);
        let packet = Packet::new(&bytes);
        assert_eq!(packet.segments(), 3);
        let sizes: Vec<usize> = (0..3).map(|number| packet.wire_bytes(number)).collect();
        assert_eq!(sizes, [HEADERS + 1000, HEADERS + 1000, HEADERS + 500]);
        assert_eq!(packet.piece(0..3), bytes, "whole, it stays as it is");
    }

    #[test]
    fn the_last_segment_alone_has_the_end_of_the_stream_and_the_first_alone_the_signal_of_congestion()
     {
        let bytes = made(&payload(2500), 1000, 0x18 | 0x01 | CWR);
        let packet = Packet::new(&bytes);
        let seen: Vec<u8> = (0..3).map(|n| flags(&packet.piece(n..n + 1))).collect();
        assert_eq!(seen, [0x10 | CWR, 0x10, 0x19]);
        assert_eq!(flags(&packet.piece(1..3)), 0x19);
    }

    #[test]
    fn a_single_segment_is_no_super_packet_any_more() {
        let bytes = made(&payload(2500), 1000, 0x10);
        let packet = Packet::new(&bytes);
        let one = packet.piece(1..2);
        assert_eq!(
            (one[0], one[1], &one[4..6]),
            (NEEDS_CHECKSUM, NOT_CUT, &[0, 0][..])
        );
        assert_eq!(Packet::new(&one).segments(), 1);
        assert_eq!(Packet::new(&packet.piece(1..3)).segments(), 2);
        assert_eq!(sequence(&one), 0xffff_ff00_u32.wrapping_add(1000));
    }

    #[test]
    fn what_comes_with_a_whole_checksum_leaves_with_one() {
        let mut bytes = made(&payload(2500), 1000, 0x18);
        bytes[0] = 0;
        let packet = Packet::new(&bytes);
        for number in 0..3 {
            assert_whole(&packet.piece(number..number + 1));
        }
    }

    #[test]
    fn everything_else_is_one_packet() {
        let udp = [&[0; HEADER][..], &[0x45, 0, 0, 28], &[0; 24]].concat();
        let mut ping = made(&payload(2500), 1000, 0x10);
        ping[HEADER + 9] = 1;
        let mut whole = made(&payload(1000), 1000, 0x10);
        whole[1] = NOT_CUT;
        for bytes in [&udp, &ping, &whole, &vec![], &vec![1; 9], &vec![1; 12]] {
            let packet = Packet::new(bytes);
            assert_eq!(packet.segments(), 1);
            assert_eq!(packet.wire_bytes(0), bytes.len().saturating_sub(HEADER));
            assert_eq!(&packet.piece(0..1), bytes);
        }
    }

    proptest! {
        #[test]
        fn pieces_put_together_are_the_stream_again(
            length in 2_usize..65_000,
            segment in 500_u16..1500,
            cuts in prop::collection::vec(1_usize..10, 1..60),
        ) {
            let payload = payload(length);
            let bytes = made(&payload, segment, 0x18);
            let packet = Packet::new(&bytes);
            let mut first = 0;
            let mut stream = Vec::new();
            for count in cuts.into_iter().cycle() {
                let end = (first + count).min(packet.segments());
                let piece = packet.piece(first..end);
                assert_whole(&piece);
                prop_assert_eq!(sequence(&piece), sequence(&bytes).wrapping_add(stream.len() as u32));
                prop_assert_eq!(Packet::new(&piece).segments(), end - first);
                stream.extend_from_slice(&piece[HEADER + HEADERS..]);
                first = end;
                if first == packet.segments() { break; }
            }
            prop_assert_eq!(stream, payload);
        }

        #[test]
        fn no_bytes_make_it_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..200), tcp: bool) {
            if tcp && bytes.len() > HEADER + 10 {
                (bytes[1], bytes[HEADER + 9]) = (TCP_IPV4, PROTOCOL_TCP);
                bytes[HEADER] = 0x40 | bytes[HEADER] & 0xf;
            }
            let packet = Packet::new(&bytes);
            for number in 0..packet.segments() {
                let _ = packet.wire_bytes(number);
                let _ = packet.piece(number..number + 1);
            }
        }
    }
}
