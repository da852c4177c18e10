/** Entry point of the worker thread of `checkConfigAsync` and `checkOverrideAsync`: a thread needs a file of its own. */
import { parentPort } from 'node:worker_threads'
import type { Violation } from '../../foundation/base/index.ts'
import { type JsonObject, parseJson } from '../../foundation/json/index.ts'
import { type CheckTask, checkConfig, checkOverride } from './check.ts'

parentPort?.on('message', (task: CheckTask) => parentPort?.postMessage(check(task)))

function check(task: CheckTask): readonly Violation[] {
  const config = parseJson(task.config) as JsonObject
  if ('kind' in task) return checkConfig(config, task.kind, task.path)
  return checkOverride(config, parseJson(task.override) as JsonObject, task.path)
}
