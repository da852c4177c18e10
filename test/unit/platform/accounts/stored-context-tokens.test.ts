import { describe, expect, it } from 'vitest'
import { execute } from '../../../../src/foundation/database/index.ts'
import { loadAccountForCall, withWholeContext } from '../../../../src/platform/accounts/index.ts'
import {
  storeConnectedAccount,
  storeReconnectedAccount,
} from '../../../../src/platform/accounts/store-connected-account.ts'
import { contextObjectUploader, createContextValueStore } from '../../../../src/platform/objects/index.ts'
import { readOne } from '../../../support/tenant.ts'
import { OAUTH2, tokensFixture } from './token-fixture.ts'

const fixture = await tokensFixture()
const { database, tx, own, secrets, objects, accountDeps, installed, process, server, pass } = fixture

const STORED = ['api_domain', 'note', 'subdomain']
const granted = (name: string, api_domain: string) => ({
  accessToken: `${name}-token`,
  refreshToken: `${name}-refresh`,
  expiresAt: new Date(Date.now() + 3_600_000),
  fields: { access_token: `${name}-token`, refresh_token: `${name}-refresh`, api_domain },
})

/** An account connected in a link session, with keys of the session, the form and the token in the object store. */
async function connectByLink(): Promise<string> {
  const account = await database.transaction(async (each) =>
    storeConnectedAccount(accountDeps, each, own, {
      environmentIntegrationId: await installed(OAUTH2),
      tenantId: 'acme',
      credential: 'oauth2',
      fields: { subdomain: 'acme' },
      context: { note: 'of the session', plain: 1 },
      grant: { token: granted('first', 'eu'), context: {} },
      objectStoreContextFields: STORED,
    }),
  )
  await contextObjectUploader({ database, objects }).runOnce()
  await execute(tx, `update integrated_account set status = 'active' where id = :id`, { id: account.id })
  return account.id
}

async function show(id: string) {
  const row = await readOne<{ context: object }>(database, 'select context from integrated_account where id = :id', {
    id,
  })
  const contextValues = createContextValueStore(secrets, objects)
  const account = { id, ...own, context: {}, objectStoreContextFields: STORED }
  const { context, contextErrors } = await withWholeContext({ contextValues }, tx, account)
  return { row: row.context, stored: context, errors: contextErrors.size }
}

describe('context keys in the object store', () => {
  it('come from the session, the form and the token of a link, and change when it connects again', async () => {
    const id = await connectByLink()
    const stored = { note: 'of the session', subdomain: 'acme', api_domain: 'eu' }
    expect(await show(id)).toEqual({ row: { plain: 1 }, stored, errors: 0 })
    await database.transaction((each) =>
      storeReconnectedAccount(accountDeps, each, own, {
        id,
        credential: 'oauth2',
        fields: {},
        context: { note: null, plain: 2 },
        grant: { token: granted('second', 'us'), context: {} },
      }),
    )
    expect(await show(id)).toEqual({ row: { plain: 2 }, stored: { subdomain: 'acme', api_domain: 'us' }, errors: 0 })
  })

  it('take what a refreshed token says, and a refresh works when the object of another key is gone', async () => {
    const id = await connectByLink()
    server.answer({ access_token: 'a2', refresh_token: 'r2', expires_in: 3600, api_domain: 'apac' })
    objects.stored.clear()
    pass(3_600_000)
    const contextValues = createContextValueStore(secrets, objects)
    const { access } = await loadAccountForCall({ ...process(), contextValues }, own.environmentId, id, 'call')
    expect(access.context.api_domain).toBe('apac')
    expect(() => access.context.note).toThrow('CONTEXT_OBJECT_MISSING')
    expect(await show(id)).toMatchObject({ row: { plain: 1 }, stored: { api_domain: 'apac' }, errors: 2 })
  })
})
