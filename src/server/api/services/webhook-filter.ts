import { type DescMessage, getOption } from '@bufbuild/protobuf'
import { file_patchbay_v1_event_payloads as payloads } from '../../../../gen/patchbay/v1/event_payloads_pb.ts'
import { event_types as eventTypesOption } from '../../../../gen/patchbay/v1/event_type_pb.ts'
import { file_patchbay_v1_record_event_payloads as recordPayloads } from '../../../../gen/patchbay/v1/record_event_payloads_pb.ts'
import { suggest } from '../../../foundation/base/index.ts'
import {
  type DotPath,
  formatDotPath,
  isJsonObject,
  type Json,
  type JsonObject,
  tryParseDotPath,
} from '../../../foundation/json/index.ts'
import { eventTypesAskedFor } from '../../../platform/outbox/index.ts'
import type { Finding } from '../operation.ts'

/** Deeper filters and further paths are not looked at. */
const NESTING_MAX = 8
const PATHS_MAX = 100

/** The payload of each type of event, as the contract describes it. */
const PAYLOADS: ReadonlyMap<string, DescMessage> = new Map(
  [...payloads.messages, ...recordPayloads.messages].flatMap((message) =>
    getOption(message, eventTypesOption).map(({ name }) => [name, message] as const),
  ),
)

/**
 * A finding for every path of a webhook's filter into the payload that no event of its types has: a misspelt name, with which
 * no event would ever be sent. What a customer's record or context holds is not known.
 *
 * @param eventTypes patterns; empty: all events
 */
export function checkFilterPaths(filter: JsonObject | undefined, eventTypes: readonly string[]): readonly Finding[] {
  const messages = [...new Set(eventTypesAskedFor(eventTypes).flatMap((type) => PAYLOADS.get(type) ?? []))]
  if (filter === undefined || messages.length === 0) return []
  const findings: Finding[] = []
  let count = 0
  for (const { at, path } of listPaths(filter, 'filter', 0)) {
    if (count++ === PATHS_MAX) break
    const near = findUnknownPath(path, messages)
    if (near === undefined) continue
    const description = `is in the payload of no event of event_types${near}`
    findings.push({ field: at, description, rule: 'filter.payload_path' })
  }
  return findings
}

/** A suggestion, which may be empty, when no message has the path; `undefined`: one has it, or it is none. */
function findUnknownPath(path: string, messages: readonly DescMessage[]): string | undefined {
  const parsed = tryParseDotPath(path)
  if ('problem' in parsed) return undefined
  const steps = parsed.steps.slice(1)
  const ends = messages.map((message) => follow(message, steps))
  if (ends.includes(undefined)) return undefined
  return suggest(
    path,
    namesAt(
      ends.flatMap((end) => end ?? []),
      steps,
    ),
  )
}

/** The paths that are there instead of the step with which a path leaves the messages last. */
function namesAt(ends: readonly PathEnd[], steps: DotPath): readonly string[] {
  const last = Math.max(...ends.map(({ at }) => at))
  const names = new Set(ends.flatMap((end) => (end.at === last ? end.names : [])))
  return Array.from(names, (name) => formatDotPath([...steps.slice(0, last), name], 'payload'))
}

/** The fields of a filter that are paths into the payload, and where they are. */
function* listPaths(
  filter: Json,
  at: string,
  depth: number,
): Generator<{ readonly at: string; readonly path: string }> {
  if (!isJsonObject(filter) || depth > NESTING_MAX) return
  for (const [key, value] of Object.entries(filter)) {
    if (key === '$not') yield* listPaths(value, `${at}.$not`, depth + 1)
    else if (key !== '$and' && key !== '$or') {
      if (/^payload[.[]/.test(key)) yield { at: `${at}.${key}`, path: key }
    } else if (Array.isArray(value))
      for (const [index, each] of value.entries()) yield* listPaths(each, `${at}.${key}[${index}]`, depth + 1)
  }
}

interface PathEnd {
  /** Index of the step. */
  readonly at: number
  readonly names: readonly string[]
}

/** Where a path leaves a message, with the names that are there; `undefined`: nowhere, or into what has no fields of its own. */
function follow(message: DescMessage, steps: DotPath): PathEnd | undefined {
  let current = message
  for (const [at, step] of steps.entries()) {
    // An index of a list.
    if (typeof step === 'number' || /^\d+$/.test(step)) continue
    const field = current.fields.find(({ name }) => name === step)
    if (field === undefined) return { at, names: current.fields.map(({ name }) => name) }
    const isScalar = field.fieldKind === 'scalar' || field.fieldKind === 'enum'
    if (isScalar && at < steps.length - 1) return { at: at + 1, names: [] }
    const next = field.fieldKind === 'message' || field.fieldKind === 'list' ? field.message : undefined
    if (next === undefined || next.typeName.startsWith('google.protobuf.')) return undefined
    current = next
  }
  return undefined
}
