import { pino } from 'pino'
import { LogSink } from './log-sink.ts'

/**
 * The log as a dependency; pino-compatible.
 *
 * Fields are an allow-list: ids, counts, durations, reasons. Never a request body, a header, a URL with its query, a context or
 * a credential.
 */
export interface Logger {
  debug(fields: Readonly<Record<string, unknown>>, message: string): void
  info(fields: Readonly<Record<string, unknown>>, message: string): void
  warn(fields: Readonly<Record<string, unknown>>, message: string): void
  error(fields: Readonly<Record<string, unknown>>, message: string): void
}

/** Logs JSON lines to standard error, unless another sink is given; standard output is for the results of commands. */
export function createLogger(level: string, sink = new LogSink()): Logger {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    sink,
  )
}

/** Drops everything. */
export const silentLogger: Logger = { debug() {}, info() {}, warn() {}, error() {} }

/** An expected error for the log: its message and those of its causes, without stacks. */
export function summariseError(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { error: String(error) }
  const cause = error.cause === undefined ? {} : { cause: summariseError(error.cause).error }
  return { error: error.message, ...cause }
}

/** An error for the log: kind, message, stack and the chain of causes. */
export function describeError(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { error: String(error) }
  const cause = error.cause === undefined ? {} : { cause: describeError(error.cause) }
  return { error: error.message, kind: error.name, stack: error.stack, ...cause }
}
