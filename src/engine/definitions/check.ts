import { createSuggester, Failure, type Violation } from '../../foundation/base/index.ts'
import { type TaskOwner, WorkerThreads } from '../../foundation/fair/index.ts'
import {
  exceedsJsonSize,
  formatDotPath,
  isJsonObject,
  JSON_DEPTH_MAX,
  type JsonObject,
} from '../../foundation/json/index.ts'
import { findActionProblems } from './check-actions.ts'
import { findCredentialProblems, nameCredentialKeys } from './check-credentials.ts'
import { findFormProblems } from './check-forms.ts'
import { findHostProblems } from './check-hosts.ts'
import { findHiddenEmptyPages, findKeylessPaginations } from './check-pagination.ts'
import { findPlaceholderProblems } from './check-placeholders.ts'
import { findSubscriptionProblems } from './check-subscription.ts'
import { configSchema, resolvedSchema } from './config-schema.ts'
import { FINDINGS_MAX, findSchemaViolations } from './findings.ts'
import { alignCredentials, resolveConfig } from './merge.ts'
import { listMethodsWithoutVerb } from './method-schema.ts'
import { deepPartial } from './override-schema.ts'

/** Longest definition, and longest override, in characters as JSON. */
export const CONFIG_LENGTH_MAX = 256 * 1024

const TOO_LARGE = 'config.max'

/** The document that is checked: a whole definition, or an override that is merged over one. */
export type ConfigKind = 'integration' | 'override'

/**
 * Validates a config: all findings in one list, the first 100 of them; a config without findings may be stored and compiled.
 *
 * An override is validated key by key, since its definition may supply the rest; `checkOverride` validates both together.
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
 * Validates an override over its definition: findings of the override alone, and those that only the merged config has.
 * Findings of the definition by itself are left out.
 */
export function checkOverride(config: JsonObject, override: JsonObject, path: string): Violation[] {
  const alone = checkConfig(override, 'override', path)
  if (alone.some(({ rule }) => rule === TOO_LARGE)) return alone
  const merged = resolveConfig(config, override).config
  const together = mergeFindings(findSchemaViolations(resolvedSchema, merged, path), findSemanticProblems(merged, path))
  const { below } = alignCredentials(config, override)
  const inherited = [...findSchemaViolations(resolvedSchema, below, path), ...findSemanticProblems(below, path)]
  const known = new Set([...inherited, ...alone].map(({ field, rule }) => `${field} ${rule}`))
  const found = [...alone, ...together.filter(({ field, rule }) => !known.has(`${field} ${rule}`))]
  return nameCredentialKeys(found, below, override, path)
}

/** A field with a finding of the schema gets no second one that placeholders have no effect in it. */
function mergeFindings(ofSchema: readonly Violation[], ofMeaning: readonly Violation[]): Violation[] {
  const fields = new Set(ofSchema.map(({ field }) => field))
  return [...ofSchema, ...ofMeaning.filter(({ field, rule }) => rule !== 'placeholder.no_effect' || !fields.has(field))]
}

function tooLarge(field: string): Violation {
  const description = `must have at most ${CONFIG_LENGTH_MAX} characters as JSON, nested at most ${JSON_DEPTH_MAX} deep`
  return { field, description, rule: TOO_LARGE }
}

/** Rules between fields: contradicting shapes, references to unknown names. */
function findSemanticProblems(config: JsonObject, path: string): Violation[] {
  return [
    ...findMixedCredentials(config, path),
    ...findMissingVerbs(config, path),
    ...findUnknownTagged(config, path),
    ...findPlaceholderProblems(config, path),
    ...findKeylessPaginations(config, path),
    ...findHiddenEmptyPages(config, path),
    ...findActionProblems(config, path),
    ...findFormProblems(config, path),
    ...findCredentialProblems(config, path),
    ...findHostProblems(config, path),
    ...findSubscriptionProblems(config, path),
  ]
}

function findMixedCredentials({ credentials }: JsonObject, path: string): Violation[] {
  if (!isJsonObject(credentials) || credentials.format === undefined) return []
  const others = Object.keys(credentials).filter((key) => key !== 'format' && key !== 'config')
  if (others.length === 0) return []
  const description = `mixes both shapes: one definition {format, config} and the map entries ${others.join(', ')}`
  return [{ field: formatDotPath(['credentials'], path), description, rule: 'credentials.mixed_shapes' }]
}

function findMissingVerbs({ resources }: JsonObject, path: string): Violation[] {
  if (!isJsonObject(resources)) return []
  return Object.entries(resources).flatMap(([resource, methods]) =>
    (isJsonObject(methods) ? listMethodsWithoutVerb(methods) : []).map((method) => ({
      field: formatDotPath(['resources', resource, method, 'method'], path),
      description: 'is required: only reading methods have a default',
      rule: 'required',
    })),
  )
}

/** Tags of unknown resources: no tool would have them. */
function findUnknownTagged({ tool_tags, resources }: JsonObject, path: string): Violation[] {
  if (!isJsonObject(tool_tags)) return []
  const suggest = createSuggester()
  const known = new Set(isJsonObject(resources) ? Object.keys(resources) : [])
  return Object.keys(tool_tags)
    .filter((name) => !known.has(name))
    .map((name) => ({
      field: formatDotPath(['tool_tags', name], path),
      description: `is not a resource of the definition${suggest(name, known)}`,
      rule: 'tool_tags.unknown_resource',
    }))
}

/** Largest config that is checked in this thread, characters as JSON; a check takes a millisecond per KiB and more. */
const INLINE_LENGTH_MAX = 16 * 1024

/** A task of the worker thread; configs as JSON text. */
export type CheckTask =
  | { readonly config: string; readonly kind: ConfigKind; readonly path: string }
  | { readonly config: string; readonly override: string; readonly path: string }

const threads = new WorkerThreads<CheckTask, readonly Violation[]>(new URL('./check-thread.ts', import.meta.url), {
  threads: 2,
  taskMs: 20_000,
  heapMegabytes: 512,
})

/** True when a check of the config would block the event loop. */
export function isLargeConfig(config: JsonObject): boolean {
  return exceedsJsonSize(config, INLINE_LENGTH_MAX, JSON_DEPTH_MAX)
}

/** `checkConfig` without blocking the event loop: large configs are checked in a worker thread. */
export async function checkConfigAsync(
  config: JsonObject,
  kind: ConfigKind,
  path: string,
  owner: TaskOwner,
): Promise<readonly Violation[]> {
  if (!isLargeConfig(config) || isTooLarge(config)) return checkConfig(config, kind, path)
  return await checkInThread({ config: JSON.stringify(config), kind, path }, owner)
}

/** `checkOverride` without blocking the event loop: large configs are checked in a worker thread. */
export async function checkOverrideAsync(
  config: JsonObject,
  override: JsonObject,
  path: string,
  owner: TaskOwner,
): Promise<readonly Violation[]> {
  const isLarge = isLargeConfig(config) || isLargeConfig(override)
  if (!isLarge || isTooLarge(override)) return checkOverride(config, override, path)
  return await checkInThread({ config: JSON.stringify(config), override: JSON.stringify(override), path }, owner)
}

function isTooLarge(config: JsonObject): boolean {
  return exceedsJsonSize(config, CONFIG_LENGTH_MAX, JSON_DEPTH_MAX)
}

async function checkInThread(task: CheckTask, owner: TaskOwner): Promise<readonly Violation[]> {
  const bytes = task.config.length + ('override' in task ? task.override.length : 0)
  try {
    return await threads.run(task, bytes, owner)
  } catch (error) {
    if (error instanceof Failure) throw error
    const description = error instanceof Error ? error.message : 'cannot be checked'
    return [{ field: task.path, description, rule: 'config.max' }]
  }
}
