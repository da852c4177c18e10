import { describe, expect, test } from 'vitest'
import { checkConfig, findWarnings } from '../../../../src/engine/definitions/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'

const NOW = new Date('2026-11-29T23:30:00Z')
const LINK = 'https://example.com/versions'

const warningsOf = (entry: JsonObject, environment_variables: JsonObject = {}) =>
  findWarnings({ api_versions: [entry], environment_variables }, '', NOW).map(
    ({ field, description, rule }) => `${field} ${description} [${rule}]`,
  )

describe('a version of the API', () => {
  test.each<[string, JsonObject, string[]]>([
    ['has no announced end', {}, []],
    ['ends in more than a year', { ends_at: '2027-11-30' }, []],
    ['ends within a year', { ends_at: '2027-11-29' }, ['ends on 2027-11-29 [api_versions.ends]']],
    ['ends today', { ends_at: '2026-11-29' }, ['has ended on 2026-11-29 [api_versions.ended]']],
    [
      'has ended, and a variable chooses another',
      { ends_at: '2026-01-01', variable: 'API_VERSION', note: 'paths differ', documentation_link: LINK },
      [
        `has ended on 2026-01-01: set the variable API_VERSION to a later version; paths differ; see ${LINK} [api_versions.ended]`,
      ],
    ],
  ])('%s', (_what, entry, warnings) => {
    expect(warningsOf({ version: 'v1', ...entry })).toEqual(warnings.map((text) => `api_versions[0] v1 ${text}`))
  })

  test.each<[string, JsonObject, number]>([
    ['no value', {}, 1],
    ['the same version', { API_VERSION: 'v1' }, 1],
    ['another version', { API_VERSION: 'v2' }, 0],
    ['a value of another variable', { REVISION: 'v2' }, 1],
  ])('is warned of as long as it is called; its variable has %s', (_what, variables, count) => {
    const entry = { version: 'v1', variable: 'API_VERSION', ends_at: '2026-01-01' }
    expect(warningsOf(entry, variables)).toHaveLength(count)
  })

  test.each([['2026-13-01'], ['2026-01'], ['soon']])('does not end on %s', (ends_at) => {
    const findings = checkConfig({ api_versions: [{ version: 'v1', ends_at }] }, 'integration', '')
    expect(findings.map(({ field }) => field)).toEqual(['api_versions[0].ends_at'])
  })
})
