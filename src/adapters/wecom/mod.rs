//! 企业微信 (WeCom): callback cryptography and the message API.
