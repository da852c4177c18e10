import { describe, expect, it } from 'vitest'
import { pagePreferences, readSessionCookie, sessionCookieHeader } from '../../../../src/server/page/session-cookie.ts'

const ID = '01a204bd-d211-7677-bd6d-bcbe1e07087d'
const KEY = 'A'.repeat(43)
const COOKIE = { browserKey: KEY, mode: 'popup', theme: 'dark', locale: 'de-AT' } as const

/** What a browser sends back. */
const sent = (header: string) => header.split(';', 1)[0] ?? ''

describe('the cookie of a session', () => {
  it('is for this host over TLS alone, out of reach of scripts and of forms of other sites', () => {
    const header = sessionCookieHeader(ID, COOKIE, { isSecure: true, maxAgeSeconds: 600 })
    const [pair, ...attributes] = header.split('; ')
    expect(pair).toBe(`__Host-patchbay-link-${ID}=${KEY}.popup.dark.de-AT`)
    expect(attributes).toEqual(['Path=/', 'HttpOnly', 'SameSite=Lax', 'Max-Age=600', 'Secure'])
  })

  it('has neither prefix nor Secure where the public address has no TLS', () => {
    const header = sessionCookieHeader(ID, COOKIE, { isSecure: false, maxAgeSeconds: 600 })
    expect(header).toBe(`patchbay-link-${ID}=${KEY}.popup.dark.de-AT; Path=/; HttpOnly; SameSite=Lax; Max-Age=600`)
  })

  it.each([true, false])('is read back among others (TLS: %s)', (isSecure) => {
    const pair = sent(sessionCookieHeader(ID, COOKIE, { isSecure, maxAgeSeconds: 600 }))
    expect(readSessionCookie(`a=b; ${pair}; c=d`, ID, isSecure)).toEqual(COOKIE)
  })

  it.each([
    ['another session', `patchbay-link-${ID.replace('01', '02')}=${KEY}.link..`],
    ['no key', `patchbay-link-${ID}=`],
    ['a short key', `patchbay-link-${ID}=abc.link..`],
    ['a key with other characters', `patchbay-link-${ID}=${'<'.repeat(43)}.link..`],
    ['a name that only ends like it', `x-patchbay-link-${ID}=${KEY}.link..`],
    ['nothing', undefined],
  ])('of %s is none', (_, header) => {
    expect(readSessionCookie(header, ID, false)).toBeUndefined()
  })
})

describe('what an application asks for', () => {
  it.each([
    [
      { mode: 'redirect', theme: 'light', locale: 'de' },
      { mode: 'redirect', theme: 'light', locale: 'de' },
    ],
    [
      { mode: 'iframe', theme: 'auto', locale: 'x'.repeat(99) },
      { mode: 'link', theme: '', locale: '' },
    ],
    [
      { mode: 'popup', theme: '"><b>', locale: 'de; Domain=x' },
      { mode: 'popup', theme: '', locale: '' },
    ],
    [{}, { mode: 'link', theme: '', locale: '' }],
  ])('%j counts as %j', (given, preferences) => {
    expect(pagePreferences(given)).toEqual(preferences)
  })
})
