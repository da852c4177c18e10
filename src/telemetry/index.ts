/**
 * What the process tells about itself: log lines and metrics.
 *
 * Nothing here decides anything, and nothing secret passes through. The metrics are listed in README.md beside.
 */

export { createLogger, describeError, type Logger, summariseError } from './logger.ts'
export { Metrics } from './metrics.ts'
