import { describe, expect, it } from 'vitest'
import type { TokenSet } from '../../../../src/engine/formats/index.ts'
import { isJsonObject, type Json, type JsonObject } from '../../../../src/foundation/json/index.ts'
import { consentFixture, grantOf, NOW, STATE } from './consent-fixture.ts'
import { ADDRESS_ROWS, type ConsentRow, EXCHANGE_ROWS } from './rows/consent.ts'
import { PENDING_ROW, REFRESH_ROWS, RESPONSE_ROWS, RETURN_ROWS, REVOCATION_ROWS } from './rows/consent-response.ts'

const fixture = await consentFixture()
const { upstream } = fixture

/** The value with the address of the third party, which rows write as `{{env.HOST}}`. */
function withHost<Value extends JsonObject | undefined>(value: Value): Value {
  const fill = (item: Json): Json =>
    isJsonObject(item)
      ? Object.fromEntries(Object.entries(item).map(([key, each]) => [key, fill(each)]))
      : item === '{{env.HOST}}'
        ? upstream.url
        : item
  return value === undefined ? value : (fill(value) as Value)
}

function expectToken(token: TokenSet, expected: NonNullable<ConsentRow['granted']>): void {
  const lifetime = token.expiresAt === undefined ? null : (token.expiresAt.getTime() - NOW.getTime()) / 1_000
  if (expected.access !== undefined) expect(token.accessToken).toBe(expected.access)
  if (expected.refresh !== undefined) expect(token.refreshToken).toBe(expected.refresh)
  if (expected.lifetime !== undefined) expect(lifetime).toBe(expected.lifetime)
}

function expectAddress(url: string, { address, params = {}, absent = [], written }: ConsentRow): void {
  const { searchParams } = new URL(url)
  const inFragment = new URLSearchParams(url.split('?').slice(1).join('?').split('#')[0])
  if (address !== undefined) expect(url.split('?')[0]).toBe(upstream.url + address)
  const all = Object.fromEntries([...inFragment, ...searchParams])
  expect(all).toMatchObject(params)
  for (const name of absent) expect(all).not.toHaveProperty(name)
  if (written !== undefined) expect(url).toContain(written)
}

describe.each([
  ['the consent page has', ADDRESS_ROWS],
  ['the exchange has', EXCHANGE_ROWS],
  ['the response has', RESPONSE_ROWS],
  ['the redirect has', RETURN_ROWS],
  ['a refresh has', REFRESH_ROWS],
  ['a revocation has', REVOCATION_ROWS],
] as const)('%s', (_what, rows) => {
  it.each(rows)('$quirk', async (row) => {
    upstream.script(...(row.exchange ?? []))
    const begun = await fixture.begin(row)
    expectAddress(begun.url, row)
    const returned = withHost(row.returned as JsonObject | undefined) ?? { code: 'the-code', state: STATE }
    const result = await fixture.complete(row, returned as Record<string, string>, begun.secrets)
    if (row.failed !== undefined) {
      const [code, message] = row.failed
      expect(result).toMatchObject({ kind: 'failed', code, message: expect.stringContaining(message) })
      return
    }
    const { token, context, missingScopes } = grantOf(result)
    expectToken(token, row.granted ?? {})
    if (row.granted?.context !== undefined) expect(context).toEqual(withHost(row.granted.context))
    if (row.granted?.missing !== undefined) expect(missingScopes).toEqual(row.granted.missing)
    await expectRefresh(row, token)
    await expectRevocation(row, token)
  })
})

it(`waits for ${PENDING_ROW.quirk}`, async () => {
  const { secrets } = await fixture.begin(PENDING_ROW)
  const waiting = await fixture.complete(PENDING_ROW, PENDING_ROW.returned ?? {}, secrets)
  expect(waiting).toEqual({ kind: 'pending', context: { installation_id: '5' } })
  upstream.script({ request: 'POST /token', answer: { json: { access_token: 'access-1' } } })
  const returned = { code: 'the-code', state: STATE, setup_action: 'install' }
  expect(grantOf(await fixture.complete(PENDING_ROW, returned, secrets)).token.accessToken).toBe('access-1')
})

async function expectRefresh(row: ConsentRow, token: TokenSet): Promise<void> {
  if (row.refresh === undefined) return
  upstream.script(...row.refresh)
  const result = await fixture.refresh(row, token)
  if (result.kind !== 'granted') throw new Error(`no token: ${JSON.stringify(result)}`)
  expectToken(result.token, row.refreshed ?? {})
}

async function expectRevocation(row: ConsentRow, token: TokenSet): Promise<void> {
  if (row.revoke === undefined) return
  upstream.script(...row.revoke)
  const result = await fixture.revoke(row, token)
  if (row.revoked === undefined) expect(result).toBeUndefined()
  else expect(result).toMatchObject(row.revoked)
}
