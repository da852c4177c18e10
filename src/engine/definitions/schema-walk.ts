import type { z } from 'zod'
import { type DotPath, isJsonNumber, isJsonObject, type Json, toDouble } from '../../foundation/json/index.ts'
import { type FieldRole, fieldRoles } from '../formats/schema-types.ts'

/** A field of a config whose schema has a role. */
export interface FieldAt {
  /** `literal`: a text or a key without placeholders. */
  readonly role: FieldRole | { readonly kind: 'literal' }
  readonly value: Json
  readonly path: DotPath
}

type Schema = z.core.$ZodType

/**
 * Walks schema and config together and lists every field that has a role.
 *
 * The config need not be valid: fields that no schema describes are skipped.
 */
export function listFields(schema: Schema, value: Json, path: DotPath = []): FieldAt[] {
  const role = fieldRoles.get(schema) ?? (isText(schema) ? LITERAL : undefined)
  const own = role === undefined ? [] : [{ role, value, path }]
  return [...own, ...childrenOf(schema, value, path)]
}

function childrenOf(schema: Schema, value: Json, path: DotPath): FieldAt[] {
  const def = (schema as z.core.$ZodTypes)._zod.def
  switch (def.type) {
    case 'object':
      return membersOf(value, (key) => memberSchema(def, key) !== undefined).flatMap(([key, item]) => {
        const child = memberSchema(def, key)
        return child === undefined ? [] : listFields(child, item, [...path, key])
      })
    case 'record':
      return membersOf(value, () => true).flatMap(([key, item]) => [
        { role: LITERAL, value: key, path: [...path, key] },
        ...listFields(def.valueType, item, [...path, key]),
      ])
    case 'array':
      return Array.isArray(value) ? value.flatMap((item, index) => listFields(def.element, item, [...path, index])) : []
    case 'union': {
      const found = likeliestOptions(def.options, value).map((option) => listFields(option, value, path))
      return found.length > 1 ? distinctFields(found.flat()) : (found[0] ?? [])
    }
    case 'optional':
    case 'nullable':
    case 'default':
    case 'prefault':
      return listFields(def.innerType, value, path)
    default:
      return []
  }
}

const LITERAL = { kind: 'literal' } as const

/** One field per path: credential material, where one of the options of a union says so. */
function distinctFields(fields: readonly FieldAt[]): FieldAt[] {
  const byPath = new Map<string, FieldAt>()
  for (const field of fields) {
    const key = `${field.role.kind === 'literal'} ${JSON.stringify(field.path)}`
    if (!byPath.has(key) || isSecretRole(field.role)) byPath.set(key, field)
  }
  return [...byPath.values()]
}

function isSecretRole(role: FieldAt['role']): boolean {
  return role.kind === 'template' && role.secret
}

type ObjectDef = z.core.$ZodObject['_zod']['def']

/** The schema of a key; `undefined` for an unknown one. */
function memberSchema({ shape, catchall }: ObjectDef, key: string): Schema | undefined {
  if (Object.hasOwn(shape, key)) return shape[key]
  return catchall === undefined || (catchall as z.core.$ZodTypes)._zod.def.type === 'never' ? undefined : catchall
}

function isText(schema: Schema): boolean {
  return (schema as z.core.$ZodTypes)._zod.def.type === 'string'
}

/**
 * The config with numeric settings, such as a page size, as doubles: `1e2` is 100 there. Numbers in free-form values, such
 * as a literal in a body, keep their text.
 */
export function settingsAsDoubles(schema: Schema, value: Json): Json {
  const def = (schema as z.core.$ZodTypes)._zod.def
  switch (def.type) {
    case 'number':
      return toDouble(value)
    case 'object':
      return mapEntries(value, (key, item) => {
        const child = memberSchema(def, key)
        return child === undefined ? item : settingsAsDoubles(child, item)
      })
    case 'record':
      return mapEntries(value, (_key, item) => settingsAsDoubles(def.valueType, item))
    case 'array':
      return Array.isArray(value) ? value.map((item: Json) => settingsAsDoubles(def.element, item)) : value
    case 'union': {
      const [option] = likeliestOptions(def.options, value)
      return option === undefined ? value : settingsAsDoubles(option, value)
    }
    case 'optional':
    case 'nullable':
    case 'default':
    case 'prefault':
      return settingsAsDoubles(def.innerType, value)
    default:
      return value
  }
}

function mapEntries(value: Json, change: (key: string, item: Json) => Json): Json {
  return isJsonObject(value)
    ? Object.fromEntries(Object.entries(value).map(([key, item]) => [key, change(key, item)]))
    : value
}

/**
 * The options of a union that fit a value best: by `format` or `type`, else by common keys. There are several where an override
 * leaves `format` out, which its definition has.
 */
function likeliestOptions(options: readonly Schema[], value: Json): readonly Schema[] {
  if (!isJsonObject(value)) return options.filter((option) => acceptsType(option, value)).slice(0, 1)
  const scores = options.map((option) => matchScore(option, value))
  const best = Math.max(...scores)
  return best < 0 ? options.slice(0, 1) : options.filter((_option, index) => scores[index] === best)
}

/** Number of common keys; a literal key that fits outweighs all others, one that does not excludes the option. */
function matchScore(option: Schema, value: { readonly [key: string]: Json }): number {
  const def = (option as z.core.$ZodTypes)._zod.def
  if (def.type === 'record') return 0
  if (def.type === 'union') return Math.max(...def.options.map((inner) => matchScore(inner, value)))
  if (def.type !== 'object') return -1
  let score = 0
  for (const [key, schema] of Object.entries(def.shape)) {
    if (!Object.hasOwn(value, key)) continue
    const inner = (schema as z.core.$ZodTypes)._zod.def
    if (inner.type === 'literal') {
      if (!inner.values.some((literal) => literal === value[key])) return -1
      score += 1000
    }
    score += 1
  }
  return score + Object.keys(value).filter((key) => isNamedEntry(def, key, value[key])).length
}

/** Whether a key that is the writer's choice has an entry, in an object that takes such keys. */
function isNamedEntry(def: ObjectDef, key: string, item: Json | undefined): boolean {
  return isJsonObject(item) && !Object.hasOwn(def.shape, key) && memberSchema(def, key) !== undefined
}

function acceptsType(option: Schema, value: Json): boolean {
  const { type } = (option as z.core.$ZodTypes)._zod.def
  if (typeof value === 'string') return type === 'string' || type === 'enum'
  if (Array.isArray(value)) return type === 'array'
  return isJsonNumber(value) ? type === 'number' : type === typeof value
}

/** Of an object with many unknown keys, `Object.entries` would copy each. */
function membersOf(value: Json, isWanted: (key: string) => boolean): [string, Json][] {
  const members: [string, Json][] = []
  if (isJsonObject(value)) for (const key in value) if (isWanted(key)) members.push([key, value[key] ?? null])
  return members
}
