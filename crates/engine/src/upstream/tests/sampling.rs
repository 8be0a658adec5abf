//! Latencies come out as they were asked for; nobody waits for them here.

use crate::chance::chance;
use crate::upstream::latency::{Latency, duration};

const COUNT: usize = 200_000;

/// The first 200 000 latencies in order of size, milliseconds.
fn sorted(text: &str, seed: u64) -> Vec<f64> {
    let latency = Latency::parse(text).unwrap();
    let mut all: Vec<f64> = (0..COUNT as u64)
        .map(|n| latency.sample(seed, n) as f64 / 1e6)
        .collect();
    all.sort_by(f64::total_cmp);
    all
}

/// Quantiles of a sample of 200 000 are right to about 1 % where these densities are not small (standard error
/// sqrt(q(1-q)/n)/density, at most 0.4 % below; three of them).
fn assert_quantiles(text: &str, wanted: &[(f64, f64)]) {
    let all = sorted(text, 7);
    for (quantile, milliseconds) in wanted {
        let got = all[(quantile * COUNT as f64) as usize];
        assert!(
            (got / milliseconds - 1.0).abs() < 0.012,
            "{text}: q{quantile} is {got}, not {milliseconds}"
        );
    }
}

#[test]
fn distributions_have_their_quantiles() {
    assert_quantiles("200ms", &[(0.0, 200.0), (0.99, 200.0)]);
    assert_quantiles(
        "uniform(10ms,20ms)",
        &[
            (0.0, 10.0),
            (0.25, 12.5),
            (0.5, 15.0),
            (0.9, 19.0),
            (0.999_99, 20.0),
        ],
    );
    // -ln(1 - q) times the mean.
    assert_quantiles(
        "exponential(50ms)",
        &[(0.5, 34.657), (0.9, 115.129), (0.99, 230.259)],
    );
    // exp(sigma z) times the median; z is 0, 0.67449, 1.28155, 2.32635.
    assert_quantiles(
        "lognormal(50ms,0.4)",
        &[(0.5, 50.0), (0.75, 65.486), (0.9, 83.486), (0.99, 126.792)],
    );
}

#[test]
fn a_seed_repeats_itself_and_another_differs() {
    assert_eq!(
        sorted("exponential(50ms)", 1)[..100],
        sorted("exponential(50ms)", 1)[..100]
    );
    assert_ne!(
        sorted("exponential(50ms)", 1)[..100],
        sorted("exponential(50ms)", 2)[..100]
    );
}

#[test]
fn draws_of_one_request_do_not_depend_on_each_other() {
    let products = (0..COUNT as u64).map(|n| (chance(1, n, 0) - 0.5) * (chance(1, n, 2) - 0.5));
    // The variance of each factor is 1/12; the standard error of their covariance is 1/12/sqrt(n).
    let covariance = products.sum::<f64>() / COUNT as f64;
    assert!(
        covariance.abs() < 4.0 / 12.0 / (COUNT as f64).sqrt(),
        "{covariance}"
    );
}

#[test]
fn a_file_of_latencies_is_drawn_from_evenly() {
    let path = std::env::temp_dir().join(format!("velodrome-latencies-{}", std::process::id()));
    std::fs::write(&path, "# recorded\n10\n20ms\n\n0.03s # slow\n").unwrap();
    let text = path.to_str().unwrap();
    let all = sorted(text, 1);
    for (latency, count) in [(10.0, COUNT / 3), (20.0, COUNT / 3), (30.0, COUNT / 3)] {
        let found = all.iter().filter(|one| **one == latency).count();
        assert!(
            found.abs_diff(count) < 1000,
            "{latency} ms was drawn {found} times"
        );
    }
    std::fs::write(&path, "10\nsoon\n").unwrap();
    assert!(Latency::parse(text).unwrap_err().contains("line 2: 'soon'"));
    std::fs::write(&path, "# nothing\n").unwrap();
    assert!(
        Latency::parse(text)
            .unwrap_err()
            .contains("lists no latency")
    );
    std::fs::remove_file(&path).unwrap();
    assert!(
        Latency::parse(text)
            .unwrap_err()
            .contains("not a file that can be read")
    );
}

#[test]
fn durations_are_read_as_people_write_them() {
    let rows = [
        ("200ms", 200_000_000),
        ("1.5s", 1_500_000_000),
        ("150us", 150_000),
        ("2µs", 2_000),
        ("7ns", 7),
        ("0", 0),
    ];
    for (text, nanos) in rows {
        assert_eq!(duration(text), Ok(nanos), "{text}");
    }
    for text in [
        "", "ms", "5", "-1ms", "1h", "1 e", "3601s", "1e400s", "nans", "infs", "0x1ms",
    ] {
        assert!(duration(text).is_err(), "{text}");
    }
}
