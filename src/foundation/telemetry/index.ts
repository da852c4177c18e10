/**
 * Observability of a process: log lines, metrics, and the server for both metrics and health.
 *
 * Lives here: the table of metrics, which the README of the wing lists. Never here: decisions, and anything secret.
 */

export { LogSink, writeWithoutWaiting } from './log-sink.ts'
export { createLogger, describeError, type Logger, summariseError } from './logger.ts'
export { Metrics } from './metrics.ts'
export { type HealthProblem, MetricsServer } from './metrics-server.ts'
export { ThrottledLog } from './throttled-log.ts'
