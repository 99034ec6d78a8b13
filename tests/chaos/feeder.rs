//! The senders of messages: each is posted until it is acknowledged, as WeCom does it (and, since three
//! tries may all meet a dead process, more often), and now and then again after that.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Result;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::task::JoinSet;

use crate::fake_wecom::Sealer;
use crate::history::History;
use crate::study::{member, record_id};

/// WeCom gives up on an answer after this long.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
const AGAIN_AFTER: Duration = Duration::from_millis(300);
/// Messages that are posted once more although they were acknowledged.
const REPEATED: f64 = 0.1;

/// How many messages there may be, and how many must be.
pub struct Wanted {
    pub least: usize,
    pub most: usize,
    /// Messages that may wait for their answers at a time.
    pub window: usize,
}

/// What others tell the feeder and ask it.
#[derive(Default)]
pub struct Flow {
    /// Messages whose answer is on its way out or there.
    pub finished: AtomicUsize,
    pub sent: AtomicUsize,
    /// Enough was done to the processes: no more messages than needed.
    pub enough: AtomicBool,
    pub all_sent: AtomicBool,
    pub posts: AtomicUsize,
}

/// Posts messages until there are as many as wanted and enough was done to the processes.
pub async fn feed(
    address: String,
    sealer: Sealer,
    wanted: Wanted,
    flow: Arc<Flow>,
    history: History,
    seed: u64,
) -> Result<()> {
    let client = reqwest::Client::builder()
        .no_proxy()
        .timeout(ANSWER_WITHIN)
        .build()?;
    let mut random = StdRng::seed_from_u64(seed);
    let mut posting = JoinSet::new();
    loop {
        let sent = flow.sent.load(Ordering::Relaxed);
        if sent == wanted.most || (sent >= wanted.least && flow.enough.load(Ordering::Relaxed)) {
            break;
        }
        if sent - flow.finished.load(Ordering::Relaxed).min(sent) >= wanted.window {
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        }
        let repeat = random.random_bool(REPEATED);
        let (address, sealer, client) = (address.clone(), sealer.clone(), client.clone());
        let (flow_of_post, history) = (Arc::clone(&flow), history.clone());
        posting.spawn(async move {
            let mut attempt = 0;
            loop {
                attempt += 1;
                flow_of_post.posts.fetch_add(1, Ordering::Relaxed);
                let text = format!("质控 ID={}", record_id(sent));
                let sealed = sealer.seal(sent, attempt, &member(sent), &text)?;
                let answer = client
                    .post(format!("{address}?{}", sealed.query))
                    .body(sealed.body)
                    .send()
                    .await;
                match answer {
                    Ok(answer) if answer.status().as_u16() == 200 => {
                        if !repeat || attempt > 1 {
                            return anyhow::Ok(());
                        }
                    }
                    Ok(answer) => history.note(format!(
                        "message {}: not acknowledged: {}",
                        sent + 1,
                        answer.status()
                    )),
                    Err(_) => {}
                }
                tokio::time::sleep(AGAIN_AFTER).await;
            }
        });
        flow.sent.store(sent + 1, Ordering::Relaxed);
    }
    while let Some(posted) = posting.join_next().await {
        posted??;
    }
    flow.all_sent.store(true, Ordering::Relaxed);
    Ok(())
}
