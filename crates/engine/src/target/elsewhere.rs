//! Connections that go somewhere else than the URL says, in the grammar of curl's option of that name:
//! `HOST:PORT:ADDRESS:PORT`. What is left out means any host or port, or the same.

use crate::spec::SpecError;

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// In the URL.
    from: (Option<String>, Option<u16>),
    /// Connected to.
    to: (Option<String>, Option<u16>),
}

impl Elsewhere {
    /// Reads a rule.
    pub fn parse(text: &str) -> Result<Elsewhere, SpecError> {
        let fault = |why: &str| {
            SpecError(format!(
                "connect_to: {text:?} {why}; write HOST:PORT:ADDRESS:PORT, an IPv6 address in brackets; what is left out means any, or the same"
            ))
        };
        let parts = parts(text);
        let [from_host, from_port, to_host, to_port] = parts.as_slice() else {
            return Err(fault("has not four parts"));
        };
        let port = |text: &str| match text {
            "" => Ok(None),
            text => match text.parse::<u16>() {
                Ok(port) if port > 0 => Ok(Some(port)),
                _ => Err(fault("has a port that is none")),
            },
        };
        let host = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Ok(Elsewhere {
            from: (host(from_host), port(from_port)?),
            to: (host(to_host), port(to_port)?),
        })
    }

    /// Where connections to `host` and `port` go; None: the rule is about others.
    pub fn of(&self, host: &str, port: u16) -> Option<(String, u16)> {
        let meant = self
            .from
            .0
            .as_ref()
            .is_none_or(|own| own.eq_ignore_ascii_case(host))
            && self.from.1.is_none_or(|own| own == port);
        meant.then(|| {
            (
                self.to.0.clone().unwrap_or_else(|| host.to_owned()),
                self.to.1.unwrap_or(port),
            )
        })
    }
}

/// What stands between colons that are not within brackets; the brackets are taken away.
fn parts(text: &str) -> Vec<String> {
    let (mut found, mut within) = (vec![String::new()], false);
    for letter in text.chars() {
        match letter {
            '[' => within = true,
            ']' => within = false,
            ':' if !within => found.push(String::new()),
            letter => found
                .last_mut()
                .expect("there is one from the start")
                .push(letter),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_names_what_it_is_about_and_where_that_goes() {
        let rows = [
            (
                "shop.test:443:127.0.0.1:8443",
                "shop.test",
                443,
                Some(("127.0.0.1", 8443)),
            ),
            (
                "SHOP.test:443:127.0.0.1:8443",
                "shop.test",
                443,
                Some(("127.0.0.1", 8443)),
            ),
            ("shop.test:443:127.0.0.1:8443", "shop.test", 80, None),
            ("shop.test:443:127.0.0.1:8443", "other.test", 443, None),
            ("::127.0.0.1:", "shop.test", 80, Some(("127.0.0.1", 80))),
            (":80::8080", "shop.test", 80, Some(("shop.test", 8080))),
            ("[::1]:80:[::1]:81", "::1", 80, Some(("::1", 81))),
        ];
        for (rule, host, port, wanted) in rows {
            let found = Elsewhere::parse(rule).unwrap().of(host, port);
            let wanted = wanted.map(|(host, port): (&str, u16)| (host.to_owned(), port));
            assert_eq!(found, wanted, "{rule}");
        }
        for bad in [
            "",
            "a:1:b",
            "a:1:b:c",
            "a:0:b:1",
            "a:1:b:2:c",
            "::1:80:127.0.0.1:80",
            "a:1:b:99999",
        ] {
            assert!(Elsewhere::parse(bad).is_err(), "{bad}");
        }
    }
}
