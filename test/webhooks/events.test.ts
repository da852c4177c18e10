import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { checkEventTypes, EVENT_TYPES, wantsEvent } from '../../src/webhooks/events.ts'

describe('event patterns', () => {
  it.each([
    { patterns: [], event: 'record:created', wanted: true },
    { patterns: ['*'], event: 'record:created', wanted: true },
    { patterns: ['sync_job_run:*'], event: 'sync_job_run:record', wanted: true },
    { patterns: ['sync_job_run:rec*'], event: 'sync_job_run:record_error', wanted: true },
    { patterns: ['sync_job_run:*'], event: 'sync_job_cron_trigger:failed', wanted: false },
    { patterns: ['record:created'], event: 'record:created', wanted: true },
    { patterns: ['record:created'], event: 'record:deleted', wanted: false },
  ])('$patterns on $event: $wanted', ({ patterns, event, wanted }) => {
    expect(wantsEvent(patterns, event)).toBe(wanted)
  })

  it('are refused by index when nothing in the catalogue matches', () => {
    const violations = checkEventTypes(['sync_job_run:*', 'sync_job_run:finished', 'records*'], 'event_types')
    expect(violations.map(({ field, rule }) => [field, rule])).toEqual([
      ['event_types[1]', 'event_types.unknown'],
      ['event_types[2]', 'event_types.unknown'],
    ])
  })

  it('are described by the contract, name by name', () => {
    const contract = readFileSync(join(import.meta.dirname, '../../proto/patchbay/v1/webhook.proto'), 'utf8')
    expect(EVENT_TYPES.filter((event) => !contract.includes(`\`${event}\``))).toEqual([])
  })

  it('cover a catalogue without repeated names', () => {
    expect(new Set(EVENT_TYPES).size).toBe(EVENT_TYPES.length)
    expect(EVENT_TYPES).toContain('webhook:disabled')
  })
})
