import {
  type AnyDesc,
  createRegistry,
  type DescExtension,
  type DescField,
  type DescFile,
  type DescMethod,
  getOption,
  hasOption,
  isMessage,
  type Registry,
  toJson,
} from '@bufbuild/protobuf'
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt'
import { getComments } from '@bufbuild/protoplugin'

/** How one RPC appears in REST: a verb, a path template whose `{names}` are request fields, and what the body holds. */
export interface HttpBinding {
  readonly verb: 'get' | 'put' | 'post' | 'delete' | 'patch'
  readonly path: string
  readonly hasBody: boolean
}

/** What a caller may do with a field; a name of `google.api.FieldBehavior`. */
type FieldBehavior = 'REQUIRED' | 'OPTIONAL' | 'OUTPUT_ONLY' | 'INPUT_ONLY' | 'IMMUTABLE' | 'IDENTIFIER'

/** Who may call an RPC: a name of `patchbay.v1.Access` without its prefix, in lower case. */
export type AccessName = 'public' | 'token' | 'environment' | 'environment_or_link' | 'team'

/** What a call of an RPC may do: a name of `patchbay.v1.Effect` without its prefix, in lower case. */
type EffectName = 'changes' | 'destroys' | 'reaches_third_party' | 'calls_directly'

/** Reads the annotations of `google.api` and `patchbay.v1` from descriptors. */
export interface Annotations {
  /** The binding, or undefined for an RPC without one. Bindings with a custom verb or a body other than `*` throw. */
  httpBinding(method: DescMethod): HttpBinding | undefined
  /** The access rule of an RPC. @throws Error for one without */
  access(method: DescMethod): AccessName
  /** The scope that a call needs of an API token; empty where no token is needed. */
  scope(method: DescMethod): string
  /** What a call of an RPC may do. @throws Error for one with side effects that does not say which */
  effects(method: DescMethod): readonly EffectName[]
  /** Units of the rate limit that a call of an RPC takes. */
  cost(method: DescMethod): number
  hasBehavior(field: DescField, behavior: FieldBehavior): boolean
}

const VERBS = ['get', 'put', 'post', 'delete', 'patch'] as const

/**
 * Annotations of the given files. The extensions are taken from these files, not from generated code, which may not
 * exist while it is being generated.
 */
export function readAnnotations(files: readonly DescFile[]): Annotations {
  const registry = createRegistry(...files)
  const http = extension(registry, 'google.api.http')
  const behavior = extension(registry, 'google.api.field_behavior')
  const access = extension(registry, 'patchbay.v1.access')
  const cost = extension(registry, 'patchbay.v1.cost')
  const scope = extension(registry, 'patchbay.v1.scope')
  const accessNames = new Map(access.enum?.values.map((v) => [v.number, v.name.replace('ACCESS_', '').toLowerCase()]))
  const effects = extension(registry, 'patchbay.v1.effects')
  const effectEnum = effects.fieldKind === 'list' ? effects.enum : undefined
  const effectNames = new Map(effectEnum?.values.map((v) => [v.number, v.name.replace('EFFECT_', '').toLowerCase()]))
  const numbers = new Map(behavior.fieldKind === 'list' ? behavior.enum?.values.map((v) => [v.name, v.number]) : [])

  return {
    httpBinding(method) {
      if (!hasOption(method, http)) return undefined
      const rule: unknown = getOption(method, http)
      return isMessage(rule) && http.message ? parseBinding(toJson(http.message, rule), method) : undefined
    },
    access(method) {
      const rule = hasOption(method, access) ? accessNames.get(Number(getOption(method, access))) : undefined
      if (rule === undefined)
        throw new Error(`${method.parent.typeName}.${method.name} has no option patchbay.v1.access`)
      return rule as AccessName
    },
    effects(method) {
      const set: unknown = getOption(method, effects)
      const names = Array.isArray(set) ? set.map((number) => effectNames.get(Number(number)) as EffectName) : []
      const isSafe = method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS
      if (isSafe !== (names.length === 0))
        throw new Error(
          `${method.parent.typeName}.${method.name} needs the option patchbay.v1.effects, or no side effects`,
        )
      return names
    },
    scope: (method) => String(getOption(method, scope)),
    cost: (method) => Number(getOption(method, cost)) || 1,
    hasBehavior(field, name) {
      const set: unknown = getOption(field, behavior)
      return Array.isArray(set) && set.includes(numbers.get(name))
    },
  }
}

function extension(registry: Registry, typeName: string): DescExtension {
  const found = registry.getExtension(typeName)
  if (!found) throw new Error(`the contract does not import the extension ${typeName}`)
  return found
}

function parseBinding(rule: unknown, method: DescMethod): HttpBinding {
  const entries = new Map<string, unknown>(Object.entries(rule ?? {}))
  const verb = VERBS.find((name) => entries.has(name))
  const path = verb && entries.get(verb)
  const body = entries.get('body')
  if (!verb || typeof path !== 'string' || (body !== undefined && body !== '*')) {
    throw new Error(`${method.parent.typeName}.${method.name}: this kind of google.api.http rule is not documented`)
  }
  return { verb, path, hasBody: body === '*' }
}

/** The names of the request fields in a path template, in order. */
export function pathFields(path: string): string[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name ?? '')
}

/** The leading comment as paragraphs, lines of a paragraph joined. Empty when there is none. */
export function paragraphs(desc: Exclude<AnyDesc, DescFile> | DescField): string[] {
  const { leading = '' } = getComments(desc)
  return leading
    .split(/\n\s*\n/)
    .map((paragraph) => paragraph.replaceAll(/\s*\n\s*/g, ' ').trim())
    .filter((paragraph) => paragraph !== '')
}

/** The leading comment as one Markdown text. */
export function description(desc: Exclude<AnyDesc, DescFile>): string {
  return paragraphs(desc).join('\n\n')
}
