//! Why Dify brought nothing. No sentence quotes what the server said: it may repeat the question.

/// Why there are no passages.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DifyError {
    /// It never left.
    #[error("连不上方案知识库 Dify，请检查 DIFY_BASE_URL 与网络 (Dify can't be reached)")]
    Unreachable,
    /// No whole answer in time.
    #[error("方案知识库 Dify 未在时限内答复，请稍后重试 (Dify did not answer in time)")]
    Timeout,
    /// The key is refused.
    #[error(
        "方案知识库 Dify 拒绝密钥，请检查 DIFY_API_KEY 是否为知识库密钥 (Dify refuses the key, HTTP {0})"
    )]
    Key(u16),
    /// There is no such dataset.
    #[error(
        "方案知识库 Dify 没有这个知识库，请检查 dataset_id 或 DIFY_DATASET_ID (no such dataset, HTTP 404)"
    )]
    NoDataset,
    /// Too many questions.
    #[error("方案知识库 Dify 限流，请稍后重试 (Dify asks to slow down, HTTP 429)")]
    RateLimited,
    /// It says no to the question itself.
    #[error(
        "方案知识库 Dify 拒绝了请求，请检查知识库的检索设置 (Dify refuses the request, HTTP {0})"
    )]
    Refused(u16),
    /// The server is in trouble.
    #[error("方案知识库 Dify 服务故障，请稍后重试 (Dify is in trouble, HTTP {0})")]
    Trouble(u16),
    /// An answer that is none.
    #[error(
        "方案知识库 Dify 的答复无法读取，请检查 DIFY_BASE_URL 是否指向 Dify 的 API (the answer can't be read: {0})"
    )]
    Unreadable(&'static str),
}
