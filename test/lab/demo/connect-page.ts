import type { JsonAnswer } from '../../support/rest.ts'
import { findChromium, launchChromium } from '../browser/support/chromium.ts'
import { type GitHub, OAUTH_APP, OWNER } from './github.ts'
import { printFact } from './report.ts'
import type { DemoSession } from './session.ts'
import type { DemoSetup } from './setup.ts'

const PAGE_TIMEOUT_MS = 15_000

/** What connecting needs. */
export interface ConnectPageDeps extends Pick<DemoSetup, 'get' | 'post' | 'installationId'> {
  readonly session: DemoSession
}

/** Whether a customer can be played: there is a browser. */
export function hasBrowser(): boolean {
  return findChromium() !== undefined
}

/** The consent of the local GitHub instead of that of github.com, beside the definition's own methods. */
export function consentOverride({ url }: Pick<GitHub, 'url'>): object {
  return {
    credentials: {
      oauth2: {
        label: 'GitHub login',
        config: {
          client: { id: OAUTH_APP.client_id, secret: OAUTH_APP.client_secret },
          auth: {
            tokenHost: url,
            tokenPath: '/login/oauth/access_token',
            authorizeHost: url,
            authorizePath: '/login/oauth/authorize',
          },
          scope: ['repo', 'user'],
          verification: { method: 'GET', path: '/user' },
        },
      },
    },
    authorization: { config: { token: '{{oauth.token.access_token|api_key}}' } },
  }
}

/** Makes a link, opens it in headless Chromium as the customer would, and consents at the local GitHub. */
export async function connectByLink(
  { session, get, post, installationId }: ConnectPageDeps,
  tenantId: string,
): Promise<JsonAnswer> {
  const link = await post('/link-token', { tenant_id: tenantId, integrations: [installationId] })
  printFact('link', `${new URL(link.url).origin}/connect?link_token=…   opened in headless Chromium`)
  const browser = await launchChromium()
  try {
    const page = await browser.newPage({ locale: 'en' })
    page.setDefaultTimeout(PAGE_TIMEOUT_MS)
    await page.goto(link.url)
    await page.getByRole('button', { name: /^GitHub login/ }).click()
    await page.getByRole('button', { name: 'Continue to GitHub' }).click()
    await page.getByRole('button', { name: OWNER }).click()
    await page.getByRole('heading', { name: 'GitHub is connected' }).waitFor()
  } finally {
    await browser.close()
  }
  const { status, integrated_account_id } = await session.pollFor('the link to complete', async () => {
    const found = await get(`/link-token/${link.id}`)
    return found.status === 'completed' ? found : undefined
  })
  const account = await get(`/integrated-account/${integrated_account_id}`)
  printFact('integrated account', `tenant ${tenantId}, ${account.status}: link ${status}, ${OWNER} has consented`)
  return account
}
