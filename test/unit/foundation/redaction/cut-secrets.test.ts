import { describe, expect, it } from 'vitest'
import { Redactor } from '../../../../src/foundation/redaction/index.ts'
import { CUT_MARKS, shownWindows } from '../../../lab/faults/support/cut-windows.ts'
import { SECRET_ENCODINGS } from '../../../support/secret-encodings.ts'

const SECRET = 'kX9_tq2LmVw7Rz4Yb8Nc1Hd6Pf3Gj5Ks'
const redaction = new Redactor(() => [SECRET])

const shown = (text: string) => shownWindows(text, SECRET)

describe('a secret that a text was cut in', () => {
  it.each(Object.entries(SECRET_ENCODINGS))(
    'shows no 8 characters in a row, at any place of the cut, %s',
    (_, encode) => {
      const text = `the key ${encode(SECRET)} is not valid`
      for (let length = 1; length <= text.length; length++)
        for (const mark of CUT_MARKS) {
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
