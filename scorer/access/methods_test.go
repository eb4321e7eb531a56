package access_test

import (
	"testing"

	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	reflectv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	reflectv1alpha "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	_ "github.com/kvscout/kvscout/gen/kvscout/v1" // registers its files
	"github.com/kvscout/kvscout/scorer/access"
)

// methods are those of every service that the server may have: all of ours, whatever file they are in, and gRPC's own.
func methods(t testing.TB) map[string]protoreflect.MethodDescriptor {
	t.Helper()
	out := make(map[string]protoreflect.MethodDescriptor)
	add := func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for j := range service.Methods().Len() {
				m := service.Methods().Get(j)
				out["/"+string(service.FullName())+"/"+string(m.Name())] = m
			}
		}
		return true
	}
	protoregistry.GlobalFiles.RangeFilesByPackage("kvscout.v1", add)
	add(healthv1.File_grpc_health_v1_health_proto)
	add(reflectv1.File_grpc_reflection_v1_reflection_proto)
	add(reflectv1alpha.File_grpc_reflection_v1alpha_reflection_proto)
	if len(out) < 20 {
		t.Fatalf("only %d methods are registered", len(out))
	}
	return out
}

// Every method has a role of its own: a new one fails here until somebody has decided.
func TestRoles_EveryMethod(t *testing.T) {
	found := methods(t)
	for procedure := range found {
		if !access.HasRole(procedure) {
			t.Errorf("%s has no role in methods.go", procedure)
		}
	}
	for _, procedure := range access.Procedures() {
		if found[procedure] == nil {
			t.Errorf("%s has a role, and no service has it", procedure)
		}
	}
}

// What changes the index, or shows what is in it, is not for routers. The list is written out: it is a promise.
func TestRoles_WhatRoutersMay(t *testing.T) {
	score := map[string]bool{
		"Score": true, "ScoreBatch": true, "ScoreStream": true, "ReportRouted": true, "ReportOutcome": true, "Render": true,
		"ListWorkers": true, "GetStats": true, "StreamStats": true,
		"Check": true, "Watch": true, "List": true, "ServerReflectionInfo": true,
	}
	for procedure, m := range methods(t) {
		want := access.RoleOperate
		if score[string(m.Name())] {
			want = access.RoleScore
		}
		if got := access.RoleOf(procedure); got != want {
			t.Errorf("%s needs %v, want %v", procedure, got, want)
		}
	}
	if got := access.RoleOf("/kvscout.v1.ScoreService/NotYet"); got != access.RoleOperate {
		t.Errorf("an unknown method needs %v", got)
	}
}
