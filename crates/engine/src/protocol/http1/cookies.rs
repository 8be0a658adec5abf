//! Cookies of one user: what a server has set is told to it again (RFC 6265), as far as one host and one load need it.
//!
//! `Path`, `Max-Age`, `Expires` and `Secure` are followed; whom else a cookie may be told (`Domain`) does not matter to
//! a client of one host. What a server may set is bounded.

use std::time::SystemTime;

/// The most cookies, and the most bytes of one: what RFC 6265, section 6.1, wants a browser to hold at least.
const MOST_COOKIES: usize = 50;
const MOST_BYTES: usize = 4096;

#[derive(Debug, PartialEq, Eq)]
struct Cookie {
    name: Vec<u8>,
    value: Vec<u8>,
    path: Vec<u8>,
    is_secure: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Jar {
    cookies: Vec<Cookie>,
}

impl Jar {
    /// Takes in what the head of an answer sets; `path` is that of the request, without its query.
    pub fn hear(&mut self, head: &[u8], path: &[u8]) {
        for line in head.split(|byte| *byte == b'\n') {
            let Some(colon) = line.iter().position(|byte| *byte == b':') else {
                continue;
            };
            if line[..colon]
                .trim_ascii()
                .eq_ignore_ascii_case(b"set-cookie")
            {
                self.set(line[colon + 1..].trim_ascii(), path);
            }
        }
    }

    /// Takes in one `Set-Cookie` (section 5.2).
    fn set(&mut self, text: &[u8], request_path: &[u8]) {
        // RFC 6265bis, section 5.6: what could end a line, or a text, sets nothing.
        if text
            .iter()
            .any(|byte| byte.is_ascii_control() && *byte != b'\t')
        {
            return;
        }
        let mut parts = text.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
        let pair = parts.next().unwrap_or_default();
        let Some((name, value)) = halves(pair, b'=').filter(|(name, _)| !name.is_empty()) else {
            return;
        };
        let mut cookie = Cookie {
            name: name.to_vec(),
            value: value.to_vec(),
            path: default_path(request_path).to_vec(),
            is_secure: false,
        };
        let (mut max_age, mut expires) = (None, None);
        for part in parts {
            let (key, value) = halves(part, b'=').unwrap_or((part, b""));
            match key.to_ascii_lowercase().as_slice() {
                b"path" if value.starts_with(b"/") => cookie.path = value.to_vec(),
                b"max-age" => max_age = text_of(value).and_then(|age| age.parse::<i64>().ok()),
                b"expires" => {
                    expires = text_of(value).and_then(|date| httpdate::parse_http_date(date).ok())
                }
                b"secure" => cookie.is_secure = true,
                _ => {}
            }
        }
        // Max-Age counts where both are told. What runs out later than now outlives a load.
        let is_over = match (max_age, expires) {
            (Some(age), _) => age <= 0,
            (None, Some(moment)) => moment <= SystemTime::now(),
            (None, None) => false,
        };
        self.cookies
            .retain(|other| (&other.name, &other.path) != (&cookie.name, &cookie.path));
        let bytes = cookie.name.len() + cookie.value.len() + cookie.path.len();
        if !is_over && bytes <= MOST_BYTES && self.cookies.len() < MOST_COOKIES {
            self.cookies.push(cookie);
            // Section 5.4: those of longer paths come first; the sort keeps the order of the others.
            self.cookies
                .sort_by_key(|cookie| std::cmp::Reverse(cookie.path.len()));
        }
    }

    /// Writes the line that tells a request's path what was set for it, if anything was.
    pub fn tell(&self, path: &[u8], secure: bool, out: &mut Vec<u8>) {
        let mut separator: &[u8] = b"Cookie: ";
        for cookie in &self.cookies {
            if is_within(path, &cookie.path) && (secure || !cookie.is_secure) {
                out.extend_from_slice(separator);
                out.extend_from_slice(&cookie.name);
                out.push(b'=');
                out.extend_from_slice(&cookie.value);
                separator = b"; ";
            }
        }
        if separator == b"; " {
            out.extend_from_slice(b"\r\n");
        }
    }
}

fn halves(text: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let place = text.iter().position(|byte| *byte == at)?;
    Some((text[..place].trim_ascii(), text[place + 1..].trim_ascii()))
}

fn text_of(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

/// The folder of a request's path (section 5.1.4).
fn default_path(path: &[u8]) -> &[u8] {
    match path.iter().rposition(|byte| *byte == b'/') {
        None | Some(0) => b"/",
        Some(last) => &path[..last],
    }
}

/// Whether a path lies in that of a cookie (section 5.1.4).
fn is_within(path: &[u8], folder: &[u8]) -> bool {
    match path.strip_prefix(folder) {
        Some(rest) => rest.is_empty() || folder.ends_with(b"/") || rest.starts_with(b"/"),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(jar: &Jar, path: &str) -> String {
        let mut out = Vec::new();
        jar.tell(path.as_bytes(), false, &mut out);
        String::from_utf8(out).unwrap()
    }

    fn set(jar: &mut Jar, line: &str) {
        let head = format!("HTTP/1.1 200 OK\r\nDate: x\r\nset-Cookie: {line}\r\nX: y\r\n\r\n");
        jar.hear(head.as_bytes(), b"/shop/cart");
    }

    #[test]
    fn what_was_set_is_told_where_it_was_set_for() {
        let mut jar = Jar::default();
        assert_eq!(told(&jar, "/shop"), "");
        set(&mut jar, "a=1; Path=/; HttpOnly; SameSite=Lax");
        set(&mut jar, "b=2");
        assert_eq!(
            told(&jar, "/shop/x"),
            "Cookie: b=2; a=1\r\n",
            "the longer path first"
        );
        assert_eq!(told(&jar, "/shop"), "Cookie: b=2; a=1\r\n");
        assert_eq!(told(&jar, "/shopping"), "Cookie: a=1\r\n");
        set(&mut jar, "a=3=4; path=/; Secure");
        assert_eq!(
            told(&jar, "/"),
            "",
            "one that is secure is not told in the clear"
        );
        let mut out = Vec::new();
        jar.tell(b"/", true, &mut out);
        assert_eq!(out, b"Cookie: a=3=4\r\n");
    }

    #[test]
    fn what_is_over_is_told_no_more() {
        for end in [
            "Max-Age=0",
            "max-age=-5",
            "Expires=Thu, 01 Jan 1970 00:00:00 GMT",
            "Max-Age=0; Expires=Fri, 31 Dec 2999 23:59:59 GMT",
        ] {
            let mut jar = Jar::default();
            set(&mut jar, "a=1; Expires=Fri, 31 Dec 2999 23:59:59 GMT");
            assert_eq!(told(&jar, "/shop/"), "Cookie: a=1\r\n");
            set(&mut jar, &format!("a=; {end}"));
            assert_eq!(told(&jar, "/shop/"), "", "{end}");
        }
        let mut jar = Jar::default();
        set(
            &mut jar,
            "a=1; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT",
        );
        assert_eq!(told(&jar, "/shop/"), "Cookie: a=1\r\n", "Max-Age counts");
    }

    #[test]
    fn what_a_server_sets_is_bounded() {
        let mut jar = Jar::default();
        for number in 0..1_000 {
            set(&mut jar, &format!("c{number}=x"));
        }
        set(&mut jar, &format!("big={}", "x".repeat(5_000)));
        for nonsense in ["", "=", "novalue", ";;;", "=x; Path", "a=\rb: c", "a=\0"] {
            set(&mut jar, nonsense);
        }
        assert_eq!(jar.cookies.len(), MOST_COOKIES);
    }
}
