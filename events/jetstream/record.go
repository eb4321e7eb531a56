package jetstream

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/kvscout/kvscout/events"
)

// ErrRecord is a record of the log that cannot be read.
var ErrRecord = errors.New("bad record")

// kind says what a record tells.
type kind uint8

const (
	// kindMessage is a payload of a source.
	kindMessage kind = iota + 1
	// kindState is the state of a source, and by its sequence number how far its ingester has heard it.
	kindState
	// kindReset says that the engine started again, before any message of its new life.
	kindReset
	// kindClosed says that the ingester no longer listens to the source.
	kindClosed
	// kindWorker describes a worker, kindGone takes it out.
	kindWorker
	kindGone
)

const (
	flagSeq uint8 = 1 << iota
	flagComplete
	flagLinked
)

const (
	formVersion = 1
	headBytes   = 44
)

// record is one entry of the log.
type record struct {
	kind     kind
	state    events.State
	ingester uint64
	epoch    uint64
	seq      uint64
	hasSeq   bool
	complete bool
	link     uint64
	linked   bool
	time     time.Time
	body     []byte
}

// append writes r behind buf.
func (r *record) append(buf []byte) []byte {
	var flags uint8
	for flag, set := range map[uint8]bool{flagSeq: r.hasSeq, flagComplete: r.complete, flagLinked: r.linked} {
		if set {
			flags |= flag
		}
	}
	buf = append(buf, formVersion, byte(r.kind), flags, byte(r.state))
	for _, v := range [...]uint64{r.ingester, r.epoch, r.seq, r.link, uint64(r.time.UnixNano())} {
		buf = binary.BigEndian.AppendUint64(buf, v)
	}
	return append(buf, r.body...)
}

// parseRecord reads a record, whose body aliases data. It errs with ErrRecord.
func parseRecord(data []byte) (record, error) {
	switch {
	case len(data) < headBytes:
		return record{}, fmt.Errorf("%w: %d bytes", ErrRecord, len(data))
	case data[0] != formVersion:
		return record{}, fmt.Errorf("%w: version %d, want %d", ErrRecord, data[0], formVersion)
	case kind(data[1]) < kindMessage || kind(data[1]) > kindGone:
		return record{}, fmt.Errorf("%w: kind %d", ErrRecord, data[1])
	case events.State(data[3]) > events.StateStale:
		return record{}, fmt.Errorf("%w: state %d", ErrRecord, data[3])
	}
	word := func(i int) uint64 { return binary.BigEndian.Uint64(data[4+8*i:]) }
	flags := data[2]
	return record{
		kind: kind(data[1]), state: events.State(data[3]),
		hasSeq: flags&flagSeq != 0, complete: flags&flagComplete != 0, linked: flags&flagLinked != 0,
		ingester: word(0), epoch: word(1), seq: word(2), link: word(3), time: time.Unix(0, int64(word(4))),
		body: data[headBytes:],
	}, nil
}

// maxWorkerBytes bounds the id of a worker, so that its subject stays within what servers take.
const maxWorkerBytes = 1024

// sourceSubject and workerSubject are where records of a source and of a worker are stored.
func sourceSubject(prefix, worker string, rank int) string {
	return prefix + ".source." + base64.RawURLEncoding.EncodeToString([]byte(worker)) + "." + strconv.Itoa(rank)
}

func workerSubject(prefix, worker string) string {
	return prefix + ".worker." + base64.RawURLEncoding.EncodeToString([]byte(worker))
}

// place is what a subject names: a source, or a worker when rank is -1.
type place struct {
	worker string
	rank   int
}

// parseSubject is the inverse of sourceSubject and workerSubject. It errs with ErrRecord.
func parseSubject(prefix, subject string) (place, error) {
	bad := func() (place, error) { return place{}, fmt.Errorf("%w: subject %.200q", ErrRecord, subject) }
	rest, ok := strings.CutPrefix(subject, prefix+".")
	if !ok {
		return bad()
	}
	parts := strings.Split(rest, ".")
	p := place{rank: -1}
	switch {
	case len(parts) == 2 && parts[0] == "worker":
	case len(parts) == 3 && parts[0] == "source":
		rank, err := strconv.Atoi(parts[2])
		if err != nil || rank < 0 {
			return bad()
		}
		p.rank = rank
	default:
		return bad()
	}
	id, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || len(id) == 0 || len(id) > maxWorkerBytes {
		return bad()
	}
	p.worker = string(id)
	return p, nil
}
