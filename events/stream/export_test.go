package stream

// TrackerReach lets the tests compare the assumption with events.Tracker.
const TrackerReach = uint64(trackerReach)
