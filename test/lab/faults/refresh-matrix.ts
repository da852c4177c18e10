/**
 * Every kind of answer that a token endpoint gives to a refresh, over real sockets, each for an account of its own; about half
 * a minute. Of each account it is known what its status, its stored refresh token and the response to the call must be; and an
 * account whose grant is intact must work again as soon as the token endpoint does.
 */

import type { ServerResponse } from 'node:http'
import { reportAtLeast, reportAtMost } from '../bench/support/report.ts'
import { RefreshCluster } from './support/refresh-cluster.ts'
import { sendJson, startTokenEndpoint } from './support/token-endpoint.ts'

/** `refreshed`: a new token is stored. `kept`: the account stays active with its old token. `rejected`: it needs the customer. */
type Effect = 'refreshed' | 'kept' | 'rejected'

const HTML = '<!doctype html><title>Sorry</title>'
const LARGE_BYTES = 20 * 1024 * 1024
const granted = (more: object = {}) => ({
  access_token: 'new',
  refresh_token: 'new-refresh',
  expires_in: 3600,
  ...more,
})
const json =
  (status: number, body: object, headers = {}) =>
  (response: ServerResponse) =>
    sendJson(response, status, body, headers)
const raw =
  (status: number, type: string, body: string, headers = {}) =>
  (response: ServerResponse) =>
    void response.writeHead(status, { 'content-type': type, ...headers }).end(body)

const KINDS: readonly (readonly [name: string, effect: Effect, answer: (response: ServerResponse) => void])[] = [
  ['json', 'refreshed', json(200, granted())],
  ['status-201', 'refreshed', json(201, granted())],
  ['json-as-text', 'refreshed', raw(200, 'text/plain', JSON.stringify(granted()))],
  [
    'form',
    'refreshed',
    raw(200, 'application/x-www-form-urlencoded', 'access_token=new&refresh_token=new-refresh&expires_in=3600'),
  ],
  ['expiry-as-text', 'refreshed', json(200, granted({ expires_in: '3600' }))],
  ['no-expiry', 'refreshed', json(200, { access_token: 'new', refresh_token: 'new-refresh' })],
  ['no-token-type', 'refreshed', json(200, granted({ token_type: null }))],
  ['invalid-grant', 'rejected', json(400, { error: 'invalid_grant' })],
  ['invalid-grant-401', 'rejected', json(401, { error: 'invalid_grant' })],
  ['invalid-grant-200', 'rejected', json(200, { error: 'invalid_grant' })],
  ['invalid-grant-form', 'rejected', raw(400, 'text/html', 'error=invalid_grant&error_description=gone')],
  ['access-denied', 'rejected', json(403, { error: 'access_denied' })],
  ['consent-required', 'rejected', json(400, { error: 'consent_required' })],
  ['invalid-client', 'kept', json(401, { error: 'invalid_client' })],
  ['invalid-scope', 'kept', json(400, { error: 'invalid_scope' })],
  ['not-found', 'kept', raw(404, 'text/html', HTML)],
  ['redirect', 'kept', raw(302, 'text/html', HTML, { location: 'https://login.example.com/' })],
  ['too-many-requests', 'kept', json(429, { error: 'slow_down' }, { 'retry-after': '1' })],
  ['unavailable-html', 'kept', raw(503, 'text/html', HTML)],
  ['server-error-invalid-grant', 'kept', json(500, { error: 'invalid_grant' })],
  ['temporarily-unavailable', 'kept', json(400, { error: 'temporarily_unavailable' })],
  ['firewall-page', 'kept', raw(403, 'text/html', HTML)],
  ['login-page', 'kept', raw(200, 'text/html', HTML)],
  ['empty', 'kept', raw(200, 'application/json', '')],
  ['no-token', 'kept', json(200, { ok: true })],
  ['truncated-json', 'kept', raw(200, 'application/json', '{"access_token":"new","refr')],
  ['too-large', 'kept', raw(200, 'application/json', `{"access_token":"${'x'.repeat(LARGE_BYTES)}"}`)],
  ['connection-reset', 'kept', (response) => void response.destroy()],
  ['stalled-body', 'kept', (response) => void response.writeHead(200, { 'content-length': '50' }).write('{"access_')],
]

const STATUS: Readonly<Record<Effect, string>> = { refreshed: 'active', kept: 'active', rejected: 'needs_reauth' }
const OK = 200

async function matrix(): Promise<void> {
  const answers = new Map(KINDS.map(([name, , answer]) => [name, answer]))
  let isRepaired = false
  await using endpoint = await startTokenEndpoint((refreshToken, response) => {
    const answer = isRepaired ? undefined : answers.get(refreshToken)
    return answer === undefined ? sendJson(response, 200, granted()) : answer(response)
  })
  await using cluster = await RefreshCluster.start(1, endpoint)
  const [server] = cluster.servers
  if (server === undefined) throw new Error('no server was started')
  const accounts = new Map<string, string>()
  for (const [name] of KINDS) accounts.set(name, await cluster.addAccount(name))

  const wrong: string[] = []
  await Promise.all(
    KINDS.map(async ([name, effect]) => {
      const id = accounts.get(name) ?? ''
      const { status } = await cluster.call(server, id)
      wrong.push(...(await differences(cluster, id, name, effect)))
      if ((status === OK) !== (effect === 'refreshed')) wrong.push(`${name}: the call was answered ${status}`)
    }),
  )

  isRepaired = true
  const unrepaired: string[] = []
  for (const [name, effect] of KINDS) {
    const id = accounts.get(name) ?? ''
    if (effect !== 'kept') continue
    await cluster.refresh(id)
    unrepaired.push(...(await differences(cluster, id, name, 'refreshed')))
  }
  for (const line of [...wrong, ...unrepaired]) process.stderr.write(`${line}\n`)
  reportAtLeast('refresh-matrix/kinds', KINDS.length, 'kinds', 20)
  reportAtMost('refresh-matrix/wrong-states', wrong.length, 'states', 0)
  reportAtMost('refresh-matrix/not-repaired', unrepaired.length, 'states', 0)
}

async function differences(
  cluster: RefreshCluster,
  id: string,
  name: string,
  effect: Effect,
): Promise<readonly string[]> {
  const { status, last_error } = await cluster.show(id)
  const { fields } = await cluster.storedToken(id)
  const refreshToken = effect === 'refreshed' ? 'new-refresh' : name
  return [
    ...(status === STATUS[effect] ? [] : [`${name}: the account is ${status} (${last_error})`]),
    ...(fields.refresh_token === refreshToken ? [] : [`${name}: the refresh token is ${fields.refresh_token}`]),
  ]
}

await matrix()
