import { describe, expect, it } from 'vitest'
import { getIntegratedAccount } from '../../src/accounts/index.ts'
import { findLinkSession, submitForm } from '../../src/links/index.ts'
import { linksFixture } from './fixture.ts'

const fixture = await linksFixture()
const { links, install, open, read, causes, events } = fixture
const VALUES = { api_key: 'k-canary', subdomain: 'acme' }

describe('a form', () => {
  it('connects an account with its values, and ends the session', async () => {
    const { name } = await install()
    const ref = await open({ integrations: [name] })
    expect(await findLinkSession(links, ref)).toMatchObject({ status: 'form', authenticationMethod: 'api_key' })

    const result = await submitForm(links, ref, VALUES)
    expect(result).toMatchObject({ kind: 'progress', session: { status: 'completed', error: null } })
    const session = await read(ref.id)
    expect(session).toMatchObject({ tenantId: 'acme', formValues: { subdomain: 'acme' }, integrationName: name })
    const account = await getIntegratedAccount(
      links.accounts,
      links.database.pool,
      fixture.scope,
      session.integratedAccountId ?? '',
    )
    expect(account).toMatchObject({ status: 'active', context: { subdomain: 'acme' }, tenantId: 'acme' })
    expect(await causes(ref.id)).toEqual([
      'token_created',
      'token_opened',
      'method_chosen',
      'form_submitted',
      'account_active',
    ])
    expect(await events(ref.id)).toMatchObject([
      { type: 'link_token:completed', payload: { status: 'completed', integrated_account_id: account.id } },
    ])
  })
})
