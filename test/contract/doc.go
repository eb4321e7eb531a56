// Package contract holds every RPC against what its proto says, asked by clients that are not ours, over every protocol.
//
// A speaker is such a client with a protocol: curl with Connect JSON, Connect proto, Connect GET and gRPC-Web, Python's
// grpcio with gRPC, and with the build tag contract `buf curl` with all three and the fetch of a browser with Connect and
// gRPC-Web. Each walks the same cases against a running `kvscout serve`: an answer that is checked, and a refusal whose
// code and reason must be readable.
//
// The descriptors that the server tells by reflection are walked too: an RPC without a case fails.
package contract
