import { createHash } from 'node:crypto'
import { z } from 'zod'
import { Failure } from '../../../foundation/base/index.ts'
import { compileTemplate, renderText } from '../../expressions/template.ts'
import { withSchema } from '../format.ts'
import { secretText, templateText } from '../schema-types.ts'
import {
  type AuthorizationEffect,
  type AuthorizationFormat,
  type Challenge,
  NO_AUTHORIZATION,
  type UnauthorizedRequest,
} from './authorization.ts'

const config = z.strictObject({
  username: templateText().describe('The user name.'),
  password: secretText().describe('The password, which is never sent.'),
})

/** Hash functions by their name in a challenge. */
const ALGORITHMS: Readonly<Record<string, string>> = { MD5: 'md5', 'SHA-256': 'sha256', 'SHA-512-256': 'sha512-256' }

/** `digest`: RFC 7616. The first request of a call is sent without credentials, for the challenge. */
export const digest: AuthorizationFormat = {
  format: 'digest',
  summary:
    'Answers the challenge of a `401` with `WWW-Authenticate: Digest …` (MD5, SHA-256, SHA-512-256, `auth` and `auth-int`). Bodies that are streamed cannot be sent twice.',
  config,
  compile: withSchema(config, ({ username, password }) => {
    const user = compileTemplate(username)
    const secret = compileTemplate(password)
    const authorize: ReturnType<AuthorizationFormat['compile']> = (request, scope, { challenge, nonce }) => {
      const credentials = { username: renderText(user, scope), password: renderText(secret, scope) }
      return challenge === undefined ? NO_AUTHORIZATION : answer(request, challenge, credentials, nonce())
    }
    return Object.assign(authorize, { answersChallenge: (header: string) => readChallenge(header) !== undefined })
  }),
}

interface DigestChallenge {
  readonly realm: string
  readonly nonce: string
  readonly opaque: string | undefined
  /** As it was written; absent: MD5. */
  readonly algorithm: string | undefined
  readonly hash: string
  readonly isSession: boolean
  /** Absent: the server knows none (RFC 2069). */
  readonly qop: 'auth' | 'auth-int' | undefined
  readonly hashesUser: boolean
}

function answer(
  { method, url, body = '' }: UnauthorizedRequest,
  { header, count }: Challenge,
  { username, password }: { readonly username: string; readonly password: string },
  cnonce: string,
): AuthorizationEffect {
  const found = readChallenge(header)
  if (found === undefined)
    throw new Failure('UPSTREAM_INVALID_RESPONSE', 'the challenge of the upstream has no known algorithm')
  const { realm, nonce, opaque, algorithm, hash, isSession, qop, hashesUser } = found
  const digestOf = (text: string | Uint8Array) => createHash(hash).update(text).digest('hex')
  const { pathname, search } = new URL(url)
  const uri = `${pathname}${search}`
  const nc = count.toString(16).padStart(8, '0')
  const account = digestOf(`${username}:${realm}:${password}`)
  const secret = isSession ? digestOf(`${account}:${nonce}:${cnonce}`) : account
  const request = digestOf(qop === 'auth-int' ? `${method}:${uri}:${digestOf(body)}` : `${method}:${uri}`)
  const middle = qop === undefined ? nonce : `${nonce}:${nc}:${cnonce}:${qop}`
  const fields = [
    ...userField(username, hashesUser ? digestOf(`${username}:${realm}`) : undefined),
    ['realm', quoted(realm)],
    ['nonce', quoted(nonce)],
    ['uri', quoted(uri)],
    ...(algorithm === undefined ? [] : [['algorithm', algorithm]]),
    ...(qop === undefined && !isSession ? [] : [['cnonce', quoted(cnonce)]]),
    ...(qop === undefined
      ? []
      : [
          ['qop', qop],
          ['nc', nc],
        ]),
    ['response', quoted(digestOf(`${secret}:${middle}:${request}`))],
    ...(opaque === undefined ? [] : [['opaque', quoted(opaque)]]),
    ...(hashesUser ? [['userhash', 'true']] : []),
  ]
  return { headers: { authorization: `Digest ${fields.map((pair) => pair.join('=')).join(', ')}` }, query: {} }
}

/** A name that no quoted text can hold is sent as `username*` (RFC 8187). */
function userField(username: string, hashed: string | undefined): string[][] {
  if (hashed !== undefined) return [['username', quoted(hashed)]]
  if (/^[\x20-\x7e]*$/.test(username)) return [['username', quoted(username)]]
  return [['username*', `UTF-8''${encodeURIComponent(username).replace(/['()*]/g, percentEncoded)}`]]
}

function percentEncoded(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`
}

function quoted(text: string): string {
  return `"${text.replace(/["\\]/g, '\\$&')}"`
}

/** The first challenge that is understood: servers name the one they prefer first. */
function readChallenge(header: string): DigestChallenge | undefined {
  return splitChallenges(header)
    .map(toChallenge)
    .find((challenge) => challenge !== undefined)
}

function toChallenge(parameters: ReadonlyMap<string, string>): DigestChallenge | undefined {
  const nonce = parameters.get('nonce')
  const algorithm = parameters.get('algorithm')
  const [, name = '', session = ''] = /^(.*?)(-sess)?$/i.exec((algorithm ?? 'MD5').toUpperCase()) ?? []
  const hash = ALGORITHMS[name]
  const offered =
    parameters
      .get('qop')
      ?.toLowerCase()
      .split(/[\s,]+/) ?? []
  const qop = (['auth', 'auth-int'] as const).find((each) => offered.includes(each))
  if (nonce === undefined || hash === undefined || (qop === undefined && parameters.has('qop'))) return undefined
  return {
    realm: parameters.get('realm') ?? '',
    nonce,
    opaque: parameters.get('opaque'),
    algorithm,
    hash,
    isSession: session !== '',
    qop,
    hashesUser: parameters.get('userhash')?.toLowerCase() === 'true',
  }
}

const SCHEME = /([\w!#$%&'*+.^`|~-]+)(?:\s+|$)(?!=)/y
const PARAMETER = /\s*,?\s*([\w!#$%&'*+.^`|~-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]*))/y

/** The parameters of each `Digest` challenge of the header, which may hold those of other schemes (RFC 9110 §11.6.1). Linear. */
function splitChallenges(header: string): readonly ReadonlyMap<string, string>[] {
  const challenges: Map<string, string>[] = []
  let current: Map<string, string> | undefined
  for (let at = 0; at < header.length; ) {
    const parameter = matchAt(PARAMETER, header, at)
    if (parameter !== null) {
      const [text, name = '', inQuotes, bare = ''] = parameter
      current?.set(name.toLowerCase(), inQuotes === undefined ? bare : inQuotes.replace(/\\(.)/g, '$1'))
      at += text.length
      continue
    }
    const scheme = matchAt(SCHEME, header, at)
    if (scheme !== null) {
      current = scheme[1]?.toLowerCase() === 'digest' ? new Map() : undefined
      if (current !== undefined) challenges.push(current)
    }
    at += scheme?.[0].length ?? 1
  }
  return challenges
}

function matchAt(sticky: RegExp, text: string, position: number): RegExpExecArray | null {
  sticky.lastIndex = position
  return sticky.exec(text)
}
