import { describe, expect, it } from 'vitest'
import { JsonNumber } from '../../../../src/foundation/json/index.ts'
import { Redactor } from '../../../../src/foundation/redaction/index.ts'
import { SECRET_ENCODINGS } from '../../../support/secret-encodings.ts'

const redact = (text: string, ...secrets: string[]) => new Redactor(() => secrets).redactText(text)

const SECRETS = [
  'sk_live_4eC39HqLyjWDarjtT1zdp7dc',
  'p@ss word+with/every=kind&of "sign" <and> \'quote\' 100%\\done',
  'Zürich-größe-密碼-🔑-schlüssel',
  'line one\nline two\tand a tab',
  'ends with escapes %41%2f &amp; \\u0041',
]

describe('a secret in a text', () => {
  it.each(Object.entries(SECRET_ENCODINGS))('is found %s', (_name, encode) => {
    for (const secret of SECRETS)
      expect(redact(`bad key: ${encode(secret)} (sent)`, secret)).toBe('bad key: *** (sent)')
  })

  it('is found inside other text', () => {
    const secret = 'nabcdef-2'
    for (const text of [`%${secret}`, `100%${secret}%`, `\\${secret}\\`, `"${secret}"`, `x${secret}y`])
      expect(redact(text, secret)).not.toContain(secret)
  })

  it('is masked completely when it contains a shorter one', () => {
    expect(redact('token abcdef-ghijkl.', 'abcdef', 'abcdef-ghijkl', 'ghijkl')).toBe('token ***.')
    expect(redact('abcdef ghijkl', 'abcdef', 'ghijkl')).toBe('*** ***')
  })

  it('of fewer than four characters is found only as a whole word', () => {
    expect(redact('pin 12, page 121, 12.', '12')).toBe('pin ***, page 121, ***.')
  })

  it('of great length is recognized by its beginning and masked to its end', () => {
    const secret = Array.from({ length: 200 }, (_, at) => `${at}.`).join('')
    expect(redact(`key ${secret} end`, secret)).toBe('key *** end')
    expect(redact(`key ${secret.slice(0, 100)}`, secret)).toBe('key ***')
  })

  it('of several lines is found line by line', () => {
    const pem = `-----BEGIN KEY-----\n${'abcdefgh'.repeat(8)}\n${'12345678'.repeat(8)}\n-----END KEY-----\n`
    expect(redact(`line 2: ${'12345678'.repeat(8)}`, pem)).toBe('line 2: ***')
    expect(redact(JSON.stringify({ pem }), pem)).toBe('{"pem":"***"}')
  })

  it('is not found in other texts, which stay unchanged', () => {
    for (const text of ['', 'nothing %20 of &amp; the kind \\n', 'sk_live', 'aGVsbG8gd29ybGQ='])
      expect(redact(text, ...SECRETS)).toBe(text)
  })

  it('is not partly shown where a very long text is truncated', () => {
    const secret = 'abcdefghijklmnopqrst'
    const shown = redact(`${'x'.repeat(256 * 1024 - 10)}${secret}${'y'.repeat(100)}`, secret)
    expect(shown.length).toBeLessThanOrEqual(256 * 1024)
    expect(shown).toMatch(/x…$/)
  })
})

describe('a JSON value', () => {
  it('is redacted in texts, keys and numbers, and keeps its shape', () => {
    const redaction = new Redactor(() => ['canary-1', '424242', '98765432109876543210'])
    const exact = new JsonNumber('12345678901234567890')
    const value = {
      a: ['canary-1', 424242, new JsonNumber('98765432109876543210'), exact, 42, null, true],
      'x-canary-1': { b: 'no' },
    }
    const redacted = { a: ['***', '***', '***', exact, 42, null, true], 'x-***': { b: 'no' } }
    expect(redaction.redactJson(value)).toEqual(redacted)
  })

  it('shows nothing beyond the limits of depth and size', () => {
    const redaction = new Redactor(() => ['canary-1'])
    const deep = JSON.parse(`${'['.repeat(5_000)}"canary-1"${']'.repeat(5_000)}`)
    expect(JSON.stringify(redaction.redactJson(deep))).toMatch(/^\[+"\*\*\*"\]+$/)
    const large = Array.from({ length: 50_000 }, (_, at) => `text ${at}`)
    const redacted = redaction.redactJson(large) as string[]
    expect([redacted[0], redacted.at(-1)]).toEqual(['text 0', '***'])
    expect(redacted.filter((text) => text === '***')).toHaveLength(1)
    expect(JSON.stringify(redaction.redactJson(Array(1_000_000).fill([]))).length).toBeLessThan(100_000)
  })
})

describe('an error', () => {
  it('is redacted in message, stack and causes', () => {
    const error = new TypeError('canary-1 is bad', { cause: new Error('because of canary-1') })
    const redacted = new Redactor(() => ['canary-1']).redactError(error)
    expect(redacted).toMatchObject({ name: 'TypeError', message: '*** is bad', cause: { message: 'because of ***' } })
    expect(redacted instanceof Error && redacted.stack).not.toContain('canary-1')
  })
})

describe('the list of secrets', () => {
  it('is read when the first text is redacted, and again after it has changed', () => {
    const asked: string[] = []
    const list = (name: string) => () => {
      asked.push(name)
      return [name]
    }
    const redaction = new Redactor(list('first-1'))
    redaction.setSecrets('more', list('second-2'))
    expect(asked).toEqual([])
    expect(redaction.redactText('first-1 second-2 third-3')).toBe('*** *** third-3')
    redaction.redactText('nothing')
    expect(asked).toEqual(['first-1', 'second-2'])
    redaction.setSecrets('more', list('third-3'))
    expect(redaction.redactText('first-1 second-2 third-3')).toBe('*** second-2 ***')
  })

  it('masks every text completely when it is too long to index', () => {
    const many = Array.from({ length: 5_000 }, (_, at) => `${at} ${'x'.repeat(60)}${at}`)
    expect(redact('anything', ...many)).toBe('***')
  })
})
