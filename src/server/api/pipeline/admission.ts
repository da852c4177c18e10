import { Failure } from '../../../foundation/base/index.ts'
import type { Access } from '../access.ts'
import { callerKey } from '../caller.ts'
import type { Exchange, ServerContext } from '../exchange.ts'
import { LARGE_MESSAGE_BYTES } from '../limits.ts'
import type { RequestContext } from '../request-context.ts'
import { chargeSize } from './authenticate.ts'
import { readBody } from './body.ts'

const RETRY_AFTER_SECONDS = 5

/** The exchange of a request that is authenticated, or needs no token. */
type AdmittedExchange = Pick<Exchange, 'server' | 'context'>

/** Who shares with others: the environment in which a caller acts, its team without one, the client address without a token. */
function ownerOf({ server, context }: AdmittedExchange): string {
  const caller = context.values.get(callerKey)
  return caller === undefined
    ? context.clientAddress(server.accessControl.trustedProxies)
    : (caller.environmentId ?? caller.teamId)
}

/**
 * Runs a request in a slot of its owner, which bounds what all requests use at once: processor, memory, connections to the
 * database. A request waits for its turn among those of its owner, and owners take turns.
 *
 * @throws Failure RATE_LIMITED when too many of the owner wait, or this one waited too long
 */
export function inSlot<Result>(exchange: AdmittedExchange, work: () => Promise<Result>): Promise<Result> {
  const { server, context } = exchange
  return server.requestSlots.run(ownerOf(exchange), context, work)
}

/**
 * Reads the body of a caller's request. What large bodies hold in memory is shared by owners, until the request is closed; their
 * size costs units of the rate limit.
 *
 * @throws Failure as `readBody` does; RATE_LIMITED
 */
export async function readCallerBody(exchange: Exchange, bytesMax: number): Promise<Buffer> {
  const { server, context } = exchange
  if (context.values.get(callerKey) === undefined) return await readBody(exchange, server.limits, bytesMax)
  const body = await readBody(exchange, server.limits, bytesMax, reserveBytes(server, context))
  chargeSize(exchange, body.length)
  return body
}

/**
 * Counts an answer that its client has yet to read, until the response is closed: as bytes of its owner, and, when the owner has
 * no more of them left, as a request that is worked on. Without it a tenant that does not read would fill the memory.
 */
export function countUnsent(exchange: Pick<Exchange, 'server' | 'context' | 'response'>): void {
  const { server, context, response } = exchange
  if (context.isClientGone || response.writableLength <= LARGE_MESSAGE_BYTES) return
  const owner = ownerOf(exchange)
  const release = server.answerBytes.tryAcquire(owner, response.writableLength) ?? server.requestSlots.keep(owner)
  response.once('close', release)
}

/** Reserves memory for the body of a request, from the size of a large message on. */
function reserveBytes(server: ServerContext, context: RequestContext): (bytes: number) => Failure | undefined {
  let reserved = 0
  return (bytes) => {
    if (bytes <= LARGE_MESSAGE_BYTES || bytes <= reserved) return undefined
    const release = server.bodyBytes.tryAcquire(ownerOf({ server, context }), bytes - reserved)
    if (release === undefined) {
      const message = 'this environment sends too many large bodies at once; send this one again later'
      return new Failure('RATE_LIMITED', message, { retryAfterSeconds: RETRY_AFTER_SECONDS })
    }
    reserved = bytes
    context.onClose(release)
    return undefined
  }
}

/**
 * Acquires a slot for a request that may last, until the request is closed.
 *
 * @throws Failure RATE_LIMITED when its environment (without a token: its client address) has its share of the slots
 */
export function acquireStreamSlot(exchange: AdmittedExchange, access: Access): void {
  const { server, context } = exchange
  const slots = access === 'public' ? server.publicStreamSlots : server.streamSlots
  const release = slots.tryAcquire(ownerOf(exchange))
  if (release === undefined) {
    const who = access === 'public' ? 'this address' : 'this environment'
    const message = `${who} has as many streams open here as it may; close one, or try another server`
    throw new Failure('RATE_LIMITED', message, { retryAfterSeconds: RETRY_AFTER_SECONDS })
  }
  context.onClose(release)
}
