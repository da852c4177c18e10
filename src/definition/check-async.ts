import { exceedsJsonSize, JSON_DEPTH_MAX, type JsonObject, type Violation, WorkerThread } from '../base/index.ts'
import { CONFIG_LENGTH_MAX, type ConfigKind, checkConfig, checkOverride } from './check.ts'

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
