import { isUuid, mustBeOneOf } from '../../foundation/base/index.ts'
import { createCallsClient, type LoggedRequest, type RequestFilter } from '../client/calls.ts'
import { type Invocation, type RunCommand, UsageError } from './command.ts'
import { printLine } from './output.ts'
import { readServerAddress } from './server-address.ts'

const SIGNALS = ['SIGINT', 'SIGTERM'] as const
/** What a shell reports for a command ended by SIGINT. */
const EXIT_INTERRUPTED = 130
const SHOWN_DEFAULT = 50
const SHOWN_MAX = 1_000
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

/** Shows the newest requests to third parties, oldest first; with `--follow` those that are sent from now on. */
export const runCalls: RunCommand = async ({ options, flags, environment }) => {
  const filter = filterOf(options)
  const limit = limitOf(options.limit)
  const calls = createCallsClient(readServerAddress('calls', options, environment))
  if (flags.has('follow')) return await follow((signal) => calls.watch(filter, signal))
  const newest = await calls.list(filter, limit)
  for (const request of newest.toReversed()) printLine(lineOf(request))
  return 0
}

async function follow(watch: (signal: AbortSignal) => AsyncIterable<LoggedRequest | undefined>): Promise<number> {
  const interrupted = new AbortController()
  const interrupt = () => interrupted.abort()
  for (const signal of SIGNALS) process.on(signal, interrupt)
  try {
    for await (const request of watch(interrupted.signal)) if (request !== undefined) printLine(lineOf(request))
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

/** `2026-03-01T10:00:00.000Z  GET https://api.example.com/contacts  200 success  84 ms  run  <id>`. */
function lineOf({
  id,
  startedAt,
  httpMethod,
  url,
  status,
  class: callClass,
  totalMs,
  attempt,
  cause,
  errorMessage,
}: LoggedRequest) {
  const outcome = [status, callClass].filter((part) => part !== undefined).join(' ')
  const parts = [startedAt.toISOString(), `${httpMethod} ${url}`, outcome, `${Math.round(totalMs)} ms`]
  const repeated = attempt > 1 ? [`attempt ${attempt}`] : []
  return [...parts, ...repeated, cause, id, ...(errorMessage === undefined ? [] : [errorMessage])].join('  ')
}
