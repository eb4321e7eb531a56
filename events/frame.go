package events

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrFrames is a message whose frames are not topic, sequence and payload.
var ErrFrames = errors.New("not an event message")

// ErrSequence is a message whose sequence frame is shorter than 8 bytes.
var ErrSequence = errors.New("bad sequence frame")

// EndSequence is the sequence number that ends a replay.
const EndSequence = ^uint64(0)

// Message is one published batch before it is decoded. Its slices alias the frames it was made from.
type Message struct {
	Topic []byte
	// Seq counts the batches of one publisher process, from 0 (vLLM, SGLang) or 1 (others).
	Seq uint64
	// Epoch is what follows the first 8 bytes of the sequence frame: an id of the publisher process in proposals such
	// as vllm-project/vllm#57789, empty otherwise.
	Epoch   []byte
	Payload []byte
}

// ParseFrames reads a live message: topic (may be empty), sequence (8 bytes big-endian, more are an epoch), payload.
// It errs with ErrFrames or ErrSequence.
func ParseFrames(frames [][]byte) (Message, error) {
	if len(frames) != 3 {
		return Message{}, fmt.Errorf("%w: %d frames, want 3", ErrFrames, len(frames))
	}
	m := Message{Topic: frames[0], Payload: frames[2]}
	return m, m.sequence(frames[1])
}

// ParseReply reads one message that a DEALER socket got from a replay endpoint: an empty frame, then sequence and
// payload (vLLM 0.20, SGLang before 0.5.22) or topic, sequence and payload. end is true for the message that ends a
// replay. It errs with ErrFrames or ErrSequence.
func ParseReply(frames [][]byte) (m Message, end bool, err error) {
	if len(frames) > 0 && len(frames[0]) == 0 {
		frames = frames[1:] // exactly one: an empty topic makes the next frame empty too
	}
	switch len(frames) {
	case 2:
		m.Payload = frames[1]
		err = m.sequence(frames[0])
	case 3:
		m.Topic, m.Payload = frames[0], frames[2]
		err = m.sequence(frames[1])
	default:
		return Message{}, false, fmt.Errorf("%w: reply of %d frames", ErrFrames, len(frames))
	}
	return m, err == nil && m.Seq == EndSequence && len(m.Payload) == 0, err
}

func (m *Message) sequence(frame []byte) error {
	if len(frame) < 8 {
		return fmt.Errorf("%w: %d bytes, want 8", ErrSequence, len(frame))
	}
	m.Seq = binary.BigEndian.Uint64(frame)
	m.Epoch = frame[8:]
	return nil
}

// ReplayRequest is what a DEALER socket sends to ask for the batches from start on.
func ReplayRequest(start uint64) [][]byte {
	return [][]byte{nil, binary.BigEndian.AppendUint64(nil, start)}
}

// FrameReason is the counter for an error of ParseFrames or ParseReply.
func FrameReason(err error) Reason {
	if errors.Is(err, ErrSequence) {
		return ReasonBadSequence
	}
	return ReasonBadFrames
}
