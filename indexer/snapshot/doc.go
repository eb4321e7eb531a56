// Package snapshot keeps what an index holds in a file, so that a service that starts again goes on where it ended.
//
// In and out: indexer.Saved values, one for each stream, and one opaque text (the fleet's). Write makes a file of them;
// Open proves a file whole before anything is taken from it.
//
// # The file
//
// Little-endian throughout. A header of 40 bytes: magic "kvscsnap", byte order mark 0x01020304 and version as uint32, time
// of creation in Unix nanoseconds, fingerprint and xxhash64 of the 32 bytes before. Then sections: kind and a zero as
// uint32, length of the content as uint64, content, xxhash64 of all of these. The first section is the fleet's text; one
// for each stream follows; the last is the end, whose content is the number of sections before it and the xxhash64 of the
// file up to the end's beginning. Nothing follows the end.
//
// The content of a stream's section is JSON with what is small (meta.go) and then, for each book, the same again and arrays:
// keys and hashes are eight bytes each and lie in runs, so a held block takes 16 bytes and a little.
//
// # Invariants
//
//  1. A file that is not whole, or was changed, is refused with ErrDamaged; one of another version, byte order or of other
//     options with ErrVersion. Neither gives up any part of its content.
//  2. What a file claims is checked against what there is of it before anything is allocated for it.
//  3. The file under its name is always whole: it is written under another one, synced, and renamed.
//
// A File is read by one goroutine at a time; so is a Writer used.
//
// The file has the prompts' salts, which are secrets, as part of the scopes. It has no tokens. Write makes it readable by
// its owner only.
//
// It is no archive: another version of this program may refuse it. Package recording keeps event streams.
package snapshot
