import { isProxyCommand, suggestOneOf } from '../../foundation/base/index.ts'
import type { Json } from '../../foundation/json/index.ts'
import { listWrittenMembers } from '../expressions/object-keys.ts'

/** An answer to the third party. */
export interface WebhookAnswer {
  /** HTTP status. */
  readonly status: number
  readonly body: string
  /** By lower-case name; always with a content type. */
  readonly headers: Readonly<Record<string, string>>
}

/** Longest body of an answer, in bytes. */
export const ANSWER_BYTES_MAX = 64 * 1024
/** Most headers of an answer, and most characters of a value. */
const ANSWER_HEADERS_MAX = 64
const VALUE_LENGTH_MAX = 4_096

const CONNECTION = 'it belongs to the connection'
const FRAMING = 'it describes how the body is sent'
const WHOLE_HOST = 'it concerns everything at this host'
const COMMAND = 'it commands a proxy in front of this host'
const SANDBOXED = 'every answer has one, by which it is no page'

/** Headers that an answer may not set, by lower-case name, with the reason. */
const LEFT_OUT: Readonly<Record<string, string>> = {
  connection: CONNECTION,
  'keep-alive': CONNECTION,
  'proxy-authenticate': CONNECTION,
  'proxy-authorization': CONNECTION,
  'proxy-connection': CONNECTION,
  te: CONNECTION,
  trailer: CONNECTION,
  'transfer-encoding': CONNECTION,
  upgrade: CONNECTION,
  'content-encoding': FRAMING,
  'content-length': FRAMING,
  'content-range': FRAMING,
  'alt-svc': WHOLE_HOST,
  'clear-site-data': WHOLE_HOST,
  'content-security-policy': SANDBOXED,
  cookie: WHOLE_HOST,
  nel: WHOLE_HOST,
  'public-key-pins': WHOLE_HOST,
  'report-to': WHOLE_HOST,
  'service-worker-allowed': WHOLE_HOST,
  'set-cookie': WHOLE_HOST,
  'set-cookie2': WHOLE_HOST,
  'strict-transport-security': WHOLE_HOST,
}

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/
const VALUE = /^[\t\x20-\x7e]*$/

/** Why an answer leaves out a header of that name, worded to follow the name; `undefined` for one that it may set. */
function findAnswerHeaderProblem(name: string): string | undefined {
  if (!TOKEN.test(name)) return 'is left out: it is no name of a header'
  const lower = name.toLowerCase()
  const reason = isProxyCommand(lower) ? COMMAND : Object.hasOwn(LEFT_OUT, lower) ? LEFT_OUT[lower] : undefined
  return reason === undefined ? undefined : `is left out: ${reason}`
}

/** Whether a text can be the value of a header of an answer. */
export function isAnswerHeaderValue(text: string): boolean {
  return text.length <= VALUE_LENGTH_MAX && VALUE.test(text)
}

/** The headers that an answer may set, and what is left out, for people: `set-cookie is left out: …`. */
export function pickAnswerHeaders<Value>(headers: Readonly<Record<string, Value>>): {
  readonly headers: Readonly<Record<string, Value>>
  readonly leftOut: readonly string[]
} {
  const leftOut: string[] = []
  const picked = Object.entries(headers).filter(([name], index) => {
    const tooMany = index < ANSWER_HEADERS_MAX ? undefined : `is left out: an answer has ${ANSWER_HEADERS_MAX} headers`
    const problem = findAnswerHeaderProblem(name) ?? tooMany
    if (problem !== undefined && leftOut.length < ANSWER_HEADERS_MAX) leftOut.push(`${name.slice(0, 128)} ${problem}`)
    return problem === undefined
  })
  return { headers: Object.fromEntries(picked), leftOut }
}

/** Whether a status ends an exchange: 200 to 599. */
export function isFinalStatus(status: number): boolean {
  return Number.isInteger(status) && status >= 200 && status <= 599
}

/** An answer as a definition writes it, or as a handshake returns it. Headers that may not be set are expected to be gone. */
export function compileAnswer({
  status = 200,
  body,
  headers = {},
}: {
  readonly status?: number | undefined
  readonly body?: Json | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
}): WebhookAnswer {
  const isText = typeof body === 'string'
  const lower = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
  const type = isText ? 'text/plain; charset=utf-8' : 'application/json'
  return {
    status,
    body: isText ? body : JSON.stringify(body ?? {}),
    headers: { 'content-type': type, ...(isText ? { 'x-content-type-options': 'nosniff' } : {}), ...lower },
  }
}

/** The problem of a body as that of an answer, worded to follow the field's name. */
export function findAnswerBodyProblem(body: unknown): string | undefined {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return Buffer.byteLength(text) > ANSWER_BYTES_MAX ? `must have at most ${ANSWER_BYTES_MAX} bytes` : undefined
}

/** The problem of the headers of `response`, worded to follow the field's name. */
export function findAnswerHeadersProblem(headers: Readonly<Record<string, string>>): string | undefined {
  const [leftOut] = pickAnswerHeaders(headers).leftOut
  if (leftOut !== undefined) return `has a header that an answer may not set: ${leftOut}`
  const broken = Object.entries(headers).find(([, value]) => !isAnswerHeaderValue(value))
  return broken === undefined ? undefined : `has a value of ${broken[0]} that no header may have`
}

/** What a `verification_response` may have. */
const ANSWER_MEMBERS = ['status_code', 'body', 'headers']

/** What the answers that `handle_verification` writes out lose or make unusable, as far as the expression says it. */
export function listAnswerProblems(expression: string): readonly string[] {
  const problems = listWrittenMembers(expression).flatMap(({ path: [root, member, name, ...deeper], literal }) => {
    if (root !== 'verification_response' || member === undefined || deeper.length > 0) return []
    if (!ANSWER_MEMBERS.includes(member))
      return [`answers with ${member}, which is not read${suggestOneOf(member, ANSWER_MEMBERS)}`]
    if (member === 'headers' && name !== undefined) {
      const problem = findAnswerHeaderProblem(name)
      return problem === undefined ? [] : [`answers with the header ${name}, which ${problem}`]
    }
    if (member === 'status_code' && literal !== undefined && !isFinalStatus(Number(literal)))
      return [`answers with the status ${literal}, which is not sent: it must be one from 200 to 599`]
    return []
  })
  return [...new Set(problems)]
}
