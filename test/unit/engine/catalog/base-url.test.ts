import { afterAll, expect, test } from 'vitest'
import { SHIPPED_NAMES } from '../../../../src/engine/catalog/index.ts'
import { compilePlan, resolveConfig } from '../../../../src/engine/definitions/index.ts'
import { createEvaluator } from '../../../../src/engine/expressions/index.ts'
import { type AccountAccess, type CallTarget, createProxy } from '../../../../src/engine/proxy/index.ts'
import { someCases } from '../../../support/case-count.ts'
import { type GoldenCall, readGoldenFile } from './golden-file.ts'
import { shipped } from './shipped.ts'

const evaluator = createEvaluator()
afterAll(() => evaluator[Symbol.asyncDispose]())

/**
 * Requests that do not follow the `base_url` of an override, because another host of the third party serves them: an override
 * names their `base_url` itself.
 */
const OTHER_HOSTS: Readonly<Record<string, readonly string[]>> = {
  'amazon-s3': ['buckets.list'],
  basecamp: ['_.accounts', 'oauth2.identity'],
  confluence: ['_.sites'],
  docusign: ['oauth2.identity'],
  dropbox: ['files.download', 'files.upload'],
  'google-sheets': ['oauth2.identity', 'spreadsheets.list'],
  jira: ['_.sites'],
  mailchimp: ['oauth2.identity'],
  mixpanel: ['events.list'],
  'open-meteo': ['air_quality.get', 'history.get', 'marine.get', 'places.get', 'places.list'],
}

test.each(someCases(SHIPPED_NAMES, 12))('with another base_url, every request of %s goes there', async (name) => {
  const elsewhere = new Set<string>()
  const { config } = resolveConfig(shipped(name).config, { base_url: 'https://emulator.example' })
  const plan = compilePlan(config)
  const golden = readGoldenFile(name) ?? { account: {}, calls: [] }
  const access: AccountAccess = {
    id: 'account-1',
    isSandbox: false,
    context: {},
    credentials: {},
    ...golden.account,
    environmentVariables: { ...golden.account.environmentVariables },
  }
  let called = ''
  const proxy = createProxy({
    http: {
      send: async ({ url }) => {
        if (new URL(url).host !== 'emulator.example') elsewhere.add(called)
        return { status: 200, headers: { 'content-type': 'application/json' }, body: Buffer.from('{}'), url }
      },
      stream: () => Promise.reject(new Error('nothing is streamed here')),
    },
    evaluator,
    clock: { now: () => new Date('2026-01-01T00:00:00Z'), monotonicMs: () => 0, sleep: async () => {} },
    nonce: () => 'n0nce',
  })
  for (const call of golden.calls) {
    called = call.call
    await proxy.call(plan, access, { ...call, target: targetOf(call) }).catch(() => {})
  }
  for (const { key, verification, identity } of plan.credentials)
    for (const of of [undefined, 'identity'] as const) {
      if (
        (of === undefined ? verification : identity?.kind === 'response' ? identity.request : undefined) === undefined
      )
        continue
      called = `${key}.${of ?? 'verification'}`
      const target = { kind: 'verification', credential: key, ...(of === undefined ? {} : { of }) } as const
      await proxy.runAction(plan, access, { target })
    }
  expect([...elsewhere].sort()).toEqual([...(OTHER_HOSTS[name] ?? [])].sort())
})

function targetOf({ call }: GoldenCall): CallTarget {
  const [resource = '', method = ''] = call.split('.')
  return resource === '_' ? { kind: 'action', action: method } : { kind: 'method', resource, method }
}
