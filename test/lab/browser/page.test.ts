import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { RIGHT_KEY, WRONG_KEY } from './peers/provider.ts'
import { closeContext } from './support/chromium.ts'
import { eitherDefinition, keyDefinition, settingsDefinition } from './support/definitions.ts'
import { alertTitle, allow, fillKeyForm, goToConsent, submitKeyForm, untilConnected } from './support/steps.ts'
import { createWorld, type Link } from './support/world.ts'

const world = await createWorld()
const plain = await world.installProfile('plain')
const held = await world.installProfile('held')
const keys = await world.install('acme-keys', keyDefinition(world.provider.url))
const slowKeys = await world.install('acme-slow-keys', keyDefinition(world.provider.url, 'slow'))
const either = await world.install('acme-either', eitherDefinition(world.provider.url))
const settings = await world.install('acme-settings', settingsDefinition(world.provider.url))

async function openLink(
  integrations: readonly string[],
  body: object = {},
  context: Parameters<typeof world.newPage>[0] = {},
): Promise<{ readonly link: Link; readonly page: Page }> {
  const link = await world.createLink({ integrations, ...body })
  const page = await world.newPage(context)
  await page.goto(link.url)
  return { link, page }
}

/** Accounts of a tenant: what a link must not connect twice. */
async function countAccounts(tenantId: string): Promise<number> {
  const { integrated_accounts: accounts } = await world.call('GET', `/integrated-account?tenant_id=${tenantId}`)
  return accounts.length
}

describe.concurrent('a form', () => {
  it('takes a pasted address for a subdomain, and connects with the right key after a wrong one', async () => {
    const { link, page } = await openLink([keys])
    await fillKeyForm(page, WRONG_KEY)
    await submitKeyForm(page)
    expect(await alertTitle(page)).toBe('Acme Keys did not accept the credentials')
    expect(await page.getByLabel('Subdomain').inputValue()).toBe('acme')
    expect(await page.getByLabel('API key', { exact: true }).inputValue()).toBe('')
    await page.getByLabel('API key', { exact: true }).fill(` ${RIGHT_KEY} `)
    await submitKeyForm(page)
    await untilConnected(page, 'Acme Keys')
    const after = await world.getLink(link.id)
    const account = await world.call('GET', `/integrated-account/${after.integrated_account_id}`)
    expect(account).toMatchObject({ status: 'active', context: { subdomain: 'acme' } })
    await closeContext(page.context())
  })

  it('names what is missing, and moves the focus to the summary', async () => {
    const { page } = await openLink([keys])
    await submitKeyForm(page)
    expect(await alertTitle(page)).toBe('There are 2 problems with your entries')
    await page.locator('[role=alert]:focus').waitFor()
    await page.getByRole('link', { name: 'API key' }).click()
    await page.locator('[type=password]:focus').waitFor()
    await closeContext(page.context())
  })

  it('takes back what was wrong with a field once its value changes', async () => {
    const { page } = await openLink([keys])
    await submitKeyForm(page)
    await page.getByRole('alert').waitFor()
    await page.getByLabel('Subdomain').fill('acme')
    expect(await alertTitle(page)).toBe('There is 1 problem with your entries')
    expect(await page.locator('.problem').count()).toBe(1)
    expect(await page.getByLabel('Subdomain').getAttribute('aria-invalid')).toBeNull()
    await page.getByLabel('API key', { exact: true }).fill('k')
    expect(await page.locator('.problem, .alert, [aria-invalid]').count()).toBe(0)
    expect(await page.evaluate(() => document.activeElement?.getAttribute('type'))).toBe('password')
    await closeContext(page.context())
  })

  it('that is sent twice connects one account', async () => {
    const tenant_id = 'double-submit'
    const { page } = await openLink([slowKeys], { tenant_id })
    await fillKeyForm(page, RIGHT_KEY)
    await page.getByRole('button', { name: 'Connect', exact: true }).dblclick()
    await untilConnected(page, 'Acme Keys')
    expect(await countAccounts(tenant_id)).toBe(1)
    await closeContext(page.context())
  })

  it('works with the keyboard alone', async () => {
    const { page } = await openLink([either])
    await page.getByRole('heading', { level: 1 }).waitFor()
    await pressTabUntil(page, 'API key')
    await page.keyboard.press('Enter')
    await page.getByLabel('Subdomain').waitFor()
    await pressTabUntil(page, 'Subdomain')
    await page.keyboard.type('acme')
    await pressTabUntil(page, 'API key')
    await page.keyboard.type(RIGHT_KEY)
    await page.keyboard.press('Enter')
    await untilConnected(page, 'Acme Either')
    await closeContext(page.context())
  })
})

/** Presses Tab until the focus is on an element of this name. */
async function pressTabUntil(page: Page, name: string): Promise<void> {
  for (let press = 0; press < 30; press += 1) {
    await page.keyboard.press('Tab')
    const focused = await page.evaluate(() => {
      const element = document.activeElement
      const label = element instanceof HTMLInputElement ? element.labels?.[0] : element
      return label?.textContent?.trim() ?? ''
    })
    if (focused.startsWith(name)) return
  }
  throw new Error(`the keyboard does not reach ${name}`)
}

describe.concurrent('a session', () => {
  it('is where it was after a reload of each step', async () => {
    const { page } = await openLink([held, keys])
    const reload = async (heading: string): Promise<void> => {
      await page.getByRole('heading', { level: 1, name: heading }).waitFor()
      await page.reload()
      await page.getByRole('heading', { level: 1, name: heading }).waitFor()
    }
    await reload('Choose what to connect')
    await page.getByRole('button', { name: 'Acme CRM' }).click()
    await reload('Sign in at Acme CRM')
    await goToConsent(page)
    await page.reload()
    await allow(page)
    await reload('Connecting Acme CRM')
    world.provider.release()
    await untilConnected(page)
    await reload('Acme CRM is connected')
    await closeContext(page.context())
  })

  it('lets the customer go back and choose another integration', async () => {
    const { link, page } = await openLink([plain, keys])
    await page.getByRole('button', { name: 'Acme CRM' }).click()
    await page.getByRole('heading', { name: 'Sign in at Acme CRM' }).waitFor()
    await goToConsent(page)
    await page.goBack()
    await page.getByRole('heading', { level: 1, name: 'Acme CRM' }).waitFor()
    while (!(await page.getByRole('heading', { name: 'Choose what to connect' }).isVisible())) await page.goBack()
    await page.getByRole('button', { name: 'Acme Keys' }).click()
    await fillKeyForm(page, RIGHT_KEY)
    await submitKeyForm(page)
    await untilConnected(page, 'Acme Keys')
    expect(await world.getLink(link.id)).toMatchObject({ status: 'completed', integration: keys })
    await closeContext(page.context())
  })

  it('that ends in one tab has ended in the other', async () => {
    const { link, page } = await openLink([keys])
    const other = await page.context().newPage()
    await other.goto(link.url)
    await other.getByLabel('Subdomain').waitFor()
    await fillKeyForm(page, RIGHT_KEY)
    await submitKeyForm(page)
    await untilConnected(page, 'Acme Keys')
    await fillKeyForm(other, RIGHT_KEY)
    await submitKeyForm(other)
    await untilConnected(other, 'Acme Keys')
    await closeContext(page.context())
  })

  it('belongs to the browser that used it first', async () => {
    const { link, page } = await openLink([keys])
    await fillKeyForm(page, WRONG_KEY)
    await submitKeyForm(page)
    await page.getByRole('alert').waitFor()
    const other = await world.newPage()
    await other.goto(link.url)
    await other.getByRole('heading', { name: 'This link has been used already' }).waitFor()
    await other.goto(page.url())
    await other.getByRole('heading', { name: 'This page was opened in another browser' }).waitFor()
    await closeContext(other.context())
    await closeContext(page.context())
  })

  it('that was cancelled ends, for the application too', async () => {
    const { link, page } = await openLink([keys])
    await page.getByRole('button', { name: 'Cancel' }).click()
    await page.getByRole('heading', { name: 'Cancelled' }).waitFor()
    expect(await world.getLink(link.id)).toMatchObject({ status: 'cancelled' })
    const other = await world.newPage()
    await other.goto(link.url)
    await other.getByRole('heading', { name: 'Cancelled' }).waitFor()
    await closeContext(page.context())
  })

  it('does not open with a token that is not right', async () => {
    const { url } = await world.createLink({ integrations: [keys] })
    const page = await world.newPage()
    await page.goto(`${url.slice(0, -4)}0000`)
    await page.getByRole('heading', { name: 'This link is not valid' }).waitFor()
    await closeContext(page.context())
  })

  it('reconnects an account whose key is no longer accepted', async () => {
    const key = world.provider.issueKey()
    const { link, page } = await openLink([keys])
    await fillKeyForm(page, key)
    await submitKeyForm(page)
    await untilConnected(page, 'Acme Keys')
    const { integrated_account_id } = await world.getLink(link.id)
    const path = `/integrated-account/${integrated_account_id}`
    world.provider.revokeKey(key)
    await fetch(`${world.productUrl}/proxy/workspaces?integrated_account_id=${integrated_account_id}`, {
      headers: { authorization: `Bearer ${world.environmentToken}` },
    })
    expect(await world.call('GET', path)).toMatchObject({ status: 'needs_reauth' })
    const again = await world.createLink({ integrated_account_id })
    await page.goto(again.url)
    await page.getByRole('heading', { level: 1, name: 'Reconnect Acme Keys' }).waitFor()
    await fillKeyForm(page, RIGHT_KEY)
    await submitKeyForm(page)
    await page.getByRole('heading', { level: 1, name: 'Acme Keys is connected again' }).waitFor()
    expect(await world.call('GET', path)).toMatchObject({ status: 'active' })
    await closeContext(page.context())
  })
})

describe.concurrent('the form after the connection', () => {
  it('searches, loads more, and stores ids with labels', async () => {
    const { link, page } = await openLink([settings])
    await goToConsent(page)
    await allow(page)
    await page.getByRole('heading', { name: 'Choose your settings' }).waitFor()
    const [workspace, projects] = ['Workspace', /^Projects/].map((name) => page.getByRole('group', { name }))
    if (workspace === undefined || projects === undefined) throw new Error('no fields')
    await projects.getByText('Choose “Workspace” first.').waitFor()
    await workspace.getByRole('radio', { name: 'Workspace 20', exact: true }).waitFor()
    await workspace.getByRole('button', { name: 'Load more' }).click()
    await workspace.getByRole('radio', { name: 'Workspace 21', exact: true }).waitFor()
    await workspace.getByRole('searchbox').fill('workspace 42')
    await workspace.getByRole('radio', { name: 'Workspace 42', exact: true }).check()
    await projects.getByRole('checkbox', { name: 'Project 1 of w42' }).check()
    await projects.getByRole('checkbox', { name: 'Project 3 of w42' }).check()
    expect(await world.getLink(link.id)).toMatchObject({ status: 'post_connect_form' })
    await page.getByRole('button', { name: 'Save and finish' }).click()
    await untilConnected(page, 'Acme Settings')
    const { integrated_account_id } = await world.getLink(link.id)
    const { context } = await world.call('GET', `/integrated-account/${integrated_account_id}`)
    expect(context).toMatchObject({
      workspace: 'w42',
      workspace_label: 'Workspace 42',
      projects: ['w42-p1', 'w42-p3'],
      projects_labels: ['Project 1 of w42', 'Project 3 of w42'],
    })
    await closeContext(page.context())
  })

  it('loads its options without script by a button', async () => {
    const { page } = await openLink([settings], {}, { javaScriptEnabled: false })
    await goToConsent(page)
    await allow(page)
    await page.getByRole('heading', { name: 'Choose your settings' }).waitFor()
    await page.getByRole('button', { name: 'Show options' }).click()
    await page.getByRole('radio', { name: 'Workspace 7', exact: true }).check()
    await page.getByRole('button', { name: 'Save and finish' }).click()
    await untilConnected(page, 'Acme Settings')
    await closeContext(page.context())
  })
})

describe.concurrent('the list of services', () => {
  const names = ['Ableton', 'Basecamp', 'Clockify', 'Dovetail', 'Evernote', 'Gusto', 'Harvest']
  const install = () =>
    Promise.all(
      names.map((label) =>
        world.install(
          `list-${label.toLowerCase()}`,
          { ...keyDefinition(world.provider.url), label },
          { tags: [`${label} tag`] },
        ),
      ),
    )

  it('is filtered while one types, by tags too, and chosen by Enter when one is left', async () => {
    const { page } = await openLink(await install())
    await page.getByRole('searchbox').fill('TAG')
    await page.getByText('7 services').waitFor()
    await page.getByRole('searchbox').fill('tag gust')
    await page.getByText('1 service', { exact: true }).waitFor()
    expect(await page.getByRole('listitem').count()).toBe(1)
    await page.getByRole('searchbox').fill('nothing')
    await page.getByText('No service matches “nothing”.').waitFor()
    await page.getByRole('searchbox').fill('harvest')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Connect Harvest' }).waitFor()
    await closeContext(page.context())
  })

  it('is searched without script by a button', async () => {
    const { page } = await openLink(await install(), {}, { javaScriptEnabled: false })
    await page.getByRole('searchbox').fill('éver')
    await page.getByRole('button', { name: 'Search' }).click()
    await page.getByText('1 service', { exact: true }).waitFor()
    expect(await page.getByRole('listitem').count()).toBe(1)
    await page.getByRole('button', { name: 'Evernote' }).click()
    await page.getByRole('heading', { level: 1, name: 'Connect Evernote' }).waitFor()
    await closeContext(page.context())
  })
})

describe.concurrent('without script', () => {
  const context = { javaScriptEnabled: false }

  it('an account is connected with a key', async () => {
    const { page } = await openLink([plain, keys], {}, context)
    await page.getByRole('button', { name: 'Acme Keys' }).click()
    await fillKeyForm(page, RIGHT_KEY)
    await submitKeyForm(page)
    await untilConnected(page, 'Acme Keys')
    await closeContext(page.context())
  })

  it('an account is connected by a consent', async () => {
    const { page } = await openLink([plain], {}, context)
    await goToConsent(page)
    await allow(page)
    await untilConnected(page)
    await closeContext(page.context())
  })

  it('an account is connected by a form posted from the provider', async () => {
    const { page } = await openLink([await world.installProfile('form-post')], {}, context)
    await goToConsent(page)
    await allow(page)
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByRole('heading', { name: 'One moment…' }).waitFor()
    await page.getByRole('button', { name: 'Continue' }).click()
    await untilConnected(page)
    await closeContext(page.context())
  })
})

describe.concurrent('the page', () => {
  it('is in German for a browser that prefers it', async () => {
    const { page } = await openLink([keys], {}, { locale: 'de-DE' })
    await page.getByRole('heading', { name: 'Acme Keys verbinden' }).waitFor()
    expect(await page.evaluate(() => document.documentElement.lang)).toBe('de')
    await closeContext(page.context())
  })

  it('is in the language of the link before that of the browser', async () => {
    const { page } = await openLink([keys], { locale: 'de' }, { locale: 'en-GB' })
    await page.getByRole('heading', { name: 'Acme Keys verbinden' }).waitFor()
    await closeContext(page.context())
  })

  it('sends the customer back to the application with the result', async () => {
    const redirect_uri = `${world.host.url}/return`
    const { link, page } = await openLink([keys], { redirect_uri })
    await fillKeyForm(page, RIGHT_KEY)
    await submitKeyForm(page)
    await page.waitForURL(`${redirect_uri}?**`)
    const { integrated_account_id, integration } = await world.getLink(link.id)
    const result = Object.fromEntries(new URL(page.url()).searchParams)
    expect(result).toEqual({ status: 'completed', integrated_account_id, integration })
    await closeContext(page.context())
  })
})
