package indexrpc

import "connectrpc.com/connect"

// Reason says why a call failed. Its names are the reasons of ErrorInfo and the fixed label set of error counters.
type Reason uint8

// The reasons of both services, as proto/kvscout/v1 documents them.
const (
	ReasonInternal Reason = iota
	ReasonCanceled
	ReasonDeadline
	ReasonNotReady
	ReasonOverloaded
	ReasonUnknownModel
	ReasonModelRequired
	ReasonUnknownWorker
	ReasonUnknownRank
	ReasonNoPrompt
	ReasonTwoPrompts
	ReasonSeveralPrompts
	ReasonTokensNotMultipleOf4
	ReasonNegativeToken
	ReasonTokenTooLarge
	ReasonHashesNotMultipleOf8
	ReasonBadBlockSize
	ReasonBadPromptTokens
	ReasonBadFeature
	ReasonBadTierWeight
	ReasonBadRole
	ReasonBadPath
	ReasonBadHeader
	ReasonBadBody
	ReasonBadPromptIndex
	ReasonCallerTokens
	ReasonSaltMismatch
	ReasonSaltNotSupported
	ReasonNoRenderer
	ReasonRendererUnusable
	ReasonRendererDown
	ReasonRenderNotTrusted
	ReasonRenderNotExact
	ReasonFingerprintMismatch
	ReasonPromptTooLong
	ReasonBodyTooLarge
	ReasonTooManyCandidates
	ReasonBadWorker
	ReasonTooManyWorkers
	ReasonSourceTaken
	ReasonWorkerDown
	ReasonBadInterval
	ReasonNoTarget
	ReasonTwoTargets
	ReasonHasEndpoint
	ReasonTooManyBatches
	ReasonBatchTooLarge
	ReasonNoRequests
	ReasonTooManyRequests
	ReasonBadTTL
	ReasonUnknownScore
	ReasonNotCreditable
	ReasonNoScoreID
	ReasonBadOutcome
	ReasonAlreadyReported
	ReasonNoCredential
	ReasonBadToken
	ReasonUnknownCertificate
	ReasonRoleMissing
	ReasonRateLimited
	// ReasonCount is the number of reasons.
	ReasonCount
)

// outcomes has the wire name and the code of each reason.
var outcomes = [ReasonCount]struct {
	name string
	code connect.Code
}{
	ReasonInternal:             {"INTERNAL", connect.CodeInternal},
	ReasonCanceled:             {"CANCELED", connect.CodeCanceled},
	ReasonDeadline:             {"DEADLINE_EXCEEDED", connect.CodeDeadlineExceeded},
	ReasonNotReady:             {"NOT_READY", connect.CodeUnavailable},
	ReasonOverloaded:           {"OVERLOADED", connect.CodeResourceExhausted},
	ReasonUnknownModel:         {"UNKNOWN_MODEL", connect.CodeNotFound},
	ReasonModelRequired:        {"MODEL_REQUIRED", connect.CodeInvalidArgument},
	ReasonUnknownWorker:        {"UNKNOWN_WORKER", connect.CodeNotFound},
	ReasonUnknownRank:          {"UNKNOWN_RANK", connect.CodeNotFound},
	ReasonNoPrompt:             {"NO_PROMPT", connect.CodeInvalidArgument},
	ReasonTwoPrompts:           {"TWO_PROMPTS", connect.CodeInvalidArgument},
	ReasonSeveralPrompts:       {"SEVERAL_PROMPTS", connect.CodeInvalidArgument},
	ReasonTokensNotMultipleOf4: {"TOKENS_NOT_MULTIPLE_OF_4", connect.CodeInvalidArgument},
	ReasonNegativeToken:        {"NEGATIVE_TOKEN", connect.CodeInvalidArgument},
	ReasonTokenTooLarge:        {"TOKEN_TOO_LARGE", connect.CodeInvalidArgument},
	ReasonHashesNotMultipleOf8: {"HASHES_NOT_MULTIPLE_OF_8", connect.CodeInvalidArgument},
	ReasonBadBlockSize:         {"BAD_BLOCK_SIZE", connect.CodeInvalidArgument},
	ReasonBadPromptTokens:      {"BAD_PROMPT_TOKENS", connect.CodeInvalidArgument},
	ReasonBadFeature:           {"BAD_FEATURE", connect.CodeInvalidArgument},
	ReasonBadTierWeight:        {"BAD_TIER_WEIGHT", connect.CodeInvalidArgument},
	ReasonBadRole:              {"BAD_ROLE", connect.CodeInvalidArgument},
	ReasonBadPath:              {"BAD_PATH", connect.CodeInvalidArgument},
	ReasonBadHeader:            {"BAD_HEADER", connect.CodeInvalidArgument},
	ReasonBadBody:              {"BAD_BODY", connect.CodeInvalidArgument},
	ReasonBadPromptIndex:       {"BAD_PROMPT_INDEX", connect.CodeInvalidArgument},
	ReasonCallerTokens:         {"CALLER_TOKENS", connect.CodeInvalidArgument},
	ReasonSaltMismatch:         {"SALT_MISMATCH", connect.CodeInvalidArgument},
	ReasonSaltNotSupported:     {"SALT_NOT_SUPPORTED_BY_ENGINE", connect.CodeFailedPrecondition},
	ReasonNoRenderer:           {"NO_RENDERER", connect.CodeFailedPrecondition},
	ReasonRendererUnusable:     {"RENDERER_UNUSABLE", connect.CodeFailedPrecondition},
	ReasonRendererDown:         {"RENDERER_DOWN", connect.CodeUnavailable},
	ReasonRenderNotTrusted:     {"RENDER_NOT_TRUSTED", connect.CodeFailedPrecondition},
	ReasonRenderNotExact:       {"RENDER_NOT_EXACT", connect.CodeFailedPrecondition},
	ReasonFingerprintMismatch:  {"FINGERPRINT_MISMATCH", connect.CodeFailedPrecondition},
	ReasonPromptTooLong:        {"PROMPT_TOO_LONG", connect.CodeResourceExhausted},
	ReasonBodyTooLarge:         {"BODY_TOO_LARGE", connect.CodeResourceExhausted},
	ReasonTooManyCandidates:    {"TOO_MANY_CANDIDATES", connect.CodeResourceExhausted},
	ReasonBadWorker:            {"BAD_WORKER", connect.CodeInvalidArgument},
	ReasonTooManyWorkers:       {"TOO_MANY_WORKERS", connect.CodeResourceExhausted},
	ReasonSourceTaken:          {"SOURCE_TAKEN", connect.CodeFailedPrecondition},
	ReasonWorkerDown:           {"WORKER_DOWN", connect.CodeUnavailable},
	ReasonBadInterval:          {"BAD_INTERVAL", connect.CodeInvalidArgument},
	ReasonNoTarget:             {"NO_TARGET", connect.CodeInvalidArgument},
	ReasonTwoTargets:           {"TWO_TARGETS", connect.CodeInvalidArgument},
	ReasonHasEndpoint:          {"HAS_ENDPOINT", connect.CodeFailedPrecondition},
	ReasonTooManyBatches:       {"TOO_MANY_BATCHES", connect.CodeResourceExhausted},
	ReasonBatchTooLarge:        {"BATCH_TOO_LARGE", connect.CodeResourceExhausted},
	ReasonNoRequests:           {"NO_REQUESTS", connect.CodeInvalidArgument},
	ReasonTooManyRequests:      {"TOO_MANY_REQUESTS", connect.CodeResourceExhausted},
	ReasonBadTTL:               {"BAD_TTL", connect.CodeInvalidArgument},
	ReasonUnknownScore:         {"UNKNOWN_SCORE", connect.CodeNotFound},
	ReasonNotCreditable:        {"NOT_CREDITABLE", connect.CodeFailedPrecondition},
	ReasonNoScoreID:            {"NO_SCORE_ID", connect.CodeInvalidArgument},
	ReasonBadOutcome:           {"BAD_OUTCOME", connect.CodeInvalidArgument},
	ReasonAlreadyReported:      {"ALREADY_REPORTED", connect.CodeFailedPrecondition},
	ReasonNoCredential:         {"NO_CREDENTIAL", connect.CodeUnauthenticated},
	ReasonBadToken:             {"BAD_TOKEN", connect.CodeUnauthenticated},
	ReasonUnknownCertificate:   {"UNKNOWN_CERTIFICATE", connect.CodeUnauthenticated},
	ReasonRoleMissing:          {"ROLE_MISSING", connect.CodePermissionDenied},
	ReasonRateLimited:          {"RATE_LIMITED", connect.CodeResourceExhausted},
}

// String is the reason as ErrorInfo has it.
func (r Reason) String() string {
	if r < ReasonCount {
		return outcomes[r].name
	}
	return outcomes[ReasonInternal].name
}

// Code is the one code of the reason.
func (r Reason) Code() connect.Code {
	if r < ReasonCount {
		return outcomes[r].code
	}
	return connect.CodeInternal
}
