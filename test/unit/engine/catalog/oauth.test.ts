import { afterAll, describe, expect, test } from 'vitest'
import { SHIPPED_NAMES } from '../../../../src/engine/catalog/index.ts'
import { listCredentials } from '../../../../src/engine/formats/index.ts'
import { getAtPath, isJsonObject, type JsonObject, parseDotPath } from '../../../../src/foundation/json/index.ts'
import { closeEvaluator, OAUTH_GOLDEN_NAMES, readOAuthGoldenFile, redirectPlan, showOAuth } from './oauth-requests.ts'
import { shipped } from './shipped.ts'

afterAll(closeEvaluator)

const NAMES = SHIPPED_NAMES.filter((name) => redirectPlan(name) !== undefined)
const SETTINGS = new Map(NAMES.map((name) => [name, redirectSettings(name)]))

test('every definition with a redirect has a golden file, and no other', () => {
  expect(OAUTH_GOLDEN_NAMES).toEqual(NAMES)
})

test.each(NAMES)('%s sends what its golden file shows', async (name) => {
  const golden = readOAuthGoldenFile(name)
  expect(await showOAuth(name, golden)).toEqual(golden)
})

describe.each(NAMES)('%s', (name) => {
  const golden = readOAuthGoldenFile(name)
  const settings = SETTINGS.get(name) ?? {}

  test('goes to https addresses without a secret in the consent page', () => {
    for (const url of [golden.authorize, golden.exchange.url]) expect(url).toMatch(/^https:\/\//)
    expect(golden.authorize).not.toContain('the-secret')
  })

  test('finds every context key, and the id of the account, in what the provider documents', () => {
    const keys = [
      ...Object.keys(objectAt(settings, 'context_from_token')),
      ...Object.keys(objectAt(settings, 'context_from_redirect')),
    ]
    expect(Object.keys(golden.context ?? {}).sort()).toEqual(keys.sort())
    if (golden.identity !== undefined) expect(golden.identity).not.toBeNull()
  })

  test('links to the documentation that it follows', () => {
    expect(settings.documentation_link).toMatch(/^https:\/\//)
  })
})

/** Where providers depart from the standard: a setting, and whether its value is the unusual one. */
type Quirk = readonly [quirk: string, setting: string, isUnusual?: (value: unknown) => boolean]

const QUIRKS: readonly Quirk[] = [
  ['addresses with account variables', 'auth.tokenHost', (value) => String(value).includes('{{')],
  ['another address for refreshing', 'auth.refreshPath'],
  ['another host for revoking', 'auth.revokeHost'],
  ['an issuer', 'auth.issuer'],
  ['scopes separated by a comma', 'options.scopeSeparator', (value) => value === ','],
  ['scopes separated by a plus that stays one', 'options.scopeSeparator', (value) => value === '+'],
  ['client authentication by HTTP Basic', 'options.authorizationMethod', (value) => value === 'header'],
  ['client authentication by parameters', 'options.authorizationMethod', (value) => value === 'body'],
  ['token requests in JSON', 'options.bodyFormat', (value) => value === 'json'],
  ['token requests in the address', 'options.bodyFormat', (value) => value === 'query'],
  ['token requests by GET', 'token.method', (value) => value === 'GET'],
  ['further headers of token requests', 'tokenHeaders'],
  ['a consent that is asked for again', 'authorizeParams.prompt', (value) => value === 'consent'],
  ['access while the user is offline', 'authorizeParams.access_type'],
  ['an audience', 'authorizeParams.audience'],
  ['a nonce', 'authorizeParams.nonce', (value) => value === '{{random}}'],
  ['another name of the client id', 'authorize.parameter_names.client_id'],
  ['another name of a parameter of token requests', 'token.parameter_names.client_id'],
  ['parameters that are not sent', 'authorize.omit'],
  ['an address of a single-page application', 'auth.authorizePath', (value) => String(value).includes('#')],
  ['the code under another name', 'authorize.code_parameter'],
  ['a code that is encoded twice', 'authorize.decode_code', (value) => value === true],
  ['further parameters of the exchange', 'tokenParams'],
  ['further parameters of the refresh', 'refreshParams'],
  ['another host for refreshing', 'auth.refreshHost'],
  ['an access token that is exchanged for the next one', 'refresh.token', (value) => value === 'access_token'],
  ['a second exchange for a token that lives longer', 'extend'],
  ['granted scopes under another name', 'token_response.scope'],
  ['the end of the token under another name', 'token_response.expires_in'],
  ['context from the token answer', 'context_from_token'],
  ['context from the redirect', 'context_from_redirect'],
  ['no proof key', 'pkce', (value) => value === false],
  ['a lifetime that no answer names', 'tokenExpiryDuration'],
  ['refresh tokens that end unused', 'lifetimes.refresh_token_idle_days'],
  ['grants that end', 'lifetimes.refresh_token_max_days'],
  ['a client secret that ends', 'lifetimes.client_secret_expires_at'],
  ['revocation by another method', 'revoke.method'],
  ['OAuth 1.0a', 'request_token_url'],
  ['signatures by SHA-256', 'signature_method', (value) => value === 'HMAC-SHA256'],
]

const QUIRK_ROWS = QUIRKS.map(([quirk, setting, isUnusual = isGiven]) => [quirk, { setting, isUnusual }] as const)

test.each(QUIRK_ROWS)('at least one definition needs %s', (_quirk, { setting, isUnusual }) => {
  const path = parseDotPath(setting)
  expect(NAMES.filter((name) => isUnusual(getAtPath(SETTINGS.get(name) ?? {}, path)))).not.toEqual([])
})

function isGiven(value: unknown): boolean {
  return value !== undefined
}

/** Settings of the credential format with the redirect. */
function redirectSettings(name: string): JsonObject {
  const format = redirectPlan(name)?.format
  const choice = listCredentials(shipped(name).config.credentials).find((each) => each.format === format)
  return isJsonObject(choice?.config) ? choice.config : {}
}

function objectAt(settings: JsonObject, key: string): JsonObject {
  const value = settings[key]
  return isJsonObject(value) ? value : {}
}
