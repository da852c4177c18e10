import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { html, linkUrl } from '../../../../src/server/page/html.ts'

describe('html', () => {
  it('escapes every value, in text and in attributes', () => {
    const hostile = `<script>alert("x")</script> & 'y'`
    const escaped = '&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt; &amp; &#39;y&#39;'
    expect(html`<p title="${hostile}">${hostile}</p>`.markup).toBe(`<p title="${escaped}">${escaped}</p>`)
  })

  it('escapes a value once, however deep it is nested', () => {
    const inner = html`<b>${'&'}</b>`
    expect(html`<p>${[inner, [inner, '<']]}</p>`.markup).toBe('<p><b>&amp;</b><b>&amp;</b>&lt;</p>')
  })

  it('prints nothing for what is absent', () => {
    expect(html`${undefined}${null}${false}${''}${0}`.markup).toBe('0')
  })

  it('lets no text open a tag or close an attribute', () => {
    fc.assert(fc.property(fc.string(), (text) => !/[<>"']/.test(html`${text}`.markup)))
  })

  it('takes an object that only looks like markup for no markup', () => {
    const forged = { markup: '<script>' } as unknown as string
    expect(() => html`${forged}`).toThrow()
  })
})

describe('linkUrl', () => {
  it.each([
    ['https://example.com/a?b=1', 'https://example.com/a?b=1'],
    ['http://example.com', 'http://example.com/'],
    ['javascript:alert(1)', undefined],
    ['JAVASCRIPT:alert(1)', undefined],
    ['\u0000javascript:alert(1)', undefined],
    ['data:text/html,x', undefined],
    ['/relative', undefined],
    ['', undefined],
    [undefined, undefined],
  ])('%j is the link %j', (text, url) => {
    expect(linkUrl(text)).toBe(url)
  })
})
