//! The indexes, behind one face.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use dynamo_kv_router::indexer::{SyncIndexer, ThreadPoolIndexer};
use dynamo_kv_router::protocols::*;
use dynamo_kv_router::{ConcurrentRadixTreeCompressed, RadixTree as DynamoTree};
use radix_tree::{Config, HolderId, Overlap, OverlapScratch, RadixTree};

use crate::op::Op;

pub const NAMES: [&str; 3] = ["smg-r3", "dyn-radix", "dyn-crtc"];

pub enum Peer {
    /// smg-radix-tree's RadixTree.
    Smg { tree: RadixTree, holders: Vec<HolderId>, rows: Vec<Overlap>, scratch: OverlapScratch },
    /// dynamo-kv-router's RadixTree.
    Radix(DynamoTree),
    /// dynamo-kv-router's ConcurrentRadixTreeCompressed behind its pool, with one thread.
    Crtc(ThreadPoolIndexer<ConcurrentRadixTreeCompressed>),
}

/// An operation in the form that a peer takes.
pub enum Event {
    Plain(Op),
    Dynamo(RouterEvent),
}

/// What was answered, and in what time.
#[derive(Default, Clone, Copy)]
pub struct Found {
    pub took: Duration,
    pub matched: u64,
    pub depth_sum: u64,
}

/// Whether the peer's events carry Dynamo's rolling hashes.
pub fn rolled(name: &str) -> bool {
    name.starts_with("dyn")
}

fn runtime() -> &'static tokio::runtime::Runtime {
    static RUNTIME: OnceLock<tokio::runtime::Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime"))
}

impl Peer {
    pub fn new(name: &str, holders: usize) -> Peer {
        match name {
            "smg-r3" => {
                let mut tree = RadixTree::new(Config::default());
                let holders = (0..holders).map(|h| tree.create_holder(&format!("holder-{h}"))).collect();
                Peer::Smg { tree, holders, rows: vec![], scratch: OverlapScratch::default() }
            }
            "dyn-radix" => Peer::Radix(DynamoTree::new()),
            "dyn-crtc" => Peer::Crtc(ThreadPoolIndexer::new(ConcurrentRadixTreeCompressed::new(), 1, 512)),
            _ => panic!("unknown peer {name}"),
        }
    }

    /// Makes the event of an operation, which is not timed.
    pub fn prepare(&self, op: &Op, id: u64) -> Event {
        match self {
            Peer::Smg { .. } => Event::Plain(op.clone()),
            _ => Event::Dynamo(dynamo(op, id)),
        }
    }

    pub fn apply(&mut self, event: Event) {
        match (self, event) {
            (Peer::Smg { tree, holders, .. }, Event::Plain(op)) => match op {
                Op::Store { holder, parent, blocks } => {
                    tree.store(holders[holder as usize], parent, &blocks).expect("a store with a known parent");
                }
                Op::Remove { holder, keys } => {
                    assert_eq!(tree.remove(holders[holder as usize], &keys) as usize, keys.len());
                }
            },
            (Peer::Radix(tree), Event::Dynamo(e)) => tree.apply_event(e).expect("an event that applies"),
            (Peer::Crtc(pool), Event::Dynamo(e)) => pool.enqueue_event(e).expect("a running pool"),
            _ => unreachable!(),
        }
    }

    /// Waits until everything is applied.
    pub fn flush(&mut self) {
        if let Peer::Crtc(pool) = self {
            runtime().block_on(pool.flush_and_wait()).expect("a running pool");
        }
    }

    /// Each index is given keys that were written just before, as they are where a router computes them.
    pub fn find(&mut self, query: &[u64], hashes: &[LocalBlockHash]) -> Found {
        match self {
            Peer::Smg { tree, rows, scratch, .. } => {
                let owned = query.to_vec();
                let began = Instant::now();
                tree.overlap(&owned, scratch, rows);
                let took = began.elapsed();
                let depth_sum = rows.iter().map(|o| o.depth as u64).sum();
                Found { took, matched: rows.len() as u64, depth_sum }
            }
            Peer::Radix(tree) => {
                let owned = hashes.to_vec();
                let began = Instant::now();
                let scores = tree.find_matches(owned, false);
                found(began.elapsed(), scores)
            }
            Peer::Crtc(pool) => {
                let tree = pool.backend();
                let owned = hashes.to_vec();
                let began = Instant::now();
                let scores = tree.find_matches(&owned, false);
                found(began.elapsed(), scores)
            }
        }
    }
}

fn found(took: Duration, s: OverlapScores) -> Found {
    Found { took, matched: s.scores.len() as u64, depth_sum: s.scores.values().map(|&d| d as u64).sum() }
}

fn dynamo(op: &Op, event_id: u64) -> RouterEvent {
    let (holder, data) = match op {
        Op::Store { holder, parent, blocks } => {
            let blocks = blocks.iter().map(|b| KvCacheStoredBlockData {
                block_hash: ExternalSequenceBlockHash(b.0),
                tokens_hash: LocalBlockHash(b.1),
                mm_extra_info: None,
            });
            let data = KvCacheStoreData {
                parent_hash: parent.map(ExternalSequenceBlockHash),
                start_position: None,
                blocks: blocks.collect(),
            };
            (holder, KvCacheEventData::Stored(data))
        }
        Op::Remove { holder, keys } => {
            let block_hashes = keys.iter().copied().map(ExternalSequenceBlockHash).collect();
            (holder, KvCacheEventData::Removed(KvCacheRemoveData { block_hashes }))
        }
    };
    RouterEvent::new(*holder as u64, KvCacheEvent { event_id, dp_rank: 0, data })
}

pub fn hashes(query: &[u64]) -> Vec<LocalBlockHash> {
    query.iter().copied().map(LocalBlockHash).collect()
}
