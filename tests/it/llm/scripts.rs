//! Everything servers say instead of an answer. Where they would repeat a prompt, personal data stands.

use std::io::Write as _;

use flate2::{Compression, write::GzEncoder};

use super::server::{head, http};

/// What is wrong, and the bytes that say so.
pub fn failures() -> Vec<(&'static str, Vec<u8>)> {
    let json =
        |status, headers: &[(&str, &str)], body: &str| http(status, headers, body.as_bytes());
    let ok = |body: &str| http(200, &[("x-request-id", "req-9")], body.as_bytes());
    vec![
        (
            "402",
            json(
                402,
                &[],
                r#"{"error":{"message":"Insufficient Balance: 患者张三","code":"invalid_request_error"}}"#,
            ),
        ),
        (
            "429, code a word, seconds to wait",
            json(
                429,
                &[("retry-after", "7"), ("x-request-id", "req-1")],
                r#"{"error":{"code":"rate_limit_exceeded","message":"患者张三"}}"#,
            ),
        ),
        (
            "429, code a number",
            json(
                429,
                &[("retry-after", "86400")],
                r#"{"error":{"code":429,"message":"患者张三"}}"#,
            ),
        ),
        (
            "429, a date to wait for",
            json(
                429,
                &[
                    ("date", "Tue, 01 Dec 2026 00:00:00 GMT"),
                    ("retry-after", "Tue, 01 Dec 2026 00:01:30 GMT"),
                ],
                "{}",
            ),
        ),
        (
            "429, text",
            json(429, &[], "slow down, 患者张三 13800138000"),
        ),
        (
            "429, no quota",
            json(
                429,
                &[],
                r#"{"error":{"type":"insufficient_quota","code":"insufficient_quota","message":"…"}}"#,
            ),
        ),
        (
            "429, a quota of pace",
            json(
                429,
                &[],
                r#"{"error":{"code":"Throttling.AllocationQuota","message":"患者张三"}}"#,
            ),
        ),
        (
            "400, an unpaid bill",
            json(
                400,
                &[],
                r#"{"error":{"code":"Arrearage","message":"患者张三"}}"#,
            ),
        ),
        (
            "429, cut in the body",
            [
                head(429, &[("retry-after", "3")], 500),
                b"{\"error\":{\"mess".to_vec(),
            ]
            .concat(),
        ),
        (
            "401",
            json(
                401,
                &[],
                r#"{"error":{"message":"Incorrect key sk-13800138000"}}"#,
            ),
        ),
        ("403", json(403, &[], "患者张三")),
        (
            "503, a page, seconds to wait",
            json(
                503,
                &[("retry-after", "3"), ("content-type", "text/html")],
                "<html>患者张三</html>",
            ),
        ),
        (
            "500, a page",
            json(500, &[], "<html>110101199003078515</html>"),
        ),
        ("504, a page", json(504, &[], "<html>upstream</html>")),
        ("408", json(408, &[], "")),
        (
            "400, code a number",
            json(
                400,
                &[],
                r#"{"error":{"code":400,"message":"the request exceeds the available context size: 患者张三","type":"exceed_context_size_error"}}"#,
            ),
        ),
        (
            "400, code a word",
            json(
                400,
                &[("x-request-id", "req-2")],
                r#"{"error":{"code":"unsupported_parameter","param":"max_tokens","message":"Unsupported parameter: 'max_tokens', use 'max_completion_tokens' instead. 患者张三"}}"#,
            ),
        ),
        (
            "400, code prose",
            json(
                400,
                &[],
                r#"{"error":{"code":"患者张三 的请求","message":"13800138000"}}"#,
            ),
        ),
        (
            "400, a list of faults",
            json(
                400,
                &[],
                r#"{"detail":[{"type":"extra_forbidden","input":"患者张三"}]}"#,
            ),
        ),
        (
            "404, unknown model",
            json(
                404,
                &[],
                r#"{"error":{"code":"model_not_found","message":"The model `患者张三` does not exist"}}"#,
            ),
        ),
        ("404, a page", json(404, &[], "404 page not found 患者张三")),
        (
            "a request id that is no plain word",
            json(400, &[("x-request-id", "Zhang San 13800138000")], "{}"),
        ),
        (
            "200, an error",
            ok(r#"{"error":{"code":402,"message":"患者张三"}}"#),
        ),
        (
            "200, an error in words",
            ok(r#"{"error":"患者张三 is not allowed"}"#),
        ),
        (
            "200, an error beside an answer",
            ok(
                r#"{"error":{"type":"server_error","message":"患者张三"},"choices":[{"message":{"content":"患者张三"}}]}"#,
            ),
        ),
        (
            "200, an error of its own form",
            ok(r#"{"code":"Throttling.RateQuota","message":"患者张三"}"#),
        ),
        (
            "200, choices null",
            ok(r#"{"id":"患者张三","choices":null}"#),
        ),
        ("200, choices empty", ok(r#"{"choices":[]}"#)),
        (
            "200, message null",
            ok(r#"{"choices":[{"message":null,"finish_reason":"stop"}]}"#),
        ),
        ("200, a page", ok("<html>患者张三</html>")),
        ("200, nothing", ok("")),
        ("200, blank lines only", ok("\n\n\n\n")),
        ("200, a list", ok(r#"["患者张三"]"#)),
        (
            "200, a stream nobody asked for",
            ok("data: {\"choices\":[{\"delta\":{\"content\":\"患者张三\"}}]}\n\ndata: [DONE]\n\n"),
        ),
        (
            "200, no UTF-8",
            http(
                200,
                &[],
                b"{\"choices\":[{\"message\":{\"content\":\"\xff\xfe\"}}]}",
            ),
        ),
        (
            "200, broken off for lack of resources",
            ok(
                r#"{"choices":[{"finish_reason":"insufficient_system_resource","message":{"content":"患者张三"}}]}"#,
            ),
        ),
        (
            "200, zipped though nobody asked",
            http(
                200,
                &[("content-encoding", "gzip")],
                &zipped(r#"{"choices":[{"message":{"content":"患者张三"}}]}"#),
            ),
        ),
        (
            "200, longer than any answer",
            http(200, &[], &vec![b' '; 4 * 1024 * 1024 + 1]),
        ),
        (
            "200, cut in the body",
            [
                head(200, &[("x-request-id", "req-3")], 500),
                r#"{"choices":[{"message":{"content":"患者张三"#.into(),
            ]
            .concat(),
        ),
        (
            "200, cut between chunks",
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{\"cho\r\n".to_vec(),
        ),
        ("cut in the head", b"HTTP/1.1 200 OK\r\ncontent-le".to_vec()),
        ("closed without a word", Vec::new()),
        ("no HTTP", b"SSH-2.0-OpenSSH_9.2\r\n".to_vec()),
        ("204", b"HTTP/1.1 204 No Content\r\n\r\n".to_vec()),
    ]
}

fn zipped(text: &str) -> Vec<u8> {
    let mut zip = GzEncoder::new(Vec::new(), Compression::fast());
    zip.write_all(text.as_bytes()).unwrap();
    zip.finish().unwrap()
}
