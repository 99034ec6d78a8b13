//! The callback's query string, decoded exactly once.

use percent_encoding::percent_decode_str;

use super::callback::CallbackError;

/// What WeCom puts into the query of both methods.
#[derive(Debug, PartialEq, Eq)]
pub struct CallbackQuery {
    /// `msg_signature`, 40 hex digits.
    pub signature: String,
    /// `timestamp`, seconds since 1970, as text: the signature covers the characters.
    pub timestamp: String,
    /// `nonce`.
    pub nonce: String,
    /// `echostr`; only in the GET of URL verification.
    pub echo: Option<String>,
}

impl CallbackQuery {
    /// Reads a raw query string.
    ///
    /// `%XX` is decoded once. `+` stays `+`: no value of this protocol holds a space, and a proxy that
    /// decoded `%2B` on the way would otherwise break the base64 of `echostr`. Unknown parameters are
    /// ignored.
    ///
    /// # Errors
    /// [`CallbackError::Query`] when one of ours is missing, doubled or not UTF-8.
    pub fn parse(raw: &str) -> Result<Self, CallbackError> {
        let (mut signature, mut timestamp, mut nonce, mut echo) = (None, None, None, None);
        for pair in raw.split('&') {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let slot = match name {
                "msg_signature" => &mut signature,
                "timestamp" => &mut timestamp,
                "nonce" => &mut nonce,
                "echostr" => &mut echo,
                _ => continue,
            };
            let value = percent_decode_str(value)
                .decode_utf8()
                .map_err(|_| CallbackError::Query("a query parameter is not UTF-8"))?;
            if slot.replace(value.into_owned()).is_some() {
                return Err(CallbackError::Query("a query parameter appears twice"));
            }
        }
        let filled = |slot: Option<String>, missing| {
            slot.filter(|value| !value.is_empty())
                .ok_or(CallbackError::Query(missing))
        };
        Ok(Self {
            signature: filled(signature, "msg_signature is missing from the query")?,
            timestamp: filled(timestamp, "timestamp is missing from the query")?,
            nonce: filled(nonce, "nonce is missing from the query")?,
            echo: echo.filter(|value| !value.is_empty()),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::expect_used,
        reason = "a failed expectation is the test's verdict"
    )]

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn plus_and_its_escape_are_the_same_and_decoding_happens_once() {
        let echo = |raw: &str| {
            CallbackQuery::parse(&format!(
                "msg_signature=s&timestamp=1&nonce=n&echostr={raw}"
            ))
            .unwrap()
            .echo
            .unwrap()
        };
        assert_eq!(echo("a%2Bb%2Fc%3D%3D"), "a+b/c==");
        assert_eq!(echo("a+b/c=="), "a+b/c==");
        assert_eq!(echo("a%2bb"), "a+b");
        assert_eq!(echo("a%252Bb"), "a%2Bb");
        assert_eq!(echo("a%20b"), "a b");
        assert_eq!(echo("a%zzb"), "a%zzb");
    }

    #[test]
    fn a_missing_empty_doubled_or_undecodable_parameter_is_refused() {
        for raw in [
            "",
            "timestamp=1&nonce=n",
            "msg_signature=s&nonce=n",
            "msg_signature=s&timestamp=1",
            "msg_signature=&timestamp=1&nonce=n",
            "msg_signature&timestamp=1&nonce=n",
            "msg_signature=s&timestamp=1&nonce=n&nonce=n",
            "msg_signature=s&msg_signature=t&timestamp=1&nonce=n",
            "msg_signature=s&timestamp=1&nonce=%ff",
            "signature=s&timestamp=1&nonce=n",
        ] {
            assert!(
                matches!(CallbackQuery::parse(raw), Err(CallbackError::Query(_))),
                "{raw}"
            );
        }
    }

    #[test]
    fn order_and_foreign_parameters_do_not_matter() {
        let parsed = CallbackQuery::parse("nonce=n&x=%ff&timestamp=1&&y&msg_signature=s&").unwrap();
        assert_eq!((parsed.nonce.as_str(), parsed.echo), ("n", None));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(raw in ".*") {
            let _ = CallbackQuery::parse(&raw);
        }
    }
}
