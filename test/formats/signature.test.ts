import { describe, expect, test } from 'vitest'
import { SIGNATURE_FORMATS, signatureSchema } from '../../src/formats/index.ts'
import { SIGNATURE_ROWS } from './rows/signature.ts'

describe.each(SIGNATURE_FORMATS.map((entry) => entry.format))('signature_verification %s', (format) => {
  const rows = SIGNATURE_ROWS[format] ?? []

  test('has rows', () => {
    expect(rows.length).toBeGreaterThan(0)
  })

  test.each(rows)('$promise', ({ config, refusedAt }) => {
    const parsed = signatureSchema.safeParse(config === undefined ? { format } : { format, config })
    const paths = parsed.success ? [] : parsed.error.issues.map((issue) => issue.path.join('.'))
    expect(paths).toEqual(refusedAt === undefined ? [] : [refusedAt])
  })
})

test('rows exist for registered formats only', () => {
  const registered = SIGNATURE_FORMATS.map((entry) => entry.format)
  expect(Object.keys(SIGNATURE_ROWS).filter((format) => !registered.includes(format))).toEqual([])
})
