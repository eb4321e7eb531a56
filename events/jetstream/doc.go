// Package jetstream shares what ingesters hear of engines with every replica, through a durable log in NATS JetStream.
//
// An ingester listens to engines and publishes their messages as they came. A replica follows the log and keeps an index
// of everything in it, so it answers alone, and whatever happens to ingesters and to other replicas.
//
// # Data in and out
//
//	in:  calls of an events.Sink (a stream, a poller, pushes) -> Publisher -> log
//	out: log -> Follower -> calls of the events.Sink that a Target has for each source
//	in and out: Cursor and Bookmark, by which a Follower goes on from a snapshot; Life, by which an ingester does
//
// The log is one stream of JetStream, bounded in size and age, the oldest records going first. Workers are described on the
// subject PREFIX.worker.ID, sources told on PREFIX.source.ID.RANK, where ID is the worker's id in unpadded base64url and
// PREFIX the stream's name in lower case. A record is binary, big-endian:
//
//	byte  0      version of this form, 1
//	byte  1      kind: 1 message, 2 state, 3 reset, 4 closed, 5 worker, 6 worker gone
//	byte  2      flags: 1 has a sequence number, 2 history is complete, 4 the link is known
//	byte  3      state (kind 2), by the numbers of events.State
//	bytes 4-11   ingester, a random number of its process
//	bytes 12-19  epoch: which life of the engine, 0 for none yet
//	bytes 20-27  sequence number: of the message; of the last one heard (kind 2)
//	bytes 28-35  link: xxhash of the payload before (kind 1)
//	bytes 36-43  time in Unix nanoseconds: received (kind 1), else written
//	then         payload (1), the error behind the state (2), JSON of a Member (5)
//
// # Invariants
//
//  1. Rule 8: two ingesters of one engine do not count double. The epoch of a life whose first message an ingester heard is
//     made of that message, so all of them make the same; with the sequence number it is the Nats-Msg-Id, by which the
//     server refuses a repeat for a while, and a Follower for ever. An ingester that joined late has an epoch of its own,
//     which a Follower takes for another name of the life at hand once a link or a payload shows that it is.
//  2. Rule 8: the records of one ingester about one source are stored in order: the next is sent when the one before is
//     stored, however often it takes.
//  3. Rule 11: a message that continues nothing is a Gap, and a life not heard of before a Reset. What the ingester says it
//     heard last shows a hole without a message behind it. A life that ended is not believed again, unless the one after it
//     has been silent for Options.Lease.
//  4. Rule 13: while a Follower is behind, its sources are told as replaying; while records went from the log before they
//     were read, until a source's next record shows that none of its own was among them.
//  5. Rule 12: a source that no ingester has told anything of for Options.StaleAfter is stale, and so is every source when
//     the log cannot be reached for as long.
//  6. Rule 17: what waits to be stored is bounded for each source. What does not fit, or is larger than the server takes, is
//     dropped, counted, and shows as a hole.
//  7. Rules 8 and 11: who goes on from a Cursor is told each record behind a source's Bookmark, once, and none up to it. A
//     sink that was restored is Proven when the log is the cursor's and has every record since, or else when the source's
//     next one continues it.
//  8. Credentials come from files and stand in no error, log or statistic. Nor does anything of a payload.
//
// # Concurrency
//
// A Publisher has one goroutine for each of its sources and one for its workers, ended by Close. A Follower calls its
// Target and all sinks from the goroutine of Run. Log, Publisher and Follower may be used by several goroutines.
//
// # What it is not
//
// It decodes no payload, and it elects nobody: each replica comes to the same state because it reads the same log. The log
// is no archive: a replica that begins where it is trimmed knows of each source what came since, and says so.
package jetstream
