import { describe, expect, it } from 'vitest'
import {
  checkConfig,
  checkConfigAsync,
  checkOverride,
  checkOverrideAsync,
} from '../../../../src/engine/definitions/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'

const resources = Object.fromEntries(
  Array.from({ length: 400 }, (_, at) => [`r${at}`, { list: { path: `/{{context.a}}/${at}`, response_path: 'data' } }]),
)
const LARGE: JsonObject = { base_url: 'https://api.example.com', resources, labl: 'x', query: { a: '{{zzz}}' } }

describe('a large definition', () => {
  it('has the findings of a small one', async () => {
    const findings = checkConfig(LARGE, 'integration', 'config')
    expect(findings).not.toEqual([])
    expect(await checkConfigAsync(LARGE, 'integration', 'config', { owner: 'one' })).toEqual(findings)
    expect(await checkConfigAsync({ labl: 'x' }, 'override', 'override', { owner: 'one' })).toEqual(
      checkConfig({ labl: 'x' }, 'override', 'override'),
    )
  })

  it('is checked with an override as a small one is', async () => {
    const override = { label: 5, authorization: { format: 'bearer', config: { token: '{{missing}}' } } }
    const findings = checkOverride(LARGE, override, 'override')
    expect(findings).not.toEqual([])
    expect(await checkOverrideAsync(LARGE, override, 'override', { owner: 'one' })).toEqual(findings)
  })

  it('does not hold the event loop while it is checked', async () => {
    let turns = 0
    const count = setInterval(() => turns++, 1)
    await checkConfigAsync(LARGE, 'integration', 'config', { owner: 'one' })
    clearInterval(count)
    expect(turns).toBeGreaterThan(1)
  })
})
