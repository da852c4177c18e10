import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  checkAskedEventTypes,
  checkEventTypes,
  EVENT_TYPES,
  isAskedFor,
} from '../../../../src/platform/outbox/catalog.ts'

describe('event patterns', () => {
  it.each(['*', 'sync_job_run:*', 'sync_job_run:rec*', 'record:created'])('may be %s', (pattern) => {
    expect(checkEventTypes([pattern], 'event_types')).toEqual([])
  })

  it('are rejected by index when no event of the catalog matches', () => {
    const violations = checkEventTypes(['sync_job_run:*', 'sync_job_run:finished', 'records*'], 'event_types')
    expect(violations.map(({ field, rule }) => [field, rule])).toEqual([
      ['event_types[1]', 'event_types.unknown'],
      ['event_types[2]', 'event_types.unknown'],
    ])
  })

  it.each([
    ['sync_job_run:complete', ', did you mean sync_job_run:completed?'],
    ['link_token:used', '; events of link_token are link_token:completed, link_token:connection_error'],
    ['records*', 'subjects are integrated_account, '],
  ])('%s is answered with what may be meant', (pattern, said) => {
    const [violation] = checkEventTypes([pattern], 'event_types')
    expect(violation?.description).toContain(said)
    expect(violation?.description.length).toBeLessThan(250)
  })

  it('are described by the contract, name by name', () => {
    const contract = readFileSync(join(import.meta.dirname, '../../../../proto/patchbay/v1/webhook.proto'), 'utf8')
    expect(EVENT_TYPES.filter((event) => !contract.includes(`\`${event}\``))).toEqual([])
  })

  it('cover a catalog without repeated names', () => {
    expect(new Set(EVENT_TYPES).size).toBe(EVENT_TYPES.length)
    expect(EVENT_TYPES).toContain('webhook:disabled')
  })
})

/** Events that only a webhook gets that names them. */
const NAMED_ONLY = ['record:meta']

describe.each(EVENT_TYPES)('%s', (event) => {
  const isNamedOnly = NAMED_ONLY.includes(event)
  const prefixes = Array.from({ length: event.length + 1 }, (_, length) => `${event.slice(0, length)}*`)

  it(`is sent for ${isNamedOnly ? 'no' : 'every'} pattern that matches it, and without any`, () => {
    for (const patterns of [[], ...prefixes.map((pattern) => [pattern]), prefixes])
      expect(isAskedFor(patterns, event), `event_types ${patterns}`).toBe(!isNamedOnly)
  })

  it('is sent to a webhook that names it, beside whatever else', () => {
    expect(isAskedFor([event], event)).toBe(true)
    expect(isAskedFor(['*', 'webhook:disabled', event], event)).toBe(true)
    expect(checkAskedEventTypes([event, '*'], 'event_types')).toEqual([])
  })

  it('is sent to no webhook that asks for another', () => {
    const others = EVENT_TYPES.filter((other) => other !== event)
    expect(isAskedFor(others, event)).toBe(false)
  })
})

it('a pattern by which a webhook would get nothing is rejected with the name to write', () => {
  expect(checkAskedEventTypes(['record:*', 'record:me*'], 'event_types')).toEqual([
    {
      field: 'event_types[1]',
      description: 'matches record:meta alone, which is sent only to webhooks that name it: write record:meta',
      rule: 'event_types.named_only',
    },
  ])
})
