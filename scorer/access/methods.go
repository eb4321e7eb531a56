package access

import (
	"connectrpc.com/grpcreflect"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/kvscout/kvscout/gen/kvscout/v1/kvscoutv1connect"
)

// Role is what a caller may do. A greater one may do all that a lesser one may.
type Role uint8

// The roles. RoleScore is that of routers and of whatever shows figures, RoleOperate that of who changes the index or
// sees what is in it.
const (
	RoleNone Role = iota
	RoleScore
	RoleOperate
)

// String is the role as the file of callers has it.
func (r Role) String() string {
	switch r {
	case RoleScore:
		return "score"
	case RoleOperate:
		return "operate"
	default:
		return "none"
	}
}

// Procedures of gRPC's own services.
const (
	healthCheck = healthpb.Health_Check_FullMethodName
	healthWatch = healthpb.Health_Watch_FullMethodName
	healthList  = healthpb.Health_List_FullMethodName
	reflection  = "/" + grpcreflect.ReflectV1ServiceName + "/ServerReflectionInfo"
	reflectionA = "/" + grpcreflect.ReflectV1AlphaServiceName + "/ServerReflectionInfo"
)

// roles has the role that each method needs.
var roles = map[string]Role{
	kvscoutv1connect.ScoreServiceScoreProcedure:         RoleScore,
	kvscoutv1connect.ScoreServiceScoreBatchProcedure:    RoleScore,
	kvscoutv1connect.ScoreServiceScoreStreamProcedure:   RoleScore,
	kvscoutv1connect.ScoreServiceReportRoutedProcedure:  RoleScore,
	kvscoutv1connect.ScoreServiceReportOutcomeProcedure: RoleScore,
	kvscoutv1connect.RenderServiceRenderProcedure:       RoleScore,

	// Names, states and counters: nothing of a prompt.
	kvscoutv1connect.IndexServiceListWorkersProcedure: RoleScore,
	kvscoutv1connect.IndexServiceGetStatsProcedure:    RoleScore,
	kvscoutv1connect.IndexServiceStreamStatsProcedure: RoleScore,
	healthCheck: RoleScore,
	healthWatch: RoleScore,
	healthList:  RoleScore,
	reflection:  RoleScore,
	reflectionA: RoleScore,

	// What is held, and by whom.
	kvscoutv1connect.IndexServiceInspectProcedure: RoleOperate,
	kvscoutv1connect.IndexServiceDumpProcedure:    RoleOperate,

	kvscoutv1connect.IndexServiceRegisterWorkerProcedure:   RoleOperate,
	kvscoutv1connect.IndexServiceDeregisterWorkerProcedure: RoleOperate,
	kvscoutv1connect.IndexServiceResetWorkerProcedure:      RoleOperate,
	kvscoutv1connect.IndexServicePublishProcedure:          RoleOperate,
	kvscoutv1connect.IndexServiceClearProcedure:            RoleOperate,
}

// RoleOf is the role that a method needs; of one that is not known, the highest.
func RoleOf(procedure string) Role {
	if r, ok := roles[procedure]; ok {
		return r
	}
	return RoleOperate
}

// class is a kind of calls that has room of its own.
type class uint8

const (
	telling class = iota // statistics, health and operators' calls, which a flood of scores does not keep out
	routing              // what routers ask and report
	classes
)

// scoring has the calls of routers. Those that are true are for one answer, which takes work; of a stream each request is for one.
var scoring = map[string]bool{
	kvscoutv1connect.ScoreServiceScoreProcedure:         true,
	kvscoutv1connect.ScoreServiceScoreBatchProcedure:    true,
	kvscoutv1connect.RenderServiceRenderProcedure:       true,
	kvscoutv1connect.ScoreServiceScoreStreamProcedure:   false,
	kvscoutv1connect.ScoreServiceReportRoutedProcedure:  false,
	kvscoutv1connect.ScoreServiceReportOutcomeProcedure: false,
}

func classOf(procedure string) class {
	if _, ok := scoring[procedure]; ok {
		return routing
	}
	return telling
}

// unlimited says whether a method is outside the limits: who asks whether a server lives must learn it from a busy one too.
func unlimited(procedure string) bool { return procedure == healthCheck }
