/**
 * What the process tells about itself: log lines and metrics.
 *
 * Nothing here decides anything, and nothing secret passes through.
 */
export { createLogger, describeError, type Logger, silentLogger } from './logger.ts'
