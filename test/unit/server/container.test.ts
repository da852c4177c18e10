import { afterAll, expect, it } from 'vitest'
import { UnifiedMappingService } from '../../../gen/patchbay/v1/unified_mapping_service_pb.ts'
import { type Clock, systemClock } from '../../../src/foundation/base/index.ts'
import { Database } from '../../../src/foundation/database/index.ts'
import { createSecretStore, generateKeyRingText, parseKeyRing } from '../../../src/foundation/secrets/index.ts'
import { silentLogger } from '../../../src/foundation/telemetry/logger.ts'
import { bootstrap } from '../../../src/platform/tenancy/index.ts'
import { createApi } from '../../../src/server/api-server.ts'
import { readConfig } from '../../../src/server/config/index.ts'
import { createContainer } from '../../../src/server/container.ts'
import { createClient } from '../../support/client.ts'
import { testDatabase } from '../../support/database.ts'

const { database, target } = await testDatabase()
const backgroundDatabase = new Database({ target })
const first = (await bootstrap(database))!
const config = readConfig({ PATCHBAY_PORT: '0', PATCHBAY_RATE_LIMIT: '0', PATCHBAY_RATE_LIMIT_ADDRESS: '0' })
const secrets = createSecretStore(parseKeyRing(generateKeyRingText('test')))
/** By which nothing that is cached for a time ever expires. */
const clock: Clock = {
  now: () => new Date(),
  monotonicMs: () => 0,
  sleep: (ms, signal) => systemClock.sleep(ms, signal),
}
const storage = { database, backgroundDatabase, secrets }
const container = createContainer({ config, storage, logger: silentLogger, clock })
const api = createApi({ config, container, logger: silentLogger })
const { url } = await api.listen()
const client = createClient('rest', url, { token: first.environmentToken })
const { background } = container

afterAll(async () => {
  client.close()
  for (const each of [api, container, backgroundDatabase]) await each[Symbol.asyncDispose]()
})

it('background work sees at once what requests of the same process change', async () => {
  const account = { environmentId: first.environmentId, integrationName: 'hubspot' }
  const ref = { model: 'crm', resource: 'contacts', method: 'list' }
  const titleLayer = async () => {
    const { merged } = await background.unifiedMappings.find(background.database.pool, account, ref)
    return merged.layers.get('response.fields.title')
  }
  expect(await titleLayer()).not.toBe('environment')
  await client.ok(UnifiedMappingService.method.createUnifiedMapping, {
    model: 'crm',
    resource: 'contacts',
    integration_name: 'hubspot',
    config: { response: { fields: { title: 'nick' } } },
  })
  expect(await titleLayer()).toBe('environment')
})

it('background work gives third parties the address under which the process listens', () => {
  expect(background.publicUrl()).toBe(url)
})

it('background work has connections of its own and all else in common with requests', () => {
  const { http, evaluator, definitions, contextValues, tokenHosts, formOptions } = container
  expect(background).toMatchObject({ http, evaluator, definitions, contextValues, tokenHosts, formOptions })
  const own = [background.database, background.queue, background.accounts.database]
  expect(own.map((each) => each === database || each === container.queue)).toEqual([false, false, false])
})

it('warns at the start when outbound calls are diverted', async () => {
  const warnings: string[] = []
  const settings = { PATCHBAY_EGRESS_ALLOW: '127.0.0.1', PATCHBAY_EGRESS_CONNECT_TO: '*=127.0.0.1:1' }
  const logger = { ...silentLogger, warn: (_fields: object, message?: string) => void warnings.push(message ?? '') }
  await using _diverted = createContainer({ config: readConfig(settings), storage, logger })
  expect(warnings).toEqual(['PATCHBAY_EGRESS_CONNECT_TO diverts outbound calls: never in production'])
})
