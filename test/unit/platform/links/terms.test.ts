import { beforeEach, describe, expect, it } from 'vitest'
import { execute, query } from '../../../../src/foundation/database/index.ts'
import {
  findLinkSession,
  findTermsToAccept,
  type LinkSessionRef,
  submitForm,
} from '../../../../src/platform/links/index.ts'
import { linksFixture } from './fixture.ts'

const TERMS = 'https://example.com/terms'
const NEW_TERMS = 'https://example.com/terms/2'
const VALUES = { api_key: 'secret', subdomain: 'acme' }

const { links, database, scope, install, open, activate } = await linksFixture()
const installation = await install()
beforeEach(() => setTerms(TERMS))

async function setTerms(url: string): Promise<void> {
  await execute(database.pool, 'update team set tos_link = :url where id = :id', { url, id: scope.teamId })
}

async function read(ref: LinkSessionRef) {
  const session = await findLinkSession(links, ref)
  if (session === undefined) throw new Error('no session')
  return session
}

const termsOf = async (ref: LinkSessionRef) => await findTermsToAccept(links, await read(ref))

async function accountOf(ref: LinkSessionRef) {
  const { integratedAccountId: id } = await read(ref)
  const sql = `select id, terms_url as url, terms_accepted_at as "acceptedAt" from integrated_account where id = :id`
  const [account] = await query<{ id: string; url: string; acceptedAt: Date | null }>(database.pool, sql, { id })
  return account
}

/** A session in which the customer accepted terms and connected an account. */
async function connected(terms: string | undefined): Promise<LinkSessionRef> {
  const ref = await open({ integrations: [installation.id] })
  expect(await submitForm(links, ref, VALUES, terms)).toMatchObject({ session: { status: 'completed' } })
  return ref
}

const reconnect = async (ref: LinkSessionRef) =>
  await open({ subject: { integratedAccountId: (await accountOf(ref))?.id ?? '' } })

describe('terms of service', () => {
  it.each([
    ['without consent', undefined],
    ['with consent to others, which the page showed before', NEW_TERMS],
    ['with an empty consent', ''],
  ])('have to be accepted: a form %s changes nothing', async (_, accepted) => {
    const ref = await open({ integrations: [installation.id] })
    expect(await termsOf(ref)).toBe(TERMS)
    const result = await submitForm(links, ref, VALUES, accepted)
    expect(result).toMatchObject({ kind: 'invalid', violations: [], needsTerms: true })
    expect(await read(ref)).toMatchObject({ status: 'form', attempts: 0, termsUrl: '', termsAcceptedAt: null })
  })

  it('are reported together with what is wrong in the form', async () => {
    const ref = await open({ integrations: [installation.id] })
    expect(await submitForm(links, ref, {})).toMatchObject({
      kind: 'invalid',
      violations: [{ field: 'api_key' }, { field: 'subdomain' }],
      needsTerms: true,
    })
    expect(await submitForm(links, ref, {}, TERMS)).toMatchObject({ kind: 'invalid', needsTerms: false })
  })

  it('are recorded with the session and the account: which, and when', async () => {
    const before = Date.now()
    const ref = await connected(TERMS)
    const { termsUrl, termsAcceptedAt } = await read(ref)
    expect(termsUrl).toBe(TERMS)
    expect(Math.abs((termsAcceptedAt?.getTime() ?? 0) - before)).toBeLessThan(60_000)
    expect(await accountOf(ref)).toMatchObject({ url: TERMS, acceptedAt: termsAcceptedAt })
    const sql = `select payload from event where type = 'integrated_account:created' and subject_id = :id`
    const [event] = await query<{ payload: object }>(database.pool, sql, { id: (await accountOf(ref))?.id ?? '' })
    expect(event?.payload).toMatchObject({ terms_url: TERMS, terms_accepted_at: termsAcceptedAt?.toISOString() })
  })

  it('are not asked for where the team has none, and nothing is recorded', async () => {
    await setTerms('')
    const ref = await open({ integrations: [installation.id] })
    expect(await termsOf(ref)).toBeUndefined()
    expect(await accountOf(await connected(undefined))).toMatchObject({ url: '', acceptedAt: null })
    // A browser cannot record a consent that was not asked for.
    expect(await accountOf(await connected(NEW_TERMS))).toMatchObject({ url: '', acceptedAt: null })
  })

  it('are asked for again in a reconnection only when they have changed', async () => {
    const first = await connected(TERMS)
    const account = await accountOf(first)
    const same = await reconnect(first)
    expect(await termsOf(same)).toBeUndefined()
    expect(await submitForm(links, same, VALUES)).toMatchObject({ kind: 'progress' })
    expect(await accountOf(first)).toEqual(account)
    await activate()

    await setTerms(NEW_TERMS)
    const changed = await reconnect(first)
    expect(await termsOf(changed)).toBe(NEW_TERMS)
    expect(await submitForm(links, changed, VALUES)).toMatchObject({ kind: 'invalid', needsTerms: true })
    expect(await submitForm(links, changed, VALUES, NEW_TERMS)).toMatchObject({ kind: 'progress' })
    expect(await accountOf(first)).toMatchObject({ url: NEW_TERMS })
    await activate()
  })
})
