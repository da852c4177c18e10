import type { WebhookAnswer } from '../../engine/definitions/index.ts'
import type { KeySource, WebhookRequest } from '../../engine/formats/index.ts'
import { type Clock, Failure, newId } from '../../foundation/base/index.ts'
import type { HttpClient } from '../../foundation/egress/index.ts'
import type { Json, JsonObject } from '../../foundation/json/index.ts'
import { confirmAddress } from './confirm-address.ts'
import { type ContextUpdateDeps, updateInHandshake } from './context-update.ts'
import { dedupeKeyOf } from './dedupe-key.ts'
import type { EventStore } from './event-store.ts'
import {
  type ExpressionDeps,
  evaluateHandshake,
  type Handshake,
  handshakeFacts,
  NO_HANDSHAKE,
  UNVERIFIED_BYTES_MAX,
} from './handshake.ts'
import { dateOf, type HeaderList, type InboundState, type SignatureState } from './inbound-event.ts'
import {
  type BodyProblem,
  DECODED_BYTES_MAX,
  decodeBodyOf,
  decodedBytesMax,
  type ParsedRequest,
  parseBodyOf,
  parseHead,
  signedRequestOf,
  tooLarge,
} from './parsed-request.ts'
import { redactRequest } from './redact-request.ts'
import { explainRejection, type ObserveInbound, type RejectionBudget } from './rejection.ts'
import { findSource, type InboundSource, type SourceAddress, type SourceReader, scopeOf } from './source.ts'
import type { NewInboundEvent } from './sql/receive.ts'
import { rateExceeded, type TokenBuckets } from './token-bucket.ts'
import { type TransformedRequest, transformRequest } from './transform.ts'
import type { UnverifiedReads } from './unverified-reads.ts'

/** A request as it comes in, before its body is read. */
export interface InboundRequest {
  /** Upper case. */
  readonly method: string
  readonly path: string
  /** As received, without the question mark. */
  readonly query: string
  readonly headers: HeaderList
  readonly remoteAddress: string
  /** Reads the body, once. @param bytesMax as sent @throws Failure REQUEST_TOO_LARGE, REQUEST_STALLED, CANCELLED */
  readBody(bytesMax: number): Promise<Uint8Array>
}

/** What receiving takes. */
export interface ReceiveDeps extends ExpressionDeps, ContextUpdateDeps {
  readonly sources: SourceReader
  readonly store: EventStore
  readonly rates: TokenBuckets
  readonly rejections: RejectionBudget
  /** Who may decompress and parse bodies before a signature is verified. */
  readonly unverified: UnverifiedReads
  readonly keys: KeySource
  readonly http: Pick<HttpClient, 'send'>
  readonly clock: Clock
  /** Without a trailing slash. */
  readonly publicUrl: () => string
  /** A received one is stored, and is to be processed. */
  readonly observe: ObserveInbound
}

/** Xero and others want an empty body. */
const UNAUTHORIZED: WebhookAnswer = { status: 401, body: '', headers: {} }
const EMPTY_ANSWER: WebhookAnswer = { status: 200, body: '', headers: {} }
/** When a body took longer, the source is read again: its secrets may have changed, or it may have been disabled. */
const SOURCE_MS_MAX = 100
/** As long as a failed fetch of keys is remembered. */
const RETRY_AFTER_SECONDS = 60

/**
 * Receives one request of a third party: transform, handshake, signature, one insert, answer. When this returns a 2xx for an
 * event, the event is committed, or was before.
 *
 * Where nothing else has to be read before, the signature is verified over the bytes as they came. What is decompressed and
 * parsed before that is bounded for each address.
 *
 * A failed signature is an answer 401. Nothing that a third party sends makes this throw anything but the failures below.
 *
 * @throws Failure RESOURCE_NOT_FOUND for an unknown address, before the body is read; RATE_LIMITED, also while too many
 * bodies of the address are being read; those of `readBody`;
 * UPSTREAM_UNREACHABLE while the keys of the signature cannot be fetched or an address cannot be visited, and other transient
 * ones: the third party then sends it again
 */
export async function receiveWebhook(
  deps: ReceiveDeps,
  address: SourceAddress,
  request: InboundRequest,
): Promise<WebhookAnswer> {
  const known = await findSource(deps.sources, address)
  const foundMs = deps.clock.monotonicMs()
  const { rateLimit } = known.webhook
  const waitSeconds = deps.rates.take(known.id, rateLimit)
  if (waitSeconds !== undefined) throw rateExceeded(rateLimit, waitSeconds)
  const body = await request.readBody(known.webhook.bodyBytesMax)
  const isOld = deps.clock.monotonicMs() - foundMs > SOURCE_MS_MAX
  const source = isOld ? await findSource(deps.sources, address) : known
  const head = parseHead({ ...request, body }, deps.publicUrl())
  const reception: Reception = { deps, source, request, parsed: head, trace: {}, id: newId() }
  // Nothing else is read of a request before it is authenticated. A handshake may come without a signature.
  if (source.webhook.handshake === undefined && verifiesBytes(reception)) return await decideSigned(reception)
  const small = await decideUnverified(reception, UNVERIFIED_BYTES_MAX)
  if (small !== undefined) return small
  if (verifiesBytes(reception)) return await decideSigned(reception)
  if (verifiesContent(reception)) return await decideDecoded(reception)
  const large = await decideUnverified(reception, DECODED_BYTES_MAX)
  return large ?? (await decide(withBody(reception, tooLarge(head, DECODED_BYTES_MAX))))
}

/** Whether the signature needs nothing but the bytes that came, without decompressing or parsing them. */
function verifiesBytes(reception: Reception): boolean {
  const isThere = reception.source.webhook.bodyStage === 'raw' || reception.parsed.decoded !== undefined
  return verifiesContent(reception) && isThere
}

/** Whether the signature needs no parsed body. */
function verifiesContent({ source: { webhook } }: Reception): boolean {
  return webhook.verify !== undefined && !webhook.verifiesPayload
}

/** Verifies the signature, and reads the body after that. */
async function decideSigned(reception: Reception): Promise<WebhookAnswer> {
  const { source, parsed } = reception
  const request = signedRequestOf(parsed, source.webhook)
  const verified = await verifySignature(reception, request, undefined)
  if (verified.state === 'invalid')
    return parsed.method === 'HEAD' ? EMPTY_ANSWER : await reject(reception, request, verified.reason)
  const bytesMax = decodedBytesMax(source.webhook)
  const { formJsonField } = source.webhook
  const whole = await parseBodyOf(parsed, { owner: source.environmentId, bytesMax, formJsonField })
  return await decide({ ...withBody(reception, whole ?? tooLarge(parsed, bytesMax)), verified })
}

/** Decompresses a body in its turn, to verify its signature before it is parsed. */
async function decideDecoded(reception: Reception): Promise<WebhookAnswer> {
  const { parsed, source } = reception
  const bytesMax = decodedBytesMax(source.webhook)
  using _turn = await startUnverified(reception, bytesMax)
  const read = (await decodeBodyOf(parsed, bytesMax)) ?? tooLarge(parsed, bytesMax)
  if (read.decoded === undefined) return await decide(withBody(reception, read))
  return await decideSigned({ ...reception, parsed: read })
}

/** Reads a body in its turn, before its sender is authenticated. @returns undefined when it is larger */
async function decideUnverified(reception: Reception, bytesMax: number): Promise<WebhookAnswer | undefined> {
  const { source, parsed } = reception
  if (parsed.raw.byteLength > bytesMax) return undefined
  using _turn = await startUnverified(reception, bytesMax)
  const read = await parseBodyOf(parsed, { owner: source.id, bytesMax, formJsonField: source.webhook.formJsonField })
  return read && (await decide(withBody(reception, read)))
}

/** @throws Failure RATE_LIMITED */
async function startUnverified({ deps, source, request, parsed }: Reception, bytesMax: number): Promise<Disposable> {
  const sender = { installation: source.environmentIntegrationId, remoteAddress: request.remoteAddress }
  if (bytesMax > UNVERIFIED_BYTES_MAX) return await deps.unverified.waitForTurn(sender)
  return deps.unverified.startSmall(sender, parsed.decoded === undefined ? bytesMax : parsed.raw.byteLength)
}

function withBody(reception: Reception, parsed: ParsedRequest): Reception {
  if (parsed.problem !== undefined) reception.trace.body = { problem: parsed.problem.message }
  return { ...reception, parsed }
}

/** One request on its way. `trace` is filled step by step. */
interface Reception {
  readonly deps: ReceiveDeps
  readonly source: InboundSource
  readonly request: InboundRequest
  /** As received. */
  readonly parsed: ParsedRequest
  /** The signature, where it was verified before the body was read. */
  readonly verified?: ReceivedSignature
  readonly trace: Record<string, Json>
  readonly id: string
}

async function decide(reception: Reception): Promise<WebhookAnswer> {
  const { source, parsed, verified } = reception
  if (parsed.problem !== undefined) return await rejectUnreadable(reception, parsed.problem)
  const transformed = await transform(reception)
  const current = transformed ?? parsed
  const { handshake, unavailable } = await readHandshake(reception, current)
  if (handshake.type === 'verify') return await answerHandshake(reception, handshake, transformed)
  const request = signedRequestOf(current, source.webhook)
  const signature = verified ?? (await verifySignature(reception, request, transformed))
  if (signature.state === 'invalid') {
    // Without the handshake it is not known whether it had to be signed.
    if (unavailable !== undefined) throw unavailable
    if (parsed.method === 'HEAD') return EMPTY_ANSWER
    return await reject(reception, request, signature.reason)
  }
  if (parsed.method === 'HEAD') return handshake.answer ?? EMPTY_ANSWER
  await accept(reception, request, { transformed, signature: signature.state })
  return handshake.answer ?? source.webhook.answer
}

/** The transformed request where it is needed before the answer; else `undefined`, and it is made when the event is processed. */
async function transform({ deps, source, parsed, trace }: Reception): Promise<ParsedRequest | undefined> {
  const { payloadTransform, handshake, readsTransformed } = source.webhook
  if (payloadTransform === undefined || !(handshake !== undefined || readsTransformed)) return undefined
  if (isTooLarge(parsed)) return undefined
  try {
    const { request, changes }: TransformedRequest = await transformRequest(deps, source, parsed, true)
    trace.transform = changes
    return request
  } catch (error) {
    trace.transform = problemOf(error)
    return undefined
  }
}

/** A handshake that cannot be evaluated counts as an event: authenticated, it is stored, and its failure is shown. */
async function readHandshake(
  { deps, source, parsed, trace }: Reception,
  current: ParsedRequest,
): Promise<{ readonly handshake: Handshake; readonly unavailable?: Failure }> {
  if (source.webhook.handshake === undefined || isTooLarge(parsed)) return { handshake: NO_HANDSHAKE }
  try {
    const handshake = await evaluateHandshake(deps, source, current, true)
    trace.handshake = handshakeFacts(handshake)
    return { handshake }
  } catch (error) {
    trace.handshake = problemOf(error)
    const isLasting = error instanceof Failure && PERMANENT.includes(error.reason)
    return { handshake: NO_HANDSHAKE, ...(isLasting || !(error instanceof Failure) ? {} : { unavailable: error }) }
  }
}

const PERMANENT: readonly string[] = ['EXPRESSION_FAILED', 'EXPRESSION_QUARANTINED']

function isTooLarge({ decoded, raw }: ParsedRequest): boolean {
  return (decoded ?? raw).byteLength > UNVERIFIED_BYTES_MAX
}

/** Only failures of expressions and of their capacity are expected here. */
function problemOf(error: unknown): JsonObject {
  if (error instanceof Failure) return { problem: error.publicMessage, reason: error.reason }
  throw error
}

/** Answers a request of type `verify`, which is kept for a day and never becomes an event. */
async function answerHandshake(
  reception: Reception,
  handshake: Handshake,
  transformed: ParsedRequest | undefined,
): Promise<WebhookAnswer> {
  const { deps, source, parsed, trace } = reception
  const { contextUpdate, confirmUrl } = handshake
  let signature: SignatureState = 'none'
  if (contextUpdate !== undefined || confirmUrl !== undefined) {
    const request = signedRequestOf(transformed ?? parsed, source.webhook)
    const verified = await verifySignature(reception, request, transformed)
    signature = verified.state
    if (confirmUrl !== undefined && verified.state === 'invalid')
      return await reject(reception, request, verified.reason)
    if (contextUpdate !== undefined) {
      const isAuthenticated = source.webhook.verify !== undefined && verified.state === 'valid'
      const change = { source, update: contextUpdate, isAuthenticated, inboundEventId: reception.id }
      const problem = await updateInHandshake(deps, change)
      if (problem !== undefined) return await reject(reception, request, problem)
      trace.context = { keys: Object.keys(contextUpdate) }
    }
  }
  if (confirmUrl !== undefined) trace.visit = await confirmAddress(deps.http, source.webhook, confirmUrl)
  deps.observe('handshake', source)
  // A handshake may hold the secret that it agrees on: of those that store something no body is kept.
  await storeForADay(reception, 'handshake', signature, contextUpdate === undefined ? parsed.raw : EMPTY)
  return handshake.answer ?? EMPTY_ANSWER
}

const EMPTY = new Uint8Array()

type ReceivedSignature = { readonly state: 'none' | 'valid' } | { readonly state: 'invalid'; readonly reason: string }

const NOT_TRANSFORMED =
  'the signature reads what payload_transform makes, and it made nothing: it failed, or the body is too large for it'

/** @param transformed the signature is never verified over another request than it means */
async function verifySignature(
  { deps, source }: Reception,
  request: WebhookRequest,
  transformed: ParsedRequest | undefined,
): Promise<ReceivedSignature> {
  const { verify, verifiesPayload, payloadTransform } = source.webhook
  if (verify === undefined) return { state: 'none' }
  if (verifiesPayload && payloadTransform !== undefined && transformed === undefined)
    return { state: 'invalid', reason: NOT_TRANSFORMED }
  try {
    const result = await verify(request, scopeOf(source), {
      now: () => deps.clock.now(),
      keys: deps.keys.ofOwner(source.environmentId),
    })
    return result.kind === 'valid' ? { state: 'valid' } : { state: 'invalid', reason: result.reason }
  } catch (cause) {
    if (!(cause instanceof Failure)) throw cause
    const message = 'the public keys of the third party cannot be fetched now; send this again later'
    throw new Failure('UPSTREAM_UNREACHABLE', message, { cause, retryAfterSeconds: RETRY_AFTER_SECONDS })
  }
}

/** Stores an event, unless it is a duplicate. */
async function accept(
  reception: Reception,
  request: WebhookRequest,
  { transformed, signature }: { readonly transformed: ParsedRequest | undefined; readonly signature: SignatureState },
): Promise<void> {
  const { deps, source, parsed } = reception
  const scope = scopeOf(source)
  const sent = source.webhook.readProviderTime?.(request, scope)
  const received = { ...parsed, body: parsed.raw }
  const { isDuplicate } = await deps.store.store({
    ...eventOf(reception, 'received', signature),
    dedupe: dedupeKeyOf(source.webhook, { request, received, scope }),
    providerTime: sent?.kind === 'ok' ? dateOf(sent.value) : null,
    body: parsed.raw,
    payload: transformed?.body ?? null,
  })
  if (!isDuplicate) deps.observe('received', source)
}

/** Answers what is wrong with the body, unless the request is not authentic, and keeps it for a day. No expression sees it. */
async function rejectUnreadable(reception: Reception, { status, message }: BodyProblem): Promise<WebhookAnswer> {
  const { deps, source, parsed } = reception
  const isVerifiable =
    verifiesContent(reception) && (source.webhook.bodyStage === 'raw' || parsed.decoded !== undefined)
  const request = signedRequestOf(parsed, source.webhook)
  const signature =
    reception.verified ?? (isVerifiable ? await verifySignature(reception, request, undefined) : UNVERIFIED)
  if (signature.state === 'invalid') return await reject(reception, request, signature.reason)
  deps.observe('rejected', source, message)
  if (deps.rejections.take('rejected', source.id))
    await storeForADay(reception, 'rejected', signature.state, parsed.raw)
  return { status, body: JSON.stringify({ error: message }), headers: { 'content-type': 'application/json' } }
}

const UNVERIFIED: ReceivedSignature = { state: 'none' }

/** Answers 401, and keeps the request for a day with what explains it. */
async function reject(reception: Reception, request: WebhookRequest, reason: string): Promise<WebhookAnswer> {
  const { deps, source, trace } = reception
  deps.observe('rejected', source, reason)
  if (!deps.rejections.take('rejected', source.id)) return UNAUTHORIZED
  trace.signature = await explainRejection(deps, source, request, reason)
  await storeForADay(reception, 'rejected', 'invalid', reception.parsed.raw)
  return UNAUTHORIZED
}

/** Stores a request for a day, within the budget of its address. */
async function storeForADay(
  reception: Reception,
  state: InboundState,
  signature: SignatureState,
  body: Uint8Array,
): Promise<void> {
  const { deps, source } = reception
  if (state === 'handshake' && !deps.rejections.take(state, source.id)) return
  const event: NewInboundEvent = {
    ...eventOf(reception, state, signature),
    dedupe: undefined,
    providerTime: null,
    body: body.subarray(0, KEPT_BYTES_MAX),
    payload: null,
  }
  await deps.store.store(event)
}

/** Of the body of a request that is kept for a day. */
const KEPT_BYTES_MAX = 4_096

function eventOf({ source, request, parsed, trace, id }: Reception, state: InboundState, signature: SignatureState) {
  return {
    environmentId: source.environmentId,
    id,
    sourceKind: source.kind,
    sourceId: source.id,
    environmentIntegrationId: source.environmentIntegrationId,
    integratedAccountId: source.integratedAccountId ?? null,
    method: parsed.method,
    path: request.path,
    remoteAddress: request.remoteAddress,
    bodyBytes: parsed.raw.byteLength,
    state,
    signature,
    trace,
    ...redactRequest(source, request),
  }
}
