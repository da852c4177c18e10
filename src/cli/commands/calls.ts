import { isUuid, mustBeOneOf } from '../../foundation/base/index.ts'
import { createCallsClient, type LoggedRequest, type RequestFilter } from '../client/calls.ts'
import { type Invocation, momentOf, type RunCommand, UsageError } from './command.ts'
import { printLine } from './output.ts'
import { curlText, requestLine, requestText } from './request-text.ts'
import { readServerAddress } from './server-address.ts'

const SIGNALS = ['SIGINT', 'SIGTERM'] as const
/** What a shell reports for a command ended by SIGINT. */
const EXIT_INTERRUPTED = 130
const SHOWN_DEFAULT = 50
const SHOWN_MAX = 100_000
const CLASSES = [
  'success',
  'rate_limited',
  'error',
  'timeout',
  'network_error',
  'invalid_response',
  'blocked',
  'cancelled',
]

/**
 * Shows the newest requests to third parties, oldest first; with `--follow` those that are sent from now on; of an id that one, or with
 * `--curl` as a command that sends it again.
 */
export const runCalls: RunCommand = async ({ operands: [id], options, flags, environment }) => {
  if (id !== undefined && !isUuid(id))
    throw new UsageError('calls takes the id of an entry, such as the log_id of an error')
  if (id === undefined && flags.has('curl')) throw new UsageError('calls --curl takes the id of an entry')
  const filter = filterOf(options)
  const limit = limitOf(options.limit)
  const since = options.since === undefined ? undefined : momentOf('calls --since', options.since)
  const calls = createCallsClient(readServerAddress('calls', options, environment))
  if (id !== undefined) {
    const request = await calls.get(id)
    for (const line of flags.has('curl') ? [curlText(request)] : requestText(request)) printLine(line)
    return 0
  }
  if (flags.has('follow')) return await follow((signal) => calls.watch(filter, signal))
  const newest = await calls.list({ ...filter, since }, limit)
  for (const request of newest.toReversed()) printLine(requestLine(request))
  return 0
}

async function follow(watch: (signal: AbortSignal) => AsyncIterable<LoggedRequest | undefined>): Promise<number> {
  const interrupted = new AbortController()
  const interrupt = () => interrupted.abort()
  for (const signal of SIGNALS) process.on(signal, interrupt)
  try {
    for await (const request of watch(interrupted.signal)) if (request !== undefined) printLine(requestLine(request))
  } catch (error) {
    if (!interrupted.signal.aborted) throw error
  } finally {
    for (const signal of SIGNALS) process.off(signal, interrupt)
  }
  return EXIT_INTERRUPTED
}

function filterOf({ account, run, class: callClass }: Invocation['options']): RequestFilter {
  if (account !== undefined && !isUuid(account)) throw new UsageError('calls --account takes an id')
  if (run !== undefined && !isUuid(run)) throw new UsageError('calls --run takes an id')
  if (callClass !== undefined && !CLASSES.includes(callClass))
    throw new UsageError(`calls --class ${mustBeOneOf(callClass, CLASSES)}`)
  return { integratedAccountId: account, causeId: run, class: callClass }
}

function limitOf(text: string | undefined): number {
  const limit = text === undefined ? SHOWN_DEFAULT : Number(text)
  if (Number.isInteger(limit) && limit >= 1 && limit <= SHOWN_MAX) return limit
  throw new UsageError(`calls --limit takes a whole number from 1 to ${SHOWN_MAX}`)
}
