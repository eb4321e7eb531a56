package turn

// For each processor.
const (
	AtWork = atWork
	Few    = few
)

// Working is how many have a turn.
func (q *Queue) Working() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.working
}
