import type { JsonObject } from '../../../src/foundation/json/index.ts'
import type { Provider } from './provider.ts'
import type { RigApp } from './rig-app.ts'

/** How a customer connects. */
export interface Visit {
  /** Key of the credential that the link allows. */
  readonly credential: string
  /** What they fill in, by name of the field. */
  readonly fields: JsonObject
  /** Parameters with which the provider sends them back. */
  readonly redirect: Readonly<Record<string, string>> | undefined
  /** Text that the address of the consent page has to contain. */
  readonly client: string | undefined
}

const STEPS_MAX = 12

/** Goes through a link as a browser does, by the pages alone. @returns the id of the account. @throws with what the page says */
export async function connect(app: RigApp, provider: Provider, link: JsonObject, visit: Visit): Promise<string> {
  const { id, url } = await app.asEnvironment('POST', '/link-token', {
    ...link,
    allowed_credentials: [visit.credential],
    skip_post_connect_form: true,
  })
  const visitor = app.browser()
  const { pathname, search } = new URL(url)
  let page = await visitor.get(pathname + search)
  for (let count = 0; count < STEPS_MAX; count++) {
    const step = page.path.split('/')[3]?.split('?')[0]
    const consent = /data-continue="([^"]+)"/.exec(page.html)?.[1]
    if (page.status >= 400) throw new Error(`the page answers ${page.status}: ${textOf(page.html)}`)
    if (consent !== undefined) page = await visitor.get(callbackOf(visit, provider, unescaped(consent)))
    else if (step === 'form') {
      const before = await app.asEnvironment('GET', `/link-token/${id}`)
      if (count > 0) throw new Error(`${before.error_code}: ${before.error_message}`)
      page = await visitor.post(page.path, formOf(page.html, visit.fields))
    } else if (step === 'progress') {
      await app.activate()
      page = await visitor.get(`/connect/${id}`)
      if (page.path.endsWith('/progress')) break
    } else break
  }
  const session = await app.asEnvironment('GET', `/link-token/${id}`)
  if (session.status === 'completed') return session.integrated_account_id
  const { integrated_account_id: account } = session
  const reason = account == null ? session : await app.asEnvironment('GET', `/integrated-account/${account}`)
  throw new Error(`the link is ${session.status}: ${reason.last_error ?? session.error_message ?? session.error_code}`)
}

/** What the consent page of the provider sends the browser back to. */
function callbackOf({ redirect, client }: Visit, { requests }: Provider, consent: string): string {
  if (redirect === undefined) throw new Error(`there is no consent page: ${consent}`)
  const shown = decodeURIComponent(consent)
  if (client !== undefined && !shown.includes(client))
    throw new Error(`the consent page is not asked for the client: ${consent}`)
  if (shown.includes('***')) throw new Error(`the address of the consent page has masked values: ${consent}`)
  const state = [shown, decodeURIComponent(requests.at(-1)?.text ?? '')]
    .map((text) => /[?&"]state=([\w-]+)/.exec(text)?.[1])
    .find((found) => found !== undefined)
  return `/connect/callback?${new URLSearchParams({ ...redirect, state: state ?? '' })}`
}

/** The values of the fields that the page shows. */
function formOf(html: string, fields: JsonObject): URLSearchParams {
  const names = new Set([...html.matchAll(/name="f\.([^"]+)"/g)].map(([, name]) => name ?? ''))
  const form = new URLSearchParams()
  for (const name of names) if (fields[name] !== undefined) form.append(`f.${name}`, String(fields[name]))
  return form
}

function unescaped(text: string): string {
  return text.replaceAll('&quot;', '"').replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&')
}

function textOf(html: string): string {
  return unescaped(html.replace(/<(style|script)[\s\S]*?<\/\1>/g, '').replace(/<[^>]+>/g, ' '))
    .replace(/\s+/g, ' ')
    .trim()
    .slice(0, 300)
}
