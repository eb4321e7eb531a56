// Package e2e proves kvscout from outside: it builds the binary, runs `kvscout serve` as a process, feeds it from real
// pyzmq publishers that encode with msgspec as the engines do, and asks it by curl, by net/http, by grpc-go, by Python's
// grpcio and by its own command line. It has tests only.
//
// In: the repository, a Go toolchain, Python with the packages of test/requirements.txt (KVSCOUT_PYTHON, else .venv at the
// root of the repository), /usr/bin/curl. Out: test results.
//
// Rules of the package:
//
//  1. Expected numbers come from the other side: the engine's own cached tokens, a recording, the event schema.
//  2. Nothing waits for a fixed time; every wait polls for a condition and has a deadline far above what it needs.
//  3. A test starts its own processes, on ports it chose itself, and kills them at its end. What a process wrote to
//     standard error is shown when the test fails.
//  4. Publishers use PUB, as engines do, which drops what is sent before a subscriber is known. So a test first calls hello:
//     it sends messages of a single frame, which change nothing, until the server has counted one.
//
// It is not a benchmark and knows nothing of the packages inside, but for the reader of recordings.
package e2e
