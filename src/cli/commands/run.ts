import { Failure, isUuid, systemClock } from '../../foundation/base/index.ts'
import { hasReason } from '../client/errors.ts'
import { followRun } from '../client/follow-run.ts'
import { createRunsClient, type FollowedRun, type RunsClient } from '../client/runs.ts'
import { type RunCommand, UsageError } from './command.ts'
import { printLine } from './output.ts'
import { LinesDisplay, type RunDisplay, TerminalDisplay } from './run-lines.ts'
import { readServerAddress } from './server-address.ts'

const SIGNALS = ['SIGINT', 'SIGTERM'] as const
/** What a shell reports for a command ended by SIGINT. */
const EXIT_INTERRUPTED = 130
const EXIT_CODE_BY_STATUS: Readonly<Record<string, number>> = { completed: 0, failed: 1 }
/** The run neither completed nor failed: it completed partially, or was stopped or skipped. */
const EXIT_NOT_COMPLETED = 3

/** Starts a run of a trigger; with `--follow` follows that run, or an existing one. */
export const runTriggerNow: RunCommand = async ({ operands: [id = ''], options, flags, environment }) => {
  if (!isUuid(id)) throw new UsageError('run takes the id of a trigger, or with --follow of a run')
  const runs = createRunsClient(readServerAddress('run', options, environment))
  const isFull = flags.has('full')
  if (flags.has('follow')) return await follow(runs, id, isFull)
  const started = await runs.start(id, isFull).catch((error: unknown) => {
    throw isNotFound(error)
      ? new Failure('RESOURCE_NOT_FOUND', `there is no trigger ${id}; with --follow it may be a run`)
      : error
  })
  printLine(`run ${started.id} ${started.status}`)
  return 0
}

/**
 * Follows the run with this id, or a new one of the trigger with this id.
 *
 * @param isFull a new run, which reads everything
 * @returns the exit code
 */
async function follow(runs: RunsClient, id: string, isFull: boolean): Promise<number> {
  const interrupted = new AbortController()
  const interrupt = () => interrupted.abort()
  for (const signal of SIGNALS) process.on(signal, interrupt)
  const display = createDisplay(process.stdout)
  try {
    const followNew = async () => {
      const started = await runs.start(id, isFull).catch((error: unknown) => {
        const what = isFull ? 'no trigger' : 'neither a run nor a trigger'
        throw isNotFound(error) ? new Failure('RESOURCE_NOT_FOUND', `there is ${what} ${id}`) : error
      })
      return await displayRun(runs, started.id, display, interrupted.signal)
    }
    const last = isFull
      ? await followNew()
      : await displayRun(runs, id, display, interrupted.signal).catch(async (error: unknown) => {
          if (!isNotFound(error)) throw error
          return await followNew()
        })
    display.close()
    if (last === undefined) return EXIT_INTERRUPTED
    if (!interrupted.signal.aborted) return EXIT_CODE_BY_STATUS[last.status] ?? EXIT_NOT_COMPLETED
    printLine(`Stopped following; the run continues. Follow again: patchbay run --follow ${last.id}`)
    return EXIT_INTERRUPTED
  } finally {
    display.close()
    for (const signal of SIGNALS) process.off(signal, interrupt)
  }
}

/** Shows the run until it is finished or `signal` aborts. @returns the run as last received */
async function displayRun(
  runs: RunsClient,
  id: string,
  display: RunDisplay,
  signal: AbortSignal,
): Promise<FollowedRun | undefined> {
  let last: FollowedRun | undefined
  for await (const event of followRun({ runs, clock: systemClock, random: Math.random }, id, signal)) {
    display.show(event)
    if (event.kind === 'run') last = event.run
  }
  return last
}

/** A display for the stream: a line that is rewritten on a terminal whose size is known, else plain lines. */
export function createDisplay(stream: NodeJS.WriteStream): RunDisplay {
  // Terminals without a size, as of some CI runners and `docker exec -t`, say that they have 0 columns.
  const canRewrite = stream.isTTY && process.env.TERM !== 'dumb' && stream.columns > 0
  if (canRewrite) return new TerminalDisplay(stream)
  return new LinesDisplay({ write: (text) => stream.write(text), now: () => new Date() })
}

/** That there is no such run or trigger; what else the server does not know, such as the environment, it says itself. */
function isNotFound(error: unknown): boolean {
  return hasReason(error, 'RESOURCE_NOT_FOUND') && error.resource?.type !== 'environment'
}
