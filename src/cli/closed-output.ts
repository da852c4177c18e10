/** 128 + SIGPIPE: how a shell reports a program that has lost the reader of its output. */
const EXIT_CLOSED_OUTPUT = 141

/**
 * Ends the process without a message when its output is closed (EPIPE), as `head` does once it has read enough. A command that
 * waits for SIGTERM gets one, and stops in order.
 */
export function exitOnClosedOutput(): void {
  let isClosed = false
  for (const stream of [process.stdout, process.stderr])
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error
      if (isClosed) return
      isClosed = true
      if (process.listenerCount('SIGTERM') > 0) process.kill(process.pid, 'SIGTERM')
      else process.exit(EXIT_CLOSED_OUTPUT)
    })
}
