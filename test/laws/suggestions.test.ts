import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { create, type DescField, type DescMessage, getOption } from '@bufbuild/protobuf'
import { field as fieldRules } from '@bufbuild/protovalidate/gen/buf/validate/validate_pb.js'
import { describe, expect, it, test } from 'vitest'
import { COMMANDS } from '../../src/cli/commands/commands.ts'
import { SHIPPED_NAMES } from '../../src/engine/catalog/index.ts'
import { checkConfig } from '../../src/engine/definitions/index.ts'
import { findTemplateProblem } from '../../src/engine/expressions/index.ts'
import { findValueProblem } from '../../src/engine/formats/index.ts'
import { findTarget } from '../../src/engine/proxy/resolve-target.ts'
import { checkMapping } from '../../src/engine/unified/check-mapping.ts'
import type { UnifiedRequest } from '../../src/engine/unified/index.ts'
import { checkModel, parseModel, prepareRequest, readUnifiedQuery } from '../../src/engine/unified/index.ts'
import { Failure, newId } from '../../src/foundation/base/index.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import { chooseCredential } from '../../src/platform/accounts/credentials.ts'
import { checkEventTypes } from '../../src/platform/outbox/index.ts'
import { checkMappingDocument, readMappingDocument } from '../../src/platform/unified-config/index.ts'
import { readManagementSettings } from '../../src/server/api/mcp-management/settings.ts'
import { validateJsonShape } from '../../src/server/api/messages/json-shape.ts'
import { validateRules } from '../../src/server/api/messages/rules.ts'
import { createPathSuggester } from '../../src/server/api/near-path.ts'
import { compileOperations, defineService } from '../../src/server/api/operation.ts'
import type { RequestContext } from '../../src/server/api/request-context.ts'
import { requestJson } from '../../src/server/api/rest/request.ts'
import { createRestRouter } from '../../src/server/api/rest/rest.ts'
import type { PathPattern } from '../../src/server/api/rest/router.ts'
import { assertKnownVariables, readConfig } from '../../src/server/config/index.ts'
import { checkArgsSchema } from '../../src/sync/jobs/args.ts'
import { checkAgainstDefinition, checkResources } from '../../src/sync/jobs/check-resources.ts'
import { resolveArgs } from '../../src/sync/jobs/index.ts'
import { readSyncResources } from '../../src/sync/jobs/resource.ts'
import { checkCronExpression } from '../../src/sync/schedules/check-cron-expression.ts'
import { callSearchTool, checkArguments } from '../../src/tools/servers/index.ts'
import { readItems } from '../../src/webhooks/inbound/mapping.ts'
import { parseFilter } from '../../src/webhooks/outbound/filter.ts'
import { runInProcess } from '../support/command.ts'
import { SERVICES } from '../support/operations.ts'
import { ACCOUNT, CLOCK, customers, planOf, SHOP_MODEL, SHOP_PLAN } from '../unit/engine/unified/engine-support.ts'

/** The name with one letter too many. */
function misspelt(name: string): string {
  const middle = Math.ceil(name.length / 2)
  return `${name.slice(0, middle)}x${name.slice(middle)}`
}

/** All that an error says, or what a check returned. */
async function answerOf(run: () => unknown): Promise<string> {
  try {
    return JSON.stringify((await run()) ?? null)
  } catch (error) {
    if (error instanceof Failure) return JSON.stringify([error.publicMessage, error.violations])
    return String(error)
  }
}

/** Every message that a request holds. */
const messages = new Set<DescMessage>()
const addMessages = (message: DescMessage) => {
  if (messages.has(message) || message.typeName.startsWith('google.protobuf.')) return
  messages.add(message)
  for (const field of message.fields) if (field.message !== undefined) addMessages(field.message)
}
for (const { methods } of SERVICES) for (const { input } of methods) addMessages(input)

/** The values that a text field, or each item of it, may have by the contract. */
function choicesOf(field: DescField): readonly string[] {
  const { type } = getOption(field, fieldRules)
  const rules = type.case === 'repeated' ? type.value.items?.type : type
  return rules?.case === 'string' ? rules.value.in : []
}

describe('a path that leads nowhere', () => {
  const app = createPaths()

  it.each(SERVICES.flatMap(({ typeName, methods }) => methods.map(({ name }) => [typeName, name] as const)))(
    'names the service and the RPC that were meant: %s/%s',
    (service, method) => {
      expect(app.suggest(`/${service}/${misspelt(method)}`)).toBe(`, did you mean ${method}?`)
      expect(app.suggest(`/${misspelt(service)}/${method}`)).toBe(`, did you mean ${service}?`)
    },
  )

  it.each([...new Set(app.patterns.map(textOfPattern))])('names the address that was meant: %s', (pattern) => {
    const segments = pattern.slice(1).split('/')
    const asked = (at: number) =>
      segments
        .map((each, index) => (each.startsWith('{') ? newId() : index === at ? misspelt(each) : each))
        .map((each) => `/${each}`)
        .join('')
    for (const [at, segment] of segments.entries())
      if (!segment.startsWith('{')) expect(app.suggest(asked(at))).toBe(`, did you mean ${pattern}?`)
  })
})

/** The paths that the server knows. */
function createPaths() {
  const handlersOf = (methods: readonly { readonly localName: string }[]) =>
    Object.fromEntries(methods.map(({ localName }) => [localName, async () => ({})]))
  const services = SERVICES.map((service) => defineService(service, handlersOf(service.methods) as never))
  const operations = compileOperations(services)
  const { patterns } = createRestRouter(operations.values())
  return { patterns, suggest: createPathSuggester(operations, patterns, []) }
}

function textOfPattern(pattern: PathPattern): string {
  return pattern.map((each) => `/${each.kind === 'literal' ? each.text : `{${each.field}}`}`).join('')
}

describe('the contract', () => {
  it.each([...messages].map((message) => [message.typeName, message] as const))(
    'names the field of %s that a name with a slip is close to',
    (_, message) => {
      for (const { name } of message.fields) {
        const [finding] = validateJsonShape(message, { [misspelt(name)]: 'x' }).findings
        expect(finding?.description).toBe(`is not a known field, did you mean ${name}?`)
      }
    },
  )

  const choices = [...messages].flatMap((message) =>
    message.fields
      .filter((field) => choicesOf(field).length > 0)
      .map((field) => [`${message.typeName}.${field.name}`, message, field] as const),
  )

  it.each(choices)('names the value of %s that a word with a slip is close to', (_, message, field) => {
    for (const choice of choicesOf(field)) {
      const value = misspelt(choice)
      const given = create(message, { [field.localName]: field.fieldKind === 'list' ? [value] : value })
      const at = field.fieldKind === 'list' ? `${field.name}[0]` : field.name
      const finding = validateRules(message, given).find((each) => each.field === at)
      expect(finding?.description).toMatch(/^must be one of /)
      expect(finding?.description).toContain(`, did you mean ${choice}?`)
    }
  })

  it('has fields with values to choose from', () => expect(choices.length).toBeGreaterThan(20))

  const operations = SERVICES.flatMap(({ methods }) =>
    methods.filter(({ methodKind }) => methodKind === 'unary').map((method) => [method.name, method.input] as const),
  )
  it.each(operations)('names the query parameter of %s that a name with a slip is close to', async (_, input) => {
    const binding = { operation: { input }, hasBody: false } as Parameters<typeof requestJson>[0]['binding']
    const read = async (query: string) =>
      (await requestJson({ binding, variables: [], query }, Buffer.alloc(0), NO_HEADERS)).findings
    for (const { name } of input.fields) {
      const isParameter = (await read(`${name}=x`)).every(({ rule }) => rule !== 'unknown_parameter')
      if (!isParameter) continue
      const [finding] = await read(`${misspelt(name)}=x`)
      expect(finding?.description).toBe(`is not a known query parameter, did you mean ${name}?`)
    }
  })
})

const NO_HEADERS = { header: () => undefined } as unknown as RequestContext

const CONFIG: JsonObject = {
  base_url: 'https://api.test',
  authorization: { format: 'none' },
  resources: { people: { list: { path: '/people' } } },
}
const MAPPED = planOf({
  response: { fields: { id: 'id', name: 'name' } },
  filters: { status: { to: 'status', ops: ['eq'] } },
  sort: { name: { asc: { order: "'name'" } } },
  expand: { owner: { ids: 'owner', resource: 'users', method: 'get', fields: { id: 'id', name: 'label' } } },
})
const prepare = (request: UnifiedRequest) =>
  prepareRequest(
    { clock: CLOCK },
    { plan: SHOP_PLAN, access: ACCOUNT, mapping: MAPPED },
    { strictFilters: true, ...request },
  )
const checkShopMapping = (config: JsonObject) =>
  checkMapping(
    { resource: 'people', method: 'list', response: { fields: { id: 'id' } }, ...config },
    SHOP_CONTEXT,
    'config',
  )
const SHOP_CONTEXT = { resource: customers(), method: 'list', plan: SHOP_PLAN }
const ARGS = {
  argsSchema: {
    properties: { color: { type: 'string', enum: ['yellow', 'violet'] } },
    additionalProperties: false,
  },
  argsValidation: '',
}
const OAUTH = [{ key: 'oauth2', format: 'oauth2' }] as never
const NEVER = () => Promise.reject(new Error('nothing is evaluated'))
const TOOL_SCHEMA = {
  type: 'object',
  properties: { state: { type: 'string', enum: ['open', 'closed'] }, labels: { type: 'array' } },
  additionalProperties: false,
}
const RUN_NODES = { people: ['list', 'search'], tickets: ['list'] }

/** Every entry point that takes a name out of a known set: what is asked with a slip, and the name that is meant. */
const ENTRY_POINTS: readonly (readonly [string, string, (misspelt: string) => unknown])[] = [
  ['a setting of a definition', 'base_url', (name) => checkConfig({ ...CONFIG, [name]: 'x' }, 'integration', 'c')],
  [
    'a format of a definition',
    'bearer',
    (format) => checkConfig({ ...CONFIG, authorization: { format } }, 'integration', 'c'),
  ],
  ['a key of credentials', 'jwt', (key) => checkConfig({ ...CONFIG, credentials: { [key]: {} } }, 'integration', 'c')],
  [
    'an HTTP method of a definition',
    'PATCH',
    (method) => checkConfig({ ...CONFIG, resources: { x: { list: { path: '/', method } } } }, 'integration', 'c'),
  ],
  ['a cast of a placeholder', 'bool', (cast) => findTemplateProblem(`{{context.flag:${cast}}}`)],
  [
    'an option of a field of a form',
    'sandbox',
    (value) =>
      findValueProblem(
        {
          name: 'a',
          type: 'single_select',
          required: true,
          options: [{ value: 'sandbox' }, { value: 'live' }],
        } as never,
        value,
        false,
      ),
  ],
  ['an authentication method', 'oauth2', (name) => chooseCredential(OAUTH, { authenticationMethod: name as never })],
  ['a credential', 'oauth2', (credential) => chooseCredential(OAUTH, { credential })],
  ['a resource of a call', 'people', (resource) => findTarget(SHOP_PLAN, { kind: 'method', resource, method: 'list' })],
  ['a method of a call', 'merge', (method) => findTarget(SHOP_PLAN, { kind: 'method', resource: 'people', method })],
  ['a resource of a job', 'tickets', (name) => checkAgainstDefinition(nodes({ resource: name }), RUN_NODES)],
  ['a method of a job', 'search', (method) => checkAgainstDefinition(nodes({ resource: 'people', method }), RUN_NODES)],
  [
    'a parent in a job',
    'people',
    (parent) => checkResources(nodes({ resource: 'people' }, { resource: 'notes', depends_on: parent })),
  ],
  [
    'a root of a placeholder in a job',
    'args',
    (root) => checkResources(nodes({ resource: 'people', query: { q: `{{${root}.a}}` } })),
  ],
  ['an argument of a job', 'color', (name) => resolveArgs(NEVER, ARGS, { [name]: 'violet' })],
  ['a value of an argument of a job', 'violet', (color) => resolveArgs(NEVER, ARGS, { color })],
  ['a keyword of args_schema', 'properties', (keyword) => checkArgsSchema({ [keyword]: {} })],
  ['a nickname of a cron expression', '@hourly', (text) => checkCronExpression(text, { field: 'cron' } as never)],
  ['an event of a webhook', 'sync_job_run:completed', (type) => checkEventTypes([type], 'event_types')],
  ['a field of the filter of a webhook', 'created_at', (name) => parseFilter({ [name]: 'x' }, 'f').violations],
  ['an operator of the filter of a webhook', '$startsWith', (op) => parseFilter({ id: { [op]: 'x' } }, 'f').violations],
  ['an event of an inbound webhook', 'updated', (event) => readItems({ event, resource: 'a', id: '1' })],
  ['a filter of a unified resource', 'status', (field) => prepare({ filters: [{ field, op: 'eq', value: 'open' }] })],
  [
    'a value of a filter of a unified resource',
    'closed',
    (value) => prepare({ filters: [{ field: 'status', op: 'eq', value }] }),
  ],
  ['an operator of a filter', 'like', (op) => readUnifiedQuery({ name: { [op]: 'x' } })],
  ['an order of a unified resource', 'name', (field) => prepare({ sort: { field, direction: 'asc' } })],
  ['a field to expand', 'owner', (field) => prepare({ expand: [field] })],
  ['a field of a mapping', 'born_on', (name) => checkShopMapping({ response: { fields: { id: 'i', [name]: 'x' } } })],
  [
    'a filter of a mapping',
    'address.city',
    (name) => checkShopMapping({ filters: { [name]: { to: 'x', ops: ['eq'] } } }),
  ],
  ['an order of a mapping', 'balance', (name) => checkShopMapping({ sort: { [name]: { asc: { a: 'b' } } } })],
  ['an enum of a mapping', 'status', (name) => checkShopMapping({ enums: { [name]: { map: { a: 'open' } } } })],
  [
    'a value of an enum of a mapping',
    'closed',
    (value) => checkShopMapping({ enums: { status: { map: { a: value } } } }),
  ],
  ['a resource that a mapping calls', 'people', (resource) => checkShopMapping({ resource })],
  ['a setting of a mapping file', 'integration', (name) => checkDocument({ [name]: 'x', resources: {} })],
  ['a resource of a mapping file', 'customers', (name) => checkDocument({ resources: { [name]: {} } })],
  ['a required field of a model', 'title', (name) => checkModelWith({ required: [name] })],
  [
    'a shared schema of a model',
    'reference',
    (name) => checkModelWith({ properties: { by: { $ref: `#/$defs/${name}` } } }),
  ],
  ['an argument of a tool', 'labels', (name) => checkArguments(TOOL_SCHEMA, { [name]: [] })],
  ['a value of an argument of a tool', 'closed', (state) => checkArguments(TOOL_SCHEMA, { state })],
  ['a tool of the search mode', 'search_tools', (name) => callSearchTool(SEARCH_SPACE, { name, arguments: {} })],
  ['a parameter of the address of the management tools', 'read_only', (name) => readManagementSettings(`${name}=true`)],
  ['a value of that parameter', 'direct', (mode) => readManagementSettings(`mode=${mode}`)],
  ['a variable of the environment', 'PATCHBAY_LOG_LEVEL', (name) => assertKnownVariables({ [name]: 'x' })],
  ['a log level', 'debug', (level) => readConfig({ PATCHBAY_LOG_LEVEL: level })],
  ['a region', 'wnam', (region) => readConfig({ PATCHBAY_REGION: region })],
]

const SEARCH_SPACE = { searchable: [], resultBytesMax: 1_000, unknownTool: () => undefined, canWrite: true } as never

function nodes(...resources: readonly JsonObject[]) {
  return readSyncResources(resources.map((each) => ({ method: 'list', ...each })))
}

function checkDocument(document: JsonObject) {
  const model = parseModel(SHOP_MODEL)
  return checkMappingDocument(readMappingDocument({ model: 'shop', integration: 'x', ...document }, model), {})
}

function checkModelWith(schema: JsonObject) {
  const { $defs = {} } = SHOP_MODEL
  const tasks = { methods: ['list'], schema: { type: 'object', properties: { title: { type: 'string' } }, ...schema } }
  return checkModel({ name: 'm', label: 'M', description: 'd', $defs, resources: { tasks } }, 'config')
}

test.each(ENTRY_POINTS)('%s with a slip: did you mean %s?', async (_, name, run) => {
  expect(await answerOf(() => run(misspelt(name)))).toContain(`, did you mean ${name}?`)
})

describe('the command line', () => {
  it.each(slipsOfWords())('with a slip in %s', async (args, meant) => {
    const { exitCode, stdout, stderr } = await runInProcess(args, {})
    expect(stdout + stderr).toMatch(new RegExp(`[Dd]id you mean ${meant.replace('/', '\\/')}\\?`))
    expect(exitCode).not.toBe(0)
  })
})

/** Command lines with a slip in a command, an option or the name of something shipped, and what is meant. */
function slipsOfWords(): readonly (readonly [readonly string[], string])[] {
  const words = COMMANDS.map(({ name }) => name.split(' '))
  const options = COMMANDS.flatMap(({ name, options: known = [] }) =>
    known.flatMap(({ flags }) => {
      const option = /--[\w-]+/.exec(flags)?.[0]
      return option === undefined ? [] : [[[...name.split(' '), misspelt(option)], option] as const]
    }),
  )
  return [
    ...words.map((each) => [each.with(-1, misspelt(each.at(-1) ?? '')), each.at(-1) ?? ''] as const),
    ...options,
    ...SHIPPED_NAMES.slice(0, 5).flatMap((name) => [[['check', misspelt(name)], name] as const]),
    [['install', misspelt('github')], 'github'],
    [['unified', 'check', misspelt('crm/hubspot')], 'crm/hubspot'],
    [['unified', 'try', misspelt('crm/hubspot'), '--fixture', 'f.json'], 'crm/hubspot'],
  ]
}

describe('a message of the sources', () => {
  /** Says that a name is none of a known set, or lists the set. */
  const UNKNOWN_NAME =
    /\b(?:one of|none of|there (?:is|are)|(?:fields|operators|events|subjects|mapped) are|it has|it offers) \$\{(?!count|what)|\bis (?:not an?|no|neither an?) (?:known )?(?:field|setting|argument|method|resource|parameter|query parameter|property|operator|comparison|event|tool|keyword|callable action|installation|integration|decimal)\b|\b(?:there is|has) no (?:unified model|model|tool|shipped|resource|method|action|nickname|case|integration)\b|, which [^,']* lacks\b/
  /** Lines around it in which the suggestion is made. */
  const DISTANCE_MAX = 20
  const WITHOUT_SUGGESTION: Readonly<Record<string, string>> = {
    'src/engine/expressions/sandbox/functions.ts': 'the sandbox reads its own folder alone',
    'src/tools/servers/derive-tools.ts': 'a method that exists and has no description',
    'src/foundation/base/compression.ts': 'encodings are chosen by programs',
    'src/server/api/services/values.convert.ts': 'a defect of the service',
    'src/server/api/rest/rest.ts': 'a defect of the contract',
    'src/server/api/messages/json-shape.ts': 'no request of the contract has an enum of protobuf',
    'src/platform/unified-config/effective-mapping.ts': 'names that are right, of which there is no mapping',
  }
  const root = join(import.meta.dirname, '../..')
  const found = globSync('src/**/*.ts', { cwd: root }).flatMap((path) => {
    const lines = readFileSync(join(root, path), 'utf8').split('\n')
    return lines.flatMap((line, at) => {
      if (/^\s*(?:\*|\/\/|\/\*\*)/.test(line) || !/['`]/.test(line) || !UNKNOWN_NAME.test(line)) return []
      const around = lines.slice(Math.max(0, at - DISTANCE_MAX), at + DISTANCE_MAX).join('\n')
      return [
        { path, line: `${path}:${at + 1} ${line.trim()}`, suggests: /suggest|mustBeOneOf|unknownName/i.test(around) },
      ]
    })
  })

  it('about an unknown name suggests the one that was probably meant', () => {
    expect(found.length).toBeGreaterThan(30)
    const without = found.filter(({ path, suggests }) => !suggests && !Object.hasOwn(WITHOUT_SUGGESTION, path))
    expect(without.map(({ line }) => line)).toEqual([])
  })
})
