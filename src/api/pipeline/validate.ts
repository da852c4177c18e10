import { invalidFields, yieldToEventLoop } from '../../base/index.ts'
import { LARGE_MESSAGE_BYTES } from '../limits.ts'
import type { DecodedRequest } from '../messages/codec.ts'
import { FINDINGS_MAX } from '../messages/json-shape.ts'
import { validateRules } from '../messages/rules.ts'
import { findUnstorableFields } from '../messages/storable.ts'
import type { Finding, Operation } from '../operation.ts'

/** `assertValid`, in turns of the event loop of its own when the message is large. @throws Failure as it does */
export async function assertValidInSlices(
  operation: Operation,
  draft: DecodedRequest,
  { length }: Uint8Array,
): Promise<void> {
  if (length <= LARGE_MESSAGE_BYTES) return assertValid(operation, draft)
  await yieldToEventLoop()
  const breaches = validateRules(operation.input, draft.message)
  await yieldToEventLoop()
  assertValid(operation, draft, breaches)
  await yieldToEventLoop()
}

/**
 * Refuses a request for everything that is wrong with it at once: its form, the contract's rules, what cannot be stored,
 * and the operation's own check.
 *
 * A field that did not fit its type is reported for that alone, not also for being absent from the message that was read.
 *
 * @param breaches of the contract's rules
 * @throws Failure INVALID_FIELD, or the reason that a finding names
 */
export function assertValid(
  operation: Operation,
  { message, findings }: DecodedRequest,
  breaches = validateRules(operation.input, message),
): void {
  const { input } = operation
  const later = [...breaches, ...findUnstorableFields(input, message), ...operation.check(message)]
  if (findings.length === 0 && later.length === 0) return
  const all: readonly Finding[] = [...findings, ...later.filter(({ field }) => !findings.some(covers(field)))]
  throw invalidFields(
    all.slice(0, FINDINGS_MAX).map(({ field, description, rule }) => ({ field, description, rule })),
    all.find(({ reason }) => reason !== undefined)?.reason,
  )
}

/** Tells whether a misfit is the field itself or lies inside it. */
function covers(field: string): (misfit: Finding) => boolean {
  return (misfit) =>
    misfit.field === field || misfit.field.startsWith(`${field}.`) || misfit.field.startsWith(`${field}[`)
}
