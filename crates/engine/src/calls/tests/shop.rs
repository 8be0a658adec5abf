//! A service with every kind of call and every kind of field.

use std::path::PathBuf;

use prost_reflect::DescriptorPool;

use crate::calls::schema::compile;

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
