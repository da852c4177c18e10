import { writeWithoutWaiting } from '../../foundation/telemetry/index.ts'

/** 128 + SIGPIPE: how a shell reports a program that has lost the reader of its output. */
const EXIT_CLOSED_OUTPUT = 141

/** Commands that run until they are stopped. */
const SERVING: ReadonlySet<string | undefined> = new Set(['start', 'serve', 'worker', 'daemon'])

/** Whether a command runs until it is stopped. @param command the first argument */
export function isServing(command: string | undefined): boolean {
  return SERVING.has(command)
}

/**
 * Decides what becomes of a command whose output is closed (EPIPE), full (ENOSPC) or was a terminal that is gone (EIO): one that
 * serves goes on; another one ends without a message when it is closed, as by `head` once it has read enough.
 */
export function handleOutputErrors(command: string | undefined): void {
  if (isServing(command)) writeWithoutWaiting(process.stdout)
  for (const stream of [process.stdout, process.stderr])
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (isServing(command)) return
      if (error.code !== 'EPIPE') throw error
      process.exit(EXIT_CLOSED_OUTPUT)
    })
}
