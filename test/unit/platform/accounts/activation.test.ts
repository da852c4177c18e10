import { describe, expect, it } from 'vitest'
import type { ApiProxy } from '../../../../src/engine/proxy/index.ts'
import { Failure, newId } from '../../../../src/foundation/base/index.ts'
import { execute } from '../../../../src/foundation/database/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { claimDue } from '../../../../src/foundation/queue/sql/due.ts'
import { ACTIVATIONS } from '../../../../src/platform/accounts/sql/activation.ts'
import { changeAccountStatus } from '../../../../src/platform/accounts/status.ts'
import { activationFixture } from './activation-fixture.ts'

const { database, tx, own, upstream, worker, proxy, connectTo, read, repeat, causes, pass } = await activationFixture()

const api_key = { fields: [{ name: 'api_key', type: 'password', required: true }] }
const VERIFIED: JsonObject = { credentials: { api_key: { config: { ...api_key, verification: { path: '/me' } } } } }
const HOOK = {
  name: 'hook',
  type: 'request',
  config: { method: 'POST', path: '/hooks', body: { events: ['all'] } },
}
const INSTALL: JsonObject = {
  post_install: { steps: [HOOK, { type: 'update_context', config: { hook_id: '{{$steps.hook.id}}' } }] },
}
const VALIDATION: JsonObject = { validation: { type: 'request', config: { path: '/hooks/{{context.hook_id}}' } } }
const WHOLE: JsonObject = { ...VERIFIED, actions: { ...INSTALL, ...VALIDATION } }

const OK = { json: {} }
const AWAY = { request: 'GET /me', answer: { status: 503, json: {} } }
const script = upstream.script
const scriptInstall = () => script({ request: 'POST /hooks', answer: { status: 201, json: { id: 7 } } })
const scriptProof = () => script({ request: 'GET /me', answer: OK }, { request: 'GET /hooks/7', answer: OK })

/** An engine that does something else than the real one while steps run. */
const engineThat = (runAction: ApiProxy['runAction']): Pick<ApiProxy, 'runAction'> => ({ runAction })

describe('a connecting account', () => {
  it('becomes active when the verification request of its credentials succeeds', async () => {
    const { id } = await connectTo(VERIFIED)
    script({ request: 'GET /me', answer: OK })
    expect(await worker().runOnce()).toBe(true)
    const account = await read(id)
    expect(account).toMatchObject({ status: 'active', lastError: '' })
    expect(account.lastActionResult).toEqual({
      validation: [
        {
          name: 'verification',
          type: 'request',
          ok: true,
          status: 200,
          started_at: expect.any(String),
          duration_ms: expect.any(Number),
        },
      ],
    })
    expect(await worker().runOnce()).toBe(false)
  })

  it('runs post_install, then validation with the context that post_install changed', async () => {
    const { id } = await connectTo(WHOLE)
    scriptInstall()
    scriptProof()
    await worker().runOnce()
    const account = await read(id)
    expect(account).toMatchObject({ status: 'active', context: { hook_id: 7 } })
    expect(account.lastActionResult).toMatchObject({
      post_install: [
        { name: 'hook', type: 'request', ok: true, status: 201 },
        { name: 'update_context_2', type: 'update_context', ok: true },
      ],
      validation: [
        { name: 'verification', ok: true },
        { name: 'request_1', ok: true },
      ],
    })
    expect(await causes(id)).toEqual(['created', 'steps_passed'])
  })

  it('becomes post_install_error when post_install fails, without validation', async () => {
    const { id } = await connectTo(WHOLE)
    script({ request: 'POST /hooks', answer: { status: 422, json: { message: 'no hooks left' } } })
    await worker().runOnce()
    const lastError = 'post_install failed at hook: the upstream answered 422: no hooks left'
    const account = await read(id)
    expect(account).toMatchObject({ status: 'post_install_error', lastError })
    expect(account.context).not.toHaveProperty('hook_id')
    expect(account.lastActionResult).toMatchObject({ post_install: [{ name: 'hook', ok: false, status: 422 }] })
    expect(await causes(id)).toEqual(['created', 'post_install_failed'])
  })

  it.each<[string, JsonObject, string]>([
    ['its credentials', VERIFIED, 'validation failed at verification: the upstream answered 401: Bad credentials'],
    [
      'a step of its validation',
      {
        credentials: { api_key: { config: api_key } },
        actions: { validation: { type: 'request', config: { path: '/me' } } },
      },
      'validation failed at request_1: the upstream answered 401: Bad credentials',
    ],
  ])('becomes validation_error when the third party rejects %s', async (_what, config, lastError) => {
    const { id } = await connectTo(config)
    script({ request: 'GET /me', answer: { status: 401, json: { message: 'Bad credentials' } } })
    await worker().runOnce()
    const account = await read(id)
    expect(account).toMatchObject({ status: 'validation_error', lastError })
    expect(account.lastActionResult).toMatchObject({ validation: [{ ok: false, status: 401 }] })
  })

  it('becomes validation_error when an expression of its validation says so', async () => {
    const transform = { type: 'transform', config: '$assert(context.plan = "pro", "the plan is not pro")' }
    const { id } = await connectTo({
      credentials: { api_key: { config: api_key } },
      actions: { validation: transform },
    })
    await worker().runOnce()
    expect((await read(id)).lastError).toContain('the plan is not pro')
  })

  it('becomes post_install_error when post_install sets a reserved context key', async () => {
    const actions = { post_install: { type: 'update_context', config: { oauth: {} } } }
    const { id } = await connectTo({ credentials: { api_key: { config: api_key } }, actions })
    await worker().runOnce()
    expect(await read(id)).toMatchObject({ status: 'post_install_error', lastError: expect.stringContaining('oauth') })
  })

  it('never shows its credentials, even when the third party repeats them', async () => {
    const { id } = await connectTo(VERIFIED)
    script({ request: 'GET /me', answer: { status: 401, json: { message: 'bad key: key-canary' } } })
    await worker().runOnce()
    const { lastError, lastActionResult } = await read(id)
    expect(lastError).toContain('bad key: ***')
    expect(JSON.stringify({ lastError, lastActionResult })).not.toContain('canary')
  })

  it('does not wait for its form', async () => {
    const form = { type: 'form', config: { fields: [{ name: 'site' }] } }
    const actions = { post_connect_user_form: form }
    const { status } = await connectTo({ credentials: { api_key: { config: api_key } }, actions })
    expect(status).toBe('active')
  })

  it('of a sandbox may write in validation, but not in post_install', async () => {
    const validation = { type: 'request', config: { method: 'POST', path: '/graphql' } }
    const withKey = { credentials: { api_key: { config: api_key } } }
    const installed = await connectTo({ ...withKey, actions: INSTALL }, { isSandbox: true })
    const validated = await connectTo({ ...withKey, actions: { validation } }, { isSandbox: true })
    script({ request: 'POST /graphql', answer: OK })
    while (await worker().runOnce());
    expect(await read(installed.id)).toMatchObject({
      status: 'post_install_error',
      lastError: expect.stringContaining('sandbox accounts only read'),
    })
    expect((await read(validated.id)).status).toBe('active')
  })
})

describe('steps that failed are repeated', () => {
  it('all of them, on request', async () => {
    const { id } = await connectTo(WHOLE)
    script({ request: 'POST /hooks', answer: { status: 422, json: {} } })
    await worker().runOnce()
    expect(await repeat(id)).toMatchObject({ status: 'connecting', lastError: '', lastActionResult: {} })
    scriptInstall()
    script({ request: 'GET /me', answer: { status: 401, json: {} } })
    await worker().runOnce()
    expect((await read(id)).status).toBe('validation_error')
    await repeat(id)
    scriptInstall()
    scriptProof()
    await worker().runOnce()
    expect((await read(id)).status).toBe('active')
    expect(await causes(id)).toEqual([
      'created',
      'post_install_failed',
      'steps_repeated',
      'validation_failed',
      'steps_repeated',
      'steps_passed',
    ])
  })

  it('only when they failed', async () => {
    const { id } = await connectTo(VERIFIED)
    script({ request: 'GET /me', answer: OK })
    const conflict = { reason: 'ACCOUNT_STATUS_CONFLICT' }
    await expect(repeat(id)).rejects.toMatchObject({ ...conflict, metadata: { status: 'connecting' } })
    await worker().runOnce()
    await expect(repeat(id)).rejects.toMatchObject({ ...conflict, metadata: { status: 'active' } })
    await expect(repeat(own.environmentId)).rejects.toMatchObject({ reason: 'RESOURCE_NOT_FOUND' })
  })
})

describe('an inconclusive attempt', () => {
  it('is retried with a growing backoff', async () => {
    const { id } = await connectTo(VERIFIED)
    script({ ...AWAY, times: 2 })
    await worker().runOnce()
    await pass(id, 1_900)
    expect(await worker().runOnce()).toBe(false)
    expect((await read(id)).status).toBe('connecting')
    await pass(id, 200)
    expect(await worker().runOnce()).toBe(true)
    await pass(id, 5_900)
    expect(await worker().runOnce()).toBe(false)
    script({ request: 'GET /me', answer: OK })
    await pass(id, 200)
    await worker().runOnce()
    expect((await read(id)).status).toBe('active')
  })

  it('is retried no sooner than Retry-After says', async () => {
    const { id } = await connectTo(VERIFIED)
    script({ request: 'GET /me', answer: { status: 429, headers: { 'retry-after': '120' }, json: {} } })
    await worker().runOnce()
    await pass(id, 118_000)
    expect(await worker().runOnce()).toBe(false)
  })

  it('shows the error and the next attempt', async () => {
    const { id } = await connectTo({ ...VERIFIED, retry: {} })
    script({ ...AWAY, answer: { status: 503, json: { message: 'down for key-canary' } } })
    const before = await read(id)
    expect(before).toMatchObject({ status: 'connecting', lastError: '', nextAttemptAt: expect.any(Date) })
    await worker().runOnce()
    const waiting = await read(id)
    const lastError = 'validation failed at verification: the upstream answered 503: down for ***'
    expect(waiting).toMatchObject({ status: 'connecting', lastError })
    expect(waiting.lastActionResult).toMatchObject({ validation: [{ ok: false, status: 503 }] })
    expect(waiting.nextAttemptAt?.getTime()).toBeGreaterThan(Date.now())
    expect(waiting.version).toBe(before.version)
    await pass(id, 60_000)
    script({ request: 'GET /me', answer: OK })
    await worker().runOnce()
    expect(await read(id)).toMatchObject({ status: 'active', lastError: '', nextAttemptAt: null })
  })

  it('shows no next attempt while one is under way', async () => {
    const { id } = await connectTo(VERIFIED)
    script({ request: 'GET /me', answer: OK })
    const seen: unknown[] = []
    const looking = engineThat(async (...call) => {
      seen.push((await read(id)).nextAttemptAt)
      return await proxy.runAction(...call)
    })
    await worker({ proxy: looking }).runOnce()
    expect(seen).toEqual([null])
  })

  it('of post_install runs post_install again', async () => {
    const { id } = await connectTo(WHOLE)
    script({ request: 'POST /hooks', answer: { status: 503, json: {} } })
    await worker().runOnce()
    expect((await read(id)).lastActionResult).toMatchObject({ post_install: [{ ok: false, status: 503 }] })
    await pass(id, 60_000)
    scriptInstall()
    scriptProof()
    await worker().runOnce()
    expect((await read(id)).status).toBe('active')
  })

  it('fails the activation after five, by any workers', async () => {
    const { id } = await connectTo(VERIFIED)
    script({ ...AWAY, times: 5 })
    for (let round = 0; round < 6; round++) {
      await worker().runOnce()
      await pass(id, 60_000)
    }
    expect(await read(id)).toMatchObject({
      status: 'validation_error',
      lastError: expect.stringContaining('answered 503'),
      lastActionResult: { validation: [{ ok: false, status: 503 }] },
    })
  })

  it('of validation does not run post_install again', async () => {
    const { id } = await connectTo(WHOLE)
    scriptInstall()
    script(AWAY)
    await worker().runOnce()
    expect((await read(id)).lastActionResult).toMatchObject({ post_install: [{ ok: true }, { ok: true }] })
    await pass(id, 60_000)
    scriptProof()
    await worker().runOnce()
    expect((await read(id)).status).toBe('active')
  })
})

describe('workers', () => {
  it('claim an account once: one of two activates it', async () => {
    const { id } = await connectTo(WHOLE)
    scriptInstall()
    scriptProof()
    expect((await Promise.all([worker().runOnce(), worker().runOnce()])).sort()).toEqual([false, true])
    expect(await causes(id)).toEqual(['created', 'steps_passed'])
  })

  it('skip an account that another one is claiming', async () => {
    await connectTo(VERIFIED)
    const claim = { leaseId: newId(), leaseMs: 60_000, limit: 1 }
    await database.transaction(async (other) => {
      expect(await claimDue(other, ACTIVATIONS, claim)).toMatchObject([{ attempts: 1 }])
      expect(await claimDue(tx, ACTIVATIONS, claim)).toEqual([])
    })
  })

  it('take accounts of their regions only', async () => {
    await connectTo(VERIFIED)
    expect(await worker({ regions: ['eu'] }).runOnce()).toBe(false)
    script({ request: 'GET /me', answer: OK })
    expect(await worker({ regions: ['wnam', 'eu'] }).runOnce()).toBe(true)
  })

  it('that lost their lease store nothing', async () => {
    const { id } = await connectTo(VERIFIED)
    script({ request: 'GET /me', answer: { status: 401, json: {} } }, { request: 'GET /me', answer: OK })
    const overtaken = engineThat(async (...call) => {
      const run = await proxy.runAction(...call)
      await pass(id, 600_000)
      await worker().runOnce()
      return run
    })
    await worker({ proxy: overtaken }).runOnce()
    expect(await read(id)).toMatchObject({ status: 'active', lastError: '' })
    expect(await causes(id)).toEqual(['created', 'steps_passed'])
  })

  it('store nothing about credentials that have been replaced meanwhile', async () => {
    const account = await connectTo(VERIFIED)
    script({ request: 'GET /me', answer: OK })
    const reconnected = engineThat(async (...call) => {
      const run = await proxy.runAction(...call)
      await database.transaction((tx) => changeAccountStatus(tx, account, 'reconnected'))
      return run
    })
    await worker({ proxy: reconnected }).runOnce()
    expect(await read(account.id)).toMatchObject({ status: 'connecting', lastActionResult: {} })
    expect(await causes(account.id)).toEqual(['created', 'reconnected'])
  })

  it('that are stopped release their account without counting the attempt', async () => {
    const { id } = await connectTo(VERIFIED)
    for (let round = 0; round < 6; round++) {
      const stopped = worker({
        proxy: engineThat(async () => {
          stopped.stop()
          throw new Failure('CANCELLED', 'the process stops')
        }),
      })
      expect(await stopped.runOnce()).toBe(true)
      expect(await stopped.runOnce()).toBe(false)
      await pass(id, 1)
    }
    script(AWAY)
    await worker().runOnce()
    expect((await read(id)).status).toBe('connecting')
  })

  it('postpone accounts of disabled installations', async () => {
    const { id, environmentIntegrationId } = await connectTo(VERIFIED)
    const enable = (isEnabled: boolean) =>
      execute(tx, 'update environment_integration set is_enabled = :isEnabled where id = :environmentIntegrationId', {
        isEnabled,
        environmentIntegrationId,
      })
    await enable(false)
    for (let round = 0; round < 6; round++) {
      await worker().runOnce()
      await pass(id, 60_000)
    }
    expect((await read(id)).status).toBe('connecting')
    await enable(true)
    script(AWAY, { request: 'GET /me', answer: OK })
    await worker().runOnce()
    await pass(id, 60_000)
    await worker().runOnce()
    expect((await read(id)).status).toBe('active')
  })

  it.each([
    ['TOKEN_REQUEST_FAILED', 'connecting'],
    ['CREDENTIALS_INVALID', 'validation_error'],
  ] as const)('without a token, for %s, leave the account %s', async (reason, status) => {
    const { id } = await connectTo(VERIFIED)
    const fail = () => Promise.reject(new Failure(reason, 'no token'))
    const tokens = { ensureFresh: fail, refresh: fail }
    await worker({ tokens }).runOnce()
    expect((await read(id)).status).toBe(status)
  })

  it('survive that an account is deleted during its activation', async () => {
    const { id } = await connectTo(VERIFIED)
    const removing = engineThat(async () => {
      await execute(tx, 'delete from integrated_account where id = :id', { id })
      throw new Failure('UPSTREAM_UNREACHABLE', 'away')
    })
    expect(await worker({ proxy: removing }).runOnce()).toBe(true)
    expect(await worker().runOnce()).toBe(false)
  })
})

it('the context that post_install changes is merged by the database', async () => {
  const { id } = await connectTo(WHOLE)
  const meanwhile = engineThat(async (...call) => {
    const sql = `update integrated_account set context = context || '{"other": 1}' where id = :id`
    await database.transaction((each) => execute(each, sql, { id }))
    return await proxy.runAction(...call)
  })
  scriptInstall()
  scriptProof()
  await worker({ proxy: meanwhile }).runOnce()
  expect((await read(id)).context).toMatchObject({ other: 1, hook_id: 7 })
})
