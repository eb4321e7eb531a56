// Package turn lets a bounded number of calls work at once, and the others wait for their turn, in order and not for long.
//
//	in:  calls that are about to work for a while without waiting for anybody (Enter), and that have done so (Leave)
//	out: a turn, or ErrCrowded; and beforehand, whether a call that came now would be refused (Crowded)
//
// What is short when a server is asked for too much is processors, and Go's scheduler does not tell who waits for one: a request
// lies in its socket, or its goroutine among all that could run. So who got a turn steps back now and then behind whatever is ready
// to run, with the turn in hand. The others get here meanwhile, and wait where they are seen.
//
// Invariants:
//
//  1. Turns are given in the order in which calls came.
//  2. A call that has waited for MaxWait is refused when a turn is given, and one that comes while another has waited so long is
//     refused at once. But a few may wait however long they do: if each takes that long there are not too many of them. So
//     whoever gets a turn has waited for MaxWait and the work of a few others at most.
//  3. At most MaxWaiting wait.
//  4. A call whose context ends waits no longer.
//  5. Where nobody waits a turn costs two locks that nobody holds for long, and every eighth a step back.
//
// Concurrency: a Queue is safe for concurrent use and starts no goroutine.
//
// It is no bound of calls that wait for something else, such as a slow sender or a renderer: they have no turn then.
package turn
