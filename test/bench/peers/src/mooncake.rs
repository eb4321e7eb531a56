//! The mooncake workload, as in indexer/workload/mooncake.go.

use std::collections::{BTreeSet, HashMap};

use crate::op::{Op, rolling};
use crate::rng::splitmix;

pub const WORKERS: usize = 16;

pub struct Mooncake {
    pub requests: Vec<(Vec<u64>, Vec<Op>)>,
    pub blocks: usize, // stored and removed
    pub resident: usize,
    pub checksum: u64,
    pub final_checksum: u64,
}

/// One worker's cache: blocks by id with parent, children and last use, and its leaves, oldest first.
#[derive(Default)]
struct Pool {
    blocks: HashMap<u64, (Option<u64>, u32, usize)>,
    leaves: BTreeSet<(usize, u64)>,
}

impl Pool {
    fn prefix(&self, chain: &[u64]) -> usize {
        chain.iter().take_while(|id| self.blocks.contains_key(id)).count()
    }

    fn serve(&mut self, chain: &[u64], tick: usize) -> usize {
        let had = self.prefix(chain);
        let mut parent = None;
        for &id in chain {
            if let Some(b) = self.blocks.get_mut(&id) {
                let (_, kids, old) = *b;
                b.2 = tick;
                if kids == 0 {
                    self.leaves.remove(&(old, id));
                    self.leaves.insert((tick, id));
                }
            } else {
                if let Some(p) = parent {
                    let above = self.blocks.get_mut(&p).unwrap();
                    above.1 += 1;
                    self.leaves.remove(&(above.2, p));
                }
                self.blocks.insert(id, (parent, 0, tick));
                self.leaves.insert((tick, id));
            }
            parent = Some(id);
        }
        had
    }

    fn evict(&mut self, capacity: usize) -> Vec<u64> {
        let mut out = vec![];
        while self.blocks.len() > capacity {
            let (_, id) = self.leaves.pop_first().unwrap();
            let (parent, _, _) = self.blocks.remove(&id).unwrap();
            out.push(id);
            if let Some(p) = parent {
                let above = self.blocks.get_mut(&p).unwrap();
                above.1 -= 1;
                if above.1 == 0 {
                    self.leaves.insert((above.2, p));
                }
            }
        }
        out
    }
}

pub fn make(trace: &str, capacity: usize, copies: u64, rolled: bool) -> Mooncake {
    let base: Vec<Vec<u64>> = trace.lines().map(chain).collect();
    let ids = base.iter().flatten().max().expect("a trace with blocks") + 1;
    let chains: Vec<Vec<u64>> =
        (0..copies).flat_map(|c| base.iter().map(move |b| b.iter().map(|id| id + c * ids).collect())).collect();
    let content = |id: u64| splitmix(id) | 1;
    let mut keys: HashMap<u64, u64> = HashMap::new();
    for c in &chains {
        let mut parent = None;
        for &id in c {
            let key = *keys.entry(id).or_insert_with(|| {
                if rolled { rolling(parent, content(id)) } else { splitmix(id ^ 0xA5A5A5A5A5A5A5A5) | 1 }
            });
            parent = Some(key);
        }
    }
    let mut pools: Vec<Pool> = (0..WORKERS).map(|_| Pool::default()).collect();
    let depths = |pools: &[Pool], c: &[u64]| pools.iter().map(|p| p.prefix(c) as u64).sum::<u64>();
    let mut out = Mooncake { requests: vec![], blocks: 0, resident: 0, checksum: 0, final_checksum: 0 };
    for (tick, c) in chains.iter().enumerate() {
        out.checksum += depths(&pools, c);
        let w = tick % WORKERS;
        let had = pools[w].serve(c, tick);
        let gone = pools[w].evict(capacity);
        let mut ops = vec![];
        if had < c.len() {
            let blocks = c[had..].iter().map(|id| (keys[id], content(*id))).collect();
            let parent = (had > 0).then(|| keys[&c[had - 1]]);
            ops.push(Op::Store { holder: w as u32, parent, blocks });
        }
        if !gone.is_empty() {
            ops.push(Op::Remove { holder: w as u32, keys: gone.iter().map(|id| keys[id]).collect() });
        }
        out.blocks += ops.iter().map(Op::blocks).sum::<usize>();
        out.requests.push((c.iter().map(|id| content(*id)).collect(), ops));
    }
    out.resident = pools.iter().map(|p| p.blocks.len()).sum();
    out.final_checksum = chains.iter().map(|c| depths(&pools, c)).sum();
    out
}

fn chain(line: &str) -> Vec<u64> {
    let v: serde_json::Value = serde_json::from_str(line).expect("a JSON line");
    let ids = v["hash_ids"].as_array().expect("hash_ids");
    ids.iter().map(|id| id.as_u64().expect("an id")).collect()
}
