import { describe, expect, it } from 'vitest'
import type { Json, JsonObject } from '../../../../src/foundation/json/index.ts'
import { executeRun } from '../../../../src/sync/jobs/index.ts'
import type { ResourceStats } from '../../../../src/sync/runs/index.ts'
import { fastClock } from '../../../support/fast-clock.ts'
import { Crash, recordingProgress, recordingSink, runOf } from './recording.ts'
import { type SourceScript, scriptedSource } from './scripted-source.ts'

const USERS = [{ resource: 'users', method: 'list', persist: true }]
const TREE = [
  { resource: 'orgs', method: 'list' },
  { resource: 'repos', method: 'list', depends_on: 'orgs', query: { org: '{{resources.orgs.id}}' } },
]

/** What a run shows in the end. */
async function statsOf(script: SourceScript, resources: readonly JsonObject[] = USERS, args: JsonObject = {}) {
  const progress = recordingProgress()
  await executeRun(depsOf(script), runOf(resources, { args }), progress, new AbortController().signal)
  return progress.stats
}

function depsOf(script: SourceScript) {
  const account = { context: {}, environmentVariables: {} }
  return { source: scriptedSource(script), sink: recordingSink(), clock: fastClock(), random: () => 0, account }
}

function ids(...values: Json[]): Json[] {
  return values.map((id) => ({ id }))
}

const count = (length: number): Json[] => Array.from({ length }, (_, id) => ({ id }))

describe('a run says of one listing', () => {
  const TABLE: readonly (readonly [string, SourceScript, Partial<ResourceStats>])[] = [
    [
      'that all was seen when as much was seen as was claimed',
      { records: () => count(3), total: () => 3 },
      { fetched: 3, claimedTotal: 3, distinct: 3, duplicates: 0, complete: true },
    ],
    [
      'that not all was seen when more was claimed, though it ended by itself',
      { records: () => count(3), total: () => 5 },
      { fetched: 3, claimedTotal: 5, stopReason: 'no_cursor', complete: false },
    ],
    [
      'that all was seen when less was claimed: the claim was old',
      { records: () => count(3), total: () => 2 },
      { claimedTotal: 2, complete: true },
    ],
    [
      'what was repeated, and that something is missing in its place, when the list shifted while it was read',
      { records: () => ids('a', 'b', 'b', 'c'), total: () => 4 },
      { fetched: 4, delivered: 4, claimedTotal: 4, distinct: 3, duplicates: 1, complete: false },
    ],
    [
      'what was repeated when nothing was claimed',
      { records: () => ids('a', 'b', 'b', 'c') },
      { distinct: 3, duplicates: 1, complete: true },
    ],
    [
      'what the last page said that said anything',
      { records: () => count(5), total: ({ page }) => [9, 5, undefined][page] },
      { claimedTotal: 5, complete: true },
    ],
    [
      'no more than the contract can say',
      { records: () => count(1), total: () => 10_000_000_000 },
      { claimedTotal: 2_147_483_647, complete: false },
    ],
    [
      'that a claim of none is kept when there were none',
      { records: () => [], total: () => 0 },
      { fetched: 0, claimedTotal: 0, complete: true },
    ],
  ]

  it.each(TABLE)('%s', async (_, script, shown) => {
    expect((await statsOf(script))[0]).toMatchObject(shown)
  })

  it('nothing about claims or identifiers that were not there', async () => {
    const [stats] = await statsOf({ records: () => [] })
    expect(Object.keys(stats ?? {})).not.toEqual(expect.arrayContaining(['claimedTotal']))
    expect(Object.keys(stats ?? {})).not.toEqual(expect.arrayContaining(['distinct']))
  })
})

describe('a run says of listings below parents', () => {
  const records: SourceScript['records'] = ({ resource }) => (resource === 'orgs' ? ids('a', 'b') : count(3))

  it('the sum of what they claimed; identifiers of their own below each parent make none incomplete', async () => {
    const [orgs, repos] = await statsOf(
      { records, total: ({ request }) => (request.resource === 'orgs' ? 2 : 3) },
      TREE,
    )
    expect(orgs).toMatchObject({ claimedTotal: 2, complete: true })
    expect(repos).toMatchObject({ fetched: 6, claimedTotal: 6, distinct: 3, duplicates: 3, complete: true })
  })

  it('no sum when one did not claim, and the same of the elements of a loop', async () => {
    const total: SourceScript['total'] = ({ request }) => (request.query.org === 'a' ? 3 : undefined)
    expect((await statsOf({ records, total }, TREE))[1]).not.toHaveProperty('claimedTotal')
    const loop = [{ resource: 'users', method: 'list', loop_on: 'orgs', query: { org: '{{args.orgs}}' } }]
    const looped = await statsOf({ records: () => count(3), total: () => 3 }, loop, { orgs: ['a', 'b'] })
    expect(looped[0]).toMatchObject({ claimedTotal: 6, distinct: 3, duplicates: 3, complete: true })
  })

  it('that none is complete when parents are missing', async () => {
    const stats = await statsOf({ records, total: ({ request }) => (request.resource === 'orgs' ? 3 : 3) }, TREE)
    expect(stats.map(({ complete }) => complete)).toEqual([false, false])
  })
})

describe('a run that is resumed by another process', () => {
  const few: SourceScript = { records: () => [...count(60), ...count(20)], total: () => 80, pageSize: 20 }
  const many: SourceScript = {
    records: () => [...count(600), ...count(20), ...count(12_000)],
    total: () => 12_620,
    pageSize: 620,
  }

  it.each([
    ['exactly while they are few', few, { fetched: 80, distinct: 60, duplicates: 20, complete: false }],
    [
      'as far as the limit when they are many',
      many,
      { fetched: 12_620, distinct: 10_000, duplicates: 620, isEstimate: true, complete: false },
    ],
  ])('goes on counting, %s', async (_, script, shown) => {
    const signal = new AbortController().signal
    const dying = recordingProgress((save) => {
      if (save === 3) throw new Crash()
      return undefined
    })
    await expect(executeRun(depsOf(script), runOf(USERS), dying, signal)).rejects.toThrow(Crash)
    const progress = recordingProgress()
    await executeRun(depsOf(script), runOf(USERS, { checkpoint: dying.checkpoint }), progress, signal)
    expect(progress.stats[0]).toMatchObject(shown)
  })
})

describe('a run with more identifiers than one may hold', () => {
  it('counts those of the largest node no further, which are exact when its listing has ended', async () => {
    const lengths: Readonly<Record<string, number>> = { users: 6_000, teams: 5_000, tags: 5_000 }
    const resources = Object.keys(lengths).map((resource) => ({ resource, method: 'list', persist: true }))
    const stats = await statsOf({ records: ({ resource }) => count(lengths[resource] ?? 0), pageSize: 500 }, resources)
    expect(stats).toMatchObject([{ distinct: 6_000 }, { distinct: 5_000 }, { distinct: 5_000 }])
    expect(stats.filter(({ isEstimate }) => isEstimate)).toEqual([])
  })
})

describe('a checkpoint', () => {
  it('stays below 100 KiB however large parents are and however many there were, three levels deep', async () => {
    const fat = (id: string) => ({ id, text: 'x'.repeat(10_000) })
    const children = (prefix: Json | undefined, length: number) =>
      Array.from({ length }, (_, index) => fat(`${prefix}-${index}`))
    const script: SourceScript = {
      records: ({ resource, query }) => children(query.of, { orgs: 300, repos: 20 }[resource] ?? 3),
      pageSize: 250,
    }
    const resources = [
      { resource: 'orgs', method: 'list' },
      { resource: 'repos', method: 'list', depends_on: 'orgs', query: { of: '{{resources.orgs.text}}' } },
      {
        resource: 'notes',
        method: 'list',
        depends_on: 'repos',
        persist: true,
        query: { of: '{{resources.repos.text}}' },
      },
    ]
    let longest = 0
    const progress = recordingProgress()
    const { save } = progress
    progress.save = async (checkpoint, stats) => {
      longest = Math.max(longest, JSON.stringify(checkpoint).length)
      return await save(checkpoint, stats)
    }
    await executeRun(depsOf(script), runOf(resources), progress, new AbortController().signal)
    expect(progress.stats.map(({ fetched }) => fetched)).toEqual([300, 6_000, 18_000])
    expect(longest).toBeLessThan(100 * 1024)
  })
})
