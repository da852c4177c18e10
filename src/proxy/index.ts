/**
 * A call to a third party as a list of stages: resolve → build → authorise → budget → send → decode → rate limit → error →
 * retry → extract; the walk through the pages of a list, streams, and a call that is only thought through.
 *
 * Plans, accounts, clock, HTTP, budgets and whoever renews credentials are handed in; nothing here knows a database or waits
 * for a rate limit.
 */
export type { AccountKeeper, AccountSign } from './account-keeper.ts'
export type { ActionEnd, ActionRequest, ActionRun, StepResult } from './actions/action-run.ts'
export type { BudgetGrant, Budgets } from './budgets.ts'
export type { ExpressionEvaluator, ProxyDependencies } from './dependencies.ts'
export type {
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
export { sendOnce } from './send-once.ts'
export { isTransientStatus } from './upstream-error.ts'
