import {
  createSuggester,
  exceedsJsonSize,
  isJsonObject,
  JSON_DEPTH_MAX,
  type JsonObject,
  type Violation,
  WorkerThread,
} from '../base/index.ts'
import { findActionProblems } from './check-actions.ts'
import { findHiddenEmptyPages, findKeylessPaginations } from './check-pagination.ts'
import { findPlaceholderProblems } from './check-placeholders.ts'
import { configSchema, resolvedSchema } from './config-schema.ts'
import { FINDINGS_MAX, findSchemaViolations, writePath } from './findings.ts'
import { alignCredentials, resolveConfig } from './merge.ts'
import { listMethodsWithoutVerb } from './method-schema.ts'
import { deepPartial } from './override-schema.ts'

/** Longest definition, and longest override, in characters as JSON. */
export const CONFIG_LENGTH_MAX = 256 * 1024

const TOO_LARGE = 'config.max'

/** Which document is checked: a whole definition, or a layer that is merged over one. */
export type ConfigKind = 'integration' | 'override'

/**
 * Every finding about a config, all at once, the first 100 of them; an empty list means that it may be stored and compiled.
 *
 * An override alone is judged key by key, since the definition below may supply the rest; `checkOverride` judges it together
 * with that definition.
 *
 * @param path prefix of the reported fields: `config`, `override`
 */
export function checkConfig(config: JsonObject, kind: ConfigKind, path: string): Violation[] {
  if (exceedsJsonSize(config, CONFIG_LENGTH_MAX, JSON_DEPTH_MAX)) return [tooLarge(path)]
  if (kind === 'override') return findSchemaViolations(deepPartial(resolvedSchema), config, path)
  return mergeFindings(findSchemaViolations(configSchema, config, path), findSemanticProblems(config, path)).slice(
    0,
    FINDINGS_MAX,
  )
}

/**
 * Every finding about an override over its definition: those of the override alone, and those that only the merged config
 * shows. Findings that the definition has by itself are not the override's.
 */
export function checkOverride(config: JsonObject, override: JsonObject, path: string): Violation[] {
  const alone = checkConfig(override, 'override', path)
  if (alone.some(({ rule }) => rule === TOO_LARGE)) return alone
  const merged = resolveConfig(config, override).config
  const together = mergeFindings(findSchemaViolations(resolvedSchema, merged, path), findSemanticProblems(merged, path))
  const { below } = alignCredentials(config, override)
  const inherited = [...findSchemaViolations(resolvedSchema, below, path), ...findSemanticProblems(below, path)]
  const known = new Set([...inherited, ...alone].map(({ field, rule }) => `${field} ${rule}`))
  return [...alone, ...together.filter(({ field, rule }) => !known.has(`${field} ${rule}`))]
}

/** A field of which the schema says something already is not told a second time that placeholders have no effect in it. */
function mergeFindings(ofSchema: readonly Violation[], ofMeaning: readonly Violation[]): Violation[] {
  const fields = new Set(ofSchema.map(({ field }) => field))
  return [...ofSchema, ...ofMeaning.filter(({ field, rule }) => rule !== 'placeholder.no_effect' || !fields.has(field))]
}

function tooLarge(field: string): Violation {
  const description = `must have at most ${CONFIG_LENGTH_MAX} characters as JSON, nested at most ${JSON_DEPTH_MAX} deep`
  return { field, description, rule: TOO_LARGE }
}

/** What no schema can say: shapes that contradict each other, names that lead nowhere. */
function findSemanticProblems(config: JsonObject, path: string): Violation[] {
  return [
    ...findMixedCredentials(config, path),
    ...findMissingVerbs(config, path),
    ...findUnknownTagged(config, path),
    ...findPlaceholderProblems(config, path),
    ...findKeylessPaginations(config, path),
    ...findHiddenEmptyPages(config, path),
    ...findActionProblems(config, path),
  ]
}

function findMixedCredentials({ credentials }: JsonObject, path: string): Violation[] {
  if (!isJsonObject(credentials) || credentials.format === undefined) return []
  const others = Object.keys(credentials).filter((key) => key !== 'format' && key !== 'config')
  if (others.length === 0) return []
  const description = `mixes both shapes: one definition {format, config} and the map entries ${others.join(', ')}`
  return [{ field: writePath(path, ['credentials']), description, rule: 'credentials.mixed_shapes' }]
}

function findMissingVerbs({ resources }: JsonObject, path: string): Violation[] {
  if (!isJsonObject(resources)) return []
  return Object.entries(resources).flatMap(([resource, methods]) =>
    (isJsonObject(methods) ? listMethodsWithoutVerb(methods) : []).map((method) => ({
      field: writePath(path, ['resources', resource, method, 'method']),
      description: 'is required: only reading methods have a default',
      rule: 'required',
    })),
  )
}

/** Tags of resources that are not there, which no tool would ever have. */
function findUnknownTagged({ tool_tags, resources }: JsonObject, path: string): Violation[] {
  if (!isJsonObject(tool_tags)) return []
  const suggest = createSuggester()
  const known = new Set(isJsonObject(resources) ? Object.keys(resources) : [])
  return Object.keys(tool_tags)
    .filter((name) => !known.has(name))
    .map((name) => ({
      field: writePath(path, ['tool_tags', name]),
      description: `is not a resource of the definition${suggest(name, known)}`,
      rule: 'tool_tags.unknown_resource',
    }))
}

/** Configs up to this length are checked at once, characters as JSON; a check costs up to a millisecond per KiB and more. */
const INLINE_LENGTH_MAX = 16 * 1024

/** What the worker thread checks; configs as JSON text. */
export type CheckTask =
  | { readonly config: string; readonly kind: ConfigKind; readonly path: string }
  | { readonly config: string; readonly override: string; readonly path: string }

const thread = new WorkerThread<CheckTask, readonly Violation[]>(new URL('./check-thread.ts', import.meta.url), {
  taskMs: 20_000,
  heapMegabytes: 512,
})

/** Tells whether a check of the config would hold the event loop. */
export function isLargeConfig(config: JsonObject): boolean {
  return exceedsJsonSize(config, INLINE_LENGTH_MAX, JSON_DEPTH_MAX)
}

/** `checkConfig` without holding the event loop: large configs are checked in a worker thread. */
export async function checkConfigAsync(
  config: JsonObject,
  kind: ConfigKind,
  path: string,
): Promise<readonly Violation[]> {
  if (!isLargeConfig(config) || isTooLarge(config)) return checkConfig(config, kind, path)
  return await checkInThread({ config: JSON.stringify(config), kind, path })
}

/** `checkOverride` without holding the event loop: large configs are checked in a worker thread. */
export async function checkOverrideAsync(
  config: JsonObject,
  override: JsonObject,
  path: string,
): Promise<readonly Violation[]> {
  const isLarge = isLargeConfig(config) || isLargeConfig(override)
  if (!isLarge || isTooLarge(override)) return checkOverride(config, override, path)
  return await checkInThread({ config: JSON.stringify(config), override: JSON.stringify(override), path })
}

function isTooLarge(config: JsonObject): boolean {
  return exceedsJsonSize(config, CONFIG_LENGTH_MAX, JSON_DEPTH_MAX)
}

async function checkInThread(task: CheckTask): Promise<readonly Violation[]> {
  try {
    return await thread.run(task)
  } catch (error) {
    const description = error instanceof Error ? error.message : 'cannot be checked'
    return [{ field: task.path, description, rule: 'config.max' }]
  }
}
