import { describe, expect, test } from 'vitest'
import { findShippedDefinition } from '../../../../src/engine/catalog/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import type { ScriptedAnswer } from '../../../support/upstream.ts'
import { on, startEngine } from '../proxy/engine.ts'

const engine = await startEngine()
const REPO = { owner: 'o', repo: 'r' }
const account = { credentials: { api_key: 'k' } }

/** One call of the shipped definition that GitHub answers like this. */
function answered(answer: ScriptedAnswer, resource: string, method: string, path: string) {
  engine.upstream.script({
    request: `GET /repos/o/r${path}`,
    headers: {
      authorization: 'Bearer k',
      accept: 'application/vnd.github+json',
      'x-github-api-version': '2022-11-28',
      'user-agent': 'Patchbay',
    },
    answer,
  })
  const config = { ...findShippedDefinition('github')?.config, base_url: engine.upstream.url } as JsonObject
  return engine.call(config, { ...on(resource, method), query: REPO }, account)
}

const inOneHour = String(Math.floor(Date.now() / 1000) + 3600)
const secondary = {
  message: 'You have exceeded a secondary rate limit. Please wait a few minutes before you try again.',
}

describe('a rate limit of GitHub is waited for as documented', () => {
  test.each<[string, ScriptedAnswer, number, number]>([
    [
      'primary, 403',
      { status: 403, headers: { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': inOneHour } },
      3590,
      3600,
    ],
    [
      'primary, 429',
      { status: 429, headers: { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': inOneHour } },
      3590,
      3600,
    ],
    [
      'secondary, told how long',
      { status: 403, headers: { 'retry-after': '30', 'x-ratelimit-remaining': '4000' } },
      30,
      30,
    ],
    ['secondary, not told', { status: 403, json: secondary, headers: { 'x-ratelimit-remaining': '4000' } }, 60, 60],
    [
      'a reset in the past',
      { status: 403, headers: { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '1000' } },
      60,
      60,
    ],
  ])('%s', async (_what, answer, atLeast, atMost) => {
    const outcome = await answered(answer, 'repositories', 'get', '')
    expect(outcome.kind).toBe('rate_limited')
    const seconds = outcome.kind === 'rate_limited' ? outcome.retryAfterSeconds : Number.NaN
    expect(seconds).toBeGreaterThanOrEqual(atLeast)
    expect(seconds).toBeLessThanOrEqual(atMost)
  })

  test('a 403 for want of permission is an error', async () => {
    const answer = {
      status: 403,
      json: { message: 'Resource not accessible' },
      headers: { 'x-ratelimit-remaining': '10' },
    }
    expect(await answered(answer, 'repositories', 'get', '')).toMatchObject({
      kind: 'upstream_error',
      status: 403,
      message: 'Resource not accessible',
    })
  })
})

describe('what GitHub calls an error and is none', () => {
  test.each<[string, string, string, ScriptedAnswer]>([
    [
      'an empty repository has no commits',
      'commits',
      '/commits?per_page=100',
      { status: 409, json: { message: 'Git Repository is empty.' } },
    ],
    [
      'disabled issues are no issues',
      'issues',
      '/issues?state=all&per_page=100',
      { status: 410, json: { message: 'Issues are disabled for this repo' } },
    ],
  ])('%s', async (_what, resource, path, answer) => {
    expect(await answered(answer, resource, 'list', path)).toMatchObject({
      kind: 'ok',
      result: [],
      page: { stopReason: 'error_ignored' },
    })
  })

  test('any other conflict is one', async () => {
    const answer = { status: 409, json: { message: 'other' } }
    expect(await answered(answer, 'commits', 'list', '/commits?per_page=100')).toMatchObject({
      kind: 'upstream_error',
      status: 409,
    })
  })
})
