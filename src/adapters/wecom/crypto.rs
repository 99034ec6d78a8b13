//! The callback's cryptography: SHA-1 signature, AES-256-CBC with PKCS#7 over blocks of 32.
//!
//! Protocol: developer.work.weixin.qq.com, 加解密方案说明. Plaintext is
//! `16 random bytes | u32 big-endian length | message | receiveid`; the IV is the key's first half.
//! Nothing here panics, whatever the bytes.

use aes::cipher::block_padding::NoPadding;
use aes::cipher::{BlockModeDecrypt, BlockModeEncrypt, KeyIvInit};
use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use secrecy::{ExposeSecret, SecretBox};
use sha1::{Digest, Sha1};
use subtle::ConstantTimeEq;

use super::callback::CallbackError;

/// WeCom pads to 32 bytes, not to the cipher's 16.
const PAD_BLOCK: usize = 32;
const RANDOM_LEN: usize = 16;
const HEADER_LEN: usize = RANDOM_LEN + 4;

/// 43 characters hold 258 bits; the two left over may be set (the official sample's key does it).
const KEY_BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// The 32 bytes behind an EncodingAESKey. Never shown, wiped on drop.
pub struct AesKey(SecretBox<[u8; 32]>);

impl AesKey {
    /// Reads the 43 characters of the admin page.
    ///
    /// # Errors
    /// One sentence that says what is wrong with the characters, without repeating them.
    pub fn parse(encoding_aes_key: &str) -> Result<Self, String> {
        let count = encoding_aes_key.chars().count();
        if count != 43 {
            return Err(format!(
                "应为 43 个字符，实为 {count} 个 (expected 43 characters, got {count})"
            ));
        }
        let bytes = KEY_BASE64
            .decode(format!("{encoding_aes_key}="))
            .map_err(|_| {
                "含有 A-Z a-z 0-9 + / 以外的字符 (has a character outside A-Z a-z 0-9 + /)"
                    .to_owned()
            })?;
        let key: [u8; 32] = bytes
            .try_into()
            .map_err(|_| "解码后不是 32 字节 (does not decode to 32 bytes)".to_owned())?;
        Ok(Self(SecretBox::new(Box::new(key))))
    }

    fn iv(&self) -> [u8; 16] {
        let mut iv = [0; 16];
        iv.copy_from_slice(&self.0.expose_secret()[..16]);
        iv
    }
}

impl std::fmt::Debug for AesKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AesKey([REDACTED])")
    }
}

/// SHA-1 in hex over token, timestamp, nonce and ciphertext, sorted bytewise and joined.
#[must_use]
pub fn signature(token: &str, timestamp: &str, nonce: &str, encrypted: &str) -> String {
    let mut parts = [token, timestamp, nonce, encrypted];
    parts.sort_unstable();
    let mut sha = Sha1::new();
    for part in parts {
        sha.update(part.as_bytes());
    }
    hex(&sha.finalize())
}

/// Whether `claimed` is the signature, compared in constant time, character for character.
#[must_use]
pub fn signature_matches(
    claimed: &str,
    token: &str,
    timestamp: &str,
    nonce: &str,
    encrypted: &str,
) -> bool {
    let expected = signature(token, timestamp, nonce, encrypted);
    expected.as_bytes().ct_eq(claimed.as_bytes()).into()
}

/// Decrypts base64 `encrypted` and checks padding, length and receiveid.
///
/// # Errors
/// [`CallbackError`] with the official number: base64 -40010, cipher length or padding -40007,
/// buffer -40008, receiveid -40005, not UTF-8 -40002.
pub fn decrypt(key: &AesKey, receive_id: &str, encrypted: &str) -> Result<String, CallbackError> {
    let mut buffer = STANDARD
        .decode(encrypted)
        .map_err(|_| CallbackError::Base64)?;
    let plain = cbc::Decryptor::<aes::Aes256>::new(key.0.expose_secret().into(), &key.iv().into())
        .decrypt_padded::<NoPadding>(&mut buffer)
        .map_err(|_| CallbackError::Decrypt)?;
    if plain.is_empty() {
        return Err(CallbackError::Decrypt);
    }
    if plain.len() < PAD_BLOCK {
        return Err(CallbackError::Buffer);
    }
    let content = unpad(plain).ok_or(CallbackError::Decrypt)?;
    let body = content.get(HEADER_LEN..).ok_or(CallbackError::Buffer)?;
    let length = content
        .get(RANDOM_LEN..HEADER_LEN)
        .and_then(|bytes| <[u8; 4]>::try_from(bytes).ok())
        .and_then(|bytes| usize::try_from(u32::from_be_bytes(bytes)).ok())
        .ok_or(CallbackError::Buffer)?;
    let (message, id) = body.split_at_checked(length).ok_or(CallbackError::Buffer)?;
    if !bool::from(id.ct_eq(receive_id.as_bytes())) {
        return Err(CallbackError::ReceiveId);
    }
    String::from_utf8(message.to_vec())
        .map_err(|_| CallbackError::Malformed("the decrypted message is not UTF-8"))
}

/// Encrypts `message` for the other side: passive replies and tests.
///
/// `random` must be fresh random bytes for each message.
///
/// # Errors
/// [`CallbackError::Buffer`] when the message is 4 GiB or longer.
pub fn encrypt(
    key: &AesKey,
    receive_id: &str,
    random: [u8; 16],
    message: &str,
) -> Result<String, CallbackError> {
    let length = u32::try_from(message.len()).map_err(|_| CallbackError::Buffer)?;
    let mut plain = Vec::with_capacity(HEADER_LEN + message.len() + receive_id.len() + PAD_BLOCK);
    plain.extend_from_slice(&random);
    plain.extend_from_slice(&length.to_be_bytes());
    plain.extend_from_slice(message.as_bytes());
    plain.extend_from_slice(receive_id.as_bytes());
    pad(&mut plain);
    encrypt_padded(key, plain)
}

/// AES-256-CBC and base64 over bytes that are already padded; lets tests send what no sender would.
///
/// # Errors
/// [`CallbackError::Buffer`] when the length is not a multiple of 16.
pub fn encrypt_padded(key: &AesKey, mut plain: Vec<u8>) -> Result<String, CallbackError> {
    let length = plain.len();
    let sealed = cbc::Encryptor::<aes::Aes256>::new(key.0.expose_secret().into(), &key.iv().into())
        .encrypt_padded::<NoPadding>(&mut plain, length)
        .map_err(|_| CallbackError::Buffer)?;
    Ok(STANDARD.encode(sealed))
}

/// Appends 1 to 32 bytes of padding.
fn pad(plain: &mut Vec<u8>) {
    let count = PAD_BLOCK - plain.len() % PAD_BLOCK;
    let value = u8::try_from(count).unwrap_or(32);
    plain.resize(plain.len() + count, value);
}

/// Takes the padding off; `None` unless it is exactly what [`pad`] would have put there.
fn unpad(plain: &[u8]) -> Option<&[u8]> {
    let value = *plain.last()?;
    let count = usize::from(value);
    if !(1..=PAD_BLOCK).contains(&count) || !plain.len().is_multiple_of(PAD_BLOCK) {
        return None;
    }
    let (content, padding) = plain.split_at_checked(plain.len().checked_sub(count)?)?;
    padding.iter().all(|&byte| byte == value).then_some(content)
}

/// Lower-case hex.
pub(super) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
            // Writing to a String cannot fail.
            let _ = write!(out, "{byte:02x}");
            out
        })
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

    const KEY: &str = "jWmYm7qr5nMoAUwZRjGtBxmz3KA1tkAj3ykkR6q2B2C";

    fn key() -> AesKey {
        AesKey::parse(KEY).unwrap()
    }

    /// Header, message and receiveid without padding.
    fn content(length: u32, message: &[u8], receive_id: &str) -> Vec<u8> {
        let mut plain = vec![7; RANDOM_LEN];
        plain.extend_from_slice(&length.to_be_bytes());
        plain.extend_from_slice(message);
        plain.extend_from_slice(receive_id.as_bytes());
        plain
    }

    fn padded(mut plain: Vec<u8>) -> Vec<u8> {
        pad(&mut plain);
        plain
    }

    #[test]
    fn a_key_with_trailing_bits_is_accepted_and_faulty_ones_are_explained() {
        assert!(AesKey::parse(KEY).is_ok());
        for (faulty, says) in [
            ("", "43"),
            (&KEY[..42], "42"),
            ("jWmYm7qr5nMoAUwZRjGtBxmz3KA1tkAj3ykkR6q2B2-", "A-Z"),
        ] {
            let error = AesKey::parse(faulty).unwrap_err();
            assert!(error.contains(says), "{error}");
            assert!(
                faulty.is_empty() || !error.contains(faulty),
                "the key must not be repeated: {error}"
            );
        }
        assert_eq!(format!("{:?}", key()), "AesKey([REDACTED])");
    }

    #[test]
    fn padding_outside_1_to_32_or_inconsistent_is_refused() {
        for value in [0_u8, 33, 64, 255] {
            let mut plain = content(2, b"hi", "ww1");
            let missing = PAD_BLOCK - plain.len() % PAD_BLOCK;
            plain.extend(std::iter::repeat_n(value, missing));
            let sealed = encrypt_padded(&key(), plain).unwrap();
            assert_eq!(
                decrypt(&key(), "ww1", &sealed),
                Err(CallbackError::Decrypt),
                "pad value {value}"
            );
        }
        let mut plain = padded(content(2, b"hi", "ww1"));
        let second_last = plain.len() - 2;
        plain[second_last] ^= 1;
        let sealed = encrypt_padded(&key(), plain).unwrap();
        assert_eq!(decrypt(&key(), "ww1", &sealed), Err(CallbackError::Decrypt));
    }

    #[test]
    fn padding_to_16_is_refused_where_32_is_due() {
        let mut plain = content(2, b"hi", "0123456789");
        assert_eq!(plain.len(), 32);
        plain.extend([16; 16]);
        let sealed = encrypt_padded(&key(), plain).unwrap();
        assert_eq!(
            decrypt(&key(), "0123456789", &sealed),
            Err(CallbackError::Decrypt)
        );
    }

    #[test]
    fn a_length_beyond_the_buffer_is_an_illegal_buffer() {
        for length in [6_u32, 100, 0x7fff_ffff, u32::MAX] {
            let sealed = encrypt_padded(&key(), padded(content(length, b"hi", "ww1"))).unwrap();
            assert_eq!(
                decrypt(&key(), "ww1", &sealed),
                Err(CallbackError::Buffer),
                "length {length}"
            );
        }
    }

    #[test]
    fn a_shifted_border_between_message_and_receiveid_is_the_wrong_receiveid() {
        for length in [0_u32, 1, 3, 5] {
            let sealed = encrypt_padded(&key(), padded(content(length, b"hi", "ww1"))).unwrap();
            assert_eq!(
                decrypt(&key(), "ww1", &sealed),
                Err(CallbackError::ReceiveId),
                "length {length}"
            );
        }
    }

    #[test]
    fn receiveid_is_compared_exactly() {
        let sealed = encrypt(&key(), "ww1", [1; 16], "hi").unwrap();
        assert_eq!(decrypt(&key(), "ww1", &sealed).unwrap(), "hi");
        for other in ["", "ww", "ww11", "WW1", "ww1 ", "ww1\0"] {
            assert_eq!(
                decrypt(&key(), other, &sealed),
                Err(CallbackError::ReceiveId),
                "{other:?}"
            );
        }
        let robot = encrypt(&key(), "", [1; 16], "hi").unwrap();
        assert_eq!(decrypt(&key(), "", &robot).unwrap(), "hi");
    }

    #[test]
    fn a_message_that_is_not_utf8_is_refused() {
        let sealed = encrypt_padded(&key(), padded(content(2, &[0xff, 0xfe], "ww1"))).unwrap();
        assert!(matches!(
            decrypt(&key(), "ww1", &sealed),
            Err(CallbackError::Malformed(_))
        ));
    }

    #[test]
    fn base64_of_the_ciphertext_is_strict() {
        let sealed = encrypt(&key(), "ww1", [1; 16], "hi").unwrap();
        for broken in [
            format!("{sealed}\n"),
            format!(" {sealed}"),
            sealed.trim_end_matches('=').to_owned(),
            sealed.replacen(|c: char| c.is_ascii_alphanumeric(), "-", 1),
            format!("{}=", &sealed[..sealed.len() - 1]),
        ] {
            if broken == sealed {
                continue;
            }
            let error = decrypt(&key(), "ww1", &broken).unwrap_err();
            assert!(
                matches!(error, CallbackError::Base64),
                "{broken}: {error:?}"
            );
        }
        assert_eq!(decrypt(&key(), "ww1", ""), Err(CallbackError::Decrypt));
    }

    #[test]
    fn a_signature_of_another_length_or_case_does_not_match() {
        let good = signature("t", "1", "2", "e");
        assert!(signature_matches(&good, "t", "1", "2", "e"));
        for bad in [
            String::new(),
            good[..39].to_owned(),
            format!("{good}0"),
            good.to_uppercase(),
        ] {
            assert!(!signature_matches(&bad, "t", "1", "2", "e"), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn what_is_encrypted_comes_back(message in ".*", receive_id in "[a-zA-Z0-9]{0,20}", random: [u8; 16]) {
            let sealed = encrypt(&key(), &receive_id, random, &message).unwrap();
            prop_assert_eq!(decrypt(&key(), &receive_id, &sealed).unwrap(), message);
        }

        #[test]
        fn no_bytes_make_decrypt_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = decrypt(&key(), "ww1", &STANDARD.encode(&bytes));
            let _ = decrypt(&key(), "ww1", &String::from_utf8_lossy(&bytes));
            let whole_blocks = bytes.len() / 16 * 16;
            let sealed = encrypt_padded(&key(), bytes[..whole_blocks].to_vec()).unwrap();
            let _ = decrypt(&key(), "ww1", &sealed);
        }

        #[test]
        fn no_key_text_makes_parse_panic(text in ".*") {
            let _ = AesKey::parse(&text);
        }
    }
}
