import { invalidFields, nextTurn } from '../../base/index.ts'
import type { Draft } from '../message/codec.ts'
import { findRuleBreaches } from '../message/rules.ts'
import { FINDINGS_MAX } from '../message/shape.ts'
import { findUnstorableFields } from '../message/storable.ts'
import type { Operation } from '../operation.ts'
import type { Finding } from '../service.ts'

/** Messages from this size on are decoded in one turn of the event loop and inspected in the next, bytes. */
const LARGE_BYTES = 64 * 1024

/** `refuseInvalid`, in a later turn of the event loop when the message is large. @throws Failure as it does */
export async function refuseInvalidLater(operation: Operation, draft: Draft, { length }: Uint8Array): Promise<void> {
  if (length > LARGE_BYTES) await nextTurn()
  refuseInvalid(operation, draft)
}

/**
 * Refuses a request for everything that is wrong with it at once: its form, the contract's rules, what cannot be stored,
 * and the operation's own check.
 *
 * A field that did not fit its type is reported for that alone, not also for being absent from the message that was read.
 *
 * @throws Failure INVALID_FIELD, or the reason that a finding names
 */
export function refuseInvalid(operation: Operation, { message, findings }: Draft): void {
  const { input } = operation
  const later = [
    ...findRuleBreaches(input, message),
    ...findUnstorableFields(input, message),
    ...operation.check(message),
  ]
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
