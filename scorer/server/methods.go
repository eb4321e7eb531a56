package server

import (
	"iter"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/reflect/protoreflect"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
)

// methods are the procedures that log, metrics and traces tell apart.
func methods() []string {
	out := []string{
		healthpb.Health_Check_FullMethodName, healthpb.Health_Watch_FullMethodName, healthpb.Health_List_FullMethodName,
		"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
	}
	for path := range own() {
		out = append(out, path)
	}
	return out
}

// unaryMethods are the procedures that take one message and answer one.
func unaryMethods() []string {
	out := []string{healthpb.Health_Check_FullMethodName, healthpb.Health_List_FullMethodName}
	for path, method := range own() {
		if !method.IsStreamingClient() && !method.IsStreamingServer() {
			out = append(out, path)
		}
	}
	return out
}

// own are the methods of our services by procedure.
func own() iter.Seq2[string, protoreflect.MethodDescriptor] {
	return func(yield func(string, protoreflect.MethodDescriptor) bool) {
		for _, file := range []protoreflect.FileDescriptor{
			kvscoutv1.File_kvscout_v1_score_proto, kvscoutv1.File_kvscout_v1_index_proto, kvscoutv1.File_kvscout_v1_render_proto,
		} {
			for i := range file.Services().Len() {
				service := file.Services().Get(i)
				for j := range service.Methods().Len() {
					method := service.Methods().Get(j)
					if !yield("/"+string(service.FullName())+"/"+string(method.Name()), method) {
						return
					}
				}
			}
		}
	}
}
