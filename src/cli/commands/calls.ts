import { isUuid, mustBeOneOf } from '../../foundation/base/index.ts'
import { createCallsClient, type LoggedRequest, type RequestFilter } from '../client/calls.ts'
import { type Invocation, momentOf, type RunCommand, UsageError } from './command.ts'
import { printError, printLine } from './output.ts'
import { curlText, requestLine, requestText } from './request-text.ts'
import { readServerAddress } from './server-address.ts'

const SIGNALS = ['SIGINT', 'SIGTERM'] as const
/** What a shell reports for a command ended by SIGINT. */
const EXIT_INTERRUPTED = 130
const SHOWN_DEFAULT = 50
const SHOWN_MAX = 100_000
const CLASSES = 'success rate_limited error timeout network_error invalid_response blocked cancelled'.split(' ')
const FILTERS = ['account', 'run', 'class', 'failed', 'cause', 'path', 'since', 'limit', 'follow']
const CAUSES = 'call run tool_call activation token authorization subscription'.split(' ')

/**
 * Shows the newest requests to third parties, oldest first; with `--follow` those that are sent from now on; of an id that one, or with
 * `--curl` as a command that sends it again.
 */
export const runCalls: RunCommand = async ({ operands: [id], options, flags, environment }) => {
  if (id !== undefined && !isUuid(id))
    throw new UsageError('calls takes the id of an entry, such as the log_id of an error')
  if (id === undefined && flags.has('curl')) throw new UsageError('calls --curl takes the id of an entry')
  const [filtered] = FILTERS.filter((name) => options[name] !== undefined || flags.has(name))
  if (id !== undefined && filtered !== undefined)
    throw new UsageError(`calls takes the id of an entry or --${filtered}, not both`)
  const filter = filterOf(options, flags)
  const limit = limitOf(options.limit)
  const since = options.since === undefined ? undefined : momentOf('calls --since', options.since)
  const calls = createCallsClient(readServerAddress('calls', options, environment))
  if (id !== undefined) {
    const request = await calls.get(id)
    for (const line of flags.has('curl') ? [curlText(request)] : requestText(request)) printLine(line)
    return 0
  }
  if (flags.has('follow')) return await follow((signal) => calls.watch(filter, signal))
  const { requests, droppedCount } = await calls.list({ ...filter, since }, limit)
  for (const request of requests.toReversed()) printLine(requestLine(request))
  if (droppedCount > 0)
    printError([`${droppedCount} requests of these days are not in the log: too many waited to be stored`])
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

function filterOf(
  { account, run, class: callClass, cause, path }: Invocation['options'],
  flags: Invocation['flags'],
): RequestFilter {
  if (account !== undefined && !isUuid(account)) throw new UsageError('calls --account takes an id')
  if (run !== undefined && !isUuid(run)) throw new UsageError('calls --run takes an id')
  if (callClass !== undefined && !CLASSES.includes(callClass))
    throw new UsageError(`calls --class ${mustBeOneOf(callClass, CLASSES)}`)
  if (cause !== undefined && !CAUSES.includes(cause))
    throw new UsageError(`calls --cause ${mustBeOneOf(cause, CAUSES)}`)
  return {
    integratedAccountId: account,
    causeId: run,
    class: callClass,
    cause,
    failed: flags.has('failed') || undefined,
    pathContains: path,
  }
}

function limitOf(text: string | undefined): number {
  const limit = text === undefined ? SHOWN_DEFAULT : Number(text)
  if (Number.isInteger(limit) && limit >= 1 && limit <= SHOWN_MAX) return limit
  throw new UsageError(`calls --limit takes a whole number from 1 to ${SHOWN_MAX}`)
}
