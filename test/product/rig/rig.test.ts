import { describe, expect, test } from 'vitest'
import { SHIPPED_NAMES } from '../../../src/engine/catalog/index.ts'
import { compilePlan, resolveConfig } from '../../../src/engine/definitions/index.ts'
import { someCases } from '../../support/case-count.ts'
import { redirectPlan } from '../../unit/engine/catalog/oauth-requests.ts'
import { shipped } from '../../unit/engine/catalog/shipped.ts'
import { journey, STEPS } from './journey.ts'
import { KNOWN_FAILURES } from './known-failures.ts'
import { OTHER_CREDENTIALS, PROVIDERS } from './providers.ts'
import { startRigApp } from './rig-app.ts'

/** How many definitions `npm test` takes, by turns; TEST_CASES=many takes all. */
const FEW = 8
const JOURNEYS = [...SHIPPED_NAMES, ...Object.keys(OTHER_CREDENTIALS)]
const app = await startRigApp()

test('every shipped definition has a table, and nothing else has one', () => {
  expect(Object.keys(PROVIDERS).sort()).toEqual([...SHIPPED_NAMES].sort())
})

test('so has every way to connect that a shipped definition offers', () => {
  const offered = SHIPPED_NAMES.flatMap((name) => {
    const { credentials } = compilePlan(resolveConfig(shipped(name).config, {}).config)
    const first = PROVIDERS[name]?.credential ?? redirectPlan(name)?.key ?? credentials[0]?.key
    return credentials.flatMap(({ key }) => (key === first ? [] : [`${name} ${key}`]))
  })
  expect(Object.keys(OTHER_CREDENTIALS).sort()).toEqual(offered.sort())
})

test('known failures name journeys, each step of one once', () => {
  const listed = KNOWN_FAILURES.flatMap(({ step, names }) => names.map((name) => `${name}: ${step}`))
  expect(listed.filter((each) => !JOURNEYS.includes(each.split(':')[0] ?? ''))).toEqual([])
  expect(new Set(listed).size).toBe(listed.length)
})

describe('as it ships, from the installation to a second account, nothing but its known failures goes wrong with', () => {
  test.each(someCases(JOURNEYS, FEW))('%s', async (name) => {
    const outcomes = await journey(app, name)
    const failed = Object.fromEntries(
      [...outcomes].flatMap(([step, outcome]) => (outcome.kind === 'failed' ? [[step, outcome.reason]] : [])),
    )
    expect(failed).toEqual(knownFailuresOf(name))
    expect([...outcomes.keys()]).toEqual(STEPS)
  })
})

/** Reasons by step. */
function knownFailuresOf(name: string): Readonly<Record<string, string>> {
  const own = KNOWN_FAILURES.filter(({ names }) => names.includes(name))
  return Object.fromEntries(own.map(({ step, reason }) => [step, reason]))
}
