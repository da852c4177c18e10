import type { Message } from '@bufbuild/protobuf'
import { messageBytesMax } from '../access.ts'
import { callerKey } from '../caller.ts'
import type { ServiceRequest } from '../exchange.ts'
import type { ApiLimits } from '../limits.ts'
import { showsSecret } from '../mcp-management/secrets.ts'
import type { DecodedRequest } from '../messages/codec.ts'
import type { Operation } from '../operation.ts'
import { acquireStreamSlot, inSlot } from './admission.ts'
import { audited } from './audit.ts'
import { type AdmissionRule, assertWithinLimit, authenticate, limitAddress } from './authenticate.ts'
import { startDeadline } from './deadline.ts'
import { assertValidInSlices, validated } from './validate.ts'

/** What a request has to pass: of an operation by its options in the contract, of an HTTP route by its own. */
export interface EntryRule extends AdmissionRule {
  /** Deadline when the client names none; absent: none. */
  readonly deadlineDefaultMs?: number | undefined
  /** Longer deadlines are cut to this; absent: none is. */
  readonly deadlineMaxMs?: number | undefined
  /** Counts every request against the limit of its client address, also with a valid token. */
  readonly isAddressLimited?: boolean
  /** May last: holds one of the slots of streams until it is closed. */
  readonly isLasting: boolean
  /** Is worked on in a slot of its owner. */
  readonly takesSlot: boolean
}

/** How a wire reads the message of a request. */
export interface MessageSource {
  /** Receives what holds the message; absent: nothing is to be received. @throws Failure as `readCallerBody` does */
  readonly receive?: (messageBytesMax: number) => Promise<Buffer>
  /** @throws Failure MALFORMED_BODY, UNSUPPORTED_MEDIA_TYPE, COMPRESSION_UNSUPPORTED, REQUEST_TOO_LARGE (after decompression) */
  readonly decode: (received: Buffer, messageBytesMax: number) => DecodedRequest | Promise<DecodedRequest>
}

const NOTHING = Buffer.alloc(0)

/**
 * The entry of every request, on every wire, on HTTP routes and from the tools of the contract: deadline, address limit, token
 * and access, slot of a stream, body, slot of a request. A gate for all requests is added here.
 *
 * @param receive reads the body of a request that was admitted
 * @param work what is asked for; ignored once the request is interrupted
 * @throws Failure of a gate, of the interruption, what `receive` and `work` throw
 */
export function runRequest<Result>(
  request: ServiceRequest,
  rule: EntryRule,
  receive: () => Promise<Buffer>,
  work: (received: Buffer) => Promise<Result>,
): Promise<Result> {
  const { context } = request
  return context.raceInterrupt(async () => {
    startDeadline(context, { defaultMs: rule.deadlineDefaultMs, maxMs: rule.deadlineMaxMs })
    if (rule.isAddressLimited === true) limitAddress(request)
    await authenticate(request, rule)
    if (rule.isLasting) acquireStreamSlot(request, rule.access)
    const received = await receive()
    if (!rule.takesSlot) return await work(received)
    return await inSlot(request, () => {
      assertWithinLimit(request)
      return work(received)
    })
  })
}

/**
 * Runs an operation of the contract: entry, decoding, validation, limits of the token, handler. Wires and tools only say how the message is read and
 * what becomes of the result.
 *
 * @param handle calls the handler of the operation with a valid message
 */
export function runOperation<Result>(
  request: ServiceRequest,
  operation: Operation,
  source: MessageSource,
  handle: (message: Message) => Promise<Result>,
): Promise<Result> {
  const { limits } = request.server
  const bytesMax = messageBytesMax(operation.access, limits)
  return runRequest(
    request,
    ruleOf(operation, limits),
    async () => (await source.receive?.(bytesMax)) ?? NOTHING,
    async (received) => {
      const decoded = await source.decode(received, bytesMax)
      await assertValidInSlices(operation, decoded, received)
      if (showsSecret(operation)) request.context.setHeader('cache-control', 'no-store')
      const caller = request.context.values.get(callerKey)
      if (caller?.limits !== undefined)
        await request.server.accessControl.assertWithinLimits(operation, decoded.message, caller)
      const { auditDatabase } = request.server
      if (!operation.isAudited || auditDatabase === undefined) return await handle(decoded.message)
      return await audited(request, auditDatabase, operation, decoded.message, () => handle(decoded.message))
    },
  )
}

/**
 * Runs a stream in both directions: entry, then the handler, whose messages are validated as they come. It holds no slot, since
 * it waits for its client most of the time.
 */
export function runBidiStream(
  request: ServiceRequest,
  operation: Operation,
  receive: () => Promise<AsyncIterable<Message>>,
  handle: (messages: AsyncIterable<Message>) => Promise<void>,
): Promise<void> {
  const rule = { ...ruleOf(operation, request.server.limits), takesSlot: false }
  return runRequest(
    request,
    rule,
    async () => NOTHING,
    async () => handle(validated(operation, await receive())),
  )
}

/** Streams have neither a default nor a longest deadline: one without ends when handler, client or server end it. */
function ruleOf({ kind, access, scope, cost }: Operation, { deadlineDefaultMs, deadlineMaxMs }: ApiLimits): EntryRule {
  if (kind === 'unary')
    return { access, scope, cost, deadlineDefaultMs, deadlineMaxMs, isLasting: false, takesSlot: true }
  return { access, scope, cost, isLasting: true, takesSlot: true }
}
