// Command kvscout tells which inference workers hold how much of a prompt in their KV cache.
//
// In: flags, environment, a YAML file, recordings, and a running server's API. Out: tables or JSON on standard output;
// logs, progress and errors on standard error; an exit code.
//
// Invariants:
//
//  1. A setting comes from its flag, else from its KVSCOUT_ variable, else from the file of --config, else it is the
//     default that --help shows. Whatever is given and not understood stops the start (cases 115, 149, 150); a variable
//     that no command knows may be somebody else's, so serve logs its name.
//  2. Exit codes: 0 done, 1 failed (or an answer was wrong, or an input was incomplete), 2 called wrongly.
//  3. With --json standard output holds JSON and nothing else.
//  4. Salts, tokens and bodies appear in no error and no log (case 119).
//  5. Files that are read are bounded before they are held in memory; recordings are streamed.
//  6. The first SIGINT or SIGTERM ends a command cleanly, the second at once.
//
// Concurrency: each command runs in the goroutine of main; those that start others wait for them before they return.
//
// It holds no logic of its own about caches: packages events, indexer, scorer and render have it, here it is put
// together.
package main
