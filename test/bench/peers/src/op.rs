use dynamo_kv_router::protocols::{LocalBlockHash, compute_next_seq_hash};

/// A block as its holder announces it: its key, then its content. smg-radix-tree takes it as it is.
pub type Block = (u64, u64);

/// One change of what one holder has.
#[derive(Clone)]
pub enum Op {
    Store { holder: u32, parent: Option<u64>, blocks: Vec<Block> },
    Remove { holder: u32, keys: Vec<u64> },
}

impl Op {
    pub fn blocks(&self) -> usize {
        match self {
            Op::Store { blocks, .. } => blocks.len(),
            Op::Remove { keys, .. } => keys.len(),
        }
    }
}

/// Dynamo's key of a block: the rolling hash that its events carry.
pub fn rolling(parent: Option<u64>, content: u64) -> u64 {
    match parent {
        None => content,
        Some(p) => compute_next_seq_hash(p, LocalBlockHash(content)),
    }
}
