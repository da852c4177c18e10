import { describe, expect, it } from 'vitest'
import { compilePlan } from '../../../../src/engine/definitions/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { assertContextRules, type ContextWriter } from '../../../../src/platform/accounts/context-rules.ts'

const PLAN = compilePlan({
  base_url: '{{context.instance_url}}/v1',
  credentials: {
    format: 'api_key',
    config: {
      fields: [
        { name: 'api_key', type: 'password', required: true },
        { name: 'region', pattern: '^(?:eu|us)$' },
        { name: 'plan', type: 'single_select', options: [{ value: 'a', label: 'A' }] },
      ],
    },
  },
  resources: { a: { list: { path: '/', base_url: 'https://{{region}}.vendor.example' } } },
})
const BEFORE = { instance_url: 'https://one.vendor.example', region: 'eu' }

function rules(context: JsonObject, writer: ContextWriter, before: JsonObject = BEFORE) {
  return () => assertContextRules({ plan: PLAN, connect: PLAN.credentials[0], context, before, writer })
}

describe.each<ContextWriter>(['application', 'customer', 'action', 'webhook', 'definition', 'entry'])(
  'a context written by %s',
  (writer) => {
    it.each<JsonObject>([{ region: 'evil' }, { region: 'eu.evil.example/' }, { region: 7 }, { plan: 'b' }])(
      'takes no value that the field does not take: %j',
      (context) => {
        expect(rules(context, writer)).toThrow('INVALID_FIELD')
      },
    )

    it.each<JsonObject>([{ region: 'us' }, { region: null }, { plan: 'a' }, { other: 'anything' }, BEFORE])(
      'takes %j',
      (context) => {
        expect(rules(context, writer)).not.toThrow()
      },
    )
  },
)

describe('the host of an account whose definition does not limit it', () => {
  const moved = { instance_url: 'https://elsewhere.example' }

  it.each<ContextWriter>(['customer', 'action', 'webhook'])('is not changed by %s', (writer) => {
    expect(rules(moved, writer)).toThrow('INVALID_FIELD')
    expect(rules({ instance_url: null }, writer)).toThrow('INVALID_FIELD')
  })

  it.each<ContextWriter>(['application', 'definition', 'entry'])('is changed by %s', (writer) => {
    expect(rules(moved, writer)).not.toThrow()
  })
})
