//! Servers that describe their calls to do harm: each description has an end, soon and in bounded memory, in words that no
//! terminal obeys. Answers are written by hand, so that a number of a file stands here as it is on the wire.

use std::time::{Duration, Instant};

use velodrome_engine::calls::of_answers;

/// The whole of a case, in a build for tests, on a busy machine; an optimised one needs a tenth.
const SOON: Duration = Duration::from_secs(10);
/// Of this process, with the answer itself.
const MOST_MEMORY: u64 = 700 << 20;

fn varint(mut value: usize, out: &mut Vec<u8>) {
    while value > 0x7f {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn field(number: usize, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + 10);
    varint(number << 3 | 2, &mut out);
    varint(bytes.len(), &mut out);
    out.extend_from_slice(bytes);
    out
}

fn files(files: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let all: Vec<Vec<u8>> = files.map(|file| field(1, &file)).collect();
    field(4, &all.concat())
}

fn file(name: &str, parts: &[Vec<u8>]) -> Vec<u8> {
    [field(1, name.as_bytes()), parts.concat()].concat()
}

fn whole_file(parts: &[Vec<u8>]) -> Vec<u8> {
    files([file("shop.proto", parts)].into_iter())
}

fn service() -> Vec<u8> {
    let said = field(4, &field(1, b"Said"));
    let method = [
        field(1, b"Buy"),
        field(2, b".shop.Said"),
        field(3, b".shop.Said"),
    ];
    let service = [field(1, b"Shop"), field(2, &method.concat())].concat();
    [field(2, b"shop"), said, field(6, &service)].concat()
}

/// The trouble with a description, which is there soon.
fn trouble(what: &str, answers: impl Iterator<Item = Vec<u8>>) -> String {
    let began = Instant::now();
    let why = of_answers("shop.Shop/Buy", answers).expect_err(what);
    let took = began.elapsed();
    assert!(took < SOON, "{what}: {took:?}");
    let peak = peak_memory();
    assert!(peak < MOST_MEMORY, "{what}: {} MB", peak >> 20);
    assert!(!why.chars().any(char::is_control), "{what}: {why:?}");
    eprintln!("{what}: {took:?}, at most {} MB so far: {why}", peak >> 20);
    why
}

/// The most memory this process ever had; 0 where that is not told.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kilobytes.map_or(0, |number| number.trim().parse::<u64>().unwrap() << 10)
}

#[test]
fn bombs_of_every_kind_end_soon_and_small() {
    const BYTES: usize = 5 << 20;
    let tiny = files((0..400_000).map(|number| file(&number.to_string(), &[])));
    assert!(trouble("400 000 tiny files", [tiny].into_iter()).contains("parts"));
    let some = files((0..2_500).map(|number| file(&number.to_string(), &[])));
    assert!(trouble("2 500 tiny files", [some].into_iter()).contains("files"));

    let whole = |parts: Vec<u8>| whole_file(&[service(), parts]);
    let many = |bytes: &[u8]| whole(bytes.repeat(BYTES / bytes.len()));
    for (what, part) in [
        ("empty messages", &[0x22, 0][..]),
        ("empty enums", &[0x2a, 0]),
        ("empty services", &[0x32, 0]),
        ("imports of nothing", &[0x1a, 0]),
        ("places in the source", &[0x4a, 2, 0x0a, 0]),
    ] {
        assert!(trouble(what, [many(part)].into_iter()).contains("parts"));
    }
    // As many as pass for a description.
    for (what, part) in [
        ("some empty messages", &[0x22, 0][..]),
        ("some empty services", &[0x32, 0]),
        ("some places in the source", &[0x4a, 2, 0x0a, 0]),
    ] {
        let parts = part.repeat(300_000 / (part.len() / 2));
        let _ = of_answers("shop.Shop/Buy", [whole(parts)].into_iter());
        let peak = peak_memory();
        assert!(peak < MOST_MEMORY, "{what}: {} MB", peak >> 20);
    }

    let names = (0..60_000).map(|number| {
        let value = [field(1, format!("V{number}").as_bytes()), vec![0x10, 0]].concat();
        field(2, &value)
    });
    let outer = [field(1, &[b'N'; 500_000]), names.flatten().collect()].concat();
    let long = whole(field(5, &outer));
    assert!(trouble("a long name in each of its own", [long].into_iter()).contains("MB"));

    let mut nested = field(1, b"n");
    for _ in 0..20_000 {
        nested = [field(1, b"n"), field(3, &nested)].concat();
    }
    trouble(
        "20 000 messages deep",
        [whole(field(4, &nested))].into_iter(),
    );

    let imports = (0..30_000).map(|number| field(3, format!("{number}").as_bytes()));
    let imports = whole(imports.flatten().collect());
    assert!(trouble("30 000 imports", [imports].into_iter()).contains("import"));

    let passed_on = whole([field(3, b"shop.proto"), [0x50, 0].repeat(100_000)].concat());
    assert!(trouble("100 000 passed on", [passed_on].into_iter()).contains("import"));

    let mut next = 0;
    let chain = std::iter::from_fn(|| {
        next += 1;
        let name = match next {
            1 => "shop.proto".to_owned(),
            _ => format!("f{next}"),
        };
        let import = field(3, format!("f{}", next + 1).as_bytes());
        Some(files([file(&name, &[import])].into_iter()))
    });
    assert!(trouble("a chain without an end", chain).contains("deep"));

    let listed: Vec<u8> = (0..200_000)
        .flat_map(|number| field(1, &field(1, format!("s{number}").as_bytes())))
        .collect();
    let missing = field(7, &[0x08, 5]);
    let services = [missing.clone(), field(6, &listed)].into_iter();
    let services = services.chain(std::iter::repeat(missing.clone()));
    trouble("200 000 services", services);

    let methods: Vec<u8> = (0..100_000)
        .flat_map(|number| field(2, &field(1, format!("Buy{number}").as_bytes())))
        .collect();
    let shop = field(6, &[field(1, b"Shop"), methods].concat());
    let of_shop = files([file("shop.proto", &[field(2, b"shop"), shop])].into_iter());
    let services = field(6, &field(1, &field(1, b"shop.Shop")));
    let why = trouble("100 000 methods", [missing, services, of_shop].into_iter());
    assert!(why.contains("Nearest") && why.len() < 10_000, "{why}");
}

#[test]
fn words_of_a_server_are_shown_and_never_obeyed() {
    const HOSTILE: &str = "\u{1b}]0;OWNED\u{7}\u{9b}2J\u{202e}\r\n";
    let failing = field(7, &[vec![0x08, 13], field(2, HOSTILE.as_bytes())].concat());
    let why = trouble("an error", [failing].into_iter());
    assert!(why.contains("OWNED") && !why.contains('\u{202e}'), "{why}");
    let long = field(7, &[vec![0x08, 13], field(2, &[b'x'; 1 << 20])].concat());
    assert!(trouble("a long error", [long].into_iter()).len() < 2_000);
    let import = files([file("shop.proto", &[field(3, HOSTILE.as_bytes())])].into_iter());
    let nothing = field(7, &[0x08, 5]);
    let why = trouble("an import", [import, nothing].into_iter());
    assert!(why.contains("OWNED") && !why.contains('\u{202e}'), "{why}");
    let missing = field(7, &[0x08, 5]);
    let services = field(6, &field(1, &field(1, b"shop.Shop")));
    let method = field(2, &field(1, format!("Buy{HOSTILE}").as_bytes()));
    let shop = field(6, &[field(1, b"Shop"), method].concat());
    let of_shop = files([file("shop.proto", &[field(2, b"shop"), shop])].into_iter());
    let why = trouble("a method", [missing, services, of_shop].into_iter());
    assert!(why.contains("OWNED") && !why.contains('\u{202e}'), "{why}");
}

#[test]
fn what_a_library_panics_at_is_an_error() {
    let strange = whole_file(&[service(), field(12, b"editions")]);
    let why = trouble("a syntax of its own", [strange].into_iter());
    assert!(why.contains("'editions'"), "{why}");
    // Found by fuzzing: in the middle of the file, too.
    for syntax in [&b"prot"[..], b"proto4", b"\x1b"] {
        let strange = whole_file(&[service(), field(12, syntax)]);
        trouble("a syntax that is none", [strange].into_iter());
    }
}
