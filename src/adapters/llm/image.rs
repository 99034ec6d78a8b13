//! A picture shown to a model.

use std::{fmt, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};

/// A picture of a kind that servers read. Cheap to clone.
#[derive(Clone, PartialEq, Eq)]
pub struct Image {
    media_type: &'static str,
    bytes: Arc<[u8]>,
}

impl Image {
    /// Takes a PNG, JPEG or WebP file, told by its first bytes and not by what its sender calls it; `None`
    /// for anything else.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let media_type = match bytes {
            [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, ..] => "image/png",
            [0xff, 0xd8, 0xff, ..] => "image/jpeg",
            [
                b'R',
                b'I',
                b'F',
                b'F',
                _,
                _,
                _,
                _,
                b'W',
                b'E',
                b'B',
                b'P',
                ..,
            ] => "image/webp",
            _ => return None,
        };
        Some(Self {
            media_type,
            bytes: bytes.into(),
        })
    }

    /// The picture within a URL, as it is sent.
    #[must_use]
    pub fn data_url(&self) -> String {
        format!(
            "data:{};base64,{}",
            self.media_type,
            STANDARD.encode(&self.bytes)
        )
    }
}

impl fmt::Debug for Image {
    /// Without the picture.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Image({}, {} bytes)", self.media_type, self.bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_told_by_its_first_bytes_and_printed_without_its_content() {
        let url = |bytes: &[u8]| Image::read(bytes).map(|image| image.data_url());
        assert_eq!(
            url(b"\x89PNG\r\n\x1a\nrest").as_deref(),
            Some("data:image/png;base64,iVBORw0KGgpyZXN0")
        );
        assert_eq!(
            url(b"\xff\xd8\xffrest").as_deref(),
            Some("data:image/jpeg;base64,/9j/cmVzdA==")
        );
        assert_eq!(
            url(b"RIFF\x00\x00\x00\x00WEBP").as_deref(),
            Some("data:image/webp;base64,UklGRgAAAABXRUJQ")
        );
        let image = Image::read(b"\xff\xd8\xffsecret");
        assert_eq!(format!("{image:?}"), "Some(Image(image/jpeg, 9 bytes))");
    }

    #[test]
    fn what_no_server_reads_is_no_picture() {
        for bytes in [
            &b""[..],
            b"GIF89a",
            b"%PDF-1.7",
            b"\x89PN",
            b"RIFF\x00\x00\x00\x00WAVE",
            b"<svg/>",
        ] {
            assert_eq!(Image::read(bytes), None);
        }
    }
}
