/**
 * The guarded way out: every request to a third party, a webhook receiver or a token endpoint leaves through here.
 *
 * Lives here: the address policy and the HTTP client that enforces it. Never here: credentials, retries, rate limits,
 * or any idea of what is called and why.
 */

export { decodeContent } from './content-decoding.ts'
export { createHttpClient, type EgressResponse, type EgressStreamResponse, type HttpClient } from './http-client.ts'
export { createEgressPolicy, findUrlViolation } from './policy.ts'
export { isTransientStatus, parseRetryAfter } from './retry-hints.ts'
