import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { findCanaries, Observer } from './support/observer.ts'

const PRODUCT = 'http://127.0.0.1:8080'
const SECRET = 'a secret/value+1'
const ENCODED = encodeURIComponent(SECRET)
const HOP = `${PRODUCT}/connect/1/form`
const CALLBACK = `${PRODUCT}/connect/callback`
const ADDRESS = `http://localhost/authorize?scope=read&amp;state=${ENCODED}`

/** What is found when the secret, of a kind, is in one place. */
function search(kind: string, place: (observer: Observer) => void, { log = '', referer = '' } = {}): string[] {
  const folder = mkdtempSync(join(tmpdir(), 'patchbay-canaries-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const logFile = join(folder, 'log')
  writeFileSync(logFile, log)
  const observer = new Observer(PRODUCT)
  place(observer)
  const received = [{ method: 'GET', url: '/plain/authorize?a=1', referer }]
  return findCanaries(observer, { productUrl: PRODUCT, canaries: [{ kind, value: SECRET }], received, logFile })
}

const nothing = (): void => {}

it.each<[string, string, (observer: Observer) => void, { log?: string; referer?: string }, string]>([
  ['an address', 'link token', ({ urls }) => urls.push(`${PRODUCT}/connect/1/form?t=${ENCODED}`), {}, 'address'],
  ['a message', 'access', ({ messages }) => messages.push(JSON.stringify({ t: SECRET })), {}, 'message'],
  ['a document', 'verifier', ({ documents }) => documents.push({ url: HOP, html: `<p>${SECRET}</p>` }), {}, 'document'],
  ['a referrer', 'code', nothing, { referer: `${CALLBACK}?code=${ENCODED}` }, 'referrer'],
  ['a log', 'state', nothing, { log: JSON.stringify({ path: `/connect/callback?state=${ENCODED}` }) }, 'log'],
])('a secret in %s is found', (_where, kind, place, texts, name) => {
  expect(search(kind, place, texts)).toEqual([expect.stringContaining(`${kind} in ${name}`)])
})

it.each([
  ['link token', `${PRODUCT}/connect?link_token=${ENCODED}`],
  ['code', `${CALLBACK}?code=${ENCODED}`],
  ['state', `http://localhost/authorize?state=${ENCODED}`],
])('a %s in an address where the protocol puts it is not', (kind, url) => {
  expect(search(kind, ({ urls }) => urls.push(url))).toEqual([])
})

const hop = `<main data-continue="${ADDRESS}"><a href="${ADDRESS}">Continue</a></main>`
const repost = (name: string) => `<form data-submit><input type="hidden" name="${name}" value="${SECRET}"></form>`

it.each([
  ['state', 'leads to the third party', HOP, hop],
  ['state', 'posts a callback again', CALLBACK, repost('state')],
  ['code', 'posts a callback again', CALLBACK, repost('code')],
])('a %s in the page that %s is not, unless it is elsewhere in it', (kind, _what, url, html) => {
  expect(search(kind, ({ documents }) => documents.push({ url, html }))).toEqual([])
  expect(search(kind, ({ documents }) => documents.push({ url, html: `${html}<p>${SECRET}</p>` }))).toEqual([
    `${kind} in document ${url}`,
  ])
})

it.each([
  ['a verifier in the address of the third party', 'verifier', HOP, hop.replaceAll('state=', 'code_verifier=')],
  ['a code in a form of another page', 'code', HOP, repost('code')],
])('%s is found', (_what, kind, url, html) => {
  expect(search(kind, ({ documents }) => documents.push({ url, html }))).toEqual([`${kind} in document ${url}`])
})
