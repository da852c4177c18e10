import { describe, expect, test } from 'vitest'
import { BODY_FORMATS, bodyFormat } from '../../../../src/engine/formats/body/registry.ts'
import { responseFormat } from '../../../../src/engine/formats/index.ts'
import { RESPONSE_FORMATS } from '../../../../src/engine/formats/response/registry.ts'
import { BodyFormatError } from '../../../../src/engine/formats/response/response.ts'
import { BODY_ROWS } from './rows/body.ts'
import { RESPONSE_ROWS } from './rows/response.ts'

describe.each(BODY_FORMATS.map((entry) => entry.format))('body_format %s', (format) => {
  const rows = BODY_ROWS[format] ?? []

  test('has rows', () => {
    expect(rows.length).toBeGreaterThan(0)
  })

  test.each(rows)('$promise', ({ value, content, contentType, failure }) => {
    const encode = () => bodyFormat(format).encode(value, { nonce: () => 'n' })
    if (failure !== undefined) return expect(encode).toThrow(failure)
    const encoded = encode()
    expect({ ...encoded, content: Buffer.from(encoded.content).toString() }).toEqual({ content, contentType })
  })
})

describe.each(RESPONSE_FORMATS.map((entry) => entry.format))('response_format %s', (format) => {
  const rows = RESPONSE_ROWS[format] ?? []

  test('has rows', () => {
    expect(rows.length).toBeGreaterThan(0)
  })

  test.each(rows)('$promise', ({ body, config, value, failure }) => {
    const decode = () => responseFormat({ format, config }).decode(typeof body === 'string' ? Buffer.from(body) : body)
    if (failure !== undefined) expect(decode).toThrow(new BodyFormatError(failure))
    else if (value === undefined) expect(decode).toThrow()
    else expect(decode()).toEqual(value)
  })
})

test('rows exist for registered formats only', () => {
  const known = [...BODY_FORMATS, ...RESPONSE_FORMATS].map((entry) => entry.format)
  const rows = [...Object.keys(BODY_ROWS), ...Object.keys(RESPONSE_ROWS)]
  expect(rows.filter((format) => !known.includes(format))).toEqual([])
})
