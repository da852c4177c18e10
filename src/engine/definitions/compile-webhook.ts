import { isJsonObject } from '../../foundation/json/index.ts'
import { listInputPaths, listRootNames, readsWholeInput } from '../expressions/reads.ts'
import { listWrittenMembers } from '../expressions/written-members.ts'
import type { FormatChoice } from '../formats/format.ts'
import { authenticates } from '../formats/signature/authentication.ts'
import { compileSignature } from '../formats/signature/registry.ts'
import type { Verify } from '../formats/signature/signature.ts'
import { compileTime, type ReadTime } from '../formats/signature/signed-content.ts'
import { compileSource, type ReadValues, readsPayload } from '../formats/signature/source.ts'
import { compileAnswer, type WebhookAnswer } from './webhook-answer.ts'
import { REQUEST_ROOTS, type RequestMember, type WebhookDefinition, windowSeconds } from './webhook-schema.ts'

/** How inbound webhooks of a third party are handled: the `webhook` block of a definition, compiled. */
export interface WebhookPlan {
  readonly payloadTransform: TransformPlan | undefined
  /** Something that is decided before the answer, apart from the handshake, reads what the transform makes: it runs first. */
  readonly readsTransformed: boolean
  readonly handshake: HandshakePlan | undefined
  /** Absent: the definition does not authenticate requests. */
  readonly verify: Verify | undefined
  /** `signature_verification` as it is written. */
  readonly signature: FormatChoice | undefined
  /** `verify` reads the parsed body, or what the transform makes: without that nothing can be verified. */
  readonly verifiesPayload: boolean
  /** The bytes that `verify` reads of a compressed body: as sent, or decoded. */
  readonly bodyStage: 'raw' | 'decoded'
  /** Largest body as sent. */
  readonly bodyBytesMax: number
  /** Field of a form that holds the body as JSON. */
  readonly formJsonField: string | undefined
  /** JSONata over the payload that returns one event or a list. */
  readonly events: string | undefined
  readonly contextLookup: ContextLookup | undefined
  /** Absent: duplicates are not recognised. */
  readonly dedupe: DedupePlan | undefined
  /** To an accepted request. */
  readonly answer: WebhookAnswer
  readonly rateLimit: WebhookRate
  /** Keys of `update_context` that are stored encrypted. */
  readonly secretContext: ReadonlySet<string>
  /** Whether a handshake may ask for a request to this host, in lower case. */
  isVerificationHost(host: string): boolean
  readonly readProviderTime: ReadTime | undefined
}

/** An expression that transforms requests. */
export interface TransformPlan {
  /** JSONata over {body, headers, query, method, path}. */
  readonly expression: string
  /**
   * The members that it may return as those of a request, because it writes them as keys or returns its input. Without `body`
   * every result is the payload: a payload that happens to look like a request is none.
   */
  readonly members: ReadonlySet<RequestMember>
}

/** A handshake expression, and the only credentials that its input holds: those that it names. */
interface HandshakePlan {
  readonly expression: string
  readonly credentialNames: readonly string[]
}

/** How the receiving account of an environment-level address is found. */
interface ContextLookup {
  /** JSONata over the payload. */
  readonly value: string
  /** Key of the accounts' context. */
  readonly field: string
}

/** How duplicates are recognised. */
export interface DedupePlan {
  /** Alternatives, the first with values wins; each is one id or several parts of one. */
  readonly keys: readonly (readonly ReadValues[])[]
  /** Of requests with an id. */
  readonly windowSeconds: number
  /** Of requests without one, which are recognised by their content. */
  readonly contentWindowSeconds: number
  /** The headers of the content, in lower case: those that anything in the definition reads, and what says how the body is read. */
  readonly headers: ReadonlySet<string> | 'all'
}

/** A token bucket. */
export interface WebhookRate {
  readonly requestsPerSecond: number
  readonly burst: number
}

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
