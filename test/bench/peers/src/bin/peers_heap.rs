use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// Counts the bytes that malloc has really given out, with the 8 that precede each block.
struct Counting;

static LIVE: AtomicI64 = AtomicI64::new(0);

fn size(p: *mut u8) -> i64 {
    // Safety: p came from malloc, behind System.
    unsafe { libc::malloc_usable_size(p.cast()) as i64 + 8 }
}

unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, l: Layout) -> *mut u8 {
        let p = unsafe { System.alloc(l) };
        if !p.is_null() {
            LIVE.fetch_add(size(p), Relaxed);
        }
        p
    }

    unsafe fn dealloc(&self, p: *mut u8, l: Layout) {
        LIVE.fetch_sub(size(p), Relaxed);
        unsafe { System.dealloc(p, l) }
    }

    unsafe fn realloc(&self, p: *mut u8, l: Layout, n: usize) -> *mut u8 {
        let before = size(p);
        let q = unsafe { System.realloc(p, l, n) };
        if !q.is_null() {
            LIVE.fetch_add(size(q) - before, Relaxed);
        }
        q
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() -> std::process::ExitCode {
    peers::main(Some(|| LIVE.load(Relaxed)))
}
