import type { DescField, DescMethodUnary } from '@bufbuild/protobuf'
import type { Json, JsonObject } from '../../../../src/foundation/json/index.ts'
import { EXAMPLE_CONFIG } from '../../../support/seeded-tenant.ts'
import { acceptableRequest, type TenancyFixture } from '../../../support/tenancy-matrix.ts'

const COUNTED = (count: number) => Array.from({ length: count }, (_, index) => index)

/** A definition of 245 KiB, whose check compiles some thousand templates. */
const LARGE_DEFINITION: JsonObject = {
  ...EXAMPLE_CONFIG,
  resources: Object.fromEntries(
    COUNTED(600).map((index) => [
      `resource${index}`,
      {
        list: { path: `/r${index}/{{query.a}}`, query: { q: '{{query.q?:all}}' }, description: 'x'.repeat(60) },
        get: { path: `/r${index}/{{id}}`, headers: { 'x-a': '{{context.a|context.b}}' }, description: 'x'.repeat(60) },
      },
    ]),
  ),
}

/** Values of free-form objects that hold what a caller chooses. */
const LARGE_VALUES: JsonObject = { values: COUNTED(1_000).map((index) => ({ index, text: 'x'.repeat(60) })) }

/** A mapping with an expression for each of many fields of its own. */
const LARGE_MAPPING: JsonObject = {
  resource: 'repos',
  method: 'list',
  response: { fields: { id: 'id', custom_fields: largeFields(200) } },
}

function largeFields(count: number): JsonObject {
  return Object.fromEntries(COUNTED(count).map((index) => [`f${index}`, `$uppercase(name & " " & "${index}")`]))
}

const CONTACTS: JsonObject = { model: 'crm', resource: 'contacts', integration_name: 'hubspot' }
const TRIED_PAGE: JsonObject = {
  results: COUNTED(25).map((index) => ({
    id: String(index),
    properties: { email: `${index}@example.com`, firstname: 'x'.repeat(60), lastname: 'y'.repeat(40) },
  })),
}

/** What makes the requests of an operation expensive, where it is more than the size of free-form values and pages. */
const EXPENSIVE: Readonly<Record<string, () => JsonObject>> = {
  CheckIntegration: () => ({ config: LARGE_DEFINITION }),
  CreateIntegration: () => ({ name: 'large-%N%-%TOKEN%', config: LARGE_DEFINITION }),
  CreateUnifiedMapping: () => ({
    ...CONTACTS,
    integration_name: 'example',
    resource: 'contacts',
    config: LARGE_MAPPING,
  }),
  CheckUnifiedMapping: () => ({ ...CONTACTS, integration_name: 'example', config: LARGE_MAPPING }),
  PushUnifiedMappings: () => ({
    validate_only: true,
    mappings: COUNTED(60).map((index) => ({ ...CONTACTS, method: `m${index}`, config: {} })),
  }),
  TryUnifiedMapping: () => ({
    ...CONTACTS,
    method: 'list',
    call: { exchanges: [{ response: { status: 200, body: TRIED_PAGE } }] },
  }),
  DescribeUnifiedModel: () => ({ name: 'crm', model: 'crm' }),
  ClaimRuns: () => ({ wait_seconds: 5, max_runs: 10 }),
  PreviewSyncJobCronTrigger: () => ({ cron_expression: '0 0 29 2 *', count: 100 }),
}

/** Names of operations that change what the others need, in the order in which they come last. */
const LAST = [/^(?:Cancel|Revoke|Stop|Fail|Complete|Release)/, /^Delete/, /^DeleteEnvironment$/, /^DeleteTeam$/]

/** Operations in an order in which each one finds what it needs. */
export function inOrder(operations: readonly DescMethodUnary[]): readonly DescMethodUnary[] {
  const rank = ({ name }: DescMethodUnary) => LAST.findLastIndex((pattern) => pattern.test(name))
  return operations.toSorted((one, other) => rank(one) - rank(other))
}

/** Requests of an operation, the largest first; a caller takes the first one that is valid. */
export function largestMessages(method: DescMethodUnary, tenant: TenancyFixture): readonly JsonObject[] {
  const small = acceptableRequest(method, tenant)
  const expensive = { ...small, ...EXPENSIVE[method.name]?.() }
  const paged = {
    ...expensive,
    ...filled(method.input.fields, (field) => (field.name === 'page_size' ? 1_000 : undefined)),
  }
  const large = { ...paged, ...filled(method.input.fields, (field) => (isFreeForm(field) ? LARGE_VALUES : undefined)) }
  return [{ ...large, ...EXPENSIVE[method.name]?.() }, paged, expensive, small]
}

function isFreeForm(field: DescField): boolean {
  return field.fieldKind === 'message' && field.message.typeName === 'google.protobuf.Struct'
}

function filled(fields: readonly DescField[], pick: (field: DescField) => Json | undefined): JsonObject {
  return Object.fromEntries(
    fields.flatMap((field) => {
      const value = pick(field)
      return value === undefined ? [] : [[field.name, value]]
    }),
  )
}
