import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import {
  createFileRegistry,
  type DescField,
  type DescMessage,
  type DescMethod,
  fromBinary,
  getOption,
  type JsonObject,
  ScalarType,
  toBinary,
} from '@bufbuild/protobuf'
import {
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
  MethodOptions_IdempotencyLevel,
} from '@bufbuild/protobuf/wkt'
import {
  field as fieldRules,
  file_buf_validate_validate,
} from '@bufbuild/protovalidate/gen/buf/validate/validate_pb.js'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { http } from '../../gen/google/api/annotations_pb.ts'
import { field_behavior } from '../../gen/google/api/field_behavior_pb.ts'
import { Access, access } from '../../gen/patchbay/v1/access_pb.ts'
import { Effect, effects } from '../../gen/patchbay/v1/effect_pb.ts'
import { staleFiles } from '../../src/cli/codegen/check-fresh.ts'
import { SERVICES } from '../support/operations.ts'

const ROOT = join(import.meta.dirname, '../..')
const VALIDATE = 'buf/validate/validate.proto'

const image = fromBinary(
  FileDescriptorSetSchema,
  execFileSync(
    join(ROOT, 'node_modules', '.bin', 'buf'),
    ['build', 'proto', '--exclude-source-info', '--as-file-descriptor-set', '-o', '-'],
    { cwd: ROOT, maxBuffer: 1 << 26 },
  ),
)
const files = [...createFileRegistry(image).files].filter((file) => file.proto.package === 'patchbay.v1')
const methods = files.flatMap((file) => file.services).flatMap((service) => service.methods)
/** Those with an address in REST. */
const bound = methods.filter((method) => getOption(method, http).pattern.case !== undefined)
const messages = files.flatMap((file) => file.messages)
const fields = messages.flatMap((message) => message.fields)

const nameOf = (desc: DescField | DescMethod) => `${desc.parent.typeName.replace('patchbay.v1.', '')}.${desc.name}`
const namesOf = (descs: readonly (DescField | DescMethod)[]) => descs.map(nameOf)

describe('the vendored validation rules', () => {
  it('are the source that the installed validator was built from: compiled again, the descriptor is byte-identical', () => {
    const compiled = image.file.find((file) => file.name === VALIDATE)

    expect(compiled && toBinary(FileDescriptorProtoSchema, compiled)).toEqual(
      toBinary(FileDescriptorProtoSchema, file_buf_validate_validate.proto),
    )
  })
})

describe('the contract', () => {
  const verbOf = (method: DescMethod) => rule(method).pattern.case
  const pathOf = (method: DescMethod) => rule(method).pattern.value

  function rule(method: DescMethod) {
    return getOption(method, http)
  }

  it('binds every unary RPC to REST, each to an address of its own, but those that are HTTP itself there', () => {
    expect(namesOf(methods.filter((method) => method.methodKind === 'unary' && !verbOf(method)))).toEqual([
      'ProxyService.Call',
      'UnifiedService.Call',
    ])

    const addresses = bound.map((method) => `${verbOf(method)} ${pathOf(method)}`)
    expect(addresses.filter((address, index) => addresses.indexOf(address) !== index)).toEqual([])
  })

  it.each([
    ['CreateEnvironmentIntegration', 'post', '/environment-integration'],
    ['UpdateIntegratedAccount', 'patch', '/integrated-account/{id}'],
    ['UpdateSyncJobCronTrigger', 'patch', '/sync-job-cron-trigger/{id}'],
  ])('keeps the specified address of %s: %s %s, with the whole body as the request', (name, verb, path) => {
    const method = methods.find((candidate) => candidate.name === name)
    expect(method && [verbOf(method), pathOf(method), rule(method).body]).toEqual([verb, path, '*'])
  })

  it('has all its services in the list by which the conventions of all operations are tested', () => {
    const services = files.flatMap((file) => file.services)
    expect(SERVICES.map(({ typeName }) => typeName).toSorted()).toEqual(
      services.map(({ typeName }) => typeName).toSorted(),
    )
  })

  it('says of every RPC who may call it', () => {
    expect(namesOf(methods.filter((method) => getOption(method, access) === Access.UNSPECIFIED))).toEqual([])
  })

  it('says of every RPC with side effects what it may do', () => {
    const isSafe = ({ idempotency }: DescMethod) => idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS
    const stated = (method: DescMethod) => getOption(method, effects)
    expect(namesOf(methods.filter((method) => isSafe(method) !== (stated(method).length === 0)))).toEqual([])
    const ending = methods.filter(({ name }) => /^(?:Delete|Expunge|Revoke|Cancel|Stop|Rotate)/.test(name))
    expect(namesOf(ending.filter((method) => !stated(method).includes(Effect.DESTROYS)))).toEqual([])
  })

  it('says of every field what a caller may do with it', () => {
    expect(namesOf(fields.filter((field) => getOption(field, field_behavior).length === 0))).toEqual([])
  })

  it('holds no integer whose JSON form is a string', () => {
    const wide = new Set<ScalarType | undefined>([ScalarType.INT64, ScalarType.UINT64, ScalarType.SINT64])
    expect(namesOf(fields.filter((field) => 'scalar' in field && wide.has(field.scalar)))).toEqual([])
  })

  it('checks that every id given in a request is a UUID', () => {
    const isRequest = ({ name }: DescMessage) => name.endsWith('Request')
    const ids = messages
      .filter(isRequest)
      .flatMap((m) => m.fields.filter((field) => /^(id|\w+_id)$/.test(field.name)))
      .filter(({ name }) => name !== 'request_id')
    const free = ids.filter((field) => {
      const { type } = getOption(field, fieldRules)
      return !(type.case === 'string' && type.value.wellKnown.case === 'uuid' && type.value.wellKnown.value)
    })
    // The tenant is named in the application's own words, a record in those of the third party.
    expect([...new Set(namesOf(free))].toSorted()).toEqual([
      'CallRequest.id',
      'CreateIntegratedAccountRequest.tenant_id',
      'CreateLinkTokenRequest.tenant_id',
      'CreateToolServerRequest.tenant_id',
      'ListAuditEntriesRequest.target_id',
      'ListCallLogEntriesRequest.cause_id',
      'ListIntegratedAccountsRequest.tenant_id',
      'ListLinkTokensRequest.tenant_id',
      'ListPagesRequest.id',
      'ListToolServersRequest.tenant_id',
      'UnifiedServiceCallRequest.id',
      'UnifiedServiceListPagesRequest.id',
      'UpdateIntegratedAccountRequest.tenant_id',
      'WatchCallLogEntriesRequest.cause_id',
    ])
  })

  it('gives every string, list and number of a request a limit', () => {
    const isLimited = (field: DescField) => {
      const { type } = getOption(field, fieldRules)
      if (field.fieldKind === 'map') return type.case === 'map' && type.value.maxPairs > 0n
      if (field.fieldKind === 'list') return type.case === 'repeated' && type.value.maxItems > 0n
      if (field.scalar === ScalarType.INT32) return type.case === 'int32' && type.value.greaterThan.case !== undefined
      if (field.scalar !== ScalarType.STRING) return true
      if (type.case !== 'string') return false
      const { maxLen, pattern, in: values, wellKnown } = type.value
      return maxLen > 0n || pattern !== '' || values.length > 0 || wellKnown.case !== undefined
    }
    const parts = [
      'SyncResource',
      'RawTarget',
      'PageChoice',
      'SampleAnswer',
      'HeldRun',
      'ResourceStats',
      'SyncJobRunError',
    ]
    const inputs = messages.filter(({ name }) => name.endsWith('Request') || parts.includes(name))
    expect(namesOf(inputs.flatMap((message) => message.fields).filter((field) => !isLimited(field)))).toEqual([])
  })

  it('tells clients which RPCs may be repeated: all but creates, issues of tokens, runs, retries, replays, rotations, refreshes, tries, calls and what daemons do', () => {
    const unmarked = methods.filter((method) => method.idempotency === 0).map((method) => method.name)
    expect(
      unmarked.filter(
        (name) =>
          !/^(Create|Issue|Recreate|Run|Retry|Replay|Recover|Rotate|Refresh|TestWebhook$|Try|Call$|ListPages$|Register|ClaimRuns|(Complete|Fail|Release)Run$)/.test(
            name,
          ),
      ),
    ).toEqual([])
  })
})

/** `npm run check:gen` compares the committed code. */
describe('the generated code', () => {
  const dir = mkdtempSync(join(tmpdir(), 'patchbay-codegen-'))

  afterAll(() => rmSync(dir, { recursive: true, force: true }))

  it('is compared file by file, so that changes, gaps and leftovers each show', () => {
    write('committed/same.ts', 'a')
    write('committed/v1/edited.ts', 'by hand')
    write('committed/removed.ts', 'no source any more')
    write('fresh/same.ts', 'a')
    write('fresh/v1/edited.ts', 'generated')
    write('fresh/v1/added.ts', 'new')

    expect(staleFiles(join(dir, 'committed'), join(dir, 'fresh'))).toEqual([
      { path: 'removed.ts', state: 'left over' },
      { path: 'v1/added.ts', state: 'missing' },
      { path: 'v1/edited.ts', state: 'changed' },
    ])
  })

  function write(path: string, text: string): void {
    const file = join(dir, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
  }
})

describe('the OpenAPI document', () => {
  let document: JsonObject

  beforeAll(() => {
    document = JSON.parse(readFileSync(join(ROOT, 'gen', 'openapi.json'), 'utf8'))
  })

  const at = (...path: readonly string[]) => path.reduce<unknown>((node, key) => (node as JsonObject)?.[key], document)

  it('has exactly one operation per RPC that REST serves, and those of the raw endpoints', () => {
    const operations = Object.values(at('paths') as Record<string, JsonObject>).flatMap((item) => Object.values(item))
    const ids = operations.map((operation) => (operation as JsonObject).operationId)
    const raw = ids.filter((id) => /^(Proxy|Custom|Unified)/.test(String(id)))
    expect(raw).toHaveLength(new Set(raw).size)
    expect(ids.filter((id) => !raw.includes(id)).toSorted()).toEqual(bound.map((method) => method.name).toSorted())
  })

  it('names every status of an answer, never a range of them, for which generators write code that does not parse', () => {
    const operations = Object.values(at('paths') as Record<string, JsonObject>).flatMap((item) => Object.values(item))
    const statuses = operations.flatMap((operation) => Object.keys((operation as JsonObject).responses as JsonObject))
    expect(statuses.filter((status) => !/^(?:\d{3}|default)$/.test(status))).toEqual([])
    expect(Object.keys(at('paths', '/custom/{path}', 'get', 'responses') as JsonObject)).toContain('201')
  })

  it('refers only to what it defines', () => {
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g)].map(([, path = '']) => path)
    expect(references.length).toBeGreaterThan(100)
    expect([...new Set(references)].filter((path) => at(...path.split('/')) === undefined)).toEqual([])
  })

  it('shows limits, choices, presence and exclusions as the contract sets them', () => {
    const schemas = (name: string) => at('components', 'schemas', name)
    expect(schemas('UpdateSyncJobCronTriggerRequest')).toMatchObject({
      properties: {
        webhook_id: { type: 'string', format: 'uuid' },
        cron_expression: { type: 'string', maxLength: 255 },
      },
      allOf: [{ not: { required: ['daemon_group_key', 'webhook_id'] } }],
    })
    expect(schemas('UpdateSyncJobCronTriggerRequest')).not.toHaveProperty('properties.id')
    expect(schemas('CreateIntegratedAccountRequest')).toMatchObject({
      required: ['environment_integration_id', 'tenant_id'],
      properties: {
        tenant_id: { minLength: 1, maxLength: 255 },
        region: { enum: ['wnam', 'enam', 'apac', 'eu'] },
        credentials: { type: 'object', writeOnly: true },
        object_store_context_fields: { uniqueItems: true, items: { type: 'string', maxLength: 255 } },
      },
    })
    expect(schemas('IntegratedAccount')).toMatchObject({ properties: { status: { readOnly: true } } })
    expect(schemas('EmbeddedIntegration')).not.toHaveProperty('properties.team')
  })

  it('puts path fields and list filters where REST carries them', () => {
    const parameters = (path: string, verb: string) =>
      (at('paths', path, verb, 'parameters') as JsonObject[])
        .filter(({ name }) => name)
        .map(({ name, in: place }) => [name, place])

    expect(parameters('/integration/{integration_id}/grant/{team_id}', 'delete')).toEqual([
      ['integration_id', 'path'],
      ['team_id', 'path'],
    ])
    expect(parameters('/sync-job-cron-trigger', 'get')).toEqual([
      ['page_size', 'query'],
      ['page_token', 'query'],
      ['sync_job_id', 'query'],
      ['integrated_account_id', 'query'],
    ])
  })
})
