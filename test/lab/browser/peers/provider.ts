import { createHash, randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { escapeHtml, htmlReply, jsonReply, listen, type Peer, type Reply, readBody, send } from './listen.ts'

/** How an instance of the provider behaves; the first part of its paths. */
export const PROFILES = [
  /** Consent with Allow and Deny, code in the query. */
  'plain',
  /** Its pages send Cross-Origin-Opener-Policy: same-origin. */
  'coop',
  /** The code comes in a form posted from its own page. */
  'form-post',
  /** Shows an error page instead of the consent. */
  'error-page',
  /** Comes back with error=server_error. */
  'server-error',
  /** Comes back with the issuer of somewhere else. */
  'wrong-issuer',
  /** Its token endpoint answers 400. */
  'no-token',
  /** The token lacks a scope that was asked for. */
  'fewer-scopes',
  /** Every call with the token answers 403. */
  'forbidden',
  /** Calls with the token take SLOW_MS. */
  'slow',
  /** Calls with the token wait for release(). */
  'held',
  /** Two accounts: the consent page asks which. */
  'accounts',
] as const
export type Profile = (typeof PROFILES)[number]

export const SLOW_MS = 2_500
/** The key that the provider accepts. */
export const RIGHT_KEY = 'key_right_5bX2mQpL0s'
export const WRONG_KEY = 'key_wrong_Zt81nVqa3e'
export const CLIENT = { id: 'browser-test-client', secret: 'client_secret_9vK3xW7hRn' } as const
const WORKSPACES = Array.from({ length: 45 }, (_, index) => ({ id: `w${index + 1}`, name: `Workspace ${index + 1}` }))
const LOGO =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 40"><path d="M20 2 38 38H2Z" fill="#c2410c"/></svg>'
const PAGE_SIZE_MAX = 20

export interface Provider extends Peer {
  /** Codes, tokens and keys that the provider issued or received, by kind. */
  readonly secrets: readonly { readonly kind: string; readonly value: string }[]
  /** How often a code reached the token endpoint. */
  exchangesOf(code: string): number
  /** A key that is accepted until it is revoked. */
  issueKey(): string
  revokeKey(key: string): void
  /** Answers the calls that wait. */
  release(): void
  /** False: token requests and calls are answered 503. */
  setReachable(isReachable: boolean): void
}

interface Grant {
  readonly scope: string
  readonly challenge: string | null
  readonly redirectUri: string
  readonly account: string
}

/** An OAuth 2 provider with an API, on one port; each profile is a provider of its own under its path. */
export async function startProvider(host: 'localhost' | '127.0.0.1' = 'localhost'): Promise<Provider> {
  const secrets: { kind: string; value: string }[] = []
  const grants = new Map<string, Grant>()
  const accountOfToken = new Map([[RIGHT_KEY as string, 'acme']])
  const exchanged: string[] = []
  let isReachable = true
  let held = Promise.withResolvers<void>()
  const issue = (kind: string): string => {
    const value = `${kind}_${randomBytes(18).toString('base64url')}`
    secrets.push({ kind, value })
    return value
  }

  async function replyTo(request: IncomingMessage): Promise<Reply> {
    const url = new URL(request.url ?? '/', 'http://peer')
    const [, profile = '', action = ''] = url.pathname.split('/')
    if (!isProfile(profile)) return { status: 404 }
    if (action === 'authorize') return showConsent(profile, url.searchParams)
    if (action === 'decide') return decide(profile, await readForm(request))
    if (action === 'token') return answerToken(profile, await readForm(request))
    if (action === 'revoke') return { status: 200 }
    if (action === 'logo.svg') return { status: 200, headers: { 'content-type': 'image/svg+xml' }, body: LOGO }
    return await answerCall(profile, action, url.searchParams, request)
  }

  function decide(profile: Profile, form: URLSearchParams): Reply {
    const redirectUri = form.get('redirect_uri') ?? ''
    const back: Record<string, string> = { state: form.get('state') ?? '' }
    if (form.get('decision') === 'deny') back.error = 'access_denied'
    else {
      const [scope = '', challenge] = [form.get('scope') ?? '', form.get('code_challenge')]
      back.code = issue('code')
      grants.set(back.code, { scope, challenge, redirectUri, account: form.get('account') ?? 'acme' })
    }
    return sendBack(profile, redirectUri, back)
  }

  function answerToken(profile: Profile, form: URLSearchParams): Reply {
    if (!isReachable) return jsonReply(503, { message: 'Down for maintenance.' })
    const isExchange = form.get('grant_type') === 'authorization_code'
    if (isExchange) exchanged.push(form.get('code') ?? '')
    const verifier = form.get('code_verifier')
    if (verifier !== null) secrets.push({ kind: 'verifier', value: verifier })
    const grant = grants.get(form.get('code') ?? '')
    grants.delete(form.get('code') ?? '')
    const isProved = typeof grant?.challenge !== 'string' || grant.challenge === challengeOf(verifier ?? '')
    if (profile === 'no-token' || (isExchange && (grant === undefined || !isProved)))
      return jsonReply(400, { error: 'invalid_grant', error_description: 'The code cannot be used.' })
    const access_token = issue('access')
    accountOfToken.set(access_token, grant?.account ?? 'acme')
    const scope = profile === 'fewer-scopes' ? grant?.scope.split(' ').slice(0, -1).join(' ') : grant?.scope
    return jsonReply(200, {
      access_token,
      token_type: 'Bearer',
      expires_in: 3600,
      refresh_token: issue('refresh'),
      ...(scope === undefined ? {} : { scope }),
    })
  }

  async function answerCall(
    profile: Profile,
    action: string,
    query: URLSearchParams,
    request: IncomingMessage,
  ): Promise<Reply> {
    if (profile === 'slow') await new Promise((resolve) => setTimeout(resolve, SLOW_MS))
    if (profile === 'held') await held.promise
    if (!isReachable) return jsonReply(503, { message: 'Down for maintenance.' })
    const token = request.headers.authorization?.replace(/^Bearer /, '') ?? ''
    const account = accountOfToken.get(token)
    if (account === undefined) return jsonReply(401, { message: 'Unknown key.' })
    if (profile === 'forbidden') return jsonReply(403, { message: 'This plan has no API.' })
    if (action === 'me') return jsonReply(200, { id: account, name: `Account ${account}` })
    if (action === 'workspaces') return jsonReply(200, workspacePage(query))
    if (action === 'projects') return jsonReply(200, projectPage(query))
    return jsonReply(404, { message: 'Not found.' })
  }

  const peer = await listen(async (request, response) => send(response, await replyTo(request)), host)
  return {
    ...peer,
    secrets,
    exchangesOf: (code) => exchanged.filter((each) => each === code).length,
    issueKey: () => {
      const key = issue('key')
      accountOfToken.set(key, 'acme')
      return key
    },
    revokeKey: (key) => accountOfToken.delete(key),
    release: () => {
      held.resolve()
      held = Promise.withResolvers()
    },
    setReachable: (value) => {
      isReachable = value
    },
  }
}

function isProfile(text: string): text is Profile {
  return PROFILES.some((profile) => profile === text)
}

async function readForm(request: IncomingMessage): Promise<URLSearchParams> {
  return new URLSearchParams(await readBody(request))
}

function challengeOf(verifier: string): string {
  return createHash('sha256').update(verifier).digest('base64url')
}

function showConsent(profile: Profile, query: URLSearchParams): Reply {
  if (profile === 'error-page') return htmlReply(400, '<h1>invalid_redirect_uri</h1>')
  const redirectUri = query.get('redirect_uri') ?? ''
  const state = query.get('state') ?? ''
  if (profile === 'server-error') {
    const error = { state, error: 'server_error', error_description: 'Try later <b>please</b>' }
    return sendBack(profile, redirectUri, error)
  }
  const hidden = ['redirect_uri', 'state', 'scope', 'code_challenge']
    .flatMap((name) => (query.has(name) ? [[name, query.get(name) ?? ''] as const] : []))
    .map(([name, value]) => hiddenInput(name, value))
  const accounts =
    profile === 'accounts' ? '<select name="account"><option>acme</option><option>other</option></select>' : ''
  const headers = profile === 'coop' ? { 'cross-origin-opener-policy': 'same-origin' } : {}
  return htmlReply(
    200,
    `<h1>Allow access?</h1><form method="post" action="decide">${hidden.join('')}${accounts}
     <button name="decision" value="allow">Allow</button> <button name="decision" value="deny">Deny</button></form>`,
    headers,
  )
}

function hiddenInput(name: string, value: string): string {
  return `<input type="hidden" name="${name}" value="${escapeHtml(value)}">`
}

function sendBack(profile: Profile, redirectUri: string, parameters: Readonly<Record<string, string>>): Reply {
  const all = profile === 'wrong-issuer' ? { ...parameters, iss: 'https://elsewhere.example' } : parameters
  if (profile === 'form-post') {
    const inputs = Object.entries(all).map(([name, value]) => hiddenInput(name, value))
    const script = '<script>document.forms[0].submit()</script>'
    return htmlReply(
      200,
      `<form method="post" action="${escapeHtml(redirectUri)}">${inputs.join('')}<button>Continue</button></form>${script}`,
    )
  }
  const target = new URL(redirectUri)
  for (const [name, value] of Object.entries(all)) target.searchParams.set(name, value)
  return { status: 302, headers: { location: target.href } }
}

function workspacePage(query: URLSearchParams): object {
  const text = (query.get('q') ?? '').toLowerCase()
  const found = WORKSPACES.filter(({ name }) => name.toLowerCase().includes(text))
  const start = Number(query.get('cursor') ?? '0')
  const end = start + Math.min(Number(query.get('limit') ?? PAGE_SIZE_MAX), PAGE_SIZE_MAX)
  return { data: found.slice(start, end), next: end < found.length ? String(end) : null }
}

function projectPage(query: URLSearchParams): object {
  const workspace = query.get('workspace') ?? ''
  const data = [1, 2, 3].map((number) => ({ id: `${workspace}-p${number}`, name: `Project ${number} of ${workspace}` }))
  return { data, next: null }
}
