//! Which of the names that exist was meant.

/// The name that takes the fewest edits (Levenshtein's distance) to get to, if they are not more than half of it.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|one| (distance(&name.to_lowercase(), &one.to_lowercase()), one))
        .min()
        .filter(|(edits, one)| 2 * edits <= one.chars().count())
        .map(|(_, one)| one)
}

fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (at, have) in from.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (column, want) in to.iter().enumerate() {
            let changed = diagonal + usize::from(have != *want);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found_and_a_far_one_is_not() {
        let known = ["helloworld.Greeter/SayHello", "helloworld.Greeter/Chat"];
        let find = |name| nearest(name, known.into_iter());
        assert_eq!(find("helloworld.Greeter/SayHelo"), Some(known[0]));
        assert_eq!(find("helloworld.greeter/chat"), Some(known[1]));
        assert_eq!(find("Greeter/SayHello"), Some(known[0]));
        assert_eq!(find("x"), None);
        assert_eq!(nearest("x", std::iter::empty()), None);
    }
}
