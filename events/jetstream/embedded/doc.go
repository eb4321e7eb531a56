// Package embedded runs a NATS server with JetStream in this process, for deployments that have none.
//
// In: a folder and an address. Out: a server that package jetstream connects to, and that other processes reach at its
// address. The folder holds the log, and with it prompts: it is made for its owner alone.
//
// It is one server: what it keeps is as safe as the disk below it. Where the log has to outlive a machine, run a NATS
// cluster and give its URL instead. Goroutines are the server's own and end with Close.
package embedded
