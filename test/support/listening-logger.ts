import type { Logger } from '../../src/foundation/telemetry/index.ts'

/** A line of a log. */
interface LogLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  readonly message: string
  readonly fields: Readonly<Record<string, unknown>>
}

/** A logger that keeps its lines. */
export interface ListeningLogger {
  readonly logger: Logger
  readonly log: readonly LogLine[]
  /** The first line with this message and these fields, past or future. */
  logged(message: string, fields?: LogLine['fields']): Promise<LogLine>
}

export function listeningLogger(): ListeningLogger {
  const log: LogLine[] = []
  const waiting = new Set<() => void>()
  const write =
    (level: LogLine['level']) =>
    (fields: LogLine['fields'], message: string): void => {
      log.push({ level, message, fields })
      for (const look of [...waiting]) look()
    }
  const logger: Logger = { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') }
  const logged = async (message: string, fields: LogLine['fields'] = {}): Promise<LogLine> => {
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
  return { logger, log, logged }
}

function hasAll(fields: LogLine['fields'], wanted: LogLine['fields']): boolean {
  return Object.entries(wanted).every(([key, value]) => fields[key] === value)
}
