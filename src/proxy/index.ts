/**
 * A call to a third party as a list of stages: resolve → build → authorise → budget → send → decode → rate limit → error →
 * retry → extract; the walk through the pages of a list, streams, and a call that is only thought through.
 *
 * Plans, accounts, clock, HTTP, budgets and whoever renews credentials are handed in; nothing here knows a database or waits
 * for a rate limit.
 */
export type { AccountSignal, CredentialRefresher } from './account-keeper.ts'
export type { ActionOutcome, ActionRequest, ActionRun, ActionStepResult } from './actions/action-run.ts'
export type { CallLimiter, CallPermit } from './budgets.ts'
export type { ExpressionEvaluator, ProxyDependencies } from './dependencies.ts'
export type {
  RateLimitedOutcome,
  RateLimitInfo,
  StreamedResponse,
  StreamOutcome,
  SuccessOutcome,
  UpstreamErrorOutcome,
} from './outcome.ts'
export type { PageDelayed, PageFailed, PageReached, PageStep } from './pages.ts'

export { createProxy, type Proxy } from './proxy.ts'
export { createRedaction, tokensIn } from './redaction.ts'
export type {
  AccountAccess,
  CallLimits,
  CallTarget,
  PreviewRequest,
  ProxyRequest,
  StreamRequest,
} from './request.ts'
export type { RequestPreview, SampleOutcome, SentRequest } from './request-preview.ts'
export { parseRetryAfter } from './retry-after.ts'
export { sendRaw } from './send-once.ts'
export { isTransientStatus } from './upstream-error.ts'
