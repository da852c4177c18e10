import { z } from 'zod'
import { anyJson, mapOf } from '../formats/schema-types.ts'

/**
 * The deep partial of a schema, for overrides: every key may be absent or `null`, at every depth; lists stay whole because
 * they replace. Rules between fields are checked in the merged config.
 *
 * A `{format, config}` may leave `format` out: it then changes the config of the definition's format.
 */
export function deepPartial(schema: z.core.$ZodType): z.ZodType {
  const known = cache.get(schema)
  if (known !== undefined) return known
  const layer = buildPartial(schema)
  cache.set(schema, layer)
  return layer
}

type Shape = Readonly<Record<string, z.core.$ZodType>>

const cache = new WeakMap<z.core.$ZodType, z.ZodType>()

function buildPartial(schema: z.core.$ZodType): z.ZodType {
  const def = (schema as z.core.$ZodTypes)._zod.def
  switch (def.type) {
    case 'object':
      return withNamedEntries(partialObject(def.shape), def.catchall, entriesMaxOf(schema))
    case 'record':
      return mapOf(def.keyType as z.ZodString, deepPartial(def.valueType).nullable(), entriesMaxOf(schema))
    case 'union':
      return isFormatUnion(def.options) ? partialFormatUnion(def.options) : z.union(def.options.map(deepPartial))
    case 'optional':
    case 'nullable':
    case 'default':
    case 'prefault':
      return deepPartial(def.innerType)
    default:
      return schema as z.ZodType
  }
}

/** The limit in the metadata of `mapOf`. */
function entriesMaxOf(schema: z.core.$ZodType): number | undefined {
  return z.globalRegistry.get(schema)?.maxProperties as number | undefined
}

function partialObject(shape: Shape): z.ZodObject {
  const keys = Object.entries(shape).map(([key, child]) => [key, deepPartial(child).nullish()] as const)
  return z.strictObject(Object.fromEntries(keys))
}

/** Entries beside the known keys, where the object takes them. */
function withNamedEntries(partial: z.ZodObject, catchall: z.core.$ZodType | undefined, entriesMax: number | undefined) {
  if (catchall === undefined || catchall instanceof z.ZodNever) return partial
  return partial.catchall(deepPartial(catchall).nullish()).meta({ maxProperties: entriesMax })
}

/** A union over `format`; without `format`, `config` may have the keys of any option. */
function partialFormatUnion(options: readonly z.core.$ZodType[]): z.ZodType {
  const shapes = options.map(shapeOf).filter((shape) => shape !== undefined)
  const named = shapes.map((shape) => {
    const { format, ...rest } = shape
    return partialObject(rest).extend({ format: format as z.ZodLiteral<string> })
  })
  const configKeys = shapes.flatMap((shape) => Object.keys(shapeOf(shape.config) ?? {}))
  const anyConfig = z.strictObject(Object.fromEntries(configKeys.map((key) => [key, anyJson().optional()])))
  const { format: _format, config: _config, ...others } = shapes[0] ?? {}
  const unnamed = partialObject(others).extend({ format: z.undefined().optional(), config: anyConfig.nullish() })
  return z.discriminatedUnion('format', [unnamed, ...named])
}

function isFormatUnion(options: readonly z.core.$ZodType[]): boolean {
  return options.every((option) => shapeOf(option)?.format !== undefined)
}

/** The keys of an object schema, through optional and default wrappers. */
function shapeOf(schema: z.core.$ZodType | undefined): Shape | undefined {
  if (schema === undefined) return undefined
  const def = (schema as z.core.$ZodTypes)._zod.def
  if (def.type === 'object') return def.shape
  return def.type === 'optional' || def.type === 'prefault' || def.type === 'default'
    ? shapeOf(def.innerType)
    : undefined
}
