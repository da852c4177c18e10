/**
 * What the process tells about itself: log lines and metrics.
 *
 * Nothing here decides anything, and nothing secret passes through. The metrics are listed in README.md beside.
 */
export { createLogger, describeError, type Logger, silentLogger, summariseError } from './logger.ts'
export { METRICS } from './metric-table.ts'
export { Metrics } from './metrics.ts'
