import { Readable } from 'node:stream'
import type { Json } from '../base/index.ts'
import type { MethodPlan } from '../definition/index.ts'
import { decodeContent, type EgressStreamResponse } from '../egress/index.ts'
import { type AttemptResult, type ClassifiedSuccess, withoutRetryHint } from './answer.ts'
import { decodeResponse, isJsonType } from './decode.ts'
import type { CallDependencies } from './dependencies.ts'
import { classifyResponse } from './judge-answer.ts'
import type { RateLimitInfo, StreamedResponse, StreamOutcome } from './outcome.ts'
import { readRateLimit } from './rate-limit.ts'
import { redactRateLimit } from './redaction.ts'
import { RESPONSE_BYTES_MAX } from './request.ts'

/** How much of an answer is read to judge it, as sent. No error is longer. */
const CLASSIFIED_BYTES_MAX = 1024 * 1024

type ClassifierDependencies = Pick<CallDependencies, 'evaluator' | 'clock' | 'redaction'>

/**
 * Rate limit and error of an answer whose body has not been read.
 *
 * What has to be read to be judged is read: an error by its status, and JSON where the definition has expressions about it.
 * A success is handed on with the very bytes that came. Everything else, and JSON that is too long for an error, is a
 * success by its status.
 *
 * @param url what was requested, without authorization parameters
 * @throws Failure EXPRESSION_FAILED and, while the body is read, what the body fails with
 */
export async function classifyStreamedResponse(
  deps: ClassifierDependencies,
  method: MethodPlan,
  opened: EgressStreamResponse,
  url: string,
): Promise<AttemptResult<StreamOutcome>> {
  const { status, headers, body } = opened
  const isError = status >= 400
  if (!isError && !hasExpressions(method, headers)) return withoutRetryHint(await passThrough(deps, method, opened))
  const { bytes, isWhole } = await readPrefix(body, CLASSIFIED_BYTES_MAX)
  if (!isWhole && !isError) {
    body.unshift(bytes)
    return withoutRetryHint(await passThrough(deps, method, opened))
  }
  body.destroy()
  const content = isWhole
    ? await decodeContent(new URL(url).host, headers, bytes, RESPONSE_BYTES_MAX)
    : { headers, body: readablePrefix(opened, bytes) }
  const response = await decodeResponse(method, { status, url, ...content })
  const { outcome: answer, ...rest } = await classifyResponse(deps, method, response, url)
  switch (answer.kind) {
    case 'rate_limited':
      return { outcome: answer, ...rest }
    case 'upstream_error':
      if (answer.action !== 'ignore' && answer.action !== 'stop') return { outcome: answer, ...rest }
      return withoutRetryHint(streamOfBytes(status, headers, bytes, answer.rateLimit))
    case 'success':
      return withoutRetryHint(successStream(answer, response.body, opened, bytes))
  }
}

function hasExpressions({ errorExpression, rateLimit }: MethodPlan, headers: EgressStreamResponse['headers']): boolean {
  const areAbout = errorExpression !== undefined || rateLimit.isRateLimited !== undefined
  return areAbout && isJsonType(headers['content-type'] ?? '')
}

/** Nothing of the body is looked at; expressions about what is left of a limit see no body. */
async function passThrough(
  deps: ClassifierDependencies,
  { rateLimit: rules }: MethodPlan,
  { status, headers, body }: EgressStreamResponse,
): Promise<StreamedResponse> {
  const told = await readRateLimit(deps, rules, { status, headers, body: null })
  const rateLimit = redactRateLimit(deps.redaction, told)
  return { kind: 'stream', status, headers, body, rateLimit }
}

/** The bytes that came, unless an expression made another body of them. */
function successStream(
  { response, rateLimit }: ClassifiedSuccess,
  before: Json,
  { headers }: EgressStreamResponse,
  bytes: Buffer,
): StreamedResponse {
  if (response.body === before)
    return streamOfBytes(response.status, { ...headers, ...response.headers }, bytes, rateLimit)
  const { 'content-length': _before, 'content-encoding': _too, ...kept } = response.headers
  const json = Buffer.from(JSON.stringify(response.body))
  return streamOfBytes(response.status, { ...kept, 'content-type': 'application/json' }, json, rateLimit)
}

function streamOfBytes(
  status: number,
  headers: StreamedResponse['headers'],
  bytes: Buffer,
  rateLimit: RateLimitInfo | undefined,
): StreamedResponse {
  const body = Readable.from(bytes.length === 0 ? [] : [bytes], { objectMode: false })
  return { kind: 'stream', status, headers, body, rateLimit }
}

/** Reads at most so much; what is left stays in the stream. */
async function readPrefix(
  body: Readable,
  bytesMax: number,
): Promise<{ readonly bytes: Buffer; readonly isWhole: boolean }> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of body.iterator({ destroyOnReturn: false })) {
    chunks.push(chunk)
    length += chunk.length
    if (length > bytesMax) return { bytes: Buffer.concat(chunks), isWhole: false }
  }
  return { bytes: Buffer.concat(chunks), isWhole: true }
}

/** What can be read of an error that is too long: nothing when it is encoded, because only whole bodies can be decoded. */
function readablePrefix({ headers }: EgressStreamResponse, bytes: Buffer): Buffer {
  return headers['content-encoding'] === undefined ? bytes : Buffer.alloc(0)
}
