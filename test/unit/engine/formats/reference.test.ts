import { expect, test } from 'vitest'
import { renderReference } from '../../../../src/engine/definitions/definition-docs.ts'
import { integrationConfigSchema } from '../../../../src/engine/definitions/index.ts'
import { isJsonObject, type Json, type JsonObject } from '../../../../src/foundation/json/index.ts'
import { expectGenerated } from '../../../support/generated-page.ts'

const REFERENCE = renderReference()

/** Sections of types that have none of their own, or share keys with another type. */
const SECTIONS: Readonly<Record<string, readonly string[]>> = {
  Credential: ['Credentials'],
  NamedCredential: ['Credentials'],
  InnerPagination: ['Pagination'],
  SingleSignature: ['SignatureVerification'],
  Method: ['Method', 'Request'],
  PostConnectField: ['PostConnectField', 'Field'],
}

const sections = new Map(
  REFERENCE.split('\n## ')
    .slice(1)
    .map((text) => [text.slice(0, text.indexOf('\n')), text.split('\n')] as const),
)

const objectOf = (value: Json | undefined): JsonObject => (isJsonObject(value) ? value : {})

/** Keys below a schema that the lines of its sections do not explain. */
function findUnexplained(value: Json, lines: readonly string[], at: string): string[] {
  if (!isJsonObject(value)) return []
  const { properties, $defs: _types, ...others } = value
  const keys = Object.entries(objectOf(properties))
  const format = objectOf(objectOf(properties).format).const
  const isFormat = typeof format === 'string' && lines.includes(`### \`${format}\``)
  const missing = keys.filter(([key, property]) => !isFormat && !isExplained(key, objectOf(property), lines))
  return [
    ...missing.map(([key]) => `${at}.${key}`),
    ...keys.flatMap(([key, property]) => findUnexplained(property, lines, `${at}.${key}`)),
    ...Object.entries(others).flatMap(([key, child]) =>
      (Array.isArray(child) ? child : [child]).flatMap((each: Json) => findUnexplained(each, lines, `${at}/${key}`)),
    ),
  ]
}

/** A key has a row with its description; a key of `credentials` that is the name of a format has a heading. */
function isExplained(key: string, { description }: JsonObject, lines: readonly string[]): boolean {
  if (lines.includes(`### \`${key}\``)) return true
  if (typeof description !== 'string' || description === '') return false
  const meaning = description.replaceAll('|', '\\|')
  return lines.some((line) => /^\| `([^`]+)`/.exec(line)?.[1]?.split('.').at(-1) === key && line.includes(meaning))
}

test('the page of keys is generated from the schemas (npm run docs writes it anew)', () => {
  expectGenerated('src/engine/reference/definition-keys.md', REFERENCE)
})

test('every key of the JSON Schema stands in the section of its type, with its description', () => {
  const schema = integrationConfigSchema()
  const types = Object.entries({ Definition: schema, ...objectOf(schema.$defs) })
  const unexplained = types.flatMap(([type, each]) => {
    const lines = (SECTIONS[type] ?? [type]).flatMap((section) => sections.get(section) ?? [])
    return findUnexplained(each, lines, type)
  })
  expect(unexplained).toEqual([])
})

test('a key without a description, and one without a row, are found', () => {
  const lines = ['| `a.known` | string | | What it is. |']
  const schema = { properties: { known: { description: 'What it is.' }, silent: {}, other: { description: 'x' } } }
  expect(findUnexplained({ items: [schema] }, lines, 'T')).toEqual(['T/items.silent', 'T/items.other'])
})

test('every row has a meaning', () => {
  expect(REFERENCE.split('\n').filter((line) => /\|\s*\|$/.test(line))).toEqual([])
})
