import { invalidFields } from '../../base/index.ts'
import type { Draft } from '../message/codec.ts'
import { findRuleBreaches } from '../message/rules.ts'
import { FINDINGS_MAX } from '../message/shape.ts'
import { findUnstorableFields } from '../message/storable.ts'
import type { Operation } from '../operation.ts'
import type { Finding } from '../service.ts'

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
