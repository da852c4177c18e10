import { systemClock } from '../../../src/base/index.ts'
import { connectService, createDaemon, openStore } from '../../../src/daemon-runner/index.ts'
import type { Logger } from '../../../src/telemetry/index.ts'

/** A line of a daemon's log. */
interface LogLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  readonly message: string
  readonly fields: Readonly<Record<string, unknown>>
}

/** A daemon in this process. */
export interface RunningDaemon extends AsyncDisposable {
  readonly daemon: ReturnType<typeof createDaemon>
  /** Resolves when it has drained; rejects with the error that ended it. */
  readonly ended: Promise<void>
  readonly log: readonly LogLine[]
  /** The first log line with this message and these fields, past or future. */
  logged(message: string, fields?: Readonly<Record<string, unknown>>): Promise<LogLine>
}

/** Its service, group and store. */
export interface DaemonTarget {
  readonly url: string
  readonly token: string
  readonly group: string
  /** Address of its store. */
  readonly store: string
  readonly schema?: string
  readonly capacity?: number
}

/** Starts a daemon; disposing it interrupts its runs. */
export function startDaemon({
  url,
  token,
  group,
  store: address,
  schema = 'public',
  capacity = 4,
}: DaemonTarget): RunningDaemon {
  const store = openStore({ address, schema, writers: capacity })
  if (store === undefined) throw new Error(`no store at ${address}`)
  const { logger, log, said } = createListeningLogger()
  const deps = { service: connectService({ url, token }), store, clock: systemClock, random: Math.random, logger }
  const daemon = createDaemon(deps, { groupKey: group, label: 'test', version: 'test', regions: [], capacity })
  daemon.start()
  const ended = daemon.ended()
  ended.catch(() => {})
  return {
    daemon,
    ended,
    log,
    logged: said,
    async [Symbol.asyncDispose]() {
      await daemon[Symbol.asyncDispose]()
      await store[Symbol.asyncDispose]()
    },
  }
}

function createListeningLogger() {
  const log: LogLine[] = []
  const waiting = new Set<() => void>()
  const write =
    (level: LogLine['level']) =>
    (fields: LogLine['fields'], message: string): void => {
      log.push({ level, message, fields })
      for (const look of [...waiting]) look()
    }
  const logger: Logger = { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') }
  const said = async (message: string, fields: LogLine['fields'] = {}): Promise<LogLine> => {
    const { promise, resolve } = Promise.withResolvers<LogLine>()
    const look = () => {
      const found = log.find((line) => line.message === message && hasAll(line.fields, fields))
      if (found !== undefined) resolve(found)
    }
    waiting.add(look)
    look()
    const found = await promise
    waiting.delete(look)
    return found
  }
  return { logger, log, said }
}

function hasAll(fields: LogLine['fields'], wanted: LogLine['fields']): boolean {
  return Object.entries(wanted).every(([key, value]) => fields[key] === value)
}
