/**
 * The guarded way out: every request to a third party, a webhook receiver or a token endpoint leaves through here.
 *
 * Lives here: the address policy and the HTTP client that enforces it. Never here: credentials, retries, rate limits,
 * or any idea of what is called and why.
 */
export { type DecodedContent, decodeContent } from './decode-content.ts'
export type { HeaderMap } from './headers.ts'
export {
  createHttpClient,
  type HttpClient,
  type HttpClientOptions,
  type HttpRequest,
  type HttpResponse,
  type HttpStreamRequest,
  type HttpStreamResponse,
} from './http-client.ts'
export type { ResolveAll } from './lookup.ts'
export { createEgressPolicy, type EgressPolicy, type EgressPolicyOptions, findUrlViolation } from './policy.ts'
