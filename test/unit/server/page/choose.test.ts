import { describe, expect, it } from 'vitest'
import { logoOf } from '../../../../src/server/page/views/layout.ts'
import { expectJson } from '../../../support/rest.ts'
import { freshName } from '../../../support/seeded-tenant.ts'
import { KEY_CONFIG, startConnectPage } from './fixture.ts'

const { app, browser, link, account } = await startConnectPage()
const { teamId, teamToken, environmentToken } = app.first

const SERVICES = [
  { label: 'Ableton', description: 'Music & sound.', tags: ['Audio', 'studio', 'live', 'mix', 'fifth'] },
  { label: 'Basecamp', category: 'project_management' },
  { label: 'Clockify', category: 'our_own' },
  { label: 'Dovetail', is_beta: true },
  { label: 'Évernote' },
  { label: 'Gusto' },
  { label: 'Harvest' },
]

/** Installs a service with what its catalogue entry shows in the override. */
async function install({ label, category = '', is_beta = false, ...override }: (typeof SERVICES)[number]) {
  const name = freshName('service')
  const { id } = await expectJson('POST', `${app.url}/integration`, teamToken, {
    name,
    category,
    is_beta,
    config: { ...KEY_CONFIG, label },
  })
  await expectJson('POST', `${app.url}/environment-integration`, environmentToken, { integration_id: id, override })
  return name
}
const names: string[] = []
for (const service of SERVICES) names.push(await install(service))

async function openPicker(integrations: readonly string[] = names, input = {}) {
  const visitor = browser()
  const { id, url } = await link({ integrations, ...input })
  return { visitor, id, page: await visitor.get(url) }
}

/** Labels of the services that are shown, in order. */
const shown = (html: string) =>
  [...html.matchAll(/<li>.*?<span class="label">([^<]*)/gs)].map(([, label]) => label?.trim())

describe('the list of services', () => {
  it('shows what each is for: its description and tags, else its category', async () => {
    const { html } = (await openPicker()).page
    expect(html).toContain('<span class="hint">Music &amp; sound.</span>')
    expect(html.match(/<span class="tag">(\w+)/g)).toEqual(
      ['Audio', 'studio', 'live', 'mix'].map((tag) => `<span class="tag">${tag}`),
    )
    expect(html).toContain('<span class="hint">Project management</span>')
    expect(html).toContain('<span class="hint">Our own</span>')
  })

  it('marks beta, and says what it means', async () => {
    const { html } = (await openPicker()).page
    expect(html.match(/Dovetail <span class="badge">Beta<\/span>/g)).toHaveLength(1)
    expect(html.match(/class="badge"/g)).toHaveLength(1)
    expect(html).toContain('Beta: not fully tested yet')
    expect((await openPicker(names.slice(0, 3))).page.html).not.toContain('Beta: not')
  })

  it.each([
    ['ever', ['Évernote']],
    ['EVER', ['Évernote']],
    ['music SOUND', ['Ableton']],
    ['fifth', ['Ableton']],
    ['projekt', ['Basecamp']],
    ['gusto harvest', []],
    ['', SERVICES.map(({ label }) => label)],
    ['<script>', []],
  ])('is searched without script: %j', async (query, expected) => {
    const { visitor, page } = await openPicker(names, { locale: 'de' })
    const { html } = await visitor.get(`${page.path}?q=${encodeURIComponent(query)}`)
    expect(shown(html).toSorted()).toEqual(expected.toSorted())
    expect(html).toContain(query === '<script>' ? 'value="&lt;script&gt;"' : `value="${query}"`)
    expect(html.includes('Kein Dienst passt zu')).toBe(true)
    expect(/role="status">(.*?)</.exec(html)?.[1] === '').toBe(query === '')
  })

  it('of a handful has no search', async () => {
    expect((await openPicker(names.slice(0, 6))).page.html).not.toContain('type="search"')
    expect((await openPicker()).page.html).toContain('role="search" method="get"')
  })
})

describe('a beta connection', () => {
  it('says so where it is made', async () => {
    const { html } = (await openPicker(names.slice(3, 4))).page
    expect(html).toContain('The connection to Dovetail is in beta')
    expect((await openPicker(names.slice(0, 1))).page.html).not.toContain('in beta')
  })
})

describe('terms of service', () => {
  const TERMS = 'https://example.com/terms?a=1&b=2'
  const form = { 'f.subdomain': 'acme', 'f.api_key': 'k' }
  const setTerms = (tos_link: string) => expectJson('PATCH', `${app.url}/team/${teamId}`, teamToken, { tos_link })

  it('have to be accepted by a box that is not checked in advance; the application sees which were, and when', async () => {
    await setTerms(TERMS)
    const { visitor, id, page } = await openPicker(names.slice(0, 1))
    const box = /<input type="checkbox" id="terms"[^>]*>/
    expect(box.exec(page.html)?.[0]).toContain('value="https://example.com/terms?a=1&amp;b=2" required>')
    expect(page.html).toContain('<a href="https://example.com/terms?a=1&amp;b=2" target="_blank"')

    const rejected = await visitor.post(page.path, form)
    expect(rejected.status).toBe(422)
    expect(rejected.html).toContain('<a href="#terms">Accept the terms of service to continue.</a>')
    expect(rejected.html).toContain('There is 1 problem')
    const kept = await visitor.post(page.path, { 'f.subdomain': 'acme', terms: TERMS })
    expect(box.exec(kept.html)?.[0]).toContain(' checked')

    const done = await visitor.post(page.path, { ...form, terms: TERMS })
    expect(done.path).toBe(`/connect/${id}/done`)
    const session = await expectJson('GET', `${app.url}/link-token/${id}`, environmentToken)
    const { terms_url, terms_accepted_at } = await account(String(session.integrated_account_id))
    expect([session.terms_url, terms_url]).toEqual([TERMS, TERMS])
    expect(terms_accepted_at).toBe(session.terms_accepted_at)
    await setTerms('')
  })

  it('that changed while the page was open are asked for anew', async () => {
    await setTerms(TERMS)
    const { visitor, page } = await openPicker(names.slice(0, 1))
    await setTerms('https://example.com/new')
    const rejected = await visitor.post(page.path, { ...form, terms: TERMS })
    expect(rejected.html).toMatch(
      /<input type="checkbox" id="terms" name="terms" value="https:\/\/example.com\/new" required aria-invalid/,
    )
    await setTerms('')
  })
})

describe('initials', () => {
  it.each([
    ['Acme', 'AC'],
    ['Acme Keys', 'AK'],
    ['monday.com', 'MC'],
    ['Ledger (our internal API)', 'LE'],
    ['(internal)', 'IN'],
    ['[Beta] Ledger', 'BL'],
    ['"Quoted" & Co', 'QC'],
    ['é\u0301clair', 'É\u0301C'],
    ['éclair', 'ÉC'],
    ['日本 語', '日語'],
    ['🚀 Rocket', 'RO'],
    ['🚀', '?'],
    ['3M', '3M'],
    ['X', 'X'],
    ['', '?'],
  ])('of %j are %j', (name, expected) => {
    expect(logoOf({ name }).markup).toContain(`>${expected}<`)
  })
})
