import type { Json } from '../../foundation/json/index.ts'
import type { EnumConfig } from './mapping-schema.ts'
import { toText } from './scalar-values.ts'
import { isScalarNode, type ScalarNode, type SchemaNode } from './schema-node.ts'

/** A compiled enumeration of a unified field: provider values to unified ones, and back. */
export interface EnumRule {
  /** Unified value by provider value; in lower case when it is compared so. */
  readonly byProvider: ReadonlyMap<string, string>
  readonly isCaseInsensitive: boolean
  /** Unified value of all other provider values. */
  readonly fallback: string | undefined
  readonly keepsRaw: boolean
  /** Provider value by unified value. */
  readonly byUnified: ReadonlyMap<string, Json>
  /** The unified values. */
  readonly known: ReadonlySet<string>
}

/** Compiles the enumeration of a field; without a config unified values are provider values. */
export function compileEnum(node: ScalarNode, config: EnumConfig | undefined): EnumRule {
  const entries = Object.entries(config?.map ?? {})
  const isCaseInsensitive = config?.case_insensitive ?? false
  const inverse = new Map<string, Json>()
  for (const [provider, unified] of entries) if (!inverse.has(unified)) inverse.set(unified, provider)
  for (const [unified, provider] of Object.entries(config?.write ?? {})) inverse.set(unified, provider)
  return {
    byProvider: new Map(
      entries.map(([provider, unified]) => [isCaseInsensitive ? provider.toLowerCase() : provider, unified]),
    ),
    isCaseInsensitive,
    fallback: config?.default,
    keepsRaw: config?.keep_raw ?? true,
    byUnified: inverse,
    known: new Set(node.enum),
  }
}

/**
 * The unified value of a provider value: by the map, else itself where it is a unified value, else the fallback; `undefined`
 * for all others.
 */
export function toUnifiedValue(rule: EnumRule, text: string): string | undefined {
  const mapped = rule.byProvider.get(rule.isCaseInsensitive ? text.toLowerCase() : text)
  if (mapped !== undefined) return rule.known.has(mapped) || rule.known.size === 0 ? mapped : undefined
  return rule.known.has(text) ? text : rule.fallback
}

/** The provider value of a unified value; `undefined` when the mapping names provider values, but none for this one. */
export function toProviderValue(rule: EnumRule, value: string): Json | undefined {
  if (rule.byUnified.size === 0) return value
  return rule.byUnified.get(value)
}

/** The provider value as text, for `<field>_raw`. */
export function rawText(value: Json): string | undefined {
  const text = toText(value)
  return text === '' ? undefined : text
}

/** The enumerations of a resource by dotted field. */
export type CompiledEnums = ReadonlyMap<string, EnumRule>

/** Compiles every enumeration of a schema, and those that a mapping adds to fields without one. */
export function compileEnums(
  node: SchemaNode,
  configs: Readonly<Record<string, EnumConfig>>,
  path = '',
): CompiledEnums {
  if (node.kind === 'array') return compileEnums(node.items, configs, path)
  if (isScalarNode(node)) {
    const config = configs[path]
    return node.enum === undefined && config === undefined ? new Map() : new Map([[path, compileEnum(node, config)]])
  }
  const children = [...node.properties].map(([key, child]) =>
    compileEnums(child, configs, path === '' ? key : `${path}.${key}`),
  )
  return new Map(children.flatMap((child) => [...child]))
}
