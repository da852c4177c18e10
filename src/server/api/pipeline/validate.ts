import type { Message } from '@bufbuild/protobuf'
import { invalidFields } from '../../../foundation/base/index.ts'
import { yieldToEventLoop } from '../../../foundation/fair/index.ts'
import { LARGE_MESSAGE_BYTES } from '../limits.ts'
import type { DecodedRequest } from '../messages/codec.ts'
import { FINDINGS_MAX } from '../messages/json-shape.ts'
import { validateRules } from '../messages/rules.ts'
import { findUnstorableFields } from '../messages/storable.ts'
import type { Finding, Operation } from '../operation.ts'

/** `assertValid`, in several turns of the event loop when the message is large. @throws Failure as it does */
export async function assertValidInSlices(
  operation: Operation,
  request: DecodedRequest,
  { length }: Uint8Array,
): Promise<void> {
  if (length <= LARGE_MESSAGE_BYTES) return assertValid(operation, request)
  await yieldToEventLoop()
  const violations = validateRules(operation.input, request.message)
  await yieldToEventLoop()
  assertValid(operation, request, violations)
  await yieldToEventLoop()
}

/** The messages of a stream, each validated as it comes. @throws Failure as `assertValid` does, while they are read */
export async function* validated(operation: Operation, messages: AsyncIterable<Message>): AsyncGenerator<Message> {
  for await (const message of messages) {
    assertValid(operation, { message, findings: [] })
    yield message
  }
}

/**
 * Validates a request and reports everything that is wrong with it in one failure: its form, the contract's rules, values
 * that cannot be stored, and the operation's own check.
 *
 * A field of the wrong type is reported for that alone, not also as missing in the decoded message.
 *
 * @param violations of the contract's rules
 * @throws Failure INVALID_FIELD, or the reason that a finding names
 */
function assertValid(
  operation: Operation,
  { message, findings }: DecodedRequest,
  violations = validateRules(operation.input, message),
): void {
  const { input } = operation
  const later = [...violations, ...findUnstorableFields(input, message), ...operation.check(message)]
  if (findings.length === 0 && later.length === 0) return
  const all: readonly Finding[] = [...findings, ...later.filter(({ field }) => !findings.some(covers(field)))]
  throw invalidFields(
    all.slice(0, FINDINGS_MAX).map(({ field, description, rule }) => ({ field, description, rule })),
    all.find(({ reason }) => reason !== undefined)?.reason,
  )
}

/** Tells whether a finding is about the field or something inside it. */
function covers(field: string): (finding: Finding) => boolean {
  return (finding) =>
    finding.field === field || finding.field.startsWith(`${field}.`) || finding.field.startsWith(`${field}[`)
}
