import { generateKeyPairSync } from 'node:crypto'
import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { shipped } from '../../unit/engine/catalog/shipped.ts'
import { closeContext } from './support/chromium.ts'
import { alertTitle, allow, goToConsent, untilConnected } from './support/steps.ts'
import { type ShippedParty, shippedParty, startThirdParties } from './support/third-parties.ts'

const { world, play } = await startThirdParties()

/** Installs a definition as it ships, and plays its third party from now on. */
async function install(name: string, party: ShippedParty): Promise<void> {
  const { config, category = '' } = shipped(name)
  await world.install(name, config, { category, environment_variables: party.variables })
  world.canaries.push(...party.secrets)
  play((request) => party.answer(request))
}

async function open(link: object) {
  const { id, url } = await world.createLink(link)
  const page = await world.newPage()
  await page.goto(url)
  return { id, page }
}

async function accountOf(linkId: string) {
  const { integrated_account_id: id } = await world.getLink(linkId)
  return await world.call('GET', `/integrated-account/${id}`)
}

/** Checks what a customer leaves behind. @returns the account */
async function finished(page: Page, linkId: string, title: string) {
  await untilConnected(page, title)
  await closeContext(page.context())
  expect(await world.getLink(linkId)).toMatchObject({ status: 'completed' })
  const account = await accountOf(linkId)
  expect(account.status).toBe('active')
  expect(JSON.stringify(account.context)).not.toContain('***')
  return account
}

/** One call in the name of an account. */
async function callMethod(account: { readonly id: string }, resource: string, method: string) {
  const body = { integrated_account_id: account.id, resource, method }
  return await world.call('POST', '/patchbay.v1.ProxyService/Call', body)
}

describe('as it ships, at the names of its hosts, the customer connects', () => {
  it('salesforce: a form with the login host, then the consent', async () => {
    const party = shippedParty('salesforce', {}, ['test.salesforce.com', 'login.salesforce.com'])
    await install('salesforce', party)
    const { id, page } = await open({ integrations: ['salesforce'] })
    expect(await page.getByLabel('Login host').inputValue()).toBe('login.salesforce.com')
    await goToConsent(page)
    expect(new URL(page.url()).origin).toBe('https://login.salesforce.com')
    await allow(page)
    const account = await finished(page, id, 'Salesforce')
    expect((await callMethod(account, 'accounts', 'list')).result).toMatchObject([{ Name: 'Test 1' }])
  })

  it('slack: the consent, then the channels to read', async () => {
    const party = shippedParty('slack')
    await install('slack', party)
    const { id, page } = await open({ integrations: ['slack'], allowed_credentials: ['oauth2'] })
    await goToConsent(page)
    expect(new URL(page.url()).origin).toBe('https://slack.com')
    await allow(page)
    await page.getByRole('checkbox', { name: 'general' }).check()
    await page.getByRole('button', { name: 'Save and finish' }).click()
    const account = await finished(page, id, 'Slack')
    expect(account.context).toMatchObject({ team_name: 'Acme', bot_user_id: 'U0KRQLJ9H' })
    expect((await callMethod(account, 'team', 'get')).result).toMatchObject({ name: 'My Team' })
  })

  it('xero: one of two organisations, which a reconnection keeps', async () => {
    const organisations = ['Maple', 'Birch'].map((tenantName, index) => {
      const tenantId = `45e4708e-d862-4111-ab3a-dd8cd039130${index}`
      return { id: `e${index}`, tenantId, tenantType: 'ORGANISATION', tenantName }
    })
    const party = shippedParty('xero', { 'https://api.xero.com/connections': organisations })
    await install('xero', party)
    const { id, page } = await open({ integrations: ['xero'] })
    await goToConsent(page)
    expect(new URL(page.url()).origin).toBe('https://login.xero.com')
    await allow(page)
    await page.getByRole('radio', { name: 'Birch' }).check()
    expect((await accountOf(id)).status).toBe('connecting')
    await page.getByRole('button', { name: 'Save and finish' }).click()
    const account = await finished(page, id, 'Xero')
    expect(account.context).toMatchObject({ tenant_id: organisations[1]?.tenantId })

    const again = await open({ integrated_account_id: account.id })
    await goToConsent(again.page)
    await allow(again.page)
    const kept = await finished(again.page, again.id, 'Xero')
    expect(kept).toMatchObject({ id: account.id, context: account.context })
    await callMethod(account, 'organisation', 'get')
    expect(party.provider.requests.at(-1)?.headers['xero-tenant-id']).toBe(organisations[1]?.tenantId)
  })

  it('gmail: the key of a service account, in one line or as the whole file', async () => {
    const party = shippedParty('gmail jwt')
    await install('gmail', party)
    const private_key = generateKeyPairSync('rsa', { modulusLength: 2048 })
      .privateKey.export({ type: 'pkcs8', format: 'pem' })
      .toString()
    const client_email = 'name@project.iam.gserviceaccount.com'
    world.canaries.push({ kind: 'private key', value: private_key.split('\n')[3] ?? '' })
    const { id, page } = await open({ integrations: ['gmail'] })
    await page.getByRole('button', { name: 'Service account' }).click()
    const key = page.getByLabel('Private key')
    const connect = page.getByRole('button', { name: 'Connect', exact: true })
    await page.getByLabel('Service account e-mail').fill(client_email)
    await page.getByLabel('User').fill('ann@example.com')
    await key.fill(private_key.slice(0, 400))
    await connect.click()
    await page.getByRole('alert').waitFor()
    const problem = await page.locator('.field', { has: key }).locator('.problem').textContent()
    expect(problem).toBe('This key cannot be read. Paste all of it, from BEGIN to END, without a passphrase.')
    await key.fill(private_key.replaceAll('\n', ' '))
    await connect.click()
    const account = await finished(page, id, 'Gmail')
    expect((await callMethod(account, 'profile', 'get')).result).toMatchObject({ emailAddress: 'ann@example.com' })

    const again = await open({ integrations: ['gmail'], tenant_id: 'file', allowed_credentials: ['jwt'] })
    await again.page.getByLabel('Service account e-mail').fill(client_email)
    const file = { type: 'service_account', project_id: 'project', private_key, client_email }
    await again.page.getByLabel('Private key').fill(JSON.stringify(file, null, 2))
    await again.page.getByRole('button', { name: 'Connect', exact: true }).click()
    const other = await finished(again.page, again.id, 'Gmail')
    await callMethod(other, 'profile', 'get')
  })
})

describe('a login by XML in the shape of Sage Intacct', () => {
  const SESSION = 'session-id-of-the-login'
  const control = {
    senderid: '{{environment_variables.SENDER_ID}}',
    password: '{{environment_variables.SENDER_PASSWORD}}',
    controlid: 'patchbay',
    uniqueid: 'false',
    dtdversion: '3.0',
    includewhitespace: 'false',
  }
  const request = (authentication: object, call: object) => ({
    method: 'POST',
    path: '/ia/xml/xmlgw.phtml',
    body_format: 'xml',
    body: {
      request: { control, operation: { authentication, content: { function: { '@controlid': 'c1', ...call } } } },
    },
    response_format: 'xml',
  })
  const login = { userid: '{{user_id}}', companyid: '{{company_id}}', password: '{{user_password}}' }
  const config = {
    label: 'Sage Intacct',
    base_url: 'https://api.intacct.com',
    error_expression: 'data.response.operation.errormessage.error.{"status": 401, "message": description2}',
    credentials: {
      vendor_oauth: {
        label: 'Login',
        config: {
          fields: [
            { name: 'company_id', label: 'Company ID', required: true },
            { name: 'user_id', label: 'User ID', required: true },
            { name: 'user_password', label: 'Password', type: 'password', required: true },
          ],
          token_request: { ...request({ login }, { getAPISession: {} }), base_url: 'https://api.intacct.com' },
          token_expression: 'body.response.operation.result.data.api.sessionid',
        },
      },
    },
    resources: {
      customers: {
        list: {
          ...request({ sessionid: '{{oauth.token.access_token}}' }, { readByQuery: { object: 'CUSTOMER' } }),
          response_path: 'response.operation.result.data.customer',
        },
      },
    },
  }
  const PASSWORDS = { sender: 'sender-password-1', right: 'right & proper <1>', wrong: 'wrong-password-1' }

  it('arrives as it is written; its error is shown at once, and the right password connects', async () => {
    const bodies: string[] = []
    const answerOf = (operation: string) => ({
      headers: { 'content-type': 'text/xml' },
      body: `<?xml version="1.0" encoding="UTF-8"?><response><control><status>success</status></control><operation>${operation}</operation></response>`,
    })
    play(({ url, body }) => {
      if (url.host !== 'api.intacct.com') return { status: 404, body: '' }
      bodies.push(body)
      if (body.includes(`<sessionid>${SESSION}</sessionid>`))
        return answerOf('<result><data><customer><CUSTOMERID>C1</CUSTOMERID></customer></data></result>')
      if (body.includes('<password>right &amp; proper &lt;1&gt;</password>'))
        return answerOf(`<result><data><api><sessionid>${SESSION}</sessionid></api></data></result>`)
      const error = '<errorno>XL03000006</errorno><description2>Sign-in information is incorrect</description2>'
      return answerOf(
        `<authentication><status>failure</status></authentication><errormessage><error>${error}</error></errormessage>`,
      )
    })
    for (const value of [...Object.values(PASSWORDS), SESSION]) world.canaries.push({ kind: 'password', value })
    const environment_variables = { SENDER_ID: 'acme-sender', SENDER_PASSWORD: PASSWORDS.sender }
    await world.install('sage-intacct', config, { environment_variables })
    const { id, page } = await open({ integrations: ['sage-intacct'] })
    await page.getByLabel('Company ID').fill('Acme')
    await page.getByLabel('User ID').fill('ann')
    await page.getByLabel('Password').fill(PASSWORDS.wrong)
    await page.getByRole('button', { name: 'Connect', exact: true }).click()
    await page.getByRole('alert').waitFor({ timeout: 10_000 })
    await page.getByText('Message from Sage Intacct').click()
    await page.getByText('Sign-in information is incorrect', { exact: true }).waitFor()
    expect(await alertTitle(page)).toBe('Sage Intacct did not accept the credentials')
    expect(bodies).toHaveLength(1)
    expect(bodies[0]?.replace(/<\?xml.*?\?>/, '')).toBe(
      `<request><control><senderid>acme-sender</senderid><password>${PASSWORDS.sender}</password><controlid>patchbay</controlid><uniqueid>false</uniqueid><dtdversion>3.0</dtdversion><includewhitespace>false</includewhitespace></control><operation><authentication><login><userid>ann</userid><companyid>Acme</companyid><password>${PASSWORDS.wrong}</password></login></authentication><content><function controlid="c1"><getAPISession/></function></content></operation></request>`,
    )
    await page.getByLabel('Password').fill(PASSWORDS.right)
    await page.getByRole('button', { name: 'Connect', exact: true }).click()
    const account = await finished(page, id, 'Sage Intacct')
    expect((await callMethod(account, 'customers', 'list')).result).toEqual([{ CUSTOMERID: 'C1' }])
  })
})
