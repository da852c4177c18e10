import { describe, expect, test } from 'vitest'
import { FIELD_RULES } from '../../../../src/engine/formats/credential/check-field-value.ts'
import { fieldList } from '../../../../src/engine/formats/credential/fields.ts'
import { listFormFields } from '../../../../src/engine/formats/index.ts'
import { textsFor } from '../../../../src/server/page/texts.ts'
import { violationText } from '../../../../src/server/page/views/fields.ts'

const [field] = listFormFields(fieldList().parse([{ name: 'days', type: 'number', min: 1, max: 30 }]))
if (field === undefined) throw new Error('there is a field')

describe.each(['en', 'de'])('in %s', (language) => {
  const texts = textsFor([language])

  test.each(FIELD_RULES)('a value that breaks the rule %s has a text of its own', (rule) => {
    const text = violationText(texts, field, rule, 'DESCRIPTION')
    expect(text).not.toContain('DESCRIPTION')
    expect(text).not.toContain('{')
  })

  test('bounds are named', () => {
    expect(violationText(texts, field, 'number.max', '')).toContain('30')
    expect(violationText(texts, field, 'number.min', '')).toContain('1')
  })
})
