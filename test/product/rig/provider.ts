import { isJsonObject, type Json, type JsonObject } from '../../../src/foundation/json/index.ts'
import type { GoldenAnswer, GoldenRequest } from '../../unit/engine/catalog/golden-file.ts'
import type { OAuthGoldenFile } from '../../unit/engine/catalog/oauth-requests.ts'
import type { ProviderAnswer, ProviderRequest } from './stand-in.ts'

/** What a provider is played from. */
export interface ProviderScript {
  /** Variables of the override. */
  readonly variables: Readonly<Record<string, string>>
  /** Consent and tokens; absent where the customer enters a key. */
  readonly oauth: OAuthGoldenFile | undefined
  /** Answers of other addresses, by URL without query, or by path alone. */
  readonly answers: Readonly<Record<string, Json>>
  /** Answers of recorded calls, by path. */
  readonly recorded: Readonly<Record<string, Json>>
  /** The path of a request whose answer does not matter: the verification of a key. */
  readonly verificationPath: string | undefined
  /** Public keys for webhooks, as texts by URL. */
  readonly documents: Readonly<Record<string, string>>
  /** Applied to the text of every answer. */
  readonly adapt: (text: string) => string
}

const CLIENT_OF_GOLDEN = { CLIENT_ID: 'the-client', CLIENT_SECRET: 'the-secret' } as const
const TOKEN_KEYS: ReadonlySet<string> = new Set(['access_token', 'refresh_token', 'token'])

/**
 * A third party: issues tokens to the right client alone, ends the whole grant of a customer when one of its tokens is revoked, and
 * answers calls as recorded.
 */
export class Provider {
  readonly #script: ProviderScript
  readonly #calls: GoldenAnswer[] = []
  #serial = 0
  #isRevoked = false
  /** All requests, in order. */
  readonly requests: ProviderRequest[] = []
  /** Requests that nothing in the script answers, and those with the wrong client. */
  readonly complaints: string[] = []

  constructor(script: ProviderScript) {
    this.#script = script
  }

  /** The text that every token of the last answer of the token endpoint ends with; empty: none was issued. */
  get tokenMark(): string {
    return this.#serial === 0 ? '' : `.t${this.#serial}.`
  }

  /** Whether the grant was revoked. */
  get isRevoked(): boolean {
    return this.#isRevoked
  }

  /** Answers the next requests that are not about tokens, one each. */
  script(...answers: readonly GoldenAnswer[]): void {
    this.#calls.splice(0, this.#calls.length, ...answers)
  }

  answer(request: ProviderRequest): ProviderAnswer {
    this.requests.push(request)
    return this.#tokenAnswer(request) ?? this.#apiAnswer(request)
  }

  #tokenAnswer(request: ProviderRequest): ProviderAnswer | undefined {
    const { oauth } = this.#script
    if (oauth === undefined) return undefined
    if (oauth.revoke !== undefined && isFor(request, oauth.revoke) && !isCallWithIt(oauth, request)) {
      this.#isRevoked = true
      return this.#json({})
    }
    if (oauth.request_token !== undefined && isFor(request, oauth.request_token))
      return { body: oauth.request_token_answer ?? '' }
    if (oauth.extend !== undefined && isFor(request, oauth.extend))
      return this.#token(request, oauth.extend, oauth.extend_answer)
    if (isFor(request, oauth.exchange)) return this.#token(request, oauth.exchange, oauth.answer)
    if (oauth.refresh !== undefined && isFor(request, oauth.refresh))
      return this.#token(request, oauth.refresh, oauth.extend_answer ?? oauth.answer)
    return undefined
  }

  #token(request: ProviderRequest, golden: GoldenRequest, answer: OAuthGoldenFile['answer'] = {}): ProviderAnswer {
    const shown = JSON.stringify(golden)
    for (const [name, value] of Object.entries(CLIENT_OF_GOLDEN)) {
      const given = this.#script.variables[name] ?? ''
      if (!shown.includes(value) || request.text.includes(given)) continue
      this.complaints.push(`${request.url.pathname} without ${name}`)
      return this.#json({ error: 'invalid_client' }, 401)
    }
    if (this.#isRevoked) return this.#json({ error: 'invalid_grant' }, 400)
    this.#serial += 1
    if (typeof answer === 'string') return { headers: { 'content-type': 'text/plain' }, body: this.#adapted(answer) }
    return this.#json(marked(answer, this.tokenMark))
  }

  #apiAnswer(request: ProviderRequest): ProviderAnswer {
    const { oauth, answers, recorded, verificationPath, documents } = this.#script
    const document = documents[request.url.href]
    if (document !== undefined) return { body: document }
    if (this.#isRevoked) return this.#json({ error: 'the grant was revoked' }, 401)
    const scripted = this.#calls.shift()
    if (scripted !== undefined) return this.#recorded(scripted)
    const { origin, pathname } = request.url
    const known = answers[origin + pathname] ?? answers[pathname]
    if (known !== undefined) return typeof known === 'string' ? { body: this.#adapted(known) } : this.#json(known)
    if (oauth?.identity_request !== undefined && pathname === pathOf(this.#adapted(oauth.identity_request.url)))
      return this.#json(oauth.identity_answer ?? {})
    const call = recorded[pathname]
    if (call !== undefined) return this.#json(call)
    if (verificationPath !== undefined && pathname.endsWith(verificationPath)) return this.#json({})
    this.complaints.push(`unexpected ${request.method} ${request.url}`)
    return this.#json({ message: 'not found' }, 404)
  }

  #recorded({ status = 200, headers = {}, json, text, base64 }: GoldenAnswer): ProviderAnswer {
    if (json !== undefined) {
      const answer = this.#json(json, status)
      return { ...answer, headers: { ...answer.headers, ...this.#adaptedHeaders(headers) } }
    }
    const body = base64 === undefined ? this.#adapted(text ?? '') : Buffer.from(base64, 'base64')
    return { status, headers: this.#adaptedHeaders(headers), body }
  }

  #json(value: Json, status = 200): ProviderAnswer {
    return {
      status,
      headers: { 'content-type': 'application/json' },
      body: this.#adapted(JSON.stringify(value)),
    }
  }

  #adapted(text: string): string {
    return this.#script.adapt(text)
  }

  #adaptedHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
    return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, this.#adapted(value)]))
  }
}

function isFor({ method, url }: ProviderRequest, golden: GoldenRequest): boolean {
  const wanted = new URL(golden.url)
  return method === golden.method && url.host === wanted.host && url.pathname === wanted.pathname
}

/** Some revoke at the address of an ordinary call. */
function isCallWithIt({ revoke, identity_request: identity }: OAuthGoldenFile, { method }: ProviderRequest): boolean {
  return revoke?.url === identity?.url && revoke?.method === method
}

function pathOf(url: string): string {
  return new URL(url).pathname
}

/** The answer of a token endpoint with other tokens. */
function marked(answer: JsonObject, mark: string): JsonObject {
  return Object.fromEntries(
    Object.entries(answer).map(([key, value]) => {
      if (typeof value === 'string' && TOKEN_KEYS.has(key)) return [key, value + mark]
      if (isJsonObject(value)) return [key, marked(value, mark)]
      return [key, value]
    }),
  )
}
