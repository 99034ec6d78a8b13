//! Bytes of a file to text, without ever losing or inventing a character.

use encoding_rs::{DecoderResult, Encoding, GB18030, UTF_8};

/// Text and the encoding it was found to be in.
pub(super) struct Decoded {
    pub text: String,
    pub encoding: &'static Encoding,
}

/// The first byte that is not text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BadByte {
    /// From 1.
    pub line: u64,
    /// In bytes, from 1.
    pub column: usize,
    pub byte: u8,
    /// In which encoding it is wrong.
    pub encoding: &'static str,
}

/// A byte-order mark decides; else UTF-8; else GB18030, which Chinese Excel writes.
///
/// GB18030 accepts almost any bytes, so it is only believed where it is plausible: neither in a UTF-8
/// file with a broken character, nor in a Western 8-bit file.
pub(super) fn decode(bytes: &[u8]) -> Result<Decoded, BadByte> {
    let (encoding, mark) = Encoding::for_bom(bytes).unwrap_or((UTF_8, 0));
    match strict(encoding, bytes, mark) {
        Ok(text) => Ok(Decoded { text, encoding }),
        Err(bad) if mark > 0 || is_mostly_utf8(bytes) => Err(bad),
        Err(bad) if !is_plausible_gb18030(bytes) => Err(bad),
        Err(_) => Ok(Decoded {
            text: strict(GB18030, bytes, 0)?,
            encoding: GB18030,
        }),
    }
}

fn strict(encoding: &'static Encoding, bytes: &[u8], mark: usize) -> Result<String, BadByte> {
    let body = bytes.get(mark..).unwrap_or_default();
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let capacity = decoder
        .max_utf8_buffer_length_without_replacement(body.len())
        .unwrap_or(body.len());
    let mut text = String::with_capacity(capacity);
    let (result, read) = decoder.decode_to_string_without_replacement(body, &mut text, true);
    match result {
        DecoderResult::InputEmpty => {
            text.shrink_to_fit();
            Ok(text)
        }
        DecoderResult::OutputFull | DecoderResult::Malformed(..) => {
            let behind = match result {
                DecoderResult::Malformed(bad, after) => usize::from(bad) + usize::from(after),
                _ => 0,
            };
            let at = mark + read.saturating_sub(behind);
            let before = bytes.get(..at).unwrap_or(bytes);
            let line_start = before
                .iter()
                .rposition(|&b| b == b'\n')
                .map_or(0, |p| p + 1);
            Err(BadByte {
                line: before.iter().filter(|&&b| b == b'\n').count() as u64 + 1,
                column: at - line_start + 1,
                byte: bytes.get(at).copied().unwrap_or_default(),
                encoding: encoding.name(),
            })
        }
    }
}

/// More whole three-byte characters than broken places: a UTF-8 file with a fault in it.
/// (Chinese in GB18030 hardly ever makes three-byte UTF-8 sequences, and breaks at every other byte.)
fn is_mostly_utf8(bytes: &[u8]) -> bool {
    let (mut whole, mut broken) = (0_usize, 0_usize);
    for chunk in bytes.utf8_chunks() {
        whole += chunk.valid().chars().filter(|c| c.len_utf8() >= 3).count();
        broken += usize::from(!chunk.invalid().is_empty());
    }
    whole > broken
}

/// Western letters stand alone between ASCII ones and would pair with them; Chinese text pairs high
/// bytes with high bytes, but for rare characters.
fn is_plausible_gb18030(bytes: &[u8]) -> bool {
    let (mut paired, mut lone) = (0_usize, 0_usize);
    let mut rest = bytes.iter();
    while let Some(&byte) = rest.next() {
        if byte >= 0x80 {
            match rest.next() {
                Some(&trail) if trail >= 0x80 || trail.is_ascii_digit() => paired += 1,
                _ => lone += 1,
            }
        }
    }
    paired > lone
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        reason = "a failed expectation is the test's verdict"
    )]

    use super::*;

    #[test]
    fn utf8_with_and_without_mark_and_gb18030_give_the_same_text() {
        let text = "受试者,知情同意\n一,𠮷镕\n";
        let (gb, _, lossy) = GB18030.encode(text);
        assert!(!lossy);
        for bytes in [
            text.as_bytes().to_vec(),
            [b"\xef\xbb\xbf", text.as_bytes()].concat(),
            gb.into_owned(),
        ] {
            assert_eq!(decode(&bytes).ok().unwrap().text, text);
        }
    }

    #[test]
    fn utf16_as_excel_saves_it_is_read_by_its_mark() {
        let bytes: Vec<u8> = "\u{feff}年龄,1"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        assert_eq!(decode(&bytes).ok().unwrap().text, "年龄,1");
    }

    #[test]
    fn a_broken_character_in_utf8_is_named_and_not_read_as_gb18030() {
        let mut bytes = "record_id,姓名\n1,张三\n2,李四\n".as_bytes().to_vec();
        let at = bytes.len() - 2;
        bytes.remove(at); // the last byte of 四
        let bad = decode(&bytes).err().unwrap();
        assert_eq!((bad.line, bad.column, bad.encoding), (3, 6, "UTF-8"));
    }

    #[test]
    fn western_8_bit_text_is_refused_rather_than_turned_into_chinese() {
        let bad = decode(b"record_id,name\n1,M\xfcller\n2,Caf\xe9 noir\n")
            .err()
            .unwrap();
        assert_eq!((bad.line, bad.column, bad.byte), (2, 4, 0xfc));
    }

    #[test]
    fn a_byte_that_no_encoding_knows_is_named_by_line_and_column() {
        let (gb, _, _) = GB18030.encode("受试者编号,姓名\n一,张");
        let bytes = [gb.as_ref(), b"\xff\xff\n"].concat();
        assert_eq!(
            decode(&bytes).err().unwrap(),
            BadByte {
                line: 2,
                column: 6,
                byte: 0xff,
                encoding: "gb18030"
            }
        );
    }
}
