package model

import (
	"slices"
	"time"

	"github.com/kvscout/kvscout/events"
)

// shrink makes a script that fails smaller and smaller while it still fails: fewer operations, then fewer questions,
// events and hashes. It gives up after about the time given.
func shrink(s script, fails func(*script) bool, limit time.Duration) script {
	end := time.Now().Add(limit)
	try := func(change func(*script)) bool {
		if time.Now().After(end) {
			return false
		}
		smaller := s
		smaller.Ops = slices.Clone(s.Ops)
		change(&smaller)
		if !fails(&smaller) {
			return false
		}
		s = smaller
		return true
	}
	reduce(s.Ops, func(ops []op) bool { return try(func(s *script) { s.Ops = ops }) })
	try(func(s *script) { // the last question alone will often do
		for i := range len(s.Ops) - 1 {
			s.Ops[i].Asks = nil
		}
	})
	for i := range s.Ops {
		reduce(s.Ops[i].Asks, func(asks []ask) bool { return try(func(s *script) { s.Ops[i].Asks = asks }) })
		reduce(s.Ops[i].Batch.Events, func(list []events.Event) bool {
			return try(func(s *script) { s.Ops[i].Batch.Events = list })
		})
		for k, e := range s.Ops[i].Batch.Events {
			if len(e.Tokens) > 0 { // a store's hashes belong to its tokens
				continue
			}
			reduce(e.Hashes, func(hashes []events.Hash) bool {
				return try(func(s *script) {
					list := slices.Clone(s.Ops[i].Batch.Events)
					list[k].Hashes = hashes
					s.Ops[i].Batch.Events = list
				})
			})
		}
	}
	reduce(s.Ops, func(ops []op) bool { return try(func(s *script) { s.Ops = ops }) })
	return s
}

// reduce takes parts out of a list, halves first and single elements in the end, as long as keep accepts what is left
// (delta debugging).
func reduce[T any](list []T, keep func([]T) bool) {
	for size := (len(list) + 1) / 2; size > 0; {
		shorter := false
		for at := 0; at < len(list); {
			left := slices.Concat(list[:at], list[min(len(list), at+size):])
			if keep(left) {
				list, shorter = left, true
			} else {
				at += size
			}
		}
		if size == 1 && !shorter {
			return
		}
		if size > 1 {
			size /= 2
		}
	}
}
