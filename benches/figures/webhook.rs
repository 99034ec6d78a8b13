//! Acknowledgement of WeCom callbacks at 300 a second: `iit web` over TCP, each message stored with its
//! job before the answer; no worker runs.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use iit_manager::adapters::wecom::{config::WecomConfig, crypto};
use iit_manager::types::clock::Clock;
use secrecy::ExposeSecret;
use tokio::net::TcpListener;
use tokio::process::Command;

use crate::Bench;
use crate::fake_wecom::FakeWecom;
use crate::load;
use crate::program::{self, Running};
use crate::report::{Figure, Target};

const RATE: f64 = 300.0;

pub async fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let count = bench.amount(6_000, 600);
    let base = bench.place.database("webhook").await?;
    let wecom = FakeWecom::start().await;
    let (command, address) = listening(program::iit(&bench.place, &base, &["web"]), &wecom).await?;
    let web = Running::start(command).await?;
    let config = wecom.config();
    let requests: Arc<Vec<Callback>> = Arc::new(
        (0..count)
            .map(|n| Callback::seal(&config, &address, n, "ZhangSan", "质控 ID=01-701-1015"))
            .collect::<Result<_>>()?,
    );
    let client = client()?;
    let times = load::open_loop(&load::poisson(RATE, count), |n, due| {
        let (client, requests) = (client.clone(), requests.clone());
        async move {
            requests
                .get(n)
                .context("no such request")?
                .post(&client)
                .await?;
            Ok(due.elapsed())
        }
    })
    .await?;
    let memory = web.memory_mb("VmHWM")?;
    web.stop().await?;
    for stored in [
        "SELECT count(*) FROM iit_inbox WHERE status = 'queued'",
        "SELECT count(*) FROM iit_jobs WHERE kind = 'intent' AND state = 'available'",
    ] {
        let rows = base.count(stored).await?;
        ensure!(
            usize::try_from(rows)? == count,
            "{rows} rows of {count}: {stored}"
        );
    }
    base.drop().await?;
    Ok(vec![
        Figure::new(
            "webhook acknowledgement at 300/s",
            Target::Below(20.0),
            times.ms(99),
            "ms p99",
        )
        .detail(times.spread())
        .note(format!(
            "{} Poisson arrivals over loopback TCP, open loop, from the due time to the whole answer; the load comes from \
             the same two cores; `iit web` peaked at {memory:.0} MB",
            times.len()
        )),
    ])
}

/// `command` with the WeCom settings, on a free port; returns the callback's address, too.
pub async fn listening(mut command: Command, wecom: &FakeWecom) -> Result<(Command, String)> {
    let free = TcpListener::bind("127.0.0.1:0").await?.local_addr()?;
    command
        .envs(wecom.variables())
        .env("IIT_BIND", free.to_string());
    Ok((command, format!("http://{free}/wecom/callback")))
}

pub fn client() -> Result<reqwest::Client> {
    let builder = reqwest::Client::builder().no_proxy();
    Ok(builder.timeout(Duration::from_secs(30)).build()?)
}

/// A callback as WeCom posts it: encrypted, signed now.
pub struct Callback {
    url: String,
    body: String,
}

impl Callback {
    pub fn seal(
        config: &WecomConfig,
        address: &str,
        number: usize,
        from: &str,
        text: &str,
    ) -> Result<Self> {
        let now = Clock::system().now().timestamp();
        let message = format!(
            "<xml><ToUserName><![CDATA[{}]]></ToUserName><FromUserName><![CDATA[{from}]]></FromUserName>\
             <CreateTime>{now}</CreateTime><MsgType><![CDATA[text]]></MsgType><Content><![CDATA[{text}]]></Content>\
             <MsgId>{}</MsgId><AgentID>{}</AgentID></xml>",
            config.corp_id,
            7_000_000_000_u64 + number as u64,
            config.agent_id
        );
        let mut random = [0; 16];
        random[..8].copy_from_slice(&number.to_be_bytes());
        let sealed = crypto::encrypt(&config.aes_key, &config.receive_id, random, &message)?;
        let (stamp, nonce) = (now.to_string(), format!("{number:08}"));
        let signature = crypto::signature(config.token.expose_secret(), &stamp, &nonce, &sealed);
        Ok(Self {
            url: format!("{address}?msg_signature={signature}&timestamp={stamp}&nonce={nonce}"),
            body: format!("<xml><Encrypt><![CDATA[{sealed}]]></Encrypt></xml>"),
        })
    }

    /// Posts it; anything but an empty 200 is an error.
    pub async fn post(&self, client: &reqwest::Client) -> Result<()> {
        let answer = client
            .post(&self.url)
            .body(self.body.clone())
            .send()
            .await?;
        let status = answer.status();
        let body = answer.bytes().await?;
        ensure!(
            status.as_u16() == 200 && body.is_empty(),
            "the callback answered {status}: {}",
            String::from_utf8_lossy(&body)
        );
        Ok(())
    }
}
