import { describe, expect, it } from 'vitest'
import { Redactor } from '../../src/redaction/index.ts'
import { SECRET_ENCODINGS } from '../support/secret-encodings.ts'

const SECRET = 'kX9_tq2LmVw7Rz4Yb8Nc1Hd6Pf3Gj5Ks'
const WINDOW = 8
const MARKS = ['', '…', '...', '…"}', '").']

const windows = Array.from({ length: SECRET.length - WINDOW + 1 }, (_, at) => SECRET.slice(at, at + WINDOW))
const redaction = new Redactor(() => [SECRET])

/** Everything that a reader could decode of a text: itself, without escapes, and the bytes of base64 and hexadecimal in it. */
function readings(text: string): readonly string[] {
  const plain = text
    .replace(/\\u([\da-f]{4})/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
    .replace(/%25/g, '%')
    .replace(/%([\da-f]{2})/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
  const words = plain.split(/[^\w+/=-]+/)
  const decoded = words.flatMap((word) => [
    ...[0, 1, 2, 3].map((skip) => Buffer.from(word.slice(skip), 'base64').toString('latin1')),
    ...[0, 1].map((skip) => Buffer.from(word.slice(skip), 'hex').toString('latin1')),
  ])
  return [text, plain, ...decoded].map((each) => each.toLowerCase())
}

function shown(text: string): readonly string[] {
  const texts = readings(text)
  return windows.filter((window) => texts.some((each) => each.includes(window.toLowerCase())))
}

describe('a secret that a text was cut in', () => {
  it.each(Object.entries(SECRET_ENCODINGS))(
    'shows no 8 characters in a row, at any place of the cut, %s',
    (_, encode) => {
      const text = `the key ${encode(SECRET)} is not valid`
      for (let length = 1; length <= text.length; length++)
        for (const mark of MARKS) {
          const cut = redaction.redactText(text.slice(0, length) + mark)
          expect(shown(cut), cut).toEqual([])
        }
    },
  )

  it('is masked before a text is cut', () => {
    for (let before = 0; before < 120; before++) {
      const cut = redaction.redactCut(`${'x'.repeat(before)} ${SECRET} ${'y'.repeat(40)}`, 100)
      expect(cut.length).toBeLessThanOrEqual(100)
      expect(shown(cut), cut).toEqual([])
    }
  })

  it('changes no text that ends with fewer characters of it, or holds them elsewhere', () => {
    for (const text of [`x ${SECRET.slice(0, 7)}`, `${SECRET.slice(0, 9)} is a beginning`, '…', '%4', 'a \\u00'])
      expect(redaction.redactText(text)).toBe(text)
  })
})
