/**
 * A call to a third party as a list of stages: resolve → build → authorise → budget → send → decode → rate limit → error →
 * retry → extract; the walk through the pages of a list, streams, and a call that is only thought through.
 *
 * Plans, accounts, clock, HTTP, budgets and whoever renews credentials are handed in; nothing here knows a database or waits
 * for a rate limit.
 */

export { isRetryableStatus } from './classify-response.ts'
export type {
  AccountSignal,
  CallLimiter,
  CallPermit,
  CredentialRefresher,
  ExpressionEvaluator,
} from './dependencies.ts'
export type { RequestPreview, SampleOutcome, SentRequest } from './dry-run.ts'
export type {
  ActionOutcome,
  ActionRequest,
  ActionStepResult,
  ListPage,
  RateLimitedOutcome,
  RateLimitInfo,
  StreamedResponse,
  SuccessOutcome,
  UpstreamErrorOutcome,
} from './outcome.ts'
export type { PageDelayed, PageStep } from './pages.ts'
export { createProxy, type Proxy } from './proxy.ts'
export { createRedaction, tokensIn } from './redaction.ts'
export type { AccountAccess, CallTarget, PreviewRequest, ProxyRequest } from './request.ts'
export { sendRaw } from './send-raw.ts'
