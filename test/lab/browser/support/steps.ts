import type { Frame, Page } from 'playwright-core'

/** What a customer does on the pages; each resolves when the browser has arrived. */
type Place = Page | Frame

/** Leaves for the provider's consent page. Without script there is a page with a link between. */
export async function goToConsent(page: Page): Promise<void> {
  await page.getByRole('button', { name: /^Continue to / }).click()
  await page
    .getByRole('button', { name: 'Allow' })
    .or(page.getByRole('link', { name: /^Continue to / }))
    .waitFor()
  const link = page.getByRole('link', { name: /^Continue to / })
  if (await link.isVisible()) await link.click()
  await page.getByRole('button', { name: 'Allow' }).waitFor()
}

export async function allow(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Allow' }).click()
}

export async function deny(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Deny' }).click()
}

/** Waits for the end of a session. @param title of the integration */
export async function untilConnected(place: Place, title = 'Acme CRM'): Promise<void> {
  await place.getByRole('heading', { level: 1, name: new RegExp(`^${title} is connected`) }).waitFor()
}

export async function fillKeyForm(
  place: Place,
  key: string,
  subdomain = 'https://acme.example.com/login',
): Promise<void> {
  await place.getByLabel('Subdomain').fill(subdomain)
  await place.getByLabel('API key', { exact: true }).fill(key)
}

export async function submitKeyForm(place: Place): Promise<void> {
  await place.getByRole('button', { name: 'Connect', exact: true }).click()
}

/** The title of the alert on a page. */
export async function alertTitle(place: Place): Promise<string> {
  return ((await place.getByRole('alert').getByRole('heading').textContent()) ?? '').trim()
}
