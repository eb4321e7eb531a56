//! The pinned workload, as in indexer/workload/pinned.go. With rolling keys everything but the keys is the same.

use crate::op::{Block, Op, rolling};
use crate::rng::Rng;

pub const HOLDERS: usize = 256;
const TARGET: usize = 10_000_000;
const MIXES: [(usize, usize); 3] = [(1, 50), (8, 35), (64, 15)];

pub struct Cell {
    pub name: &'static str,
    pub queries: Vec<Vec<u64>>,
    pub depth_sum: u64,
    pub matched: u64,
}

pub struct Pinned {
    pub ops: Vec<Op>,
    pub stream: usize,
    pub resident: usize,
    pub mixed: Vec<Vec<u64>>,
    pub cells: Vec<Cell>,
}

struct Family {
    blocks: Vec<Block>,
    members: Vec<u32>,
}

pub fn make(rolled: bool) -> Pinned {
    let mut r = Rng(20260901);
    let families = families(&mut r, rolled);
    let mut scripts: Vec<Vec<Op>> = vec![vec![]; HOLDERS];
    let mut resident = 0;
    for f in &families {
        for &holder in &f.members {
            resident += script(&mut r, f, holder, rolled, &mut scripts[holder as usize]);
        }
    }
    let ops = interleave(&mut r, scripts);
    let stream = ops.iter().map(Op::blocks).sum();
    assert_eq!((families.len(), ops.len(), stream, resident), (44_969, 1_777_433, 13_498_103, 12_821_592));
    Pinned { ops, stream, resident, mixed: mixed(&families), cells: cells(&mut r, &families) }
}

fn families(r: &mut Rng, rolled: bool) -> Vec<Family> {
    let mut out = Vec::new();
    let mut forced = false;
    for (holders, percent) in MIXES {
        let mut used = 0;
        while used < TARGET * percent / 100 {
            let n = if holders == 64 && !forced {
                forced = true;
                96
            } else {
                r.log_uniform(8.0, 512.0)
            };
            let mut blocks: Vec<Block> = Vec::with_capacity(n);
            for _ in 0..n {
                let content = r.next() | 1;
                let key = match blocks.last().map(|b| b.0) {
                    parent if rolled => rolling(parent, content),
                    None => content,
                    Some(p) => (p ^ content.rotate_left(17)).wrapping_mul(0x2545F4914F6CDD1D) | 1,
                };
                blocks.push((key, content));
            }
            let base = r.below(HOLDERS);
            let mut members: Vec<u32> = (0..holders).map(|k| ((base + 7 * k) % HOLDERS) as u32).collect();
            members.sort_unstable();
            used += n * holders;
            out.push(Family { blocks, members });
        }
    }
    out
}

/// Appends what one member of a family does and returns how many blocks it has in the end.
fn script(r: &mut Rng, f: &Family, holder: u32, rolled: bool, out: &mut Vec<Op>) -> usize {
    let mut ops = Vec::new();
    let mut parent = None;
    stores(&mut ops, holder, &mut parent, &f.blocks);
    let n = 4 + (r.next() % 61) as usize;
    let mut tail = Vec::with_capacity(n);
    let mut key = parent.unwrap();
    for _ in 0..n {
        let content = r.next() | 1;
        key = if rolled {
            rolling(Some(key), content)
        } else {
            (key ^ content.rotate_left(29)).wrapping_mul(0x9E3779B97F4A7C15).wrapping_add(holder as u64) | 1
        };
        tail.push((key, content));
    }
    stores(&mut ops, holder, &mut parent, &tail);
    let again: Vec<Op> = ops.iter().filter(|_| r.chance(5)).cloned().collect();
    ops.extend(again);
    let mut resident = f.blocks.len() + n;
    if f.blocks.len() > 2 && r.chance(20) {
        let hole = 1 + r.below(f.blocks.len() - 2);
        ops.push(Op::Remove { holder, keys: vec![f.blocks[hole].0] });
        resident -= 1;
    }
    out.extend(ops);
    resident
}

fn stores(ops: &mut Vec<Op>, holder: u32, parent: &mut Option<u64>, blocks: &[Block]) {
    for part in blocks.chunks(8) {
        ops.push(Op::Store { holder, parent: *parent, blocks: part.to_vec() });
        *parent = part.last().map(|b| b.0);
    }
}

fn interleave(r: &mut Rng, scripts: Vec<Vec<Op>>) -> Vec<Op> {
    let mut live: Vec<_> = scripts.into_iter().filter(|s| !s.is_empty()).map(|s| s.into_iter().peekable()).collect();
    let mut out = Vec::new();
    while !live.is_empty() {
        let i = r.below(live.len());
        out.extend(live[i].next());
        if live[i].peek().is_none() {
            drop(live.swap_remove(i));
        }
    }
    out
}

fn contents(f: &Family, n: usize) -> Vec<u64> {
    f.blocks[..n].iter().map(|b| b.1).collect()
}

fn mixed(families: &[Family]) -> Vec<Vec<u64>> {
    let wide = families.iter().filter(|f| f.members.len() == 64 && f.blocks.len() >= 78);
    let mut out: Vec<_> = wide.take(32).map(|f| contents(f, 78)).collect();
    let single = families.iter().filter(|f| f.members.len() == 1);
    let rest = 64 - out.len();
    out.extend(single.take(rest).map(|f| contents(f, f.blocks.len().min(64))));
    out
}

fn cells(r: &mut Rng, families: &[Family]) -> Vec<Cell> {
    let mut out = Vec::new();
    for (name, holders, depth_sum, matched) in
        [("h1", 1, 108_979, 2_000), ("h8", 8, 951_637, 16_000), ("h64", 64, 695_512, 12_736)]
    {
        let mine = families.iter().filter(|f| f.members.len() == holders).take(2000);
        let queries = mine.map(|f| contents(f, 1 + r.below(f.blocks.len()))).collect();
        out.push(Cell { name, queries, depth_sum, matched });
    }
    let gate = families.iter().filter(|f| f.members.len() == 64 && f.blocks.len() >= 78);
    let queries = gate.map(|f| contents(f, 78)).collect();
    out.push(Cell { name: "gate", queries, depth_sum: 424_506, matched: 5_696 });
    let queries = (0..1000).map(|_| (0..1 + r.below(96)).map(|_| r.next() | 1).collect()).collect();
    out.push(Cell { name: "miss", queries, depth_sum: 0, matched: 0 });
    out
}
