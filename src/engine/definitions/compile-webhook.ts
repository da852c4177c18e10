import { isJsonObject } from '../../foundation/json/index.ts'
import { listInputPaths, listRootNames, readsWholeInput } from '../expressions/input-analysis.ts'
import { listWrittenMembers } from '../expressions/object-keys.ts'
import type { FormatChoice } from '../formats/format.ts'
import { authenticates } from '../formats/signature/authentication.ts'
import { compileSignature } from '../formats/signature/registry.ts'
import { compileTime } from '../formats/signature/signed-content.ts'
import { compileSource, readsPayload } from '../formats/signature/source.ts'
import type { DedupePlan, HandshakePlan, TransformPlan, WebhookPlan, WebhookRate } from './plan.ts'
import { REQUEST_ROOTS } from './plan.ts'
import { compileAnswer } from './webhook-answer.ts'
import { type WebhookDefinition, windowSeconds } from './webhook-schema.ts'

const WINDOW_DEFAULT = '7d'
/** Longest time for which a request without an id counts as a repetition: later ones may be news with the same content. */
const CONTENT_WINDOW_SECONDS_MAX = 600
/** Deliveries of one address; every listed provider retries after 429, so this only bounds floods. */
const RATE_DEFAULT: WebhookRate = { requestsPerSecond: 200, burst: 2_000 }

/** Compiles a checked webhook block. */
export function compileWebhook(definition: WebhookDefinition): WebhookPlan {
  const { signature_verification, dedupe, rate_limit, verification_hosts, provider_time } = definition
  const payloadTransform = compileTransform(definition.payload_transform)
  const readsTransformed = (settings: unknown) =>
    settings !== undefined && (movesMore(payloadTransform) || hasPayloadToken(settings))
  const hosts = (verification_hosts ?? []).map(hostPattern)
  return {
    payloadTransform,
    handshake:
      definition.handle_verification === undefined ? undefined : compileHandshake(definition.handle_verification),
    verify:
      signature_verification === undefined || !authenticates(signature_verification)
        ? undefined
        : compileSignature(signature_verification),
    signature: signature_verification,
    bodyStage: definition.body_stage,
    bodyBytesMax: definition.max_body_bytes,
    formJsonField: definition.form_json_field,
    events: definition.events,
    contextLookup: definition.context_lookup,
    dedupe: dedupe === false ? undefined : compileDedupe(dedupe, definition),
    readsTransformed: [signature_verification, dedupe, provider_time].some(readsTransformed),
    verifiesPayload: readsTransformed(signature_verification),
    answer: compileAnswer(definition.response ?? {}),
    rateLimit:
      rate_limit === undefined
        ? RATE_DEFAULT
        : { requestsPerSecond: rate_limit.requests_per_second, burst: rate_limit.burst },
    secretContext: new Set(definition.secret_context),
    isVerificationHost: (host) => hosts.some((pattern) => pattern.test(host)),
    readProviderTime: provider_time === undefined ? undefined : compileTime(provider_time),
  }
}

/** Whether a text in the settings is a token of the payload, or they name a list in it whose entries are signed. */
function hasPayloadToken(settings: unknown): boolean {
  if (typeof settings === 'string') return readsPayload(settings)
  if (typeof settings !== 'object' || settings === null) return false
  return 'items' in settings || Object.values(settings).some(hasPayloadToken)
}

function compileDedupe(
  { keys, window = WINDOW_DEFAULT }: Exclude<WebhookDefinition['dedupe'], false | undefined> = {},
  definition: WebhookDefinition,
): DedupePlan {
  const seconds = windowSeconds(window)
  return {
    keys: (keys ?? signedIdKeys(definition.signature_verification)).map((key) => [key].flat().map(compileSource)),
    windowSeconds: seconds,
    contentWindowSeconds: Math.min(seconds, CONTENT_WINDOW_SECONDS_MAX),
    headers: headersRead(definition),
  }
}

/** The id that a signature scheme sends: Standard Webhooks has a new timestamp and signature with each attempt, but one id. */
export function signedIdKeys(signature: FormatChoice | undefined): readonly string[] {
  if (signature?.format === 'clerk') return ['$header.svix-id']
  if (signature?.format !== 'standard_webhooks') return []
  const prefix = isJsonObject(signature.config) ? signature.config.header_prefix : undefined
  return [`$header.${typeof prefix === 'string' ? prefix : 'webhook-'}id`]
}

/** What says how a body is read, and the headers of signature schemes that no token names. */
const HEADERS_READ = ['content-type', 'content-encoding', 'authorization'] as const
const HEADER_TOKEN = /\$header\.([!#%&'*+.^_`|~0-9A-Za-z-]+)/g

/** The headers that the definition reads, in lower case; `all` where an expression may read any. */
function headersRead(definition: WebhookDefinition): DedupePlan['headers'] {
  const { payload_transform, handle_verification, events, context_lookup } = definition
  const expressions = [payload_transform, handle_verification, events, context_lookup?.value]
  const paths = expressions.map((text) => (text === undefined ? [] : listInputPaths(text)))
  const names = paths.flatMap((some) =>
    (some ?? [['headers']]).flatMap(([root, name]) => (root === 'headers' ? [name] : [])),
  )
  const { signature_verification, dedupe, provider_time } = definition
  const tokens = JSON.stringify([signature_verification, dedupe, provider_time]).matchAll(HEADER_TOKEN)
  const known = names.filter((name) => name !== undefined)
  if (known.length < names.length) return 'all'
  const read = [...HEADERS_READ, ...known, ...[...tokens].map(([, name = '']) => name)]
  return new Set(read.map((name) => name.toLowerCase()))
}

function compileHandshake(expression: string): HandshakePlan {
  const names = listRootNames(expression).flatMap(({ name, next }) => (name === 'credentials' ? (next ?? []) : []))
  return { expression, credentialNames: [...new Set(names)] }
}

function compileTransform(expression: string | undefined): TransformPlan | undefined {
  if (expression === undefined) return undefined
  const written = listWrittenMembers(expression).flatMap(({ path: [name, ...deeper] }) =>
    deeper.length > 0 ? [] : name,
  )
  const isAny = readsWholeInput(expression)
  return { expression, members: new Set(REQUEST_ROOTS.filter((member) => isAny || written.includes(member))) }
}

/** Whether a transform may change more of a request than its body. */
export function movesMore(transform: TransformPlan | undefined): boolean {
  return transform?.members.has('body') === true && transform.members.size > 1
}

/** Labels are compared whole; `*` is one label. */
function hostPattern(text: string): RegExp {
  const labels = text.toLowerCase().split('.')
  return new RegExp(`^${labels.map((label) => (label === '*' ? '[a-z0-9-]{1,63}' : label)).join('\\.')}$`)
}
