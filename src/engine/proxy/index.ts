/**
 * Proxy: calls to third-party APIs as their definitions describe them.
 *
 * Here: one call (resolve, build, authorize, rate limit, send, decode, classify, retry, extract), the pages of a list, streamed
 * calls, dry runs and actions. Never here: a database. Plan, account, clock, HTTP client, rate limits and credential refresh are
 * passed in. Rate limits are outcomes: the caller waits.
 */

export { findPassedOn } from './call.ts'
export { sendLogged, withCause } from './call-log.ts'
export { isRetryableStatus } from './classify-response.ts'
export type {
  AccountReporter,
  AccountSignal,
  CallLimiter,
  CallPermit,
  CredentialRefresher,
  ExpressionEvaluator,
} from './dependencies.ts'
export type { RequestPreview, SampleOutcome, SentRequest } from './dry-run.ts'
export { CALL_CLASSES, type CallClass, type CallLog, type LoggedCall, type LoggedContent } from './logged-call.ts'
export type {
  ActionOutcome,
  ActionStepResult,
  RateLimitedOutcome,
  RateLimitInfo,
  RecordsPage,
  StreamedResponse,
  SuccessOutcome,
  UpstreamErrorOutcome,
} from './outcome.ts'
export type { PageDelayed, PageStep } from './pages.ts'
export { type ApiProxy, createProxy } from './proxy.ts'
export { authorizationSecrets, callSecrets, createRedaction, type SecretRules, tokensIn } from './redaction.ts'
export {
  type AccountAccess,
  type ActionRequest,
  CALL_CAUSES,
  type CallCause,
  type CallTarget,
  type PreviewRequest,
  type ProxyRequest,
} from './request.ts'
export { sendRaw } from './send-raw.ts'
