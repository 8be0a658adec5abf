//! Calls as users get them wrong, and right.

use std::path::PathBuf;

use prost_reflect::DescriptorPool;

use crate::calls::described::{compile, find, read_call};
use crate::calls::{Comparer, Content};
use crate::protocol::grpc::{Equal, frame};
use crate::spec::CallSpec;

fn told(pool: &DescriptorPool, call: &str, spec: CallSpec) -> Result<Content, String> {
    let described = find(pool, call).unwrap();
    read_call(&spec, &described)
        .map(|told| told.content)
        .map_err(|error| error.0)
}

fn data(text: &str) -> CallSpec {
    CallSpec {
        data: Some(text.into()),
        ..CallSpec::default()
    }
}

#[test]
fn json_becomes_the_bytes_that_protobuf_writes() {
    let pool = shop("bytes");
    let rows: [(&str, &[u8]); 7] = [
        ("{}", b""),
        (
            r#"{"name": "ab", "count": -1}"#,
            b"\n\x02ab\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        ),
        (
            r#"{"items": [{"id": "7"}, {"price": {"units": 3}}]}"#,
            b"\x1a\x02\x10\x07\x1a\x04\x0a\x02\x08\x03",
        ),
        (r#"{"when": "1970-01-01T00:00:01Z"}"#, b"\x2a\x02\x08\x01"),
        (r#"{"card": "YQ=="}"#, b"\x3a\x01a"),
        (
            r#"{"size": "LARGE", "weight": 1}"#,
            b"\x49\0\0\0\0\0\0\xf0\x3f\x50\x01",
        ),
        (
            r#"{"extras": {"a": {"id": 1}}}"#,
            b"\x22\x07\x0a\x01a\x12\x02\x10\x01",
        ),
    ];
    for (json, bytes) in rows {
        let Content::Fixed(messages) = told(&pool, "shop.Till/Pay", data(json)).unwrap() else {
            panic!("{json} is no template")
        };
        assert_eq!(messages, [bytes.to_vec()], "{json}");
    }
}

#[test]
fn data_of_the_wrong_shape_is_told_by_its_path_and_what_is_right_there() {
    let pool = shop("shape");
    let rows = [
        (
            r#"{"nme": "x"}"#,
            "data.nme: a shop.Order has no such field. Nearest: name. It has: name, count",
        ),
        (r#"{"name": 5}"#, "data.name: 5 where a string is right"),
        (
            r#"{"count": "many"}"#,
            "data.count: \"many\" where a whole number from -2147483648 to 2147483647",
        ),
        (r#"{"count": 1.5}"#, "data.count: 1.5 where a whole number"),
        (
            r#"{"number": -1}"#,
            "data.number: -1 where a whole number from 0 to 18446744073709551615",
        ),
        (
            r#"{"items": {}}"#,
            "data.items: {} where a list is right, each of it an object (a shop.Item)",
        ),
        (
            r#"{"items": [{}, {"price": {"units": true}}]}"#,
            "data.items[1].price.units: true where a whole",
        ),
        (
            r#"{"extras": {"a": 1}}"#,
            "data.extras.a: 1 where an object is right (a shop.Item)",
        ),
        (
            r#"{"extras": []}"#,
            "data.extras: [] where an object is right (a map)",
        ),
        (r#"{"when": "yesterday"}"#, "data.when: "),
        (
            r#"{"card": "!"}"#,
            "data.card: \"!\" where a string of base64",
        ),
        (
            r#"{"size": "HUGE"}"#,
            "data.size: \"HUGE\" where one of SMALL, LARGE (shop.Size)",
        ),
        (r#"{"cash": 1}"#, "data.cash: 1 where true or false"),
        (r#"{"cash": true, "card": ""}"#, "data: "),
        (
            r#"[{}]"#,
            "data: a list of messages for shop.Till/Pay, which takes one",
        ),
        (
            r#""text""#,
            "data: \"text\" where an object is right (a shop.Order)",
        ),
        (
            "{name: 1}",
            "data: this is not JSON: key must be a string at line 1 column 2",
        ),
        (
            r#"{"name": "{{m}}"}"#,
            "data: {{m}} stands for nothing; there are {{n}}",
        ),
        (
            r#"{"cash": "{{n}}"}"#,
            "data.cash: \"0\" where true or false",
        ),
    ];
    for (json, sentence) in rows {
        let error = told(&pool, "shop.Till/Pay", data(json)).unwrap_err();
        assert!(error.contains(sentence), "{json}: {error}");
    }
}

#[test]
fn several_messages_are_a_list_or_one_again_and_again() {
    let pool = shop("several");
    let count = |call: &str, spec: CallSpec| match told(&pool, call, spec) {
        Ok(Content::Fixed(messages)) => Ok(messages.len()),
        Ok(Content::Made(made)) => Ok(made.templates.len()),
        Err(error) => Err(error),
    };
    let times = |messages| CallSpec {
        messages: Some(messages),
        ..CallSpec::default()
    };
    assert_eq!(count("shop.Till/Scan", data("[{}, {}, {}]")), Ok(3));
    assert_eq!(count("shop.Till/Haggle", times(5)), Ok(5));
    assert_eq!(
        count("shop.Till/Scan", data(r#"[{"name": "{{i}}"}, {}]"#)),
        Ok(2)
    );
    assert!(count("shop.Till/Pay", times(2)).is_err_and(|error| error.contains("which takes one")));
    assert!(count("shop.Till/Scan", data("[]")).is_err());
    let both = CallSpec {
        messages: Some(2),
        ..data("[{}]")
    };
    assert!(count("shop.Till/Scan", both).is_err_and(|error| error.contains("give one of them")));
    let wrong = count("shop.Till/Scan", data(r#"[{}, {"count": []}]"#)).unwrap_err();
    assert!(wrong.starts_with("data[1].count: [] where"), "{wrong}");
}

#[test]
fn answers_that_say_the_same_are_right_whatever_their_bytes() {
    let pool = shop("equal");
    let receipt = find(&pool, "shop.Till/Watch").unwrap().output;
    let right = |count| Comparer::new(&receipt, &[Box::from(&b"\n\x02ok"[..])], count);
    // The default of `total` written out, fields in another order, a field twice of which the last counts.
    let other_bytes: [&[u8]; 3] = [b"\n\x02ok\x10\0", b"\x10\0\n\x02ok", b"\n\x02no\n\x02ok"];
    for bytes in other_bytes {
        assert!(right(Some(1)).are_right(&frame(bytes)), "{bytes:?}");
    }
    let two = [frame(b"\n\x02ok"), frame(b"\x10\0\n\x02ok")].concat();
    assert!(right(None).are_right(&two) && !right(Some(1)).are_right(&two));
    for wrong in [
        &b"\n\x02no"[..],
        b"\n\x02ok\x10\x01",
        b"\n\x09ok",
        b"\x1a\x01x\n\x02ok",
    ] {
        assert!(!right(None).are_right(&frame(wrong)), "{wrong:?}");
    }
    assert!(!right(None).are_right(&frame(b"\n\x02ok")[..6]));
}

#[test]
fn a_proto_that_is_wrong_is_told_by_file_line_and_column() {
    let broken = "syntax = \"proto3\";\nmessage A {\n  string name 1;\n}\n";
    let lost = "syntax = \"proto3\";\nimport \"nowhere.proto\";\n";
    let untyped = "syntax = \"proto3\";\nmessage A {\n  Nothing what = 1;\n}\n";
    let files = [
        ("broken.proto", broken),
        ("lost.proto", lost),
        ("untyped.proto", untyped),
    ];
    let folder = written("wrong", &files);
    let rows = [
        ("broken.proto", "broken.proto:3:15: "),
        (
            "lost.proto",
            "lost.proto:2:1: import 'nowhere.proto' not found; name the folder",
        ),
        ("untyped.proto", "untyped.proto:3:3: "),
        ("missing.proto", "missing.proto"),
    ];
    for (file, sentence) in rows {
        let error = compile(&[folder.join(file)], &[]).unwrap_err().0;
        assert!(
            error.starts_with("proto: ") && error.contains(sentence),
            "{file}: {error}"
        );
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn imports_are_found_in_the_folders_named() {
    let folder = written(
        "include",
        &[("a/shop.proto", SHOP), ("b/parts/money.proto", MONEY)],
    );
    let file = folder.join("a/shop.proto");
    assert!(compile(std::slice::from_ref(&file), &[]).is_err());
    assert!(compile(&[file], &[folder.join("b")]).is_ok());
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_call_that_is_not_there_is_told_with_the_nearest_and_all() {
    let pool = shop("unknown");
    let error = find(&pool, "shop.Till/Pays").unwrap_err().0;
    assert_eq!(
        error,
        "call: there is no shop.Till/Pays. Nearest: shop.Till/Pay. There are: \
         shop.Till/Haggle, shop.Till/Pay, shop.Till/Scan, shop.Till/Watch"
    );
    let empty = find(&DescriptorPool::new(), "a.B/C").unwrap_err().0;
    assert!(empty.contains("no service is described"), "{empty}");
}

pub const SHOP: &str = r#"syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "parts/money.proto";
service Till {
  rpc Pay (Order) returns (Receipt);
  rpc Watch (Order) returns (stream Receipt);
  rpc Scan (stream Order) returns (Receipt);
  rpc Haggle (stream Order) returns (stream Receipt);
}
enum Size { SMALL = 0; LARGE = 1; }
message Order {
  string name = 1;
  int32 count = 2;
  repeated Item items = 3;
  map<string, Item> extras = 4;
  google.protobuf.Timestamp when = 5;
  oneof way { bool cash = 6; bytes card = 7; }
  uint64 number = 8;
  double weight = 9;
  Size size = 10;
}
message Item { parts.Money price = 1; int64 id = 2; }
message Receipt { string text = 1; int32 total = 2; }
"#;
pub const MONEY: &str = r#"syntax = "proto3"; package parts; message Money { int64 units = 1; }"#;

/// Writes files into a folder of their own, which outlives the test run only in the system's temporary folder.
pub fn written(name: &str, files: &[(&str, &str)]) -> PathBuf {
    let folder =
        std::env::temp_dir().join(format!("velodrome-calls-{}-{name}", std::process::id()));
    for (path, text) in files {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

pub fn shop(name: &str) -> DescriptorPool {
    let folder = written(name, &[("shop.proto", SHOP), ("parts/money.proto", MONEY)]);
    let pool = compile(&[folder.join("shop.proto")], &[]).unwrap();
    std::fs::remove_dir_all(folder).unwrap();
    pool
}
