import { isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'
import type { ToolControl, ToolParameter } from './tool.ts'
import { simplifySchema } from './tool-schema.ts'

/** Records of a page, unless the caller asks for more or fewer. */
export const LIST_LIMIT_DEFAULT = 20
export const LIST_LIMIT_MAX = 100

/** What the arguments of a tool are made from. */
export interface ToolInputSource {
  /** What the address needs of the caller: `id`, `query.<name>`, `body.<name>`, `args.<name>`. */
  readonly required: readonly string[]
  /** The same, of what it may leave out. */
  readonly optional?: readonly string[]
  readonly querySchema: JsonObject
  readonly bodySchema: JsonObject
  /** Absent: none. */
  readonly argsSchema?: JsonObject | undefined
  /** Names of query parameters and body fields that the caller does not set: paging, and what the account's context fills. */
  readonly hidden: ReadonlySet<string>
  /** What the id names, for its description. */
  readonly noun: string
  /** The method takes a body, whose fields are unknown when it has no schema. */
  readonly hasBody: boolean
  readonly controls: readonly ControlArgument[]
}

/** An argument that the tool server reads, with its schema. */
export interface ControlArgument {
  readonly control: ToolControl
  readonly schema: JsonObject
  readonly isRequired?: boolean
}

/** The arguments of a tool, and where each of them goes. */
export interface ToolInput {
  readonly schema: JsonObject
  readonly parameters: Readonly<Record<string, ToolParameter>>
  readonly controls: Readonly<Partial<Record<ToolControl, string>>>
}

/** One argument before it is named. */
interface Argument {
  readonly place: ToolParameter
  /** As the third party names it. */
  readonly name: string
  readonly schema: JsonObject
  readonly isRequired: boolean
}

/**
 * One flat object of the parameters of the address, the query and the body, and the arguments of the tool server. A body whose
 * fields share a name with others, or that is no object of known fields, is one argument `body`.
 */
export function buildToolInput(source: ToolInputSource): ToolInput {
  const outer = [...addressArguments(source), ...queryArguments(source), ...argsArguments(source)]
  const all = [...outer, ...bodyArguments(source, new Set(outer.map(({ name }) => argumentName(name))))]
  const properties: Record<string, JsonObject> = {}
  const parameters: Record<string, ToolParameter> = {}
  const required: string[] = []
  const freeName = createNames()
  for (const { place, name, schema, isRequired } of all) {
    const free = freeName(argumentName(name), place.part)
    properties[free] = schema
    parameters[free] = place
    if (isRequired) required.push(free)
  }
  const controls: Partial<Record<ToolControl, string>> = {}
  for (const { control, schema, isRequired } of source.controls) {
    const name = freeName(control, 'tool')
    properties[name] = schema
    controls[control] = name
    if (isRequired) required.push(name)
  }
  const schema = {
    type: 'object',
    properties,
    ...(required.length === 0 ? {} : { required }),
    additionalProperties: false,
  }
  return { schema, parameters, controls }
}

/** Parameters of templates that no schema describes. */
function addressArguments(source: ToolInputSource): readonly Argument[] {
  const { required, optional = [], noun, querySchema, bodySchema } = source
  const needed = new Set(required)
  return [...new Set([...required, ...optional])].flatMap((path): readonly Argument[] => {
    const isRequired = needed.has(path)
    const [root = '', ...rest] = path.split('.')
    const name = rest.join('.')
    if (root === 'id') {
      const schema = { type: 'string', description: `The id of the ${noun}.` }
      return [{ place: { part: 'id' }, name: 'id', schema, isRequired }]
    }
    if (root !== 'query' && root !== 'body' && root !== 'args') return []
    const known = root === 'query' ? querySchema : root === 'body' ? bodySchema : {}
    if (name === '' || hasProperty(known, name)) return []
    return [{ place: { part: root, name }, name, schema: { type: 'string' }, isRequired }]
  })
}

function queryArguments({ querySchema, hidden, required }: ToolInputSource): readonly Argument[] {
  return propertiesOf(querySchema, 'query', hidden, required)
}

function argsArguments({ argsSchema, required }: ToolInputSource): readonly Argument[] {
  return argsSchema === undefined ? [] : propertiesOf(argsSchema, 'args', new Set(), required)
}

/** @param taken names of the arguments before */
function bodyArguments(source: ToolInputSource, taken: ReadonlySet<string>): readonly Argument[] {
  const { bodySchema, hidden, hasBody, required } = source
  if (Object.keys(bodySchema).length === 0) {
    const schema = { type: 'object', description: 'The body of the request.' }
    return hasBody ? [{ place: { part: 'body' }, name: 'body', schema, isRequired: false }] : []
  }
  const fields = propertiesOf(bodySchema, 'body', hidden, required)
  const isFlat =
    isJsonObject(bodySchema.properties) &&
    !isOpen(bodySchema.additionalProperties) &&
    !fields.some(({ name }) => taken.has(argumentName(name)))
  if (isFlat) return fields
  const schema = simplifySchema(bodySchema)
  const isRequired = Array.isArray(schema.required) || (schema.type !== undefined && schema.type !== 'object')
  return [{ place: { part: 'body' }, name: 'body', schema, isRequired }]
}

/** Fields of other names are described: `true`, or a schema. */
function isOpen(additional: Json | undefined): boolean {
  return additional === true || isJsonObject(additional)
}

function propertiesOf(
  schema: JsonObject,
  part: 'query' | 'body' | 'args',
  hidden: ReadonlySet<string>,
  required: readonly string[],
): readonly Argument[] {
  const simple = simplifySchema(schema)
  const needed = new Set(required)
  const listed = new Set(Array.isArray(simple.required) ? simple.required : [])
  return Object.entries(isJsonObject(simple.properties) ? simple.properties : {})
    .filter(([name]) => !hidden.has(`${part}.${name}`))
    .map(([name, property]) => ({
      place: { part, name },
      name,
      schema: isJsonObject(property) ? property : { type: 'string' },
      isRequired: listed.has(name) || needed.has(`${part}.${name}`),
    }))
}

function hasProperty({ properties }: JsonObject, name: string): boolean {
  return isJsonObject(properties) && Object.hasOwn(properties, name)
}

const ARGUMENT_LENGTH_MAX = 64

/** Model providers take argument names of `A-Za-z0-9_.-` alone: `filter[email]` becomes `filter_email`. */
function argumentName(name: string): string {
  const safe = name.replace(/[^A-Za-z0-9_.-]+/g, '_').replace(/^_+(?=[^_])|(?<=[^_])_$/g, '')
  return /^_*$/.test(safe) ? 'value' : safe.slice(0, ARGUMENT_LENGTH_MAX)
}

/**
 * Names that are free: the one wanted, unless it is taken: then with a prefix, and a number if that is taken too. Numbers continue
 * where they ended for the same name.
 */
function createNames(): (wanted: string, prefix: string) => string {
  const taken = new Set<string>()
  const numbers = new Map<string, number>()
  return (wanted, prefix) => {
    const prefixed = `${prefix}_${wanted}`
    let number = numbers.get(prefixed) ?? 1
    let free = wanted
    for (; taken.has(free); number += 1) free = number === 1 ? prefixed : `${prefixed}_${number}`
    numbers.set(prefixed, number)
    taken.add(free)
    return free
  }
}
