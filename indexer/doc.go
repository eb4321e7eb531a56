// Package indexer knows which source holds which prefix of a prompt, and answers how much of a prompt each of them
// holds and will reuse.
//
// # Data in and out
//
//	in:  payloads of a stream   -> Writer (an events.Sink) -> Ledger
//	     decoded events.Batch   -> Ledger.Apply
//	     what another process saved of a stream -> Writer.Restore
//	     resets, gaps, silence  -> Ledger.Reset, Gap, Joined
//	out: Query (tokens or keys) -> Index.Lookup -> one Match for every source of the model
//	     the same into memory that is used again -> Reader.Lookup; only who holds it, and how far -> Reader.Holders
//	     all of a stream, to be restored -> Writer.Export
//	     counts                 -> Index.Stats, Ledger.Stats; who holds what -> Index.Holdings, Ledger.Scopes
//
// A Ledger is the book of one source: what its engine hashes mean, and how many copies of each block it stored into
// which tier of which group. The tree, one for all sources of a model, hears only when a block's set of tiers and groups
// changes.
//
// # Structure
//
// An index has up to 16 stripes (stripe.go), and a model lies in one of them by its name: its scopes, the tree of those,
// and the books of its sources. What is common to all is who is open.
//
// The tree is made of chains (chain.go): runs of block keys, stored once however many sources hold them. Chains never
// split; where prompts part, a child hangs off (chain, position). Each tier of each group of a source is a lane, and a
// member of a chain is one word: a lane, and how many leading blocks of the chain it has. So a source with one group on
// one tier is answered by the smaller of that and what matched, whatever the depth. What a lane holds behind a hole is
// kept apart (islands) and read for those sources only whose groups or tiers ask for it. Sources whose hashes tell the
// namespace have one lane and, for each block, a list by hash. The numbered invariants are at type chains.
//
// Keys and members lie in arenas (arena.go): no pointer, one contiguous run for each chain, used again when no reader is
// left that could look at it (epoch.go). A scope is a chain without keys, so thousands of scopes cost little.
//
// Of most blocks a book says nothing that is not in the tree (simple.go): the tree has who holds them, and a dictionary
// for all sources what their engine hashes mean (dict.go). Sources that give a block the same hash share its entry; one
// that does not has a space of its own (own.go). Whatever else is to be said of a block (digests, several scopes under
// one hash, copies in several tiers) makes it odd, and it is in a map. Stores and removals of simple blocks are applied
// as runs (quick.go, remove.go), all others one by one (store.go).
//
// Options.Plain puts a plain trie in the place of all that (trie.go): the reference that tests compare with.
//
// # Invariants
//
// Numbers are those of the design's rules. Each has tests that name it.
//
//  1. A match is the longest run of full blocks from token 0. What lies behind a hole keeps its place and counts
//     again when the hole is filled. Nothing but a walk from the root finds a block. Masks are read with the group
//     table they were written under: a source that is cleared while a lookup runs answers as after the clear.
//  2. A block's identity is its key (recomputed from tokens and content) and its place in the tree. Engine hashes are
//     handles inside one Ledger. The first meaning of a hash stays until nothing is held under it.
//  3. Nothing matches across scopes: model, block size, salt, adapter, pair keys. Images are part of the key. What fits
//     two namespaces credits neither; a store whose namespace cannot be told is refused.
//  4. Each block size is a scope of its own; a request is keyed once for each size in use.
//  5. A block in two tiers is two residencies. Tiers are cumulated, never added. Unknown media never score.
//  6. Reusable is the largest length that every group accepts. Dense stores tell identities ahead of the sparse stores
//     of the same batch; a block known by such a hint only is gone when the batch ends.
//  7. The last token of a prompt is always computed; with EAGLE vLLM gives up one block more.
//  8. A source's events apply in order. Copies are counted by scope, hash, tier and group. Blocks and scopes exist as
//     long as something is held in them or waits for them in the same batch: a book does not grow with history.
//  9. A store whose parent is not known waits. When the parent comes it and those that wait for it apply; copies that
//     were removed meanwhile do not, but still give those behind them their place.
//  10. One bad event, or one unknown hash of an event, costs itself and is counted by its reason.
//  11. A reset and, by default, a gap drop what was held. A gap that is kept is flagged until the next clear. So is what was
//     restored, unless the engine is proven to be the same.
//  12. A closed source is in no answer, and nothing still under way brings it back. A silent one is flagged.
//  13. Every Match carries its freshness and whether it is exact, a bound or an estimate, with reasons. It never claims more
//     than its blocks show, whatever changes while they are read. A batch is applied before its number is published, so the
//     freshness is read before the blocks: each batch up to its number is among them. A doubt is raised before what it is about
//     changes and lifted after that is mended, and a state is told to be live when what was missing is applied, so the doubts
//     that count are those from before the blocks were read and those from after.
//  16. Lookup takes no lock that a writer holds.
//  17. Waiting stores are bounded in blocks and in bytes; groups and ranks of a source are bounded in number. Memory follows
//     what is held: slabs of which nothing is in use go (slabs.go, arena.go), and hashes that lie thin are moved together
//     (compact.go). Options.MaxBytes bounds all of it: what was stored longest ago is forgotten, counted, and its holders
//     are in doubt until their next clear (cap.go).
//
// # Concurrency
//
// Writers of models in one stripe are serialised by stripe.mu, which guards the books of their Ledgers and the writers'
// side of tree and scopes; writers of models in different stripes run side by side. Index.mu guards who is open, and is
// held for as long as that takes to change. The order is Writer.mu, stripe.mu, Index.mu; nobody takes two stripes. Each
// Ledger is written by one goroutine at a time, in the order of its stream; different ones may be written by different
// goroutines. Close may come from any goroutine.
//
// Lookups run beside all this and wait for nobody. Each is in one stripe, whose epochs know its Reader since it was first
// there. They read published values only: the lists of scopes and sources, the table of edges, keys and members of
// chains, islands, a source's group table, its doubts and freshness. Each is replaced as a whole and never changed, but
// for words of members that change in place and lists that grow behind what is counted. What a position of a chain contains never changes while the chain lives, and ids of chains and their memory
// are used again only when no reader is left that entered before they were given up. A reader calls nothing that could
// block between entering and leaving, so that is soon; what waits for it is counted. A lane is used again too, which
// whoever read it before finds out by stripe.clears. A lookup is not a snapshot: changes made while it walks may show in
// one block and not in another, but it credits no block that the source did not hold at some moment of the walk.
//
// # What it is not
//
// It is no server and needs none: see the example, and docs/embedding.md. It does not choose: scores are package scorer's.
// It talks to no engine: package events does. It stores no tokens, so it cannot say what a block contains. It keeps nothing
// across restarts by itself: package snapshot does, by Export and Restore.
package indexer
