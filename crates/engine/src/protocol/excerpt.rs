//! A server's words, shown: no terminal obeys them, and none of them is longer than a reader needs.

/// Enough of a server's bytes to recognise what it speaks, escaped so that no terminal obeys them.
pub(crate) fn excerpt(bytes: &[u8]) -> String {
    const ENOUGH: usize = 48;
    let shown = bytes[..bytes.len().min(ENOUGH)].escape_ascii();
    let more = if bytes.len() > ENOUGH { "…" } else { "" };
    format!("{shown}{more}")
}

/// Text with everything escaped that is not seen but obeyed (control characters, ends of lines, directions), cut after
/// `most` characters.
pub(crate) fn visible(text: &str, most: usize) -> String {
    let mut shown = String::new();
    for (count, character) in text.chars().enumerate() {
        if count == most {
            shown.push('…');
            break;
        }
        match is_obeyed(character) {
            true => shown.extend(character.escape_default()),
            false => shown.push(character),
        }
    }
    shown
}

/// Control characters, C0 and C1, and those of the categories Cf, Zl and Zp (Unicode 16).
fn is_obeyed(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}'
                | '\u{600}'..='\u{605}'
                | '\u{61c}'
                | '\u{6dd}'
                | '\u{70f}'
                | '\u{890}'..='\u{891}'
                | '\u{8e2}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{110bd}'
                | '\u{110cd}'
                | '\u{13430}'..='\u{1343f}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_shown() {
        let hostile = "\u{1b}]0;OWNED\u{7}\u{9b}2J\u{202e}gro\n\u{2028}\u{200b}\u{feff}";
        let shown = visible(hostile, 100);
        assert_eq!(
            shown,
            r"\u{1b}]0;OWNED\u{7}\u{9b}2J\u{202e}gro\n\u{2028}\u{200b}\u{feff}"
        );
        assert_eq!(visible("«Größe» 日本 😀", 100), "«Größe» 日本 😀");
        assert_eq!(visible("abcdef", 3), "abc…");
        assert_eq!(visible("abc", 3), "abc");
    }
}
