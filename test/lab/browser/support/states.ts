import type { Page } from 'playwright-core'
import { CLIENT, type Profile, RIGHT_KEY, WRONG_KEY } from '../peers/provider.ts'
import { definitionOf, eitherDefinition, keyDefinition, settingsDefinition } from './definitions.ts'
import { allow, deny, fillKeyForm, goToConsent, submitKeyForm, untilConnected } from './steps.ts'
import type { Link, World } from './world.ts'

/** A state of the page that a customer can see. */
export interface State {
  /** Of its pictures. */
  readonly name: string
  /** Title of the page when it is there. */
  readonly title: string
  /** What the link is created with. */
  readonly link: object
  /** Leads from the opened link to the state. */
  reach?(page: Page, link: Link): Promise<void>
  /** Undoes what the state needed. */
  leave?(): void
}

const CALLBACK = '/connect/callback?state=unknown&code=unknown'
/** With a search, since they are many; some of them have the name of a shipped definition, and so its logo. */
const SERVICES = [
  { name: 'slack', label: 'Slack', category: 'communication', description: 'Messages and channels of your workspace.' },
  { name: 'hubspot', label: 'HubSpot', description: 'Contacts, companies and deals.', tags: ['Sales', 'Marketing'] },
  { name: 'notion', label: 'Notion', category: 'knowledge', isBeta: true },
  { name: 'ableton', label: 'Ableton', tags: ['Music'] },
  { name: 'clockify', label: 'Clockify', category: 'time_tracking' },
  { name: 'ledger', label: 'Ledger (our internal API)', description: 'Bookings since 2019, read once a day.' },
  {
    name: 'jira',
    label: 'Jira Cloud',
    category: 'project_management',
    isBeta: true,
    tags: ['Agile', 'Tickets', 'Software'],
  },
  { name: 'zendesk', label: 'Zendesk', category: 'support' },
  { name: 'gusto', label: 'Gusto' },
]

/** Every step and error state of the page. */
export async function createStates(world: World): Promise<readonly State[]> {
  const { url } = world.provider
  const installed = {
    plain: await world.installProfile('plain'),
    keys: await world.install('acme-keys', keyDefinition(url)),
    either: await world.install('acme-either', eitherDefinition(url)),
    settings: await world.install('acme-settings', settingsDefinition(url)),
    broken: await world.install('acme-broken', withAction(keyDefinition(url), 'validation')),
    unprepared: await world.install('acme-unprepared', withAction(keyDefinition(url), 'post_install')),
    accounts: await world.install('acme-accounts', withOAuth('accounts', url, { identity: IDENTITY })),
    scopes: await world.install('acme-scopes', withOAuth('fewer-scopes', url, { required_scope: ['contacts.write'] })),
    issuer: await world.install('acme-issuer', withAuth('wrong-issuer', url, { issuer: 'https://acme.example' })),
  }
  const many = await Promise.all(
    SERVICES.map(({ name, label, ...listing }) => world.install(name, { ...keyDefinition(url), label }, listing)),
  )
  const failing = (name: string, integration: string): State => ({
    name,
    title: 'Sign in at Acme CRM',
    link: { integrations: [integration] },
    reach: failConsent,
  })
  const rejecting = (name: string, integration: string, key = RIGHT_KEY): State => ({
    name,
    title: 'Connect Acme Keys',
    link: { integrations: [integration] },
    reach: (page) => sendKey(page, key),
  })
  const { plain, keys } = installed
  const expiring = await world.createLink({ integrations: [keys], expires_in: 60 })
  return [
    { name: 'integration', title: 'Choose what to connect', link: { integrations: [plain, keys, installed.either] } },
    { name: 'integration-many', title: 'Choose what to connect', link: { integrations: many } },
    { name: 'integration-many-de', title: 'Was möchten Sie verbinden?', link: { integrations: many, locale: 'de' } },
    {
      name: 'integration-search',
      title: 'Choose what to connect',
      link: { integrations: many },
      reach: async (page) => await page.getByRole('searchbox').fill('SALES'),
    },
    { name: 'form-beta', title: 'Connect Notion', link: { integrations: ['notion'] } },
    { name: 'method', title: 'How do you want to connect?', link: { integrations: [installed.either] } },
    { name: 'form', title: 'Connect Acme Keys', link: { integrations: [keys], is_sandbox: true } },
    { name: 'form-de', title: 'Acme Keys verbinden', link: { integrations: [keys], locale: 'de' } },
    {
      name: 'form-invalid',
      title: 'Connect Acme Keys',
      link: { integrations: [keys] },
      reach: async (page) => {
        await submitKeyForm(page)
        await page.getByRole('alert').waitFor()
      },
    },
    rejecting('credentials-rejected', keys, WRONG_KEY),
    rejecting('validation-error', installed.broken),
    rejecting('post-install-error', installed.unprepared),
    { name: 'consent', title: 'Sign in at Acme CRM', link: { integrations: [plain] } },
    { ...failing('consent-denied', plain), reach: denyConsent },
    failing('provider-error', await world.installProfile('server-error')),
    failing('token-exchange-failed', await world.installProfile('no-token')),
    failing('consent-without-access', await world.installProfile('forbidden')),
    {
      ...failing('provider-unreachable', plain),
      reach: async (page) => {
        await goToConsent(page)
        world.provider.setReachable(false)
        await allow(page)
        await page.getByRole('alert').waitFor()
      },
      leave: () => world.provider.setReachable(true),
    },
    failing('scope-missing', installed.scopes),
    failing('issuer-mismatch', installed.issuer),
    {
      name: 'waiting',
      title: 'Waiting for Acme CRM',
      link: { integrations: [plain] },
      reach: async (page, { id }) => {
        await goToConsent(page)
        await page.goto(`${world.productUrl}/connect/${id}`)
      },
    },
    {
      name: 'progress',
      title: 'Connecting Acme CRM',
      link: { integrations: [await world.installProfile('held')] },
      reach: async (page) => {
        await goToConsent(page)
        await allow(page)
        await page.getByText('Preparing the account').first().waitFor()
      },
      leave: () => world.provider.release(),
    },
    {
      name: 'settings',
      title: 'Choose your settings',
      link: { integrations: [installed.settings] },
      reach: async (page) => {
        await reachSettings(page)
        await page.getByRole('radio', { name: 'Workspace 2', exact: true }).check()
        await page.getByRole('checkbox', { name: 'Project 1 of w2' }).check()
      },
    },
    {
      name: 'settings-unavailable',
      title: 'Choose your settings',
      link: { integrations: [installed.settings] },
      reach: async (page) => {
        await goToConsent(page)
        await page.route('**/connect/*/settings', async (route) => {
          world.provider.setReachable(false)
          await route.continue()
        })
        await allow(page)
        await page.getByText('The options could not be loaded.').first().waitFor()
      },
      leave: () => world.provider.setReachable(true),
    },
    {
      name: 'identity-changed',
      title: 'Sign in at Acme CRM',
      link: { integrations: [installed.accounts] },
      reach: async (page, link) => await signInAsOther(world, page, link),
    },
    {
      name: 'done',
      title: 'Acme CRM is connected',
      link: { integrations: [plain] },
      reach: async (page) => {
        await goToConsent(page)
        await allow(page)
        await untilConnected(page)
      },
    },
    {
      name: 'cancelled',
      title: 'Cancelled',
      link: { integrations: [plain] },
      reach: (page) => page.getByRole('button', { name: 'Cancel' }).click(),
    },
    goingTo('invalid-token', 'This link is not valid', () => '/connect?link_token=none'),
    {
      name: 'state-mismatch',
      title: 'This sign-in does not belong to this page',
      link: { integrations: [plain] },
      reach: async (page) => {
        await page.context().clearCookies()
        await page.goto(new URL(CALLBACK, page.url()).href)
      },
    },
    goingTo('unknown-page', 'There is no such page', ({ id }) => `/connect/${id}/nothing/here`),
    {
      name: 'used-token',
      title: 'This link has been used already',
      link: { integrations: [keys] },
      reach: async (page, link) => {
        await sendKey(page, WRONG_KEY)
        await page.context().clearCookies()
        await page.goto(link.url)
      },
    },
    {
      name: 'other-browser',
      title: 'This page was opened in another browser',
      link: { integrations: [keys] },
      reach: async (page) => {
        await page.context().clearCookies()
        await page.reload()
      },
    },
    {
      name: 'expired-token',
      title: 'This link has expired',
      link: { integrations: [keys] },
      // Late in this list: most of its minute has passed.
      reach: async (page) => {
        const title = page.getByRole('heading', { name: 'This link has expired' })
        for (const end = Date.now() + 60_000; Date.now() < end && !(await title.isVisible()); ) {
          await page.context().clearCookies()
          await page.goto(expiring.url)
        }
      },
    },
  ]

  function goingTo(name: string, title: string, pathOf: (link: Link) => string): State {
    const reach = async (page: Page, link: Link): Promise<void> => {
      await page.goto(`${world.productUrl}${pathOf(link)}`)
    }
    return { name, title, link: { integrations: [keys] }, reach }
  }
}

const IDENTITY = { request: { method: 'GET', path: '/me' }, path: 'id' }

function withAction(definition: Readonly<Record<string, unknown>>, name: string): Readonly<Record<string, unknown>> {
  return { ...definition, actions: { [name]: { type: 'request', config: { path: '/missing' } } } }
}

/** The definition of a profile with further settings of its OAuth config. */
function withOAuth(profile: Profile, url: string, settings: object): Readonly<Record<string, unknown>> {
  const definition = definitionOf(profile, url)
  const { oauth2 } = definition.credentials as { oauth2: { config: object } }
  return { ...definition, credentials: { oauth2: { ...oauth2, config: { ...oauth2.config, ...settings } } } }
}

function withAuth(profile: Profile, url: string, auth: object): Readonly<Record<string, unknown>> {
  const { credentials } = definitionOf(profile, url) as { credentials: { oauth2: { config: { auth: object } } } }
  return withOAuth(profile, url, { auth: { ...credentials.oauth2.config.auth, ...auth }, client: CLIENT })
}

async function sendKey(page: Page, key: string): Promise<void> {
  await fillKeyForm(page, key)
  await submitKeyForm(page)
  await page.getByRole('alert').waitFor()
}

async function failConsent(page: Page): Promise<void> {
  await page.getByRole('button', { name: /^Continue to / }).click()
  await page.getByRole('button', { name: 'Allow' }).or(page.getByRole('alert')).waitFor()
  if (await page.getByRole('button', { name: 'Allow' }).isVisible()) await allow(page)
  await page.getByRole('alert').waitFor()
}

async function denyConsent(page: Page): Promise<void> {
  await goToConsent(page)
  await deny(page)
  await page.getByRole('alert').waitFor()
}

async function reachSettings(page: Page): Promise<void> {
  await goToConsent(page)
  await allow(page)
  await page.getByRole('heading', { name: 'Choose your settings' }).waitFor()
}

/** Connects an account, then reconnects it with another one of the third party. */
async function signInAsOther(world: World, page: Page, link: Link): Promise<void> {
  await goToConsent(page)
  await allow(page)
  await untilConnected(page)
  const { integrated_account_id } = await world.getLink(link.id)
  await page.goto((await world.createLink({ integrated_account_id })).url)
  await goToConsent(page)
  await page.getByRole('combobox').selectOption('other')
  await allow(page)
  await page.getByRole('alert').waitFor()
}
