//! Drives other indexes on the workloads of indexer/workload and prints one JSON object in the form of `kvscout bench
//! --json`. It exits with 1 if an answer was wrong.
//!
//! usage: peers pinned PEER | peers mooncake PEER CAP COPIES TRACE

mod mooncake;
mod op;
mod peer;
mod pinned;
mod rng;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use peer::{Found, Peer};
use serde_json::{Value, json};

/// Tells the bytes that are live, where the allocator counts them.
pub type Live = Option<fn() -> i64>;

pub fn main(live: Live) -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let (report, right) = match args[..] {
        ["pinned", name] if peer::NAMES.contains(&name) => run_pinned(name, live),
        ["mooncake", name, capacity, copies, trace] if peer::NAMES.contains(&name) => {
            let trace = std::fs::read_to_string(trace).expect("a trace");
            let m = mooncake::make(
                &trace,
                capacity.parse().expect("a capacity"),
                copies.parse().expect("a number of copies"),
                peer::rolled(name),
            );
            run_mooncake(name, &m, live)
        }
        _ => {
            eprintln!("usage: peers pinned PEER | peers mooncake PEER CAP COPIES TRACE; PEER: {:?}", peer::NAMES);
            return ExitCode::from(2);
        }
    };
    println!("{report}");
    if right { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Heap (where counted) and resident set in bytes; what malloc keeps without need is given back first.
fn memory(live: Live) -> (Option<i64>, i64) {
    // Safety: malloc_trim may be called at any time.
    unsafe { libc::malloc_trim(0) };
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages: i64 = statm.split_whitespace().nth(1).and_then(|v| v.parse().ok()).expect("statm");
    (live.map(|f| f()), pages * 4096)
}

fn per_block(base: (Option<i64>, i64), used: (Option<i64>, i64), blocks: usize) -> (Value, Value) {
    let n = blocks as f64;
    let heap = base.0.zip(used.0).map_or(Value::Null, |(a, b)| json!((b - a) as f64 / n));
    (heap, json!((used.1 - base.1) as f64 / n))
}

fn percentile(sorted: &[Duration], p: f64) -> u64 {
    sorted[((sorted.len() as f64 - 1.0) * p).round() as usize].as_nanos() as u64
}

fn run_pinned(name: &str, live: Live) -> (Value, bool) {
    let p = pinned::make(peer::rolled(name));
    let mixed: Vec<_> = p.mixed.iter().map(|q| peer::hashes(q)).collect();
    let base = memory(live);
    let mut index = Peer::new(name, pinned::HOLDERS);
    let (mut filling, mut stored, mut probes, mut probed) = (Duration::ZERO, 0, 0, 0);
    let mut chunk = Vec::new();
    for (i, op) in p.ops.iter().enumerate() {
        chunk.push(index.prepare(op, i as u64));
        if let op::Op::Store { blocks, .. } = op {
            stored += blocks.len();
        }
        if stored < 250_000 && i + 1 < p.ops.len() {
            continue;
        }
        let began = Instant::now();
        chunk.drain(..).for_each(|e| index.apply(e));
        index.flush();
        filling += began.elapsed();
        if stored >= 250_000 {
            stored = 0;
            let k = probes % p.mixed.len();
            probed += index.find(&p.mixed[k], &mixed[k]).depth_sum;
            probes += 1;
        }
    }
    drop(chunk);
    let (heap, rss) = per_block(base, memory(live), p.resident);
    let mut right = probed == 847;
    let mut cells = serde_json::Map::new();
    for c in &p.cells {
        let hashes: Vec<_> = c.queries.iter().map(|q| peer::hashes(q)).collect();
        let (mut took, mut sum) = (Vec::new(), Found::default());
        for (q, h) in c.queries.iter().zip(&hashes) {
            let f = index.find(q, h);
            took.push(f.took);
            sum.depth_sum += f.depth_sum;
            sum.matched += f.matched;
        }
        took.sort_unstable();
        right &= (sum.depth_sum, sum.matched) == (c.depth_sum, c.matched);
        cells.insert(
            c.name.into(),
            json!({"n": took.len(), "p50_ns": percentile(&took, 0.5), "p99_ns": percentile(&took, 0.99),
                   "depth_sum": sum.depth_sum, "matched": sum.matched}),
        );
    }
    std::mem::forget(index); // to free it takes longer than to end
    let fill = p.stream as f64 / 1e6 / filling.as_secs_f64();
    let report = json!({"fill_mblocks_s": fill, "heap_bytes_per_holder_block": heap, "rss_bytes_per_holder_block": rss,
                        "resident": p.resident, "cells": cells});
    (report, right)
}

fn run_mooncake(name: &str, m: &mooncake::Mooncake, live: Live) -> (Value, bool) {
    let hashes: Vec<_> = m.requests.iter().map(|(q, _)| peer::hashes(q)).collect();
    let mut took = Vec::with_capacity(m.requests.len());
    let base = memory(live);
    let mut index = Peer::new(name, mooncake::WORKERS);
    let (mut checksum, mut final_checksum) = (0, 0);
    for ((q, ops), h) in m.requests.iter().zip(&hashes) {
        let f = index.find(q, h);
        took.push(f.took);
        checksum += f.depth_sum;
        for op in ops {
            let e = index.prepare(op, 1);
            index.apply(e);
        }
        index.flush();
    }
    let (heap, rss) = per_block(base, memory(live), m.resident);
    for ((q, _), h) in m.requests.iter().zip(&hashes) {
        final_checksum += index.find(q, h).depth_sum;
    }
    took.sort_unstable();

    let mut second = Peer::new(name, mooncake::WORKERS);
    let events: Vec<_> = m.requests.iter().flat_map(|(_, ops)| ops).map(|op| second.prepare(op, 1)).collect();
    let began = Instant::now();
    events.into_iter().for_each(|e| second.apply(e));
    second.flush();
    let writing = began.elapsed();
    std::mem::forget((index, second));
    let report = json!({"find_p50_ns": percentile(&took, 0.5), "find_p99_ns": percentile(&took, 0.99),
                        "writes_mops_s": m.blocks as f64 / 1e6 / writing.as_secs_f64(),
                        "heap_bytes_per_holder_block": heap, "rss_bytes_per_holder_block": rss,
                        "resident": m.resident, "checksum": checksum, "final_checksum": final_checksum});
    (report, checksum == m.checksum && final_checksum == m.final_checksum)
}
