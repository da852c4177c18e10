import { describe, expect, it } from 'vitest'
import type { TokenSet } from '../../../../src/engine/formats/index.ts'
import { execute } from '../../../../src/foundation/database/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { warnOfReauthorization } from '../../../../src/platform/accounts/reauthorization-warner.ts'
import {
  storeConnectedAccount,
  storeReconnectedAccount,
} from '../../../../src/platform/accounts/store-connected-account.ts'
import { refreshDueTokens } from '../../../../src/platform/accounts/token-refresher.ts'
import { OAUTH2, tokensFixture } from './token-fixture.ts'

const fixture = await tokensFixture()
const { database, tx, own, accountDeps, tokenDeps, server, clock, installed, tokenRow, eventsOf, alterToken } = fixture

const DAY = 24 * 3_600_000
const HOUR_SECONDS = 3_600

/** `OAUTH2` with lifetimes. */
function withLifetimes(lifetimes: JsonObject): JsonObject {
  const { format, config } = OAUTH2.credentials as { format: string; config: JsonObject }
  return { ...OAUTH2, credentials: { format, config: { ...config, lifetimes } } }
}

function granted(more: { readonly expiresIn?: number; readonly hasRefreshToken?: boolean }): TokenSet {
  const { expiresIn, hasRefreshToken = true } = more
  const refreshToken = hasRefreshToken ? 'first-refresh' : undefined
  return {
    accessToken: 'first-token',
    refreshToken,
    expiresAt: expiresIn === undefined ? undefined : new Date(clock.now().getTime() + expiresIn * 1_000),
    fields: { access_token: 'first-token', ...(refreshToken === undefined ? {} : { refresh_token: refreshToken }) },
  }
}

async function connect(lifetimes: JsonObject | undefined, token: TokenSet) {
  const environmentIntegrationId = await installed(lifetimes === undefined ? OAUTH2 : withLifetimes(lifetimes))
  const input = { environmentIntegrationId, tenantId: 'acme', credential: 'oauth2', context: {} } as const
  const fields = { subdomain: 'acme' }
  const account = await database.transaction((each) =>
    storeConnectedAccount(accountDeps, each, own, { ...input, fields, grant: { token, context: {} } }),
  )
  await execute(tx, `update integrated_account set status = 'active' where id = :id`, { id: account.id })
  return account
}

const daysFromNow = (date: unknown) =>
  date instanceof Date && Math.round((date.getTime() - clock.now().getTime()) / DAY)
const warn = () => warnOfReauthorization({ database })
const letWarningsPass = () =>
  execute(tx, `update integrated_account set reauthorization_warning_at = now() - interval '1 second'`, {})
const namesOf = async (id: string) => (await eventsOf(id)).map(({ name }) => name)

describe('a refresh token with an idle limit', () => {
  it.each([
    ['that does not expire', undefined, 68],
    ['of an hour', HOUR_SECONDS, 0],
    ['of a year', 365 * 24 * HOUR_SECONDS, 68],
  ])('is used before, with an access token %s', async (_, expiresIn, days) => {
    const { id } = await connect({ refresh_token_idle_days: 90 }, granted(expiresIn === undefined ? {} : { expiresIn }))
    expect(daysFromNow((await tokenRow(id))?.dueAt)).toBe(days)
  })

  it('is due again after each use', async () => {
    const { id } = await connect({ refresh_token_idle_days: 90 }, granted({}))
    await alterToken(id, `due_at = now() - interval '1 second'`)
    server.answer({ access_token: 'second-token' })
    await refreshDueTokens(tokenDeps)
    expect(server.asked).toMatchObject([{ refresh_token: 'first-refresh' }])
    expect(daysFromNow((await tokenRow(id))?.dueAt)).toBe(68)
  })

  it('is left alone without a limit', async () => {
    const { id } = await connect(undefined, granted({}))
    expect(await tokenRow(id)).toMatchObject({ dueAt: null })
  })
})

describe('the date by which the customer has to connect an account again', () => {
  it.each<[string, JsonObject | undefined, TokenSet, number | false]>([
    ['is the end of the grant', { refresh_token_max_days: 365 }, granted({ expiresIn: HOUR_SECONDS }), 365],
    [
      'is the end of a token without a refresh token',
      undefined,
      granted({ expiresIn: (60 * DAY) / 1_000, hasRefreshToken: false }),
      60,
    ],
    ['is unknown for a token that is refreshed', undefined, granted({ expiresIn: HOUR_SECONDS }), false],
    ['is unknown for a token that does not expire', undefined, granted({ hasRefreshToken: false }), false],
  ])('%s', async (_, lifetimes, token, days) => {
    expect(daysFromNow((await connect(lifetimes, token)).reauthorizationDueAt)).toBe(days)
  })

  it.each([
    [365, 351],
    [7, 6],
  ])('is announced once, of %d days after %d', async (maxDays, warningDays) => {
    const { id } = await connect({ refresh_token_max_days: maxDays }, granted({}))
    const row = () => tx('integrated_account').where({ id }).first()
    expect(daysFromNow((await row()).reauthorizationWarningAt)).toBe(warningDays)
    await warn()
    expect(await namesOf(id)).toEqual(['created'])
    await letWarningsPass()
    await Promise.all([warn(), warn()])
    await warn()
    expect(await namesOf(id)).toEqual(['created', 'reauthorization_due'])
    const { payload } = (await eventsOf(id)).at(-1) ?? {}
    expect(payload).toMatchObject({ id, reauthorization_due_at: (await row()).reauthorizationDueAt.toISOString() })
  })

  it('is not announced for an account that needs the customer already', async () => {
    const { id } = await connect({ refresh_token_max_days: 7 }, granted({}))
    await execute(tx, `update integrated_account set status = 'needs_reauth' where id = :id`, { id })
    await letWarningsPass()
    await warn()
    expect(await namesOf(id)).toEqual(['created'])
  })

  it('moves with the next consent', async () => {
    const { id } = await connect({ refresh_token_max_days: 365 }, granted({}))
    fixture.pass(100 * DAY)
    const grant = { token: granted({}), context: {} }
    const input = { id, credential: 'oauth2', fields: {}, context: {}, grant } as const
    const again = await database.transaction((each) => storeReconnectedAccount(accountDeps, each, own, input))
    expect(daysFromNow(again.reauthorizationDueAt)).toBe(365)
  })
})
