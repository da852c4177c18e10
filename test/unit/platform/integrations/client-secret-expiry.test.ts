import { describe, expect, it } from 'vitest'
import { query } from '../../../../src/foundation/database/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import {
  clientSecretWatch,
  createDefinitionCache,
  getEnvironmentIntegration,
  updateEnvironmentIntegration,
} from '../../../../src/platform/integrations/index.ts'
import { CONFIG, integrationsFixture } from './fixture.ts'

const { database, tx, own, deps, secrets, addIntegration, install } = await integrationsFixture()

const DAY = 24 * 3_600_000
const inDays = (days: number) => new Date(Math.floor(Date.now() / 1_000) * 1_000 + days * DAY).toISOString()

/** A definition whose client's secret ends as given. */
const endingOn = (client_secret_expires_at: string): JsonObject => ({
  ...CONFIG,
  credentials: {
    format: 'oauth2',
    config: {
      client: { id: 'app', secret: 'the-clients-secret' },
      auth: { tokenHost: 'https://auth.example.com', tokenPath: '/token' },
      lifetimes: { client_secret_expires_at },
    },
  },
})
const addInstallation = async (config: JsonObject) =>
  (await install({ integrationId: (await addIntegration({ config })).id })).id
/** A look at everything, as a worker that has just started takes it. */
const look = () => clientSecretWatch({ database, definitions: createDefinitionCache(secrets) }).runOnce()
const shownEnd = async (id: string) => (await getEnvironmentIntegration(tx, own, id)).clientSecretExpiresAt
const warningsOf = async (id: string) =>
  await query<{ payload: JsonObject }>(
    tx,
    `select payload from event where subject_id = :id and type = 'environment_integration:client_secret_expiring'`,
    { id },
  )
const override = (id: string, value: JsonObject) =>
  database.transaction((each) => updateEnvironmentIntegration(deps, each, own, { id, override: value }))

describe("the end of a client's secret", () => {
  it('is shown, and announced once, 30 days before', async () => {
    const end = inDays(29)
    const [soon, later] = [await addInstallation(endingOn(end)), await addInstallation(endingOn(inDays(31)))]
    expect(await shownEnd(soon)).toBeNull()
    await Promise.all([look(), look()])
    await look()
    expect((await shownEnd(soon))?.toISOString()).toBe(end)
    expect(await warningsOf(soon)).toMatchObject([{ payload: { id: soon, client_secret_expires_at: end } }])
    expect(await shownEnd(later)).toBeInstanceOf(Date)
    expect(await warningsOf(later)).toEqual([])
  })

  it('is announced again for the next secret, and is that of the integration without an override', async () => {
    const end = inDays(2)
    const id = await addInstallation(endingOn(end))
    await look()
    const lifetimes = (value: string | null) => ({
      credentials: { config: { lifetimes: { client_secret_expires_at: value } } },
    })
    await override(id, lifetimes(inDays(400)))
    await look()
    expect(await warningsOf(id)).toHaveLength(1)
    await override(id, lifetimes(inDays(3)))
    await look()
    expect(await warningsOf(id)).toHaveLength(2)
    await override(id, lifetimes(null))
    await look()
    expect((await shownEnd(id))?.toISOString()).toBe(end)
  })

  it('may be a variable of the environment, which may be missing', async () => {
    const id = await addInstallation(endingOn('{{environment_variables.secret_end}}'))
    await look()
    expect(await shownEnd(id)).toBeNull()
    await override(id, { environment_variables: { secret_end: '2099-01-31' } })
    await look()
    expect((await shownEnd(id))?.toISOString()).toBe('2099-01-31T00:00:00.000Z')
  })

  it('is unknown where the definition says nothing', async () => {
    const id = await addInstallation(CONFIG)
    await look()
    expect(await shownEnd(id)).toBeNull()
  })
})
