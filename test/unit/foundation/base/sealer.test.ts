import { describe, expect, it } from 'vitest'
import { createSealer } from '../../../../src/foundation/base/index.ts'
import { forgeText } from '../../../lab/faults/support/token-mutations.ts'

const KEY = Buffer.alloc(32, 1)
const OTHER_KEY = Buffer.alloc(32, 2)
const sealer = createSealer([KEY])
const BINDING = { list: 'items', arguments: { q: 'x' }, holder: 'a' }

describe('a sealed value', () => {
  it('opens for its purpose and binding, whatever the order of keys, in every process with the key', () => {
    const text = sealer.seal('cursor', BINDING, 'grüße {"url":"/items?page=2"}')
    const reordered = { holder: 'a', arguments: { q: 'x' }, list: 'items' }
    expect(createSealer([KEY]).open('cursor', reordered, text)).toBe('grüße {"url":"/items?page=2"}')
  })

  it('shows nothing of its content, and is another text every time', () => {
    const texts = [1, 2].map(() => sealer.seal('cursor', BINDING, '/items?page=2'))
    expect(texts[0]).not.toBe(texts[1])
    for (const text of texts) expect(Buffer.from(text, 'base64url').toString('latin1')).not.toContain('items')
  })

  it('opens after a rotation of keys, until the old key is removed', () => {
    const text = sealer.seal('cursor', BINDING, 'x')
    expect(createSealer([OTHER_KEY, KEY]).open('cursor', BINDING, text)).toBe('x')
    expect(createSealer([OTHER_KEY]).open('cursor', BINDING, text)).toBeUndefined()
  })

  it.each([
    ['another purpose', 'token', BINDING],
    ['other arguments', 'cursor', { ...BINDING, arguments: { q: 'y' } }],
    ['another holder', 'cursor', { ...BINDING, holder: 'b' }],
    ['less', 'cursor', { list: 'items' }],
  ])('does not open for %s', (_, purpose, binding) => {
    expect(sealer.open(purpose, binding, sealer.seal('cursor', BINDING, 'x'))).toBeUndefined()
  })

  it('does not open in any other form', () => {
    const text = sealer.seal('cursor', BINDING, '{"url":"https://api.example.com/items","page":2}')
    const opened = forgeText(text, 1_000).filter((forged) => sealer.open('cursor', BINDING, forged) !== undefined)
    expect(opened).toEqual([])
  })
})
