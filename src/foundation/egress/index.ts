/**
 * Egress: the guarded HTTP client that sends every request to a third party, a webhook receiver or a token endpoint.
 *
 * Here: the address policy (SSRF protection), the client that enforces it, and the retry hints of HTTP responses. Never here:
 * credentials, retries of calls, rate limits, knowledge of what is called and why.
 */

export { createEgressPolicy, findUrlViolation } from './address-policy.ts'
export { parseConnectTo } from './connect-to.ts'
export { classifyRequestFailure, type RequestErrorClass } from './connection-errors.ts'
export { DecodingError, decodeBody, decodeContent, isIdentityCoding } from './content-decoding.ts'
export { headerText, headerTexts } from './header-text.ts'
export { createHttpClient, type HttpClient } from './http-client.ts'
export type { EgressRequest } from './request.ts'
export { type EgressResponse, type EgressStreamResponse, ResponseTooLargeError } from './response.ts'
export { answeredAt, isTransientStatus, parseRetryAfter, retryAfterSeconds } from './retry-hints.ts'
export type { RequestTimings } from './timings.ts'
