// Package stream keeps up with one source: it receives what the engine publishes, fetches what was missed, and tells a
// Sink what to apply, in order and exactly once.
//
// In: an events.Source (where the engine publishes and replays). Out: calls of an events.Sink, all from one goroutine.
// Payloads are not looked into.
//
// Invariants:
//
//  1. Rule 8: batches of one publisher life reach Apply in order, exactly once, whatever live stream and replay repeat.
//     Who decides is events.Tracker; see order.go for the two things that it cannot know.
//  2. Rule 11: every hole is asked for once; if it cannot be filled, Gap and Joined tell, and the stream goes on after
//     it. No hole is asked for twice, and after a failure the next question waits for a cool-down. While the history is
//     incomplete and no replay of everything that the publisher has, has ended since, one from 0 is due, unless the sink
//     keeps what it has at a Gap; a lost connection or another failure does not make that forgotten. So it is when the
//     answer for a hole does not know the live number that showed it: one of the two is wrong, and what came under that
//     number is not applied. A replay of everything that begins with 1, or had replies that could not be read, is asked
//     for a second time.
//  3. A new life of the publisher is told by Reset before anything of it is applied. It is seen by a number that falls
//     back, by another epoch, or after a lost connection by a replay that does not begin with the batch we had last.
//  4. Everything is bounded: messages not yet handled, messages held during a replay, the time and the number of
//     replays at once. What does not fit the held queue is dropped, oldest first, and becomes a hole (invariant 2).
//  5. Nothing is claimed complete unless the first batch is number 0, or a replay from 0 found nothing and the endpoint
//     was not seen to keep nothing: to answer so when the live stream had brought a batch.
//  6. A stream that was resumed behind a cursor tells "proven" only when the publisher has replayed the cursor's batch, or
//     sends the cursor's epoch. Until it shows anything the state is StateUnknown, and StateStale after StaleAfter.
//  7. When Run returns, no goroutine and no connection of the stream is left.
//
// Limits. Without a replay endpoint a restart during a lost connection cannot be seen if the next message carries just
// the number after the last one; any other number is a Reset or a Gap. So it is for a resumed stream, whose first
// connection is a lost one come back, and behind an endpoint that keeps nothing. The history of a publisher that counts
// from 1 is never called complete: every engine counts from 0, and a publisher that has lost its first batch looks the same.
// The tail of an answer that a ROUTER dropped at a high-water mark below longAnswer shows with the next batch only.
//
// State StateGap is kept until a Reset, or until a replay brings everything from the beginning: the loss is not undone
// by going on. A sink that drops its state at a Gap and then sees the engine clear its cache knows better than the stream.
// StateUnknown is told while connected and nothing was heard yet. After a connection was lost for StaleAfter the source
// stays StateStale until a replay or a message of the publisher shows what became of it.
//
// A bound endpoint takes connections from anyone that Options.Peers lets in. While only a peer is connected that has not
// spoken, a source that was heard before is connecting, and stale StaleAfter its publisher was last known to be there; a
// batch or an answer to a replay shows that it is. So a stranger keeps no dead engine from being called stale.
//
// Concurrency: New may be called from anywhere, Run once. Several streams share one listener when their endpoints are
// to be bound and name the same port; the longest matching topic decides whose a message is.
//
// It is not a subscriber for several sources, keeps no history, and does not decode.
package stream
