// Package dashboard shows people what a server tells of itself, live in a terminal: `kvscout top`.
//
//	StreamStats -> Feed -> sample (rates since the one before) -> Model -> View: one frame of text
//
// In: a stream of kvscout.v1.Stats, key presses, sizes of the terminal. Out: frames, each exactly as large as the terminal.
//
// Invariants:
//
//  1. A frame has as many lines as the terminal and none is wider, at every size and whatever the server sends.
//  2. Texts of the server (ids, models, labels, faults) are untrusted: of them nothing but printable characters is shown.
//  3. Nothing is told by colour alone: each state is a word.
//  4. When the server goes away the last numbers stay, and every frame says how old they are and why.
//  5. Rates are over the time that passed at the server between two answers; where there is none they are "-", never 0.
//  6. What is kept is bounded: two samples and a short history, whatever the stream's age.
//
// Concurrency: a Model is a value that only the program's loop touches. Run starts the goroutines and waits for them.
//
// It is not a monitoring system: it keeps no history beyond the screen's. That is what the metrics are for.
package dashboard
