//! The streams in flight: by the caller's tag, and by their number on the wire.

/// One request and its answer.
#[derive(Debug, Default)]
pub struct Stream {
    /// Its number; 0: none is in flight.
    pub id: u32,
    /// What the server lets this stream send.
    pub window: i64,
    /// Bytes received since its window was last widened.
    pub received: u32,
    /// The final head of the answer has come.
    pub answering: bool,
    /// The caller has given the end of the request.
    pub closing: bool,
    /// The end of the request was written.
    pub sent: bool,
    /// What the windows hold back, from `written` on.
    pub waiting: Vec<u8>,
    pub written: usize,
}

/// Room for held back bytes that a stream keeps for the next one with its tag.
const KEPT_ROOM: usize = 64 * 1024;

impl Stream {
    /// How many bytes are held back.
    pub fn waits(&self) -> usize {
        self.waiting.len() - self.written
    }

    /// Holds back bytes. What was written is dropped first where it is the larger part: each byte moves a bounded
    /// number of times.
    pub fn keep(&mut self, bytes: &[u8]) {
        if self.written > self.waits() {
            self.waiting.drain(..self.written);
            self.written = 0;
        }
        self.waiting.extend_from_slice(bytes);
    }

    /// Nothing is held back any more.
    pub fn flushed(&mut self) {
        self.waiting.clear();
        self.waiting.shrink_to(KEPT_ROOM);
        self.written = 0;
    }
}

/// See the module.
#[derive(Debug)]
pub struct Streams {
    by_tag: Vec<Stream>,
    tags: Tags,
    open: usize,
    /// Streams that wait for a window.
    pub waiting: usize,
}

impl Streams {
    pub const fn new() -> Self {
        Self {
            by_tag: Vec::new(),
            tags: Tags::new(),
            open: 0,
            waiting: 0,
        }
    }

    /// How many are in flight.
    pub const fn open(&self) -> usize {
        self.open
    }

    /// Tags ever used are below it.
    pub fn tags(&self) -> u32 {
        self.by_tag.len() as u32
    }

    /// The stream in flight, or the one that has ended, under a tag.
    pub fn get(&self, tag: u32) -> Option<&Stream> {
        self.by_tag.get(tag as usize)
    }

    /// The stream in flight under a tag.
    #[inline]
    pub fn live(&mut self, tag: u32) -> Option<&mut Stream> {
        self.by_tag
            .get_mut(tag as usize)
            .filter(|stream| stream.id != 0)
    }

    /// The stream in flight with a number, and its tag.
    #[inline]
    pub fn find(&mut self, id: u32) -> Option<(u32, &mut Stream)> {
        let tag = self.tags.find(id)?;
        self.by_tag
            .get_mut(tag as usize)
            .map(|stream| (tag, stream))
    }

    /// All in flight.
    pub fn each_live(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.by_tag.iter_mut().filter(|stream| stream.id != 0)
    }

    /// A stream begins. Its tag is free.
    #[inline]
    pub fn begin(&mut self, tag: u32, id: u32, window: i64) {
        let index = tag as usize;
        if index >= self.by_tag.len() {
            self.by_tag.resize_with(index + 1, Stream::default);
        }
        let stream = &mut self.by_tag[index];
        stream.id = id;
        stream.window = window;
        stream.received = 0;
        stream.answering = false;
        stream.closing = false;
        stream.sent = false;
        self.tags.insert(id, tag);
        self.open += 1;
    }

    /// A stream ends; `sent` stays to be asked for. Returns its number.
    #[inline]
    pub fn end(&mut self, tag: u32) -> Option<u32> {
        let stream = self.live(tag)?;
        let id = std::mem::take(&mut stream.id);
        if stream.waits() > 0 {
            stream.flushed();
            self.waiting -= 1;
        }
        self.tags.remove(id);
        self.open -= 1;
        Some(id)
    }
}

/// Tags by stream numbers: open addressing with linear probing, at most half full. Numbers of streams count upwards
/// by two, so the simplest hash hardly ever collides.
#[derive(Debug)]
struct Tags {
    /// Number (0: free) and tag; a power of two of them, or none.
    places: Vec<(u32, u32)>,
    count: usize,
}

impl Tags {
    const fn new() -> Self {
        Self {
            places: Vec::new(),
            count: 0,
        }
    }

    /// Where a number belongs. There are places.
    #[inline]
    fn home(&self, id: u32) -> usize {
        (id >> 1) as usize & (self.places.len() - 1)
    }

    #[inline]
    fn place(&self, id: u32) -> Option<usize> {
        if self.places.is_empty() {
            return None;
        }
        let mut at = self.home(id);
        loop {
            match self.places[at].0 {
                0 => return None,
                found if found == id => return Some(at),
                _ => at = (at + 1) & (self.places.len() - 1),
            }
        }
    }

    #[inline]
    fn find(&self, id: u32) -> Option<u32> {
        self.place(id).map(|at| self.places[at].1)
    }

    #[inline]
    fn insert(&mut self, id: u32, tag: u32) {
        if self.places.len() < 2 * (self.count + 1) {
            self.grow();
        }
        let mut at = self.home(id);
        while self.places[at].0 != 0 {
            at = (at + 1) & (self.places.len() - 1);
        }
        self.places[at] = (id, tag);
        self.count += 1;
    }

    fn grow(&mut self) {
        let larger = vec![(0, 0); (2 * self.places.len()).max(4)];
        self.count = 0;
        for (id, tag) in std::mem::replace(&mut self.places, larger) {
            if id != 0 {
                self.insert(id, tag);
            }
        }
    }

    /// Frees a place, and moves up those behind it that would not be found any more (Knuth 6.4, algorithm R).
    #[inline]
    fn remove(&mut self, id: u32) {
        let Some(mut hole) = self.place(id) else {
            return;
        };
        let mask = self.places.len() - 1;
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let (found, _) = self.places[at];
            if found == 0 {
                break;
            }
            let from_home = at.wrapping_sub(self.home(found)) & mask;
            if from_home >= (at.wrapping_sub(hole) & mask) {
                self.places[hole] = self.places[at];
                hole = at;
            }
        }
        self.places[hole] = (0, 0);
        self.count -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::Tags;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn tags_are_found_as_in_a_map(steps in prop::collection::vec((any::<bool>(), 0_u32..40), 0..200)) {
            let (mut tags, mut map) = (Tags::new(), HashMap::new());
            for (add, number) in steps {
                let id = 2 * number + 1;
                match add && !map.contains_key(&id) {
                    true => {
                        tags.insert(id, number);
                        map.insert(id, number);
                    }
                    false => {
                        tags.remove(id);
                        map.remove(&id);
                    }
                }
                for number in 0..40 {
                    prop_assert_eq!(tags.find(2 * number + 1), map.get(&(2 * number + 1)).copied());
                }
            }
        }
    }
}
