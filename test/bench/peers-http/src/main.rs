//! Dynamo's standalone indexer on a port of 127.0.0.1, as its own program starts it: blocks of 16 tokens, model "m".
//! usage: peers-http PORT THREADS; THREADS are the indexer's, beside two for HTTP.
use anyhow::Context;
use axum::http::HeaderName;
use dynamo_kv_router::services::indexer::{IndexerConfig, run_server};

fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1);
    let port = args.next().context("no PORT")?.parse().context("PORT")?;
    let threads = args.next().context("no THREADS")?.parse().context("THREADS")?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(run_server(IndexerConfig {
        block_size: Some(16),
        port,
        threads,
        workers: None,
        model_name: "m".into(),
        routing_group: "default".into(),
        peers: None,
        access_log: None,
        trace_id_header: HeaderName::from_static("x-trace-id"),
        access_log_local_time: false,
    }))
}
