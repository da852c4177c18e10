/**
 * A call to a third party as a list of stages: resolve → build → authorise → budget → send → decode → rate limit → error →
 * retry → extract; the walk through the pages of a list, streams, and a call that is only thought through.
 *
 * Plans, accounts, clock, HTTP, budgets and whoever renews credentials are handed in; nothing here knows a database or waits
 * for a rate limit.
 */
export type { AccountKeeper, AccountSign } from './account-keeper.ts'
export type { ActionEnd, ActionRequest, ActionRun, StepResult } from './actions/action-run.ts'
export type { BudgetGrant, Budgets, LimitSigns } from './budgets.ts'
export type { ExpressionEvaluator, ProxyDependencies } from './dependencies.ts'
export type {
  CallOutcome,
  ErrorAction,
  PageInfo,
  RateLimitedOutcome,
  RateLimitInfo,
  StreamedAnswer,
  StreamOutcome,
  SuccessOutcome,
  UpstreamErrorOutcome,
} from './outcome.ts'
export type { PageDelayed, PageFailed, PageReached, PageStep } from './pages.ts'

export { createProxy, type Proxy } from './proxy.ts'
export { redactionOf, tokensIn } from './redaction.ts'
export {
  type AccountAccess,
  type CallLimits,
  type CallTarget,
  type PageChoice,
  type PreviewRequest,
  type ProxyRequest,
  RESPONSE_BYTES_MAX,
  type SampleResponse,
  STREAM_BYTES_MAX,
  STREAM_TIMEOUT_MS,
  type StreamRequest,
} from './request.ts'
export type { PagingPreview, RequestPreview, SampleOutcome, SentRequest } from './request-preview.ts'
export { parseRetryAfter, RETRY_AFTER_DEFAULT_SECONDS } from './retry-after.ts'
export { type OnceAnswer, type OnceLimits, sendOnce } from './send-once.ts'
export { isTransientStatus } from './upstream-error.ts'
