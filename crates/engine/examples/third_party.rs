//! A third party by itself: `third_party SPEC` prints its port, then its facts for each line of standard input.

use std::io::{self, BufRead};

use velodrome_engine::upstream::Upstream;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let spec = std::env::args().nth(1).unwrap_or_else(|| "{}".to_owned());
    let mut upstream = Upstream::start(&spec)?;
    println!("{}", upstream.port());
    for line in io::stdin().lock().lines() {
        line?;
        println!("{}", upstream.facts());
    }
    println!("{}", upstream.stop());
    Ok(())
}
