import { describe, expect, it } from 'vitest'
import { startMockProvider } from './peers/mock.ts'
import { startOpenIdProvider } from './peers/openid.ts'
import type { Profile } from './peers/provider.ts'
import { closeContext } from './support/chromium.ts'
import { consentMethod, definitionOf } from './support/definitions.ts'
import { alertTitle, allow, deny, goToConsent, untilConnected } from './support/steps.ts'
import { until } from './support/until.ts'
import { createWorld } from './support/world.ts'

const world = await createWorld()

/** A definition for a provider whose API is `/me` at another address. */
function definitionFor(url: string, paths: { authorize: string; token: string; me: string }, scope: readonly string[]) {
  const { config, ...rest } = consentMethod(url, paths, scope)
  return {
    ...definitionOf('plain', url),
    base_url: url,
    credentials: { oauth2: { ...rest, config: { ...config, verification: { method: 'GET', path: paths.me } } } },
  }
}

/** Opens the hosted link of a new session for one integration. */
async function openLink(integration: string, body: object = {}) {
  const link = await world.createLink({ integrations: [integration], ...body })
  const page = await world.newPage()
  await page.goto(link.url)
  return { link, page }
}

describe.concurrent('an account is connected', () => {
  it.each(['plain', 'coop', 'form-post', 'slow'] as const)('by the consent of the provider %s', async (profile) => {
    const { link, page } = await openLink(await world.installProfile(profile))
    await goToConsent(page)
    await allow(page)
    await untilConnected(page)
    const after = await world.getLink(link.id)
    expect(after).toMatchObject({ status: 'completed', granted_scopes: ['contacts.read', 'contacts.write'] })
    const account = await world.call('GET', `/integrated-account/${after.integrated_account_id}`)
    expect(account).toMatchObject({ status: 'active', authentication_method: 'oauth2' })
    await closeContext(page.context())
  })

  it('by oidc-provider, which demands PKCE and returns its issuer', async () => {
    await using provider = await startOpenIdProvider(`${world.productUrl}/connect/callback`)
    const paths = { authorize: '/auth', token: '/token', me: '/me' }
    const { page } = await openLink(await world.install('openid', definitionFor(provider.url, paths, ['openid'])))
    await page.getByRole('button', { name: /^Continue to / }).click()
    await page.getByPlaceholder('Enter any login').fill('customer')
    await page.getByPlaceholder('and password').fill('any')
    await page.getByRole('button', { name: 'Sign-in' }).click()
    await page.getByRole('button', { name: 'Continue' }).click()
    await untilConnected(page)
    await closeContext(page.context())
  })

  it('by oauth2-mock-server, which redirects without a page', async () => {
    await using provider = await startMockProvider()
    const paths = { authorize: '/authorize', token: '/token', me: '/userinfo' }
    const { page } = await openLink(await world.install('mock', definitionFor(provider.url, paths, ['openid'])))
    await page.getByRole('button', { name: /^Continue to / }).click()
    await untilConnected(page)
    await closeContext(page.context())
  })

  it('after the customer first denied access', async () => {
    const { link, page } = await openLink(await world.installProfile('plain'))
    await goToConsent(page)
    await deny(page)
    expect(await alertTitle(page)).toBe('Access was not allowed')
    expect((await world.getLink(link.id)).error_code).toBe('consent_denied')
    await goToConsent(page)
    await allow(page)
    await untilConnected(page)
    expect(await world.getLink(link.id)).toMatchObject({ status: 'completed' })
    await closeContext(page.context())
  })

  it('after the provider showed an error page, from which the customer went back', async () => {
    const { link, page } = await openLink(await world.installProfile('error-page'))
    await page.getByRole('button', { name: /^Continue to / }).click()
    await page.getByRole('heading', { name: 'invalid_redirect_uri' }).waitFor()
    await page.goBack()
    await page.getByRole('button', { name: 'Continue to Acme CRM' }).waitFor()
    await page.goto(`${world.productUrl}/connect/${link.id}`)
    await page.getByRole('heading', { name: 'Waiting for Acme CRM' }).waitFor()
    await page.getByText('Does Acme CRM show an error?').click()
    await page.getByText(`${world.productUrl}/connect/callback`).waitFor()
    await closeContext(page.context())
  })
})

describe.concurrent('the customer reads what happened, and may try again', () => {
  it.each([
    ['server-error', 'provider_error', 'Acme CRM reported an error'],
    ['no-token', 'token_exchange_failed', 'Access could not be confirmed'],
    ['forbidden', 'credentials_rejected', 'Acme CRM did not accept the credentials'],
  ] satisfies [Profile, string, string][])('provider %s: %s', async (profile, code, title) => {
    const { link, page } = await openLink(await world.installProfile(profile))
    await page.getByRole('button', { name: /^Continue to / }).click()
    if (profile !== 'server-error') await allow(page)
    expect(await alertTitle(page)).toBe(title)
    expect(await world.getLink(link.id)).toMatchObject({ error_code: code })
    await page.getByRole('button', { name: /^Continue to / }).waitFor()
    await closeContext(page.context())
  })

  it('shows text of the provider as text', async () => {
    const { page } = await openLink(await world.installProfile('server-error'))
    await page.getByRole('button', { name: /^Continue to / }).click()
    await page.getByText('Message from Acme CRM').click()
    await page.getByText('Try later <b>please</b>').waitFor()
    await closeContext(page.context())
  })
})

describe.concurrent('a callback', () => {
  it('that the browser repeats does not exchange the code again', async () => {
    const { page } = await openLink(await world.installProfile('plain'))
    await goToConsent(page)
    const [callback] = await Promise.all([
      page.waitForRequest((request) => request.url().includes('/connect/callback')),
      allow(page),
    ])
    await untilConnected(page)
    await page.goto(callback.url())
    await untilConnected(page)
    expect(world.provider.exchangesOf(new URL(callback.url()).searchParams.get('code') ?? '')).toBe(1)
    await closeContext(page.context())
  })

  it('in another browser connects nothing', async () => {
    const { link, page } = await openLink(await world.installProfile('plain'))
    await goToConsent(page)
    let callback = ''
    await page.route('**/decide', async (route) => {
      const answer = await route.fetch({ maxRedirects: 0 })
      callback = answer.headers().location ?? ''
      await route.fulfill({ status: 204 })
    })
    await allow(page)
    await until('the redirect', () => callback !== '')
    const other = await world.newPage()
    await other.goto(callback)
    await other.getByRole('heading', { name: 'This sign-in does not belong to this page' }).waitFor()
    expect(await world.getLink(link.id)).toMatchObject({ status: 'redirected' })
    await closeContext(other.context())
    await closeContext(page.context())
  })
})
