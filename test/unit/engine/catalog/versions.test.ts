import { describe, expect, test } from 'vitest'
import { SHIPPED_NAMES } from '../../../../src/engine/catalog/index.ts'
import { findWarnings } from '../../../../src/engine/definitions/index.ts'
import { isJsonObject, type Json, type JsonObject } from '../../../../src/foundation/json/index.ts'
import { shipped } from './shipped.ts'

/** Texts that choose a version by its date, month or release: 2026-10-15, 2026-10, 202607, v27.0. */
const DATED_VERSION = /\b20\d{2}-\d{2}(?:-\d{2})?\b|\b20\d{4}\b|\bv\d{2,}\.0\b/g

/** Settings that are sent as addresses and headers. */
const ADDRESS = /^(?:base_url|path|.*(?:Path|Host))$/
const HEADERS = /headers$/i

/** When the ends of versions were last looked up. */
const REVIEWED_AT = new Date('2026-11-29')

/** Definitions of an API that has ended, with the reason why they still ship so. */
const ENDED: Readonly<Record<string, string>> = {
  greenhouse: 'Harvest v3 has another authorization, other paths and other records: it needs another definition',
}

interface ShippedVersion {
  readonly version: string
  readonly variable?: string
}

function versionsOf({ api_versions: versions = [] }: JsonObject): readonly ShippedVersion[] {
  return versions as unknown as readonly ShippedVersion[]
}

/** The dated versions in the addresses and headers of a definition. */
function listDatedVersions(value: Json, isSent = false): string[] {
  if (typeof value === 'string') return isSent ? (value.match(DATED_VERSION) ?? []) : []
  if (Array.isArray(value)) return value.flatMap((item: Json) => listDatedVersions(item))
  if (!isJsonObject(value)) return []
  return Object.entries(value).flatMap(([key, item]) => {
    const isText = typeof item === 'string'
    if (isText || !HEADERS.test(key)) return listDatedVersions(item, isSent || (isText && ADDRESS.test(key)))
    return listDatedVersions(item, true)
  })
}

test.each<[string, JsonObject, string[]]>([
  ['a base URL', { base_url: 'https://{{shop}}.example.com/api/2025-10' }, ['2025-10']],
  ['a default', { base_url: 'https://graph.example.com/{{env.API_VERSION?:v23.0}}' }, ['v23.0']],
  ['the path of a method', { resources: { items: { list: { path: '/items/2022-04-01/all' } } } }, ['2022-04-01']],
  ['a header', { headers: { Version: '202509' } }, ['202509']],
  [
    'a header of the token endpoint',
    { oauth2: { config: { tokenHeaders: { version: '2025-01-23' } } } },
    ['2025-01-23'],
  ],
  ['the token endpoint', { auth: { tokenPath: '/oauth/2026-03/token' } }, ['2026-03']],
  ['no text for people', { description: 'Since 2026-01-01.', base_url: 'https://example.com/v1.0' }, []],
])('a dated version is found in %s', (_where, config, versions) => {
  expect(listDatedVersions(config)).toEqual(versions)
})

describe.each(SHIPPED_NAMES)('%s', (name) => {
  const { config } = shipped(name)

  test('names the dated versions that it calls, with their end', () => {
    const named = versionsOf(config).map(({ version }) => version)
    const unnamed = listDatedVersions(config).filter((dated) => !named.some((version) => version.includes(dated)))
    expect(unnamed).toEqual([])
  })

  test('has each version that a variable chooses as its default', () => {
    for (const { version, variable } of versionsOf(config))
      if (variable !== undefined) expect(JSON.stringify(config)).toContain(`{{env.${variable}?:${version}}}`)
  })
})

test('no definition calls a version that has ended, but for the known ones', () => {
  const ended = SHIPPED_NAMES.filter((name) =>
    findWarnings(shipped(name).config, '', REVIEWED_AT).some(({ rule }) => rule === 'api_versions.ended'),
  )
  expect(ended).toEqual(Object.keys(ENDED))
})
