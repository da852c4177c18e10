/**
 * The guarded way out: every request to a third party, a webhook receiver or a token endpoint leaves through here.
 *
 * Lives here: the address policy and the HTTP client that enforces it. Never here: credentials, retries, rate limits,
 * or any idea of what is called and why.
 */
export { decodeContent } from './decode-content.ts'

export {
  createHttpClient,
  type EgressRequest,
  type EgressResponse,
  type EgressStreamResponse,
  type HttpClient,
} from './http-client.ts'
export type { ResolveAll } from './lookup.ts'
export { createEgressPolicy, type EgressPolicy, findUrlViolation } from './policy.ts'
